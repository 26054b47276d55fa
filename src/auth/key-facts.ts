/** What a key fixes about its requests: a row each, by which requests set it and KV stores it. */
import { type JsonObject, keepEntries } from '../shared/json.ts';
import { flagField, type StoredField, tagsField, textField } from './body-fields.ts';

/** Each comment is the field's description in docs/openapi.json and docs/api.md. */
export const KEY_FACTS = {
  /** who uses the key: docs/attribution.md#what-a-key-fixes */
  user: textField(),
  /** for what it is used */
  tags: tagsField(),
  /** true: a request without a user is refused */
  require_user: flagField(),
};

type FactTable = typeof KEY_FACTS;

/** Absent: nothing. */
export type KeyFacts = {
  readonly [Name in keyof FactTable]?: FactTable[Name] extends StoredField<infer Value>
    ? Value | undefined
    : never;
};

const ROWS: readonly (readonly [string, StoredField<unknown>])[] = Object.entries(KEY_FACTS);

/** The facts of a key, alone. */
export function factsOf(key: KeyFacts): KeyFacts {
  return keepEntries({ ...key }, (name) => Object.hasOwn(KEY_FACTS, name));
}

/** What of them takes room that depends on its length. */
export function factTexts(key: KeyFacts): readonly unknown[] {
  const facts: JsonObject = { ...key };
  return ROWS.filter(([, { kind }]) => kind !== 'flag').map(([name]) => facts[name]);
}

/** Reads those of a stored key. Those that it has not are absent. */
export function decodeFacts(stored: JsonObject): KeyFacts {
  const facts = ROWS.flatMap(([name, row]) => {
    const value = row.decode(stored[name]);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(facts) as KeyFacts; // decode
}

/** Whether each fact that a stored key has is in its form. */
export function areFactsReadable(stored: JsonObject): boolean {
  return ROWS.every(([name, row]) => (stored[name] ?? null) === null || row.isReadable(stored[name]));
}
