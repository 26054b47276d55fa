/** What the roles of ledger objects share: an object is a key, a team, a user, a directory or one of a few others, by its name. */
import { callOnce } from '../../shared/durable-objects.ts';

/**
 * An object has one alarm, which several jobs share. Each does the work that is due, and returns when it is due next
 * (ms since the epoch), or null.
 */
export type Job = (now: number) => number | null | Promise<number | null>;

/** What an object is. It has the methods of its role and of its records that `ledger-calls.ts` lists, and no others. */
export interface Role {
  /** For messages, with its article. */
  readonly kind: string;
  readonly jobs: readonly Job[];
  /** Whether there is work for the alarm. */
  readonly hasWork: boolean;
}

/** The alarm of an object. Its time (ms since the epoch) is read from storage once. */
export class ObjectAlarm {
  readonly #storage: Pick<DurableObjectStorage, 'getAlarm' | 'setAlarm'>;
  /** Undefined: it was not read yet. */
  #at: number | null | undefined;

  constructor(storage: Pick<DurableObjectStorage, 'getAlarm' | 'setAlarm'>) {
    this.#storage = storage;
  }

  async read(): Promise<number | null> {
    if (this.#at === undefined) {
      const stored = await this.#storage.getAlarm();
      this.#at ??= stored;
    }
    return this.#at;
  }

  /** Sets the alarm to that time, unless it is already set to an earlier one. Its time was read before. */
  wakeBy(time: number): void {
    if (typeof this.#at === 'number' && this.#at <= time) return;
    this.#at = time;
    void this.#storage.setAlarm(time);
  }

  async setBy(time: number): Promise<void> {
    await this.read();
    this.wakeBy(time);
  }

  /** Storage has no alarm any more. */
  removed(): void {
    this.#at = null;
  }
}

/** Whether the call succeeds within the time. Never rejects. */
export async function succeeds(call: Promise<void>, ms: number): Promise<boolean> {
  return (
    (await answerWithin(
      call.then(() => true),
      ms,
    )) === true
  );
}

/** What the call returns within the time; null: it fails, or takes longer. Never rejects. */
export function answerWithin<Value>(call: Promise<Value>, ms: number): Promise<Value | null> {
  return callOnce(() => call, { ms }).catch(() => null);
}
