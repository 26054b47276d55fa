/** Counts refused requests by hour, key and code. Each isolate buffers its counts and writes them rarely, at any rate of refusals. */
import { MAX_REPORT_ROWS } from '../shared/limits.ts';
import type { Log } from '../shared/log-event.ts';
import type { Writable } from '../shared/writable.ts';
import type { StartTimer } from './record-writer.ts';
import { HOUR_MS, isoDay, isoTime, requestId } from './time.ts';

/** Counts of refused requests, by hour, key and code, that wait to be written. Further keys are counted together. */
export const MAX_REFUSAL_ROWS = 60;

/** The wait before the counts are written first. */
const FIRST_REFUSALS_WAIT_MS = 1000;

/** The factor by which the wait grows with each write. */
const REFUSALS_WAIT_GROWTH = 1.25;

/** The longest wait between two writes. */
const MAX_REFUSALS_WAIT_MS = 10 * 60 * 1000;

/** How long one request keeps writing counts: a Worker runs for 30 s after its response. */
const MAX_REFUSALS_RUN_MS = 25_000;

export interface RefusalRow {
  /** Hours since the epoch. */
  readonly hour: number;
  readonly keyId: string;
  /** The error's code. */
  readonly code: string;
  readonly requests: number;
}

export interface RefusalBatch {
  /** A UUIDv7. A store ignores a batch that it already has. */
  readonly id: string;
  readonly rows: readonly RefusalRow[];
}

export const REFUSAL_GROUPS = ['day', 'hour', 'code', 'key'] as const;
export type RefusalGroup = (typeof REFUSAL_GROUPS)[number];

export interface RefusalQuery {
  /** Hours since the epoch; `toHour` is exclusive. */
  readonly fromHour: number;
  readonly toHour: number;
  /** Null: all keys. */
  readonly keyId: string | null;
  readonly groups: readonly RefusalGroup[];
}

/** The key id of unknown callers. */
export const NO_KEY = 'none';
/** The key id of further keys if a batch is full. */
const OTHER_KEY = '(other)';

export interface RefusalPorts {
  /** Must be idempotent: a failed call is repeated with the same batch. */
  readonly put: (batch: RefusalBatch) => Promise<void>;
  /** ms since the epoch. */
  readonly now: () => number;
  /** A random UUID (version 4). */
  readonly random: () => string;
  readonly log: Log;
}

/** What one request provides for work after its response. */
export interface RefusalWork {
  readonly startTimer: StartTimer;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/**
 * The counts of one isolate. The first write happens one second after the first refusal. The wait grows by a quarter with each write,
 * up to ten minutes, and shrinks by one such step in ten minutes without a write. So any steady rate of refusals settles at six writes an
 * hour or fewer. Counts that are not written when the isolate ends are lost.
 */
export class RefusalCounts {
  readonly #ports: RefusalPorts;
  #rows = new Map<string, Writable<RefusalRow>>();
  /** The batch that is being written, until the store has it. */
  #batch: RefusalBatch | null = null;
  /** The exponent of the wait's growth. */
  #level = 0;
  #writtenAt = 0;
  #dueAt = 0;
  /** Until this time, the work of one request does the writing. */
  #claimedUntil = 0;

  constructor(ports: RefusalPorts) {
    this.#ports = ports;
  }

