/** The bodies of admin routes: a field each, from which its reader, its type and docs/openapi.json follow. */
import {
  flagField,
  globsField,
  invalidField,
  listField,
  nameField,
  noteField,
  numberField,
  ownField,
  wordField,
} from '../auth/body-fields.ts';
import { lowerCase } from '../auth/caller-ids.ts';
import { KEY_FACTS } from '../auth/key-facts.ts';
import { PERIODS } from '../auth/key-limits.ts';
import { MAX_ENTRIES, MAX_ENTRY_CHARS, personProblem } from '../auth/people.ts';
import { ok } from '../shared/result.ts';
import { timeField } from './expiry.ts';

/** A new or changed key, besides its limits. */
export const KEY_BODY = {
  /** at most 100 characters */
  name: nameField(),
  /** globs over addresses (<provider>/<model>), for aliases those of their targets; absent or null: all models */
  models: globsField(),
  /** a future time, ISO 8601 or seconds since 1970; absent or null: never */
  expires_at: timeField(),
  /** true: its requests are refused (docs/keys.md#disable) */
  disabled: flagField(),
  ...KEY_FACTS,
};

/** Who falls under a team without a key. */
const PEOPLE_BODY = {
  /** globs over addresses, as *@example.com; without an @ over names of service tokens */
  people: listField({
    maxItems: MAX_ENTRIES,
    maxChars: MAX_ENTRY_CHARS,
    form: lowerCase,
    problem: personProblem,
  }),
  /** names or globs of groups, of the claim that ACCESS_GROUPS_CLAIM names */
  groups: listField({ maxItems: MAX_ENTRIES, maxChars: MAX_ENTRY_CHARS }),
  /** true: everybody whom no list names. One team at most has it */
  default: flagField(),
};

/** A new or changed team, besides its limits. */
export const TEAM_BODY = { name: KEY_BODY.name, models: KEY_BODY.models, ...PEOPLE_BODY };

const MAX_OVERLAP_HOURS = 720;
const DEFAULT_OVERLAP_HOURS = 24;

export const ROTATION_BODY = { overlap_hours: numberField(0, MAX_OVERLAP_HOURS, DEFAULT_OVERLAP_HOURS) };

/** A token that reads usage. Its filter is read as the parameters of usage are. */
export const TOKEN_BODY = {
  name: nameField(),
  scope: ownField((value, param) =>
    value === 'usage'
      ? ok(value)
      : invalidField('scope must be "usage" or "team", or absent for a key', param),
  ),
  filter: ownField((value = null) => ok(value)),
  expires_at: timeField(),
};

/** The token of a team lead. */
export const TEAM_TOKEN_BODY = {
  name: nameField(),
  scope: ownField((value) => ok(value)),
  team: ownField((value) => ok(typeof value === 'string' ? value : '')),
  expires_at: timeField(),
};

const TOP_UP_ID = /^[\w.:-]{1,64}$/;
const MAX_NOTE_CHARS = 200;

/** What is added to a budget. The amount is read with its unit. */
export const TOP_UP_BODY = {
  add: ownField((value) => ok(value)),
  per: wordField(PERIODS),
  /** Absent: that of the request. */
  id: ownField((value, param) =>
    value === undefined || (typeof value === 'string' && TOP_UP_ID.test(value))
      ? ok(value)
      : invalidField('id must be a text of 1 to 64 letters, digits and _ . : -', param),
  ),
  note: noteField(MAX_NOTE_CHARS),
};
