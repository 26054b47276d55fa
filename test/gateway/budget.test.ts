/** A hard budget in the gateway: unreported usage, prompts outside the body, rival output limits, tiers, and further attempts. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MAX_PROMPT_TOKENS } from '../../src/ledger/limits/usage-upper-bound.ts';
import { decodeObject, type JsonObject, numberOf, objectOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';
import { type Behavior, event, json, ROLE, refuse, sse } from './upstreams.ts';

const ENV = {
  ANTHROPIC_API_KEY: 'k',
  GEMINI_API_KEY: 'k',
  OWN_KEY: 'k',
  RETRIES: '0',
  PROVIDERS: JSON.stringify({
    llama: { base_url: 'https://llama.example/v1', api_key: 'OWN_KEY', like: 'llamacpp' },
    router: { base_url: 'https://openrouter.ai/api/v1', api_key: 'OWN_KEY', like: 'openrouter' },
    plain: { base_url: 'https://plain.example/v1', api_key: 'OWN_KEY' },
    shows: { base_url: 'https://shows.example/v1', like: 'llamacpp', stops_on_close: 100 },
    hides: { base_url: 'https://hides.example/v1', stops_on_close: 100 },
  }),
};
const HI = [{ role: 'user', content: 'Hi' }];
const SIX_WORDS = event({ content: 'One two three four five six' });
const WHOLE = {
  id: 'a',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there' }, finish_reason: 'stop' }],
};

/** A gateway whose upstream plays these responses, and repeats the last one. */
class Played {
  readonly gateway: LimitedGateway;
  /** The bodies that were sent upstream. */
  readonly sent: JsonObject[] = [];
  readonly #behaviors: Behavior[];

