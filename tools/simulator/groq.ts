/**
 * Simulates Groq (2026-11-21) with the wire format of `compatible`. Fields that its schema lacks are rejected. The schema
 * is that of groq-python (2026-08-18), `D` the page console.groq.com/docs/openai.
 *
 * Tokens (completion): llama-3.3-70b-versatile 9, openai/gpt-oss-120b 14 (6 of them reasoning), qwen/qwen3-32b 12 (5; 7 with
 * the effort `none`).
 */
import { groqObject, groqStream } from './groq-form.ts';
import { compact, type JsonObject, objectsOf, textOf } from './json.ts';
import { type Call, chatRoutes, errorType, openaiRefusal, type Refusal, type Scene } from './scene.ts';
import { firstMismatch, type Mismatch, roles, type Shape, TOOL_CALLS, types } from './schema.ts';
import { type Piece, type Script, scriptFor, wordsOf } from './script.ts';
import { TOOL_CHOICES, unknownChoice } from './tool-calls.ts';

interface Model {
  readonly answer: readonly Piece[];
  readonly efforts: readonly string[];
}
const MODELS: Readonly<Record<string, Model>> = {
  'llama-3.3-70b-versatile': {
    answer: wordsOf('text', 'The sluice opens at four, and closes by six.'),
    efforts: [],
  },
  'openai/gpt-oss-120b': {
    answer: [
      ...wordsOf('reasoning', 'Head times flow gives the power.'),
      ...wordsOf('text', 'Ten kilowatts, less what the turbine itself loses.'),
    ],
    efforts: ['low', 'medium', 'high'],
  },
  'qwen/qwen3-32b': {
    answer: [
      ...wordsOf('reasoning', 'Compare both crests, then answer.'),
      ...wordsOf('text', 'The broad one: it silts up less.'),
    ],
    efforts: ['none', 'default'],
  },
};

const TOP = [
  ...['messages', 'model', 'temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'stop', 'seed'],
  ...['stream', 'n', 'user', 'presence_penalty', 'frequency_penalty', 'logprobs', 'top_logprobs'],
  ...['logit_bias', 'response_format', 'tools', 'tool_choice', 'parallel_tool_calls', 'functions'],
  ...['function_call', 'service_tier', 'metadata', 'store', 'reasoning_effort', 'reasoning_format'],
  ...['include_reasoning', 'citation_options', 'compound_custom', 'disable_tool_validation', 'documents'],
  ...['exclude_domains', 'include_domains', 'search_settings'],
  // Not in the schema, but accepted: R groq--parallel-results-stream, 2026-03.
  'stream_options',
];
const plain = ['role', 'content'];
/** The schema has `name` on these, but D says that it is rejected. On tool messages it is accepted. */
const MESSAGES = roles(
  {
    system: plain,
    developer: plain,
    user: plain,
    assistant: [...plain, 'tool_calls', 'function_call', 'reasoning'],
    tool: [...plain, 'tool_call_id', 'name'],
    function: [...plain, 'name'],
  },
  {
    content: types({ text: ['text'], image_url: ['image_url'], document: ['document'] }),
    // No rejection of an index is known; `extra_content` is not in the schema.
    tool_calls: { ...TOOL_CALLS, keys: [...(TOOL_CALLS.keys ?? []), 'index'] },
  },
);
const SHAPE: Shape = { keys: TOP, inner: { messages: MESSAGES } };

/** In the schema, but rejected: D; `metadata` hass_local_openai_llm#59, 2026-04-18; `store` livekit#1276, 2024-12. */
const NOT_SUPPORTED = ['metadata', 'store', 'logprobs', 'top_logprobs', 'logit_bias'];
const TIERS = ['auto', 'on_demand', 'flex', 'performance'];

export const groq: Scene = {
  id: 'groq',
  routes: chatRoutes('groq'),
  models: Object.keys(MODELS),
  comment: 'ping',
  streamError: { message: 'Over capacity', type: 'internal_server_error', code: 'over_capacity' },
  refusal,
  check,
  stream: (call) => groqStream(call, scriptOf(call)),
  object: (call) => compact(groqObject(call, scriptOf(call))),
};

function refusal(status: number, message: string): Refusal {
  const code = status === 401 ? { code: 'invalid_api_key' } : {};
  return openaiRefusal(status, { message, type: errorType(status), ...code });
}

function check(call: Call): Refusal | undefined {
  const model = MODELS[call.model];
  if (!model)
    return refusal(404, `The model \`${call.model}\` does not exist or you do not have access to it.`);
  const mismatch = firstMismatch(call.body, SHAPE);
  const message = mismatch ? mismatchMessage(mismatch) : problem(call.body, model);
  return message === undefined ? undefined : refusal(400, message);
}

/** janhq/jan#8136 2026-05-13, freellmapi#1070 2026-08-30. */
function mismatchMessage({ kind, path, tagged, value }: Mismatch): string {
  const key = textOf(path.at(-1));
  const unsupported =
    kind === 'extra' ? `property '${key}' is unsupported` : `unknown ${key} '${textOf(value)}'`;
  const [place, index, role] = tagged;
  if (place !== 'messages' || kind !== 'extra') return unsupported;
  const at = `'messages.${index}'`;
  return `${at} : for 'role:${role}' the following must be satisfied[(${at} : ${unsupported})]`;
}

function problem(body: JsonObject, model: Model): string | undefined {
  if (objectsOf(body.messages).length === 0) return "'messages' : minimum number of items is 1";
  const named = NOT_SUPPORTED.find((name) => body[name] !== undefined && body[name] !== null);
  if (named !== undefined && body[named] !== false) return `\`${named}\` is not supported with this model`;
  // D: one choice only.
  if ((body.n ?? 1) !== 1) return "'n' : number must be at most 1";
  if (Array.isArray(body.stop) && body.stop.length > 4) return "'stop' : maximum number of items is 4";
  const choice = unknownChoice(body.tool_choice);
  // `ChatCompletionToolChoiceOption` of groq-sdk 1.6.
  if (choice !== undefined) return `'tool_choice' : value must be one of ${TOOL_CHOICES.join(', ')}`;
  const tier = body.service_tier ?? 'auto';
  if (!TIERS.includes(textOf(tier))) return `\`service_tier\` must be one of ${TIERS.join(', ')}`;
  const hasBoth = (body.reasoning_format ?? null) !== null && (body.include_reasoning ?? null) !== null;
  if (hasBoth) return 'only one of `reasoning_format` and `include_reasoning` can be set';
  return reasoningProblem(body, model);
}

/** free-claude-code#1348 2026-08-06; vercel/ai#8057 2025-08: even an empty text. */
function reasoningProblem(body: JsonObject, { efforts }: Model): string | undefined {
  const at = objectsOf(body.messages).findIndex((message) => message.reasoning !== undefined);
  if (at >= 0 && efforts.length === 0) {
    return `messages[${at}].reasoning: reasoning is not supported with this model`;
  }
  const effort = body.reasoning_effort ?? null;
  if (effort === null || efforts.includes(textOf(effort))) return undefined;
  if (efforts.length === 0) return '`reasoning_effort` is not supported with this model';
  const words = efforts.map((word) => `\`${word}\``);
  return `\`reasoning_effort\` must be one of ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function scriptOf(call: Call): Script {
  const answer = MODELS[call.model]?.answer ?? [];
  const quiet = call.body.reasoning_effort === 'none';
  return scriptFor(call, quiet ? answer.filter((piece) => piece.kind !== 'reasoning') : answer);
}
