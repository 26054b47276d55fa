/** Tests which top-level fields each provider's table drops, silently or with a report, and which are sent (Q4, Q5, Q7, Q8, P5). */
import { describe, expect, test } from 'vitest';
import { PROFILES } from '../../src/providers/index.ts';
import { rewrite, send, TOOL } from './send.ts';

/** Providers and profiles that accept requests in OpenAI's form. */
const CHAT = PROFILES.filter(({ endpoints }) => endpoints.chat?.request.kind === 'chat');
const ALL = [...CHAT.map(({ id }) => `like ${id}`), 'codestral', 'opentoken', 'xerotier'];

describe('Q4 values that equal no value', () => {
  const DEFAULTS = {
    n: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    logprobs: false,
    store: false,
    modalities: ['text'],
    logit_bias: {},
    service_tier: 'auto',
  };

  test.each(ALL)('Q4 %s: top-level nulls are dropped silently', (provider) => {
    const rewritten = rewrite(provider, { model: 'm', stop: null, tool_choice: null, user: null });
    expect(rewritten).toEqual({ kind: 'body', body: { model: 'm' }, dropped: [], changed: [] });
  });

  test.each(['mistral', 'groq', 'cerebras', 'xai', 'like gemini', 'deepseek'])(
    "Q4 %s: OpenAI's defaults of fields that it refuses are dropped in silence",
    (provider) => {
      const rewritten = rewrite(provider, DEFAULTS);
      expect(rewritten).toMatchObject({ kind: 'body', dropped: [], changed: [] });
    },
  );

  test('Q4 Mistral: only the defaults of fields that it has are sent', () => {
    expect(send('mistral', DEFAULTS)).toEqual({ n: 1, presence_penalty: 0, frequency_penalty: 0 });
    expect(send('mistral', { response_format: { type: 'text' }, parallel_tool_calls: true })).toEqual({
      response_format: { type: 'text' },
      parallel_tool_calls: true,
    });
  });

  test('Q4 OpenAI: parallel_tool_calls without tools is dropped, with tools it is sent', () => {
    expect(send('openai', { parallel_tool_calls: false })).toEqual({});
    expect(send('openai', { parallel_tool_calls: false, tools: [TOOL] })).toEqual({
      parallel_tool_calls: false,
      tools: [TOOL],
    });
  });
});

describe('Q5 fields about the request', () => {
  const ABOUT = { user: 'u', store: true, safety_identifier: 's', verbosity: 'low', metadata: { a: 'b' } };

  test.each<[provider: string, dropped: readonly string[]]>([
    ['mistral', ['user', 'store', 'safety_identifier', 'verbosity']],
    ['groq', ['store', 'safety_identifier', 'verbosity', 'metadata']],
    ['cerebras', ['store', 'safety_identifier', 'verbosity', 'metadata']],
    ['like gemini', ['store', 'safety_identifier', 'verbosity', 'metadata']],
    ['xai', ['metadata']],
    ['fireworks', ['store', 'safety_identifier', 'verbosity']],
    ['openai', []],
    ['deepseek', []],
    ['openrouter', []],
    ['tolerant', []],
  ])('Q5 %s: %j are dropped and reported, the rest is sent', (provider, dropped) => {
    const rewritten = rewrite(provider, ABOUT);
    const kept = Object.fromEntries(Object.entries(ABOUT).filter(([field]) => !dropped.includes(field)));
    expect(rewritten).toEqual({ kind: 'body', body: kept, dropped, changed: [] });
  });

  test('Q5 OpenAI, metadata without store: dropped and reported', () => {
    expect(rewrite('openai', { metadata: { a: 'b' } })).toMatchObject({ body: {}, dropped: ['metadata'] });
  });

  // opencode 1.18 sends it to Gemini's models over Messages, whichever provider serves them.
  test.each(['openai', 'mistral', 'groq', 'cerebras', 'like gemini'])(
    'Q6 %s, top_k, which Messages and Gemini clients send: dropped and reported',
    (provider) => {
      const rewritten = rewrite(provider, { model: 'm', top_k: 64, temperature: 1 });
      expect(rewritten).toMatchObject({ kind: 'body', body: { temperature: 1 }, dropped: ['top_k'] });
      expect(rewritten).not.toHaveProperty('body.top_k');
    },
  );

  test('Q5 OpenAI, sampling at a model that refuses it: dropped and reported, a default silently', () => {
    const sampling = { temperature: 0.2, top_p: 1 };
    const astra = { model: 'gpt-6-astra', ...sampling };
    expect(rewrite('openai', astra)).toMatchObject({
      body: { model: 'gpt-6-astra' },
      dropped: ['temperature'],
    });
    expect(send('openai', astra)).toEqual({ model: 'gpt-6-astra' });
    for (const body of [
      { model: 'gpt-6.1-terra', reasoning_effort: 'none', ...sampling },
      { model: 'gpt-4o', ...sampling },
    ])
      expect(rewrite('openai', body)).toMatchObject({ body, dropped: [] });
    // There `none` is sent as `low`, so the model reasons anyway.
    expect(rewrite('openai', { ...astra, model: 'gpt-6.2-sol', reasoning_effort: 'none' })).toMatchObject({
      body: { reasoning_effort: 'low' },
      dropped: ['temperature'],
    });
    expect(rewrite('openai', astra, 'refuse')).toMatchObject({
      kind: 'error',
      error: { param: 'temperature' },
    });
  });

  test('Q8 refuse: a field that would be dropped is an error with its name', () => {
    expect(rewrite('mistral', { user: 'u' }, 'refuse')).toMatchObject({
      kind: 'error',
      error: { status: 400, code: 'unsupported_parameter', param: 'user' },
    });
    expect(rewrite('mistral', { store: false }, 'refuse')).toMatchObject({ kind: 'body', body: {} });
    expect(rewrite('deepseek', { user: 'u' }, 'refuse')).toMatchObject({ kind: 'body', body: { user: 'u' } });
  });
});

describe('Q7 unknown fields', () => {
  test.each(ALL)('Q7 %s: sent unchanged, and the given body is not modified', (provider) => {
    const body = { model: 'm', venice_parameters: { a: [1, { b: null }] }, guardrails: [], temperature: 0 };
    const before = structuredClone(body);
    expect(send(provider, body)).toEqual(before);
    expect(body).toEqual(before);
  });
});

describe("P5 a request for the cost with OpenRouter's field", () => {
  const ASKED = { usage: { include: true } };

  test.each(ALL.filter((id) => id !== 'like openrouter'))(
    'P5 %s: does not get the word, and nothing is reported',
    (id) => {
      for (const usage of [{ include: true }, { include: false }]) {
        expect(rewrite(id, { usage }, 'refuse')).toMatchObject({ body: {}, dropped: [], changed: [] });
        expect(send(id, { usage })).toEqual({});
      }
    },
  );

  test('P5 OpenRouter: sent', () => {
    expect(send('openrouter', ASKED)).toEqual(ASKED);
  });

  test('P5 Q7 another form of the field: sent unchanged', () => {
    for (const usage of [{ tokens: 5 }, { include: 'yes' }, true])
      expect(send('openai', { usage })).toEqual({ usage });
  });
});
