/** What passthrough changes because the model would refuse it: thinking, effort and sampling (Q14, Q5). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { json, RoutedGateway } from './upstreams.ts';

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'Look' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 5, output_tokens: 3 },
};
const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 5,
  status: 'completed',
  model: 'm',
  output: [
    { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Look' }] },
  ],
  usage: { input_tokens: 5, output_tokens: 3, total_tokens: 8 },
};

interface Sent {
  readonly status: number;
  readonly body: JsonObject | undefined;
  readonly changed: string | null;
  readonly dropped: string | null;
}

async function send(path: string, address: string, fields: JsonObject, headers = {}): Promise<Sent> {
  const model = address.slice(address.indexOf('/') + 1);
  const ALIASES = {
    'set/claude-opus-4-6': [{ model: 'anthropic/claude-opus-4-6', set: { metadata: {} } }],
    'effort/claude-opus-4-6': [{ model: 'anthropic/claude-opus-4-6', set: { reasoning_effort: 'none' } }],
  };
  const behavior = path === '/v1/messages' ? json(MESSAGE) : json(RESPONSE);
  const gateway = new RoutedGateway(
    { [model]: [behavior] },
    {
      ANTHROPIC_API_KEY: 'key-of-anthropic',
      ANTHROPIC_BASE_URL: 'https://anthropic',
      PROVIDERS: JSON.stringify({
        grok: { base_url: 'https://api.x.ai/v1', api_key: 'GROK_KEY' },
        az: { like: 'anthropic', base_url: 'https://az', api_key: 'GROK_KEY' },
      }),
      GROK_KEY: 'key-of-grok',
      ALIASES: JSON.stringify(ALIASES),
    },
  );
  const response = await gateway.ask({ model: address, ...fields }, { headers }, path);
  await response.text();
  return {
    status: response.status,
    body: gateway.requests[0]?.body,
    changed: response.headers.get('x-weir-changed'),
    dropped: response.headers.get('x-weir-dropped'),
  };
}

describe('Q14 Messages to a server that speaks Messages', () => {
  const off = { max_tokens: 9000, thinking: { type: 'disabled' } };

  test.each<[model: string, sent: JsonObject]>([
    ['glm-5.3', { output_config: { effort: 'low' } }],
    ['glm-6', { output_config: { effort: 'low' } }],
    ['kimi-k3', { output_config: { effort: 'low' } }],
    ['kimi-k2.7-code', {}],
    ['claude-opus-5-5', { output_config: { effort: 'low' } }],
    ['claude-opus-6', { output_config: { effort: 'low' } }],
    ['claude-sonnet-5-5', { thinking: { type: 'between_tools' } }],
  ])('%s: thinking that cannot be off is at its lowest, and is reported', async (model, sent) => {
    const { body, changed } = await send('/v1/messages', `anthropic/${model}`, off);
    expect(changed).toBe('thinking');
    expect(body).toEqual({ model, messages: body?.messages, max_tokens: 9000, ...sent });
  });

  test.each(['glm-5.2', 'glm-4.7', 'kimi-k2.6', 'deepseek-flash', 'claude-sonnet-5', 'minimax-m3'])(
    '%s: "disabled" passes as it came',
    async (model) => {
      const { body, changed } = await send('/v1/messages', `anthropic/${model}`, off);
      expect([body?.thinking, changed]).toEqual([{ type: 'disabled' }, null]);
    },
  );

  test('a budget where thinking is adaptive, and adaptive thinking where it has a budget', async () => {
    const budget = { max_tokens: 40_000, thinking: { type: 'enabled', budget_tokens: 20_000 } };
    const adaptive = await send('/v1/messages', 'anthropic/claude-opus-5', budget);
    expect(adaptive).toMatchObject({
      body: { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'high' } },
      changed: 'thinking',
    });
    const requested = { max_tokens: 40_000, thinking: { type: 'adaptive' } };
    const budgeted = await send('/v1/messages', 'anthropic/claude-haiku-4-5', requested);
    expect(budgeted).toMatchObject({ body: { thinking: { type: 'enabled', budget_tokens: 8192 } } });
    expect(await send('/v1/messages', 'anthropic/claude-opus-4-6', budget)).toMatchObject({
      body: budget,
      changed: null,
    });
  });

  const ADAPTIVE = { type: 'adaptive' };
  const OMITTED = { type: 'adaptive', display: 'omitted' };

  test.each([
    ...['prod-opus', 'Team-Sonnet', 'haiku-eu', 'my-claude', 'us.anthropic.claude-sonnet-5-v1:0'],
    ...['eu.anthropic.claude-opus-5-5-20261001-v2:0', 'claude-opus-4-6@20260201', 'main-deployment'],
  ])('%s, a Claude under another name: adaptive thinking passes as it came', async (model) => {
    const sent = await send('/v1/messages', `anthropic/${model}`, { max_tokens: 9000, thinking: OMITTED });
    expect(sent).toMatchObject({ body: { thinking: OMITTED }, changed: null });
  });

  test('a Claude under a name of AWS or Google is the one that it names', async () => {
    const fields = { max_tokens: 9000, thinking: { type: 'adaptive' } };
    for (const model of ['us.anthropic.claude-haiku-4-5-20251001-v1:0', 'claude-sonnet-4-5@20250929']) {
      const { body, changed } = await send('/v1/messages', `anthropic/${model}`, fields);
      expect([body?.thinking, changed]).toEqual([{ type: 'enabled', budget_tokens: 7976 }, 'thinking']);
    }
  });

  test.each<[address: string, fields: JsonObject, sent: JsonObject]>([
    ['az/claude-opus-4-6', { thinking: ADAPTIVE }, { thinking: ADAPTIVE }],
    ['az/claude-opus-5', { thinking: OMITTED }, { thinking: OMITTED }],
    ['az/my-deployment', { thinking: OMITTED }, { thinking: OMITTED }],
    ['az/kimi-k3', { thinking: ADAPTIVE }, { thinking: ADAPTIVE }],
    [
      'az/claude-opus-5',
      { thinking: OMITTED, output_config: { effort: 'low' } },
      { thinking: OMITTED, output_config: { effort: 'low' } },
    ],
    [
      'az/claude-sonnet-4-5',
      { thinking: { type: 'enabled', budget_tokens: 2000, display: 'omitted' } },
      { thinking: { type: 'enabled', budget_tokens: 2000, display: 'omitted' } },
    ],
    ['set/claude-opus-4-6', { thinking: OMITTED }, { thinking: OMITTED }],
  ])('translated, %s %j: thinking goes on as the client has it', async (address, fields, sent) => {
    const { body, changed } = await send('/v1/messages', address, { max_tokens: 9000, ...fields });
    expect({ thinking: body?.thinking, output_config: body?.output_config }).toEqual({
      output_config: undefined,
      ...sent,
    });
    expect(changed).toBeNull();
  });

  test('translated, where the family has a budget alone: adaptive thinking gets the medium one, and is reported', async () => {
    const fields = { max_tokens: 9000, thinking: ADAPTIVE };
    const { body, changed } = await send('/v1/messages', 'az/claude-haiku-4-5', fields);
    expect([body?.thinking, changed]).toEqual([{ type: 'enabled', budget_tokens: 7976 }, 'thinking']);
  });

  test('an alias that sets an effort replaces the thinking of the client', async () => {
    const fields = { max_tokens: 9000, thinking: ADAPTIVE };
    const { body } = await send('/v1/messages', 'effort/claude-opus-4-6', fields);
    expect(body?.thinking).toEqual({ type: 'disabled' });
  });

  test('an effort that the family does not have becomes the next lower one, beside a format', async () => {
    const format = { type: 'json_schema', schema: {} };
    const fields = { max_tokens: 9, output_config: { effort: 'xhigh', format } };
    expect(await send('/v1/messages', 'anthropic/claude-opus-4-6', fields)).toMatchObject({
      body: { output_config: { effort: 'high', format } },
      changed: 'reasoning_effort',
    });
    expect(await send('/v1/messages', 'anthropic/claude-opus-5', fields)).toMatchObject({
      body: fields,
      changed: null,
    });
  });

  test('an effort where the model has none is dropped and reported', async () => {
    const fields = { max_tokens: 9, output_config: { effort: 'high' } };
    const sent = await send('/v1/messages', 'anthropic/claude-haiku-4-5', fields);
    expect(sent.dropped).toBe('output_config.effort');
    expect(sent.body).not.toHaveProperty('output_config');
    expect(await send('/v1/messages', 'anthropic/claude-opus-4-5', fields)).toMatchObject({ body: fields });
  });

  test('Q5 refused sampling is dropped and reported; with UNSUPPORTED=refuse it is an error', async () => {
    const fields = { max_tokens: 9, temperature: 0.5, top_k: 5 };
    const sent = await send('/v1/messages', 'anthropic/claude-opus-5-5', fields);
    expect(sent.dropped).toBe('temperature, top_k');
    expect(sent.body).not.toHaveProperty('temperature');
    expect(await send('/v1/messages', 'anthropic/claude-sonnet-4-5', fields)).toMatchObject({
      body: fields,
      dropped: null,
    });
    const strict = { 'x-weir-unsupported': 'refuse' };
    expect(await send('/v1/messages', 'anthropic/claude-opus-5-5', fields, strict)).toMatchObject({
      status: 400,
    });
  });
});

describe('Q14 Responses to a provider that speaks Responses', () => {
  const ask = (model: string, fields: JsonObject) => send('/v1/responses', model, { input: 'Hi', ...fields });
  const effort = (word: string) => ({ reasoning: { effort: word, summary: 'auto' } });

  test.each([
    ['grok/grok-4.7', 'none', 'low'],
    ['grok/grok-4.5', 'xhigh', 'high'],
    ['grok/grok-5', 'minimal', 'low'],
    ['openai/gpt-6.2-sol', 'none', 'low'],
    ['openai/gpt-7-sol', 'none', 'low'],
    ['openai/o5', 'max', 'high'],
    ['openai/gpt-5.5', 'max', 'xhigh'],
  ])('%s, effort %s: %s, reported, and the other members stay', async (model, asked, sent) => {
    expect(await ask(model, effort(asked))).toMatchObject({ body: effort(sent), changed: 'reasoning' });
  });

  test('an effort that the model knows, and a model that no table names: unchanged', async () => {
    for (const model of ['openai/gpt-6-sol', 'grok/grok-4.3', 'openai/my-deployment'])
      expect(await ask(model, effort('none'))).toMatchObject({ body: effort('none'), changed: null });
  });

  test('a model that cannot reason: no reasoning and no request for its encrypted form', async () => {
    const include = ['reasoning.encrypted_content', 'message.output_text.logprobs'];
    const { body, dropped } = await ask('openai/gpt-4o', { ...effort('high'), include });
    expect(body).not.toHaveProperty('reasoning');
    expect([body?.include, dropped]).toEqual([['message.output_text.logprobs'], 'reasoning']);
  });

  test('a summary that the model refuses is dropped and reported', async () => {
    const sent = await ask('openai/gpt-5.3-codex-spark', effort('high'));
    expect(sent).toMatchObject({ body: { reasoning: { effort: 'high' } }, dropped: 'reasoning.summary' });
    expect(sent.body?.reasoning).not.toHaveProperty('summary');
  });

  test('Q5 sampling is dropped and reported while the model reasons', async () => {
    expect(await ask('openai/gpt-7-sol', { temperature: 0.2 })).toMatchObject({ dropped: 'temperature' });
    const quiet = { temperature: 0.2, reasoning: { effort: 'none' } };
    expect(await ask('openai/gpt-6-sol', quiet)).toMatchObject({ body: quiet, dropped: null });
  });
});
