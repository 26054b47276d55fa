/** Providers that are reached through a service binding, in workerd (W5): what reaches them, and what a client gets when they fail. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { chat, contentOf, DONE, framesOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN } from './gateway.ts';
import { type Runtime, startWorkers, type WorkerOptions } from './workers.ts';

const CHAT = '/v1/chat/completions';
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const TODAY = new Date().toISOString().slice(0, 10);

/** No network has this host. */
const ENTRY = {
  base_url: 'http://llm.internal:8000/v1',
  binding: 'VPC_LLM',
  api_key: 'LOCAL_KEY',
  headers: { 'x-team': 'Zurich', 'x-second': '$SECOND_KEY' },
};
const PROVIDER: WorkerOptions = {
  name: 'llm',
  main: 'bound-provider-worker.ts',
  bindings: { WEIR_LEDGER: false, WEIR_RESPONSES: false, WEIR_KV: false },
};

function gatewayOf(entry: JsonObject, vars: Readonly<Record<string, string>> = {}): WorkerOptions {
  return {
    vars: {
      AUTH: 'keys',
      ADMIN_TOKEN,
      RETRIES: '0',
      LOCAL_KEY: 'local-secret',
      SECOND_KEY: 'second-secret',
      PROVIDERS: JSON.stringify({ bound: entry }),
      ALIASES: JSON.stringify({ fallback: ['bound/throws', 'bound/fails', 'bound/whole'] }),
      ...vars,
    },
    bindings: { VPC_LLM: { type: 'worker', worker: 'llm' } },
  };
}

let runtime: Runtime;
let key: string;
const received: JsonObject[] = [];

beforeAll(async () => {
  runtime = await startWorkers({
    workers: [gatewayOf(ENTRY), PROVIDER],
    onLog: (line) => {
      const entry = decodeObject(line);
      if (entry?.event === 'bound_request') received.push(entry);
    },
  });
  const made = await send('/admin/keys', { name: 'k' }, ADMIN);
  key = textOf(decodeObject(await made.text())?.key);
});
afterAll(() => runtime[Symbol.asyncDispose]());

function send(path: string, body: JsonObject, headers: Readonly<Record<string, string>> = {}) {
  return fetch(runtime.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
  });
}

async function ask(body: JsonObject, headers = {}) {
  const response = await send(CHAT, body, headers);
  const text = await response.text();
  const id = textOf(response.headers.get('x-weir-request-id'));
  return { status: response.status, text, id, error: objectOf(decodeObject(text)?.error) };
}

/** The request's record. */
async function recordOf(id: string): Promise<JsonObject> {
  let found: JsonObject | undefined;
  await expect
    .poll(async () => {
      const response = await fetch(`${runtime.url}/v1/usage/records?from=${TODAY}`, { headers: ADMIN });
      found = objectsOf(decodeObject(await response.text())?.data).find((one) => one.request_id === id);
      return found;
    })
    .toBeDefined();
  return found ?? {};
}

