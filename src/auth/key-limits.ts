/** The limits of a gateway key: their form in requests and responses, amounts of money and tokens, and budget periods. */
import { isObject, type JsonObject, objectOf, readArray } from '../shared/json.ts';
import { MAX_COST_NANO, wholeAmount } from '../shared/money.ts';
import { trimEnd } from '../shared/trim.ts';

/** Null is no limit. */
export interface Limits {
  readonly budget: Budget | null;
  /** Further budgets of a key, of other units or periods, in the mode of the first. All hold. Absent: there are none. */
  readonly windows?: readonly Budget[];
  /** Requests in any 60 seconds. */
  readonly rpm: number | null;
  /** Tokens in any 60 seconds. */
  readonly tpm: number | null;
  /** Requests that run at the same time. */
  readonly maxConcurrent: number | null;
  /** Output tokens of one choice. */
  readonly maxOutputTokens: number | null;
  /** The limits of each user of the key; of a team: those of each user of its keys that have none. */
  readonly perUser: UserLimits | null;
  /** The id of the key's team. Absent: it has none. */
  readonly team?: string;
  /** Of a team: the limits of each of its keys that has none of that kind. Absent: there are none. */
  readonly perKey?: KeyDefaults;
  /** The budgets of the key's team, which the team's object enforces. Absent: they are not known here, or there are none. */
  readonly teamBudgets?: readonly Budget[];
}

type KeyDefaults = Pick<Limits, 'budget' | 'windows' | 'rpm' | 'tpm' | 'maxConcurrent' | 'maxOutputTokens'>;

/** The limits of each single user of a key, in addition to those of the key. At least one is set. */
interface UserLimits extends Pick<Limits, 'budget' | 'rpm' | 'tpm' | 'maxConcurrent'> {
  /** How many users of one day (UTC) have separate limits. All further users share one allowance. */
  readonly maxUsers: number;
}

export interface Budget {
  readonly unit: BudgetUnit;
  /** An integer: tokens, or 10^-9 of the currency. */
  readonly amount: number;
  readonly per: BudgetPeriod;
  /**
   * `hard` reserves the upper bound of each request and refuses what does not fit. `running` reserves what a request is likely to use, and
   * more while its output runs. `warn` reserves nothing and only reports.
   */
  readonly mode: (typeof MODES)[number];
}

/** `tokens`, or a currency's ISO 4217 code. */
export type BudgetUnit = string;

/** A week begins on Monday. All periods are in UTC. */
export const PERIODS = ['day', 'week', 'month', 'total'] as const;
export type BudgetPeriod = (typeof PERIODS)[number];

const MODES = ['hard', 'running', 'warn'] as const;

/** Budgets of one key. */
const MAX_BUDGETS = 4;

export const NO_LIMITS: Limits = {
  budget: null,
  rpm: null,
  tpm: null,
  maxConcurrent: null,
  maxOutputTokens: null,
  perUser: null,
};

/** The users that share one allowance: requests without a user, and all users beyond `max_users`. No user can have these names. */
export const NO_USER = '';
export const OTHER_USERS = '(other)';

/** The limits of one user, in the form of a key's. */
export function limitsOfUser({ perUser }: Limits): Limits {
  if (perUser === null) return { ...NO_LIMITS };
  const { budget, rpm, tpm, maxConcurrent } = perUser;
  return { ...NO_LIMITS, budget, rpm, tpm, maxConcurrent };
}

/** The budgets of a key, or of a user in the form of a key's. All hold. */
export function budgetsOf({ budget, windows = [] }: Pick<Limits, 'budget' | 'windows'>): readonly Budget[] {
  return budget === null ? [] : [budget, ...windows];
}

/** The currency of the budgets; undefined: none is in money. */
export function currencyOf(limits: Pick<Limits, 'budget' | 'windows'>): string | undefined {
  return budgetsOf(limits).find(({ unit }) => unit !== TOKENS)?.unit;
}

/**
 * The limits of a key in its team: its own limits, the defaults of the team for each kind that the key does not limit,
 * and the team's budgets.
 */
