/** Agent loops of real clients for the end-to-end tests: a task of five steps with two tools. */
import { createDeepSeek } from '@ai-sdk/deepseek';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import {
  generateText,
  jsonSchema,
  type LanguageModel,
  type ModelMessage,
  stepCountIs,
  streamText,
  tool,
} from 'ai';
import OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';

/** The simulator's models call tools in this many turns, two in the first, and then write text. */
export const STEPS = 5;
export const CALLS = STEPS + 1;
const TASK = `steps:${STEPS} How high is the river, and what will it do?`;

const CITY = { type: 'object' as const, properties: { city: { type: 'string' as const } } };
const NAMES = ['gauge', 'forecast'] as const;

export interface LoopResult {
  /** The text after the last step. */
  readonly text: string;
  /** The number of tool results. */
  readonly calls: number;
  /** The conversation in OpenAI's form, to continue it elsewhere. */
  readonly messages: readonly ChatCompletionMessageParam[];
}

export interface Thoughtful {
  /** The number of steps with reasoning. */
  readonly thoughts: number;
}

/** The `openai` SDK's tool runner, which sends back only OpenAI's fields: no reasoning, no signature. */
export async function runWithOpenAI(
  baseURL: string,
  model: string,
  history: readonly ChatCompletionMessageParam[] = [],
  { names = NAMES, isStreamed = true }: { names?: readonly string[]; isStreamed?: boolean } = {},
): Promise<LoopResult> {
  const client = new OpenAI({ baseURL, apiKey: 'unused', maxRetries: 0 });
  let calls = 0;
  const options = {
    model,
    messages: [...history, { role: 'user' as const, content: TASK }],
    tools: names.map((name) => ({
      type: 'function' as const,
      function: {
        name,
        description: name,
        parameters: CITY,
        parse: JSON.parse,
        function: () => {
          calls++;
          return `${name}: 312 cm`;
        },
      },
    })),
  };
  const limits = { maxChatCompletions: STEPS + 3 };
  const { completions } = client.chat;
  const runner = isStreamed
    ? completions.runTools({ ...options, stream: true }, limits)
    : completions.runTools(options, limits);
  const text = (await runner.finalContent()) ?? '';
  return { text, calls, messages: runner.messages };
}

/**
 * The `openai` SDK's stream helper, whose final message is sent back unchanged. Of fields that the SDK does not know, such as reasoning and
 * its details, the message has only the last fragment.
 */
export async function runWithStreamHelper(baseURL: string, model: string): Promise<LoopResult> {
  const client = new OpenAI({ baseURL, apiKey: 'unused', maxRetries: 0 });
  const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: TASK }];
  const tools = NAMES.map((name) => ({ type: 'function' as const, function: { name, parameters: CITY } }));
  const effort = THOUGHTLESS.test(model) ? {} : { reasoning_effort: 'high' as const };
  for (let calls = 0, step = 0; step <= STEPS + 2; step++) {
    const stream = client.chat.completions.stream({ model, messages, tools, ...effort });
    const message = (await stream.finalChatCompletion()).choices[0]?.message;
    const toolCalls = message?.tool_calls ?? [];
    if (message === undefined || toolCalls.length === 0) {
      return { text: message?.content ?? '', calls, messages };
    }
    messages.push(message);
    for (const { id } of toolCalls) messages.push({ role: 'tool', tool_call_id: id, content: '312 cm' });
    calls += toolCalls.length;
  }
  throw new Error('The loop did not end');
}

const THOUGHTLESS = /gpt-4o|codestral/;

/**
 * A manual loop: each message is sent back complete. Stream fragments are joined as OpenRouter documents it.
 */
export async function runByHand(
  baseURL: string,
  model: string,
  isStreamed: boolean,
  history: readonly ChatCompletionMessageParam[] = [],
): Promise<LoopResult & Thoughtful> {
  const client = new OpenAI({ baseURL, apiKey: 'unused', maxRetries: 0 });
  const messages: ChatCompletionMessageParam[] = [...history, { role: 'user', content: TASK }];
  const tools = NAMES.map((name) => ({ type: 'function' as const, function: { name, parameters: CITY } }));
  let calls = 0;
  let thoughts = 0;
  for (let step = 0; step <= STEPS + 2; step++) {
    // Some models reason and sign only on request; others reject the request for it.
    const effort = THOUGHTLESS.test(model) ? {} : { reasoning_effort: 'high' as const };
    const body = { model, messages, tools, ...effort };
    const message = isStreamed
      ? await joinStream(await client.chat.completions.create({ ...body, stream: true }))
      : (await client.chat.completions.create(body)).choices[0]?.message;
    const toolCalls = message?.tool_calls ?? [];
    if (message === undefined || toolCalls.length === 0)
      return { text: message?.content ?? '', calls, messages, thoughts };
    if (isThoughtful(message)) thoughts++;
    messages.push(message);
    for (const { id } of toolCalls) messages.push({ role: 'tool', tool_call_id: id, content: '312 cm' });
    calls += toolCalls.length;
  }
  throw new Error('The loop did not end');
}

