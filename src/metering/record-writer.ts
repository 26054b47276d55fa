/** Delivers usage records to the first sink that takes them, with retries. A record that cannot be delivered is logged completely. */

import type { Log } from '../shared/log-event.ts';
import { type UsageRecord, withoutCharge } from './record.ts';

/** A destination of records: a ledger, a Queue, or the dead letters. */
export interface RecordSink {
  /** Idempotent by request id. Rejects unless all records were taken. */
  put(records: readonly UsageRecord[]): Promise<void>;
}

/** Calls back once after `ms`, unless the returned function cancels it. */
export type StartTimer = (ms: number, onFire: () => void) => () => void;

/** The waits before the retries. */
const RETRY_DELAYS_MS = [500, 1000, 2000, 4000, 8000];

/** A Worker has 30 s after its response. Records that are not written by then are logged while there is still time. */
const MAX_WRITE_MS = 25_000;

/** After this time the next sink is tried. */
const MAX_SINK_MS = 10_000;

/** The delivery of one record to the sinks. */
interface RecordDelivery {
  readonly record: UsageRecord;
  readonly startTimer: StartTimer;
  readonly failures: string[];
}

interface LastTaken {
  readonly requestId: string;
  /** ISO 8601. */
  readonly ended: string;
}

/** What an isolate has delivered. */
export interface Deliveries {
  lost: number;
  last: LastTaken | null;
}

/** Hands each usage record to the first sink that takes it, with retries. A record that none takes is logged whole. */
export class RecordWriter {
  readonly #sinks: readonly RecordSink[];
  readonly #log: Log;
  readonly #deliveries: Deliveries;

  /**
   * @param sinks tried in order, until one takes the record
   * @param deliveries of the writer that this one replaces
   */
  constructor(sinks: readonly RecordSink[], log: Log, deliveries: Deliveries = { lost: 0, last: null }) {
    this.#sinks = sinks;
    this.#log = log;
    this.#deliveries = deliveries;
  }

  /** Records that no sink took. */
  get lost(): number {
    return this.#deliveries.lost;
  }

  /** The record with the latest arrival of those that a sink has taken; null: none was. */
  get last(): LastTaken | null {
    return this.#deliveries.last;
  }

  /**
   * Resolves when the record was taken, or was logged as lost; never rejects.
   * @param startTimer of the record's request, because a request cannot use another one's timers
   */
  async write(record: UsageRecord, startTimer: StartTimer): Promise<void> {
    const delivery: RecordDelivery = { record, startTimer, failures: [] };
    let left = MAX_WRITE_MS;
    for (const sink of this.#sinks) {
      const ms = sink === this.#sinks.at(-1) ? left : Math.min(left, MAX_SINK_MS);
      if (await putWithin(ms, sink, delivery)) {
        const { request_id: requestId, ended } = record;
        if (requestId > (this.last?.requestId ?? '')) this.#deliveries.last = { requestId, ended };
        return;
      }
      left -= ms;
    }
    this.#deliveries.lost++;
    const reason = delivery.failures.at(-1) ?? `The ledger took longer than ${MAX_WRITE_MS} ms`;
    this.#log({
      event: 'record_lost',
      lost_by_this_isolate: this.lost,
      reason,
      record: withoutCharge(record),
    });
  }
}

/** Whether the sink takes the record within `ms`. */
function putWithin(ms: number, sink: RecordSink, delivery: RecordDelivery): Promise<boolean> {
  return new Promise((resolve) => {
    let isOver = false;
    const cancelTimer = delivery.startTimer(ms, () => {
      isOver = true;
      resolve(false);
    });
    void putWithRetries(sink, delivery, () => isOver).then((isTaken) => {
      cancelTimer();
      resolve(isTaken);
    });
  });
}

async function putWithRetries(
  sink: RecordSink,
  delivery: RecordDelivery,
  isOver: () => boolean,
): Promise<boolean> {
  const { record, startTimer, failures } = delivery;
  for (const delay of [...RETRY_DELAYS_MS, null]) {
    if (isOver()) return false;
    try {
      await sink.put([record]);
      return true;
    } catch (error) {
      failures.push(String(error));
    }
    if (delay !== null) await new Promise<void>((resolve) => void startTimer(delay, resolve));
  }
  return false;
}
