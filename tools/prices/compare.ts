/** Compares the shipped prices with another source, and finds prices that were not checked recently. */

import { findPrice, ratesInForce } from '../../src/metering/pricing/cost.ts';
import {
  layerOf,
  type Price,
  type PriceTable,
  type Rates,
  type ShippedPrice,
} from '../../src/metering/pricing/price.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
export const MAX_CHECKED_DAYS = 60;

/** The rates that both sources have. */
const COMPARED = ['input', 'cached_input', 'cache_write', 'output'] as const;
export type ComparedRates = Pick<Rates, (typeof COMPARED)[number]>;

/** The other source's rates of a model at a moment, for a prompt of this size; null if it does not have the model. */
export type Reference = (
  provider: string,
  model: string,
  at: { readonly ms: number; readonly promptTokens: number },
) => ComparedRates | null;

/** A row of a shipped table, and the day on which it was last compared with its sources; null: no day is stated. */
export interface DatedRow {
  /** `prices`, `model facts`, … */
  readonly table: string;
  readonly row: string;
  readonly checked: string | null;
  readonly source?: string;
}

export type Finding =
  | { readonly kind: 'not there'; readonly price: Price; readonly model: string }
  | {
      readonly kind: 'differs';
      readonly price: Price;
      readonly model: string;
      readonly when: string;
      readonly here: ComparedRates;
      readonly there: ComparedRates;
    };

/** @param nowMs only prices in force at this moment are compared */
export function compare(prices: readonly ShippedPrice[], reference: Reference, nowMs: number): Finding[] {
  const layer = layerOf(prices);
  return prices.flatMap((price) => {
    const names = price.models.filter((name) => !name.includes('*'));
    const inForce = names.filter((name) => findPrice([layer], [price.provider], name, nowMs) === price);
    return inForce.flatMap((model) => compareModel(price, model, reference, nowMs));
  });
}

/** Compares what a cloud's models cost here by their makers' prices. @param names models of the cloud in the other source */
export function compareResold(
  table: PriceTable,
  cloud: string,
  names: readonly string[],
  reference: Reference,
  nowMs: number,
): Finding[] {
  return names.flatMap((model) => {
    const price = findPrice(table, [cloud], model, nowMs);
    return price === null ? [] : compareModel(price, model, reference, nowMs);
  });
}

/** The rows that were checked more than {@link MAX_CHECKED_DAYS} ago, or never. */
export function oldRows(rows: readonly DatedRow[], nowMs: number): string[] {
  return rows.flatMap(({ table, row, checked, source }) => {
    const days = checked === null ? null : Math.floor((nowMs - Date.parse(checked)) / DAY_MS);
    if (days !== null && days <= MAX_CHECKED_DAYS) return [];
    const when = days === null ? 'no day of a check' : `checked ${days} days ago`;
    return [`${table}, ${row}: ${when}${source === undefined ? '' : `; read ${source}`}`];
  });
}

function compareModel(price: Price, model: string, reference: Reference, nowMs: number): Finding[] {
  const long = price.above === undefined ? [] : [price.above.prompt_tokens + 2];
  const moments = [
    ...momentsOf(price, nowMs).map((moment) => ({ ...moment, promptTokens: 1 })),
    ...long.map((promptTokens) => ({ when: 'long prompts', ms: nowMs, promptTokens })),
  ];
  for (const { when, ms, promptTokens } of moments) {
    const there = reference(price.provider, model, { ms, promptTokens });
    if (there === null) return [{ kind: 'not there', price, model }];
    const here = ratesInForce(price, promptTokens, ms).rates;
    // Embedding models have no output.
    const stated = there.output === undefined ? { ...there, output: 0 } : there;
    if (COMPARED.some((rate) => !isSame(here[rate], stated[rate])))
      return [{ kind: 'differs', price, model, when, here, there }];
  }
  return [];
}

/** Rates have six decimals. */
function isSame(a: number | undefined, b: number | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Math.abs(a - b) < 1e-7;
}

/** Now, or with peak prices an off-peak hour and a peak hour of the last Wednesday. */
function momentsOf({ peak }: Price, nowMs: number): { readonly when: string; readonly ms: number }[] {
  if (peak === undefined) return [{ when: '', ms: nowMs }];
  const wednesday = new Date(nowMs);
  wednesday.setUTCDate(wednesday.getUTCDate() - ((wednesday.getUTCDay() + 4) % 7) - 7);
  return [
    { when: 'off-peak', ms: wednesday.setUTCHours(20, 0, 0, 0) },
    { when: 'peak', ms: wednesday.setUTCHours(2, 0, 0, 0) },
  ];
}
