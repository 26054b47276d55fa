/**
 * Gemini's generateContent as a client protocol: checks requests, and translates their settings and tools into those of
 * Chat Completions.
 */
import { type ApiError, apiError } from '../../canonical/error.ts';
import { fieldOf, fieldsWhere } from '../../facts/fields.ts';
import { ReportedFields } from '../../request-translation/dropped-fields.ts';
import { NO_PARAMETERS } from '../../request-translation/tools.ts';
import { isObject, type JsonObject, objectOf, ownValue, readArray, readText } from '../../shared/json.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import { words } from '../../shared/words.ts';
import type { ClientProtocol, ClientRequest } from '../shared/client-protocol.ts';
import { isPresent, type ValueTypes, validateTypes } from '../shared/validate-types.ts';
import { readContents } from './client-contents.ts';
import { errorResponse } from './client-errors.ts';
import { type ClientForm, type GeminiSession, JSON_FORM } from './client-form.ts';
import { readSchema } from './client-schema.ts';
import { GeminiJsonWriter, GeminiWriter } from './client-writer.ts';
import { enumName, inCamelCase } from './enums.ts';
import { geminiPassthrough } from './passthrough.ts';

/** The fields of chat that have the same value in `generationConfig`, by their names there. */
const CONFIG: ReadonlyMap<string, string> = new Map(
  fieldsWhere(({ configName }) => configName !== undefined).map((field) => [
    fieldOf(field).configName ?? '',
    field,
  ]),
);

const FIELD_NAMES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Array.from(CONFIG, ([name, field]) => [field, `generationConfig.${name}`])),
  ...{ max_tokens: 'generationConfig.maxOutputTokens', stop: 'stopSequences' },
  ...{
    response_format: 'generationConfig.responseSchema',
    modalities: 'generationConfig.responseModalities',
  },
  ...{ tool_choice: 'toolConfig', messages: 'contents', reasoning_effort: 'generationConfig.thinkingConfig' },
  ...{ thinking: 'generationConfig.thinkingConfig', service_tier: 'serviceTier' },
};

/** The protocol of errors, and of routes whose responses have no other form than JSON. */
export const gemini: ClientProtocol<GeminiSession> = geminiClient(JSON_FORM);

/** @param form that of the responses, as the path and the query name it */
export function geminiClient(form: ClientForm): ClientProtocol<GeminiSession> {
  return {
    id: 'gemini',
    passthrough: geminiPassthrough(form),
    takesVendorEvents: false,
    namesModelInPath: true,
    ...(form.kind === 'array' ? { streamType: 'application/json; charset=utf-8' } : {}),
    fieldNames: FIELD_NAMES,
    // Without stop sequences a text is only longer, but a refusal stops the client.
    optionalFields: ['stop'],
    readRequest: (body) => readRequest(body, form),
    streamWriter: (session, options) => new GeminiWriter(form, session, options),
    jsonWriter: (session, options) => new GeminiJsonWriter(form, session, options),
    errorResponse,
  };
}

/** The members of `generationConfig` that are read in another way than {@link CONFIG} says. */
const OTHER_CONFIG = words(`
  responseMimeType responseSchema responseJsonSchema _responseJsonSchema thinkingConfig responseModalities
`);

