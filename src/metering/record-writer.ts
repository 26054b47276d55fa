/** Gets usage records into their ledger, again and again if need be; what can't be written is logged whole, so that nothing is lost. */
import type { Ledger } from './ledger.ts';
import type { UsageRecord } from './record.ts';

export interface WriterPorts {
  readonly ledger: Ledger;
  /** Calls back once after so many ms, unless it is cancelled with what it returned. */
  readonly startTimer: (ms: number, onFire: () => void) => () => void;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}

/** The waits before the second try and each one after it. */
const RETRY_DELAYS_MS = [500, 1000, 2000, 4000, 8000];

/** A Worker lives on for 30 s after its answer; what is not written by now is logged while it still can be. */
const MAX_WRITE_MS = 25_000;

export class RecordWriter {
  readonly #ports: WriterPorts;
  #lost = 0;

  constructor(ports: WriterPorts) {
    this.#ports = ports;
  }

  /** Resolves when the record is in the ledger, or was logged as lost; never rejects. */
  async write(record: UsageRecord): Promise<void> {
    const tries: string[] = [];
    const late = Promise.withResolvers<boolean>();
    const cancelTimer = this.#ports.startTimer(MAX_WRITE_MS, () => late.resolve(false));
    const isWritten = await Promise.race([this.#tryAll(record, tries), late.promise]);
    cancelTimer();
    if (isWritten) return;
    this.#lost++;
    const reason = tries.at(-1) ?? `The ledger took longer than ${MAX_WRITE_MS} ms`;
    this.#ports.log({ event: 'record_lost', lost_by_this_isolate: this.#lost, reason, record });
  }

  async #tryAll(record: UsageRecord, failures: string[]): Promise<boolean> {
    for (const delay of [...RETRY_DELAYS_MS, null]) {
      try {
        // A try that was only slow changes nothing when it is repeated.
        await this.#ports.ledger.put([record]);
        return true;
      } catch (error) {
        failures.push(String(error));
      }
      if (delay !== null) await new Promise<void>((resolve) => this.#ports.startTimer(delay, resolve));
    }
    return false;
  }
}