export function limitsInTeam(own: Limits, team: Limits): Limits {
  const { budget, windows, ...counts } = own;
  const ofKeys = team.perKey ?? NO_LIMITS;
  const budgets = budget === null ? ofKeys : own;
  const above = budgetsOf(team);
  return {
    ...counts,
    budget: budgets.budget,
    ...(budgets.windows !== undefined && { windows: budgets.windows }),
    rpm: own.rpm ?? ofKeys.rpm,
    tpm: own.tpm ?? ofKeys.tpm,
    maxConcurrent: own.maxConcurrent ?? ofKeys.maxConcurrent,
    maxOutputTokens: own.maxOutputTokens ?? ofKeys.maxOutputTokens,
    perUser: own.perUser ?? team.perUser,
    ...(above.length > 0 && { teamBudgets: above }),
  };
}

/** All budgets that a request of a key may be held against: of the key, of each of its users, and of its team. */
function budgetsAround(limits: Limits): readonly Budget[] {
  const ofUsers = limits.perUser?.budget ?? null;
  return [...budgetsOf(limits), ...(ofUsers === null ? [] : [ofUsers]), ...(limits.teamBudgets ?? [])];
}

/** Those of {@link budgetsAround} that reserve. */
export function enforcedAround(limits: Limits): readonly Budget[] {
  return budgetsAround(limits).filter(isEnforced);
}

/** The fields of a request body that set limits. */
export const LIMIT_FIELDS = [
  'budget',
  'rpm',
  'tpm',
  'max_concurrent',
  'max_output_tokens',
  'per_user',
] as const;

/**
 * The fields of limits as they are stored. What earlier versions do not know stands beside `budget` and `per_user`,
 * never in them: an object of an earlier version then refuses the row, and where only the copy in KV is read, there is
 * one hard budget. `mode` and `user_mode` are those of the budgets that are stored as `hard`, `per` and `user_per` of
 * those that are stored as `total`.
 */
export const STORED_LIMIT_FIELDS = [
  ...LIMIT_FIELDS,
  'windows',
  'mode',
  'user_mode',
  'per',
  'user_per',
  'team',
  'per_key',
  'team_budget',
] as const;

/** The first of the fields that needs the object of the key: a limit or a team. Null: none does. */
export function limitField(fields: JsonObject): string | null {
  return [...LIMIT_FIELDS, 'team'].find((field) => field in fields) ?? null;
}

/** The team in stored limits; null: the key has none. */
export function teamOf(limits: JsonObject | null): string | null {
  return typeof limits?.team === 'string' ? limits.team : null;
}

const USER_LIMIT_FIELDS = ['budget', 'rpm', 'tpm', 'max_concurrent', 'max_users'];
const DEFAULT_MAX_USERS = 10_000;
const MAX_USERS = 100_000;

/** Whether a budget reserves what requests may use, and refuses what does not fit. */
export function isEnforced({ mode }: Budget): boolean {
  return mode !== 'warn';
}

/** The output of a request under a budget that reserves, whose client sets no limit. */
export const DEFAULT_MAX_OUTPUT_TOKENS = 4096;

/** The client's limit, at most the key's. Under a budget that reserves there is always one. */
export function outputLimit(
  { budget, maxOutputTokens }: Pick<Limits, 'budget' | 'maxOutputTokens'>,
  requested: number | null,
): number | null {
  if (requested !== null) return Math.min(requested, maxOutputTokens ?? requested);
  return maxOutputTokens ?? (budget !== null && isEnforced(budget) ? DEFAULT_MAX_OUTPUT_TOKENS : null);
}

/** {@link outputLimit} of a key or of its user, and by the budgets of the key's team. @param own those that the holder enforces */
export function outputLimitOf(limits: Limits, own: Limits, requested: number | null): number | null {
  const ofTeam = { budget: limits.teamBudgets?.find(isEnforced) ?? null, maxOutputTokens: null };
  return outputLimit(own, outputLimit(limits, outputLimit(ofTeam, requested)));
}

