/**
 * Writes a request of Bedrock's Converse.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html (2026-11-28)
 */
import type { NativeRequest, RequestSettings } from '../../canonical/conversation.ts';
import { nearestEffort } from '../../facts/efforts.ts';
import {
  isAboutRequest,
  isDefault,
  type TranslationReport,
} from '../../request-translation/dropped-fields.ts';
import { requestedEffort } from '../../request-translation/effort.ts';
import { COMPETING_LIMITS, REFUSED, type RequestRules } from '../../request-translation/rules.ts';
import type { RequestForm, WriteOptions } from '../../request-translation/translate.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  omit,
  ownValue,
  readCount,
  readText,
} from '../../shared/json.ts';
import { words } from '../../shared/words.ts';
import { familyOf as claudeFamilyOf } from '../anthropic-messages/family.ts';
import { writeSchema } from '../anthropic-messages/request-schema.ts';
import { withHiddenThinking, writeSampling, writeThinking } from '../anthropic-messages/request-thinking.ts';
import { type ConverseFamilies, type ConverseFamily, familyOf } from './family.ts';
import { type ConverseConversation, cachePoint, writeTurns } from './request-messages.ts';
import { writeToolConfig } from './request-tools.ts';

/** Fields that this folder writes. The rules below apply to the others. */
const WRITTEN = words(`
  model stream stream_options usage max_tokens max_completion_tokens stop temperature top_p top_k
  reasoning_effort reasoning thinking output_config response_format user safety_identifier metadata
  service_tier seed parallel_tool_calls web_search_options
`);

/** Fields that change the output and have no equivalent. */
const UNSUPPORTED = words(`
  n logprobs top_logprobs logit_bias presence_penalty frequency_penalty modalities audio prediction
  verbosity
`);

const OTHER_FIELDS: RequestRules = {
  fields: Object.fromEntries(UNSUPPORTED.map((field) => [field, REFUSED])),
  messages: { reasoning: [] },
  streamUsage: 'always',
};

/** Converse's own fields, which a client may send under their names. `inferenceConfig` and the tier are those of OpenAI's names. */
const OWN_FIELDS = words(`
  additionalModelRequestFields additionalModelResponseFieldPaths guardrailConfig performanceConfig
  requestMetadata promptVariables
`);

/** Names of tools: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolSpecification.html (2026-11-28). */
const TOOL_NAMES = /^[a-zA-Z0-9_-]{1,64}$/;
/** Claude's keys of parameters. */
const TOOL_KEYS = /^[a-zA-Z0-9_.-]{1,64}$/;

/** The path below the host: an id of a model, of a profile or an ARN is one step of it. */
export function conversePath({ model, stream }: { model?: unknown; stream?: unknown }): string {
  const id = encodeURIComponent((readText(model) ?? '').toWellFormed());
  return `/model/${id}/${stream === true ? 'converse-stream' : 'converse'}`;
}

/** @param guardrail the deployment's guardrail, which no request replaces; absent: that of the request applies */
export function converseForm(families: ConverseFamilies, guardrail?: JsonObject): RequestForm {
  return {
    kind: 'native',
    toolNames: TOOL_NAMES,
    tools: { plainRoots: true, keys: TOOL_KEYS },
    rules: OTHER_FIELDS,
    fromSettings: WRITTEN,
    takesGuardrails: true,
    takesCitations: true,
    limit: {
      path: 'inferenceConfig.maxTokens',
      name: 'max_tokens',
      competing: [
        ...COMPETING_LIMITS,
        ...['max_tokens', 'max_tokens_to_sample', 'max_gen_len', 'maxTokens'].map(
          (name) => `additionalModelRequestFields.${name}`,
        ),
        'additionalModelRequestFields.inferenceConfig.maxTokens',
      ],
    },
    write: (request, options, report) => writeConverse(request, options, families, guardrail, report),
  };
}

