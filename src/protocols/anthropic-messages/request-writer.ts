/** Writes a chat request as one of Anthropic Messages that means the same (A2). https://platform.claude.com/docs/en/api/messages (2026-11-22) */

import { toolCallId } from '../../canonical/tool-call-id.ts';
import { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { readOutputLimit, withOnlyLimit } from '../../request-translation/output-limit.ts';
import { COMPETING_LIMITS, REFUSED, type RequestRules } from '../../request-translation/rules.ts';
import { convertLegacyFunctions } from '../../request-translation/tools.ts';
import {
  type RequestForm,
  type TranslatedRequest,
  translateRequest,
  type WriteOptions,
  withoutNulls,
} from '../../request-translation/translate.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  omit,
  readArray,
  readCount,
  readText,
} from '../../shared/json.ts';
import { failure, ok } from '../../shared/result.ts';
import { type ClaudeFamilies, type ClaudeFamily, familyOf } from './family.ts';
import { type Conversation, claudeConversation, type Turn } from './request-messages.ts';
import { claudeSampling } from './request-sampling.ts';
import { claudeSchema } from './request-schema.ts';
import { claudeThinking, withHiddenThinking } from './request-thinking.ts';
import { claudeTools, forcesCall } from './request-tools.ts';

/** Fields that become others here. What is not among them goes the way of all fields: dropped, refused by Anthropic itself, or sent on. */
const WRITTEN = [
  ...[
    'model',
    'messages',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'max_tokens',
    'max_completion_tokens',
  ],
  ...['stop', 'temperature', 'top_p', 'top_k', 'reasoning_effort', 'reasoning', 'thinking', 'output_config'],
  ...['response_format', 'user', 'safety_identifier', 'metadata', 'service_tier', 'seed'],
];

/** Unknown fields are 400 "Extra inputs are not permitted": recorded by many, among them anthropics/claude-code#11678, 2026-02. */
const FIELDS: RequestRules = {
  fields: {
    n: REFUSED,
    logprobs: REFUSED,
    top_logprobs: REFUSED,
    logit_bias: REFUSED,
    presence_penalty: REFUSED,
    frequency_penalty: REFUSED,
    modalities: REFUSED,
    audio: REFUSED,
    prediction: REFUSED,
    web_search_options: REFUSED,
    store: REFUSED,
    prompt_cache_key: REFUSED,
    prompt_cache_retention: REFUSED,
    prompt_cache_options: REFUSED,
    verbosity: REFUSED,
  },
  messages: { reasoning: [] },
  streamUsage: 'always',
};

/**
 * The form of a provider whose models are of these families.
 * @param toolNames the form of tools' names
 */
export function claudeForm(families: ClaudeFamilies, toolNames: RegExp): RequestForm {
  return {
    kind: 'native',
    toolNames,
    write: (body, options) => writeMessages(body, options, familyOf(families, options.model)),
    // 0 is no limit of an answer that is reserved for.
    outputLimit: (body) => readCount(body.max_tokens) || null,
    // Other names are 400 here, and rivals at servers that are like it.
    withLimit: (body, tokens) => withOnlyLimit(body, 'max_tokens', tokens, COMPETING_LIMITS),
  };
}

function writeMessages(given: JsonObject, options: WriteOptions, family: ClaudeFamily): TranslatedRequest {
  const body = convertLegacyFunctions(withoutNulls(given));
  const rest = translateRequest(omit(body, ...WRITTEN), FIELDS, options);
  if (rest.kind === 'error') return rest;
  const report = new TranslationReport(options.provider, options.unsupported);
  const conversation = claudeConversation(readArray(body.messages), {
    family,
    providerId: options.providerId,
    report,
  });
  const limit = outputLimit(body, family, report);
  const tools = claudeTools(body, family, report);
  const thinking = withLoop(
    claudeThinking(body, family, readCount(limit) || family.maxTokens, report),
    conversation.messages,
    tools,
    report,
  );
  const sent: JsonObject = {
    ...rest.value.body,
    model: body.model,
    max_tokens: limit,
    ...(conversation.system.length === 0 ? {} : { system: conversation.system }),
    messages: conversation.messages,
    ...tools,
    ...withFormat(thinking, body.response_format, report),
    ...stopSequences(body.stop, report),
    ...claudeSampling(body, thinking, family, report),
    ...aboutRequest(body, report),
  };
  const { error, dropped, changed } = report;
  if (error !== null) return failure(error);
  const own = options.hidesReasoning === true ? withHiddenThinking(sent, family) : sent;
  return ok({
    body: options.promptCache === 'auto' ? withPromptCache(own, conversation, family) : own,
    dropped: [...rest.value.dropped, ...dropped],
    changed: [...rest.value.changed, ...changed],
  });
}

/** It is required: a caller without a limit of its own gets the model's, as everywhere else. What is no limit is Anthropic's to refuse. */
function outputLimit(body: JsonObject, { maxTokens }: ClaudeFamily, report: TranslationReport): unknown {
  const asked = readOutputLimit(body);
  if (asked === undefined) return body.max_completion_tokens ?? body.max_tokens;
  // 400 "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens".
  if (asked !== null && asked > maxTokens) report.change('max_tokens');
  return Math.min(asked ?? maxTokens, maxTokens);
}