/** What was read of limits as KV lists them. A request reads them several times, and an isolate keeps the object of a key for a minute. */
const readListed = new WeakMap<JsonObject, LimitsResult>();

function listedLimits(limits: JsonObject): LimitsResult {
  const known = readListed.get(limits) ?? readLimits(limits);
  readListed.set(limits, known);
  return known;
}

/** {@link outputLimitOf} by the limits that KV lists. The key's object decides, and may have newer ones. */
export function expectedOutputLimit(limits: JsonObject | null): (requested: number | null) => number | null {
  const parsedLimits = listedLimits(limits ?? {});
  if (parsedLimits.kind === 'invalid') return () => null;
  const ofKey = parsedLimits.limits;
  return (requested) => outputLimitOf(ofKey, limitsOfUser(ofKey), requested);
}

/** {@link enforcedAround} of limits as they are stored. */
export function enforcedBudgets(limits: JsonObject | null): readonly Budget[] {
  const parsedLimits = listedLimits(limits ?? {});
  return parsedLimits.kind === 'invalid' ? [] : enforcedAround(parsedLimits.limits);
}

/**
 * The currencies of the budgets, of a key, of each of its users and of its team, that refuse what has no price.
 * @param limits as they are stored
 */
export function enforcedCurrencies(limits: JsonObject | null): readonly string[] {
  const units = new Set(enforcedBudgets(limits).map(({ unit }) => unit));
  return [...units].filter((unit) => unit !== TOKENS);
}

/** What a key has used of its limits at one moment. Null where there is no limit. */
export interface LimitStatus {
  readonly limits: Limits;
  readonly budget: BudgetStatus | null;
  /** Of `limits.windows`, in their order. */
  readonly windows?: readonly BudgetStatus[];
  readonly requests: RateStatus | null;
  readonly tokens: RateStatus | null;
  /** Requests that run. */
  readonly running: number | null;
}

/** A budget with what was added to it in this period, and its use. */
export interface BudgetUse {
  readonly budget: Budget;
  readonly use: BudgetStatus;
}

/** The budgets with their use. All hold. */
export function budgetUses({ limits, budget, windows = [] }: LimitStatus): readonly BudgetUse[] {
  const statuses = [budget, ...windows];
  return budgetsOf(limits).flatMap((one, i) => {
    const use = statuses[i] ?? null;
    if (use === null) return [];
    const { added = 0 } = use;
    return [{ budget: added === 0 ? one : { ...one, amount: one.amount + added }, use }];
  });
}

/** What is left of a budget; negative where one that only warns is overdrawn. */
export function remainingOf({ budget, use }: BudgetUse): number {
  return budget.amount - use.spent - use.reserved;
}

/** The budget of which the largest share is spent or reserved; null: there is none. */
export function tightestUse(status: LimitStatus): BudgetUse | null {
  const shareLeft = (one: BudgetUse) => (one.budget.amount === 0 ? 0 : remainingOf(one) / one.budget.amount);
  return budgetUses(status).reduce<BudgetUse | null>(
    (tightest, one) => (tightest !== null && shareLeft(tightest) <= shareLeft(one) ? tightest : one),
    null,
  );
}

/** What an admin added to a budget for one period. */
export interface TopUp {
  /** Chosen by who adds it; the same one counts once. */
  readonly id: string;
  /** In ms since the epoch. */
  readonly at: number;
  /** `admin token`, or the name of a user of Cloudflare Access. */
  readonly actor: string;
  readonly note: string;
  readonly unit: BudgetUnit;
  readonly per: BudgetPeriod;
  /** The name of the period, such as `2026-11`. */
  readonly period: string;
  /** In the unit of the budget. */
  readonly amount: number;
}

/** A {@link TopUp} that is not stored yet. `per` is null where the key has one budget in this unit. */
export interface NewTopUp extends Omit<TopUp, 'at' | 'per' | 'period'> {
  readonly per: BudgetPeriod | null;
}

