/** Tests the validation of requests: the body, the model and the list of models. An invalid request reaches no upstream. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROVIDERS } from '../../src/providers/index.ts';
import { gemini } from '../../tools/simulator/gemini.ts';
import { decodeObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { allScenes, compatibleScenes } from '../../tools/simulator/scenes.ts';
import {
  chat,
  contentOf,
  errorOf,
  findClosedPort,
  INCLUDE_USAGE,
  jsonOf,
  MESSAGES,
  streamedChat,
} from './client.ts';
import { CREDENTIALS, type Gateway, startGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';
const MAX_REQUEST_BYTES = 2000;

let gateway: Gateway;

beforeAll(async () => {
  const vars = {
    MAX_REQUEST_BYTES: String(MAX_REQUEST_BYTES),
    DEFAULT_PROVIDER: 'deepseek',
    ALIASES:
      '{"fast":"mistral/mistral-small-latest","thinker":"deepseek-reasoner","deepseek/own":"openai/o4-mini"}',
    XEROTIER_API_KEY: undefined,
    OPENTOKEN_BASE_URL: `http://127.0.0.1:${await findClosedPort()}/v1`,
  };
  gateway = await startGateway({ vars });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** The error of a request, and proof that no upstream was called. */
async function refused(path: string, init: RequestInit) {
  const requestCount = gateway.simulator.requests.length;
  const answer = await errorOf(await gateway.fetch(path, { method: 'POST', ...init }));
  expect(gateway.simulator.requests).toHaveLength(requestCount);
  return answer;
}

