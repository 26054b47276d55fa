/**
 * Guards what the product was asked for: five documents (`../shared/seeds`, "seed 000" to "seed 004"). Their streams
 * are fixtures whose `about` names the seed, and which the contract suite plays. Here stands a digest of each
 * document's fixtures, so that a change of one of them is a decision; then their request fields and their errors. Where
 * the documents are beside the clone, no example of theirs is missing.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject } from '../tools/simulator/json.ts';
import { type Fixture, fixtures } from './contract/fixtures.ts';
import { DONE, event, ROLE, RoutedGateway, read, sse } from './gateway/upstreams.ts';

const FOLDER = fileURLToPath(new URL('../../shared/seeds/', import.meta.url).href);
const note = existsSync(FOLDER) ? '' : ' (skipped: ../shared/seeds is not here)';

/** By number: the document, and the digest of its fixtures' bytes and outcomes. A fixture that changes on purpose changes it, too. */
const SEEDS = {
  '000': ['DeepSeek: streams of chat and of fill-in-the-middle (AsyncAPI)', '85b4f94d264836f1'],
  '001': ['DeepSeek: create a chat completion', '4c0cf3daf097702a'],
  '002': ['Mistral: streams of chat, fill-in-the-middle and agents (AsyncAPI)', '0814972729429e25'],
  '003': ['Xerotier: streaming, vendor events and errors', '15c128c22d6e4de7'],
  '004': ['OpenToken: streaming', 'f665bd1efe1bde8d'],
} as const;

function fixturesOf(seed: string): Fixture[] {
  return fixtures.filter(({ about }) => about.includes(`seed ${seed}`));
}

function digestOf(found: readonly Fixture[]): string {
  const hash = createHash('sha256');
  for (const { name, upstream, expected, outcome } of found)
    hash.update(JSON.stringify([name, new TextDecoder().decode(upstream), expected, outcome]));
  return hash.digest('hex').slice(0, 16);
}

describe.each(Object.entries(SEEDS))('seed %s', (seed, [title, digest]) => {
  test(`${title}: what its streams become is as it was`, () => {
    expect(digestOf(fixturesOf(seed))).toBe(digest);
  });
});

describe.skipIf(note !== '')(`the documents${note}`, () => {
  const documents = note === '' ? readdirSync(FOLDER).sort() : [];

  test.each(documents.map((file) => [file.slice(0, 3), file]))(
    'seed %s: each example is in a fixture',
    (seed, file) => {
      const text = readFileSync(join(FOLDER, file), 'utf8');
      const own = fixturesOf(seed);
      const played = own.flatMap(({ upstream }) => new TextDecoder().decode(upstream).split('\n')).map(plain);
      const lines = [...text.matchAll(/^data: ?(\{.*\})\s*$/gm)].map(([, json]) => plain(json ?? ''));
      const names = [...text.matchAll(/^ {8}- name: (\w+)$/gm)].map(([, name]) => name ?? '');
      expect(lines.length + names.length).toBeGreaterThan(3);
      expect(lines.filter((line) => !played.includes(line))).toEqual([]);
      // Each stream ends with the example `Done`.
      const told = (name: string) => /^done$/i.test(name) || own.some(({ about }) => about.includes(name));
      expect(names.filter((name) => !told(name))).toEqual([]);
    },
  );
});