export type TopUpResult =
  /** `isNew` is false where the same one was added before. */
  | { readonly kind: 'added'; readonly topUp: TopUp; readonly isNew: boolean }
  | { readonly kind: 'invalid'; readonly message: string; readonly param: string };

/** The status of a key, with what was added to its budgets in their current periods. */
export interface KeyStanding extends LimitStatus {
  /** The latest first. Absent: the object is older than the Worker. */
  readonly topUps?: readonly TopUp[];
  /** Of a team: how many keys name it. */
  readonly keys?: number;
  /** Of a busy key: its shards in each region. Absent: it has none. */
  readonly shards?: Readonly<Record<string, number>>;
}

/** The status of limits that nothing has used. */
export function unusedStatus(limits: Limits, now: number): LimitStatus {
  const { budget, rpm, tpm, maxConcurrent } = limits;
  const unused = { used: 0, resetMs: 0 };
  return {
    limits,
    budget: budget === null ? null : unusedBudget(budget, now),
    ...(limits.windows !== undefined && { windows: limits.windows.map((one) => unusedBudget(one, now)) }),
    requests: rpm === null ? null : unused,
    tokens: tpm === null ? null : unused,
    running: maxConcurrent === null ? null : 0,
  };
}

function unusedBudget({ per }: Budget, now: number): BudgetStatus {
  return { spent: 0, reserved: 0, estimated: 0, unreported: 0, resetsAt: periodEnd(per, now) };
}

/** Amounts are integers in the budget's unit: tokens, or 10^-9 of the currency. */
export interface BudgetStatus {
  /** What was added to the budget in this period alone; absent: nothing. */
  readonly added?: number;
  readonly spent: number;
  /** The upper bounds of the running requests; 0 where the budget only warns. */
  readonly reserved: number;
  /** The part of `spent` from reservations that expired unsettled. */
  readonly estimated: number;
  /** The part of `spent` that was charged at its upper bound because the provider did not report it. */
  readonly unreported: number;
  /** The end of the period in ms since the epoch; null: never. */
  readonly resetsAt: number | null;
}

/** The use of `rpm` or `tpm` in the sliding minute. */
export interface RateStatus {
  readonly used: number;
  /** ms until `used` is 0 again. */
  readonly resetMs: number;
}

/** A Durable Object returns it by RPC: objects of earlier deployments return the same shape. */
export type LimitsResult =
  | { readonly kind: 'limits'; readonly limits: Limits }
  | { readonly kind: 'invalid'; readonly message: string; readonly param: string };

/** Applies the limits in a body to `before`: an absent field changes nothing, null removes the limit. */
export function readLimits(body: JsonObject, before: Limits = NO_LIMITS): LimitsResult {
  const budgets = body.budget === undefined ? budgetsOf(before) : readBudgets(body);
  if (typeof budgets === 'string') return { kind: 'invalid', message: budgets, param: 'budget' };
  const [budget = null, ...windows] = budgets;
  const counts = {
    rpm: readCountLimit(body.rpm, before.rpm),
    tpm: readCountLimit(body.tpm, before.tpm),
    max_concurrent: readCountLimit(body.max_concurrent, before.maxConcurrent),
    max_output_tokens: readCountLimit(body.max_output_tokens, before.maxOutputTokens),
  };
  const { rpm, tpm, max_concurrent: maxConcurrent, max_output_tokens: maxOutputTokens } = counts;
  if (
    rpm === undefined ||
    tpm === undefined ||
    maxConcurrent === undefined ||
    maxOutputTokens === undefined
  ) {
    const param = Object.entries(counts).find(([, count]) => count === undefined)?.[0] ?? '';
    return {
      kind: 'invalid',
      message: `${param} must be a whole number from 1 to ${MAX_AMOUNT}, or null`,
      param,
    };
  }
  const perUser = body.per_user === undefined ? before.perUser : readUserLimits(body);
  if (perUser !== null && 'kind' in perUser) return perUser;
  const { team = before.team ?? null } = body;
  if (team !== null && (typeof team !== 'string' || team === ''))
    return { kind: 'invalid', message: 'team must be the id of a team, or null', param: 'team' };
  const perKey = body.per_key === undefined ? (before.perKey ?? null) : readKeyDefaults(body.per_key);
  if (perKey !== null && 'kind' in perKey) return perKey;
  const above =
    body.team_budget === undefined ? before.teamBudgets : readBudgets({ budget: body.team_budget });
  if (typeof above === 'string') return { kind: 'invalid', message: above, param: 'team_budget' };
  const limits = { budget, ...(windows.length > 0 && { windows }), rpm, tpm, maxConcurrent, maxOutputTokens };
  const ofTeam = {
    ...(team !== null && { team }),
    ...(perKey !== null && { perKey }),
    ...(above !== undefined && { teamBudgets: above }),
  };
  return { kind: 'limits', limits: { ...limits, perUser, ...ofTeam } };
}

