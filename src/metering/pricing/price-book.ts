/** The price table of a deployment: its own prices, from the setting `PRICES` and from KV, before the shipped ones. */
import { isWithinJsonBounds, parseJson } from '../../shared/json.ts';
import { jsonFault } from '../../shared/json-fault.ts';
import type { Log } from '../../shared/log-event.ts';
import type { StartTimer } from '../record-writer.ts';
import { anthropicPrices } from './anthropic.ts';
import { azurePrices } from './azure.ts';
import { bedrockPrices } from './bedrock.ts';
import { cerebrasPrices } from './cerebras.ts';
import { cloudflarePrices } from './cloudflare.ts';
import { deepseekPrices } from './deepseek.ts';
import { fireworksPrices } from './fireworks.ts';
import { geminiPrices } from './gemini.ts';
import { groqPrices } from './groq.ts';
import { codestralPrices, mistralPrices } from './mistral.ts';
import { moonshotPrices } from './moonshot.ts';
import { openaiPrices } from './openai.ts';
import { layerOf, type Price, PriceLayer, type PriceTable, parsePrices, type ShippedPrice } from './price.ts';
import { type Resale, ResalePrices } from './resale-prices.ts';
import { togetherPrices } from './together.ts';
import { xaiPrices } from './xai.ts';
import { zaiPrices } from './zai.ts';

/** The KV value `config/prices`. */
export const MAX_PRICES_CHARS = 256 * 1024;

/** How long an isolate caches the prices in KV. */
export const PRICES_TTL_MS = 60_000;

/** How long an isolate waits after it could not read the prices in KV. */
const PRICES_FAILURE_TTL_MS = 10_000;

/** If KV takes longer, the known prices are used. */
const PRICES_TIMEOUT_MS = 2000;

/** The prices that Weir comes with. */
export const SHIPPED_PRICES = new PriceLayer<ShippedPrice>(
  new Map([
    ['deepseek', deepseekPrices],
    ['mistral', mistralPrices],
    ['codestral', codestralPrices],
    ['openai', openaiPrices],
    ['anthropic', anthropicPrices],
    ['gemini', geminiPrices],
    ['groq', groqPrices],
    ['xai', xaiPrices],
    ['moonshot', moonshotPrices],
    ['zai', zaiPrices],
    ['together', togetherPrices],
    ['fireworks', fireworksPrices],
    ['cerebras', cerebrasPrices],
    ['bedrock', bedrockPrices],
    ['azure', azurePrices],
    ['cloudflare', cloudflarePrices],
  ]),
);

export interface PriceBookPorts {
  readonly store: Pick<KVNamespace, 'get'>;
  /** ms since the epoch. */
  readonly now: () => number;
  readonly startTimer: StartTimer;
  readonly log: Log;
}

const KEY = 'config/prices';

/** The prices of a deployment: built in, those in KV, and those of the settings, which take precedence. Read again when they are stale. */
export class PriceBook {
  readonly #ports: PriceBookPorts;
  readonly #own: readonly Price[];
  /** The shipped prices, and those of sellers that are not the makers. */
  readonly #shipped: readonly PriceLayer[];
  #table: PriceTable;
  #until = Number.NEGATIVE_INFINITY;
  #wasRead = false;

  /**
   * @param own the prices of the setting `PRICES`; prices from KV follow them in the same layer
   * @param resales by the provider's id: whose models it sells
   */
  constructor(own: readonly Price[], resales: ReadonlyMap<string, Resale>, ports: PriceBookPorts) {
    this.#ports = ports;
    this.#own = own;
    this.#shipped = [SHIPPED_PRICES, new ResalePrices(resales, SHIPPED_PRICES)];
    this.#table = [layerOf(own), ...this.#shipped];
  }

  /** The prices as they were last loaded. */
  get table(): PriceTable {
    return this.#table;
  }

  /** Whether {@link load} would read KV. */
  get isStale(): boolean {
    return this.#ports.now() >= this.#until;
  }

  /**
   * Returns the prices, and reads KV first if the last read is older than PRICES_TTL_MS. If KV fails or hangs, that is logged and the
   * last prices stay. Never rejects, and takes no longer than PRICES_TIMEOUT_MS.
   */
  async load(): Promise<PriceTable> {
    const now = this.#ports.now();
    if (now < this.#until) return this.#table;
    // A request cannot wait for the I/O of another one. Concurrent requests use the last prices, or read KV themselves if there are none.
    if (this.#wasRead) this.#until = now + PRICES_FAILURE_TTL_MS;
    try {
      const text = await this.#read();
      this.#table = [layerOf([...this.#own, ...this.#parse(text)]), ...this.#shipped];
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

  /** Invalid prices count as none: the last valid ones would differ from those of an isolate that starts now. */
  #parse(text: string | null): readonly Price[] {
    if (text === null) return [];
    const isBounded = text.length <= MAX_PRICES_CHARS && isWithinJsonBounds(text);
    const value = isBounded ? parseJson(text) : undefined;
    const parsed = parsePrices(value);
    if (parsed.kind === 'ok') return parsed.value;
    const problem = Array.isArray(value) ? parsed.error : `${parsed.error}, and ${jsonFault(text, value)}`;
    this.#logProblem(isBounded ? problem : `must have at most ${MAX_PRICES_CHARS} characters`);
    return [];
  }

  #logProblem(problem: string): void {
    this.#ports.log({ event: 'prices_unreadable', key: KEY, problem });
  }
}