/** Fields that OpenAI does not have. */
interface Reasoning {
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly unknown[];
}

function isThoughtful({
  reasoning_content,
  reasoning_details = [],
}: OpenAI.ChatCompletionMessage & Reasoning): boolean {
  return Boolean(reasoning_content) || reasoning_details.length > 0;
}

type Message = OpenAI.ChatCompletionMessage & { reasoning_content: string; reasoning_details: unknown[] };

async function joinStream(stream: AsyncIterable<OpenAI.ChatCompletionChunk>): Promise<Message> {
  const message: Message = {
    role: 'assistant',
    content: '',
    refusal: null,
    tool_calls: [],
    reasoning_content: '',
    reasoning_details: [],
  };
  const toolCalls: FunctionCall[] = [];
  for await (const chunk of stream) {
    const delta: Delta = chunk.choices[0]?.delta ?? {};
    message.content += delta.content ?? '';
    message.reasoning_content += delta.reasoning_content ?? '';
    message.reasoning_details.push(...(delta.reasoning_details ?? []));
    for (const { index, function: fn, ...rest } of delta.tool_calls ?? []) {
      const call = toolCalls[index] ?? { id: '', type: 'function', function: { name: '', arguments: '' } };
      toolCalls[index] = Object.assign(call, rest);
      call.function.name += fn?.name ?? '';
      call.function.arguments += fn?.arguments ?? '';
    }
  }
  return { ...message, tool_calls: toolCalls };
}

type Delta = Partial<OpenAI.ChatCompletionChunk.Choice.Delta> & Reasoning;
interface FunctionCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export type AiProvider = 'openai-compatible' | 'deepseek' | 'openai.chat';

type AiSettings = { readonly baseURL: string; readonly apiKey: string };

const AI_MODELS: Readonly<Record<AiProvider, (settings: AiSettings, model: string) => LanguageModel>> = {
  'openai-compatible': (settings, model) =>
    createOpenAICompatible({ ...settings, name: 'weir', includeUsage: true })(model),
  deepseek: (settings, model) => createDeepSeek(settings)(model),
  'openai.chat': (settings, model) => createOpenAI(settings).chat(model),
};

/** The AI SDK's loop, streaming or non-streaming. */
export async function runWithAiSdk(
  baseURL: string,
  model: string,
  provider: AiProvider,
  isStreamed: boolean,
  history: readonly ModelMessage[] = [],
): Promise<{ readonly text: string; readonly calls: number; readonly messages: readonly ModelMessage[] }> {
  let calls = 0;
  const execute = async () => {
    calls++;
    return '312 cm';
  };
  const settings = { baseURL, apiKey: 'unused' };
  const options = {
    model: AI_MODELS[provider](settings, model),
    messages: [...history, { role: 'user' as const, content: TASK }],
    tools: Object.fromEntries(
      NAMES.map((name) => [name, tool({ description: name, inputSchema: jsonSchema(CITY), execute })]),
    ),
    stopWhen: stepCountIs(STEPS + 3),
    maxRetries: 0,
  };
  const { text, messages } = await askAiSdk(options, isStreamed);
  return { text, calls, messages: [...options.messages, ...messages] };
}

/** Runs the AI SDK's loop to its end, streaming or non-streaming, and throws the error that a stream reports. */
export async function askAiSdk(
  options: Parameters<typeof generateText>[0] & Parameters<typeof streamText>[0],
  isStreamed: boolean,
): Promise<{ readonly text: string; readonly messages: readonly ModelMessage[] }> {
  if (!isStreamed) {
    const { text, response } = await generateText(options);
    return { text, messages: response.messages };
  }
  let failure: unknown;
  const result = streamText({
    ...options,
    onError: ({ error }) => {
      failure = error;
    },
  });
  const text = await result.text;
  if (failure !== undefined) throw failure;
  return { text, messages: (await result.response).messages };
}
