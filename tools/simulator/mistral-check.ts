/**
 * What Mistral rejects (2026-11-21). The keys are those of `openapi.yaml` of mistralai/platform-docs-public (2026-07-15),
 * which forbids all others on every level: 422 `extra_forbidden` (charmbracelet/crush#1590, OpenMinis#87 of 2026-07-24).
 */
import { embeddingsProblem, MISTRAL_FORM } from './embeddings.ts';
import { compact, isObject, type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import type { Call, Refusal } from './scene.ts';
import { mismatches, roles, type Shape, type Step, types } from './schema.ts';
import { toolNamesIn } from './tool-calls.ts';

/** Models that accept earlier thoughts; the first two reason on request only. */
const REASONING = ['mistral-small-latest', 'mistral-medium-latest', 'magistral-medium-latest'];

const SAMPLING = ['max_tokens', 'stream', 'stop', 'random_seed', 'metadata', 'prompt_cache_key'];
const MODEL = ['model', 'temperature', 'top_p'];
const ANSWERING = [
  ...['messages', 'response_format', 'tools', 'tool_choice', 'parallel_tool_calls', 'n', 'prediction'],
  ...['presence_penalty', 'frequency_penalty', 'prompt_mode', 'reasoning_effort'],
];
/** Accepted although not in the schema: R mistral--refused-logprobs; the limits of documents: vercel/ai, 2026-08. */
const UNLISTED = ['logprobs', 'top_logprobs', 'document_image_limit', 'document_page_limit'];

const PARTS = types({
  text: ['text'],
  image_url: ['image_url'],
  document_url: ['document_url', 'document_name'],
  input_audio: ['input_audio'],
  file: ['file_id'],
  reference: ['reference_ids'],
  thinking: ['thinking', 'closed'],
});
/** `index` is in the schema; `parameters` has no default. */
const CALLS: Shape = {
  keys: ['id', 'type', 'function', 'index'],
  inner: { function: { keys: ['name', 'arguments'] } },
};
const TOOLS: Shape = {
  keys: ['type', 'function'],
  inner: {
    function: { keys: ['name', 'description', 'strict', 'parameters'], required: ['name', 'parameters'] },
  },
};
const MESSAGES = roles(
  {
    system: ['role', 'content'],
    user: ['role', 'content'],
    assistant: ['role', 'content', 'tool_calls', 'prefix'],
    tool: ['role', 'content', 'tool_call_id', 'name'],
  },
  { content: PARTS, tool_calls: CALLS },
);
const INNER = { messages: MESSAGES, tools: TOOLS };

/** The object is accepted, its members are not: loc `body, stream_options, include_usage` in cline#582, litellm#8978 and others. */
const STREAM_OPTIONS = { stream_options: { keys: [] } };

type Route = 'chat' | 'fim' | 'agents';

const SHAPES: Readonly<Record<Route, Shape>> = {
  chat: {
    keys: [
      ...[...MODEL, ...SAMPLING, ...ANSWERING, ...UNLISTED],
      ...['guardrails', 'safe_prompt', 'stream_options'],
    ],
    required: ['model', 'messages'],
    inner: { ...INNER, ...STREAM_OPTIONS },
  },
  fim: {
    keys: [...MODEL, ...SAMPLING, 'prompt', 'suffix', 'min_tokens', 'stream_options'],
    required: ['model', 'prompt'],
    inner: STREAM_OPTIONS,
  },
  agents: {
    keys: [...SAMPLING, ...ANSWERING, 'agent_id', 'stream_options'],
    required: ['agent_id', 'messages'],
    inner: { ...INNER, ...STREAM_OPTIONS },
  },
};

function routeOf(call: Call): Route {
  return call.operation === 'fim' || call.operation === 'agents' ? call.operation : 'chat';
}

/** The form of all errors except 401 and 422: R mistral--refused-logprobs and -unknown-model, 2026-08. */
export function refusal(status: number, message: string): Refusal {
  // R mistral--refused-bad-key, 2026-08.
  if (status === 401) return { status, body: compact({ detail: 'Invalid API Key' }) };
  const type =
    status === 429 ? 'rate_limited' : status < 500 ? 'invalid_request_error' : 'internal_server_error';
  return coded(status, message, type, String(status * 10));
}

function coded(status: number, message: string, type: string, code: string): Refusal {
  const body = { object: 'error', message, type, param: null, code, raw_status_code: status };
  return { status, body: compact(body) };
}

interface Detail extends JsonObject {
  readonly type: string;
  readonly loc: Step[];
  readonly msg: string;
  readonly input: Json;
}

/** The nested form: Gage-Technologies/mistral-go#2 and six more, 2024-04 to 2025-06. */
function unprocessable(detail: Detail[]): Refusal {
  const rest = { type: 'invalid_request_error', param: null, code: null };
  return { status: 422, body: compact({ object: 'error', message: { detail }, ...rest }) };
}

export function check(call: Call, models: readonly string[]): Refusal | undefined {
  if (call.operation === 'embeddings') {
    const problem = embeddingsProblem(call, MISTRAL_FORM);
    return problem === undefined ? undefined : refusal(422, problem);
  }
  const detail = [...schemaDetails(call), ...valueDetails(call.body)];
  if (detail.length > 0) return unprocessable(detail);
  const model = routeOf(call) === 'agents' ? undefined : call.model;
  const served =
    models.includes(call.model) && (routeOf(call) !== 'fim' || call.model.startsWith('codestral'));
  if (model !== undefined && !served) {
    return coded(400, `Invalid model: ${model}`, 'invalid_model', '1500');
  }
  return requestProblem(call.body) ?? (model === undefined ? undefined : modelProblem(call.body, model));
}

function schemaDetails(call: Call): Detail[] {
  return [...mismatches(call.body, SHAPES[routeOf(call)])].map(({ kind, tagged, value, known }) => {
    const loc = ['body', ...tagged];
    const input = value ?? null;
    if (kind === 'extra')
      return { type: 'extra_forbidden', loc, msg: 'Extra inputs are not permitted', input };
    if (kind === 'missing') return { type: 'missing', loc, msg: 'Field required', input };
    const tags = known.map((name) => `'${name}'`).join(', ');
    const msg = `Input tag '${textOf(value)}' does not match any of the expected tags: ${tags}`;
    return { type: 'union_tag_invalid', loc: loc.slice(0, -1), msg, input };
  });
}

/** `required` and a named tool are accepted: R mistral--agents-tool-required and --named-tool, 2026-07. */
function valueDetails(body: JsonObject): Detail[] {
  const details: Detail[] = [];
  const words = (key: string, allowed: readonly string[]) => {
    const input = body[key];
    if (input === undefined || input === null || isObject(input) || allowed.includes(textOf(input))) return;
    const msg = `Input should be ${allowed.map((word) => `'${word}'`).join(', ')}`;
    details.push({ type: 'enum', loc: ['body', key], msg, input });
  };
  words('tool_choice', ['auto', 'none', 'any', 'required']);
  // No other effort: openapi.yaml; anomalyco/models.dev#1986, live.
  words('reasoning_effort', ['high', 'none']);
  if (body.prompt !== undefined && typeof body.prompt !== 'string') {
    const msg = 'Input should be a valid string';
    details.push({ type: 'string_type', loc: ['body', 'prompt'], msg, input: body.prompt });
  }
  return details;
}

/** What may follow each role: mistral-common's validator of 2026-07-23; R mistral--user-after-tool, 2026-08. */
const ORDER: Readonly<Record<string, readonly string[]>> = {
  system: ['user', 'assistant', 'system'],
  user: ['assistant', 'system', 'user'],
  assistant: ['assistant', 'user', 'tool'],
  tool: ['assistant', 'tool', 'user'],
};

function requestProblem(body: JsonObject): Refusal | undefined {
  const messages = objectsOf(body.messages);
  const id = messages.flatMap(callIds).find((text) => !/^[a-zA-Z0-9]{9}$/.test(text));
  if (id !== undefined) {
    // nearai/ironclaw#1241 2026-03, gptel#1203.
    const message = `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`;
    return coded(400, message, 'invalid_request_error', '3280');
  }
  const named = toolNamesIn(body).find(({ name }) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name));
  if (named !== undefined) {
    // Kochava-Studios/witsy#164, 2025-04-04; its code is unknown.
    const message = `Function name was ${named.name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`;
    return coded(400, message, 'invalid_request_error', '3000');
  }
  const misplaced = messages.findIndex(({ role }, i) => {
    const before = ORDER[textOf(messages[i - 1]?.role)];
    return before !== undefined && !before.includes(textOf(role));
  });
  if (misplaced > 0) {
    const [before, role] = [messages[misplaced - 1], messages[misplaced]].map((one) => textOf(one?.role));
    const message = `Unexpected role '${role}' after role '${before}'`;
    return coded(400, message, 'invalid_request_message_order', '3230');
  }
  const last = messages.at(-1);
  if (last && last.role !== 'user' && last.role !== 'tool' && last.prefix !== true) {
    const expected = 'Expected last role User or Tool (or Assistant with prefix True) for serving';
    return coded(400, `${expected} but got ${textOf(last.role)}`, 'invalid_request_message_order', '3230');
  }
  const empty = messages.some(
    ({ role, content, tool_calls }) => role === 'assistant' && !content && objectsOf(tool_calls).length === 0,
  );
  if (empty) {
    // solbrowse/extension#16, 2025-06.
    const message = 'Assistant message must have either content or tool_calls, but not none.';
    return coded(400, message, 'invalid_request_error', '3240');
  }
  const choice = body.tool_choice;
  const forced = isObject(choice) || choice === 'any' || choice === 'required';
  const format = textOf(objectOf(body.response_format).type);
  if (forced && format.startsWith('json')) {
    // rig, live-checked 2026-08.
    const message = `${format} response type with tools is only compatible with tool_choice: auto`;
    return coded(400, message, 'invalid_request_invalid_args', '3051');
  }
  return undefined;
}

