/** Request bodies within all limits that take the most work for their size. */

/** A body with its client protocol and its provider. */
export interface CostlyBody {
  readonly protocol: 'chat' | 'messages' | 'responses' | 'embeddings';
  readonly provider: 'openai' | 'anthropic' | 'gemini';
  readonly body: () => object;
}

const LONG_INTEGER = '12345678901234567890';
const ASK = { role: 'user', content: 'Hi' };
const MB = 1_000_000;

function times<Item>(count: number, make: (i: number) => Item): Item[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

function named(i: number): object {
  return { type: 'function', function: { name: `f${i}` } };
}

function call(id: string, args = '{}'): object {
  return { id, type: 'function', function: { name: 'f', arguments: args } };
}

function answered(message: object): object[] {
  return [ASK, { role: 'assistant', content: 'x', ...message }, ASK];
}

function result(content: string): object[] {
  return [ASK, { role: 'assistant', tool_calls: [call('c')] }, { role: 'tool', tool_call_id: 'c', content }];
}

function union(levels: number): object {
  let schema: object = { type: 'string' };
  for (let i = 0; i < levels; i++) schema = { anyOf: [{ type: 'string' }], oneOf: [schema] };
  return { type: 'object', properties: { a: schema } };
}

const GOOGLE = { type: 'reasoning.encrypted', data: 's', format: 'google-gemini-v1' };
const LISTS = `{"a":${'['.repeat(4.4 * MB)}${']'.repeat(4.4 * MB)}}`;
const VALUES = `{"a":[${'0,'.repeat(4.4 * MB)}${LONG_INTEGER}]}`;

function chat(provider: CostlyBody['provider'], body: () => object): CostlyBody {
  return { protocol: 'chat', provider, body: () => ({ messages: [ASK], stream: true, ...body() }) };
}

function embeddings(provider: CostlyBody['provider'], input: () => unknown[]): CostlyBody {
  return { protocol: 'embeddings', provider, body: () => ({ input: input() }) };
}

function responses(provider: CostlyBody['provider'], body: () => object): CostlyBody {
  return { protocol: 'responses', provider, body: () => ({ input: 'Hi', stream: true, ...body() }) };
}

export const COSTLY: Readonly<Record<string, CostlyBody>> = {
  'a schema of 27 levels of unions': chat('anthropic', () => ({
    response_format: { type: 'json_schema', json_schema: { name: 's', schema: union(27) } },
  })),
  'a strict tool of 24 levels of unions': chat('anthropic', () => ({
    tools: [{ type: 'function', function: { name: 'f', strict: true, parameters: union(24) } }],
  })),
  '240,000 tokens to embed': embeddings('openai', () => times(240_000, (i) => i % 1000)),
  '120,000 token lists to embed': embeddings('openai', () => times(120_000, (i) => [i % 1000])),
  '60,000 texts to embed': embeddings('gemini', () => times(60_000, () => 'x'.repeat(60))),
  '20,000 tools and 40,000 allowed ones': chat('anthropic', () => ({
    tools: times(20_000, named),
    tool_choice: {
      type: 'allowed_tools',
      allowed_tools: { mode: 'auto', tools: times(30_000, (i) => ({ name: `g${i}` })) },
    },
  })),
  '45,000 reasoning details': chat('anthropic', () => ({
    messages: answered({
      reasoning_details: times(45_000, (i) => ({ type: 'reasoning.text', text: 'x', index: i })),
    }),
  })),
  '30,000 tools of Responses and 30,000 allowed ones': responses('openai', () => ({
    tools: times(25_000, (i) => ({ type: 'function', name: `f${i}` })),
    tool_choice: {
      type: 'allowed_tools',
      mode: 'auto',
      tools: times(25_000, (i) => ({ type: 'function', name: `g${i}` })),
    },
  })),
  '45,000 results of one call': responses('openai', () => ({
    input: times(45_000, () => ({ type: 'function_call_output', call_id: 'c', output: 'x' })),
  })),
  '28,000 details and 45,000 calls': chat('gemini', () => ({
    messages: answered({
      reasoning_details: times(28_000, (i) => ({ ...GOOGLE, id: `d${i}` })),
      tool_calls: times(45_000, (i) => ({ id: `c${i}` })),
    }),
  })),
  '45,000 signatures of one text': chat('gemini', () => ({
    messages: answered({
      content: 'x'.repeat(50_000),
      reasoning_details: times(45_000, () => ({ ...GOOGLE, id: 'weir1:gemini:text-1' })),
    }),
  })),
  'a result of 4.4 million nested lists': chat('gemini', () => ({ messages: result(LISTS) })),
  'a result of 4.4 million values and a long integer': chat('gemini', () => ({ messages: result(VALUES) })),
  'arguments of 4.4 million values and a long integer': chat('anthropic', () => ({
    messages: answered({ tool_calls: [call('c', VALUES)] }),
  })),
  '19,000 unknown keys of a message': chat('gemini', () => ({
    messages: [{ ...ASK, ...Object.fromEntries(times(19_000, (i) => [`k${i}`, 1])) }],
  })),
  // Similar bodies.
  '30,000 results that are truncated': chat('gemini', () => ({
    messages: [
      ASK,
      { role: 'assistant', tool_calls: [call('c')] },
      ...times(30_000, (i) => ({ role: 'tool', tool_call_id: 'c', content: `{"a":${i}` })),
    ],
  })),
  'a token of nested lists': {
    protocol: 'messages',
    provider: 'openai',
    body: () => {
      const lists = `{"detail":{"data":${'['.repeat(3 * MB)}${']'.repeat(3 * MB)}}}`;
      const data = `weir1:anthropic:${Buffer.from(lists).toString('base64url')}`;
      const content = [
        { type: 'redacted_thinking', data },
        { type: 'text', text: 'x' },
      ];
      return { max_tokens: 9, stream: true, messages: [ASK, { role: 'assistant', content }, ASK] };
    },
  },
  '20,000 pieces of one detail, each with a different key': chat('anthropic', () => ({
    messages: answered({
      reasoning_details: times(20_000, (i) => ({
        type: 'reasoning.text',
        index: 0,
        text: 'x',
        [`k${i}`]: 1,
      })),
    }),
  })),
};
