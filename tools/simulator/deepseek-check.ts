/** What DeepSeek rejects (2026-11-21), with its error texts. Each rule names its source. */
import { isObject, type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import { checkResponses } from './responses.ts';
import { type Call, errorType, openaiRefusal, type Refusal } from './scene.ts';
import { bracketed, firstMismatch, type Mismatch, type Shape, types } from './schema.ts';
import { contentText } from './script.ts';
import { tooLong, toolNamesIn, unknownChoice } from './tool-calls.ts';

/** Since 2026-09-10 (news260910). The first accepts images. Both think unless thinking is disabled (guides/thinking_mode). */
const CURRENT: Readonly<Record<string, { readonly parts: readonly string[] }>> = {
  'deepseek-flash': { parts: ['text', 'image_url'] },
  'deepseek-v4-pro': { parts: ['text'] },
};
/** Old names that still work: `deepseek-v4-flash` officially (quick_start/pricing), the others for the seed recordings. */
const SAME_MODEL: Readonly<Record<string, string>> = { 'deepseek-v4-flash': 'deepseek-flash' };
const SEEDS = ['deepseek-chat', 'deepseek-reasoner', 'deepseek-chat-busy'];

export const MODELS: readonly string[] = [...SEEDS, ...Object.keys(CURRENT)];

export function modelOf(call: Call): string {
  return SAME_MODEL[call.model] ?? call.model;
}

export function refusal(status: number, message: string): Refusal {
  // R deepseek--refused-*.json, 2026-07: this code even with the type `authentication_error`.
  const error = { message, type: errorType(status), param: null, code: 'invalid_request_error' };
  return openaiRefusal(status, error);
}

/** `reasoning_effort: "none"` also disables thinking: experientiallabs/experiential#887, 2026-09-10. */
export function thinks(call: Call): boolean {
  const model = modelOf(call);
  if (model === 'deepseek-reasoner') return true;
  if (!(model in CURRENT) || call.operation === 'completions') return false;
  return objectOf(call.body.thinking).type !== 'disabled' && call.body.reasoning_effort !== 'none';
}

export function check(call: Call): Refusal | undefined {
  if (call.operation === 'responses')
    return checkResponses(call, (status, message) => refusal(status, message));
  const mismatch = firstMismatch(call.body, shapeFor(call));
  if (mismatch) return refusal(400, deserializing(mismatch, call.body));
  const model = modelOf(call);
  if (!MODELS.includes(model)) {
    // R deepseek--refused-unknown-model, with the current names.
    const names = Object.keys(CURRENT).reverse().join(' or ');
    return refusal(
      400,
      `The supported API model names are ${names}, but you passed ${textOf(call.body.model)}.`,
    );
  }
  const message = call.operation === 'completions' ? undefined : chatProblem(call);
  if (message !== undefined) return refusal(400, message);
  // llm-as-a-verifier/TurboAgent#7, 2026-08-22.
  if (call.body.stream_options && call.body.stream !== true) {
    return refusal(400, 'stream_options should be set along with stream = true');
  }
  return undefined;
}

const ROLES = ['system', 'user', 'assistant', 'tool', 'latest_reminder'];

/**
 * Unknown fields are ignored at the top level and in messages (pydantic-ai, live 2026-08-06). These are parsed, and
 * rejected if invalid.
 */
function shapeFor(call: Call): Shape {
  if (call.operation === 'completions') return { required: ['prompt'], noLists: ['prompt'] };
  const parts = CURRENT[modelOf(call)]?.parts ?? ['text'];
  const part: Shape = { by: { key: 'type', shapes: Object.fromEntries(parts.map((type) => [type, {}])) } };
  // An assistant without `content`: routatic/proxy#45. `reasoning_details`: bifrost#5177, its error text is unknown.
  const message: Shape = { required: ['content'], refused: ['reasoning_details'] };
  // Only user messages may have lists: R refused-image has its parts there, all other recorded contents are strings.
  const shapes = ROLES.map((role): [string, Shape] => [
    role,
    role === 'user' ? { ...message, inner: { content: part } } : { ...message, noLists: ['content'] },
  ]);
  return {
    required: ['messages'],
    inner: {
      // Role developer: theopenco/llmgateway#3462, 2026-08-07.
      messages: { by: { key: 'role', shapes: Object.fromEntries(shapes) } },
      // Other tools: LiteLLM issue 30722.
      tools: { by: { key: 'type', shapes: { function: {} } } },
      response_format: types({ text: [], json_object: [], json_schema: ['json_schema'] }),
    },
  };
}

/** The error texts of serde: R refused-image and refused-audio, 2026-07. The column is not exact. */
function deserializing(mismatch: Mismatch, body: JsonObject): string {
  const { kind, path, known, value } = mismatch;
  const key = textOf(path.at(-1));
  // The error position of a role is its own; parts and members have that of their message.
  const place = bracketed(path[0] === 'messages' && key !== 'role' ? path.slice(0, 2) : path);
  const at = ` at line 1 column ${JSON.stringify(body).length}`;
  const names = known.map((name) => `\`${name}\``);
  const list = names.length > 2 ? `one of ${names.join(', ')}` : names.join(' or ');
  const problems = {
    extra: `unknown field \`${key}\``,
    missing: `missing field \`${key}\``,
    variant: `unknown variant \`${textOf(value)}\`, expected ${list}`,
    list: 'invalid type: sequence, expected a string',
  };
  const before = 'Failed to deserialize the JSON body into the target type: ';
  return `${before}${place && `${place}: `}${problems[kind]}${at}`;
}

function chatProblem(call: Call): string | undefined {
  const { body } = call;
  const messages = objectsOf(body.messages);
  if (messages.length === 0) return 'Empty input messages';
  const choice = unknownChoice(body.tool_choice);
  // Its documents have OpenAI's three words: api-docs.deepseek.com/api/create-chat-completion (2026-11-21).
  if (choice !== undefined) return `Invalid tool_choice: ${choice}`;
  // mrexodia/ida-pro-mcp#129, 2025-09-06.
  const long = toolNamesIn(body).find(({ name }) => name.length > 64);
  if (long !== undefined) return tooLong(long.name, long.at);
  if (messages.some(isEmptyAnswer)) return 'Invalid assistant message: content or tool_calls must be set';
  if (messages.some((message) => message.prefix === true) && !call.path.includes('/beta/')) {
    return 'The prefix feature is for base_url="https://api.deepseek.com/beta" only';
  }
  // deepseek-ai/DeepSeek-V2#9, 2024-05-14.
  if (body.top_logprobs && body.logprobs !== true) return 'Invalid top_logprobs and logprobs value';
  return formatProblem(body, messages) ?? (thinks(call) ? thinkingProblem(call, messages) : undefined);
}

/** null is valid only with tool calls: deepseek-harness, 2026-08-21. */
function isEmptyAnswer(message: JsonObject): boolean {
  const calls = objectsOf(message.tool_calls).length;
  return message.role === 'assistant' && message.content === null && calls === 0;
}

function formatProblem(body: JsonObject, messages: readonly JsonObject[]): string | undefined {
  const { type } = objectOf(body.response_format);
  // llm-exe/llm-exe#662 2026-07-10, oil-oil/wolfcha#67 2026-09-11.
  if (type === 'json_schema') return 'This response_format type is unavailable now';
  const asksForJson = messages.some((message) => /json/i.test(contentText(message.content)));
  if (type !== 'json_object' || asksForJson) return undefined;
  return "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.";
}

/** The models of the seed recordings accepted a forced tool and did not require reasoning back. */
function thinkingProblem(call: Call, messages: readonly JsonObject[]): string | undefined {
  if (!(modelOf(call) in CURRENT)) return undefined;
  // R deepseek--refused-required-tool-thinking; langchain#40769, 2026-09-22.
  if (isForced(call.body.tool_choice)) return 'Thinking mode does not support this tool_choice';
  if (objectsOf(call.body.tools).length === 0) return undefined;
  // experientiallabs/experiential#887 and #890, 2026-09-10: "" is accepted, the text is not checked.
  const turn = messages.slice(messages.findLastIndex((message) => message.role === 'user') + 1);
  const missing = turn.some(
    (message) => message.role === 'assistant' && typeof message.reasoning_content !== 'string',
  );
  return missing ? 'The `reasoning_content` in the thinking mode must be passed back to the API.' : undefined;
}

function isForced(choice: Json | undefined): boolean {
  return choice === 'required' || isObject(choice);
}
