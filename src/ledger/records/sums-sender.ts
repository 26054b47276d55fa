/** Sends the changed sums of a key to its directory. The key's own reports do not depend on it. */
import type { UsageRecord } from '../../metering/record.ts';
import { DAY_MS } from '../../metering/time.ts';
import { readState } from './records.ts';
import { changedDays, keepDays, MAX_CHANGED_ROWS } from './sums.ts';
import { type SumsMessage, UnsentSums } from './unsent-sums.ts';

/** The directory receives new sums within a minute. */
export const SEND_AFTER_MS = 30_000;
const RETRY_AFTER_MS = 60_000;

export interface SumsSenderPorts {
  readonly sql: SqlStorage;
  readonly transaction: <Value>(act: () => Value) => Value;
  /** In ms since the epoch. */
  readonly now: () => number;
  readonly recordDays: () => number;
  /** @returns the hours of which the directory does not have all records; null: it cannot be reached. Never rejects */
  readonly tell: (message: SumsMessage) => Promise<readonly number[] | null>;
}

export class SumsSender {
  readonly #ports: SumsSenderPorts;
  readonly #unsent: UnsentSums;
  #sending: Promise<number | null> | null = null;
  #pauses = 0;

  constructor(ports: SumsSenderPorts) {
    this.#ports = ports;
    this.#unsent = new UnsentSums(ports);
  }

  /** @param records that were stored and summed */
  note(records: readonly UsageRecord[]): void {
    this.#unsent.note(records);
  }

  /** Sends what has changed. @returns when it is due again, in ms since the epoch; null: all is sent */
  send(now: number): Promise<number | null> {
    if (this.#pauses > 0) return Promise.resolve(now + SEND_AFTER_MS);
    // Two at once would each count on what the other sends.
    this.#sending ??= this.#send(now).finally(() => {
      this.#sending = null;
    });
    return this.#sending;
  }

  /** Acts while nothing is sent. */
  async pausedFor<Value>(act: () => Promise<Value>): Promise<Value> {
    this.#pauses++;
    try {
      await this.#sending;
      return await act();
    } finally {
      this.#pauses--;
    }
  }

  async #send(now: number): Promise<number | null> {
    const { sql, transaction } = this.#ports;
    const rows = changedDays(sql, readState(sql));
    if (rows.length === 0) return null;
    const missing = new Set<number>();
    for (const message of this.#unsent.messages(rows)) {
      const hours = await this.#tell(message);
      if (hours === null) return now + RETRY_AFTER_MS;
      // The message of an hour may be followed by one with its records.
      for (const hour of hours) missing.add(hour);
    }
    for (const hour of missing)
      for (const message of this.#unsent.recordsOfHour(hour))
        if ((await this.#tell(message)) === null) return now + RETRY_AFTER_MS;
    // Yesterday stays open: a request counts on the day of its arrival and may end on the next.
    transaction(() => keepDays(sql, rows, Math.floor(now / DAY_MS) - 1));
    return rows.length === MAX_CHANGED_ROWS ? now : null;
  }

  /** After a failure everything is sent again. */
  async #tell(message: SumsMessage): Promise<readonly number[] | null> {
    const hours = await this.#ports.tell(message);
    if (hours === null) this.#unsent.forget();
    return hours;
  }
}
