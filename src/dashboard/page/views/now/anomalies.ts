/** Finds what is out of the ordinary: a group that spends several times its usual hour, and a model of which many requests fail. */
import type { Row, UsageRecord } from '../../api/types.ts';

const HOUR_MS = 3_600_000;

export interface SpendAnomaly {
  readonly kind: 'spend';
  /** The name of the group. */
  readonly of: string;
  readonly amount: number;
  /** The median of its earlier hours with spend. */
  readonly usual: number;
  /** The hour, as reports name it. */
  readonly since: string;
}

export interface FailureAnomaly {
  readonly kind: 'failures';
  /** The model as it was requested. */
  readonly of: string;
  readonly failed: number;
  readonly requests: number;
  /** The time of its first failure. */
  readonly since: string;
}

export type Anomaly = SpendAnomaly | FailureAnomaly;

/** An hour stands out from this multiple of the usual one on. */
const MIN_FACTOR = 3;
/** Hours with spend from which the usual one is taken. With fewer, nothing is usual. */
const MIN_HOURS = 6;
/** The part of the spend of all groups that an hour has at least, so that small change is not reported. */
const MIN_SHARE = 0.01;

/**
 * The groups whose spend in the running or the last hour stands out, the largest first.
 * @param rows by hour and group, of the days before
 * @param groupOf the name of a row's group
 */
export function spendAnomalies(
  rows: readonly Row[],
  groupOf: (row: Row) => string,
  currency: string,
  nowMs: number,
): readonly SpendAnomaly[] {
  const spentIn = ({ cost }: Row) => cost[currency] ?? 0;
  const total = rows.reduce((sum, row) => sum + spentIn(row), 0);
  const since = (Math.floor(nowMs / HOUR_MS) - 1) * HOUR_MS;
  const found = [...Map.groupBy(rows, groupOf)].flatMap(([of, own]): SpendAnomaly[] => {
    const isRecent = ({ hour = '' }: Row) => Date.parse(hour) >= since;
    const earlier = own.filter((row) => !isRecent(row) && spentIn(row) > 0).map(spentIn);
    const usual = medianOf(earlier);
    const [largest] = own.filter(isRecent).sort((a, b) => spentIn(b) - spentIn(a));
    if (largest === undefined || usual === null || earlier.length < MIN_HOURS) return [];
    const amount = spentIn(largest);
    const stands = amount >= usual * MIN_FACTOR && amount >= total * MIN_SHARE;
    return stands ? [{ kind: 'spend', of, amount, usual, since: largest.hour ?? '' }] : [];
  });
  return found.sort((a, b) => b.amount - a.amount);
}

function medianOf(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}

/** What is read of a record. */
type Ended = Pick<UsageRecord, 'asked' | 'status' | 'fault' | 'time'>;

/** Failures from which a model stands out, and their part of its requests since the first of them. */
const MIN_FAILED = 5;
const MIN_FAILED_SHARE = 0.2;

/**
 * The models that fail, the most failures first. Mistakes of callers are no failures of a model.
 * @param records of the last time, in any order
 */
export function failureAnomalies(records: readonly Ended[]): readonly FailureAnomaly[] {
  const found = [...Map.groupBy(records, ({ asked }) => asked)].flatMap(([of, own]): FailureAnomaly[] => {
    const inOrder = [...own].sort((a, b) => (a.time < b.time ? -1 : 1));
    const all = inOrder.filter(hasFailed).length;
    let failed = all;
    // The longest time that ends now and in which the failures are many.
    for (const [at, record] of inOrder.entries()) {
      if (!hasFailed(record)) continue;
      const requests = inOrder.length - at;
      if (failed >= MIN_FAILED && failed / requests >= MIN_FAILED_SHARE)
        return [{ kind: 'failures', of, failed, requests, since: record.time }];
      failed--;
    }
    return [];
  });
  return found.sort((a, b) => b.failed - a.failed);
}

/** Whether a request failed by a fault that is not its caller's. */
export function hasFailed({ status, fault }: Pick<Ended, 'status' | 'fault'>): boolean {
  return (status === 'failed' || status === 'timed_out') && fault !== 'caller';
}
