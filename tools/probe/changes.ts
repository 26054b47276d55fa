/** Finds what Weir's rules change in a request, and the row of the provider's table that causes each change. */

import { rewriteReasoning } from '../../src/request-translation/messages.ts';
import type { RequestRules } from '../../src/request-translation/rules.ts';
import { isObject, type JsonObject } from '../../src/shared/json.ts';
import type { Planned } from './plan.ts';

export interface Change {
  readonly kind: 'drops' | 'adds' | 'changes';
  /** Keys and indexes separated by dots: `messages.1.reasoning`. */
  readonly path: string;
  /** The dropped value is null, so dropping it changes nothing (Q4). */
  readonly isNull?: boolean;
}

/** Weir requests usage in every stream (U4), so this change is not reported. */
export function isUsageRequest({ kind, path }: Change): boolean {
  return kind === 'adds' && path.startsWith('stream_options');
}

const EFFORT: readonly string[] = ['reasoning_effort', 'thinking', 'reasoning'];
const LEGACY: readonly string[] = ['functions', 'function_call', 'tools', 'tool_choice'];
const REASONING: readonly string[] = [
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'thinking_blocks',
  'content',
];

/** Every change. A renamed field is a drop and an addition. */
export function changesOf(before: unknown, after: unknown, path = ''): Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const [old, now] = [entriesOf(before), entriesOf(after)];
  if (old === undefined || now === undefined) return [{ kind: 'changes', path }];
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((key): Change[] => {
    const inner = path === '' ? key : `${path}.${key}`;
    if (!now.has(key)) return [{ kind: 'drops', path: inner, isNull: old.get(key) === null }];
    return old.has(key) ? changesOf(old.get(key), now.get(key), inner) : [{ kind: 'adds', path: inner }];
  });
}

function entriesOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (Array.isArray(value)) return new Map(value.map((item: unknown, at) => [String(at), item]));
  return isObject(value) ? new Map(Object.entries(value)) : undefined;
}

/** Describes the changes: `drops user, adds messages[].content`. */
export function describe(changes: readonly Change[]): string {
  const texts = changes.map(({ kind, path }) => `${kind} ${path.replace(/\.\d+/g, '[]')}`);
  return [...new Set(texts)].join(', ');
}

/**
 * The changes that suggest an error in the table if the provider accepts the body without them. All other changes are correct either way:
 * they keep the meaning (Q1, Q2, Q4, U4), or the provider accepts the field and ignores it.
 */
export function doubtful({ raw, rewritten, rules }: Planned): Change[] {
  if (rewritten.kind === 'error') return [];
  const sent = rewritten.value.body;
  return changesOf(raw, sent).filter((change) => !isRightAnyway(change, raw, sent, rules));
}

function isRightAnyway(
  change: Change,
  raw: JsonObject,
  sent: JsonObject,
  { fields, effort }: RequestRules,
): boolean {
  const { path } = change;
  const [field = '', index = '', key = ''] = path.split('.');
  if (change.isNull || isUsageRequest(change)) return true;
  if (EFFORT.includes(field) && effort !== undefined) {
    return EFFORT.some((name) => raw[name] !== undefined && !isTaken(name, effort.takes));
  }
  if (field === 'messages' && REASONING.includes(key)) {
    const text = reasoningAt(raw, index);
    return text !== undefined && text === reasoningAt(sent, index);
  }
  return fields[field]?.kind === 'ignored' || fields[field]?.kind === 'implied';
}

function isTaken(name: string, takes: readonly string[]): boolean {
  return takes.includes(name);
}

/** The reasoning of a message, under any name and in any form. */
function reasoningAt({ messages }: JsonObject, index: string): unknown {
  const message: unknown = Array.isArray(messages) ? messages[Number(index)] : undefined;
  return isObject(message) ? rewriteReasoning(message, 'reasoning_content').reasoning_content : undefined;
}

/** The row of `RequestRules` that causes a change. */
export function rowOf({ path, kind }: Change, planned: Planned): string {
  const [field = '', , key = '', , inner = ''] = path.split('.');
  if (field !== 'messages') return topRow(field, planned);
  const { closed, joinsText, roles, needsContent } = planned.rules.messages;
  if (key === 'role' && roles !== undefined) return 'messages.roles';
  if (key === 'content' && kind === 'adds' && needsContent) return 'messages.needsContent';
  if (key === 'content' && kind === 'changes' && joinsText !== undefined) return 'messages.joinsText';
  if (key === 'tool_call_id' || (key === 'tool_calls' && inner === 'id')) return 'messages.toolCallIds';
  if (key !== 'content' && REASONING.includes(key)) return 'messages.reasoning';
  return closed === undefined ? 'messages.refused' : 'messages.closed';
}

function topRow(field: string, { raw, rewritten, rules }: Planned): string {
  const renamed = Object.entries(rules.fields).find(
    ([name, rule]) => rule.kind === 'renamed' && rule.to === field && raw[name] !== undefined,
  );
  if (renamed !== undefined) return `fields.${renamed[0]}`;
  if (rules.fields[field] !== undefined) return `fields.${field}`;
  if (field === 'stream_options') return 'streamUsage';
  if (field === 'tools' && raw.functions === undefined) return 'messages.closed';
  if (rewritten.kind === 'ok' && rewritten.value.changed.includes(field)) return 'adjustments';
  if (EFFORT.includes(field)) return 'effort';
  return LEGACY.includes(field) && raw.functions !== undefined ? 'legacyFunctions' : `fields.${field}`;
}
