/** Rows: what is changed of a body, by a provider's table, by what a refusal said, now or to an earlier request, and by a key's limit. */
import type { TranslationReport } from '../request-translation/dropped-fields.ts';
import type { Adjustment, EffortRules, RequestRules } from '../request-translation/rules.ts';
import type { JsonObject } from '../shared/json.ts';
import { classOf, plain } from './body-fields.ts';

/** What a refusal says about the request. Each applies only to a request that meets its condition, so it can be remembered as it is. */
export type Finding =
  /** The model does not take the field, or the host does not know it (`isUnknown`). */
  | { readonly kind: 'unsupported'; readonly field: string; readonly isUnknown: boolean }
  /** The field has another name. */
  | { readonly kind: 'renamed'; readonly field: string; readonly to: string }
  /** The values that an effort may have: those of {@link isLevel}. */
  | { readonly kind: 'levels'; readonly field: string; readonly levels: readonly string[] }
  /** The range of a number; a single allowed value is a range of one. */
  | {
      readonly kind: 'range';
      readonly field: string;
      readonly min: number | null;
      readonly max: number | null;
    }
  /** This value is refused, and the refusal names none that is accepted. The fingerprint is that of its JSON text. */
  | { readonly kind: 'refused_value'; readonly field: string; readonly fingerprint: string }
  /** Only one of the fields may be there: the first is removed. */
  | { readonly kind: 'conflict'; readonly field: string; readonly with: string }
  /** Thinking can't be off. The levels may be empty. */
  | { readonly kind: 'thinking_required'; readonly levels: readonly string[] }
  /** A tool can't be forced while the model thinks. */
  | { readonly kind: 'forced_tool' }
  /** A keyword of JSON Schema that only validates. A value in `allowed` is accepted. */
  | { readonly kind: 'schema'; readonly keyword: string; readonly allowed: readonly number[] }
  /** The root of a tool's schema is no plain object. */
  | { readonly kind: 'schema_root' }
  /** The role `developer` is unknown. */
  | { readonly kind: 'developer_role' }
  /** An entry of the header `anthropic-beta`, by its fingerprint. */
  | { readonly kind: 'beta'; readonly fingerprint: string };

/** The output limit of the caller's key, in tokens: a lower one of the body stays (G2). */
export interface KeyLimit {
  readonly kind: 'key_limit';
  readonly tokens: number;
}

/** A part of a provider's table. Where a model accepts less than was asked for, it reports that, or why nothing is sent. */
export type TableRow =
  | { readonly kind: 'effort'; readonly rules: EffortRules }
  | { readonly kind: 'adjustment'; readonly adjustment: Adjustment }
  | { readonly kind: 'fields'; readonly fields: RequestRules['fields'] }
  | { readonly kind: 'words'; readonly words: NonNullable<RequestRules['words']> }
  /** What the families of an API accept, in the terms of its protocol. The body is that of its own client. */
  | {
      readonly kind: 'family';
      readonly fit: (body: JsonObject, model: string, report: TranslationReport) => JsonObject;
    };

export type FitRow = Finding | KeyLimit | TableRow;

/** The rows of a table, in their order: later ones read what earlier ones wrote. */
export function rowsOf({ effort, adjustments = [], fields, words }: RequestRules): readonly TableRow[] {
  return [
    ...(effort === undefined ? [] : [{ kind: 'effort', rules: effort } as const]),
    ...adjustments.map((adjustment) => ({ kind: 'adjustment', adjustment }) as const),
    { kind: 'fields', fields },
    ...(words === undefined ? [] : [{ kind: 'words', words } as const]),
  ];
}

/** What a finding is about. */
export function subjectOf(finding: Finding): string {
  switch (finding.kind) {
    case 'schema':
      return `schema ${finding.keyword}`;
    case 'beta':
      return `beta ${finding.fingerprint}`;
    case 'schema_root':
    case 'thinking_required':
    case 'forced_tool':
    case 'developer_role':
      return finding.kind;
    default:
      return finding.field;
  }
}

/** The words by which a refusal would name what a finding changed, in lower case. */
export function namesOf(finding: Finding): readonly string[] {
  const fields = (field: string) =>
    [field, ...field.split('.'), plain(field)].map((name) => name.toLowerCase());
  switch (finding.kind) {
    case 'renamed':
      return [...fields(finding.field), ...fields(finding.to)];
    case 'levels':
    case 'thinking_required':
    case 'forced_tool':
      return ['effort', 'thinking', 'reasoning', 'reasoning_effort', 'output_config'];
    case 'schema':
      return [finding.keyword.toLowerCase()];
    case 'schema_root':
      return ['oneof', 'anyof', 'allof', 'input_schema', 'schema', 'parameters'];
    case 'developer_role':
      return ['role', 'system', 'developer'];
    case 'beta':
      return ['beta'];
    default:
      return fields(finding.field);
  }
}

/** A finding for the log: without fingerprints, which others could compare with a guess. */
export function shownFinding(finding: Finding): JsonObject {
  const { kind } = finding;
  if (kind === 'beta') return { kind };
  return kind === 'refused_value' ? { kind, field: finding.field } : { ...finding };
}

/** Whether all names in a finding are those of fields that Weir knows, and none is the caller's. */
export function hasKnownNames(finding: Finding): boolean {
  const names = [
    ...('field' in finding ? [finding.field] : []),
    ...(finding.kind === 'conflict' ? [finding.with] : []),
  ];
  return names.every((name) => classOf(name) !== 'unknown');
}

/** The line that a provider's table would need for a finding; null: tables have no such rows. */
export function tableLine(finding: Finding, model: string): string | null {
  switch (finding.kind) {
    case 'unsupported':
      return `fields: { ${finding.field}: REFUSED }`;
    case 'renamed':
      return `fields: { ${finding.field}: renamed('${finding.to}') }`;
    case 'levels':
      return `effort: { levels: ${JSON.stringify(finding.levels)} } // ${model}`;
    case 'thinking_required':
      return `effort: no 'none', levels: ${JSON.stringify(finding.levels)} // ${model}`;
    case 'forced_tool':
      return `adjustments: [{ field: 'thinking', value: { type: 'disabled' }, when: (body) => isForcedTool(body.tool_choice) }]`;
    case 'developer_role':
      return `messages: { roles: { developer: 'system' } }`;
    case 'schema':
      return `schemas: without ${finding.keyword}`;
    default:
      return null;
  }
}