  constructor(behaviors: readonly Behavior[], env: JsonObject = {}) {
    this.#behaviors = [...behaviors];
    this.gateway = new LimitedGateway({ ...ENV, ...env }, { fetch: async (_, init) => this.#answer(init) });
  }

  async #answer(init: RequestInit | undefined): Promise<Response> {
    this.sent.push(decodeObject(String(init?.body)) ?? {});
    const behavior =
      (this.#behaviors.length > 1 ? this.#behaviors.shift() : this.#behaviors[0]) ?? refuse(404);
    if (behavior.kind === 'refuse') return new Response(behavior.body, { status: behavior.status });
    if (behavior.kind !== 'answer') {
      return new Promise((_, reject) =>
        init?.signal?.addEventListener('abort', () => reject(new Error('gone'))),
      );
    }
    const { pieces, type, ending } = behavior;
    const left = [...pieces];
    const body = new ReadableStream({
      type: 'bytes',
      pull(controller) {
        const piece = left.shift();
        if (piece !== undefined)
          return controller.enqueue(typeof piece === 'string' ? new TextEncoder().encode(piece) : piece);
        if (ending === 'hang') return new Promise<void>(() => {});
        controller.close();
        controller.byobRequest?.respond(0);
      },
    });
    return new Response(body, { headers: { 'content-type': type } });
  }

  /** Reads the whole response. */
  async ask(token: string, body: JsonObject, path = '/v1/chat/completions') {
    const response = await this.gateway.post(path, token, { messages: HI, ...body });
    const text = await response.text();
    await this.gateway.idle();
    const { status, headers } = response;
    return { status, headers, error: objectOf(decodeObject(text)?.error) };
  }

  /** Disconnects at the first text of a stream. */
  async leave(token: string, body: JsonObject, path = '/v1/chat/completions', at = 'six'): Promise<number> {
    const response = await this.gateway.post(path, token, { messages: HI, stream: true, ...body });
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    for (let text = ''; !text.includes(at); ) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    await reader?.cancel();
    await this.gateway.idle();
    return response.status;
  }

  /** `budget` of `GET /v1/key`. */
  async budget(token: string): Promise<JsonObject> {
    const response = await this.gateway.fetch('/v1/key', token);
    return objectOf(decodeObject(await response.text())?.budget);
  }

  get records() {
    return this.gateway.logged.filter(({ event: name }) => name === 'request');
  }
}

/** How much a request reserves from a budget of 10^9 tokens. */
async function reservedBy(body: JsonObject, path?: string, behaviors: readonly Behavior[] = [json(WHOLE)]) {
  const played = new Played(behaviors);
  const token = await played.gateway.key({ budget: { tokens: 1e9 } });
  const { headers } = await played.ask(token, body, path);
  const left = Number.parseInt(headers.get('x-weir-budget-remaining') ?? '', 10);
  return { tokens: 1e9 - left, sent: objectOf(played.sent[0]) };
}

describe('G3 unreported usage', () => {
  test('a stream with hidden reasoning whose client disconnected: charged as reserved, and GET /v1/key shows it', async () => {
    const played = new Played([{ ...sse(ROLE, SIX_WORDS), ending: 'hang' } as Behavior]);
    const token = await played.gateway.key({ budget: { tokens: 1e6 } });
    await played.leave(token, { model: 'openai/gpt-5', max_tokens: 60_000 });
    const { spent, unreported, estimated, reserved } = await played.budget(token);
    expect(numberOf(spent)).toBeGreaterThan(60_000 + 1024);
    expect([unreported, estimated, reserved]).toEqual([spent, 0, 0]);
    // The record has the estimate.
    expect(played.records).toMatchObject([{ status: 'cancelled', estimated: true }]);
    expect(played.records[0]?.total_tokens).toBeLessThan(100);
  });

  test('a client that disconnected before the head: charged as reserved', async () => {
    const played = new Played([{ kind: 'hang' }]);
    const token = await played.gateway.key({ budget: { tokens: 1e6 } });
    const client = new AbortController();
    const body = { model: 'openai/gpt-5', messages: HI, max_tokens: 60_000 };
    const pending = played.gateway.post('/v1/chat/completions', token, body, { signal: client.signal });
    while (played.sent.length === 0) await new Promise(setImmediate);
    client.abort();
    await pending.catch(() => undefined);
    await played.gateway.idle();
    expect(numberOf((await played.budget(token)).spent)).toBeGreaterThan(60_000);
  });

  test('clients that disconnect repeatedly: the budget admits only as many as it has room for', async () => {
    const played = new Played([{ ...sse(ROLE, SIX_WORDS), ending: 'hang' } as Behavior]);
    const token = await played.gateway.key({ budget: { USD: 1 } });
    // Each has $0.60 of output at $10 per million.
    const statuses = [];
    for (let i = 0; i < 4; i++) {
      statuses.push(await played.leave(token, { model: 'openai/gpt-5', max_tokens: 60_000 }));
    }
    expect(statuses).toEqual([200, 429, 429, 429]);
    expect(played.sent).toHaveLength(1);
  });

  test('a non-streaming response of a model without hidden output: charged by the bytes of its text', async () => {
    const played = new Played([json(WHOLE)]);
    const token = await played.gateway.key({ budget: { tokens: 1e6 } });
    await played.ask(token, { model: 'openai/gpt-4o-mini', max_tokens: 60_000 });
    const { spent, unreported } = await played.budget(token);
    expect(numberOf(spent)).toBeLessThan(2000);
    expect(numberOf(spent)).toBeGreaterThanOrEqual(1024 + 'Hello there'.length);
    expect(unreported).toBe(spent);
  });

  test('a non-streaming response of a model that may hide reasoning: charged at its output limit', async () => {
    const played = new Played([json(WHOLE)]);
    const token = await played.gateway.key({ budget: { tokens: 1e6 } });
    await played.ask(token, { model: 'plain/m', max_tokens: 60_000 });
    expect(numberOf((await played.budget(token)).spent)).toBeGreaterThan(60_000);
  });

  test('counts of zero with a text: charged as reserved, because they report nothing', async () => {
    const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    const played = new Played([json({ ...WHOLE, usage })]);
    const token = await played.gateway.key({ budget: { tokens: 1e6 } });
    await played.ask(token, { model: 'plain/m', max_tokens: 60_000 });
    expect(numberOf((await played.budget(token)).spent)).toBeGreaterThan(60_000);
  });

  test('a prompt that begins with data: charged by all of its bytes', async () => {
    const played = new Played([json(WHOLE)]);
    const token = await played.gateway.key({ budget: { tokens: 4e6 } });
    const content = `data:${'x '.repeat(300_000)}`;
    await played.ask(token, { model: 'plain/m', messages: [{ role: 'user', content }], max_tokens: 5 });
    expect(numberOf((await played.budget(token)).spent)).toBeGreaterThan(600_000);
  });

  test('usage that arrived before the client disconnected: charged as reported', async () => {
    const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
    const end = event({}, 'stop', { usage });
    const played = new Played([{ ...sse(ROLE, SIX_WORDS, end), ending: 'hang' } as Behavior]);
    const token = await played.gateway.key({ budget: { tokens: 1e6 } });
    await played.leave(token, { model: 'plain/m', max_tokens: 60_000 }, undefined, '"stop"');
    expect(await played.budget(token)).toMatchObject({ spent: 12, unreported: 0 });
  });

  test('a stream that reports usage in several events: the prompt is charged as reported, the output as reserved', async () => {
    const usage = { prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 };
    const running = event({ content: 'One two three four five six' }, null, { usage });
    const played = new Played([{ ...sse(ROLE, running), ending: 'hang' } as Behavior]);
    const token = await played.gateway.key({ budget: { tokens: 1e6 } });
    await played.leave(token, { model: 'plain/m', max_tokens: 60_000 });
    expect(await played.budget(token)).toMatchObject({ spent: 60_007 });
  });

  test('a response that broke before its output: charged as reserved', async () => {
    const played = new Played([sse(ROLE)]);
    const token = await played.gateway.key({ budget: { tokens: 1e6 } });
    await played.ask(token, { model: 'openai/gpt-5', max_tokens: 60_000, stream: true });
    expect(numberOf((await played.budget(token)).spent)).toBeGreaterThan(60_000);
  });

  describe('a cancelled stream of a server that is said to stop at 100 tokens a second', () => {
    const BYTES = 'One two three four five six'.length;
    const SECONDS = 3;
    beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
    afterEach(() => void vi.useRealTimers());

    /** The output that is charged when the client leaves after some seconds. */
    async function chargedOutput(model: string, n = 1, max_tokens = 60_000): Promise<number> {
      const played = new Played([{ ...sse(ROLE, SIX_WORDS), ending: 'hang' } as Behavior]);
      const token = await played.gateway.key({ budget: { tokens: 1e6 } });
      const sent = { model, messages: HI, stream: true, n, max_tokens };
      const response = await played.gateway.post('/v1/chat/completions', token, sent);
      const left = Number.parseInt(response.headers.get('x-weir-budget-remaining') ?? '', 10);
      const promptTokens = 1e6 - left - max_tokens * n;
      const reader = response.body?.getReader();
      const decoder = new TextDecoder();
      for (let text = ''; !text.includes('six'); ) text += decoder.decode((await reader?.read())?.value);
      vi.setSystemTime(Date.now() + SECONDS * 1000);
      await reader?.cancel();
      await played.gateway.idle();
      const { spent, reserved } = await played.budget(token);
      expect(reserved).toBe(0);
      return Number(spent) - promptTokens;
    }

    test('that shows all output: the bytes received, and a second', async () => {
      expect(await chargedOutput('shows/m')).toBe(BYTES + 100);
    });

    test('that may hide reasoning: also the time that has passed', async () => {
      expect(await chargedOutput('hides/m')).toBe(BYTES + 100 + SECONDS * 100);
    });

    test('with two choices: twice the speed', async () => {
      expect(await chargedOutput('hides/m', 2)).toBe(BYTES + 2 * (100 + SECONDS * 100));
    });

    test('with a low limit: at most what was reserved', async () => {
      expect(await chargedOutput('hides/m', 1, 90)).toBe(90);
    });

    test('of which nothing is said: the whole limit', async () => {
      expect(await chargedOutput('plain/m')).toBe(60_000);
    });
  });

  test('a refused request: not charged', async () => {
    const played = new Played([refuse(503)]);
    const token = await played.gateway.key({ budget: { tokens: 1e6 } });
    await played.ask(token, { model: 'openai/gpt-5', max_tokens: 60_000 });
    expect(await played.budget(token)).toMatchObject({ spent: 0, unreported: 0 });
  });

  test('tpm counts the tokens of the record', async () => {
    const played = new Played([{ ...sse(ROLE, SIX_WORDS), ending: 'hang' } as Behavior]);
    const token = await played.gateway.key({ budget: { tokens: 1e9 }, tpm: 100_000 });
    await played.leave(token, { model: 'openai/gpt-5', max_tokens: 90_000 });
    const response = await played.gateway.fetch('/v1/key', token);
    const { tokens } = decodeObject(await response.text()) ?? {};
    expect(numberOf(objectOf(tokens).remaining)).toBeGreaterThan(99_000);
  });
});

describe('G2 a prompt outside the body is reserved as the largest context window of the model, where it is known', () => {
  const WINDOWS: Readonly<Record<string, number>> = {
    'anthropic/claude-opus-5': 1_000_000,
    'gemini/gemini-3.8-flash': 1_048_576,
    'gemini/models/gemini-2.5-pro': 1_048_576,
    'openai/gpt-6.2-sol': 1_050_000,
    'openai/gpt-5.6-2026-07-30': 1_050_000,
  };
  const OUTPUT = 9;
  const file = (fields: JsonObject) => ({ type: 'file', file: fields });
  const image = (url: string) => ({ type: 'image_url', image_url: { url } });
  test.each<[what: string, model: string, part: JsonObject]>([
    [
      'a document that Anthropic fetches',
      'anthropic/claude-opus-5',
      file({ file_data: 'https://a.example/b.pdf' }),
    ],
    ['a PDF', 'anthropic/claude-opus-5', file({ file_data: 'data:application/pdf;base64,AAAA' })],
    [
      'a video at an address, called an image',
      'gemini/gemini-3.8-flash',
      image('https://www.youtube.com/watch?v=a'),
    ],
    ['a video in the body, called an image', 'gemini/gemini-3.8-flash', image('data:video/mp4;base64,AAAA')],
    ['a text in the body, called an image', 'gemini/gemini-3.8-flash', image('data:text/plain;base64,AAAA')],
    ['a file at an address', 'gemini/gemini-3.8-flash', file({ file_data: 'https://a.example/b.mp4' })],
    ['a PDF', 'gemini/models/gemini-2.5-pro', file({ file_data: 'data:application/pdf;base64,AAAA' })],
    ['an image at an address', 'openai/gpt-6.2-sol', image('https://a.example/b.png')],
    ['a file by its id', 'openai/gpt-5.6-2026-07-30', file({ file_id: 'file-1' })],
    ['an image at an address', 'openai/gpt-4o-mini', image('https://a.example/b.png')],
    [
      'a sound',
      'gemini/gemini-3.8-flash',
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'flac' } },
    ],
    ['a part without a type', 'plain/m', { image_url: { url: 'https://a.example/b.png' } }],
  ])('%s: %s', async (_, model, part) => {
    const messages = [{ role: 'user', content: [part] }];
    const { tokens } = await reservedBy({ model, messages, max_tokens: OUTPUT });
    expect(tokens).toBe((WINDOWS[model] ?? MAX_PROMPT_TOKENS) + OUTPUT);
  });

  test.each<[what: string, body: JsonObject]>([
    [
      'a document at an address',
      { content: [{ type: 'document', source: { type: 'url', url: 'https://a.example/b' } }] },
    ],
    [
      'an image at an address',
      { content: [{ type: 'image', source: { type: 'url', url: 'https://a.example/b' } }] },
    ],
    [
      'a PDF',
      {
        content: [
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } },
        ],
      },
    ],
    [
      'a context that is summed up',
      { content: 'Hi', context_management: { edits: [{ type: 'compact_20260112' }] } },
    ],
  ])('in the Messages passthrough: %s', async (_, { content, ...fields }) => {
    const messages = [{ role: 'user', content: content ?? '' }];
    const body = { model: 'anthropic/claude-opus-5', max_tokens: 9, messages, ...fields };
    // It is summed up by further prompts.
    const isReadOnce = fields.context_management === undefined;
    expect((await reservedBy(body, '/v1/messages')).tokens).toBeGreaterThanOrEqual(
      (isReadOnce && WINDOWS[body.model]) || MAX_PROMPT_TOKENS,
    );
  });

  test.each<[what: string, body: JsonObject]>([
    ['a prompt that is kept', { model: 'openai/gpt-5', prompt: { id: 'pmpt_1' } }],
    [
      'an answer in sound that is kept',
      { model: 'openai/gpt-4o-mini', messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] },
    ],
    ['a container', { model: 'anthropic/claude-opus-5', container: 'c_1' }],
    ['a search by the model’s suffix', { model: 'router/qwen/qwen-max:online' }],
    ['a preset', { model: 'router/@preset/mine' }],
    ['plugins', { model: 'router/qwen/qwen-max', plugins: [{ id: 'web' }] }],
  ])('%s', async (_, body) => {
    expect((await reservedBy({ max_tokens: 9, ...body })).tokens).toBeGreaterThanOrEqual(MAX_PROMPT_TOKENS);
  });

  test('a small image in the body, a text document and the context edits of Claude Code have a bound', async () => {
    const chat = [{ role: 'user', content: [image('data:image/png;base64,AAAA')] }];
    expect(
      (await reservedBy({ model: 'openai/gpt-4o-mini', messages: chat, max_tokens: 9 })).tokens,
    ).toBeLessThan(60_000);
    const source = { type: 'text', media_type: 'text/plain', data: 'A text' };
    const body = {
      model: 'anthropic/claude-opus-5',
      max_tokens: 9,
      messages: [{ role: 'user', content: [{ type: 'document', source }] }],
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    };
    expect((await reservedBy(body, '/v1/messages')).tokens).toBeLessThan(5000);
  });

  test('an image in a tool result counts as one in a message: inside the body it has a bound, at an address none', async () => {
    const reserved = async (source: JsonObject) => {
      const content = [{ type: 'image', source }];
      const messages = [
        { role: 'user', content: 'Look' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }] },
      ];
      const body = { model: 'openai/gpt-4o-mini', max_tokens: 9, messages };
      return (await reservedBy(body, '/v1/messages')).tokens;
    };
    const inside = await reserved({ type: 'base64', media_type: 'image/png', data: 'A'.repeat(200_000) });
    expect(inside).toBeGreaterThan(40_000);
    expect(inside).toBeLessThan(60_000);
    expect(await reserved({ type: 'url', url: 'https://a.example/b' })).toBeGreaterThanOrEqual(
      MAX_PROMPT_TOKENS,
    );
  });
});

