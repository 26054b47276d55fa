/** Fits a Responses request that passes to its provider to the model: the effort, and fields that the model refuses. */
import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { reasoningFamily, rewriteEffort } from '../../request-translation/effort.ts';
import type { RequestRules } from '../../request-translation/rules.ts';
import { withoutRefusedOptions } from '../../request-translation/translate.ts';
import { isObject, type JsonObject, omit, readArray, readText } from '../../shared/json.ts';
import { ENCRYPTED } from './client-request.ts';

/**
 * A request of a model that no family matches is unchanged.
 * @param rules what the provider's Responses accept, as for requests that are translated
 */
export function fitResponses(body: JsonObject, rules: RequestRules, report: TranslationReport): JsonObject {
  return withoutRefusedOptions(withKnownEffort(body, rules, report), rules, report);
}

function withKnownEffort(body: JsonObject, rules: RequestRules, report: TranslationReport): JsonObject {
  const { effort: effortRules } = rules;
  const family = reasoningFamily(effortRules?.families ?? [], readText(body.model) ?? '');
  if (effortRules === undefined || family === undefined) return body;
  if (family.reasons === 'never') return withoutReasoning(body, report);
  if (!isObject(body.reasoning)) return body;
  const { effort, summary, ...rest } = body.reasoning;
  const requestedEffort = readText(effort);
  const rewritten =
    requestedEffort === undefined
      ? {}
      : rewriteEffort(
          { reasoning: { effort: requestedEffort } },
          String(body.model),
          effortRules,
          report,
          true,
        );
  const level = requestedEffort === undefined ? effort : rewritten.reasoning_effort;
  const isMute = family.refusesSummary === true && summary !== undefined && summary !== null;
  if (isMute) report.drop('reasoning.summary');
  if (level === effort && !isMute) return body;
  const reasoning = {
    ...(level === undefined ? {} : { effort: level }),
    ...(summary === undefined || isMute ? {} : { summary }),
    ...rest,
  };
  return Object.keys(reasoning).length === 0 ? omit(body, 'reasoning') : { ...body, reasoning };
}

/** Codex sends `reasoning` and asks for encrypted reasoning at every model. */
function withoutReasoning(body: JsonObject, report: TranslationReport): JsonObject {
  const effort = isObject(body.reasoning) ? readText(body.reasoning.effort) : undefined;
  if (effort !== undefined && effort !== 'none') report.drop('reasoning');
  const include = readArray(body.include).filter((entry) => entry !== ENCRYPTED);
  const isAsked = Array.isArray(body.include) && include.length < body.include.length;
  const rest = isObject(body.reasoning) ? omit(body, 'reasoning') : body;
  return isAsked ? { ...rest, include } : rest;
}
