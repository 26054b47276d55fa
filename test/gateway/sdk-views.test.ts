/** What users of the official SDKs see where a provider's response is unusual, in every client protocol, streamed and not. */
import { createDeepSeek } from '@ai-sdk/deepseek';
import { generateText, streamText } from 'ai';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { fetchOf, viewOf } from './sdk-views.ts';
import { type Behavior, DONE, event, json, ROLE, RoutedGateway, type Script, sse } from './upstreams.ts';

const ENV = {
  ANTHROPIC_API_KEY: 'key-of-anthropic',
  ANTHROPIC_BASE_URL: 'https://anthropic',
  PRICES: JSON.stringify([
    {
      provider: 'mistral',
      models: ['a'],
      since: '2026-01-01',
      currency: 'USD',
      input: 10,
      cached_input: 1,
      cache_write: 12,
      output: 100,
    },
  ]),
  // A step with fields is translated, also where the provider speaks the client's protocol.
  ALIASES: JSON.stringify({
    claude: [{ model: 'anthropic/a', set: { temperature: 1 } }],
    chat: [{ model: 'mistral/a' }],
  }),
};
const PROTOCOLS = ['chat', 'messages', 'responses'] as const;
const CASES = PROTOCOLS.flatMap((protocol) => [true, false].map((isStreamed) => ({ protocol, isStreamed })));

