/** One request's way into the ledger: counted as it goes, settled exactly once, whatever its end (M1). */
import type { ApiError } from '../canonical/error.ts';
import { type AttemptFacts, AttemptMeter } from './attempt-meter.ts';
import type { PriceBook } from './pricing/price-book.ts';
import { type Attempt, boundRecord, isoTime, type UsageRecord } from './record.ts';
import type { StartTimer } from './record-writer.ts';
import { sumUp } from './sum-attempts.ts';

export interface RequestFacts {
  readonly requestId: string;
  readonly keyId: string;
  /** The model as the caller named it: an alias, or an address. */
  readonly asked: string;
  readonly route: string;
  readonly client: UsageRecord['client'];
  /** ms since the epoch. */
  readonly arrivedAt: number;
  /** Tokens of the prompt, estimated. */
  readonly promptTokens: number;
}

/** How the request ended; `refused`: the upstream answered with an error in the place of an answer, so it used no more than it reports. */
export type RequestEnd =
  | { readonly kind: 'finished' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed' | 'timed_out' | 'refused'; readonly error: ApiError };

/** Where a record goes, with the attempts that it sums up. Never rejects. */
export interface MeteredRecords {
  write(record: UsageRecord, startTimer: StartTimer, attempts: readonly AttemptMeter[]): Promise<void>;
}

export interface MeterPorts {
  readonly records: MeteredRecords;
  readonly prices: Pick<PriceBook, 'table'>;
  /** ms since the epoch. */
  readonly now: () => number;
  readonly startTimer: StartTimer;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
  /** Called once, with who served or was asked last. */
  readonly onRecord: (record: UsageRecord, served: AttemptFacts) => void;
}

export class RequestMeter {
  readonly #facts: RequestFacts;
  readonly #ports: MeterPorts;
  readonly #settled = Promise.withResolvers<UsageRecord>();
  /** In order: those that were asked, and those that were left out. */
  readonly #attempts: (AttemptMeter | Attempt)[] = [];
  #current: AttemptMeter;
  #isSettled = false;
  #bytesOut = 0;

  /**
   * @param skipped who is not asked
   * @param first who is asked first, and at once
   */
  constructor(facts: RequestFacts, skipped: readonly Attempt[], first: AttemptFacts, ports: MeterPorts) {
    this.#facts = facts;
    this.#ports = ports;
    this.#attempts.push(...skipped);
    this.#current = this.#begin(first);
  }

  /** Resolves when the record was written; never rejects. For `waitUntil`, from the request's beginning on. */
  get settled(): Promise<UsageRecord> {
    return this.#settled.promise;
  }

  /** The attempt under way, or the last one: who serves the request. */
  get current(): AttemptMeter {
    return this.#current;
  }

  /** What was tried so far (R8). */
  get attempts(): readonly Attempt[] {
    return this.#attempts.map((one) => (one instanceof AttemptMeter ? one.attempt : one));
  }

  /** How many attempts their upstreams bill, or may bill. */
  get billedAttempts(): number {
    return this.#asked.filter((attempt) => attempt.isBilled).length;
  }

  get #asked(): readonly AttemptMeter[] {
    return this.#attempts.filter((one) => one instanceof AttemptMeter);
  }

  /** The next one is asked, in the place of one that was given up. */
  begin(facts: AttemptFacts): AttemptMeter {
    this.#current = this.#begin(facts);
    return this.#current;
  }

  /** One was not asked. */
  skip(attempt: Attempt): void {
    this.#attempts.push(attempt);
  }

  wrote(bytes: number): void {
    this.#bytesOut += bytes;
  }

  /** Writes the record and the log line. Only the first call counts: a client's disconnect is reported in more ways than one. */
  settle(end: RequestEnd): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const errorCode = 'error' in end ? end.error.code : null;
    this.#current.end({ errorCode, isRefused: end.kind === 'refused', isWhole: end.kind === 'finished' });
    const record = this.#record(end, errorCode);
    this.#ports.log({ event: 'request', ...record });
    const { records, startTimer } = this.#ports;
    records.write(record, startTimer, this.#asked).then(() => this.#settled.resolve(record));
    this.#ports.onRecord(record, this.#current.facts);
  }

  #begin(facts: AttemptFacts): AttemptMeter {
    const attempt = new AttemptMeter(facts, this.#ports.now, this.#facts.promptTokens);
    this.#attempts.push(attempt);
    return attempt;
  }

  #record(end: RequestEnd, error_code: string | null): UsageRecord {
    const { requestId, keyId, asked, route, client, arrivedAt } = this.#facts;
    const attempts = this.#asked;
    const { accumulator, facts } = this.#current;
    const { provider, model, dropped, changed } = facts;
    const now = this.#ports.now();
    return boundRecord({
      request_id: requestId,
      time: isoTime(arrivedAt),
      ended: isoTime(now),
      key_id: keyId,
      asked,
      provider,
      model,
      route,
      client,
      status: end.kind === 'refused' ? 'failed' : end.kind,
      error_code,
      finish_reason: accumulator.finishWord,
      ...sumUp(attempts, this.#ports.prices.table, now),
      first_token_ms: accumulator.firstTokenAt === null ? null : accumulator.firstTokenAt - arrivedAt,
      total_ms: now - arrivedAt,
      bytes_out: this.#bytesOut,
      attempts: this.attempts,
      ...(dropped.length === 0 ? {} : { dropped }),
      ...(changed.length === 0 ? {} : { changed }),
    });
  }
}
