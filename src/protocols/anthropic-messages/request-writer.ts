/** Writes a request of Messages. https://platform.claude.com/docs/en/api/messages (2026-11-22) */

import type { NativeRequest, RequestSettings, ResponseFormat } from '../../canonical/conversation.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { requestedEffort } from '../../request-translation/effort.ts';
import { COMPETING_LIMITS, REFUSED, type RequestRules } from '../../request-translation/rules.ts';
import type { RequestForm, WriteOptions } from '../../request-translation/translate.ts';
import { isObject, type JsonObject, ownValue, readArray, readCount, readText } from '../../shared/json.ts';
import { words } from '../../shared/words.ts';
import { type ClaudeFamilies, type ClaudeFamily, familyOf } from './family.ts';
import { type Message, type WrittenConversation, writeConversation } from './request-messages.ts';
import { writeSchema } from './request-schema.ts';
import { type SentThinking, withHiddenThinking, writeSampling, writeThinking } from './request-thinking.ts';
import { forcesCall, type SentTools, writeTools } from './request-tools.ts';

/** Fields that this folder writes. The rules below apply to the others. */
const TRANSLATED = words(`
  model parallel_tool_calls max_tokens max_completion_tokens stop temperature top_p top_k reasoning_effort
  reasoning thinking output_config response_format user safety_identifier metadata service_tier seed
`);

/** Anthropic answers unknown fields with 400 "Extra inputs are not permitted": anthropics/claude-code#11678, 2026-02, and others. */
const UNSUPPORTED = words(`
  n logprobs top_logprobs logit_bias presence_penalty frequency_penalty modalities audio prediction
  web_search_options store verbosity prompt_cache_key prompt_cache_retention prompt_cache_options
`);

const OTHER_FIELDS: RequestRules = {
  fields: Object.fromEntries(UNSUPPORTED.map((field) => [field, REFUSED])),
  messages: { reasoning: [] },
  streamUsage: 'always',
};

/** @param tools the names that the provider accepts for tools, and the keys for their parameters */
export function claudeForm(
  families: ClaudeFamilies,
  tools: { readonly names: RegExp; readonly keys: RegExp },
): RequestForm {
  return {
    kind: 'native',
    toolNames: tools.names,
    // 400 "Tool names must be unique": danny-avila/LibreChat#13162, 2026-05-17.
    // 400 "input_schema does not support oneOf, allOf, or anyOf at the top level": langchain-ai/langchain#39271, 2026-08-05.
    tools: { plainRoots: true, keys: tools.keys },
    rules: OTHER_FIELDS,
    fromSettings: TRANSLATED,
    takesCitations: true,
    // Anthropic refuses other names of the limit, but compatible servers may read them.
    limit: { path: 'max_tokens', competing: COMPETING_LIMITS },
    write: (request, options, report) =>
      writeMessages(request, options, familyOf(families, options.model), report),
  };
}

function writeMessages(
  request: NativeRequest,
  options: WriteOptions,
  family: ClaudeFamily,
  report: TranslationReport,
): JsonObject {
  const { settings, extra, turns, toolKeys } = request;
  const { providerId } = options;
  const conversation = writeConversation(turns, { family, providerId, toolKeys, report });
  report.documents = conversation.documents.take();
  const limit = writeLimit(settings.outputLimit, family, report);
  const tools = writeTools(request, family, report);
  const maxTokens = readCount(limit) || family.maxTokens;
  const written = writeThinking(withOwnThinking(request), family, maxTokens, report);
  if (request.thinking !== undefined && written.thinking?.type !== request.thinking.type) {
    report.change('thinking');
  }
  const thinking = withoutRefusedThinking(written, conversation.messages, tools, report);
  const sent: JsonObject = {
    ...extra,
    model: options.model,
    max_tokens: limit,
    ...(conversation.system.length === 0 ? {} : { system: conversation.system }),
    messages: conversation.messages,
    ...tools,
    ...withFormat(thinking, settings.format, report),
    ...stopSequences(settings.stop, report),
    ...writeSampling(settings.plain, thinking, family, report),
    ...aboutRequest(settings, report),
  };
  const body = options.hidesReasoning === true ? withHiddenThinking(sent, family) : sent;
  return options.promptCache === 'auto' ? withPromptCache(body, conversation, family) : body;
}

/** Of a Messages client its own `thinking` counts, with its `display`. Without an effort it reasons as much as the model chooses. */
function withOwnThinking({ settings, thinking = settings.thinking }: NativeRequest): RequestSettings {
  return { ...settings, thinking, effort: settings.effort ?? requestedEffort({ thinking }) };
}