const KEY_DEFAULT_FIELDS = LIMIT_FIELDS.filter((field) => field !== 'per_user');

/** Replaces the limits for each key of a team as a whole. */
function readKeyDefaults(value: unknown): KeyDefaults | null | Extract<LimitsResult, { kind: 'invalid' }> {
  if (value === null) return null;
  const invalid = (message: string) => ({ kind: 'invalid', message, param: 'per_key' }) as const;
  if (
    !isObject(value) ||
    Object.keys(value).some((field) => !KEY_DEFAULT_FIELDS.some((known) => known === field))
  )
    return invalid(`per_key must be an object with ${KEY_DEFAULT_FIELDS.join(', ')}, and nothing else`);
  const parsedLimits = readLimits(value);
  if (parsedLimits.kind === 'invalid') return invalid(`per_key.${parsedLimits.message}`);
  const isEmpty = writeLimits(parsedLimits.limits) === null;
  return isEmpty ? invalid('per_key must set a limit. null removes the limits of keys') : parsedLimits.limits;
}

/** Replaces the users' limits as a whole, as a budget is replaced. */
function readUserLimits({
  per_user: value,
  user_mode: mode,
  user_per: per,
}: JsonObject): UserLimits | null | Extract<LimitsResult, { kind: 'invalid' }> {
  if (value === null) return null;
  const invalid = (message: string) => ({ kind: 'invalid', message, param: 'per_user' }) as const;
  const form = `per_user must be an object with ${USER_LIMIT_FIELDS.join(', ')}, and nothing else`;
  if (!isObject(value) || Object.keys(value).some((field) => !USER_LIMIT_FIELDS.includes(field))) {
    return invalid(form);
  }
  const { max_users: requestedUsers = null, ...fields } = value;
  const maxUsers = requestedUsers ?? DEFAULT_MAX_USERS;
  if (typeof maxUsers !== 'number' || !Number.isInteger(maxUsers) || maxUsers < 1 || maxUsers > MAX_USERS) {
    return invalid(`per_user.max_users must be a whole number from 1 to ${MAX_USERS}`);
  }
  if (Array.isArray(fields.budget)) return invalid('per_user.budget must be one budget');
  const stored = { ...(mode !== undefined && { mode }), ...(per !== undefined && { per }) };
  const parsedLimits = readLimits({ ...fields, ...stored });
  if (parsedLimits.kind === 'invalid') return invalid(`per_user.${parsedLimits.message}`);
  const { budget, rpm, tpm, maxConcurrent } = parsedLimits.limits;
  if ([budget, rpm, tpm, maxConcurrent].every((limit) => limit === null)) {
    return invalid('per_user must set a limit. null removes the limits of users');
  }
  return { budget, rpm, tpm, maxConcurrent, maxUsers };
}

function readCountLimit(value: unknown, before: number | null): number | null | undefined {
  if (value === undefined) return before;
  if (value === null) return null;
  const isCount = typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_AMOUNT;
  return isCount ? value : undefined;
}

const BUDGET_FORM =
  'budget must be {"USD": 5, "per": "month", "mode": "hard"}: one amount, in a currency or in "tokens"';
