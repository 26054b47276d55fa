/** Tool loops of five steps for the tests of Messages, written with Anthropic's SDK and with the AI SDK. */

import { createAnthropic } from '@ai-sdk/anthropic';
import type Anthropic from '@anthropic-ai/sdk';
import { jsonSchema, stepCountIs, tool } from 'ai';
import { askAiSdk, type Thoughtful } from './agent-loops.ts';

/** The simulator's models call tools in this many turns, two in the first, and then answer. */
export const STEPS = 5;
export const CALLS = STEPS + 1;
const TASK = `steps:${STEPS} How high is the river, and what will it do?`;
const NAMES = ['gauge', 'forecast'] as const;
const CITY = { type: 'object' as const, properties: { city: { type: 'string' as const } } };
const MAX_TOKENS = 8192;
/** Models with adaptive thinking, which refuse a budget. */
const ADAPTIVE = ['anthropic/claude-sonnet-5', 'anthropic/claude-opus-5-5'];

export interface LoopResult {
  /** The text after the last step. */
  readonly text: string;
  /** The number of tool results. */
  readonly calls: number;
  /** The last response, as the client received it. */
  readonly last: Anthropic.Message | null;
}

/** A manual loop with the SDK: each message goes back complete, with its thinking. */
export async function runByHand(
  client: Anthropic,
  model: string,
  isStreamed: boolean,
): Promise<LoopResult & Thoughtful> {
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: TASK }];
  const tools = NAMES.map((name) => ({ name, input_schema: CITY }));
  let calls = 0;
  let thoughts = 0;
  for (let step = 0; step <= STEPS + 2; step++) {
    const thinking = ADAPTIVE.includes(model)
      ? { type: 'adaptive' as const }
      : { type: 'enabled' as const, budget_tokens: 4096 };
    const body = { model, messages, tools, max_tokens: MAX_TOKENS, thinking };
    const message = isStreamed
      ? await client.messages.stream(body).finalMessage()
      : await client.messages.create(body);
    if (message.stop_reason !== 'tool_use') return { text: textOf(message), calls, last: message, thoughts };
    if (message.content.some(({ type }) => type === 'thinking')) thoughts++;
    messages.push({ role: 'assistant', content: message.content });
    const toolUses = message.content.filter((block) => block.type === 'tool_use');
    calls += toolUses.length;
    messages.push({
      role: 'user',
      content: toolUses.map(({ id }) => ({
        type: 'tool_result' as const,
        tool_use_id: id,
        content: '312 cm',
      })),
    });
  }
  throw new Error('The loop did not end');
}

function textOf({ content }: Anthropic.Message): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

/** The SDK's own tool runner. */
export async function runWithToolRunner(
  client: Anthropic,
  model: string,
  isStreamed = true,
): Promise<LoopResult> {
  let calls = 0;
  const options = {
    model,
    max_tokens: MAX_TOKENS,
    messages: [{ role: 'user' as const, content: TASK }],
    max_iterations: STEPS + 3,
    tools: NAMES.map((name) => ({
      type: 'custom' as const,
      name,
      description: name,
      input_schema: CITY,
      parse: (input: unknown) => input,
      run: () => {
        calls++;
        return `${name}: 312 cm`;
      },
    })),
  };
  let text = '';
  const read = ({ content }: Pick<Anthropic.Beta.BetaMessage, 'content'>) => {
    text = content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  };
  if (isStreamed) {
    const runner = client.beta.messages.toolRunner({ ...options, stream: true });
    for await (const stream of runner) read(await stream.finalMessage());
  } else {
    for await (const message of client.beta.messages.toolRunner(options)) read(message);
  }
  return { text, calls, last: null };
}

/** The AI SDK's loop, streamed or not. */
export async function runWithAiSdk(
  baseURL: string,
  apiKey: string,
  model: string,
  isStreamed: boolean,
): Promise<LoopResult> {
  let calls = 0;
  const execute = async () => {
    calls++;
    return '312 cm';
  };
  const options = {
    model: createAnthropic({ baseURL, apiKey })(model),
    messages: [{ role: 'user' as const, content: TASK }],
    tools: Object.fromEntries(
      NAMES.map((name) => [name, tool({ description: name, inputSchema: jsonSchema(CITY), execute })]),
    ),
    stopWhen: stepCountIs(STEPS + 3),
    maxRetries: 0,
    maxOutputTokens: MAX_TOKENS,
    providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 4096 } } },
  };
  return { text: (await askAiSdk(options, isStreamed)).text, calls, last: null };
}
