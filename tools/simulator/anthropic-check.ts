/** What Anthropic rejects (2026-11-22), with its error texts. Sources: the issues and documents that src/providers/anthropic.ts lists. */
import { blocksOf } from './anthropic-chat.ts';
import {
  CLAUDE_MODELS,
  type ClaudeModel,
  changedThinking,
  type SignedRequest,
  thoughtsOf,
} from './anthropic-models.ts';
import { type Json, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import type { Call, Refusal } from './scene.ts';

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/** @param code Anthropic's recommended action, which few of its errors have */
export function refusal(status: number, message: string, code?: string): Refusal {
  const type = TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  const error = { type, message, ...(code === undefined ? {} : { details: { error_code: code } }) };
  return { status, body: JSON.stringify({ type: 'error', error, request_id: 'req_sim' }) };
}

export function check(call: Call): Refusal | undefined {
  const model = CLAUDE_MODELS[call.model];
  if (model === undefined) return refusal(404, `model: ${call.model}`);
  const versionProblem = isAtLeast(call, '2026-10-21') ? problemOf20261021(call.body) : undefined;
  if (versionProblem !== undefined) return refusal(400, versionProblem);
  if (call.operation === 'count') {
    const message = countProblem(call.body) ?? toolProblem(call.body, model);
    return message === undefined ? undefined : refusal(400, message);
  }
  for (const problem of [fieldProblem, thinkingProblem, samplingProblem, toolProblem, turnProblem]) {
    const message = problem(call.body, model, call.model);
    if (message !== undefined) return refusal(400, message);
  }
  return undefined;
}

function isAtLeast({ headers }: Call, version: string): boolean {
  return String(headers['anthropic-version'] ?? '') >= version;
}

/**
 * What the version 2026-10-21 rejects: https://platform.claude.com/docs/en/api/migration-2026-10-21. The error text for
 * sampling is quoted at https://qiita.com/Synthorai/items/01a0067e88747257a4e6. No source was found for the error text
 * for blocks (2026-11-22).
 */
function problemOf20261021(body: JsonObject): string | undefined {
  const sampling = ['temperature', 'top_p', 'top_k'].find((field) => body[field] !== undefined);
  if (sampling !== undefined) return `${sampling}: Extra inputs are not permitted`;
  for (const [turn, { role, content }] of objectsOf(body.messages).entries()) {
    for (const [at, { type, citations }] of blocksOf(content).entries()) {
      const place = `messages.${turn}.content.${at}`;
      if (role === 'assistant' && type === 'document')
        return `${place}: document blocks are not permitted here`;
      if (role === 'user' && type === 'text' && objectsOf(citations).length > 0) {
        return `${place}.citations: Extra inputs are not permitted`;
      }
    }
  }
  return undefined;
}

const FIELDS = [
  ...[
    'model',
    'messages',
    'max_tokens',
    'system',
    'stream',
    'stop_sequences',
    'temperature',
    'top_p',
    'top_k',
  ],
  ...['tools', 'tool_choice', 'thinking', 'output_config', 'metadata', 'service_tier', 'cache_control'],
  ...['container', 'context_management', 'mcp_servers', 'inference_geo'],
];

/** `MessageCountTokensParams` of @anthropic-ai/sdk 1.12.0 (2026-11-20). */
const COUNTED_FIELDS = [
  ...['model', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config', 'cache_control'],
  ...['speed', 'user_profile_id', 'workspace_id', 'context_management', 'mcp_servers', 'output_format'],
];

function countProblem(body: JsonObject): string | undefined {
  const unknown = Object.keys(body).find((key) => !COUNTED_FIELDS.includes(key));
  if (unknown !== undefined) return `${unknown}: Extra inputs are not permitted`;
  return objectsOf(body.messages).length === 0 ? 'messages: at least one message is required' : undefined;
}

function fieldProblem(body: JsonObject): string | undefined {
  const unknown = Object.keys(body).find((key) => !FIELDS.includes(key));
  if (unknown !== undefined) return `${unknown}: Extra inputs are not permitted`;
  if (body.max_tokens === undefined) return 'max_tokens: Field required';
  if (objectsOf(body.messages).length === 0) return 'messages: at least one message is required';
  const user = textOf(objectOf(body.metadata).user_id);
  // Documented: vercel/ai#12419, 2026-02-11.
  if (user.length > 256) return 'metadata.user_id: String should have at most 256 characters';
  if (user.includes('@')) return 'metadata.user_id: user_id appears to contain an email address';
  const stops = Array.isArray(body.stop_sequences) ? body.stop_sequences : [];
  if (stops.some((stop) => textOf(stop).trim() === '')) {
    return 'stop_sequences: each stop sequence must contain non-whitespace';
  }
  const schema = objectOf(objectOf(body.output_config).format).schema;
  const problem = schemaProblem(schema ?? null);
  if (problem !== undefined) return `output_config.format.schema: ${problem}`;
  return strictProblem(objectsOf(body.tools).filter(({ strict }) => strict === true));
}

/** Schemas of strict tools have the same restrictions, and at most 20 tools may be strict. */
function strictProblem(tools: readonly JsonObject[]): string | undefined {
  if (tools.length > 20) {
    return `Too many strict tools (${tools.length}). The maximum number of strict tools supported is 20.`;
  }
  const problems = tools.map(({ input_schema }, at) => [at, schemaProblem(input_schema ?? null)]);
  const [at, problem] = problems.find(([, found]) => found !== undefined) ?? [];
  return problem === undefined ? undefined : `tools.${at}.custom: ${problem}`;
}

function schemaProblem(schema: Json): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  if (!Array.isArray(schema)) {
    if (schema.oneOf !== undefined) return "Schema type 'oneOf' is not supported";
    const types = Array.isArray(schema.type) ? schema.type : [schema.type];
    if (types.includes('object') && schema.additionalProperties !== false) {
      return "For 'object' type, 'additionalProperties' must be explicitly set to false";
    }
  }
  return Object.values(schema)
    .map((member) => schemaProblem(member ?? null))
    .find((problem) => problem !== undefined);
}

function thinkingProblem(body: JsonObject, model: ClaudeModel): string | undefined {
  const { type, budget_tokens } = objectOf(body.thinking);
  if (type !== undefined && !model.thinking.some((known) => known === type)) {
    return model.thinking.includes('adaptive')
      ? `"thinking.type.${textOf(type)}" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`
      : 'adaptive thinking is not supported on this model';
  }
  if (objectOf(body.output_config).effort !== undefined && !model.thinking.includes('adaptive')) {
    return 'This model does not support the effort parameter.';
  }
  if (type !== 'enabled') return undefined;
  const budget = numberOf(budget_tokens) ?? 0;
  if (budget < 1024) return 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024';
  return budget >= (numberOf(body.max_tokens) ?? 0)
    ? '`max_tokens` must be greater than `thinking.budget_tokens`.'
    : undefined;
}

function samplingProblem(body: JsonObject, model: ClaudeModel): string | undefined {
  const set = ['temperature', 'top_p', 'top_k'].find((field) => body[field] !== undefined);
  if (set === undefined) return undefined;
  if (!model.takesSampling) return `\`${set}\` is deprecated for this model.`;
  const temperature = numberOf(body.temperature) ?? 0;
  if (temperature < 0 || temperature > 1) return 'temperature: range: 0..1';
  if (body.temperature !== undefined && body.top_p !== undefined) {
    return '`temperature` and `top_p` cannot both be specified for this model. Please use only one.';
  }
  const isThinking = objectOf(body.thinking).type === 'enabled';
  return isThinking && body.temperature !== undefined && temperature !== 1
    ? '`temperature` may only be set to 1 when thinking is enabled.'
    : undefined;
}

function toolProblem(body: JsonObject, model: ClaudeModel): string | undefined {
  // anthropics/claude-code#96152, 2026-09-22.
  const long = objectsOf(body.tools).findIndex(({ name }) => textOf(name).length > 128);
  if (long >= 0) return `tools.${long}.custom.name: String should have at most 128 characters`;
  const names = objectsOf(body.tools).map(({ name }) => name);
  // danny-avila/LibreChat#13162, 2026-05-17.
  if (new Set(names).size < names.length) return 'tools: Tool names must be unique.';
  for (const [at, { input_schema }] of objectsOf(body.tools).entries()) {
    const problem = inputSchemaProblem(objectOf(input_schema));
    if (problem !== undefined) return `tools.${at}.custom.input_schema${problem}`;
  }
  const { type } = objectOf(body.tool_choice);
  if (type === undefined) return undefined;
  if (objectsOf(body.tools).length === 0) return 'tool_choice: may only be specified while providing tools';
  if (type !== 'any' && type !== 'tool') return undefined;
  if (!model.takesForcedTools) {
    return 'tool_choice: type "tool" and "any" are not supported for this model.';
  }
  return objectOf(body.thinking).type === 'enabled'
    ? 'Thinking may not be enabled when tool_choice forces tool use.'
    : undefined;
}

/** The type: from memory, 2026-11-28; langchain-ai/langchain#39271, 2026-08-05; anthropics/claude-code#79418, 2026-07-20. */
function inputSchemaProblem(schema: JsonObject): string | undefined {
  if (schema.type !== 'object') return ".type: Input should be 'object'";
  if (['oneOf', 'allOf', 'anyOf'].some((keyword) => schema[keyword] !== undefined)) {
    return ': input_schema does not support oneOf, allOf, or anyOf at the top level';
  }
  return hasForeignKey(schema)
    ? ".properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
    : undefined;
}

function hasForeignKey(value: Json): boolean {
  if (Array.isArray(value)) return value.some(hasForeignKey);
  if (typeof value !== 'object' || value === null) return false;
  const isForeign = Object.keys(objectOf(value.properties)).some(
    (key) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(key),
  );
  return isForeign || Object.values(value).some((inner) => inner !== undefined && hasForeignKey(inner));
}

const TOOL_ID = /^[a-zA-Z0-9_-]+$/;

function turnProblem(body: JsonObject, model: ClaudeModel, name: string): string | undefined {
  const turns = objectsOf(body.messages);
  const ids = new Set<string>();
  for (const [at, turn] of turns.entries()) {
    const blocks = blocksOf(turn.content);
    if (blocks.length === 0) return `messages.${at}: all messages must have non-empty content`;
    const problem =
      textProblem(blocks) ??
      callProblem(blocks, at, ids) ??
      resultProblem(blocks, blocksOf(turns[at - 1]?.content), at) ??
      openCallProblem(blocks, blocksOf(turns[at + 1]?.content), at);
    if (problem !== undefined) return problem;
  }
  return thoughtProblem({ model: name, body }, turns, model);
}

function textProblem(blocks: readonly JsonObject[]): string | undefined {
  const texts = blocks.filter(({ type }) => type === 'text').map(({ text }) => textOf(text));
  if (texts.includes('')) return 'messages: text content blocks must be non-empty';
  return texts.some((text) => text.trim() === '')
    ? 'messages: text content blocks must contain non-whitespace text'
    : undefined;
}

function callProblem(blocks: readonly JsonObject[], turn: number, ids: Set<string>): string | undefined {
  for (const [at, { type, id, input }] of blocks.entries()) {
    if (type !== 'tool_use') continue;
    const place = `messages.${turn}.content.${at}`;
    if (!TOOL_ID.test(textOf(id))) {
      return `${place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
    }
    if (ids.has(textOf(id))) return `${place}: \`tool_use\` ids must be unique`;
    if (typeof input !== 'object' || input === null || Array.isArray(input)) {
      return `${place}.tool_use.input: Input should be a valid dictionary`;
    }
    ids.add(textOf(id));
  }
  return undefined;
}

function resultProblem(
  blocks: readonly JsonObject[],
  before: readonly JsonObject[],
  turn: number,
): string | undefined {
  for (const [at, { type, tool_use_id }] of blocks.entries()) {
    if (type !== 'tool_result' || before.some(({ id }) => id === tool_use_id)) continue;
    return `messages.${turn}.content.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${textOf(tool_use_id)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
  }
  return undefined;
}

/** Tool results must be the first blocks of the turn after their calls. */
function openCallProblem(
  blocks: readonly JsonObject[],
  after: readonly JsonObject[],
  turn: number,
): string | undefined {
  const calls = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => textOf(id));
  const results = after.slice(0, calls.length).map(({ tool_use_id }) => textOf(tool_use_id));
  const open = calls.filter((id) => !results.includes(id));
  return open.length === 0
    ? undefined
    : `messages.${turn}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}

function thoughtProblem(
  request: SignedRequest,
  turns: readonly JsonObject[],
  model: ClaudeModel,
): string | undefined {
  if (turns.at(-1)?.role === 'assistant' && !model.takesPrefill) {
    return 'This model does not support assistant message prefill. The conversation must end with a user message.';
  }
  if (thoughtsOf(request.body, model) === 'none') return undefined;
  const changed = changedThinking(request);
  if (changed !== undefined) return `${changed}: Invalid \`signature\` in \`thinking\` block`;
  const last = turns.findLastIndex(({ role }) => role === 'assistant');
  const [first] = blocksOf(turns[last]?.content);
  const isStep = blocksOf(turns[last]?.content).some(({ type }) => type === 'tool_use');
  const isThought = first?.type === 'thinking' || first?.type === 'redacted_thinking';
  // Adaptive thinking requires no thinking block: thinking-tool-workflows, 2026-11-22.
  return objectOf(request.body.thinking).type === 'enabled' && isStep && !isThought
    ? `messages.${last}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${textOf(first?.type)}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`
    : undefined;
}