/**
 * Thinking with a budget is refused beside a forced call, and in a tool loop whose last step came without its own thinking: from
 * another provider, or through a client that lost it. Then the step is taken without. Adaptive thinking demands neither:
 * https://platform.claude.com/docs/en/build-with-claude/thinking-tool-workflows (2026-11-22).
 */
function withLoop(
  thinking: JsonObject,
  turns: readonly Turn[],
  tools: JsonObject,
  report: TranslationReport,
): JsonObject {
  const isBudget = isObject(thinking.thinking) && thinking.thinking.type === 'enabled';
  if (!isBudget || !(forcesCall(tools) || isStepWithoutThinking(turns))) return thinking;
  report.change('thinking');
  return omit(thinking, 'thinking');
}

/** 400 "Expected `thinking` or `redacted_thinking`, but found `tool_use`": BerriAI/litellm#37953, anomalyco/opencode#3077. */
function isStepWithoutThinking(turns: readonly Turn[]): boolean {
  const results = turns.findLastIndex(({ content }) => content.some(({ type }) => type === 'tool_result'));
  const step = turns[results - 1];
  const isLast = turns.slice(results + 1).every(({ role }) => role !== 'assistant');
  if (step?.role !== 'assistant' || !isLast) return false;
  return !['thinking', 'redacted_thinking'].includes(readText(step.content[0]?.type) ?? '');
}

/** `json_object` promises JSON and names no schema: Anthropic has no such promise. */
function withFormat(thinking: JsonObject, format: unknown, report: TranslationReport): JsonObject {
  if (!isObject(format) || format.type === 'text') return thinking;
  const named = objectOf(format.json_schema);
  const config = objectOf(thinking.output_config);
  if (config.format !== undefined) return thinking;
  if (!isObject(named.schema)) {
    report.refuse('response_format');
    return thinking;
  }
  const schema = claudeSchema(named.schema, () => report.change('response_format'));
  return { ...thinking, output_config: { ...config, format: { type: 'json_schema', schema } } };
}

/** 400 "stop_sequences: each stop sequence must contain non-whitespace": an empty one says nothing. */
function stopSequences(stop: unknown, report: TranslationReport): JsonObject {
  const asked = (Array.isArray(stop) ? stop : [stop]).filter((word) => word !== undefined && word !== '');
  const words = asked.filter((word) => typeof word !== 'string' || word.trim() !== '');
  if (words.length < asked.length) report.drop('stop');
  return words.length === 0 ? {} : { stop_sequences: words };
}

/** Opaque ids alone: 400 "user_id appears to contain an email address", BerriAI/litellm#10106, 2025-04-17; 256 characters at most. */
const OPAQUE_ID = /^[\w-]*[a-z_][\w-]*$/i;
const MAX_USER_CHARS = 256;

/** Tiers by Anthropic's names. https://platform.claude.com/docs/en/api/service-tiers (2026-11-22) */
const TIERS: Readonly<Record<string, string>> = { default: 'standard_only', standard_only: 'standard_only' };

function aboutRequest(body: JsonObject, report: TranslationReport): JsonObject {
  const { metadata = {}, service_tier: tier } = body;
  const own = isObject(metadata) ? readText(metadata.user_id) : undefined;
  const others = isObject(metadata) ? Object.keys(metadata).filter((key) => key !== 'user_id') : [];
  if (others.length > 0) report.drop('metadata');
  if (body.seed !== undefined) report.drop('seed');
  const user = own ?? readText(body.safety_identifier) ?? readText(body.user);
  const known = typeof tier === 'string' ? TIERS[tier] : undefined;
  if (tier !== undefined && tier !== 'auto' && known === undefined) report.drop('service_tier');
  return {
    ...(user === undefined ? {} : { metadata: { user_id: own ?? opaque(user) } }),
    ...(known === undefined ? {} : { service_tier: known }),
  };
}

function opaque(user: string): string {
  return OPAQUE_ID.test(user) && user.length <= MAX_USER_CHARS ? user : toolCallId(user);
}

/**
 * A caller who sets no mark of its own pays the full price of its whole history at every turn (A9).
 * https://platform.claude.com/docs/en/build-with-claude/prompt-caching#automatic-caching (2026-11-22)
 */
function withPromptCache(
  body: JsonObject,
  { system, messages }: Conversation,
  family: ClaudeFamily,
): JsonObject {
  const hasTools = readArray(body.tools).length > 0;
  const isGrowing = hasTools || messages.some(({ role }) => role === 'assistant');
  const blocks = [...system, ...messages.flatMap(({ content }) => content), ...readArray(body.tools)];
  const isMarked =
    body.cache_control !== undefined ||
    blocks.some((block) => isObject(block) && block.cache_control !== undefined);
  const isWanted = family.cachesPrefixes && isGrowing && !isMarked;
  return isWanted ? { ...body, cache_control: { type: 'ephemeral' } } : body;
}
