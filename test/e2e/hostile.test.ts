/** Tests hostile values over HTTP: the response always keeps the contract, and one record is written (M1, E1). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../tools/simulator/server.ts';
import { chat, DONE, errorOf, framesOf, streamedChat } from './client.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { CLOCKS_OFF } from './scenarios.ts';

const CHAT = '/v1/chat/completions';
const DEEP = 100_000;
const DEEP_LIST = '['.repeat(DEEP) + ']'.repeat(DEEP);
const NON_STRING = '{"toString":1,"valueOf":1}';

function choice(key: string, members: string): string {
  return `{"choices":[{"index":0,"${key}":{"role":"assistant","content":"a"${members}}`;
}

/** The same fault in a stream's chunk (`delta`) and in a non-streaming response (`message`). */
const FAULTS: Readonly<Record<string, (key: string) => string>> = {
  'deep-arguments': (key) =>
    `${choice(key, `,"tool_calls":[{"id":"c","function":{"name":"f","arguments":${DEEP_LIST}}}]`)}}]}`,
  'non-string-tokens': (key) => `${choice(key, '')},"logprobs":{"tokens":[${NON_STRING}]}}]}`,
  'deep-tokens': (key) => `${choice(key, '')},"logprobs":{"tokens":[${DEEP_LIST}]}}]}`,
  'non-string-locations': () => `{"detail":[{"loc":[${NON_STRING}],"msg":"m"}]}`,
  'deep-locations': () => `{"detail":[{"loc":[${DEEP_LIST}],"msg":"m"}]}`,
};

function replay({ body }: RecordedRequest): Replay | undefined {
  const model = String(body?.model);
  const fault = Object.hasOwn(FAULTS, model) ? FAULTS[model] : undefined;
  if (fault === undefined) return undefined;
  return body?.stream === true
    ? { chunks: [Buffer.from(`data: ${fault('delta')}\n\n${DONE}\n\n`)] }
    : { headers: { 'content-type': 'application/json' }, chunks: [Buffer.from(fault('message'))] };
}

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ replay, vars: { ...CLOCKS_OFF, DEADLINE_SECONDS: '5' } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** The log line that ends every request that reached an upstream. */
function hasRecord(id: string | null): boolean {
  return gateway.logs().some((line) => line.includes('"event":"request"') && line.includes(String(id)));
}

describe.each(Object.keys(FAULTS))('an upstream that sends %s', (name) => {
  test('E1 E2 M1 in a stream: output or an error, never an internal error, and one record with that status', async () => {
    const response = await gateway.post(CHAT, streamedChat(`openai/${name}`));
    const text = await response.text();
    expect([200, 502]).toContain(response.status);
    if (response.status === 200) expect(framesOf(text).at(-1)).toBe(DONE);
    const status = text.includes('{"error":{') ? 'failed' : 'finished';
    expect(await gateway.record(response)).toMatchObject({ status });
  });

  test('E1 M1 in a non-streaming response: output or an error, never an internal error, and one record with that status', async () => {
    const response = await gateway.post(CHAT, chat(`openai/${name}`));
    await response.text();
    expect([200, 502]).toContain(response.status);
    const status = response.status === 200 ? 'finished' : 'failed';
    expect(await gateway.record(response)).toMatchObject({ status });
  });
});

describe('a client that sends', () => {
  function post(body: string): Promise<Response> {
    return gateway.fetch(CHAT, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  }
  const MESSAGES = '[{"role":"user","content":"Hello there"}]';
  const MODEL = 'deepseek/deepseek-chat';

  test(`E1 ${DEEP} nested lists: an error of the body, not of the upstream`, async () => {
    const response = await post(`{"model":"${MODEL}","messages":${MESSAGES},"metadata":${DEEP_LIST}}`);
    expect(await errorOf(response)).toMatchObject({ status: 400, error: { code: 'invalid_json' } });
  });

  test.each([
    ['__proto__', '{"stream":"polluted"}'],
    ['constructor', '{"prototype":{"stream":"polluted"}}'],
    ['toString', '1'],
  ])('M1 %s in its body: treated like any other field', async (key, value) => {
    const response = await post(`{"${key}":${value},"model":"${MODEL}","messages":${MESSAGES}}`);
    expect(response.status).toBe(200);
    await response.text();
    expect(await gateway.record(response)).toMatchObject({ status: 'finished', completion_tokens: 16 });
    const upstream = gateway.simulator.requests.at(-1);
    expect(upstream?.text).toContain(`"${key}":${value}`);
  });

  test.each([
    ['1e999 as a number', '"max_tokens":1e999'],
    ['lone surrogates', '"user":"\\ud800"'],
    ['an escaped NUL', '"user":"a\\u0000b"'],
  ])('M1 %s: the request is forwarded as JSON, and recorded', async (_, member) => {
    const response = await post(`{"model":"${MODEL}","messages":${MESSAGES},${member}}`);
    await response.text();
    expect(gateway.simulator.requests.at(-1)?.body).toBeDefined();
    const { request_id } = await gateway.record(response);
    expect(hasRecord(request_id)).toBe(true);
  });

  test.each([
    ['invalid UTF-8', [0x7b, 0xff, 0x7d]],
    ['a raw NUL', [0x7b, 0, 0x7d]],
    ['nothing', []],
  ])('E1 %s: 400', async (_, bytes) => {
    const body = Uint8Array.from(bytes);
    const response = await gateway.fetch(CHAT, { method: 'POST', body });
    expect(await errorOf(response)).toMatchObject({ status: 400, error: { code: 'invalid_json' } });
  });
});
