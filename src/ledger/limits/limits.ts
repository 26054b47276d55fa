/** What a key may be limited to, as it is written in requests and answers, and as it is kept (G1). */
import { isObject, type JsonObject } from '../../shared/json.ts';
import { isUnit, MAX_AMOUNT, readAmount, type Unit, writeAmount } from './amount.ts';

const PERIODS = ['day', 'month', 'total'] as const;
export type Per = (typeof PERIODS)[number];

const MODES = ['hard', 'warn'] as const;

export interface Budget {
  readonly unit: Unit;
  /** An integer of tokens, or of 10^-9 of the currency. */
  readonly amount: number;
  readonly per: Per;
  /** `hard` reserves what a request may cost at most and refuses it; `warn` reserves nothing and only tells. */
  readonly mode: (typeof MODES)[number];
}

/** Null is no limit. */
export interface Limits {
  readonly budget: Budget | null;
  /** Requests, and tokens, in any 60 seconds. */
  readonly rpm: number | null;
  readonly tpm: number | null;
  /** Requests that run at the same time. */
  readonly maxConcurrent: number | null;
  /** Of one choice of an answer. */
  readonly maxOutputTokens: number | null;
}

export const NO_LIMITS: Limits = {
  budget: null,
  rpm: null,
  tpm: null,
  maxConcurrent: null,
  maxOutputTokens: null,
};

/** The fields of a request's body that are limits. */
export const LIMIT_FIELDS = ['budget', 'rpm', 'tpm', 'max_concurrent', 'max_output_tokens'] as const;

/** The output of a request under a hard budget whose caller names no limit. */
export const DEFAULT_MAX_OUTPUT_TOKENS = 4096;

export type LimitsResult =
  | { readonly kind: 'limits'; readonly limits: Limits }
  | { readonly kind: 'invalid'; readonly message: string; readonly param: string };

/** The limits with a body's on top: a field that is absent changes nothing, null takes the limit away. */
export function readLimits(body: JsonObject, before: Limits = NO_LIMITS): LimitsResult {
  const budget = body.budget === undefined ? before.budget : readBudget(body.budget);
  if (typeof budget === 'string') return { kind: 'invalid', message: budget, param: 'budget' };
  const counts = {
    rpm: readLimit(body.rpm, before.rpm),
    tpm: readLimit(body.tpm, before.tpm),
    max_concurrent: readLimit(body.max_concurrent, before.maxConcurrent),
    max_output_tokens: readLimit(body.max_output_tokens, before.maxOutputTokens),
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
  return { kind: 'limits', limits: { budget, rpm, tpm, maxConcurrent, maxOutputTokens } };
}

function readLimit(value: unknown, before: number | null): number | null | undefined {
  if (value === undefined) return before;
  if (value === null) return null;
  const isCount = typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_AMOUNT;
  return isCount ? value : undefined;
}

const BUDGET_FORM =
  'budget must be {"USD": 5, "per": "month", "mode": "hard"}: one amount, in a currency or in "tokens"';

/** @returns a text where it is invalid: what it should be */
function readBudget(value: unknown): Budget | null | string {
  if (value === null) return null;
  if (!isObject(value)) return BUDGET_FORM;
  const { per: askedPer = 'total', mode: askedMode = 'hard', ...amounts } = value;
  const per = PERIODS.find((known) => known === askedPer);
  if (per === undefined) return `budget.per must be one of: ${PERIODS.join(', ')}`;
  const mode = MODES.find((known) => known === askedMode);
  if (mode === undefined) return `budget.mode must be one of: ${MODES.join(', ')}`;
  const [first, ...others] = Object.entries(amounts);
  if (first === undefined || others.length > 0 || !isUnit(first[0])) return BUDGET_FORM;
  const [unit, asked] = first;
  const amount = readAmount(asked, unit);
  if (amount === undefined) return `budget.${unit} must be ${unit === 'tokens' ? TOKENS_FORM : MONEY_FORM}`;
  return { unit, amount, per, mode };
}

const TOKENS_FORM = `a whole number from 0 to ${MAX_AMOUNT}`;
const MONEY_FORM = 'a number from 0 to 1000000 with at most 9 decimals';

/** The limits that there are, in the form in which requests have them; null for none. */
export function writeLimits(limits: Limits): JsonObject | null {
  const { budget, rpm, tpm, maxConcurrent, maxOutputTokens } = limits;
  const written = {
    ...(budget !== null && { budget: writeBudget(budget) }),
    ...(rpm !== null && { rpm }),
    ...(tpm !== null && { tpm }),
    ...(maxConcurrent !== null && { max_concurrent: maxConcurrent }),
    ...(maxOutputTokens !== null && { max_output_tokens: maxOutputTokens }),
  };
  return Object.keys(written).length === 0 ? null : written;
}

function writeBudget({ unit, amount, per, mode }: Budget): JsonObject {
  return { [unit]: writeAmount(amount, unit), per, mode };
}