/** One line of a stream as JSON with one order and no spaces. */
function plain(line: string): string {
  return JSON.stringify(decodeObject(line.replace(/^data: ?/, '')), (_, value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

const ENV = {
  OPENTOKEN_API_KEY: 'key-of-opentoken',
  OPENTOKEN_BASE_URL: 'https://opentoken/v1',
  XEROTIER_API_KEY: 'key-of-xerotier',
  XEROTIER_BASE_URL: 'https://xerotier/v1',
};
const ANSWER = sse(ROLE, event({ content: 'a' }), event({}, 'stop'), DONE);

const TOOL = {
  type: 'function',
  function: { name: 'f', description: 'd', parameters: { type: 'object', properties: {} } },
};

/** The body that a request with these fields sends up. */
async function sentUp(model: string, fields: JsonObject, path?: string): Promise<JsonObject> {
  const [, name = ''] = model.split('/');
  const { requests, ask } = gatewayFor({ [name]: [ANSWER] });
  const { status } = await read(await ask({ model, stream: true, ...fields }, {}, path));
  expect(status).toBe(200);
  return requests[0]?.body ?? {};
}

function gatewayFor(behaviors: ConstructorParameters<typeof RoutedGateway>[0]) {
  const routed = new RoutedGateway(behaviors, ENV);
  return { requests: routed.requests, ask: routed.ask.bind(routed) };
}

describe('seed 001: a field of the request goes up as it is', () => {
  test.each<[name: string, fields: JsonObject]>([
    ['frequency_penalty', { frequency_penalty: -1.5 }],
    ['presence_penalty', { presence_penalty: 2 }],
    ['max_tokens', { max_tokens: 17 }],
    ['response_format', { response_format: { type: 'json_object' } }],
    ['stop, a text', { stop: 'END' }],
    ['stop, sixteen texts', { stop: Array.from({ length: 16 }, (_, at) => `s${at}`) }],
    ['temperature', { temperature: 1.3 }],
    ['top_p', { top_p: 0.4 }],
    ['tools', { tools: [TOOL] }],
    ['tool_choice none', { tools: [TOOL], tool_choice: 'none' }],
    ['tool_choice auto', { tools: [TOOL], tool_choice: 'auto' }],
    ['logprobs and top_logprobs', { logprobs: true, top_logprobs: 20 }],
    [
      'messages with names',
      {
        messages: [
          { role: 'system', content: 's', name: 'rules' },
          { role: 'user', content: 'u', name: 'ada' },
          { role: 'assistant', content: 'a', name: 'bot' },
          { role: 'user', content: 'v' },
        ],
      },
    ],
  ])('%s', async (_, fields) => {
    expect(await sentUp('deepseek/deepseek-chat', fields)).toMatchObject({ ...fields, stream: true });
  });

  test('stream_options: usage is requested, whether the client asks for it or not', async () => {
    const options = { include_usage: true };
    expect(await sentUp('deepseek/deepseek-chat', {})).toMatchObject({ stream_options: options });
    expect(await sentUp('deepseek/deepseek-chat', { stream_options: options })).toMatchObject({
      stream_options: options,
    });
  });
});

describe('seeds 000 and 002: other routes', () => {
  test('fill-in-the-middle goes to DeepSeek’s beta and to Mistral’s /fim', async () => {
    const body = { prompt: 'def f(', suffix: 'return a', max_tokens: 9 };
    expect(await sentUp('deepseek/deepseek-chat', body, '/v1/completions')).toMatchObject(body);
    expect(await sentUp('mistral/codestral-latest', body, '/v1/fim/completions')).toMatchObject(body);
  });
});

describe('seeds 003 and 004: an error', () => {
  const timeout = {
    message: 'Request timed out after 30s.',
    type: 'timeout_error',
    code: 'timeout',
  };

  test.each([
    [
      'event: error, then [DONE]',
      'xerotier/m',
      `event: error\ndata: ${JSON.stringify({ error: timeout })}\n\n`,
    ],
    ['a data frame, then [DONE]', 'opentoken/m', `data: ${JSON.stringify({ error: timeout })}\n\n`],
  ])(
    'within the stream, %s: the text, one error frame with type and code, no finish',
    async (_, model, frame) => {
      const { ask } = gatewayFor({ m: [sse(ROLE, event({ content: 'half' }), frame, DONE)] });
      const got = await read(await ask({ model, stream: true }));
      expect(got).toMatchObject({
        status: 200,
        text: 'half',
        finishes: [],
        error: { type: 'timeout_error', code: 'timeout' },
      });
    },
  );

  test.each([
    ['server_error', 'internal_error'],
    ['server_error', 'backend_unavailable'],
    ['server_error', 'preempted'],
    ['stream_idle_timeout', 'stream_idle_timeout'],
    [null, 'cancelled'],
  ])('of type %s with the code %s after output is an error, never a finish', async (type, code) => {
    const error = { message: 'Stopped', ...(type === null ? {} : { type }), code };
    const frame = `event: error\ndata: ${JSON.stringify({ error })}\n\n`;
    const { ask } = gatewayFor({ m: [sse(ROLE, event({ content: 'half' }), frame, DONE)] });
    const got = await read(await ask({ model: 'xerotier/m', stream: true }));
    expect(got).toMatchObject({ text: 'half', finishes: [], error: { code } });
  });

  test.each([
    [400, 400, timeout.message],
    // The deployment's credential is the deployment's fault.
    [401, 502, 'check XEROTIER_API_KEY'],
    [404, 404, timeout.message],
    [429, 429, timeout.message],
    [503, 503, timeout.message],
  ])('before the stream, %i: JSON with an error object, as %i', async (status, own, message) => {
    const { ask } = gatewayFor({ m: [{ kind: 'refuse', status, body: JSON.stringify({ error: timeout }) }] });
    const response = await ask({ model: 'xerotier/m', stream: true });
    expect(response.headers.get('content-type')).toContain('application/json');
    expect(response.status).toBe(own);
    expect(decodeObject(await response.text())?.error).toMatchObject({
      message: expect.stringContaining(message),
    });
  });
});
