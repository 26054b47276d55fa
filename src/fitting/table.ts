/** Applies the rows of a provider's table: to a body in OpenAI's form, and to one that passes to its provider. */
import { isDefault, isOptional, type TranslationReport } from '../request-translation/dropped-fields.ts';
import { reasoningFamily, rewriteEffort } from '../request-translation/effort.ts';
import type { EffortRules, FieldRule } from '../request-translation/rules.ts';
import {
  isObject,
  type JsonObject,
  keepEntries,
  mapValues,
  omit,
  ownValue,
  readArray,
  readText,
} from '../shared/json.ts';
import type { TableRow } from './rows.ts';

/** What the rows of a table depend on besides the body. */
export interface TableOptions {
  readonly report: TranslationReport;
  /** By its maker's name. */
  readonly model: string;
  /** The client used another protocol than Chat Completions. Absent: false. */
  readonly isFromOtherProtocol?: boolean | undefined;
}

/** Applies one row to a body in OpenAI's form. The same body if it changes nothing. */
export function applyToChat(
  row: TableRow,
  body: JsonObject,
  { report, model, isFromOtherProtocol }: TableOptions,
): JsonObject {
  switch (row.kind) {
    case 'effort':
      return rewriteEffort(body, model, row.rules, report, isFromOtherProtocol);
    case 'adjustment': {
      const { when, set, reports } = row.adjustment;
      if (!when(body)) return body;
      if (reports !== null) report.change(reports);
      return { ...body, ...set(body) };
    }
    case 'fields':
      return rewriteFields(body, row.fields, report);
    case 'words':
      return withOwnWords(body, row.words);
    case 'family':
      return body;
  }
}

/** Applies one row to a body that passes to its provider as its client wrote it. Only what the model would refuse is changed. */
export function applyToNative(row: TableRow, body: JsonObject, { report, model }: TableOptions): JsonObject {
  switch (row.kind) {
    case 'effort':
      return withKnownEffort(body, model, row.rules, report);
    case 'fields':
      return withoutRefusedOptions(body, row.fields, report);
    case 'family':
      return row.fit(body, model, report);
    default:
      return body;
  }
}

/** The provider's words for OpenAI's values. */
function withOwnWords(body: JsonObject, words: Extract<TableRow, { kind: 'words' }>['words']): JsonObject {
  return mapValues(
    body,
    (value, field) =>
      (typeof value === 'string' ? ownValue(ownValue(words, field), value) : undefined) ?? value,
  );
}

type FieldRules = Extract<TableRow, { kind: 'fields' }>['fields'];

function rewriteFields(body: JsonObject, fields: FieldRules, report: TranslationReport): JsonObject {
  if (!Object.keys(body).some((field) => ownValue(fields, field) !== undefined)) return body;
  const sent: [string, unknown][] = [];
  for (const [field, value] of Object.entries(body)) {
    const rule = ownValue(fields, field);
    if (rule === undefined) sent.push([field, value]);
    else if (rule.kind === 'renamed') {
      // A value under the provider's own name takes precedence.
      if (body[rule.to] === undefined) sent.push([rule.to, value]);
    } else if (rule.kind === 'dropped') {
      if (!isDefault(field, value, body)) report.drop(field);
    } else if (rule.kind !== 'implied' && isSent(field, rule, body, report)) {
      sent.push([field, value]);
    }
  }
  return Object.fromEntries(sent);
}

/** A native body without the fields that the table refuses and that a client may miss: those about the request, and sampling. */
function withoutRefusedOptions(body: JsonObject, fields: FieldRules, report: TranslationReport): JsonObject {
  return keepEntries(body, (field, value) => {
    const rule = ownValue(fields, field);
    if (rule?.kind !== 'refused' || !isOptional(field) || value === null) return true;
    return isSent(field, rule, body, report);
  });
}

/** Whether a field is sent although the provider refuses or ignores it. {@link FieldRule} describes the cases. */
function isSent(
  field: string,
  rule: Extract<FieldRule, { kind: 'refused' | 'ignored' }>,
  body: JsonObject,
  report: TranslationReport,
): boolean {
  if (rule.when !== undefined && !rule.when(body)) return true;
  if (isDefault(field, body[field], body)) return false;
  if (isOptional(field)) {
    if (rule.kind === 'refused') report.drop(field);
    return rule.kind === 'ignored';
  }
  if (rule.kind === 'refused' && report.mode !== 'drop') return true;
  report.refuse(field);
  return false;
}

function withKnownEffort(
  body: JsonObject,
  model: string,
  rules: EffortRules,
  report: TranslationReport,
): JsonObject {
  const family = reasoningFamily(rules.families ?? [], model);
  if (family === undefined) return body;
  if (family.reasons === 'never') return withoutReasoning(body, report);
  if (!isObject(body.reasoning)) return body;
  const { effort, summary, ...rest } = body.reasoning;
  const requestedEffort = readText(effort);
  const rewritten =
    requestedEffort === undefined
      ? {}
      : rewriteEffort({ reasoning: { effort: requestedEffort } }, model, rules, report, true);
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

/** In `include` of Responses: reasoning that is sent back by a client which stores nothing at the provider. */
export const ENCRYPTED_REASONING = 'reasoning.encrypted_content';

/** Codex sends `reasoning` and asks for encrypted reasoning at every model. */
function withoutReasoning(body: JsonObject, report: TranslationReport): JsonObject {
  const effort = isObject(body.reasoning) ? readText(body.reasoning.effort) : undefined;
  if (effort !== undefined && effort !== 'none') report.drop('reasoning');
  const include = readArray(body.include).filter((entry) => entry !== ENCRYPTED_REASONING);
  const isAsked = Array.isArray(body.include) && include.length < body.include.length;
  const rest = isObject(body.reasoning) ? omit(body, 'reasoning') : body;
  return isAsked ? { ...rest, include } : rest;
}