/** The fields of a body that are read. Others are dropped. */
const READ_FIELDS = [
  ...['model', 'contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'serviceTier'],
  'cachedContent',
  // Of Bedrock: a target that cannot take it refuses it.
  'guardrailConfig',
];

function readRequest(given: JsonObject, form: ClientForm): Result<ClientRequest<GeminiSession>, ApiError> {
  const body = inCamelCase(given);
  const contents = Array.isArray(body.contents)
    ? body.contents
    : isPresent(body.contents)
      ? [body.contents]
      : [];
  if (contents.length === 0 || !contents.every((one) => isObject(one) || typeof one === 'string'))
    return failure(
      apiError('invalid_request', 'contents must be a list with at least one content', 'contents'),
    );
  const dropped = new ReportedFields();
  for (const [field, value] of Object.entries(body)) {
    if (!READ_FIELDS.includes(field) && isPresent(value)) dropped.add(field);
  }
  const config = inCamelCase(objectOf(body.generationConfig));
  const thinking = inCamelCase(objectOf(config.thinkingConfig));
  const tools = readTools(body, dropped);
  const conversation = readContents(body.systemInstruction, contents, dropped);
  const tier = readText(body.serviceTier)?.toLowerCase();
  const format = readFormat(config);
  const googleOnly =
    tools.googleOnly ?? conversation.googleOnly ?? format.googleOnly ?? cachedContentOf(body);
  return ok({
    fields: {
      ...(form.kind === 'json' ? {} : { stream: true, stream_options: { include_usage: true } }),
      messages: [],
      ...tools.fields,
      ...readConfig(config, dropped),
      ...readThinking(thinking, dropped),
      ...format.fields,
      ...(tier === undefined ? {} : { service_tier: tier === 'standard' ? 'default' : tier }),
      ...(isPresent(body.guardrailConfig) ? { guardrailConfig: body.guardrailConfig } : {}),
    },
    turns: conversation.turns,
    dropped: dropped.list,
    translationError: googleOnly === null ? typeError(body) : onlyGoogle(googleOnly),
    isPinned: false,
    session: { showsThoughts: thinking.includeThoughts === true, hasTools: tools.fields.tools !== undefined },
  });
}

function onlyGoogle(path: string): ApiError {
  const message = `${path} is Google's alone: remove it, or name a model of gemini`;
  return apiError('unsupported_parameter', message, path);
}

function cachedContentOf({ cachedContent }: JsonObject): string | null {
  return isPresent(cachedContent) && cachedContent !== '' ? 'cachedContent' : null;
}

const OBJECT = { name: 'an object', fits: isObject };
const LIST = { name: 'a list', fits: Array.isArray };
const TYPES: ValueTypes = {
  tools: { name: 'a list of objects', fits: (value) => Array.isArray(value) && value.every(isObject) },
  toolConfig: OBJECT,
  generationConfig: OBJECT,
  systemInstruction: {
    name: 'a content or a text',
    fits: (value) => isObject(value) || Array.isArray(value) || typeof value === 'string',
  },
};
const CONFIG_TYPES: ValueTypes = { stopSequences: LIST, thinkingConfig: OBJECT, responseSchema: OBJECT };

/** The first value of a wrong type. The translation would drop it without a trace. */
function typeError(body: JsonObject): ApiError | null {
  const config = inCamelCase(objectOf(body.generationConfig));
  return validateTypes(body, TYPES) ?? validateTypes(config, CONFIG_TYPES, 'generationConfig.');
}

function readConfig(config: JsonObject, dropped: ReportedFields): JsonObject {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(config)) {
    if (!isPresent(value) || OTHER_CONFIG.includes(name)) continue;
    const field = name === 'maxOutputTokens' ? 'max_tokens' : CONFIG.get(name);
    if (field === undefined) dropped.add(`generationConfig.${name}`);
    // 0 means no limit.
    else if (field !== 'max_tokens' || value !== 0) fields[field] = numberIn(value);
  }
  const modalities = readArray(config.responseModalities).flatMap(
    (one) => enumName('responseModality', one)?.toLowerCase() ?? [],
  );
  return modalities.length === 0 ? fields : { ...fields, modalities };
}

/** JSON of protobuf may have numbers as texts. */
function numberIn(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(value) ? Number(value) : value;
}

/** A budget of -1 leaves the amount to the model. */
function readThinking({ thinkingLevel, thinkingBudget }: JsonObject, dropped: ReportedFields): JsonObject {
  const budget = numberIn(thinkingBudget);
  const level = readText(thinkingLevel)?.toLowerCase();
  if (level !== undefined && level !== 'thinking_level_unspecified') return { reasoning_effort: level };
  if (typeof thinkingLevel === 'number') dropped.add('generationConfig.thinkingConfig.thinkingLevel');
  if (budget === 0) return { reasoning_effort: 'none' };
  const isBudget = typeof budget === 'number' && budget > 0;
  return isBudget ? { thinking: { type: 'enabled', budget_tokens: budget } } : {};
}

