/** Tests that no response, log line or record contains a credential, an internal address or a stack, for any failure (E4, K1). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FAULT_NAMES } from '../../tools/simulator/faults.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { textOf } from '../../tools/simulator/json.ts';
import { sampleOf } from '../random-run.ts';
import { chat, jsonOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, CREDENTIALS, type Gateway, startGateway } from './gateway.ts';
import { LEAKS, leak } from './leaks.ts';

const CHAT = '/v1/chat/completions';
/** Faults that run until the deadline and contain nothing that others don't. */
const LONG = new Set(['flood', 'endless-line', 'endless-event', 'big-event']);
const FAULTS = FAULT_NAMES.filter((name) => !LONG.has(name));
const REFUSALS = [400, 401, 402, 403, 404, 413, 422, 429, 500, 502, 503, 504].map(
  (status) => `status-${status}`,
);
const MODELS = ['deepseek/deepseek-chat', 'mistral/mistral-small-latest', 'xerotier/llama-3.1-8b'];

let gateway: Gateway;
let clientKey = '';
/** Every response: status, headers and body. */
const answers: string[] = [];

beforeAll(async () => {
  gateway = await startGateway({
    replay: leak,
    vars: {
      AUTH: 'keys',
      HEARTBEAT_SECONDS: '0.5',
      DEADLINE_SECONDS: '1',
      // No server listens there.
      CODESTRAL_BASE_URL: 'http://127.0.0.1:9/internal',
    },
  });
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const made = await jsonOf(await gateway.post('/admin/keys', { name: 'secrets' }, { headers }));
  clientKey = textOf(made.key);
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function ask(body: JsonObject, authorization = `Bearer ${clientKey}`, path = CHAT): Promise<number> {
  const response = await gateway.post(path, body, { headers: { authorization } });
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
  answers.push(`${response.status}\n${headers}\n\n${await response.text()}`);
  return response.status;
}

/** Sends a streaming and a non-streaming request for each model, a few at a time. */
async function askAll(models: readonly string[]): Promise<void> {
  const bodies = models.flatMap((model) => [streamedChat(model), chat(model)]).values();
  async function askOneByOne(): Promise<void> {
    for (const body of bodies) await ask(body);
  }
  await Promise.all(Array.from({ length: 12 }, askOneByOne));
}

/** Texts that must not appear anywhere. */
function secrets(): Readonly<Record<string, RegExp>> {
  const quoted = (text: string) => new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
  const credentials = Object.entries(CREDENTIALS).map(([name, value]) => [name, quoted(value)] as const);
  return {
    ...Object.fromEntries(credentials),
    'the client key': quoted(clientKey),
    'the admin token': quoted(ADMIN_TOKEN),
    // Messages describe the expected header as `Bearer <key>`.
    'a bearer': /bearer\s+(?!<)\S/i,
    "the simulator's address": quoted(`127.0.0.1:${gateway.simulator.port}`),
    'a local address': /127\.0\.0\.1|localhost/i,
    'a secret that leaked in an attack': /hunter2|aHVudGVy/i,
    'a stack': /(?:\\n|\n)\s*at\s|\bat \S+ \(\S+:\d+|node_modules|\.[jt]s:\d+/,
  };
}

function findSecrets(texts: readonly string[]): string[] {
  return Object.entries(secrets()).flatMap(([name, pattern]) =>
    texts.filter((text) => pattern.test(text)).map((text) => `${name}: ${text.slice(0, 600)}`),
  );
}

/** Removes the upstream's address from the cause of an attempt. The cause is only in the log and for the admin (E4). */
function withoutAddress(text: string): string {
  return text.replace(/(\\?"cause\\?":\\?")http:\/\/127\.0\.0\.1:\d+/g, '$1');
}

describe('E4 K1', () => {
  test('every fault, error and leak, streaming and non-streaming: no secret in a response, a log line or a record', async () => {
    const failures = [...FAULTS, ...REFUSALS];
    const all = MODELS.flatMap((model) => failures.map((fault) => `${model}:${fault}`));
    // Each failure at one of the models.
    const few = failures.map((fault, i) => `${MODELS[i % MODELS.length]}:${fault}`);
    await askAll(sampleOf(few, all));
    await askAll(LEAKS.map((name) => `openai/${name}`));
    await askAll(['codestral/codestral-latest', 'keyless/openai/gpt-oss-20b', 'nowhere/model', '']);
    for (const key of ['', 'Bearer weir_0000000000000000', `Bearer ${clientKey}x`, 'Basic d2VpcjpzZWNyZXQ='])
      expect(await ask(chat(MODELS[0] ?? ''), key)).toBe(401);
    for (const path of ['/admin/keys', '/admin/nothing', '/v1/nothing'])
      await ask({}, `Bearer ${clientKey}`, path);
    const requestCount = gateway.simulator.requests.length;
    await gateway.records(requestCount);
    expect(answers.length).toBeGreaterThan(sampleOf(80, 200));
    expect(gateway.logs().length).toBeGreaterThanOrEqual(requestCount);
    expect(findSecrets(answers)).toEqual([]);
    expect(findSecrets(gateway.logs().map(withoutAddress))).toEqual([]);
    const entries = await gateway.entries('');
    expect(entries.length).toBeGreaterThanOrEqual(requestCount);
    expect(findSecrets(entries.map((entry) => withoutAddress(JSON.stringify(entry))))).toEqual([]);
  });

  test('the search finds every secret', () => {
    const { port } = gateway.simulator;
    const samples = [
      ...Object.values(CREDENTIALS),
      clientKey,
      ADMIN_TOKEN,
      'Authorization: Bearer abcdef123',
      `http://127.0.0.1:${port}/v1`,
      'postgres://admin:hunter2@db.prod:5432/x',
      'Error: no\n    at handle (/srv/index.js:10:5)',
      JSON.stringify('Error: no\n    at handle (/srv/index.js:10:5)'),
    ];
    for (const sample of samples) expect(findSecrets([sample]), sample).not.toEqual([]);
  });
});