describe('G2 the output limit is applied last, and replaces every name for it', () => {
  const GEMINI = { model: 'gemini/gemini-3.8-flash', max_tokens: 50 };
  test.each<[what: string, body: JsonObject]>([
    ['candidate_count', { generation_config: { candidate_count: 8 } }],
    ['max_output_tokens', { generation_config: { max_output_tokens: 65_000 } }],
    [
      'both spellings',
      { generation_config: { max_output_tokens: 65_000 }, generationConfig: { maxOutputTokens: 0 } },
    ],
    ['a text', { generationConfig: { maxOutputTokens: '65000' } }],
    [
      'extra_body.google.max_output_tokens',
      { extra_body: { google: { generation_config: { max_output_tokens: 65_000 } } } },
    ],
    [
      'extra_body.google.max_tokens',
      { extra_body: { google: { max_tokens: 65_000, n: 8, service_tier: 'priority' } } },
    ],
  ])('at Gemini: %s', async (_, fields) => {
    const { sent } = await reservedBy({ ...GEMINI, ...fields });
    const config = objectOf(sent.generationConfig);
    expect(config.maxOutputTokens).toBe(50);
    expect(Object.keys(config).filter((name) => /_|candidate/i.test(name))).toEqual([]);
    expect(Object.keys(sent).filter((name) => /_|serviceTier|^max|^n$/.test(name))).toEqual([]);
  });

  test('Gemini: 0 in its own field is no limit', async () => {
    const { sent } = await reservedBy({ model: GEMINI.model, generationConfig: { maxOutputTokens: 0 } });
    expect(objectOf(sent.generationConfig).maxOutputTokens).toBe(4096);
  });

  test('Gemini: the system instruction comes only from the messages', async () => {
    const system_instruction = { parts: [{ file_data: { file_uri: 'https://a.example/b.mp4' } }] };
    const { sent, tokens } = await reservedBy({ ...GEMINI, system_instruction });
    expect(sent).not.toHaveProperty('system_instruction');
    expect(tokens).toBeGreaterThanOrEqual(MAX_PROMPT_TOKENS);
  });

  test.each([
    'n_predict',
    'n_cmpl',
    'max_new_tokens',
    'max_output_tokens',
    'generation_config',
    'extra_body',
  ])('a server that may read %s: the field is dropped and reported', async (name) => {
    const played = new Played([json(WHOLE)]);
    const token = await played.gateway.key({ max_output_tokens: 10 });
    const { headers } = await played.ask(token, { model: 'llama/m', max_tokens: 5, [name]: 100_000 });
    expect(played.sent[0]).toMatchObject({ max_tokens: 5 });
    expect(played.sent[0]).not.toHaveProperty(name);
    expect(headers.get('x-weir-dropped')).toBe(name);
  });

  test('without limits these fields are not changed', async () => {
    const played = new Played([json(WHOLE)]);
    const { headers } = await played.ask(await played.gateway.key(), { model: 'llama/m', n_predict: 9 });
    expect(played.sent[0]).toMatchObject({ n_predict: 9 });
    expect(headers.get('x-weir-dropped')).toBeNull();
  });

  test('a prediction counts as output of each choice', async () => {
    const prediction = { type: 'content', content: 'p'.repeat(100_000) };
    const plain = await reservedBy({ model: 'openai/gpt-4o-mini', max_tokens: 9 });
    const predicted = await reservedBy({ model: 'openai/gpt-4o-mini', max_tokens: 9, n: 2, prediction });
    // Its text is also part of the prompt.
    expect(predicted.tokens - plain.tokens).toBeGreaterThanOrEqual(300_000);
  });

  test.each<[what: string, path: string, body: JsonObject, name: string]>([
    [
      'a chat to Claude',
      '/v1/chat/completions',
      { model: 'anthropic/claude-opus-5', max_tokens: 0 },
      'max_tokens',
    ],
    [
      'the Messages passthrough',
      '/v1/messages',
      { model: 'anthropic/claude-opus-5', max_tokens: 0 },
      'max_tokens',
    ],
    [
      'the Responses passthrough',
      '/v1/responses',
      { model: 'openai/gpt-5', input: 'Hi', max_output_tokens: 0 },
      'max_output_tokens',
    ],
  ])('0 is no limit: in %s the key’s own limit is reserved and sent', async (_, path, body, name) => {
    const { tokens, sent } = await reservedBy(body, path);
    expect(sent[name]).toBe(4096);
    expect(tokens).toBeGreaterThan(4096);
  });
});

