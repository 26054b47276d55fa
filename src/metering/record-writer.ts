/** Gets usage records to where they are kept, again and again if need be; what can't be written is logged whole (M1, L5). */
import type { UsageRecord } from './record.ts';

/** Somewhere that takes records: a ledger, the Queue before it, or a place from where they are brought in later. */
export interface RecordSink {
  /** Taken twice, a record is there once. Rejects where not all of them were taken. */
  put(records: readonly UsageRecord[]): Promise<void>;
}

export interface WriterPorts {
  /** The first one that takes a record keeps it. */
  readonly sinks: readonly RecordSink[];
  /** Calls back once after so many ms, unless it is cancelled with what it returned. */
  readonly startTimer: (ms: number, onFire: () => void) => () => void;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}

/** The waits before the second try and each one after it. */
const RETRY_DELAYS_MS = [500, 1000, 2000, 4000, 8000];

/** A Worker lives on for 30 s after its answer; what is not written by now is logged while it still can be. */
const MAX_WRITE_MS = 25_000;

/** A sink that has not taken a record by then leaves it to the next one. */
const MAX_SINK_MS = 10_000;

export class RecordWriter {
  readonly #ports: WriterPorts;
  #lost = 0;

  constructor(ports: WriterPorts) {
    this.#ports = ports;
  }

  /** Resolves when the record was taken, or was logged as lost; never rejects. */
  async write(record: UsageRecord): Promise<void> {
    const failures: string[] = [];
    let left = MAX_WRITE_MS;
    for (const [i, sink] of this.#ports.sinks.entries()) {
      const isLast = i === this.#ports.sinks.length - 1;
      const ms = isLast ? left : Math.min(left, MAX_SINK_MS);
      if (await this.#within(ms, (isOver) => this.#tryAll(sink, record, failures, isOver))) return;
      left -= ms;
    }
    this.#lost++;
    const reason = failures.at(-1) ?? `The ledger took longer than ${MAX_WRITE_MS} ms`;
    this.#ports.log({ event: 'record_lost', lost_by_this_isolate: this.#lost, reason, record });
  }

  /** Whether the work succeeds within so many ms. */
  async #within(ms: number, work: (isOver: () => boolean) => Promise<boolean>): Promise<boolean> {
    let isOver = false;
    const done = Promise.withResolvers<boolean>();
    const cancelTimer = this.#ports.startTimer(ms, () => {
      isOver = true;
      done.resolve(false);
    });
    void work(() => isOver).then(done.resolve);
    const result = await done.promise;
    cancelTimer();
    return result;
  }

  async #tryAll(
    sink: RecordSink,
    record: UsageRecord,
    failures: string[],
    isOver: () => boolean,
  ): Promise<boolean> {
    for (const delay of [...RETRY_DELAYS_MS, null]) {
      if (isOver()) return false;
      try {
        // A try that was only slow changes nothing when it is repeated.
        await sink.put([record]);
        return true;
      } catch (error) {
        failures.push(String(error));
      }
      if (delay !== null) await new Promise<void>((resolve) => this.#ports.startTimer(delay, resolve));
    }
    return false;
  }
}
