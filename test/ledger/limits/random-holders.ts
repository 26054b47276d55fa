/** What random runs over holders share: draws, calls that are lost or late, and requests that run beside the steps. */
import type { HolderNetwork } from './holder-network.ts';

/** The midnights that some runs pass: the ends of a day, a week and a month. */
const MIDNIGHTS = [Date.UTC(2026, 10, 22), Date.UTC(2026, 10, 23), Date.UTC(2026, 11, 1)] as const;
const BEFORE_MS = 20_000;

export class RandomHolders {
  readonly #random: () => number;
  /** Requests that were begun. */
  readonly open: Promise<void>[] = [];
  /** Calls between objects are lost now. */
  isFaulty = false;

  constructor(random: () => number) {
    this.#random = random;
  }

  upTo(max: number): number {
    return Math.floor(this.#random() * max);
  }

  pick<Value>(...values: readonly [Value, ...Value[]]): Value {
    return values[this.upTo(values.length)] ?? values[0];
  }

  /** Shortly before midnight, with clocks that differ. @param names of the holders whose clocks differ */
  passMidnight(network: Pick<HolderNetwork, 'now' | 'skewOf'>, names: readonly string[]): void {
    network.now = this.pick(...MIDNIGHTS) - BEFORE_MS;
    const skews = new Map(names.map((name) => [name, this.pick(0, 0, -3000, 3000, 9000)]));
    network.skewOf = (name) => skews.get(name) ?? 0;
  }

  disturb(network: Pick<HolderNetwork, 'fault' | 'latency'>): void {
    network.fault = () => {
      const share = this.isFaulty ? this.#random() : 1;
      if (share < 0.1) return 'before';
      return share < 0.2 ? 'after' : null;
    };
    network.latency = async () => {
      for (let ticks = this.upTo(3); ticks > 0; ticks--) await tick();
    };
  }

  async quiet(): Promise<void> {
    await Promise.all(this.open.splice(0));
    for (let i = 0; i < 30; i++) await tick();
  }
}

export function tick(): Promise<void> {
  return new Promise(setImmediate);
}