describe('G2 speed and inference_geo are tiers', () => {
  const OPUS = { model: 'anthropic/claude-opus-5', max_tokens: 1e6 };
  const message = (more: JsonObject) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1000, output_tokens: 1000, ...more },
  });
  /** Spent from $1,000, in whole dollars. */
  async function ask(path: string, fields: JsonObject, usage: JsonObject) {
    const played = new Played([json(message(usage))]);
    const token = await played.gateway.key({ budget: { USD: 1000 } });
    const { status, headers, error } = await played.ask(token, { ...OPUS, ...fields }, path);
    const left = Number.parseFloat(headers.get('x-weir-budget-remaining') ?? '');
    return {
      status,
      error,
      reserved: Math.round((1000 - left) * 10) / 10,
      cost: played.records[0]?.cost_nanos,
    };
  }

  describe.each(['/v1/chat/completions', '/v1/messages'])('%s', (path) => {
    test.each<[fields: JsonObject, factor: number]>([
      [{}, 1],
      [{ speed: 'standard', inference_geo: 'global' }, 1],
      [{ speed: 'fast' }, 2],
      [{ inference_geo: 'us' }, 1.1],
      [{ speed: 'fast', inference_geo: 'us' }, 2.2],
    ])(
      '%j costs the standard price times %f, in the reservation and by the usage',
      async (fields, factor) => {
        const { status, reserved, cost } = await ask(path, fields, fields);
        expect([status, cost]).toEqual([200, Math.round(30_000_000 * factor)]);
        // At most a million tokens of output at $25 per million, or the most that the model can write.
        const { reserved: standard } = await ask(path, {}, {});
        expect(reserved / standard).toBeCloseTo(factor, 1);
      },
    );

    test('a speed that the request does not set but the response reports: in the cost', async () => {
      expect((await ask(path, {}, { speed: 'fast' })).cost).toBe(60_000_000);
    });

    test('a requested speed that was not used: the standard price', async () => {
      expect((await ask(path, { speed: 'fast' }, { speed: 'standard' })).cost).toBe(30_000_000);
    });

    test.each<[fields: JsonObject]>([
      [{ speed: 'ludicrous' }],
      [{ inference_geo: 'mars' }],
      [{ model: 'anthropic/claude-sonnet-5', speed: 'fast' }],
      [{ model: 'anthropic/claude-haiku-4-5', inference_geo: 'us' }],
    ])('%j has no price: refused under a budget in money', async (fields) => {
      const { status, error } = await ask(path, fields, {});
      expect(status).toBe(403);
      expect(error.message).toContain('no price');
    });
  });

  test('in a stream: the usage at its end counts', async () => {
    const { content: _, ...head } = message({ speed: 'fast', output_tokens: 1 });
    const events = [
      { type: 'message_start', message: { ...head, content: [] } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
      { type: 'content_block_stop', index: 0 },
    ];
    for (const [speed, nano] of [
      ['fast', 60_000_000],
      ['standard', 30_000_000],
    ] as const) {
      const usage = { input_tokens: 1000, output_tokens: 1000, speed };
      const end = [
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
        { type: 'message_stop' },
      ];
      const frames = [...events, ...end].map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`);
      const played = new Played([sse(...frames)]);
      const body = { ...OPUS, stream: true };
      for (const path of ['/v1/messages', '/v1/chat/completions']) {
        await played.ask(await played.gateway.key(), body, path);
      }
      expect(played.records.map(({ cost_nanos }) => cost_nanos)).toEqual([nano, nano]);
    }
  });
});

describe('G3 each further attempt that a provider bills needs its own reservation', () => {
  const usage = { prompt_tokens: 100, completion_tokens: 3900, total_tokens: 4000 };
  const failed = json({ error: { message: 'overloaded', code: 'server_error' }, usage });
  const models = ['b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => `plain/${name}`);
  const requested = { model: 'plain/a', models, max_tokens: 4000 };

  test('eight targets that fail with usage: only as many are called as the budget has room for', async () => {
    const played = new Played([failed]);
    const token = await played.gateway.key({ budget: { tokens: 12_000 } });
    const { status, error } = await played.ask(token, requested);
    // Each reserves 4,000 of output and about 1,200 of prompt: the third would need room for three.
    expect(played.sent).toHaveLength(2);
    expect([status, error.code]).toEqual([429, 'budget_exceeded']);
    expect(await played.budget(token)).toMatchObject({ spent: 8000, reserved: 0 });
    expect(played.records).toMatchObject([{ error_code: 'budget_exceeded' }]);
  });

  test('all are called where there is room, and no rate counts them', async () => {
    const played = new Played([failed]);
    const token = await played.gateway.key({ budget: { tokens: 1e6 }, rpm: 1, max_concurrent: 1 });
    expect((await played.ask(token, requested)).error.code).not.toBe('budget_exceeded');
    expect(played.sent).toHaveLength(8);
    expect(await played.budget(token)).toMatchObject({ spent: 32_000, reserved: 0 });
  });

  test('attempts that are not billed need none', async () => {
    const played = new Played([refuse(503)]);
    const token = await played.gateway.key({ budget: { tokens: 6000 } });
    await played.ask(token, requested);
    expect(played.sent).toHaveLength(8);
    expect(played.gateway.calls.filter((call) => call === 'reserve')).toHaveLength(1);
    expect(await played.budget(token)).toMatchObject({ spent: 0, reserved: 0 });
  });

  test('a model to which Anthropic falls back is reserved in addition to the first', async () => {
    const one = await reservedBy({ model: 'anthropic/claude-opus-5', max_tokens: 9000 });
    const fallbacks = [{ model: 'claude-sonnet-5' }];
    const two = await reservedBy({ model: 'anthropic/claude-opus-5', max_tokens: 9000, fallbacks });
    expect(two.tokens).toBeGreaterThanOrEqual(2 * one.tokens);
  });
});
