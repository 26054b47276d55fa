/** A host's hook that fails: its answer is in the form of whoever called (I1, W2). */
import { describe, expect, test } from 'vitest';
import { NO_HOOKS } from '../../src/gateway.ts';
import { decodeObject } from '../simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

function onRequest(): never {
  throw new Error('broken on purpose');
}

describe('I1 W2 onRequest that throws: 500, which tells no more than that', () => {
  const message = 'The Worker around Weir failed on this request; its log has the reason';
  const gateway = new LimitedGateway({ AUTH: 'open' }, {}, { ...NO_HOOKS, onRequest });
  const openai = { error: { type: 'server_error', code: 'internal_error', message } };
  const anthropic = { type: 'error', error: { type: 'api_error', message } };

  test.each([
    ['/v1/chat/completions', openai],
    ['/v1/responses', openai],
    ['/v1/messages', anthropic],
    ['/messages/count_tokens', anthropic],
  ])('%s: in its client’s form', async (path, form) => {
    const response = await gateway.post(path, 'x', {});
    expect(response.status).toBe(500);
    const body = decodeObject(await response.text());
    expect(body).toMatchObject(form);
    if (path.includes('messages')) expect(body?.request_id).toBe(response.headers.get('request-id'));
  });
});

test('T4 a client that leaves while the host is asked: no upstream is, and there is no record', async () => {
  const client = new AbortController();
  const asking = { ...NO_HOOKS, onRequest: () => client.abort() };
  const gateway = new LimitedGateway({ AUTH: 'open' }, {}, asking);
  for (const stream of [true, false]) {
    await gateway.ask('x', { stream }, { signal: client.signal }).catch(() => undefined);
    await gateway.idle();
  }
  expect(gateway.calls).not.toContain('upstream');
  expect(gateway.logged).toEqual([]);
});