function writeConverse(
  request: NativeRequest,
  options: WriteOptions,
  families: ConverseFamilies,
  guardrail: JsonObject | undefined,
  report: TranslationReport,
): JsonObject {
  const { settings, extra, turns, toolKeys } = request;
  const family = familyOf(families, options.model);
  const conversation = writeTurns(turns, { family, providerId: options.providerId, toolKeys, report });
  report.documents = conversation.documents.take();
  const toolConfig = writeToolConfig(request, conversation, family, report);
  const inference = writeInference(request, options, family, families, report);
  const own = ownFields(extra, guardrail, options.provider, report);
  const additional = { ...inference.additional, ...objectOf(own.additionalModelRequestFields) };
  const format = writeFormat(settings, family, report);
  const tier = writeTier(settings.plain.service_tier, report);
  reportUnwritten(settings, request.tools, report);
  const body: JsonObject = {
    ...omit(own, 'additionalModelRequestFields'),
    messages: conversation.messages,
    ...(conversation.system.length === 0 ? {} : { system: conversation.system }),
    ...(Object.keys(inference.config).length === 0 ? {} : { inferenceConfig: inference.config }),
    ...(toolConfig === undefined ? {} : { toolConfig }),
    ...(Object.keys(additional).length === 0 ? {} : { additionalModelRequestFields: additional }),
    ...(format === undefined ? {} : { outputConfig: { textFormat: format } }),
    ...(tier === undefined ? {} : { serviceTier: { type: tier } }),
  };
  return options.promptCache === 'auto' ? withPromptCache(body, conversation, family) : body;
}

interface Inference {
  readonly config: JsonObject;
  /** Parts of `additionalModelRequestFields`. */
  readonly additional: JsonObject;
}