describe('an invalid body', () => {
  test.each([
    ['no model', CHAT, { messages: MESSAGES }, 'model', 'deepseek/deepseek-flash'],
    ['a model that is not a string', CHAT, { model: 7, messages: MESSAGES }, 'model', 'GET /v1/models'],
    ['a model with a line feed', CHAT, chat('deepseek/a\nb'), 'model', 'model must be'],
    ['a model of 257 characters', CHAT, chat(`openai/${'x'.repeat(250)}`), 'model', 'model must be'],
    ['no messages', CHAT, { model: 'openai/x' }, 'messages', 'at least one message'],
    ['empty messages', CHAT, chat('openai/x', { messages: [] }), 'messages', 'at least one message'],
    [
      'messages that are strings',
      CHAT,
      chat('openai/x', { messages: ['Hi'] }),
      'messages',
      'at least one message',
    ],
    ['stream as a string', CHAT, chat('openai/x', { stream: 'true' }), 'stream', 'true or false'],
    [
      'stream_options as a list',
      CHAT,
      streamedChat('openai/x', { stream_options: [] }),
      'stream_options',
      'object',
    ],
    ['no prompt', '/v1/completions', { model: 'openai/x' }, 'prompt', 'text or a list'],
    [
      'no prompt for FIM',
      '/v1/fim/completions',
      { model: 'mistral/x', suffix: 'y' },
      'prompt',
      'text or a list',
    ],
    [
      'no agent',
      '/v1/agents/completions',
      { model: 'mistral/x', messages: MESSAGES },
      'agent_id',
      'must name the agent',
    ],
    [
      'no messages for an agent',
      '/v1/agents/completions',
      { agent_id: 'ag:1' },
      'messages',
      'at least one message',
    ],
  ])('%s: 400 that names the field and what is expected', async (_, path, body, param, advice) => {
    const { status, error } = await refused(path, { body: JSON.stringify(body) });
    expect(status).toBe(400);
    expect(error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_request', param });
    expect(textOf(error.message)).toContain(advice);
  });

  test.each([
    ['nothing', '', 'is empty'],
    ['half a JSON', '{"model":', 'is not valid JSON: it ends too early, at line 1, column 10'],
    ['a comma too many', '{"model":"x",}', 'is not valid JSON: the error is at line 1, column 14'],
    ['a list', '[]', 'is a list'],
    ['a text', '"model"', 'is a text'],
    ['null', 'null', 'is null'],
  ])('%s: 400 that requires a JSON object and names the problem', async (_, body, fault) => {
    const { status, error } = await refused(CHAT, { body });
    expect(status).toBe(400);
    expect(error).toMatchObject({
      code: 'invalid_json',
      message: `The body must be a JSON object, and ${fault}`,
    });
  });

  test('x-weir-vendor-events that are not globs: 400 that names the header', async () => {
    const headers = { 'x-weir-vendor-events': 'everything please' };
    const { status, error } = await refused(CHAT, { headers, body: JSON.stringify(chat('openai/x')) });
    expect(status).toBe(400);
    expect(textOf(error.message)).toContain('x-weir-vendor-events must be');
  });
});

describe('B2: MAX_REQUEST_BYTES', () => {
  /** A valid body of exactly this many bytes, with multi-byte characters. */
  function bodyOf(bytes: number): string {
    const body = JSON.stringify(chat('deepseek/deepseek-chat', { user: 'Zürich' }));
    return body + ' '.repeat(bytes - Buffer.byteLength(body));
  }

  /** Sent in chunks, without a content-length. */
  function chunked(body: string): RequestInit {
    const pieces = body.match(/.{1,500}/gs) ?? [];
    // Node requires `duplex` for a streamed body; the Workers types lack it.
    const init = { body: new Blob(pieces).stream(), duplex: 'half' };
    return init;
  }

  test.each([
    ['a content-length', (body: string): RequestInit => ({ body })],
    ['chunks', chunked],
  ])('a body of that size, sent with %s, is accepted; one byte more gets 413', async (_, init) => {
    const taken = await gateway.fetch(CHAT, { method: 'POST', ...init(bodyOf(MAX_REQUEST_BYTES)) });
    expect((await jsonOf(taken)).object).toBe('chat.completion');
    const { status, error } = await refused(CHAT, init(bodyOf(MAX_REQUEST_BYTES + 1)));
    expect(status).toBe(413);
    expect(error).toMatchObject({
      type: 'invalid_request_error',
      code: 'request_too_large',
      message: `The request's body is larger than ${MAX_REQUEST_BYTES} bytes`,
    });
  });
});

describe('a model', () => {
  test.each([
    ['fast', '/mistral/v1/chat/completions', 'mistral-small-latest', 'mistral/mistral-small-latest'],
    ['thinker', '/deepseek/chat/completions', 'deepseek-reasoner', 'deepseek/deepseek-reasoner'],
    ['deepseek/own', '/openai/v1/chat/completions', 'o4-mini', 'openai/o4-mini-2025-04-16'],
    ['deepseek-chat', '/deepseek/chat/completions', 'deepseek-chat', 'deepseek/deepseek-chat'],
    [
      'compatible/openai/gpt-oss-20b',
      '/compatible/v1/chat/completions',
      'openai/gpt-oss-20b',
      'compatible/openai/gpt-oss-20b',
    ],
  ])(
    'C2: %s is requested at %s as %s, and the response has %s, which can be requested again',
    async (asked, path, model, answers) => {
      const at = gateway.simulator.requests.length;
      const response = await gateway.post(CHAT, streamedChat(asked, INCLUDE_USAGE));
      const text = await response.text();
      expect(await gateway.simulator.request(at)).toMatchObject({ path, body: { model } });
      expect(new Set(text.match(/"model":"[^"]*"/g))).toEqual(new Set([`"model":"${answers}"`]));
      expect(contentOf(text)).not.toBe('');
      expect(response.headers.get('x-weir-model')).toBe(model);
    },
  );

  test.each([
    ['xerotier/llama-3.1-8b', CHAT, 404, 'model_not_found', 'xerotier is not set up'],
    ['deepseek/', CHAT, 404, 'model_not_found', 'names no model'],
    [
      'opentoken/google/gemini-3-flash',
      '/v1/completions',
      400,
      'unsupported_route',
      'OpenToken has no completions',
    ],
    [
      'opentoken/google/gemini-3-flash',
      '/v1/fim/completions',
      400,
      'unsupported_route',
      'OpenToken has no fim',
    ],
  ])('%s at %s gets %d %s', async (model, path, expected, code, advice) => {
    const body = JSON.stringify({ ...chat(model), prompt: 'Hi' });
    const { status, error } = await refused(path, { body });
    expect([status, error.code]).toEqual([expected, code]);
    expect(textOf(error.message)).toContain(advice);
  });

  test('an agent of a provider without agents gets 400', async () => {
    const body = JSON.stringify({ agent_id: 'deepseek/ag:1', messages: MESSAGES });
    const { status, error } = await refused('/v1/agents/completions', { body });
    expect([status, error.code]).toEqual([400, 'unsupported_route']);
  });
});

/** Providers list them, or their files name them. */
const EMBEDDING_MODELS = [
  'gemini/gemini-embedding-001',
  ...['mistral/mistral-embed', 'mistral/codestral-embed', 'openai/text-embedding-ada-002'],
  ...['openai/text-embedding-3-small', 'openai/text-embedding-3-large'],
];

describe('GET /v1/models', () => {
  test('lists each provider’s models by address, and the aliases; a provider that is down is skipped and logged', async () => {
    const at = gateway.simulator.requests.length;
    const response = await gateway.fetch('/v1/models');
    const text = await response.text();
    const data = objectsOf(decodeObject(text)?.data);
    const reachable = [...allScenes, gemini].filter(({ id }) => !['opentoken', 'xerotier'].includes(id));
    const listed = reachable.flatMap(({ id, models }) => models.map((model) => `${id}/${model}`));
    // Of Vertex, the list of Google's own models.
    const ofVertex = ['vertex/gemini-3-flash-preview', 'vertex/gemini-3.8-flash'];
    const own = [...EMBEDDING_MODELS, ...ofVertex, 'fast', 'thinker', 'deepseek/own'];
    const ids = data.map(({ id }) => textOf(id));
    expect(ids.sort()).toEqual([...listed, ...own].sort());
    const one = data.find(({ id }) => id === 'openai/o4-mini');
    expect(one).toEqual({
      id: 'openai/o4-mini',
      object: 'model',
      created: 1_790_000_000,
      owned_by: 'openai',
      type: 'model',
      display_name: 'openai/o4-mini',
      created_at: '2026-09-21T14:13:20.000Z',
      context_length: 200_000,
      max_input_tokens: 200_000,
      max_output_tokens: 100_000,
      max_tokens: 100_000,
      supports: { tools: true, reasoning: true, images: true, structured_output: true },
    });
    const unavailable = gateway.logs().filter((line) => line.includes('"models_unavailable"'));
    expect(unavailable.map((line) => decodeObject(line)?.provider).sort()).toEqual(['keyless', 'opentoken']);
    for (const credential of Object.values(CREDENTIALS)) expect(text).not.toContain(credential);
    const received = gateway.simulator.requests.slice(at);
    const credentials = received.map(({ path, headers }) => [path, headers.authorization]);
    expect(credentials).toContainEqual(['/mistral/v1/models', `Bearer ${CREDENTIALS.MISTRAL_API_KEY}`]);
    expect(credentials).toContainEqual(['/openai/v1/models', `Bearer ${CREDENTIALS.OPENAI_API_KEY}`]);
  });
});

describe('without DEFAULT_PROVIDER', () => {
  beforeAll(() => gateway.set({}));

  test.each(['made-up-model', 'nowhere/gpt-4o-mini', 'google/gemini-3-flash'])(
    '%s gets 404 that names the configured providers',
    async (model) => {
      const { status, error } = await refused(CHAT, { body: JSON.stringify(chat(model)) });
      expect(status).toBe(404);
      expect(error).toMatchObject({ type: 'not_found_error', code: 'model_not_found', param: 'model' });
      expect(textOf(error.message)).toContain(model);
      // Entries of the tests replace the others.
      const isReplaced = (name: string) => compatibleScenes.some(({ id }) => id === name);
      const ids = PROVIDERS.flatMap(({ id }) => (isReplaced(id) ? [] : id)).join(', ');
      expect(textOf(error.message)).toContain(`${ids}, compatible`);
    },
  );
});
