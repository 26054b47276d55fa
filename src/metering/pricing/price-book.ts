/** The prices in force: a deployment's own, from its setting and from KV, over the shipped ones (P2). */
import { isWithinJsonBounds, parseJson } from '../../shared/json.ts';
import { jsonFault } from '../../shared/json-fault.ts';
import {
  MAX_PRICES_CHARS,
  PRICES_FAILURE_TTL_MS,
  PRICES_TIMEOUT_MS,
  PRICES_TTL_MS,
} from '../../shared/limits.ts';
import { parsePrices } from './parse-prices.ts';
import type { Price, PriceTable } from './price.ts';
import { SHIPPED_PRICES } from './shipped.ts';

export interface PriceBookPorts {
  readonly store: Pick<KVNamespace, 'get'>;
  /** ms since the epoch. */
  readonly now: () => number;
  /** Calls back once after so many ms, unless it is cancelled with what it returned. */
  readonly startTimer: (ms: number, onFire: () => void) => () => void;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}

const KEY = 'config/prices';

export class PriceBook {
  readonly #ports: PriceBookPorts;
  readonly #own: readonly Price[];
  #table: PriceTable;
  #until = Number.NEGATIVE_INFINITY;
  #wasRead = false;

  /** @param own the prices of the setting `PRICES`; those in KV stand behind them in the same layer */
  constructor(own: readonly Price[], ports: PriceBookPorts) {
    this.#ports = ports;
    this.#own = own;
    this.#table = [own, SHIPPED_PRICES];
  }

  /** The prices that this isolate knows now. */
  get table(): PriceTable {
    return this.#table;
  }

  /** Whether {@link load} would read them again. */
  get isStale(): boolean {
    return this.#ports.now() >= this.#until;
  }

  /**
   * The prices in force, read from KV where the last reading is more than a minute old. A KV that fails or hangs leaves those
   * that are known, and is logged. Never rejects, and takes no longer than PRICES_TIMEOUT_MS.
   */
  async load(): Promise<PriceTable> {
    const now = this.#ports.now();
    if (now < this.#until) return this.#table;
    // None can wait for what another one asked: requests that come meanwhile take what is known, or read for themselves.
    if (this.#wasRead) this.#until = now + PRICES_FAILURE_TTL_MS;
    try {
      const text = await this.#read();
      this.#table = [[...this.#own, ...this.#parse(text)], SHIPPED_PRICES];
      this.#until = now + PRICES_TTL_MS;
      this.#wasRead = true;
    } catch (error) {
      this.#until = now + PRICES_FAILURE_TTL_MS;
      this.#logProblem(String(error));
    }
    return this.#table;
  }

  async #read(): Promise<string | null> {
    const late = Promise.withResolvers<never>();
    const cancelTimer = this.#ports.startTimer(PRICES_TIMEOUT_MS, () =>
      late.reject(`KV took longer than ${PRICES_TIMEOUT_MS} ms`),
    );
    try {
      return await Promise.race([this.#ports.store.get(KEY, 'text'), late.promise]);
    } finally {
      cancelTimer();
    }
  }

  /** Prices that can't be read are none, as in an isolate that starts now. */
  #parse(text: string | null): readonly Price[] {
    if (text === null) return [];
    const isBounded = text.length <= MAX_PRICES_CHARS && isWithinJsonBounds(text);
    const value = isBounded ? parseJson(text) : undefined;
    const parsed = parsePrices(value);
    if (parsed.kind === 'valid') return parsed.prices;
    const problem = Array.isArray(value)
      ? parsed.problem
      : `${parsed.problem}, and ${jsonFault(text, value)}`;
    this.#logProblem(isBounded ? problem : `must have at most ${MAX_PRICES_CHARS} characters`);
    return [];
  }

  #logProblem(problem: string): void {
    this.#ports.log({ event: 'prices_unreadable', key: KEY, problem });
  }
}