const BUDGETS_FORM = `budget must be one budget, or a list of 1 to ${MAX_BUDGETS}`;

/**
 * The budgets of a request's or of a stored `budget`.
 * @returns a text that says what is wrong, where they are invalid
 */
function readBudgets({ budget, windows, mode, per }: JsonObject): readonly Budget[] | string {
  if (budget === null) return [];
  const stored = readArray(windows).map((window) => decodeWindow(window, budget));
  const values = Array.isArray(budget) ? budget : [budget, ...stored];
  if (values.length === 0 || values.length > MAX_BUDGETS) return BUDGETS_FORM;
  const budgets: Budget[] = [];
  for (const [i, value] of values.entries()) {
    const stored = { ...(mode !== undefined && { mode }), ...(per !== undefined && i === 0 && { per }) };
    const parsedBudget = readBudget(isObject(value) ? { ...value, ...stored } : value);
    if (typeof parsedBudget === 'string') return parsedBudget;
    budgets.push(parsedBudget);
  }
  return budgetsProblem(budgets) ?? budgets;
}

/** A request has one price, and a top-up names its budget by unit and period. */
function budgetsProblem(budgets: readonly Budget[]): string | null {
  const currencies = new Set(budgets.map(({ unit }) => unit).filter((unit) => unit !== TOKENS));
  if (currencies.size > 1) return 'All budgets of a key must be in one currency, or in tokens';
  if (new Set(budgets.map(({ mode }) => mode)).size > 1)
    return 'All budgets of a key must have the same mode';
  const names = new Set(budgets.map(({ unit, per }) => `${unit} ${per}`));
  return names.size < budgets.length ? 'Two budgets of a key must differ in their unit or in per' : null;
}

/** Of `USD 300 month`, in the mode of the first budget. */
function decodeWindow(stored: unknown, first: unknown): JsonObject {
  const [unit = '', amount, per] = String(stored).split(' ');
  return { [unit]: Number(amount), per, mode: objectOf(first).mode };
}

/** @returns a text that says what is wrong, where the budget is invalid */
function readBudget(value: unknown): Budget | string {
  if (!isObject(value)) return BUDGET_FORM;
  const { per: requestedPer = 'total', mode: requestedMode = 'hard', ...amounts } = value;
  const per = PERIODS.find((known) => known === requestedPer);
  if (per === undefined) return `budget.per must be one of: ${PERIODS.join(', ')}`;
  const mode = MODES.find((known) => known === requestedMode);
  if (mode === undefined) return `budget.mode must be one of: ${MODES.join(', ')}`;
  const [first, ...others] = Object.entries(amounts);
  if (first === undefined || others.length > 0 || !isUnit(first[0])) return BUDGET_FORM;
  const [unit, requested] = first;
  const amount = readAmount(requested, unit);
  if (amount === undefined) return `budget.${unit} must be ${unit === TOKENS ? TOKENS_FORM : MONEY_FORM}`;
  return { unit, amount, per, mode };
}

/** A budget as requests set it and responses show it: its amount is under its unit. */
export type WrittenBudget = {
  readonly per: BudgetPeriod;
  readonly mode: Budget['mode'];
  readonly [unit: string]: number | string;
};

/** Limits as requests set them and responses show them. */
export type WrittenLimits = {
  /** A list where there are several, which all hold. */
  readonly budget?: WrittenBudget | readonly WrittenBudget[];
  readonly rpm?: number;
  readonly tpm?: number;
  readonly max_concurrent?: number;
  readonly max_output_tokens?: number;
  /** Of a team: the limits of each of its keys that sets none of that kind. */
  readonly per_key?: WrittenLimits | null;
  /** The limits of each user. */
  readonly per_user?: WrittenLimits & { readonly max_users?: number };
};

