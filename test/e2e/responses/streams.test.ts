/** Tests open Responses streams: heartbeats, silent upstreams, clients that disconnect or read slowly, limits and usage records. */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkResponses, eventsIn } from '../../../tools/conformance/contract/check-responses.ts';
import { decodeObject, objectOf, textOf } from '../../../tools/simulator/json.ts';
import type { RecordedRequest } from '../../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../../tools/simulator/server.ts';
import { jsonOf } from '../client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from '../gateway.ts';

const encoder = new TextEncoder();
const CHAT = 'mistral/mistral-small-latest';
const PASSTHROUGH_MODEL = 'openai/gpt-4o-mini';
const WAYS = [
  ['chat', CHAT],
  ['its passthrough', PASSTHROUGH_MODEL],
] as const;

/** workerd detects a disconnected client at a write. */
const HEARTBEAT_SECONDS = '0.1';

let gateway: Gateway;
let replay: ((request: RecordedRequest) => Replay | undefined) | undefined;
/** Twice the size of the kernel's buffers (`slow-readers.slow.test.ts`). */
const FLOOD_BYTES = 160 * 1024 * 1024;

beforeAll(async () => {
  gateway = await startGateway({
    replay: (request) => replay?.(request),
    vars: { HEARTBEAT_SECONDS },
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

function ask(model: string, body: object = {}, init?: RequestInit): Promise<Response> {
  return gateway.post('/v1/responses', { model, input: 'Hello there', stream: true, ...body }, init);
}

describe.each(WAYS)('over %s', (_, model) => {
  test('T4 M1 a client that disconnects: the upstream is cancelled, and the record is too', async () => {
    const requestCount = gateway.simulator.requests.length;
    const abort = new AbortController();
    const response = await ask(`${model}:stall-mid`, {}, { signal: abort.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    abort.abort();
    await expect(reader?.read()).rejects.toThrow();
    expect(await (await gateway.simulator.request(requestCount)).closed).toBe('disconnected');
    expect(await gateway.record(response)).toMatchObject({ status: 'cancelled', client: 'responses' });
  });

  test('M1 M2 the record names the client’s protocol and the tokens', async () => {
    const response = await ask(model);
    await response.text();
    expect(await gateway.record(response)).toMatchObject({
      status: 'finished',
      route: 'chat',
      client: 'responses',
      prompt_tokens: 2,
      estimated: false,
    });
  });
});

test('T5 a client of the passthrough that stops reading: the upstream stops', async () => {
  const delta = {
    type: 'response.output_text.delta',
    delta: 'x',
    sequence_number: 2,
    obfuscation: 'y'.repeat(60_000),
  };
  const event = encoder.encode(`event: ${delta.type}\ndata: ${JSON.stringify(delta)}\n\n`);
  const chunks = Array.from({ length: FLOOD_BYTES / event.length }, () => event);
  const requestCount = gateway.simulator.requests.length;
  const abort = new AbortController();
  replay = () => ({ chunks });
  const response = await ask(PASSTHROUGH_MODEL, {}, { signal: abort.signal });
  replay = undefined;
  await response.body?.getReader().read();
  const upstream = await gateway.simulator.request(requestCount);
  let sent = -1;
  // After this many equal samples it has stopped. Sockets buffer some bytes.
  for (let equal = 0; equal < 5; equal = upstream.bytesSent === sent ? equal + 1 : 0) {
    sent = upstream.bytesSent;
    await setTimeout(100);
  }
  expect(sent).toBeLessThan(FLOOD_BYTES / 2);
  abort.abort();
  expect(await upstream.closed).toBe('disconnected');
});

describe('errors in the route’s own form', () => {
  test('K3 I1 E1 no body, a wrong method, an unknown path', async () => {
    const invalid = await gateway.fetch('/v1/responses', { method: 'POST', body: 'no' });
    expect(invalid.status).toBe(400);
    expect(await jsonOf(invalid)).toMatchObject({
      error: { type: 'invalid_request_error', code: 'invalid_json' },
    });
    const method = await gateway.fetch('/responses', { method: 'GET' });
    expect([method.status, method.headers.get('allow')]).toEqual([405, 'POST']);
    const kept = await gateway.post('/responses/resp_1/cancel', {});
    expect(kept.status).toBe(404);
    expect(objectOf((await jsonOf(kept)).error).message).toContain('keeps no responses');
    const compact = await gateway.post('/v1/responses/compact', { model: 'openai/gpt-4o-mini', input: 'a' });
    expect(compact.status).toBe(404);
    expect(objectOf((await jsonOf(compact)).error).message).toContain('ask a model for a summary');
  });
});

describe('an idle timeout', () => {
  beforeAll(() => gateway.set({ HEARTBEAT_SECONDS, IDLE_TIMEOUT_SECONDS: '0.5' }));

  describe.each(WAYS)('over %s', (_, model) => {
    test('T1 T2 I4 an upstream that hangs: comments, then error, response.failed and [DONE]', async () => {
      const response = await ask(`${model}:stall-mid`);
      const text = await response.text();
      expect(text).toContain(': heartbeat\n\n');
      const events = eventsIn(text);
      expect(events.at(-1)).toMatchObject({ type: 'response.failed' });
      expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_event, at) => at));
      expect(await gateway.record(response)).toMatchObject({
        status: 'timed_out',
        error_code: 'stream_idle_timeout',
      });
    });

    test('E1 I1 an upstream that hangs from the start fails in the stream that a heartbeat began', async () => {
      const response = await ask(`${model}:hang`);
      expect(response.status).toBe(200);
      const text = await response.text();
      expect(checkResponses(text)).toEqual([]);
      expect(eventsIn(text).at(-1)).toMatchObject({
        response: { status: 'failed', error: { code: 'server_error' } },
      });
    });
  });
});

test('G2 a key’s limit of output tokens holds on the passthrough', async () => {
  const keyed = await startGateway({ vars: { AUTH: 'keys' } });
  try {
    const made = await keyed.post(
      '/admin/keys',
      { name: 'small', max_output_tokens: 16 },
      { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } },
    );
    const headers = { authorization: `Bearer ${textOf((await jsonOf(made)).key)}` };
    // The response has a word for each of them: more than the limit, which OpenAI wants to be 16 or more.
    const names = Array.from({ length: 20 }, (_, at) => [`member${at}`, { type: 'string' }] as const);
    const schema = { type: 'object', properties: Object.fromEntries(names) };
    const format = { type: 'json_schema', name: 'members', schema };
    const body = { model: PASSTHROUGH_MODEL, input: 'Hello there', max_output_tokens: 900, text: { format } };
    const response = await keyed.post('/v1/responses', body, { headers });
    const answer = decodeObject(await response.text());
    expect(answer).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    });
    expect(keyed.simulator.requests.at(-1)?.body).toMatchObject({ max_output_tokens: 16 });
    expect(response.headers.get('x-weir-changed')).toBe('max_output_tokens');
    const unknown = await keyed.post('/v1/responses', body);
    expect(unknown.status).toBe(401);
    expect(await jsonOf(unknown)).toMatchObject({ error: { code: 'invalid_api_key' } });
  } finally {
    await keyed[Symbol.asyncDispose]();
  }
});
