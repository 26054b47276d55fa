/** The form of a key as texts, and what of it is sent. */
import type { Key, Limits, Team } from '../../api/types.ts';
import { budgetsOf } from './budget.tsx';

/**
 * The texts of the form's fields by their names; empty for none. The names of limits of each user begin with {@link
 * OF_USERS}, those of limits of each key of a team with {@link OF_KEYS}.
 */
export type Draft = Readonly<Record<string, string>>;

export const OF_USERS = 'per_user.';
export const OF_KEYS = 'per_key.';

/** The limits that are a count. */
export const COUNTS = {
  rpm: 'Requests a minute',
  tpm: 'Tokens a minute',
  max_concurrent: 'Requests at once',
  max_output_tokens: 'Max output tokens',
  max_users: 'Users with an allowance of their own',
} as const;
type Count = keyof typeof COUNTS;

const RATES = ['rpm', 'tpm', 'max_concurrent'] as const;
/** Those of a key or a team, those of each key of a team, and those of each user. */
export const COUNTS_OF: Readonly<Record<string, readonly Count[]>> = {
  '': [...RATES, 'max_output_tokens'],
  [OF_KEYS]: [...RATES, 'max_output_tokens'],
  [OF_USERS]: [...RATES, 'max_users'],
};

/** The form of a key or a team as it is; of a new one with null. */
export function draftOf(key: (Team & Partial<Key>) | null, units: readonly string[]): Draft {
  return {
    name: key?.name ?? '',
    models: key?.models?.join(', ') ?? '',
    expires: key?.expires_at?.slice(0, 10) ?? '',
    user: key?.user ?? '',
    tags: Object.entries(key?.tags ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join(', '),
    require_user: key?.require_user ? 'on' : '',
    team: key?.team ?? '',
    people: key?.people?.join(', ') ?? '',
    groups: key?.groups?.join(', ') ?? '',
    default: key?.default ? 'on' : '',
    has_key_limits: key?.per_key ? 'on' : '',
    has_user_limits: key?.per_user ? 'on' : '',
    ...limitsDraft('', key ?? {}, units),
    ...limitsDraft(OF_KEYS, key?.per_key ?? {}, units),
    ...limitsDraft(OF_USERS, key?.per_user ?? {}, units),
  };
}

type OwnLimits = Limits & { readonly max_users?: number };

function limitsDraft(prefix: string, limits: OwnLimits, [firstUnit = 'USD']: readonly string[]): Draft {
  const [budget, ...windows] = budgetsOf(limits.budget);
  const { per = 'month', mode = 'hard', ...amounts } = budget ?? {};
  const [unit = firstUnit, amount = ''] = Object.entries(amounts)[0] ?? [];
  const more = windows.flatMap(({ per: period, mode: _, ...of }) =>
    Object.entries(of).map(([name, value]) => `${value} ${name} ${period}`),
  );
  const counts = COUNTS_OF[prefix]?.map((name) => [name, limits[name] ?? '']) ?? [];
  const fields = Object.entries({
    ...{ amount, unit, per, mode, more: more.join(', ') },
    ...Object.fromEntries(counts),
  });
  return Object.fromEntries(fields.map(([name, value]) => [prefix + name, String(value)]));
}

/** Names, which may have spaces. Null for none. */
function namesOf(text = ''): readonly string[] | null {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return names.length === 0 ? null : names;
}

export function globsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((glob) => glob !== '');
}

/** The fields that are not empty, or in a change those that differ, as a request body. A field that was emptied is null. */
export function changesOf(draft: Draft, before: Draft | null): Readonly<Record<string, unknown>> {
  const was = before === null ? {} : bodyOf(before);
  const isChanged = ([name, value]: [string, unknown]) =>
    before === null ? value !== null : JSON.stringify(value) !== JSON.stringify(was[name]);
  return Object.fromEntries(Object.entries(bodyOf(draft)).filter(isChanged));
}

/** All fields; null for an empty one. */
function bodyOf(draft: Draft): Record<string, unknown> {
  const { name = '', models = '', expires, user = '', tags, require_user } = draft;
  const globs = globsOf(models);
  const limitsOf = (prefix: string, isSet: string | undefined) => {
    const limits = Object.entries(limitsBody(draft, prefix)).filter(([, value]) => value !== null);
    return limits.length === 0 || !isSet ? null : Object.fromEntries(limits);
  };
  const pairs = namesOf(tags)?.map((tag) => {
    // A value may contain =.
    const [tagName = '', ...value] = tag.split('=');
    return [tagName.trim(), value.join('=').trim()];
  });
  return {
    name: name.trim(),
    models: globs.length === 0 ? null : globs,
    expires_at: expires === '' ? null : `${expires}T00:00:00Z`,
    user: user.trim() || null,
    tags: pairs === undefined ? null : Object.fromEntries(pairs),
    require_user: require_user === '' ? null : true,
    team: draft.team || null,
    people: namesOf(draft.people),
    groups: namesOf(draft.groups),
    default: draft.default === '' ? null : true,
    ...limitsBody(draft, ''),
    per_key: limitsOf(OF_KEYS, draft.has_key_limits),
    per_user: limitsOf(OF_USERS, draft.has_user_limits),
  };
}

function limitsBody(draft: Draft, prefix: string): Record<string, unknown> {
  const text = (name: string) => draft[prefix + name] ?? '';
  const number = (name: string) => (text(name).trim() === '' ? null : Number(text(name)));
  const amount = number('amount');
  const mode = text('mode');
  const budget = { [text('unit')]: amount, per: text('per'), mode };
  const more = windowsOf(text('more')).map((window) => ({ ...window, mode }));
  return {
    budget: amount === null ? null : more.length === 0 ? budget : [budget, ...more],
    ...Object.fromEntries(COUNTS_OF[prefix]?.map((name) => [name, number(name)]) ?? []),
  };
}

/** Of `300 USD month, 1000000 tokens day`. The server says what is wrong with anything else. */
function windowsOf(text: string): readonly Record<string, unknown>[] {
  const windows = text.split(',').filter((window) => window.trim() !== '');
  return windows.map((window) => {
    const [amount, unit = '', per] = window.trim().split(/\s+/);
    return { [unit]: Number(amount), per };
  });
}