/** The limits in the form in which requests set them; null where there are none. */
export function writeLimits(limits: Limits): WrittenLimits | null {
  const { rpm, tpm, maxConcurrent, maxOutputTokens, perUser, perKey } = limits;
  const [budget, ...windows] = budgetsOf(limits).map(writeBudget);
  const fields = {
    ...(budget !== undefined && { budget: windows.length === 0 ? budget : [budget, ...windows] }),
    ...(rpm !== null && { rpm }),
    ...(tpm !== null && { tpm }),
    ...(maxConcurrent !== null && { max_concurrent: maxConcurrent }),
    ...(maxOutputTokens !== null && { max_output_tokens: maxOutputTokens }),
    ...(perKey !== undefined && { per_key: writeLimits({ ...NO_LIMITS, ...perKey }) }),
    ...(perUser !== null && { per_user: writeUserLimits(limits, perUser) }),
  };
  return Object.keys(fields).length === 0 ? null : fields;
}

function writeUserLimits(limits: Limits, { maxUsers }: UserLimits): NonNullable<WrittenLimits['per_user']> {
  return {
    ...writeLimits(limitsOfUser(limits)),
    ...(maxUsers !== DEFAULT_MAX_USERS && { max_users: maxUsers }),
  };
}

function writeBudget({ unit, amount, per, mode }: Budget): WrittenBudget {
  return { [unit]: writeAmount(amount, unit), per, mode };
}

/** The limits as they are stored ({@link STORED_LIMIT_FIELDS}); null where there are none. */
export function encodeLimits(limits: Limits): JsonObject | null {
  const { windows = [], perUser, ...others } = limits;
  const { budget, team, teamBudgets } = others;
  const ofUsers = perUser?.budget ?? null;
  const fields = writeLimits({
    ...others,
    budget: budget && earlier(budget),
    perUser: perUser && { ...perUser, budget: ofUsers && earlier(ofUsers) },
  });
  const short = windows.map(({ unit, amount, per }) => `${unit} ${writeAmount(amount, unit)} ${per}`);
  const ofTeam = {
    ...(team !== undefined && { team }),
    ...(teamBudgets !== undefined && { team_budget: teamBudgets.map(writeBudget) }),
  };
  const isNone = fields === null && Object.keys(ofTeam).length === 0;
  return isNone
    ? null
    : {
        ...fields,
        ...ofTeam,
        ...(short.length > 0 && { windows: short }),
        ...(budget?.mode === 'running' && { mode: budget.mode }),
        ...(ofUsers?.mode === 'running' && { user_mode: ofUsers.mode }),
        ...(budget?.per === 'week' && { per: budget.per }),
        ...(ofUsers?.per === 'week' && { user_per: ofUsers.per }),
      };
}

/** In the mode and the period that earlier versions know. They are stricter. */
function earlier(budget: Budget): Budget {
  const { mode, per } = budget;
  return { ...budget, mode: mode === 'running' ? 'hard' : mode, per: per === 'week' ? 'total' : per };
}

/** Stored limits in the form in which requests set them. What cannot be read stays as it is. */
export function showLimits(stored: JsonObject | null): WrittenLimits | null {
  const storedLimits = readLimits(stored ?? {});
  if (storedLimits.kind === 'invalid') return stored as WrittenLimits | null; // decode
  return writeLimits(storedLimits.limits);
}

/** Bytes that windows, modes and weeks take in the stored limits. */
export function windowBytes({ windows, mode, user_mode, per, user_per }: JsonObject): number {
  const text = JSON.stringify({ windows, mode, user_mode, per, user_per });
  return text === '{}' ? 0 : text.length;
}

export const TOKENS = 'tokens';
const CURRENCY = /^[A-Z]{3}$/;

function isUnit(name: string): boolean {
  return name === TOKENS || CURRENCY.test(name);
}

const NANO = 1e9;
/** A million of a currency, or 10^15 tokens: sums with running requests stay far below 2^53. */
export const MAX_AMOUNT = MAX_COST_NANO;

const TOKENS_FORM = `a whole number from 0 to ${MAX_AMOUNT}`;
const MONEY_FORM = 'a number from 0 to 1000000 with at most 9 decimals';