function readFormat(config: JsonObject): { readonly fields: JsonObject; readonly googleOnly: string | null } {
  const { responseMimeType: type, responseSchema, responseJsonSchema = config._responseJsonSchema } = config;
  if (type === 'text/x.enum') return { fields: {}, googleOnly: 'generationConfig.responseMimeType' };
  const schema = isObject(responseJsonSchema)
    ? responseJsonSchema
    : isObject(responseSchema)
      ? readSchema(responseSchema)
      : null;
  if (schema !== null) {
    const json_schema = { name: 'output', schema };
    return { fields: { response_format: { type: 'json_schema', json_schema } }, googleOnly: null };
  }
  const isJson = type === 'application/json';
  return { fields: isJson ? { response_format: { type: 'json_object' } } : {}, googleOnly: null };
}

interface GeminiTools {
  readonly fields: JsonObject;
  /** The path of the first tool that only Google runs. */
  readonly googleOnly: string | null;
}

/** Reads `tools` and `toolConfig`. */
function readTools({ tools, toolConfig }: JsonObject, dropped: ReportedFields): GeminiTools {
  const all = readArray(tools).filter(isObject).map(inCamelCase);
  const hosted = all
    .flatMap((tool) => Object.keys(tool).filter((key) => isPresent(tool[key])))
    .find((key) => key !== 'functionDeclarations');
  const functions = all
    .flatMap(({ functionDeclarations }) => readArray(functionDeclarations).filter(isObject))
    .map((declaration) => readFunction(inCamelCase(declaration), dropped));
  const { functionCallingConfig, ...others } = inCamelCase(objectOf(toolConfig));
  for (const [key, value] of Object.entries(others)) if (isPresent(value)) dropped.add(`toolConfig.${key}`);
  const choice = readToolChoice(inCamelCase(objectOf(functionCallingConfig)));
  return {
    fields: {
      ...(functions.length === 0 ? {} : { tools: functions }),
      ...(functions.length === 0 || choice === undefined ? {} : { tool_choice: choice }),
    },
    googleOnly: hosted === undefined ? null : `tools.${hosted}`,
  };
}

const DECLARATION_KEYS = ['name', 'description', 'parameters', 'parametersJsonSchema'];

function readFunction(declaration: JsonObject, dropped: ReportedFields): JsonObject {
  const { name, description, parameters, parametersJsonSchema } = declaration;
  for (const [key, value] of Object.entries(declaration)) {
    if (!DECLARATION_KEYS.includes(key) && isPresent(value)) dropped.add(`tools.functionDeclarations.${key}`);
  }
  const schema = isObject(parametersJsonSchema)
    ? parametersJsonSchema
    : isObject(parameters)
      ? readSchema(parameters)
      : NO_PARAMETERS;
  return {
    type: 'function',
    function: {
      name,
      ...(readText(description) === undefined ? {} : { description }),
      parameters: schema,
    },
  };
}

const CHOICES: Readonly<Record<string, string>> = { ANY: 'required', NONE: 'none' };

function readToolChoice({ mode: given, allowedFunctionNames }: JsonObject): unknown {
  const mode = enumName('mode', given)?.toUpperCase() ?? '';
  const choice = ownValue(CHOICES, mode);
  const names =
    choice === 'none' ? [] : readArray(allowedFunctionNames).filter((one) => typeof one === 'string');
  const tools = names.map((name) => ({ type: 'function', function: { name } }));
  if (tools.length === 0) return choice;
  if (choice === 'required' && tools.length === 1) return tools[0];
  return { type: 'allowed_tools', allowed_tools: { mode: choice ?? 'auto', tools } };
}
