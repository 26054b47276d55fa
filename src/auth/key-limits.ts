/** The limits of a gateway key: their form in requests and responses, amounts of money and tokens, and budget periods. */
import { isObject, type JsonObject } from '../shared/json.ts';
import { MAX_COST_NANO, wholeAmount } from '../shared/money.ts';
import { trimEnd } from '../shared/trim.ts';

/** Null is no limit. */
export interface Limits {
  readonly budget: Budget | null;
  /** Requests in any 60 seconds. */
  readonly rpm: number | null;
  /** Tokens in any 60 seconds. */
  readonly tpm: number | null;
  /** Requests that run at the same time. */
  readonly maxConcurrent: number | null;
  /** Output tokens of one choice. */
  readonly maxOutputTokens: number | null;
  /** The limits of each user of the key. */
  readonly perUser: UserLimits | null;
}

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
  /** `hard` reserves the upper bound of each request and refuses what does not fit; `warn` reserves nothing and only reports. */
  readonly mode: (typeof MODES)[number];
}

/** `tokens`, or a currency's ISO 4217 code. */
export type BudgetUnit = string;

const PERIODS = ['day', 'month', 'total'] as const;
export type BudgetPeriod = (typeof PERIODS)[number];

const MODES = ['hard', 'warn'] as const;

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

/** The fields of a request body that set limits. */
export const LIMIT_FIELDS = [
  'budget',
  'rpm',
  'tpm',
  'max_concurrent',
  'max_output_tokens',
  'per_user',
] as const;

/** The first of the fields that sets a limit; null: none does. */
export function limitField(fields: JsonObject): string | null {
  return LIMIT_FIELDS.find((field) => field in fields) ?? null;
}

const USER_LIMIT_FIELDS = ['budget', 'rpm', 'tpm', 'max_concurrent', 'max_users'];
const DEFAULT_MAX_USERS = 10_000;
const MAX_USERS = 100_000;

/** Whether the key, or each of its users, has a budget that reserves. @param limits as they are stored */
export function hasHardBudget(limits: JsonObject): boolean {
  return hardUnits(limits).length > 0;
}

/** The currencies of the budgets, of a key and of each of its users, that refuse what has no price. @param limits as they are stored */
export function hardCurrencies(limits: JsonObject | null): readonly string[] {
  return [...new Set(hardUnits(limits))].filter((unit) => unit !== TOKENS);
}

function hardUnits(limits: JsonObject | null): readonly BudgetUnit[] {
  const read = readLimits(limits ?? {});
  if (read.kind === 'invalid') return [];
  const budgets = [read.limits.budget, read.limits.perUser?.budget ?? null];
  return budgets.flatMap((budget) => (budget?.mode === 'hard' ? [budget.unit] : []));
}

/** What a key has used of its limits at one moment. Null where there is no limit. */
export interface LimitStatus {
  readonly limits: Limits;
  readonly budget: BudgetStatus | null;
  readonly requests: RateStatus | null;
  readonly tokens: RateStatus | null;
  /** Requests that run. */
  readonly running: number | null;
}

/** The status of limits that nothing has used. */
export function unusedStatus(limits: Limits, now: number): LimitStatus {
  const { budget, rpm, tpm, maxConcurrent } = limits;
  const amounts = { spent: 0, reserved: 0, estimated: 0, unreported: 0 };
  const unused = { used: 0, resetMs: 0 };
  return {
    limits,
    budget: budget === null ? null : { ...amounts, resetsAt: periodEnd(budget.per, now) },
    requests: rpm === null ? null : unused,
    tokens: tpm === null ? null : unused,
    running: maxConcurrent === null ? null : 0,
  };
}

/** Amounts are integers in the budget's unit: tokens, or 10^-9 of the currency. */
export interface BudgetStatus {
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
  const budget = body.budget === undefined ? before.budget : readBudget(body.budget);
  if (typeof budget === 'string') return { kind: 'invalid', message: budget, param: 'budget' };
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
  const perUser = body.per_user === undefined ? before.perUser : readUserLimits(body.per_user);
  if (perUser !== null && 'kind' in perUser) return perUser;
  return { kind: 'limits', limits: { budget, rpm, tpm, maxConcurrent, maxOutputTokens, perUser } };
}

/** Replaces the users' limits as a whole, as a budget is replaced. */
function readUserLimits(value: unknown): UserLimits | null | Extract<LimitsResult, { kind: 'invalid' }> {
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
  const read = readLimits(fields);
  if (read.kind === 'invalid') return invalid(`per_user.${read.message}`);
  const { budget, rpm, tpm, maxConcurrent } = read.limits;
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

/** @returns a text that says what is wrong, where the budget is invalid */
function readBudget(value: unknown): Budget | null | string {
  if (value === null) return null;
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

/** The limits in the form in which requests set them; null where there are none. */
export function writeLimits(limits: Limits): JsonObject | null {
  const { budget, rpm, tpm, maxConcurrent, maxOutputTokens, perUser } = limits;
  const written = {
    ...(budget !== null && { budget: writeBudget(budget) }),
    ...(rpm !== null && { rpm }),
    ...(tpm !== null && { tpm }),
    ...(maxConcurrent !== null && { max_concurrent: maxConcurrent }),
    ...(maxOutputTokens !== null && { max_output_tokens: maxOutputTokens }),
    ...(perUser !== null && { per_user: writeUserLimits(limits, perUser) }),
  };
  return Object.keys(written).length === 0 ? null : written;
}

function writeUserLimits(limits: Limits, { maxUsers }: UserLimits): JsonObject {
  return {
    ...writeLimits(limitsOfUser(limits)),
    ...(maxUsers !== DEFAULT_MAX_USERS && { max_users: maxUsers }),
  };
}

function writeBudget({ unit, amount, per, mode }: Budget): JsonObject {
  return { [unit]: writeAmount(amount, unit), per, mode };
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

/** The UTC day of a time, such as `2026-11-21`. Spending is stored by day. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The name of the period at a time: `2026-11-21`, `2026-11` or `total`. */
export function periodName(per: BudgetPeriod, ms: number): string {
  return per === 'total' ? per : periodPrefix(per, ms);
}

/** The prefix that the names of all days of the period share: `2026-11-21`, `2026-11`, or nothing. */
export function periodPrefix(per: BudgetPeriod, ms: number): string {
  switch (per) {
    case 'day':
      return dayOf(ms);
    case 'month':
      return dayOf(ms).slice(0, 7);
    case 'total':
      return '';
  }
}

/** The end of the period in ms since the epoch; null: never. */
export function periodEnd(per: BudgetPeriod, ms: number): number | null {
  const now = new Date(ms);
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  switch (per) {
    case 'day':
      return Date.UTC(year, month, day + 1);
    case 'month':
      return Date.UTC(year, month + 1, 1);
    case 'total':
      return null;
  }
}
