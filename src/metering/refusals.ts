/** Counts refused requests by hour, key and code. An isolate buffers its counts and writes them seldom, however many there are (M6). */
import {
  FIRST_REFUSALS_WAIT_MS,
  MAX_REFUSAL_ROWS,
  MAX_REFUSALS_RUN_MS,
  MAX_REFUSALS_WAIT_MS,
  MAX_REPORT_ROWS,
  REFUSALS_WAIT_GROWTH,
} from '../shared/limits.ts';
import type { StartTimer } from './record-writer.ts';
import { HOUR_MS, isoDay, isoTime, requestId } from './time.ts';

export interface RefusalRow {
  /** Hours since the epoch. */
  readonly hour: number;
  readonly keyId: string;
  /** The error's code. */
  readonly code: string;
  readonly requests: number;
}

export interface RefusalBatch {
  /** A UUIDv7: a store that has this batch ignores it. */
  readonly id: string;
  readonly rows: readonly RefusalRow[];
}

export const REFUSAL_GROUPS = ['day', 'hour', 'code', 'key'] as const;
export type RefusalGroup = (typeof REFUSAL_GROUPS)[number];

export interface RefusalQuery {
  /** Hours since the epoch; `toHour` is not within. */
  readonly fromHour: number;
  readonly toHour: number;
  /** One key's, or all (null). */
  readonly keyId: string | null;
  readonly groups: readonly RefusalGroup[];
}

/** The key of callers that are not known, and of keys beyond those that one batch has room for. */
export const NO_KEY = 'none';
const OTHER_KEY = '(other)';

export interface RefusalPorts {
  /** May be called again with the same batch. */
  readonly put: (batch: RefusalBatch) => Promise<void>;
  /** ms since the epoch. */
  readonly now: () => number;
  /** A random UUID (version 4). */
  readonly random: () => string;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}

/** In the life of one request. */
export interface RefusalWork {
  readonly startTimer: StartTimer;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/**
 * The counts of one isolate. They are written one second after the first refusal; the wait grows by a quarter with each write, up to
 * ten minutes, and shrinks by one such step in ten minutes. So neither a flood nor a trickle of refusals causes more than six writes
 * an hour for long. What is not written when the isolate ends is lost.
 */
export class RefusalCounts {
  readonly #ports: RefusalPorts;
  #rows = new Map<string, { -readonly [Field in keyof RefusalRow]: RefusalRow[Field] }>();
  /** What is being written, until the store has it. */
  #batch: RefusalBatch | null = null;
  /** How many writes came close to each other. */
  #level = 0;
  #writtenAt = 0;
  #dueAt = 0;
  /** Until then one request takes care of the writing. */
  #claimedUntil = 0;

  constructor(ports: RefusalPorts) {
    this.#ports = ports;
  }

  add(keyId: string, code: string): void {
    const now = this.#ports.now();
    if (!this.#isPending) this.#plan(now);
    const hour = Math.floor(now / HOUR_MS);
    const isNew = !this.#rows.has(rowId(hour, keyId, code));
    const counted = isNew && this.#rows.size >= MAX_REFUSAL_ROWS ? OTHER_KEY : keyId;
    const id = rowId(hour, counted, code);
    const row = this.#rows.get(id);
    if (row === undefined) this.#rows.set(id, { hour, keyId: counted, code, requests: 1 });
    else row.requests++;
  }

  /** Writes what is due, or will be soon, after the request's answer. Called with each request, so it costs two comparisons. */
  writeWhenDue({ startTimer, waitUntil }: RefusalWork): void {
    if (!this.#isPending) return;
    const now = this.#ports.now();
    if (now < this.#claimedUntil || this.#dueAt > now + MAX_REFUSALS_RUN_MS) return;
    const until = now + MAX_REFUSALS_RUN_MS;
    // A request whose context ends before its work is done does not hold up the next one for ever.
    this.#claimedUntil = until + MAX_REFUSALS_RUN_MS;
    waitUntil(this.#writeUntil(until, startTimer));
  }

  get #isPending(): boolean {
    return this.#rows.size > 0 || this.#batch !== null;
  }

  #plan(now: number): void {
    const calm = Math.floor((now - this.#writtenAt) / MAX_REFUSALS_WAIT_MS);
    this.#level = Math.max(0, this.#level - calm);
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
    this.#plan(this.#writtenAt);
  }
}

/** The level from which on the wait is the longest. */
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

/** A row of the answer. */
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

  /** In the order of their groups' values. */
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
