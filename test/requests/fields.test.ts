/** Tests what becomes of top-level fields at each provider: renamed, dropped, reported, refused, or sent on (Q1, Q4-Q8). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/canonical/json.ts';
import { PROFILES } from '../../src/providers/profiles.ts';
import { providerNamed, rewrite, send, TOOL } from './send.ts';

const FORCED = { type: 'function', function: { name: 'f' } };
const ALL = [...PROFILES.map(({ id }) => id), 'codestral', 'opentoken', 'xerotier'];

describe('Q1 the same meaning in other words', () => {
  test.each<[provider: string, body: JsonObject, sent: JsonObject]>([
    ['deepseek', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['deepseek', { max_completion_tokens: 5, max_tokens: 3 }, { max_tokens: 3 }],
    ['mistral', { max_completion_tokens: 5, seed: 7 }, { max_tokens: 5, random_seed: 7 }],
    ['openai', { max_tokens: 5 }, { max_completion_tokens: 5 }],
    ['openai', { max_tokens: 5, max_completion_tokens: 3 }, { max_completion_tokens: 3 }],
    ['cerebras', { max_tokens: 5 }, { max_completion_tokens: 5 }],
    ['fireworks', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['ollama', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['together', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['groq', { max_tokens: 5 }, { max_tokens: 5 }],
    ['openrouter', { max_tokens: 5 }, { max_tokens: 5 }],
    ['mistral', { tool_choice: 'required', tools: [TOOL] }, { tool_choice: 'required', tools: [TOOL] }],
    ['mistral', { tool_choice: FORCED, tools: [TOOL] }, { tool_choice: FORCED, tools: [TOOL] }],
  ])('Q1 %s, %j: sent as %j', (provider, body, sent) => {
    expect(send(provider, body)).toEqual(sent);
  });

  test('Q1 OpenAI, legacy completions: have the older name of the limit', () => {
    expect(send('openai', { max_completion_tokens: 5 }, 'completions')).toEqual({ max_tokens: 5 });
  });

  test.each<[provider: string, model: string, body: JsonObject, sent: JsonObject]>([
    ['deepseek', 'm', { reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
    ['deepseek', 'm', { reasoning_effort: 'medium' }, { reasoning_effort: 'high' }],
    ['deepseek', 'm', { thinking: { type: 'disabled' } }, { thinking: { type: 'disabled' } }],
    ['deepseek', 'm', { reasoning: { effort: 'minimal' } }, { reasoning_effort: 'low' }],
    ['deepseek', 'm', { reasoning: { enabled: false } }, { thinking: { type: 'disabled' } }],
    ['mistral', 'mistral-small-latest', { reasoning_effort: 'low' }, { reasoning_effort: 'high' }],
    ['mistral', 'mistral-small-latest', { thinking: { type: 'disabled' } }, { reasoning_effort: 'none' }],
    ['mistral', 'mistral-large-latest', { thinking: { type: 'disabled' } }, {}],
    ['mistral', 'mistral-large-latest', { reasoning_effort: 'high' }, { reasoning_effort: 'high' }],
    ['openai', 'gpt-5.5', { thinking: { type: 'enabled' } }, { reasoning_effort: 'medium' }],
    ['openai', 'gpt-5.6-mini', { reasoning_effort: 'minimal' }, { reasoning_effort: 'low' }],
    ['openai', 'gpt-4o', { reasoning_effort: 'none' }, {}],
    ['openai', 'gpt-5', { reasoning: { max_tokens: 16_384 } }, { reasoning_effort: 'high' }],
    ['openai', 'gpt-5', { reasoning: { max_tokens: 16_383 } }, { reasoning_effort: 'medium' }],
    ['groq', 'qwen/qwen3-32b', { reasoning_effort: 'medium' }, { reasoning_effort: 'default' }],
    ['groq', 'openai/gpt-oss-20b', { reasoning_effort: 'xhigh' }, { reasoning_effort: 'high' }],
    ['cerebras', 'm', { thinking: { type: 'enabled', budget_tokens: 2048 } }, { reasoning_effort: 'low' }],
    ['openrouter', 'm', { reasoning: { effort: 'high' } }, { reasoning: { effort: 'high' } }],
    ['moonshot', 'kimi-k3', { reasoning_effort: 'medium' }, { reasoning_effort: 'high' }],
    ['vllm', 'm', { thinking: { type: 'enabled' } }, { thinking: { type: 'enabled' } }],
    ['openai', 'gpt-5', { thinking: 'yes' }, { thinking: 'yes' }],
  ])('Q1 %s, %s, effort %j: sent as %j', (provider, model, body, sent) => {
    expect(send(provider, { model, ...body })).toEqual({ model, ...sent });
  });

  test('Q1 legacy functions at a provider that has none: become tools, their messages too', () => {
    const body = {
      functions: [{ name: 'f' }],
      function_call: { name: 'f' },
      messages: [
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: '1' },
      ],
    };
    const sent = send('groq', body);
    expect(sent).toMatchObject({
      tools: [{ type: 'function', function: { name: 'f' } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      messages: [
        { role: 'assistant', tool_calls: [{ type: 'function' }] },
        { role: 'tool', content: '1' },
      ],
    });
    const [assistant, tool] = JSON.parse(JSON.stringify(sent.messages));
    expect(tool.tool_call_id).toBe(assistant.tool_calls[0].id);
    expect(JSON.stringify(sent)).not.toContain('function_call"');
    expect(send('openai', body)).toMatchObject({ functions: [{ name: 'f' }], function_call: { name: 'f' } });
  });
});

describe('Q4 what equals its absence', () => {
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

  test.each(ALL)('Q4 %s: nulls at the top are dropped in silence', (provider) => {
    const rewritten = rewrite(provider, { model: 'm', stop: null, tool_choice: null, user: null });
    expect(rewritten).toEqual({ kind: 'body', body: { model: 'm' }, dropped: [], changed: [] });
  });

  test.each(['mistral', 'groq', 'cerebras', 'xai', 'gemini', 'deepseek'])(
    "Q4 %s: OpenAI's defaults of fields that it refuses are dropped in silence",
    (provider) => {
      const rewritten = rewrite(provider, DEFAULTS);
      expect(rewritten).toMatchObject({ kind: 'body', dropped: [], changed: [] });
    },
  );

  test('Q4 Mistral: of all defaults only those that it has go up', () => {
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

describe('Q5 what is about the request', () => {
  const ABOUT = { user: 'u', store: true, safety_identifier: 's', verbosity: 'low', metadata: { a: 'b' } };

  test.each<[provider: string, dropped: readonly string[]]>([
    ['mistral', ['user', 'store', 'safety_identifier', 'verbosity']],
    ['groq', ['store', 'safety_identifier', 'verbosity', 'metadata']],
    ['cerebras', ['store', 'safety_identifier', 'verbosity', 'metadata']],
    ['gemini', ['store', 'safety_identifier', 'verbosity', 'metadata']],
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

  test('Q8 refuse: what would be dropped is refused by name', () => {
    expect(rewrite('mistral', { user: 'u' }, 'refuse')).toMatchObject({
      kind: 'error',
      error: { status: 400, code: 'unsupported_parameter', param: 'user' },
    });
    expect(rewrite('mistral', { store: false }, 'refuse')).toMatchObject({ kind: 'body', body: {} });
    expect(rewrite('deepseek', { user: 'u' }, 'refuse')).toMatchObject({ kind: 'body', body: { user: 'u' } });
  });
});

describe('Q6 what changes the answer', () => {
  const CHANGING = {
    n: 2,
    logprobs: true,
    top_logprobs: 2,
    logit_bias: { '50256': -100 },
    stop: ['x'],
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: {} } },
    modalities: ['text', 'audio'],
    audio: { voice: 'alloy', format: 'wav' },
  };

  test.each(['deepseek', 'mistral', 'openai', 'groq', 'gemini', 'openrouter', 'tolerant'])(
    'Q6 %s: sent on, for the provider itself to judge',
    (provider) => {
      expect(rewrite(provider, CHANGING)).toEqual({ kind: 'body', body: CHANGING, dropped: [], changed: [] });
    },
  );

  test('Q8 drop: what the provider refuses is dropped and reported, what it takes is sent', () => {
    const rewritten = rewrite('mistral', CHANGING, 'drop');
    const { n, stop, response_format, audio } = CHANGING;
    expect(rewritten).toEqual({
      kind: 'body',
      body: { n, stop, response_format, audio },
      dropped: ['logprobs', 'top_logprobs', 'logit_bias', 'modalities'],
      changed: [],
    });
  });

  test.each<[provider: string, body: JsonObject, param: string]>([
    ['deepseek', { presence_penalty: 0.5 }, 'presence_penalty'],
    ['deepseek', { frequency_penalty: -1, thinking: { type: 'enabled' } }, 'frequency_penalty'],
    ['cerebras', { logit_bias: { '1': 1 } }, 'logit_bias'],
    ['xai', { logprobs: true }, 'logprobs'],
  ])(
    'Q6 %s would ignore %j: 400 unsupported_parameter, with drop it is dropped and reported',
    (provider, body, param) => {
      const refused = rewrite(provider, body);
      expect(refused).toMatchObject({
        kind: 'error',
        error: { status: 400, code: 'unsupported_parameter', param },
      });
      expect(JSON.stringify(refused)).toContain('x-weir-unsupported: drop');
      expect(rewrite(provider, body, 'drop')).toMatchObject({ kind: 'body', dropped: [param] });
    },
  );

  test('Q6 DeepSeek, penalties with thinking turned off: sent, as they work there', () => {
    const body = { presence_penalty: 0.5, thinking: { type: 'disabled' } };
    expect(send('deepseek', body)).toEqual(body);
    expect(send('deepseek', { model: 'deepseek-chat', presence_penalty: 0.5 })).toHaveProperty(
      'presence_penalty',
    );
  });

  test.each<[body: JsonObject, changed: readonly string[]]>([
    [{ tool_choice: 'required' }, ['thinking']],
    [{ tool_choice: FORCED }, ['thinking']],
    [{ tool_choice: 'auto' }, []],
    [{ tool_choice: 'none' }, []],
    [{ tool_choice: 'required', thinking: { type: 'enabled' } }, []],
    [{ tool_choice: 'required', reasoning_effort: 'high' }, []],
    [{ tool_choice: 'required', thinking: { type: 'disabled' } }, []],
    [{ tool_choice: 'required', reasoning_effort: 'none' }, []],
  ])('Q6 DeepSeek, %j: changed is %j', (body, changed) => {
    const rewritten = rewrite('deepseek', { tools: [TOOL], ...body });
    expect(rewritten).toMatchObject({ kind: 'body', changed });
    if (changed.length > 0) expect(rewritten).toMatchObject({ body: { thinking: { type: 'disabled' } } });
  });
});

describe('Q7 what Weir does not know', () => {
  test.each(ALL)('Q7 %s: sent on as it is, and the given body is not touched', (provider) => {
    const body = { model: 'm', venice_parameters: { a: [1, { b: null }] }, guardrails: [], temperature: 0 };
    const before = structuredClone(body);
    expect(send(provider, body)).toEqual(before);
    expect(body).toEqual(before);
  });
});

describe('U4 asking for usage', () => {
  const USAGE = { stream_options: { include_usage: true } };

  test.each(['openai', 'deepseek', 'xerotier', 'groq', 'cerebras', 'xai', 'openrouter', 'tolerant'])(
    'U4 %s: asked for in streams, whatever the client sent, and its other options stay',
    (provider) => {
      expect(send(provider, { stream: true })).toEqual({ stream: true, ...USAGE });
      const options = { include_usage: false, include_obfuscation: false };
      expect(send(provider, { stream: true, stream_options: options }).stream_options).toEqual({
        include_usage: true,
        include_obfuscation: false,
      });
      expect(send(provider, { stream: false, ...USAGE })).toEqual({ stream: false });
      expect(send(provider, USAGE)).toEqual({});
    },
  );

  test.each([
    ['mistral', 'chat'],
    ['mistral', 'fim'],
    ['mistral', 'agents'],
    ['codestral', 'fim'],
    ['opentoken', 'chat'],
  ] as const)(
    'U4 Q4 %s, %s: usage comes unasked, and the option is dropped in silence',
    (provider, route) => {
      const rewritten = rewrite(provider, { stream: true, ...USAGE }, 'refuse', route);
      expect(rewritten).toEqual({ kind: 'body', body: { stream: true }, dropped: [], changed: [] });
    },
  );
});

describe('fill-in-the-middle and agents at Mistral', () => {
  test('a prompt of one text in a list: becomes the text; more than one is refused with what to do', () => {
    expect(send('mistral', { prompt: ['a'] }, 'fim')).toEqual({ prompt: 'a' });
    expect(rewrite('mistral', { prompt: ['a', 'b'] }, 'auto', 'completions')).toMatchObject({
      kind: 'error',
      error: { code: 'unsupported_parameter', param: 'prompt' },
    });
  });

  test('defaults of legacy completions: dropped; what changes the answer is sent on', () => {
    const body = { prompt: 'a', suffix: 'b', echo: false, best_of: 1, n: 1, presence_penalty: 0, user: 'u' };
    expect(rewrite('mistral', body, 'auto', 'completions')).toEqual({
      kind: 'body',
      body: { prompt: 'a', suffix: 'b' },
      dropped: ['user'],
      changed: [],
    });
    expect(send('mistral', { prompt: 'a', n: 2 }, 'fim')).toEqual({ prompt: 'a', n: 2 });
  });

  test('agents: the model is left out, because the agent has its own', () => {
    expect(send('mistral', { model: 'm', agent_id: 'a' }, 'agents')).toEqual({ agent_id: 'a' });
  });
});

describe('paths', () => {
  test('DeepSeek: beta for a message to continue and for fill-in-the-middle', () => {
    const { chat, fim, completions } = providerNamed('deepseek').endpoints;
    expect(chat?.path({ messages: [{ role: 'user' }] })).toBe('/chat/completions');
    expect(chat?.path({ messages: [{ role: 'assistant', prefix: true }] })).toBe('/beta/chat/completions');
    expect(chat?.path({ messages: [{ role: 'assistant', prefix: 'yes' }] })).toBe('/chat/completions');
    expect(chat?.path({})).toBe('/chat/completions');
    expect(fim?.path({})).toBe('/beta/completions');
    expect(completions?.path({})).toBe('/beta/completions');
  });

  test('Mistral: legacy completions go to fill-in-the-middle, and Codestral has no agents', () => {
    expect(providerNamed('mistral').endpoints.completions?.path({})).toBe('/fim/completions');
    expect(providerNamed('mistral').endpoints.agents?.path({})).toBe('/agents/completions');
    expect(providerNamed('codestral').endpoints.fim?.path({})).toBe('/fim/completions');
    expect(providerNamed('codestral').endpoints.agents).toBeUndefined();
  });
});

describe("P5 the cost asked for in OpenRouter's words", () => {
  const ASKED = { usage: { include: true } };

  test.each(ALL.filter((id) => id !== 'openrouter'))(
    'P5 %s: does not get the word, and nothing is reported',
    (id) => {
      for (const usage of [{ include: true }, { include: false }]) {
        expect(rewrite(id, { usage }, 'refuse')).toMatchObject({ body: {}, dropped: [], changed: [] });
        expect(send(id, { usage })).toEqual({});
      }
    },
  );

  test('P5 OpenRouter: gets it', () => {
    expect(send('openrouter', ASKED)).toEqual(ASKED);
  });

  test('P5 Q7 another form of the field: is sent as it is', () => {
    for (const usage of [{ tokens: 5 }, { include: 'yes' }, true])
      expect(send('openai', { usage })).toEqual({ usage });
  });
});
