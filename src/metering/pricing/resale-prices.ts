/** Prices of models that are sold by others than their makers: the seller's, or else the makers' own, as estimates. */
import { matchesAnyGlob } from '../../shared/glob.ts';
import { type Price, PriceLayer, RATES, type Rates } from './price.ts';

/** A model as its maker names it. */
interface Resold {
  /** The id under which the maker's prices are. */
  readonly maker: string;
  readonly model: string;
  /** The name under which the seller's own prices are. Absent: `model`. */
  readonly ownName?: string;
  /** What the seller asks at most, as a multiple of the maker's price. Absent: 1. */
  readonly priceFactor?: number;
}

/** Whose models a provider sells. */
export interface Resale {
  readonly makers: readonly string[];
  /** @returns null if the maker is not known */
  readonly makerOf: (model: string) => Resold | null;
}

/** The prices of each seller. */
export class ResalePrices extends PriceLayer {
  readonly #resales: ReadonlyMap<string, Resale>;
  readonly #makers: PriceLayer;
  readonly #found = new Map<string, readonly Price[]>();

  /**
   * @param resales by the seller's provider id
   * @param makers the prices of the makers
   */
  constructor(resales: ReadonlyMap<string, Resale>, makers: PriceLayer) {
    const all = ({ makers: ids }: Resale) => ids.flatMap((maker) => makers.of(maker));
    super(
      new Map(
        [...resales].map(([seller, resale]) => [
          seller,
          () => all(resale).map((price) => resold(price, seller, '*', 1)),
        ]),
      ),
    );
    this.#resales = resales;
    this.#makers = makers;
  }

  /** The seller's or the maker's prices under the seller's name of the model: an exact name comes before globs, as everywhere. */
  override ofModel(seller: string, model: string): readonly Price[] {
    const resale = this.#resales.get(seller);
    if (resale === undefined) return NONE;
    const key = `${seller}/${model}`;
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    const made = resale.makerOf(model);
    const found = made === null ? NONE : this.#pricesAt(seller, model, made);
    // Callers may send any name.
    if (this.#found.size >= MAX_FOUND) this.#found.clear();
    this.#found.set(key, found);
    return found;
  }

  #pricesAt(seller: string, name: string, made: Resold): readonly Price[] {
    const own = this.#pricesOf({ maker: seller, model: made.ownName ?? made.model });
    if (own.length > 0) return own.map((price) => ({ ...price, models: [name] }));
    return this.#pricesOf(made).map((price) => resold(price, seller, name, made.priceFactor ?? 1));
  }

  #pricesOf({ maker, model }: Resold): readonly Price[] {
    const prices = this.#makers.of(maker);
    const exact = prices.filter(({ models }) => models.includes(model));
    return exact.length > 0 ? exact : prices.filter(({ models }) => matchesAnyGlob(models, model));
  }
}

const NONE: readonly never[] = [];
const MAX_FOUND = 500;
/** Rates have at most six decimals. A multiple is rounded up, because it is an upper bound. */
const RATE_STEPS = 1e6;

function resold(price: Price, provider: string, model: string, factor: number): Price {
  const above = price.above && { ...price.above, ...times(price.above, factor) };
  const peak = price.peak && { ...price.peak, ...times(price.peak, factor) };
  return {
    ...price,
    ...times(price, factor),
    ...(above && { above }),
    ...(peak && { peak }),
    provider,
    models: [model],
    upper_bound: true,
  };
}

function times(rates: Rates, factor: number): Rates {
  const multiplied = RATES.flatMap((name) => {
    const rate = rates[name];
    // A product such as 0.1 * 1.1 has digits beyond the last step.
    return rate === undefined ? [] : [[name, Math.ceil(rate * factor * RATE_STEPS - 1e-6) / RATE_STEPS]];
  });
  return Object.fromEntries(multiplied);
}
