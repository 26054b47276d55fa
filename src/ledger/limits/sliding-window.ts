/**
 * The sliding minute of `rpm` and `tpm`: what was asked in each of the last seconds. In no 60 seconds more passes than the limit,
 * a burst at the turn of a minute included; a request counts for 60 to 61 seconds.
 */
import type { Sql } from './tables.ts';

/** The running second and the 60 before it. */
const WINDOW_SECONDS = 61;

export interface Rate {
  readonly used: number;
  /** ms until nothing of it counts any more. */
  readonly resetMs: number;
}

interface Second {
  readonly second: number;
  readonly requests: number;
  readonly tokens: number;
}

type Counted = 'requests' | 'tokens';

/** What counts at a moment, the oldest second first. */
export class Window {
  readonly #seconds: readonly Second[];
  readonly #now: number;

  private constructor(seconds: readonly Second[], now: number) {
    this.#seconds = seconds;
    this.#now = now;
  }

  /** @param now in ms since the epoch */
  static read(sql: Sql, now: number): Window {
    const query = 'SELECT second, requests, tokens FROM seconds WHERE second > ? ORDER BY second';
    const forgotten = secondOf(now) - WINDOW_SECONDS;
    const rows = sql.exec<{ second: number; requests: number; tokens: number }>(query, forgotten);
    return new Window(rows.toArray(), now);
  }

  rate(counted: Counted): Rate {
    const used = this.#seconds.reduce((sum, second) => sum + second[counted], 0);
    const last = this.#seconds.findLast((second) => second[counted] > 0);
    return { used, resetMs: last === undefined ? 0 : this.#untilForgotten(last) };
  }

  /** ms until at most so much counts. */
  waitFor(counted: Counted, atMost: number): number {
    let used = this.rate(counted).used;
    for (const second of this.#seconds) {
      if (used <= atMost) break;
      used -= second[counted];
      if (used <= atMost) return this.#untilForgotten(second);
    }
    return 0;
  }

  #untilForgotten({ second }: Second): number {
    return resetAfter(second, this.#now);
  }
}

/** ms until what was asked in the second does not count any more. */
export function resetAfter(second: number, now: number): number {
  return (second + WINDOW_SECONDS) * 1000 - now;
}

export function secondOf(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Counts a request in its second. */
export function addToWindow(sql: Sql, second: number, tokens: number): void {
  sql.exec(
    `INSERT INTO seconds VALUES (?1, ?2, 1, ?3) ON CONFLICT DO UPDATE SET
      requests = CASE WHEN second = ?2 THEN requests + 1 ELSE 1 END,
      tokens = CASE WHEN second = ?2 THEN tokens + ?3 ELSE ?3 END,
      second = ?2`,
    second % WINDOW_SECONDS,
    second,
    tokens,
  );
}

/** Sets right what a request of that second was taken to use, where the second still counts. */
export function correctWindow(sql: Sql, second: number, moreTokens: number): void {
  sql.exec(
    'UPDATE seconds SET tokens = max(0, tokens + ?3) WHERE slot = ?1 AND second = ?2',
    second % WINDOW_SECONDS,
    second,
    moreTokens,
  );
}