/** A message of Claude, streamed or not as it is requested. */
function message(stop_reason: string, text = 'So far'): Script {
  const usage = { input_tokens: 5, output_tokens: 3 };
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'a', stop_sequence: null };
  const events: JsonObject[] = [
    { type: 'message_start', message: { ...head, content: [], stop_reason: null, usage } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 3 } },
    { type: 'message_stop' },
  ];
  return (isStreamed) =>
    isStreamed
      ? sse(...events.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`))
      : json({ ...head, content: [{ type: 'text', text }], stop_reason, usage });
}

/** A completion with these counts, streamed or not as it is requested. */
function counting(usage: JsonObject): Script {
  const choice = { index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' };
  const chunk = `data: ${JSON.stringify({ id: 'up', choices: [], usage })}\n\n`;
  return (isStreamed): Behavior =>
    isStreamed
      ? sse(ROLE, event({ content: 'Hello' }), event({}, 'stop'), chunk, DONE)
      : json({ id: 'up', choices: [choice], usage });
}

describe('C8 a turn that Claude pauses or compacts is not complete', () => {
  const words = { chat: 'length', messages: 'max_tokens', responses: 'max_output_tokens' };
  const cases = CASES.flatMap((one) => ['pause_turn', 'compaction'].map((reason) => ({ ...one, reason })));
  test.each(cases)(
    '$reason in $protocol, streamed: $isStreamed',
    async ({ protocol, isStreamed, reason }) => {
      const gateway = new RoutedGateway({ a: [message(reason)] }, ENV);
      const view = await viewOf(gateway, protocol, isStreamed, { model: 'claude' });
      expect(view).toMatchObject({ text: 'So far', finish: words[protocol] });
      expect(gateway.records).toMatchObject([{ status: 'finished', finish_reason: reason }]);
    },
  );

  test.each([true, false])(
    'in passthrough a client of Messages gets the word, streamed: %j',
    async (isStreamed) => {
      const gateway = new RoutedGateway({ a: [message('pause_turn')] }, ENV);
      const view = await viewOf(gateway, 'messages', isStreamed, { model: 'anthropic/a' });
      expect(view).toMatchObject({ text: 'So far', finish: 'pause_turn' });
    },
  );
});

describe('U3 P4 more cached tokens than the prompt has', () => {
  const sums = (prompt_tokens: number) => ({
    prompt_tokens,
    completion_tokens: 8,
    total_tokens: prompt_tokens + 8,
  });
  const forms: [what: string, usage: JsonObject, shown: object, cost: number][] = [
    [
      'reads above the prompt: 7 tokens as input, 161 as cached',
      { ...sums(7), prompt_tokens_details: { cached_tokens: 161 } },
      { prompt: 7, cached: 7 },
      7 * 10 + 161 + 8 * 100,
    ],
    [
      'the names of DeepSeek and of LiteLLM',
      { ...sums(7), prompt_cache_hit_tokens: 20, prompt_tokens_details: { cache_creation_tokens: 3 } },
      { prompt: 7, cached: 7, written: 0 },
      7 * 10 + 20 + 3 * 12 + 8 * 100,
    ],
    [
      'all of it both read and written',
      { ...sums(10), prompt_tokens_details: { cached_tokens: 9, cache_write_tokens: 9 } },
      { prompt: 10, cached: 9, written: 1 },
      9 + 9 * 12 + 8 * 100,
    ],
  ];
  const cases = CASES.flatMap((one) =>
    forms.map(([what, usage, shown, cost]) => ({ ...one, what, usage, shown, cost })),
  );
  test.each(cases)(
    '$what, in $protocol, streamed: $isStreamed',
    async ({ protocol, isStreamed, usage, shown, cost }) => {
      const gateway = new RoutedGateway({ a: [counting(usage)] }, ENV);
      const view = await viewOf(gateway, protocol, isStreamed, { model: 'chat' });
      expect(view).toMatchObject({ text: 'Hello', ...shown });
      const [record] = gateway.records;
      expect(record).toMatchObject({
        prompt_tokens: usage.prompt_tokens,
        cost_estimated: true,
        estimated: false,
      });
      expect(record?.cost_nanos).toBe(cost * 1000);
      expect((record?.cached_tokens ?? 0) + (record?.cache_write_tokens ?? 0)).toBeLessThanOrEqual(
        record?.prompt_tokens ?? 0,
      );
    },
  );
});

describe('P2 a service tier that the response does not name', () => {
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const rates = { provider: 'own', models: ['a'], since: '2026-01-01', currency: 'USD', input: 1, output: 4 };
  const PRICES = JSON.stringify([rates, { ...rates, input: 2, output: 8, service_tiers: ['priority'] }]);

  test.each([
    ['is sent: the dearer cost, as an upper bound', [], 60_000, true],
    ['is dropped for the server: the default one', ['service_tier'], 30_000, false],
  ])('priority %s, in the record and in the client’s usage', async (_, drop, nano, isUpperBound) => {
    const PROVIDERS = JSON.stringify({ own: { base_url: 'https://own', drop } });
    const gateway = new RoutedGateway({ a: [counting(usage)] }, { PROVIDERS, PRICES });
    const body = { model: 'own/a', service_tier: 'priority', usage: { include: true } };
    const shown: unknown = await (await gateway.ask(body)).json();
    expect(shown).toMatchObject({ usage: { cost: nano / 1e9 } });
    expect(gateway.records).toMatchObject([{ cost_nanos: nano, cost_estimated: isUpperBound }]);
  });
});

describe('U2 usage that a provider reports after the finish, to a client that did not request it', () => {
  const PROVIDERS = JSON.stringify({
    router: { like: 'openrouter', base_url: 'https://router' },
    grok: { like: 'xai', base_url: 'https://grok' },
  });
  const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
  const usageOf = async (model: string, env: JsonObject = {}, headers: Record<string, string> = {}) => {
    const gateway = new RoutedGateway({ a: [counting(usage)] }, { ...ENV, PROVIDERS, ...env });
    const text = await (await gateway.ask({ model, stream: true }, { headers })).text();
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    return [...text.matchAll(/"choices":(\[.*?\])(?:,"usage":(\{.*\}))?\}\n/g)].flatMap(
      ([, choices, sent]) => (sent === undefined ? [] : [[choices, JSON.parse(sent)]]),
    );
  };

  test.each(['router/a', 'grok/a'])('%s: on the finish, which has waited for it', async (model) => {
    expect(await usageOf(model)).toEqual([[expect.stringContaining('"finish_reason":"stop"'), usage]]);
    expect(await usageOf(model, { USAGE_CHUNK: 'always' })).toEqual([['[]', usage]]);
    expect(await usageOf(model, { USAGE_CHUNK: 'on_request' })).toEqual([]);
  });

  test('not at a provider that reports it on request only', async () => {
    expect(await usageOf('openai/a')).toEqual([]);
  });
});

test.each(['mistral/a', 'openai/a', 'anthropic/a'])(
  'search_parameters with the mode off is no search at %s: never sent, never refused',
  async (model) => {
    const script = model === 'anthropic/a' ? message('end_turn') : counting({});
    const gateway = new RoutedGateway({ a: [script] }, ENV);
    const response = await gateway.ask({ model, search_parameters: { mode: 'off' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-weir-dropped') ?? '').not.toContain('search');
    expect(gateway.requests[0]?.body).not.toHaveProperty('search_parameters');
  },
);

describe('a provider’s own names, which its clients read', () => {
  const usage = {
    prompt_tokens: 9,
    completion_tokens: 3,
    total_tokens: 12,
    prompt_tokens_details: { cached_tokens: 4 },
  };
  const think = { reasoning: 'Hm' };
  const thinking: Script = (isStreamed) =>
    isStreamed
      ? sse(
          ROLE,
          event(think),
          event(think),
          event(think),
          event({ content: 'Hello' }),
          event({}, 'stop', { usage }),
          DONE,
        )
      : json({
          choices: [
            { message: { role: 'assistant', content: 'Hello', reasoning: 'HmHmHm' }, finish_reason: 'stop' },
          ],
          usage,
        });
  const PROVIDERS = JSON.stringify({ fast: { like: 'groq', base_url: 'https://fast' } });
  const answer = async (model: string, stream: boolean, agent = 'ai-sdk/groq/4.0.1') => {
    const gateway = new RoutedGateway({ a: [thinking] }, { ...ENV, PROVIDERS });
    return (await gateway.ask({ model, stream }, { headers: { 'user-agent': `ai/7 ${agent}` } })).text();
  };
  const deltas = (text: string, name: string) =>
    [...text.matchAll(new RegExp(`"${name}":"(\\w*)"`, 'g'))].map(([, value]) => value).join('');

  test('Groq: x_groq.usage and delta.reasoning in a stream, message.reasoning without one', async () => {
    const text = await answer('fast/a', true);
    for (const name of ['reasoning_content', 'reasoning']) expect(deltas(text, name)).toBe('HmHmHm');
    const finish = text.split('\n\n').find((frame) => frame.includes('"finish_reason":"stop"')) ?? '';
    const chunk = JSON.parse(finish.slice('data: '.length));
    expect(chunk.usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 3 });
    expect(chunk.x_groq).toEqual({ usage: chunk.usage });
    const { choices } = JSON.parse(await answer('fast/a', false));
    expect(choices[0].message).toMatchObject({ reasoning_content: 'HmHmHm', reasoning: 'HmHmHm' });
  });

  test.each([true, false])(
    'DeepSeek: cached tokens by the AI SDK’s own package, streamed: %j',
    async (isStreamed) => {
      const gateway = new RoutedGateway({ a: [thinking] }, ENV);
      const provider = createDeepSeek({ apiKey: 'x', baseURL: 'http://weir/v1', fetch: fetchOf(gateway) });
      const options = { model: provider('deepseek/a'), prompt: 'Hello', maxRetries: 0 };
      const { inputTokens, cachedInputTokens } = isStreamed
        ? await streamText(options).totalUsage
        : (await generateText(options)).usage;
      expect([inputTokens, cachedInputTokens]).toEqual([9, 4]);
    },
  );

  test.each([true, false])(
    'other providers and other clients: only the canonical names, streamed: %j',
    async (isStreamed) => {
      const text = await answer('mistral/a', isStreamed);
      expect(text).not.toMatch(/x_groq|prompt_cache_hit_tokens|"reasoning"/);
      expect(await answer('fast/a', isStreamed)).not.toContain('prompt_cache_hit_tokens');
      expect(await answer('fast/a', isStreamed, 'OpenAI/JS 7.55.0')).not.toMatch(/x_groq|"reasoning"/);
    },
  );

  test.each([true, false])('clients of other protocols: no such name, streamed: %j', async (stream) => {
    for (const path of ['/v1/messages', '/v1/responses']) {
      const gateway = new RoutedGateway({ a: [thinking] }, { ...ENV, PROVIDERS });
      const body = { model: 'fast/a', max_tokens: 9, input: 'Hi', stream };
      const headers = { 'user-agent': 'ai-sdk/groq/4.0.1' };
      expect(await (await gateway.ask(body, { headers }, path)).text()).not.toContain('x_groq');
    }
  });
});
