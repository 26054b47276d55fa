/** Reads what an entry of `PROVIDERS` says of its server's chat completions, as data: the rows that a provider's own table would have (Q9). */

import type { ChatChanges } from '../providers/compatible.ts';
import { type FieldRule, REASONING_FORMS, renamed } from '../request-translation/rules.ts';
import { isObject, type JsonObject, readText } from '../shared/json.ts';

/** The fields of an entry that this file reads. */
export const RULE_FIELDS = ['rename', 'drop', 'roles', 'effort', 'reasoning'] as const;

/** More are a mistake. */
const MAX_RULES = 64;
const NAME = /^[A-Za-z_][\w-]{0,63}$/;
/** What Weir itself writes or reads. */
const FIXED = ['model', 'models', 'messages', 'prompt', 'stream', 'stream_options', 'tools'];
/** An answer's limit may have either name, and must not be lost: a key's budget rests on it. */
const LIMITS = ['max_tokens', 'max_completion_tokens'];

/** @returns null where the entry says nothing; a text: what is wrong, which contains no value */
export function readChatChanges(entry: JsonObject): ChatChanges | null | string {
  if (RULE_FIELDS.every((field) => entry[field] === undefined)) return null;
  const rename = readWords(entry.rename, NAME);
  if (rename === null) return 'rename must be an object of names of fields: {"seed": "random_seed"}';
  const drop = readNames(entry.drop);
  if (drop === null) return 'drop must be a list of names of fields: ["logit_bias"]';
  const roles = readWords(entry.roles, NAME);
  if (roles === null) return 'roles must be an object of names of roles: {"developer": "system"}';
  const effort = readWords(entry.effort, NAME);
  if (effort === null) return 'effort must be an object of words of reasoning_effort: {"minimal": "low"}';
  const reasoning = REASONING_FORMS.find((form) => form === entry.reasoning);
  if (entry.reasoning !== undefined && reasoning === undefined) {
    return `reasoning must be one of: ${REASONING_FORMS.join(', ')}`;
  }
  const problem = renameProblem(rename, drop) ?? dropProblem(drop);
  if (problem !== null) return problem;
  const fields: [string, FieldRule][] = [
    ...Object.entries(rename).map(([from, to]): [string, FieldRule] => [from, renamed(to)]),
    ...drop.map((name): [string, FieldRule] => [name, { kind: 'left_out' }]),
  ];
  return { fields: Object.fromEntries(fields), roles, effort, reasoning };
}

function renameProblem(rename: Readonly<Record<string, string>>, drop: readonly string[]): string | null {
  for (const [from, to] of Object.entries(rename)) {
    if ([from, to].some((name) => FIXED.includes(name))) return `rename can't name ${FIXED.join(', ')}`;
    if (drop.includes(from)) return "rename and drop can't name the same field";
    if (drop.includes(to) || Object.hasOwn(rename, to)) {
      return 'rename must lead to names that are neither renamed nor dropped themselves';
    }
    if (LIMITS.includes(to) && !LIMITS.includes(from)) {
      return `rename can make ${LIMITS.join(' or ')} only of the other one`;
    }
  }
  return null;
}

function dropProblem(drop: readonly string[]): string | null {
  const kept = [...FIXED, ...LIMITS];
  return drop.some((name) => kept.includes(name)) ? `drop can't name ${kept.join(', ')}` : null;
}

/** @returns null where it is anything but an object of words */
function readWords(value: unknown, form: RegExp): Readonly<Record<string, string>> | null {
  if (value === undefined) return {};
  if (!isObject(value)) return null;
  const words: Record<string, string> = {};
  for (const [from, to] of Object.entries(value)) {
    const word = readText(to);
    if (!form.test(from) || word === undefined || !form.test(word)) return null;
    words[from] = word;
  }
  return Object.keys(words).length > MAX_RULES ? null : words;
}

function readNames(value: unknown): readonly string[] | null {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > MAX_RULES) return null;
  const names = value.filter((name) => typeof name === 'string' && NAME.test(name));
  return names.length === value.length ? names : null;
}
