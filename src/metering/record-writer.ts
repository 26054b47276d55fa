/** Gets usage records to where they are kept, again and again if need be; what can't be written is logged whole (M1, L5). */
import { type UsageRecord, withoutCharge } from './record.ts';

/** Somewhere that takes records: a ledger, the Queue before it, or a place from where they are brought in later. */
export interface RecordSink {
  /** Taken twice, a record is there once. Rejects where not all of them were taken. */
  put(records: readonly UsageRecord[]): Promise<void>;
}

/** Calls back once after so many ms, unless it is cancelled with what it returned. */
export type StartTimer = (ms: number, onFire: () => void) => () => void;

/** The waits before the second try and each one after it. */
const RETRY_DELAYS_MS = [500, 1000, 2000, 4000, 8000];

/** A Worker lives on for 30 s after its answer; what is not written by now is logged while it still can be. */
const MAX_WRITE_MS = 25_000;

/** A sink that has not taken a record by then leaves it to the next one. */
const MAX_SINK_MS = 10_000;

/** One record's way, through all sinks. */
interface Delivery {
  readonly record: UsageRecord;
  readonly startTimer: StartTimer;
  readonly failures: string[];
}

export class RecordWriter {
  readonly #sinks: readonly RecordSink[];
  readonly #log: (entry: Readonly<Record<string, unknown>>) => void;
  #lost = 0;

  /** @param sinks the first one that takes a record keeps it */
  constructor(sinks: readonly RecordSink[], log: (entry: Readonly<Record<string, unknown>>) => void) {
    this.#sinks = sinks;
    this.#log = log;
  }

  /**
   * Resolves when the record was taken, or was logged as lost; never rejects.
   * @param startTimer its request's: a timer is no other request's business
   */
  async write(record: UsageRecord, startTimer: StartTimer): Promise<void> {
    const delivery: Delivery = { record, startTimer, failures: [] };
    let left = MAX_WRITE_MS;
    for (const sink of this.#sinks) {
      const ms = sink === this.#sinks.at(-1) ? left : Math.min(left, MAX_SINK_MS);
      if (await giveWithin(ms, sink, delivery)) return;
      left -= ms;
    }
    this.#lost++;
    const reason = delivery.failures.at(-1) ?? `The ledger took longer than ${MAX_WRITE_MS} ms`;
    this.#log({
      event: 'record_lost',
      lost_by_this_isolate: this.#lost,
      reason,
      record: withoutCharge(record),
    });
  }
}

/** Whether the sink takes the record within so many ms. */
function giveWithin(ms: number, sink: RecordSink, delivery: Delivery): Promise<boolean> {
  return new Promise((resolve) => {
    let isOver = false;
    const cancelTimer = delivery.startTimer(ms, () => {
      isOver = true;
      resolve(false);
    });
    void give(sink, delivery, () => isOver).then((isTaken) => {
      cancelTimer();
      resolve(isTaken);
    });
  });
}

async function give(sink: RecordSink, delivery: Delivery, isOver: () => boolean): Promise<boolean> {
  const { record, startTimer, failures } = delivery;
  for (const delay of [...RETRY_DELAYS_MS, null]) {
    if (isOver()) return false;
    try {
      // A try that was only slow changes nothing when it is repeated.
      await sink.put([record]);
      return true;
    } catch (error) {
      failures.push(String(error));
    }
    if (delay !== null) await new Promise<void>((resolve) => void startTimer(delay, resolve));
  }
  return false;
}