  add(keyId: string, code: string): void {
    const now = this.#ports.now();
    if (!this.#isPending) this.#schedule(now);
    const hour = Math.floor(now / HOUR_MS);
    const isNew = !this.#rows.has(rowId(hour, keyId, code));
    const counted = isNew && this.#rows.size >= MAX_REFUSAL_ROWS ? OTHER_KEY : keyId;
    const id = rowId(hour, counted, code);
    const row = this.#rows.get(id);
    if (row === undefined) this.#rows.set(id, { hour, keyId: counted, code, requests: 1 });
    else row.requests++;
  }

  /** Writes counts that are due, or soon will be, after the request's response. Called for each request, so it must be cheap. */
  writeWhenDue({ startTimer, waitUntil }: RefusalWork): void {
    if (!this.#isPending) return;
    const now = this.#ports.now();
    if (now < this.#claimedUntil || this.#dueAt > now + MAX_REFUSALS_RUN_MS) return;
    const until = now + MAX_REFUSALS_RUN_MS;
    // The claim expires, in case the request's context ends before its work is done.
    this.#claimedUntil = until + MAX_REFUSALS_RUN_MS;
    waitUntil(this.#writeUntil(until, startTimer));
  }

  get #isPending(): boolean {
    return this.#rows.size > 0 || this.#batch !== null;
  }

  #schedule(now: number): void {
    const decay = Math.floor((now - this.#writtenAt) / MAX_REFUSALS_WAIT_MS);
    this.#level = Math.max(0, this.#level - decay);
    const wait = FIRST_REFUSALS_WAIT_MS * REFUSALS_WAIT_GROWTH ** this.#level;
    this.#dueAt = now + Math.min(wait, MAX_REFUSALS_WAIT_MS);
  }

  async #writeUntil(until: number, startTimer: StartTimer): Promise<void> {
    while (this.#isPending && this.#dueAt <= until) {
      const wait = this.#dueAt - this.#ports.now();
      if (wait > 0) await new Promise<void>((resolve) => void startTimer(wait, resolve));
      await this.#write();
    }
    this.#claimedUntil = 0;
  }

  async #write(): Promise<void> {
    const { put, now, random, log } = this.#ports;
    const batch = this.#batch ?? { id: requestId(now(), random()), rows: [...this.#rows.values()] };
    if (this.#batch === null) this.#rows = new Map();
    this.#batch = batch;
    try {
      await put(batch);
      if (this.#batch === batch) this.#batch = null;
    } catch (error) {
      log({ event: 'refusals_not_written', reason: String(error) });
    }
    this.#level = Math.min(this.#level + 1, MAX_LEVEL);
    this.#writtenAt = now();
    this.#schedule(this.#writtenAt);
  }
}

/** The level with the longest wait. */
const MAX_LEVEL = Math.ceil(
  Math.log(MAX_REFUSALS_WAIT_MS / FIRST_REFUSALS_WAIT_MS) / Math.log(REFUSALS_WAIT_GROWTH),
);

function rowId(hour: number, keyId: string, code: string): string {
  return `${hour} ${keyId} ${code}`;
}

const READ_GROUP: { readonly [G in RefusalGroup]: (row: RefusalRow) => string } = {
  day: ({ hour }) => isoDay(hour * HOUR_MS),
  hour: ({ hour }) => `${isoTime(hour * HOUR_MS).slice(0, 13)}:00Z`,
  code: ({ code }) => code,
  key: ({ keyId }) => keyId,
};

/** A row of the response. */
export type RefusalSum = Partial<Record<RefusalGroup, string>> & { readonly refused_requests: number };

/** Sums rows by a report's groups. */
export class RefusalReport {
  readonly #groups: readonly RefusalGroup[];
  readonly #sums = new Map<string, { readonly values: readonly string[]; requests: number }>();
  #total = 0;

  constructor(groups: readonly RefusalGroup[]) {
    this.#groups = groups;
  }

  add(row: RefusalRow): void {
    const values = this.#groups.map((group) => READ_GROUP[group](row));
    const id = JSON.stringify(values);
    const sum = this.#sums.get(id) ?? { values, requests: 0 };
    sum.requests += row.requests;
    this.#total += row.requests;
    if (this.#sums.size <= MAX_REPORT_ROWS) this.#sums.set(id, sum);
  }

  get isTooLarge(): boolean {
    return this.#sums.size > MAX_REPORT_ROWS;
  }

  /** Sorted by the values of the groups. */
  get rows(): RefusalSum[] {
    const sorted = [...this.#sums].sort(([a], [b]) => (a < b ? -1 : 1));
    return sorted.map(([, { values, requests }]) => ({
      ...Object.fromEntries(this.#groups.map((group, i) => [group, values[i]])),
      refused_requests: requests,
    }));
  }

  get total(): number {
    return this.#total;
  }
}
