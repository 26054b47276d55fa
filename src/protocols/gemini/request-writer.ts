/** Writes a request in OpenAI's form as one of Gemini's `generateContent` that means the same (A2). */

import { isAboutRequest, isDefault, TranslationReport } from '../../request-translation/dropped-fields.ts';
import type { LimitedBody } from '../../request-translation/output-limit.ts';
import { convertLegacyFunctions } from '../../request-translation/tools.ts';
import {
  type TranslatedRequest,
  type WriteOptions,
  withoutNulls,
} from '../../request-translation/translate.ts';
import {
  isObject,
  type JsonObject,
  keepEntries,
  objectOf,
  omit,
  ownValue,
  readArray,
  readCount,
  readText,
} from '../../shared/json.ts';
import { bareModel, familyOf, type GeminiFamily } from './family.ts';
import { CONFIG_FIELDS, wantsMoreThanText, writeConfig } from './request-config.ts';
import { writeContents } from './request-contents.ts';
import { writeToolChoice, writeTools } from './request-tools.ts';

/** Read elsewhere, or nothing that an API of another form would have to be told. */
const READ: ReadonlySet<string> = new Set([
  ...CONFIG_FIELDS,
  ...['model', 'messages', 'stream', 'stream_options', 'usage', 'extra_body', 'service_tier'],
  ...['tools', 'tool_choice', 'web_search_options'],
]);

/** Fields that change the answer and have no equal here: they would be lost in silence (Q6). */
const WITHOUT_EQUAL = ['logit_bias', 'prediction', 'audio'];

/** Google's own words, as its clients and those of its compatible endpoint write them: its JSON takes either spelling. */
const OWN: Readonly<Record<string, string>> = {
  safety_settings: 'safetySettings',
  cached_content: 'cachedContent',
  generation_config: 'generationConfig',
  tool_config: 'toolConfig',
  thinking_config: 'thinkingConfig',
  system_instruction: 'systemInstruction',
};

/** Written from the messages alone: under these names a file would escape the bound of the prompt (G2). */
const FROM_MESSAGES = ['contents', 'systemInstruction'];

/** A model's name becomes part of a path: nothing but these leads out of it. */
const MODEL = /^(?:models\/|tunedModels\/)?[A-Za-z0-9][\w.:-]*$/;

/**
 * Tiers by their names here; OpenAI's `scale` and `fast` are none. https://ai.google.dev/gemini-api/docs/flex-inference, by
 * prism-php/prism#1002, 2026-04-03; https://ai.google.dev/gemini-api/docs/optimization (read 2026-11-22).
 */
const TIERS: Readonly<Record<string, string>> = {
  default: 'standard',
  standard: 'standard',
  flex: 'flex',
  priority: 'priority',
};

export function writeGenerateContent(
  asked: JsonObject,
  { model, provider, providerId, unsupported }: WriteOptions,
  families: readonly GeminiFamily[],
): TranslatedRequest {
  const report = new TranslationReport(provider, unsupported);
  const body = convertLegacyFunctions(withOwnNames(withoutNulls(asked), report));
  const family = familyOf(families, model);
  if (!MODEL.test(model)) report.fail('model', `${provider} has no model of such a name`);
  if (wantsMoreThanText(body)) withoutEqual('modalities', provider, report);
  const { contents, systemInstruction } = writeContents(readArray(body.messages), family, providerId, report);
  const tools = writeTools(body, report);
  const ownConfig = {
    ...inCamelCase(objectOf(body.generationConfig)),
    ...(isObject(body.thinkingConfig) ? { thinkingConfig: body.thinkingConfig } : {}),
  };
  const config = writeConfig(body, family, ownConfig, report);
  const toolConfig = { ...writeToolChoice(body), ...objectOf(body.toolConfig) };
  const written: JsonObject = {
    ...otherFields(body, provider, report),
    contents,
    ...(systemInstruction === undefined ? {} : { systemInstruction }),
    ...(tools === undefined ? {} : { tools }),
    ...(Object.keys(toolConfig).length === 0 ? {} : { toolConfig }),
    ...(config === undefined ? {} : { generationConfig: config }),
    ...writeTier(body.service_tier, report),
  };
  const { error, dropped, changed } = report;
  return error === null ? { kind: 'body', body: written, dropped, changed } : { kind: 'error', error };
}

/** The written body with this limit (G2). Its number of candidates is the writer's own. */
export function withWrittenOutputLimit(body: JsonObject, tokens: number): LimitedBody {
  const { generationConfig } = body;
  return {
    body: { ...body, generationConfig: { ...objectOf(generationConfig), maxOutputTokens: tokens } },
    dropped: [],
  };
}

/** The limit in a body that was written so (G2). */
export function writtenOutputLimit({ generationConfig }: JsonObject): number | null {
  return readCount(objectOf(generationConfig).maxOutputTokens) || null;
}

/** The path below the base URL: whole, or as events and never as the growing array. */
export function generateContentPath({ model, stream }: JsonObject): string {
  const name = bareModel(readText(model) ?? '');
  const path = `/v1beta/${name.includes('/') ? name : `models/${name}`}`;
  return stream === true ? `${path}:streamGenerateContent?alt=sse` : `${path}:generateContent`;
}

/**
 * Google's words in one spelling, also those that its compatible endpoint takes in `extra_body.google`. OpenAI's words count in the
 * body itself alone, where limits read them.
 */
function withOwnNames(body: JsonObject, report: TranslationReport): JsonObject {
  const google = objectOf(objectOf(body.extra_body).google);
  const own = keepEntries(
    google,
    (key) => !READ.has(key),
    (key) => report.drop(`extra_body.google.${key}`),
  );
  const all = { ...body, ...own };
  return Object.fromEntries(Object.entries(all).map(([key, value]) => [ownValue(OWN, key) ?? key, value]));
}

/** Of two spellings of one word the later counts. */
function inCamelCase(object: JsonObject): JsonObject {
  const camel = (key: string) => key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [camel(key), value]));
}

/** What is left of the body: Google's own words, and those that Weir does not know (Q7). */
function otherFields(body: JsonObject, provider: string, report: TranslationReport): JsonObject {
  const fields: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(
    omit(body, 'generationConfig', 'thinkingConfig', 'toolConfig'),
  )) {
    if (READ.has(field) || isDefault(field, value, body)) continue;
    // Parallel calls can't be turned off here; what a tier costs is said under OpenAI's name alone.
    const isLost =
      isAboutRequest(field) ||
      FROM_MESSAGES.includes(field) ||
      field === 'parallel_tool_calls' ||
      field === 'serviceTier';
    if (isLost) report.drop(field);
    else if (!WITHOUT_EQUAL.includes(field)) fields[field] = value;
    else withoutEqual(field, provider, report);
  }
  return fields;
}

function withoutEqual(field: string, provider: string, report: TranslationReport): void {
  if (report.mode === 'drop') return report.dropAllowed(field);
  const way = 'leave it out, or send the header x-weir-unsupported: drop';
  report.fail(field, `${provider} can't be asked for ${field} here: ${way}`);
}

function writeTier(tier: unknown, report: TranslationReport): JsonObject {
  const name = readText(tier);
  if (name === undefined || name === 'auto') return {};
  const serviceTier = ownValue(TIERS, name);
  if (serviceTier === undefined) report.drop('service_tier');
  return serviceTier === undefined ? {} : { serviceTier };
}