describe('W5 what reaches a provider through its binding', () => {
  test('a request has its own credential and headers, and nothing that identifies the client', async () => {
    received.length = 0;
    const headers = {
      cookie: 'session=1',
      'x-forwarded-for': '203.0.113.7',
      'cf-connecting-ip': '203.0.113.7',
      'x-weir-user': 'ada',
      'x-team': 'client',
      'api-key': 'client',
    };
    const { status, id } = await ask(chat('bound/whole'), headers);
    expect(status).toBe(200);
    expect(received).toHaveLength(1);
    const [{ method, url, headers: own } = {}] = received;
    expect([method, url]).toEqual(['POST', 'http://llm.internal:8000/v1/chat/completions']);
    expect(own).toMatchObject({
      authorization: 'Bearer local-secret',
      'content-type': 'application/json',
      'x-team': 'Zurich',
      'x-second': 'second-secret',
    });
    const text = JSON.stringify(received);
    for (const secret of [key, ADMIN_TOKEN, 'session=1', '203.0.113.7', 'ada"', 'client"'])
      expect(text).not.toContain(secret);
    expect(await recordOf(id)).toMatchObject({ status: 'finished', total_tokens: 5 });
  });

  test('a stream, a Messages request and the list of models go through it', async () => {
    received.length = 0;
    const { text } = await ask(streamedChat('bound/streamed'));
    expect([contentOf(text), framesOf(text).at(-1)]).toEqual(['Hi', DONE]);
    const message = await send('/v1/messages', { ...chat('bound/whole'), max_tokens: 5 });
    expect([message.status, await message.text()]).toEqual([200, expect.stringContaining('"text":"Hi"')]);
    const models = await fetch(`${runtime.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(await models.text()).toContain('"id":"bound/whole"');
    expect(received.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST http://llm.internal:8000/v1/chat/completions',
      'POST http://llm.internal:8000/v1/chat/completions',
      'GET http://llm.internal:8000/v1/models',
    ]);
  });
});

describe('W5 a provider behind a binding that fails', () => {
  test.each([
    ['throws', 502, 'upstream_unreachable'],
    ['fails', 502, 'upstream_error'],
    ['redirects', 502, 'upstream_error'],
    ['breaks-first', 502, 'upstream_truncated'],
  ])('%s: %i %s, streamed and whole, with one request and a record', async (model, status, code) => {
    for (const body of [chat(`bound/${model}`), streamedChat(`bound/${model}`)]) {
      received.length = 0;
      const answer = await ask(body);
      expect([answer.status, answer.error.code]).toEqual([status, code]);
      for (const secret of ['local-secret', 'second-secret', 'llm.internal', 'elsewhere', 'VPC_LLM'])
        expect(answer.text).not.toContain(secret);
      expect(received).toHaveLength(1);
      expect(await recordOf(answer.id)).toMatchObject({ status: 'failed' });
    }
  });

  test.each(['breaks', 'ends-early'])('a stream that %s: its output, an error and the end', async (model) => {
    const { status, text, id } = await ask(streamedChat(`bound/${model}`));
    expect([status, contentOf(text)]).toEqual([200, 'Hi']);
    const frames = framesOf(text);
    expect(frames.at(-1)).toBe(DONE);
    expect(frames.at(-2)).toContain('"code":"upstream_truncated"');
    expect(await recordOf(id)).toMatchObject({ status: 'failed' });
  });

  test('JSON that breaks is no answer', async () => {
    const { status, error, id } = await ask(chat('bound/breaks-json'));
    expect([status, error.code]).toEqual([502, 'upstream_truncated']);
    expect(await recordOf(id)).toMatchObject({ status: 'failed' });
  });

  test('an alias goes on to its next target', async () => {
    received.length = 0;
    expect((await ask(chat('fallback'))).status).toBe(200);
    expect(received).toHaveLength(3);
  });
});

describe('W5 with other settings', () => {
  test('a provider that hangs before or in its answer ends with a timeout', async () => {
    await runtime.set([gatewayOf(ENTRY, { IDLE_TIMEOUT_SECONDS: '1', DEADLINE_SECONDS: '5' }), PROVIDER]);
    for (const body of [chat('bound/hangs'), streamedChat('bound/hangs')]) {
      const { text } = await ask(body);
      expect(text).toMatch(/"code":"(stream_idle_timeout|timeout)"/);
    }
    const { text, id } = await ask(streamedChat('bound/stops'));
    expect(contentOf(text)).toBe('Hi');
    expect(text).toContain('"code":"stream_idle_timeout"');
    expect(await recordOf(id)).toMatchObject({ status: 'timed_out' });
  });

  test.each(['VPC_GONE', 'WEIR_KV'])(
    'binding %s, which is no service: an invalid setting, and no request',
    async (binding) => {
      await runtime.set([gatewayOf({ ...ENTRY, binding }), PROVIDER]);
      received.length = 0;
      const { status, error } = await ask(chat('bound/whole'));
      expect([status, error.code, error.message]).toEqual([
        500,
        'misconfigured',
        expect.stringContaining(`binding names no service binding of this Worker: ${binding}`),
      ]);
      expect(received).toEqual([]);
    },
  );
});