function callIds(message: JsonObject): string[] {
  const ids = [message.tool_call_id, ...objectsOf(message.tool_calls).map((call) => call.id)];
  return ids.filter((id) => typeof id === 'string');
}

function modelProblem(body: JsonObject, model: string): Refusal | undefined {
  const refuse = (message: string) => coded(400, message, 'invalid_request_invalid_args', '3051');
  // R mistral--refused-logprobs, 2026-08.
  if (body.logprobs === true || body.top_logprobs) return refuse('Logprobs are not enabled for this model');
  // withceleste/celeste-python#311, 2026-07-15.
  if (REASONING.includes(model) && !(model.startsWith('magistral') && body.reasoning_effort))
    return undefined;
  // tontinton/maki#396; models.dev#1986.
  if (body.reasoning_effort) return refuse('Reasoning prompt mode is not enabled for this model');
  const parts = objectsOf(body.messages).flatMap((message) => objectsOf(message.content));
  // suitenumerique/conversations#402, 2026-04.
  const thinking = parts.some((part) => part.type === 'thinking');
  return thinking ? refuse('Reasoning input is not enabled for this model') : undefined;
}

/** Small and Medium reason with `high`, Magistral always. */
export function reasons(call: Call): boolean {
  const { reasoning_effort } = call.body;
  return call.model.startsWith('magistral') || reasoning_effort === 'high';
}
