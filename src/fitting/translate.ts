/** Translates a request in OpenAI's form into the body that a provider accepts, with the same meaning (Q1-Q8). */
import type { TranslationReport } from '../request-translation/dropped-fields.ts';
import { requestedEffort } from '../request-translation/effort.ts';
import { followsUnsignedStep, rewriteMessages } from '../request-translation/messages.ts';
import type { RequestRules } from '../request-translation/rules.ts';
import { convertLegacyFunctions, rewriteTool } from '../request-translation/tools.ts';
import {
  isUsageInclude,
  type WriteOptions,
  withoutEmptySettings,
  withoutNulls,
} from '../request-translation/translate.ts';
import { isObject, type JsonObject, mapObjects, objectOf, omit, readArray } from '../shared/json.ts';
import { matchesModel } from '../shared/model-name.ts';
import { fitBody } from './fit.ts';
import { rowsOf } from './rows.ts';

/** Applies a provider's table to a body in OpenAI's form. The steps depend on their order: later ones read what earlier ones wrote. */
export function translateRequest(
  given: JsonObject,
  rules: RequestRules,
  options: WriteOptions,
  report: TranslationReport,
): JsonObject {
  const { model, provider, isFromOtherProtocol } = options;
  let body = withKnownChoice(withoutOffSearch(withoutNulls(given)));
  if (rules.refusesEmpty) body = withoutEmptySettings(body);
  if (rules.legacyFunctions === 'converted') body = convertLegacyFunctions(body);
  const form = { kind: 'chat', rules } as const;
  body = fitBody(body, rowsOf(rules), { form, report, model, isFromOtherProtocol }).body;
  if (rules.needsTextPrompt) body = withTextPrompt(body, provider, report);
  if (Array.isArray(body.tools)) {
    const tools = mapObjects(body.tools, (tool) => rewriteTool(tool, rules.messages, report));
    body = { ...body, tools };
  }
  if (Array.isArray(body.messages)) {
    body = { ...body, messages: rewriteMessages(body, options, rules.messages, report) };
  }
  body = withoutUnsignedReasoning(body, model, rules, report);
  if (rules.takesUsageInclude !== true && isUsageInclude(given.usage)) body = omit(body, 'usage');
  return withStreamUsage(body, rules);
}

/** xAI's field for searches, which says that there are none: @vibe-kit/grok-cli 0.0.34 sends it with each request (2026-11-23). */
function withoutOffSearch(body: JsonObject): JsonObject {
  const { search_parameters: search } = body;
  return isObject(search) && search.mode === 'off' ? omit(body, 'search_parameters') : body;
}

/** OpenAI's word for Mistral's `any`, which Mistral takes, too. */
function withKnownChoice(body: JsonObject): JsonObject {
  return body.tool_choice === 'any' ? { ...body, tool_choice: 'required' } : body;
}

function withTextPrompt(body: JsonObject, provider: string, report: TranslationReport): JsonObject {
  const [first, ...others] = readArray(body.prompt);
  if (!Array.isArray(body.prompt)) return body;
  if (typeof first === 'string' && others.length === 0) return { ...body, prompt: first };
  report.fail('prompt', `${provider} accepts one prompt in a request: send one request for each prompt`);
  return body;
}

/** Turns reasoning off where the model would refuse the last step of a tool loop, because its signed reasoning is missing. */
function withoutUnsignedReasoning(
  body: JsonObject,
  model: string,
  { messages: { signedSteps } }: RequestRules,
  report: TranslationReport,
): JsonObject {
  if (signedSteps === undefined || !matchesModel(signedSteps, model)) return body;
  const effort = requestedEffort(body)?.level ?? 'none';
  if (effort === 'none' || !followsUnsignedStep(readArray(body.messages))) return body;
  report.change('reasoning');
  return omit(body, 'reasoning', 'reasoning_effort');
}

/** OpenAI refuses `stream_options` in a request without `stream`. */
function withStreamUsage(body: JsonObject, { streamUsage }: RequestRules): JsonObject {
  if (streamUsage === 'always' || body.stream !== true) return omit(body, 'stream_options');
  return { ...body, stream_options: { ...objectOf(body.stream_options), include_usage: true } };
}
