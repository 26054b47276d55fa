/** Tests errors before any output: every status and form of an upstream error, and what the client receives. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import { REFUSAL_FORMS } from '../../tools/simulator/refusals.ts';
import type { Replay } from '../../tools/simulator/server.ts';
import { chat, DONE, errorOf, findClosedPort, framesOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, CREDENTIALS, type Gateway, startGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';

let gateway: Gateway;
let closedPort: number;
/** Everything that a client received in this file. */
const received: string[] = [];

beforeAll(async () => {
  closedPort = await findClosedPort();
  gateway = await startGateway({ vars: { OPENAI_BASE_URL: `http://127.0.0.1:${closedPort}/v1` }, replay });
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function refused(body: JsonObject, headers: Record<string, string> = {}) {
  const response = await gateway.post(CHAT, body, { headers });
  received.push(await response.clone().text());
  return { ...(await errorOf(response)), headers: response.headers, record: await gateway.record(response) };
}

/** The contract's table. `own`: the upstream's message is forwarded if it has one. */
const TABLE: readonly { status: number; to: number; type: string; code: string; own: boolean }[] = [
  { status: 400, to: 400, type: 'invalid_request_error', code: 'invalid_request', own: true },
  { status: 401, to: 502, type: 'server_error', code: 'upstream_credential', own: false },
  { status: 402, to: 502, type: 'server_error', code: 'upstream_balance', own: false },
  { status: 403, to: 502, type: 'server_error', code: 'upstream_refused', own: true },
  { status: 404, to: 404, type: 'not_found_error', code: 'not_found', own: true },
  { status: 413, to: 413, type: 'invalid_request_error', code: 'request_too_large', own: true },
  { status: 422, to: 422, type: 'invalid_request_error', code: 'invalid_request', own: true },
  { status: 429, to: 429, type: 'rate_limit_error', code: 'rate_limited', own: true },
  { status: 500, to: 502, type: 'server_error', code: 'upstream_error', own: true },
  { status: 502, to: 502, type: 'server_error', code: 'upstream_error', own: true },
  { status: 503, to: 503, type: 'server_error', code: 'upstream_overloaded', own: true },
  { status: 504, to: 504, type: 'timeout_error', code: 'timeout', own: true },
  { status: 529, to: 503, type: 'server_error', code: 'upstream_overloaded', own: true },
];

/** The client's message for each form of body, if the upstream's message is forwarded. */
const MESSAGES: Readonly<Record<string, (status: number) => string>> = {
  openai: () => 'DeepSeek: Simulated failure',
  string: () => 'DeepSeek: Simulated failure',
  object: () => 'DeepSeek: Simulated failure',
  detail: () => 'DeepSeek: body: Simulated failure',
  text: () => 'DeepSeek: Simulated failure',
  html: (status) => `DeepSeek: ${status}`,
  none: (status) => `DeepSeek answered ${status}`,
};

const CODED_FORMS = ['openai', 'object'];

describe('an upstream that responds', () => {
  test('every form of the simulator is in the table of this test', () => {
    expect(Object.keys(MESSAGES)).toEqual(REFUSAL_FORMS);
  });

  test.each(TABLE)(
    'E1: $status in every form of body: $to, $type',
    async ({ status, to, type, code, own }) => {
      for (const form of REFUSAL_FORMS) {
        const model = `deepseek/deepseek-chat:status-${status}-${form}`;
        const answer = await refused(form === 'text' ? chat(model) : streamedChat(model));
        const keepsCode = own && code !== 'upstream_refused' && CODED_FORMS.includes(form);
        const expectedCode = keepsCode ? `simulated_${status}` : code;
        expect([form, answer.status, answer.error.type, answer.error.code]).toEqual([
          form,
          to,
          type,
          expectedCode,
        ]);
        expect(answer.error.param).toBeNull();
        expect(Object.keys(answer.error)).toEqual(['message', 'type', 'param', 'code']);
        const message = code.startsWith('upstream_credential')
          ? `DeepSeek refused this deployment's credential (${status}): check DEEPSEEK_API_KEY`
          : code.startsWith('upstream_balance')
            ? `DeepSeek refused this deployment's balance (${status})`
            : `${MESSAGES[form]?.(status)}${status === 404 ? ': check DEEPSEEK_BASE_URL' : ''}`;
        expect(answer.error.message).toBe(message);
        // A retry by the client cannot fix the deployment's account at the provider.
        const isLasting = code === 'upstream_refused' || (!own && status < 500);
        expect(answer.headers.get('x-should-retry')).toBe(isLasting ? 'false' : null);
        expect(answer.record).toMatchObject({ status: 'failed', error_code: expectedCode, total_tokens: 0 });
      }
    },
  );

  test.each([429, 503])('E1 H2: %d: retry-after is forwarded', async (status) => {
    for (const body of [chat, streamedChat]) {
      const answer = await refused(body(`deepseek/deepseek-chat:status-${status}-none`));
      expect(answer.headers.get('retry-after')).toBe('7');
      expect(answer.headers.get('x-weir-provider')).toBe('deepseek');
    }
  });

  test.each([
    ['deepseek/deepseek-chat', 'DeepSeek'],
    ['mistral/mistral-small-latest', 'Mistral'],
    ['codestral/codestral-latest', 'Codestral'],
    ['opentoken/google/gemini-3-flash', 'OpenToken'],
    ['xerotier/llama-3.1-8b', 'Xerotier'],
    ['compatible/openai/gpt-oss-20b', 'compatible'],
  ])('E1 E4: %s: its form of a 400 is parsed, and the message names %s', async (model, name) => {
    const { status, error } = await refused(streamedChat(`${model}:status-400`));
    expect(status).toBe(400);
    expect(error.message).toBe(`${name}: Simulated failure`);
  });

  test('E1: a field that Mistral forbids is reported with its location', async () => {
    const { status, error } = await refused(chat('mistral/mistral-small-latest', { turbo_mode: 1 }));
    expect(status).toBe(422);
    expect(error.message).toBe('Mistral: body.turbo_mode: Extra inputs are not permitted');
  });

  test("E1: a spent quota is an error of the deployment's account, with any status", async () => {
    const { status, error } = await refused(streamedChat('deepseek/quota'));
    expect([status, error.code]).toEqual([502, 'upstream_balance']);
  });
});

test.each([
  ['streamed', streamedChat],
  ['plain', chat],
])(
  'E1: %s: the message of an error in a list with status 200, as Google sends it, is parsed',
  async (_, body) => {
    const { status, error } = await refused(body('deepseek/listed'));
    expect([status, error.code, error.message]).toEqual([
      503,
      'upstream_overloaded',
      'DeepSeek: The model is overloaded.',
    ]);
  },
);

describe("an upstream that can't be reached", () => {
  test.each([
    ['streamed', streamedChat],
    ['plain', chat],
  ])('E1 E4: %s: 502, with its name and no address, and a failed record', async (_, body) => {
    const { status, error, record } = await refused(body('openai/gpt-4o-mini'));
    expect(status).toBe(502);
    expect(error).toEqual({
      message: 'OpenAI could not be reached: check OPENAI_BASE_URL',
      type: 'server_error',
      param: null,
      code: 'upstream_unreachable',
    });
    expect(record).toMatchObject({ status: 'failed', error_code: 'upstream_unreachable', total_tokens: 0 });
    const admin = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
    const found = await gateway.fetch(`/v1/usage/records/${record.request_id}`, admin);
    const [attempt] = objectsOf(decodeObject(await found.text())?.attempts);
    expect(attempt?.cause).toMatch(
      new RegExp(
        `^http://127\\.0\\.0\\.1:${closedPort}/v1/chat/completions: Network connection lost: check OPENAI_BASE_URL$`,
      ),
    );
  });
});

const SECRETS = `${CREDENTIALS.DEEPSEEK_API_KEY} Bearer abcdefgh12345678 sk-proj-abcdef123456`;
const ADDRESSES = 'http://10.0.0.3:8080/v1 10.1.2.3:99 localhost:4000 db.internal [fd00::1]:53';
const STACK = '\n    at handler (/srv/app/index.js:10:5)\n    at run (/srv/app/run.js:1:1)';

function replay({ body }: RecordedRequest): Replay | undefined {
  const { model } = objectOf(body);
  const json = (value: JsonObject) => Buffer.from(JSON.stringify(value));
  const headers = { 'content-type': 'application/json' };
  if (model === 'listed') {
    const error = { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' };
    return { status: 200, headers, chunks: [Buffer.from(JSON.stringify([{ error }]))] };
  }
  const message = `Bad: ${SECRETS} ${ADDRESSES}${STACK}`;
  if (model === 'quota') {
    const error = { message: 'Spent', type: 'insufficient_quota', code: 'insufficient_quota' };
    return { status: 429, headers, chunks: [json({ error })] };
  }
  if (model === 'leaky') {
    const error = { message, code: CREDENTIALS.DEEPSEEK_API_KEY, param: 'http://10.0.0.3:8080/v1' };
    return { status: 400, headers, chunks: [json({ error })] };
  }
  if (model === 'leaky-text') return { status: 500, headers: {}, chunks: [Buffer.from(message)] };
  if (model !== 'leaky-stream') return undefined;
  const content = { choices: [{ index: 0, delta: { content: 'So' }, finish_reason: null }] };
  const events = [content, { error: { message, code: CREDENTIALS.DEEPSEEK_API_KEY } }];
  return { chunks: events.map((event) => Buffer.from(`data: ${JSON.stringify(event)}\n\n`)), gapMs: 20 };
}

describe('texts that messages never contain', () => {
  test.each(['leaky', 'leaky-text'])(
    'E4: an upstream error (%s) is forwarded without secrets, addresses and stack',
    async (model) => {
      const { error } = await refused(chat(`deepseek/${model}`));
      expect(error.message).toMatch(/^DeepSeek: Bad: \[redacted\]/);
      expectClean(JSON.stringify(error));
    },
  );

  test('E4: an error in a stream is forwarded without those texts', async () => {
    const response = await gateway.post(CHAT, streamedChat('deepseek/leaky-stream'));
    const text = await response.text();
    received.push(text);
    const [error, done] = framesOf(text).slice(-2);
    expect(done).toBe(DONE);
    expect(error).toMatch(/^data: \{"error":\{"message":"DeepSeek: Bad: \[redacted\]/);
    expectClean(textOf(error));
  });

  function expectClean(text: string): void {
    for (const leak of [
      'sim-deepseek',
      'abcdefgh12345678',
      'sk-proj',
      '10.0.0.3',
      '10.1.2.3',
      '4000',
      'db.internal',
    ])
      expect(text).not.toContain(leak);
    expect(text).not.toMatch(/fd00|srv\/app|\bat handler/);
  }

  test('E4: no response and no log line, except the causes of attempts, contains a secret or an address', () => {
    const causes = /,"cause":"http:\/\/127\.0\.0\.1:\d+\/[\w/]*: [^":/]+(?:: check [A-Z_]+)?"/g;
    const logs = gateway.logs().map((line) => line.replace(causes, ''));
    expect(logs.join()).not.toBe(gateway.logs().join());
    expect(logs.length).toBeGreaterThan(TABLE.length * REFUSAL_FORMS.length);
    expect(received.length).toBeGreaterThan(TABLE.length * REFUSAL_FORMS.length);
    const { port } = gateway.simulator;
    const leaks = [
      ...Object.values(CREDENTIALS),
      ADMIN_TOKEN,
      `:${port}`,
      `:${closedPort}`,
      '127.0.0.1',
      '    at ',
    ];
    for (const leak of leaks)
      expect([...received, ...logs].filter((text) => text.includes(leak))).toEqual([]);
  });
});
