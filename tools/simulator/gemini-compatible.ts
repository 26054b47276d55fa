/**
 * Simulates Gemini's OpenAI-compatible endpoint (2026-11-21): errors are lists, a bad key is 400, unknown top-level
 * fields are rejected, a tool call has no index and comes in one piece. Gemini 3 signs the first call of each step and
 * rejects it in later turns without the signature.
 *
 * Tokens (completion): gemini-3-flash 9, gemini-2.5-flash-lite 8. A streamed step of tool calls finishes with `stop`.
 */
import { compact, isObject, type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
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
import { bracketed, firstMismatch, type Mismatch, roles, type Shape, TOOL_CALLS, types } from './schema.ts';
import { costOf, isWords, joined, type Piece, type Script, scriptFor, wordsOf } from './script.ts';
import { messageCalls, toolNamesIn } from './tool-calls.ts';

const ANSWERS: Readonly<Record<string, readonly Piece[]>> = {
  'gemini-3-flash': wordsOf('text', 'Twin gates, one river: the left one opens first.'),
  'gemini-2.5-flash-lite': wordsOf('text', 'An older weir, though it holds as well.'),
};

/** Accepted fields. All others were seen rejected, or are in no list of accepted fields (2026-11). */
const TOP = [
  ...['model', 'messages', 'temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'n', 'stop'],
  ...['stream', 'stream_options', 'tools', 'tool_choice', 'parallel_tool_calls', 'response_format', 'user'],
  ...['reasoning_effort', 'service_tier', 'presence_penalty', 'extra_body'],
];
const plain = ['role', 'content'];
/** No source quotes a rejected message field. They are rejected here, because the same parser reads them. */
const MESSAGES = roles(
  {
    system: plain,
    developer: plain,
    user: [...plain, 'name'],
    assistant: [...plain, 'name', 'tool_calls', 'extra_content'],
    tool: [...plain, 'name', 'tool_call_id'],
  },
  {
    content: types({
      text: ['text'],
      image_url: ['image_url'],
      input_audio: ['input_audio'],
      file: ['file'],
    }),
    tool_calls: { ...TOOL_CALLS, keys: [...(TOOL_CALLS.keys ?? []), 'extra_content', 'index'] },
  },
);
const SHAPE: Shape = {
  keys: TOP,
  inner: { messages: MESSAGES, extra_body: { keys: ['google'] } },
};

/** Documented for calls without a signature (ai.google.dev/gemini-api/docs/thought-signatures). */
const SENTINEL = 'skip_thought_signature_validator';

const STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
};

export const geminiCompatible: Scene = {
  id: 'gemini-compatible',
  profile: 'gemini',
  routes: chatRoutes('gemini-compatible'),
  models: Object.keys(ANSWERS),
  comment: 'ping',
  streamError: { message: 'The service is currently unavailable.', code: 503, status: 'UNAVAILABLE' },
  refusal,
  badKey: refusal(400, 'API key not valid. Please pass a valid API key.'),
  check,
  stream,
  object: (call) => compact(object(call)),
};

function refusal(status: number, message: string): Refusal {
  const error = { code: status, message, status: STATUSES[status] ?? 'INTERNAL' };
  return { status, body: compact([{ error }]) };
}

function check(call: Call): Refusal | undefined {
  if (!(call.model in ANSWERS))
    return refusal(404, `models/${call.model} is not found for API version v1main`);
  const mismatch = firstMismatch(call.body, SHAPE);
  const message = mismatch ? mismatchMessage(mismatch) : problem(call);
  return message === undefined ? undefined : refusal(400, message);
}

/** `store`: openhanako#394, 2026-04-12; `frequency_penalty`: RPGBox#2, 2026-08-29; `prompt_cache_key`: cursor-byok#112, 2026-06-02. */
function mismatchMessage({ kind, path, value }: Mismatch): string {
  const place = bracketed(path.slice(0, -1));
  const at = place ? ` at '${place}'` : '';
  if (kind === 'variant') return `Invalid value${at} (${textOf(path.at(-1))}), "${textOf(value)}"`;
  return `Invalid JSON payload received. Unknown name "${textOf(path.at(-1))}"${at}: Cannot find field.`;
}

function problem({ body, model }: Call): string | undefined {
  const messages = objectsOf(body.messages);
  // decolua/9router#369, 2026-03-20, by its own API.
  if (toolNamesIn(body).some(({ name }) => !/^[A-Za-z_][\w.:-]{0,63}$/.test(name))) {
    return 'Invalid function name. Must start with a letter or an underscore.';
  }
  if (messages.length === 0) return 'contents is not specified';
  // MisakaNet#1473, 2026-09-04.
  if (body.presence_penalty) return 'Penalty is not enabled for this model';
  return model.startsWith('gemini-3') ? signatureProblem(messages, model) : undefined;
}

/** The first call of each step since the last user message needs a signature: the docs; securo#884 2026-09-10 and nine more. */
function signatureProblem(messages: readonly JsonObject[], model: string): string | undefined {
  const turn = messages.slice(messages.findLastIndex((message) => message.role === 'user') + 1);
  for (const message of turn) {
    const [first] = objectsOf(message.tool_calls);
    if (first === undefined) continue;
    const given = signatureIn(first.extra_content);
    if (given === '') {
      const name = textOf(objectOf(first.function).name);
      return `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call \`default_api:${name}\`.`;
    }
    if (given !== SENTINEL && given !== signatureOf(model, textOf(first.id)))
      return 'Thought signature is not valid';
  }
  return undefined;
}

function signatureIn(extra: Json | undefined): string {
  return isObject(extra) ? textOf(objectOf(extra.google).thought_signature) : '';
}

/** Bound to the call, so that a misplaced signature is detected. */
function signatureOf(model: string, id: string): string {
  return Buffer.from(`signed ${model} ${id}`).toString('base64');
}

function scriptOf(call: Call): Script {
  return scriptFor(call, ANSWERS[call.model] ?? []);
}

function head(call: Call, name: string) {
  return { id: `simG${call.serial}`, object: name, created: CREATED_SECONDS, model: call.model };
}

/** noho/dayu-agent#45, recorded 2026-04-26: a call comes in one piece, without index; open-webui/computer#224 2026-08-17: `stop`. */
function* stream(call: Call): Generator<WireEvent> {
  const script = scriptOf(call);
  const write = (kind: WireEvent['kind'], choice: JsonObject, extra: JsonObject = {}) => {
    const choices = [{ ...choice, index: 0 }];
    return event(kind, compact({ choices, ...head(call, 'chat.completion.chunk'), ...extra }));
  };
  for (const piece of script.pieces) {
    if (isWords(piece)) yield write('piece', { delta: { content: piece.text, role: 'assistant' } });
  }
  for (const toolCall of calls(call, script)) {
    yield write('piece', { delta: { role: 'assistant', tool_calls: [toolCall] } });
  }
  const finish = script.finish === 'tool_calls' ? 'stop' : script.finish;
  const wantsUsage = objectOf(call.body.stream_options).include_usage === true;
  const extra = wantsUsage ? { usage: usage(call, script) } : {};
  yield write('finish', { delta: { role: 'assistant' }, finish_reason: finish }, extra);
  yield DONE;
}

function calls(call: Call, script: Script): JsonObject[] {
  const { tool_calls = [] } = messageCalls(script, callId);
  return tool_calls.map((toolCall, at) => {
    if (at > 0 || !call.model.startsWith('gemini-3')) return toolCall;
    const thought_signature = signatureOf(call.model, textOf(toolCall.id));
    return { extra_content: { google: { thought_signature } }, ...toolCall };
  });
}

function callId(number: number): string {
  return `function-call-${String(number).padStart(19, '0')}`;
}

function object(call: Call): JsonObject {
  const script = scriptOf(call);
  const content = joined(script, 'text');
  const called = calls(call, script);
  const message = {
    ...(content ? { content } : {}),
    role: 'assistant',
    ...(called.length > 0 ? { tool_calls: called } : {}),
  };
  const choices = [{ finish_reason: script.finish, index: 0, message }];
  return { choices, ...head(call, 'chat.completion'), usage: usage(call, script) };
}

function usage(call: Call, script: Script): JsonObject {
  const cost = costOf(call, [script]);
  return { completion_tokens: cost.completion, prompt_tokens: cost.prompt, total_tokens: cost.total };
}
