/** Embeddings that break off after their headers: the client's connection is closed, and workerd logs no uncaught exception (J1, T3). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Gateway, startGateway } from './gateway.ts';
import { CLOCKS_OFF, replayOf } from './scenarios.ts';

/** More than is read before the response begins. */
const VECTORS = `{"object":"list","data":[{"embedding":[${'0.125,'.repeat(4000)}`;

let gateway: Gateway;

beforeAll(async () => {
  const replay = replayOf({
    'vectors-then-reset': { chunks: [VECTORS, '0.5,'], ending: 'reset' },
    'vectors-then-end': { chunks: [VECTORS, '0.5,'] },
    'vectors-then-nothing': { chunks: [VECTORS, '0.5,'], ending: 'hang' },
  });
  gateway = await startGateway({ pace: 10, replay, vars: { ...CLOCKS_OFF, DEADLINE_SECONDS: '3' } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

test.each([
  ['whose connection breaks', 'vectors-then-reset', 'upstream_truncated'],
  ['that end within the vectors', 'vectors-then-end', 'upstream_truncated'],
  ['that stall until the deadline', 'vectors-then-nothing', 'timeout'],
])('J1 embeddings %s: the body breaks off, without an uncaught exception', async (_, model, code) => {
  const body = { model: `openai/${model}`, input: 'two words' };
  const headers = { 'accept-encoding': 'identity' };
  const response = await gateway.post('/v1/embeddings', body, { headers });
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow();
  expect(await gateway.record(response)).toMatchObject({ error_code: code });
  // A later request's log line comes after whatever this one has logged.
  const later = await gateway.post('/v1/chat/completions', {
    model: 'openai/gpt-4o-mini',
    messages: [{ role: 'user', content: 'Hi' }],
  });
  await later.text();
  await gateway.record(later);
  expect(gateway.logs().filter((line) => /uncaught|exception/i.test(line))).toEqual([]);
});
