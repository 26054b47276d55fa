/**
 * Simulates Cerebras (2026-11-21): errors without an envelope, no keys with empty values, `reasoning` in requests and
 * responses, tool calls in one piece. The schema is that of cerebras-cloud-sdk-python (2026-01) and pydantic-ai#7653
 * (2026-08-20).
 *
 * Tokens (completion): gpt-oss-120b 15 (6 of them reasoning), zai-glm-4.7 13 (5; 8 with the effort `none`).
 */
import { compact, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import {
  type Call,
  CREATED_SECONDS,
  chatRoutes,
  DONE,
  event,
  type Refusal,
  type Scene,
  type WireEvent,
} from './scene.ts';
import { type Mismatch, mismatches, roles, type Shape, TOOL_CALLS, TOOLS, types } from './schema.ts';
import { costOf, isWords, joined, type Piece, type Script, scriptFor, wordsOf } from './script.ts';
import { messageCalls, TOOL_CHOICES, unknownChoice } from './tool-calls.ts';

const ANSWERS: Readonly<Record<string, readonly Piece[]>> = {
  'gpt-oss-120b': [
    ...wordsOf('reasoning', 'A wafer of weirs, one river.'),
    ...wordsOf('text', 'It all flows over at once, and none waits.'),
  ],
  'zai-glm-4.7': [
    ...wordsOf('reasoning', 'Short question, so answer shortly.'),
    ...wordsOf('text', 'Two gates, one keeper, and a long queue.'),
  ],
};

const TOP = [
  ...['model', 'messages', 'max_tokens', 'max_completion_tokens', 'min_tokens', 'min_completion_tokens'],
  ...['temperature', 'top_p', 'seed', 'stop', 'n', 'user', 'stream', 'stream_options', 'logprobs'],
  ...['top_logprobs', 'logit_bias', 'prediction', 'response_format', 'tools', 'tool_choice'],
  ...['clear_thinking', 'disable_reasoning', 'reasoning_effort', 'reasoning_format'],
  // Confirmed by an engineer of Cerebras: pydantic-ai#7653, 2026-08-20; the last vercel/ai, 2026-08.
  ...['presence_penalty', 'frequency_penalty', 'parallel_tool_calls', 'service_tier', 'prompt_cache_key'],
];
const named = ['role', 'content', 'name'];
const MESSAGES = roles(
  {
    // No `developer`: inference-docs/resources/openai.
    system: named,
    user: named,
    // `reasoning` is accepted, `reasoning_content` is not: R cerebras--reasoning-back; OpenMinis#361, 2026-09-15.
    assistant: [...named, 'tool_calls', 'reasoning'],
    tool: [...named, 'tool_call_id'],
  },
  {
    content: types({ text: ['text'], image_url: ['image_url'], image: ['image'] }),
    tool_calls: TOOL_CALLS,
  },
);
/** The types of @cerebras/cerebras_cloud_sdk 1.91.0 (2026-11) have texts alone in tool messages. */
function resultProblem(messages: readonly JsonObject[]): string | undefined {
  const at = messages.findIndex(
    ({ role, content }) => role === 'tool' && objectsOf(content).some(({ type }) => type !== 'text'),
  );
  return at < 0 ? undefined : `messages.${at}.tool.content: only text is supported`;
}
const SHAPE: Shape = { keys: TOP, inner: { messages: MESSAGES, tools: TOOLS } };
const EFFORTS = ['none', 'low', 'medium', 'high'];
const TIERS = ['auto', 'default', 'flex', 'priority'];

export const cerebras: Scene = {
  id: 'cerebras',
  routes: chatRoutes('cerebras'),
  models: Object.keys(ANSWERS),
  comment: 'ping',
  streamError: { message: 'Encountered a server error', type: 'server_error', code: 'server_error' },
  refusal,
  check,
  stream,
  object: (call) => compact(object(call)),
};

function refusal(status: number, message: string): Refusal {
  if (status === 401) return failure(401, 'Wrong API Key', 'api_key', 'wrong_api_key');
  if (status === 404) return failure(404, message, 'model', 'model_not_found');
  return failure(status, message, 'validation_error', status === 400 ? 'wrong_api_format' : 'error');
}

/** Kilo-Org/kilocode#10375, 2026-05-19. */
function failure(status: number, message: string, param: string, code: string): Refusal {
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  return { status, body: compact({ message, type, param, code }) };
}

function check(call: Call): Refusal | undefined {
  if (!(call.model in ANSWERS)) return refusal(404, `Model ${call.model} does not exist`);
  const lines = [...mismatches(call.body, SHAPE)].map(lineOf);
  const message = lines.length > 0 ? lines.join('\n') : problem(call.body, call.model);
  return message === undefined ? undefined : refusal(400, message);
}

/** All mismatches, one per line: free-claude-code#1136, 2026-07-16; at the top level: proxysoul/Empryo#209, 2026-09-19. */
function lineOf({ kind, tagged, value }: Mismatch): string {
  const at = tagged.join('.');
  return kind === 'extra'
    ? `${at}: property '${at}' is unsupported`
    : `${at}: value '${textOf(value)}' is unsupported`;
}

function problem(body: JsonObject, model: string): string | undefined {
  const { messages, max_tokens, max_completion_tokens, reasoning_effort, service_tier } = body;
  if (objectsOf(messages).length === 0) return 'messages: at least one message is required';
  const result = resultProblem(objectsOf(messages));
  if (result !== undefined) return result;
  // Only one of the two: reported 2026-06-30.
  if (max_tokens !== undefined && max_completion_tokens !== undefined) {
    return "'max_tokens' and 'max_completion_tokens' cannot both be set";
  }
  if (reasoning_effort !== undefined && !EFFORTS.includes(textOf(reasoning_effort))) {
    return `reasoning_effort: must be one of ${EFFORTS.join(', ')}`;
  }
  // The types of @cerebras/cerebras_cloud_sdk 1.91.0.
  if (unknownChoice(body.tool_choice) !== undefined) {
    return `tool_choice: must be one of ${TOOL_CHOICES.join(', ')}`;
  }
  // pydantic-ai#7653, 2026-08-20.
  if (service_tier !== undefined && !TIERS.includes(textOf(service_tier))) {
    return `service_tier: must be one of ${TIERS.join(', ')}`;
  }
  // pydantic-ai, models/cerebras.py.
  const disabling = body.disable_reasoning === true && model.startsWith('gpt-oss');
  return disabling ? 'disable_reasoning: is not supported with this model' : undefined;
}

function scriptOf(call: Call): Script {
  const quiet = call.body.reasoning_effort === 'none' || call.body.disable_reasoning === true;
  const answer = ANSWERS[call.model] ?? [];
  return scriptFor(call, quiet ? answer.filter((piece) => piece.kind !== 'reasoning') : answer);
}

function tail(call: Call, name: string) {
  const fingerprint = 'fp_sima33c042689e96';
  return { created: CREATED_SECONDS, model: call.model, system_fingerprint: fingerprint, object: name };
}

function id(call: Call): string {
  return `chatcmpl-${String(call.serial).padStart(8, '0')}-9626-4ef8-8543-000000000000`;
}

/** R cerebras--reasoning-tool-step1, 2026-05. */
function* stream(call: Call): Generator<WireEvent> {
  const script = scriptOf(call);
  const write = (kind: WireEvent['kind'], choice: JsonObject, extra: JsonObject = {}) => {
    const choices = [{ ...choice, index: 0 }];
    return event(kind, compact({ id: id(call), choices, ...tail(call, 'chat.completion.chunk'), ...extra }));
  };
  yield write('role', { delta: { role: 'assistant' } });
  for (const piece of script.pieces) {
    if (!isWords(piece)) continue;
    const delta = piece.kind === 'reasoning' ? { reasoning: piece.text } : { content: piece.text };
    yield write('piece', { delta });
  }
  const { tool_calls = [] } = messageCalls(script, callId);
  for (const [index, toolCall] of tool_calls.entries()) {
    yield write('piece', { delta: { tool_calls: [{ ...toolCall, index }] } });
  }
  const wantsUsage = objectOf(call.body.stream_options).include_usage === true;
  const usage = wantsUsage ? { usage: usageOf(call, script), time_info: { total_time: 0.184 } } : {};
  yield write('finish', { delta: {}, finish_reason: script.finish }, usage);
  yield DONE;
}

/** Nine letters and digits. */
function callId(number: number): string {
  return `cb5${String(number).padStart(6, '0')}`;
}

function object(call: Call): JsonObject {
  const script = scriptOf(call);
  const reasoning = joined(script, 'reasoning');
  const content = joined(script, 'text');
  const message = {
    ...(content ? { content } : {}),
    ...(reasoning ? { reasoning } : {}),
    role: 'assistant',
    ...messageCalls(script, callId),
  };
  const choices = [{ finish_reason: script.finish, index: 0, message }];
  const usage = usageOf(call, script);
  return {
    id: id(call),
    choices,
    ...tail(call, 'chat.completion'),
    usage,
    time_info: { total_time: 0.184 },
  };
}

function usageOf(call: Call, script: Script): JsonObject {
  const cost = costOf(call, [script]);
  return {
    total_tokens: cost.total,
    completion_tokens: cost.completion,
    completion_tokens_details: {
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
      reasoning_tokens: cost.reasoning,
    },
    prompt_tokens: cost.prompt,
    prompt_tokens_details: { cached_tokens: cost.cached },
  };
}