/** `max_tokens` is required. The default is the model's maximum. An invalid limit is sent for Anthropic to refuse. */
function writeLimit(
  requested: RequestSettings['outputLimit'],
  { maxTokens }: ClaudeFamily,
  report: TranslationReport,
): unknown {
  if (typeof requested === 'object') return requested.raw;
  // 400 "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens".
  if (requested !== undefined && requested > maxTokens) report.change('max_tokens');
  return Math.min(requested ?? maxTokens, maxTokens);
}

/**
 * Turns thinking with a budget off where Anthropic refuses it: beside a forced call, and in a tool loop whose last step has no
 * thinking, because another provider made it or the client lost it. Adaptive thinking is not refused:
 * https://platform.claude.com/docs/en/build-with-claude/thinking-tool-workflows (2026-11-22).
 */
function withoutRefusedThinking(
  thinking: SentThinking,
  messages: readonly Message[],
  tools: SentTools,
  report: TranslationReport,
): SentThinking {
  const hasBudget = thinking.thinking?.type === 'enabled';
  if (!hasBudget || !(forcesCall(tools) || isStepWithoutThinking(messages))) return thinking;
  report.change('thinking');
  const { thinking: _, ...rest } = thinking;
  return rest;
}

/** 400 "Expected `thinking` or `redacted_thinking`, but found `tool_use`": BerriAI/litellm#37953, anomalyco/opencode#3077. */
function isStepWithoutThinking(messages: readonly Message[]): boolean {
  const results = messages.findLastIndex(({ content }) => content.some(({ type }) => type === 'tool_result'));
  const step = messages[results - 1];
  const isLast = messages.slice(results + 1).every(({ role }) => role !== 'assistant');
  if (step?.role !== 'assistant' || !isLast) return false;
  return !['thinking', 'redacted_thinking'].includes(readText(step.content[0]?.type) ?? '');
}

/** Anthropic has no equivalent of `json_object`, which has no schema. */
function withFormat(
  thinking: SentThinking,
  format: ResponseFormat | undefined,
  report: TranslationReport,
): SentThinking {
  const config = thinking.output_config;
  if (format === undefined || config?.format !== undefined) return thinking;
  if (format.schema === undefined) {
    report.refuse('response_format');
    return thinking;
  }
  const outputSchema = writeSchema(format.schema, () => report.change('response_format'));
  return { ...thinking, output_config: { ...config, format: { type: 'json_schema', schema: outputSchema } } };
}

/** 400 "stop_sequences: each stop sequence must contain non-whitespace". */
function stopSequences(stop: readonly unknown[], report: TranslationReport): JsonObject {
  const words = stop.filter((word) => typeof word !== 'string' || word.trim() !== '');
  if (words.length < stop.length) report.drop('stop');
  return words.length === 0 ? {} : { stop_sequences: words };
}

/**
 * Only opaque ids are accepted: 400 "user_id appears to contain an email address", BerriAI/litellm#10106, 2025-04-17;
 * 256 characters at most.
 */
const OPAQUE_ID = /^(?=[\d-]*[a-z_])[\w-]{1,256}$/i;

/** OpenAI's tiers in Anthropic's names. https://platform.claude.com/docs/en/api/service-tiers (2026-11-22) */
const TIERS: Readonly<Record<string, string>> = { default: 'standard_only', standard_only: 'standard_only' };

function aboutRequest({ metadata, user, plain }: RequestSettings, report: TranslationReport): JsonObject {
  const { seed, service_tier: tier } = plain;
  const userId =
    readText(metadata.user_id) ?? (user === undefined || OPAQUE_ID.test(user) ? user : toolCallId(user));
  if (Object.keys(metadata).some((key) => key !== 'user_id')) report.drop('metadata');
  if (seed !== undefined) report.drop('seed');
  const serviceTier = typeof tier === 'string' ? ownValue(TIERS, tier) : undefined;
  if (tier !== undefined && tier !== 'auto' && serviceTier === undefined) report.drop('service_tier');
  return {
    ...(userId === undefined ? {} : { metadata: { user_id: userId } }),
    ...(serviceTier === undefined ? {} : { service_tier: serviceTier }),
  };
}

/**
 * Adds the automatic cache mark if the client set none. Without it, each turn pays the full price of the whole history.
 * https://platform.claude.com/docs/en/build-with-claude/prompt-caching#automatic-caching (2026-11-22)
 */
function withPromptCache(
  body: JsonObject,
  { system, messages }: WrittenConversation,
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
