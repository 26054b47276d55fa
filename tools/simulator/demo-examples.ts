/** The requests that the demo shows, one for each provider and quirk, and the expected results. */
import type { JsonObject } from './json.ts';

export interface Example {
  readonly title: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: JsonObject;
  readonly expected: Expected;
}

/** The token counts that the scene files document: words of the prompt, pieces of the output. */
interface Expected {
  readonly finish: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly parts: readonly ('reasoning' | 'text' | 'refusal' | 'call' | 'event')[];
}

const USAGE = { stream: true, stream_options: { include_usage: true } };

function chat(model: string, question: string, more: JsonObject = {}): JsonObject {
  return { model, messages: [{ role: 'user', content: question }], ...USAGE, ...more };
}

function tool(name: string, parameter: string): JsonObject {
  const parameters = { type: 'object', properties: { [parameter]: { type: 'string' } } };
  return { type: 'function', function: { name, parameters } };
}

const CHAT = '/v1/chat/completions';

export const examples: readonly Example[] = [
  {
    title: 'DeepSeek: reasoning, then text',
    path: CHAT,
    body: chat('deepseek/deepseek-flash', 'How does a lock empty?'),
    expected: { finish: 'stop', promptTokens: 5, completionTokens: 19, parts: ['reasoning', 'text'] },
  },
  {
    title: 'DeepSeek: FIM as text completions',
    path: '/v1/completions',
    body: {
      model: 'deepseek/deepseek-flash',
      prompt: 'def fib(n):\n',
      suffix: '\n    return previous + fib(n - 2)',
      ...USAGE,
    },
    expected: { finish: 'stop', promptTokens: 8, completionTokens: 11, parts: ['text'] },
  },
  {
    title:
      'Mistral: a tool call. Weir translates OpenAI’s parameters, which Mistral rejects, and adds the missing index',
    path: CHAT,
    body: chat('mistral/mistral-small-latest', 'How high is the river at Zürich?', {
      tools: [tool('gauge', 'city')],
      tool_choice: 'required',
      seed: 7,
      max_completion_tokens: 400,
    }),
    expected: { finish: 'tool_calls', promptTokens: 7, completionTokens: 4, parts: ['call'] },
  },
  {
    title: 'Magistral: thinking parts become reasoning_content',
    path: CHAT,
    body: chat('mistral/magistral-medium-latest', 'Two locks: how long?'),
    expected: { finish: 'stop', promptTokens: 4, completionTokens: 15, parts: ['reasoning', 'text'] },
  },
  {
    title: 'Codestral: FIM as chat chunks',
    path: '/v1/fim/completions',
    body: { model: 'codestral/codestral-latest', prompt: 'def mean(values):\n', suffix: '', ...USAGE },
    expected: { finish: 'stop', promptTokens: 2, completionTokens: 7, parts: ['text'] },
  },
  {
    title: 'OpenToken: plain chunks',
    path: CHAT,
    body: chat('opentoken/google/gemini-3-flash', 'What is in flight?'),
    expected: { finish: 'stop', promptTokens: 4, completionTokens: 10, parts: ['text'] },
  },
  {
    title: 'Xerotier: vendor events are forwarded, because the request enables them',
    path: CHAT,
    headers: { 'x-weir-vendor-events': 'pass' },
    body: chat('xerotier/llama-3.1-8b-research', 'Who keeps a weir?'),
    expected: { finish: 'stop', promptTokens: 4, completionTokens: 13, parts: ['event', 'text'] },
  },
  {
    title: 'OpenAI: two tool calls in fragments',
    path: CHAT,
    body: chat('openai/gpt-4o-mini', 'Level and forecast?', {
      tools: [tool('gauge', 'city'), tool('forecast', 'region')],
    }),
    expected: { finish: 'tool_calls', promptTokens: 3, completionTokens: 8, parts: ['call'] },
  },
  {
    title: 'OpenAI through Responses: its newest models refuse tools in Chat Completions',
    path: CHAT,
    body: chat('openai/gpt-6.1-terra', 'Level and forecast?', {
      tools: [tool('gauge', 'city'), tool('forecast', 'region')],
    }),
    expected: { finish: 'tool_calls', promptTokens: 3, completionTokens: 37, parts: ['reasoning', 'call'] },
  },
  {
    title: 'Anthropic: Messages events become chunks, thinking becomes reasoning_content',
    path: CHAT,
    body: chat('anthropic/claude-haiku-4-5', 'How does a lock fill?', { reasoning_effort: 'low' }),
    expected: { finish: 'stop', promptTokens: 5, completionTokens: 14, parts: ['reasoning', 'text'] },
  },
  {
    title:
      'Gemini (native API): thoughts become reasoning_content, and the finish comes at the end of the stream',
    path: CHAT,
    body: chat('gemini/gemini-3-flash-preview', 'What does a weir do?'),
    expected: { finish: 'stop', promptTokens: 5, completionTokens: 14, parts: ['reasoning', 'text'] },
  },
  {
    title: 'A model that no table knows refuses the temperature: Weir removes it and tries once more',
    path: CHAT,
    body: chat('unknown/refuses-temperature', 'Who knocks?', { temperature: 0.2 }),
    expected: { finish: 'stop', promptTokens: 2, completionTokens: 7, parts: ['text'] },
  },
  {
    title: 'A configured provider like Groq: reasoning becomes reasoning_content, x_groq is dropped',
    path: CHAT,
    body: chat('compatible/openai/gpt-oss-20b', 'Shortest path?'),
    expected: { finish: 'stop', promptTokens: 2, completionTokens: 14, parts: ['reasoning', 'text'] },
  },
];
