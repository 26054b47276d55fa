/** Writes a `generateContent` request of Gemini. */

import type { NativeRequest } from '../../canonical/conversation.ts';
import {
  isAboutRequest,
  isDefault,
  type TranslationReport,
} from '../../request-translation/dropped-fields.ts';
import type { RequestForm, WriteOptions } from '../../request-translation/translate.ts';
import {
  isObject,
  type JsonObject,
  keepEntries,
  objectOf,
  omit,
  ownValue,
  readArray,
  readText,
} from '../../shared/json.ts';
import { words } from '../../shared/words.ts';
import { inCamelCase } from './enums.ts';
import { bareModel, familyOf, type GeminiDialect, type GeminiFamily } from './family.ts';
import { CONFIG_FIELDS, writeConfig } from './request-config.ts';
import { writeContents } from './request-contents.ts';
import { writeToolChoice, writeTools } from './request-tools.ts';

const WHOLE: GeminiDialect = { fetchesMedia: true };

/** @param toolNames the names that the provider accepts for tools */
export function geminiForm(
  families: readonly GeminiFamily[],
  toolNames: RegExp,
  dialect: GeminiDialect = WHOLE,
): RequestForm {
  return {
    kind: 'native',
    toolNames,
    // 400 "Duplicate function declaration found: click": google-gemini/gemini-cli#22207, 2026-03-12.
    tools: {},
    fromSettings: FROM_SETTINGS,
    limit: { path: 'generationConfig.maxOutputTokens', name: 'max_tokens', competing: [] },
    write: (request, options, report) =>
      writeGenerateContent(request, options, { ...familyOf(families, options.model), ...dialect }, report),
  };
}

/** The path below the base URL. A streamed request gets server-sent events instead of a growing JSON array. */
export function generateContentPath({ model, stream }: { model?: unknown; stream?: unknown }): string {
  const path = `/v1beta/${modelPath(readText(model) ?? '')}`;
  return stream === true ? `${path}:streamGenerateContent?alt=sse` : `${path}:generateContent`;
}

/** The model's name in paths and bodies: `models/gemini-3-flash`, `tunedModels/x`, `endpoints/x`. */
export function modelPath(model: string): string {
  const name = bareModel(model);
  return name.includes('/') ? name : `models/${name}`;
}

/** OpenAI fields that are written below, and fields without a meaning for another API. */
const FROM_SETTINGS: readonly string[] = [
  ...CONFIG_FIELDS,
  ...words(
    'model stream stream_options usage service_tier modalities parallel_tool_calls web_search_options',
  ),
];

/** Fields that change the output and have no equivalent. */
const UNSUPPORTED = ['logit_bias', 'prediction', 'audio'];

/**
 * Fields that are never sent. The contents come only from the messages: a file in these fields would escape the upper bound of the
 * prompt. The tier, which decides the price, is set only by OpenAI's `service_tier`.
 */
const NEVER_SENT = ['contents', 'systemInstruction', 'serviceTier'];

/** Fields that no native name can set. */
const NOT_NATIVE = [...FROM_SETTINGS, 'messages', 'extra_body'];

/** Google's own fields in snake case, as some clients and the compatible endpoint write them. */
const NATIVE_NAMES: Readonly<Record<string, string>> = {
  safety_settings: 'safetySettings',
  cached_content: 'cachedContent',
  generation_config: 'generationConfig',
  tool_config: 'toolConfig',
  thinking_config: 'thinkingConfig',
  system_instruction: 'systemInstruction',
};

/** The model becomes part of the URL's path, so no other characters are allowed. */
const MODEL =
  /^(?:models\/|tunedModels\/|(?:projects\/[\w.:-]+\/locations\/[\w-]+\/)?endpoints\/)?[A-Za-z0-9][\w.:-]*$/;

function writeGenerateContent(
  request: NativeRequest,
  { model, provider, providerId }: WriteOptions,
  family: GeminiFamily & GeminiDialect,
  report: TranslationReport,
): JsonObject {
  const { settings, extra, turns, tools: given = [] } = request;
  const { search, plain } = settings;
  const native = withNativeNames(extra, report);
  const { generationConfig, thinkingConfig, toolConfig } = native;
  if (!MODEL.test(model)) report.fail('model', `${provider} has no model of this name`);
  // A chat response can hold only text.
  if (readArray(plain.modalities).some((modality) => modality !== 'text')) report.refuse('modalities');
  const { contents, systemInstruction } = writeContents(turns, family, providerId, report);
  const tools = writeTools(given, search, report);
  const nativeConfig = {
    ...inCamelCase(objectOf(generationConfig)),
    ...(isObject(thinkingConfig) ? { thinkingConfig } : {}),
  };
  const config = writeConfig(settings, family, nativeConfig, report);
  const choice = { ...writeToolChoice(request), ...objectOf(toolConfig) };
  const body: JsonObject = {
    ...otherFields(omit(native, 'generationConfig', 'thinkingConfig', 'toolConfig'), report),
    contents,
    ...(systemInstruction === undefined ? {} : { systemInstruction }),
    ...(tools === undefined ? {} : { tools }),
    ...(Object.keys(choice).length === 0 ? {} : { toolConfig: choice }),
    ...(config === undefined ? {} : { generationConfig: config }),
    ...writeTier(plain.service_tier, report),
  };
  // Parallel calls can't be turned off.
  if (given.length > 0 && (plain.parallel_tool_calls ?? true) !== true) report.drop('parallel_tool_calls');
  return body;
}

/**
 * Google's own fields in camel case, including those in `extra_body.google`, which the compatible endpoint takes. OpenAI fields are
 * read only from the body itself, because limits read them there.
 */
function withNativeNames(extra: JsonObject, report: TranslationReport): JsonObject {
  const google = objectOf(objectOf(extra.extra_body).google);
  const native = keepEntries(
    google,
    (key) => !NOT_NATIVE.includes(key),
    (key) => report.drop(`extra_body.google.${key}`),
  );
  const all = { ...omit(extra, 'extra_body'), ...native };
  return Object.fromEntries(
    Object.entries(all).map(([key, value]) => [ownValue(NATIVE_NAMES, key) ?? key, value]),
  );
}

/** The remaining fields: Google's own, and those that Weir does not know. */
function otherFields(body: JsonObject, report: TranslationReport): JsonObject {
  const fields: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(body)) {
    if (isDefault(field, value, body)) continue;
    if (isAboutRequest(field) || NEVER_SENT.includes(field)) report.drop(field);
    else if (UNSUPPORTED.includes(field)) report.refuse(field);
    else fields[field] = value;
  }
  return fields;
}

/**
 * OpenAI's tiers in Google's names; `scale` and `fast` have none. https://ai.google.dev/gemini-api/docs/flex-inference, by
 * prism-php/prism#1002, 2026-04-03; https://ai.google.dev/gemini-api/docs/optimization (read 2026-11-22).
 */
const TIERS: Readonly<Record<string, string>> = {
  default: 'standard',
  standard: 'standard',
  flex: 'flex',
  priority: 'priority',
};

function writeTier(tier: unknown, report: TranslationReport): JsonObject {
  const name = readText(tier);
  if (name === undefined || name === 'auto') return {};
  const serviceTier = ownValue(TIERS, name);
  if (serviceTier === undefined) report.drop('service_tier');
  return serviceTier === undefined ? {} : { serviceTier };
}
