/** One request's way into the ledger: counted as it goes, settled exactly once, whatever its end (M1). */
import type { ApiError } from '../canonical/error.ts';
import type { CountedUsage } from '../canonical/usage.ts';
import type { PriceBook } from './prices/price-book.ts';
import { priceRecord } from './prices/price-record.ts';
import { boundRecord, isoTime, type UsageRecord } from './record.ts';
import type { RecordWriter } from './record-writer.ts';
import type { Tally } from './tally.ts';

export interface RequestFacts {
  readonly requestId: string;
  readonly keyId: string;
  /** The model as the caller named it: an alias, or an address. */
  readonly asked: string;
  readonly provider: string;
  readonly model: string;
  /** Ids under which the provider's prices may stand. */
  readonly priceIds: readonly string[];
  readonly route: string;
  /** Names of what the upstream's request lacks of the caller's, or has otherwise (Q5, Q6). */
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
  /** ms since the epoch. */
  readonly arrivedAt: number;
}

/** How the request ended; `refused`: the upstream answered with an error in the place of an answer, so no tokens were used. */
export type RequestEnd =
  | { readonly kind: 'finished' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed' | 'timed_out' | 'refused'; readonly error: ApiError };

export interface MeterPorts {
  readonly records: Pick<RecordWriter, 'write'>;
  readonly prices: Pick<PriceBook, 'table'>;
  /** ms since the epoch. */
  readonly now: () => number;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}

export class RequestMeter {
  readonly tally: Tally;
  readonly #facts: RequestFacts;
  readonly #ports: MeterPorts;
  readonly #settled = Promise.withResolvers<UsageRecord>();
  #isSettled = false;
  #bytesOut = 0;

  constructor(facts: RequestFacts, tally: Tally, ports: MeterPorts) {
    this.#facts = facts;
    this.tally = tally;
    this.#ports = ports;
  }

  /** Resolves when the record was written; never rejects. For `waitUntil`, from the request's beginning on. */
  get settled(): Promise<UsageRecord> {
    return this.#settled.promise;
  }

  wrote(bytes: number): void {
    this.#bytesOut += bytes;
  }

  /** Writes the record and the log line. Only the first call counts: a client's disconnect is reported in more ways than one. */
  settle(end: RequestEnd): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const record = this.#record(end);
    this.#ports.log({ event: 'request', ...record });
    this.#ports.records.write(record).then(() => this.#settled.resolve(record));
  }

  #record(end: RequestEnd): UsageRecord {
    const { requestId, keyId, asked, provider, model, priceIds, route, dropped, changed, arrivedAt } =
      this.#facts;
    const { usage, estimated } = end.kind === 'refused' ? NOTHING_USED : this.tally.countUsage();
    const now = this.#ports.now();
    const firstTokenAt = this.tally.firstTokenAt;
    // Fixed here, by the request's end (P4).
    const cost = priceRecord(this.#ports.prices.table, {
      providers: priceIds,
      model,
      usage,
      upstreamCost: end.kind === 'refused' ? null : this.tally.upstreamCost,
      endMs: now,
    });
    const error_code = 'error' in end ? end.error.code : null;
    const total_ms = now - arrivedAt;
    return boundRecord({
      request_id: requestId,
      time: isoTime(arrivedAt),
      ended: isoTime(now),
      key_id: keyId,
      asked,
      provider,
      model,
      route,
      status: end.kind === 'refused' ? 'failed' : end.kind,
      error_code,
      finish_reason: this.tally.finishWord,
      prompt_tokens: usage.prompt_tokens,
      completion_tokens: usage.completion_tokens,
      total_tokens: usage.total_tokens,
      cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? null,
      reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? null,
      vendor_events: this.tally.vendorEvents,
      vendor_tokens: this.tally.vendorTokens,
      first_token_ms: firstTokenAt === null ? null : firstTokenAt - arrivedAt,
      total_ms,
      bytes_out: this.#bytesOut,
      estimated,
      cost_nanos: cost.cost,
      currency: cost.currency,
      cost_source: cost.cost_source,
      price_since: cost.price_since === null ? null : isoTime(Date.parse(cost.price_since)),
      // What the upstream tells is no estimate, whatever its tokens are.
      cost_estimated: cost.is_upper_bound || (estimated && cost.cost_source === 'table'),
      attempts: [{ provider, model, error_code, ms: total_ms }],
      ...(dropped.length === 0 ? {} : { dropped }),
      ...(changed.length === 0 ? {} : { changed }),
    });
  }
}

const NOTHING_USED: CountedUsage = {
  estimated: false,
  usage: {
    prompt_tokens: 0,
    completion_tokens: 0,
    total_tokens: 0,
  },
};