function writeInference(
  request: NativeRequest,
  { model, hidesReasoning }: WriteOptions,
  family: ConverseFamily,
  families: ConverseFamilies,
  report: TranslationReport,
): Inference {
  const { settings } = request;
  const { outputLimit, plain } = settings;
  const stop = settings.stop.filter((word) => typeof word !== 'string' || word.trim() !== '');
  if (stop.length < settings.stop.length) report.drop('stop');
  const stopSequences = stop.length === 0 ? {} : { stopSequences: stop };
  const limit = typeof outputLimit === 'object' ? outputLimit.raw : outputLimit;
  if (family.effort === 'claude') {
    const claude = claudeFamilyOf(families.claude, model);
    // A budget of thinking must be below the limit, and Bedrock's default limit may not be.
    const maxTokens = Math.min(readCount(limit) || claude.maxTokens, claude.maxTokens);
    if (readCount(limit) !== undefined && maxTokens !== limit) report.change('max_tokens');
    const thinking = settings.thinking ?? request.thinking;
    const asked = { ...settings, thinking, effort: settings.effort ?? requestedEffort({ thinking }) };
    const written = writeThinking(asked, claude, maxTokens, report);
    const { temperature, top_p, ...other } = writeSampling(plain, written, claude, report);
    const sent = { ...withoutFormat({ ...written }), ...other };
    return {
      config: {
        maxTokens: typeof outputLimit === 'object' ? limit : maxTokens,
        ...(temperature === undefined ? {} : { temperature }),
        ...(top_p === undefined ? {} : { topP: top_p }),
        ...stopSequences,
      },
      additional: hidesReasoning === true ? withHiddenThinking(sent, claude) : sent,
    };
  }
  const { temperature, top_p, top_k } = plain;
  if (top_k !== undefined && family.topK === undefined) report.drop('top_k');
  return {
    config: {
      ...(limit === undefined ? {} : { maxTokens: limit }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(top_p === undefined ? {} : { topP: top_p }),
      ...stopSequences,
    },
    additional: {
      ...writeEffort(settings, family, report),
      ...(top_k === undefined || family.topK === undefined ? {} : nested(family.topK, top_k)),
    },
  };
}

/** The format is Converse's own. */
function withoutFormat({ output_config, ...rest }: JsonObject): JsonObject {
  const config = omit(objectOf(output_config), 'format');
  return Object.keys(config).length === 0 ? rest : { ...rest, output_config: config };
}

function nested([first = '', ...rest]: readonly string[], value: unknown): JsonObject {
  return { [first]: rest.length === 0 ? value : nested(rest, value) };
}

function writeEffort(
  { effort: requested }: RequestSettings,
  { effort: form, efforts = [] }: ConverseFamily,
  report: TranslationReport,
): JsonObject {
  if (requested === undefined) return {};
  const { level } = requested;
  if (form === 'nova' && level === 'none') return { reasoningConfig: { type: 'disabled' } };
  if (form === 'none') {
    if (level !== 'none') report.drop('reasoning_effort');
    return {};
  }
  const word = level === 'none' ? efforts[0] : nearestEffort(level, efforts);
  if (word === undefined) return {};
  if (word !== level) report.change('reasoning_effort');
  return form === 'nova'
    ? { reasoningConfig: { type: 'enabled', maxReasoningEffort: word } }
    : { reasoning_effort: word };
}

const FORMAT_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** `outputConfig.textFormat`, whose schema is a text: recorded, bedrock--glm-json. */
function writeFormat(
  { format, outputConfig }: RequestSettings,
  family: ConverseFamily,
  report: TranslationReport,
): JsonObject | undefined {
  const own = objectOf(outputConfig.format);
  const given = format?.schema ?? (isObject(own.schema) ? own.schema : undefined);
  if (format === undefined && given === undefined) return undefined;
  if (given === undefined) {
    report.refuse('response_format');
    return undefined;
  }
  const { name, description } = objectOf(format?.raw.json_schema, format?.raw);
  const schema =
    family.effort === 'claude' ? writeSchema(given, () => report.change('response_format')) : given;
  const text = readText(description);
  return {
    type: 'json_schema',
    structure: {
      jsonSchema: {
        name: typeof name === 'string' && FORMAT_NAME.test(name) ? name : 'output',
        schema: JSON.stringify(schema),
        ...(text === undefined ? {} : { description: text }),
      },
    },
  };
}

/** OpenAI's tiers in Bedrock's names: recorded, bedrock--service-tier. */
const TIERS: Readonly<Record<string, string>> = {
  ...{ default: 'default', standard: 'default', standard_only: 'default' },
  ...{ flex: 'flex', priority: 'priority', reserved: 'reserved' },
};

function writeTier(tier: unknown, report: TranslationReport): string | undefined {
  const name = readText(tier);
  if (name === undefined || name === 'auto') return undefined;
  const type = ownValue(TIERS, name);
  if (type === undefined) report.drop('service_tier');
  return type;
}

function reportUnwritten(
  { metadata, plain }: RequestSettings,
  tools: NativeRequest['tools'],
  report: TranslationReport,
): void {
  if (Object.keys(metadata).some((key) => key !== 'user_id')) report.drop('metadata');
  if (plain.seed !== undefined) report.drop('seed');
  const isSerial = plain.parallel_tool_calls === false && (tools ?? []).length > 0;
  if (isSerial) report.drop('parallel_tool_calls');
}

/** The remaining fields: Converse's own. Others are unknown to it, and a strict API. */
function ownFields(
  extra: JsonObject,
  guardrail: JsonObject | undefined,
  provider: string,
  report: TranslationReport,
): JsonObject {
  const fields: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(extra)) {
    if (isDefault(field, value, extra)) continue;
    if (OWN_FIELDS.includes(field)) fields[field] = value;
    else if (isAboutRequest(field)) report.drop(field);
    else report.refuse(field);
  }
  const { guardrailConfig: given } = fields;
  if (given !== undefined && !isObject(given))
    report.fail(
      'guardrailConfig',
      'guardrailConfig must be an object with guardrailIdentifier and guardrailVersion',
    );
  if (guardrail === undefined) return fields;
  if (given !== undefined && JSON.stringify(given) !== JSON.stringify(guardrail))
    report.fail('guardrailConfig', `${provider} has a guardrail of the deployment: remove guardrailConfig`);
  return { ...fields, guardrailConfig: guardrail };
}

/**
 * Adds a cache point at the end of a growing conversation whose client set none: each turn would pay the full price of
 * the whole history.
 */
function withPromptCache(
  body: JsonObject,
  { messages, system }: ConverseConversation,
  family: ConverseFamily,
): JsonObject {
  const point = family.effort === 'claude' ? cachePoint({}, family) : null;
  const last = messages.at(-1);
  const isGrowing = body.toolConfig !== undefined || messages.some(({ role }) => role === 'assistant');
  if (point === null || !isGrowing || last?.role !== 'user') return body;
  const blocks = [...system, ...messages.flatMap(({ content }) => content)];
  const tools = objectOf(body.toolConfig).tools;
  const isMarked = [...blocks, ...(Array.isArray(tools) ? tools : [])].some(
    (block) => isObject(block) && block.cachePoint !== undefined,
  );
  if (isMarked) return body;
  return { ...body, messages: [...messages.slice(0, -1), { ...last, content: [...last.content, point] }] };
}