/** The amount as an integer, so that sums never round. Undefined where it is negative, too precise or too large. */
export function readAmount(value: unknown, unit: BudgetUnit): number | undefined {
  if (typeof value !== 'number' || !(value >= 0)) return undefined;
  const scale = unit === TOKENS ? 1 : NANO;
  const amount = Math.round(value * scale);
  return amount <= MAX_AMOUNT && amount / scale === value ? amount : undefined;
}

/** The amount as a number in JSON: 5.25 for 5,250,000,000 nano-units. */
export function writeAmount(amount: number, unit: BudgetUnit): number {
  return unit === TOKENS ? amount : wholeAmount(amount);
}

/** For messages and headers: `4.999872 USD`, `1999000 tokens`; never with an exponent. */
export function formatAmount(amount: number, unit: BudgetUnit): string {
  if (unit === TOKENS) return `${amount} tokens`;
  const sign = amount < 0 ? '-' : '';
  const digits = String(Math.abs(amount)).padStart(10, '0');
  const fraction = trimEnd(digits.slice(-9), '0').padEnd(2, '0');
  return `${sign}${digits.slice(0, -9)}.${fraction} ${unit}`;
}

const DAY_MS = 86_400_000;

/** The day that was written last, counted from the epoch, and its text: a request of a key with limits writes it several times. */
let lastDay = Number.NaN;
let lastDayText = '';

/** The UTC day of a time, such as `2026-11-21`. Spending is stored by day. */
export function dayOf(ms: number): string {
  const day = Math.floor(ms / DAY_MS);
  if (day !== lastDay) {
    lastDayText = new Date(ms).toISOString().slice(0, 10);
    lastDay = day;
  }
  return lastDayText;
}

/** The name of the period at a time: `2026-11-21`, `2026-W47` (ISO 8601), `2026-11` or `total`. */
export function periodName(per: BudgetPeriod, ms: number): string {
  switch (per) {
    case 'day':
      return dayOf(ms);
    case 'week':
      return weekName(ms);
    case 'month':
      return dayOf(ms).slice(0, MONTH_CHARS);
    case 'total':
      return per;
  }
}

const DAYS_OF_WEEK = 7;
const MONTH_CHARS = 'yyyy-mm'.length;

/** The start of the week at a time, Monday at 00:00 UTC. */
function weekStart(ms: number): number {
  const day = Math.floor(ms / DAY_MS);
  // 1970 began on a Thursday.
  return (day - ((day + 3) % DAYS_OF_WEEK)) * DAY_MS;
}

/** A week is one of the year that has its Thursday. */
function weekName(ms: number): string {
  const thursday = weekStart(ms) + 3 * DAY_MS;
  const year = new Date(thursday).getUTCFullYear();
  const week = Math.floor((thursday - Date.UTC(year, 0, 1)) / (DAYS_OF_WEEK * DAY_MS)) + 1;
  return `${year}-W${String(week).padStart(2, '0')}`;
}

/** The first and the last day of the period at a time, as texts between which the names of its days are. */
export function periodDays(per: BudgetPeriod, ms: number): { readonly first: string; readonly last: string } {
  switch (per) {
    case 'day':
      return { first: dayOf(ms), last: dayOf(ms) };
    case 'week':
      return {
        first: dayOf(weekStart(ms)),
        last: dayOf(weekStart(ms) + (DAYS_OF_WEEK - 1) * DAY_MS),
      };
    case 'month': {
      const month = dayOf(ms).slice(0, MONTH_CHARS);
      return { first: month, last: `${month}~` };
    }
    case 'total':
      return { first: '', last: '~' };
  }
}

/** The end of the period in ms since the epoch; null: never. */
export function periodEnd(per: BudgetPeriod, ms: number): number | null {
  const now = new Date(ms);
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  switch (per) {
    case 'day':
      return Date.UTC(year, month, day + 1);
    case 'week':
      return weekStart(ms) + DAYS_OF_WEEK * DAY_MS;
    case 'month':
      return Date.UTC(year, month + 1, 1);
    case 'total':
      return null;
  }
}
