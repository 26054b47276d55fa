/** Five steps of an agent with two tools over Responses, in the loops of real clients. */
import { createOpenAI } from '@ai-sdk/openai';
import { Agent, tool as agentTool, OpenAIProvider, Runner, setTracingDisabled } from '@openai/agents';
import { jsonSchema, stepCountIs, tool } from 'ai';
import OpenAI from 'openai';
import type {
  ResponseFunctionToolCall,
  ResponseInputItem,
  ResponseOutputItem,
  ResponseOutputMessage,
  ResponseReasoningItem,
} from 'openai/resources/responses/responses';
import { askAiSdk, STEPS, type Thoughtful } from '../agent-loops.ts';

const TASK = `steps:${STEPS} How high is the river, and what will it do?`;
const CITY = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: [],
  additionalProperties: true as const,
};
const NAMES = ['gauge', 'forecast'] as const;
const RESULT = '312 cm';
const MAX_TURNS = STEPS + 3;

/** They refuse an effort, and encrypted reasoning. */
const WITHOUT_REASONING = /gpt-4o/;

/** Its warnings are not tested here. */
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

export interface LoopResult {
  /** The text after the last step. */
  readonly text: string;
  /** The results of the tools. */
  readonly calls: number;
}

/** The output items of a gateway without tools of its own. */
type OurItem = ResponseFunctionToolCall | ResponseOutputMessage | ResponseReasoningItem;

export function isOurs(item: ResponseOutputItem): item is OurItem {
  return item.type === 'function_call' || item.type === 'message' || item.type === 'reasoning';
}

/** OpenAI sends a summary, DeepSeek the text. */
function showsReasoning(item: OpenAI.Responses.ResponseOutputItem): boolean {
  return item.type === 'reasoning' && item.summary.length + (item.content?.length ?? 0) > 0;
}

/** A manual loop with the `openai` SDK: the items of each turn are sent back unchanged. */
export async function runByHand(
  baseURL: string,
  model: string,
  isStreamed: boolean,
): Promise<LoopResult & Thoughtful> {
  const client = new OpenAI({ baseURL, apiKey: 'unused', maxRetries: 0 });
  const items: ResponseInputItem[] = [{ role: 'user', content: TASK }];
  const tools = NAMES.map((name) => ({ type: 'function' as const, name, strict: false, parameters: CITY }));
  let calls = 0;
  let thoughts = 0;
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    // Some models only reason, and sign, on request. Others refuse the request.
    const effort = WITHOUT_REASONING.test(model) ? {} : { reasoning: { effort: 'high' as const } };
    const body = { model, input: items, tools, store: false, ...effort };
    const response = isStreamed
      ? await client.responses.stream(body).finalResponse()
      : await client.responses.create(body);
    const output: OurItem[] = [];
    for (const item of response.output) if (isOurs(item)) output.push(item);
    const called = output.filter((item) => item.type === 'function_call');
    if (called.length === 0) return { text: response.output_text, calls, thoughts };
    if (output.some(showsReasoning)) thoughts++;
    items.push(...output);
    for (const { call_id } of called) items.push({ type: 'function_call_output', call_id, output: RESULT });
    calls += called.length;
  }
  throw new Error('The loop did not end');
}

/** How a loop continues its conversation. */
export interface State {
  readonly apiKey: string;
  /** Whether the gateway keeps the items, which the client then refers to. */
  readonly isStored: boolean;
}

const STATELESS: State = { apiKey: 'unused', isStored: false };

/** `@openai/agents` with its defaults: Responses. */
export async function runWithAgents(
  baseURL: string,
  model: string,
  isStreamed: boolean,
  { apiKey, isStored }: State = STATELESS,
): Promise<LoopResult> {
  setTracingDisabled(true);
  let calls = 0;
  const tools = NAMES.map((name) =>
    agentTool({
      name,
      description: name,
      parameters: CITY,
      strict: false,
      execute: async () => {
        calls++;
        return RESULT;
      },
    }),
  );
  const openAIClient = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient }), tracingDisabled: true });
  const effort = model.includes('/claude-') ? { reasoning: { effort: 'high' as const } } : {};
  const agent = new Agent({
    name: 'warden',
    model,
    tools,
    modelSettings: { ...(isStored ? {} : { store: false }), ...effort },
  });
  // With an earlier response, each turn sends its own items only.
  const earlier = isStored
    ? await openAIClient.responses.create({ model, input: `steps:${STEPS} Hello` })
    : null;
  const options = { maxTurns: MAX_TURNS, ...(earlier === null ? {} : { previousResponseId: earlier.id }) };
  if (!isStreamed) {
    const result = await runner.run(agent, TASK, options);
    return { text: String(result.finalOutput ?? ''), calls };
  }
  const result = await runner.run(agent, TASK, { ...options, stream: true });
  for await (const _ of result.toTextStream());
  await result.completed;
  return { text: String(result.finalOutput ?? ''), calls };
}

/** The AI SDK's OpenAI provider with its defaults. Without `store: false` its second turn refers to stored items. */
export async function runWithAiSdk(
  baseURL: string,
  model: string,
  isStreamed: boolean,
  { apiKey, isStored }: State = STATELESS,
): Promise<LoopResult> {
  let calls = 0;
  const execute = async () => {
    calls++;
    return RESULT;
  };
  const openaiOptions = {
    ...(isStored ? {} : { store: false }),
    ...(isStored || WITHOUT_REASONING.test(model) ? {} : { include: ['reasoning.encrypted_content'] }),
    ...(model.includes('/claude-') ? { reasoningEffort: 'high' } : {}),
  };
  const options = {
    model: createOpenAI({ baseURL, apiKey })(model),
    prompt: TASK,
    tools: Object.fromEntries(
      NAMES.map((name) => [name, tool({ description: name, inputSchema: jsonSchema(CITY), execute })]),
    ),
    stopWhen: stepCountIs(MAX_TURNS),
    maxRetries: 0,
    providerOptions: { openai: openaiOptions },
  };
  return { text: (await askAiSdk(options, isStreamed)).text, calls };
}
