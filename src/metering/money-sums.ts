/** Sums of money, exact whatever their size: whole numbers of 10^-9 of a currency, and as decimals in answers (P4, P5). */

const NANOS_PER_UNIT = 1_000_000_000n;
const NANO_DIGITS = 9;

/** Amounts by currency. Currencies are never converted (P5). */
export class MoneySums {
  readonly #nanos = new Map<string, bigint>();

  add(currency: string, nanos: bigint): void {
    this.#nanos.set(currency, (this.#nanos.get(currency) ?? 0n) + nanos);
  }

  /** `{"USD": 0.000128}`, in the order of the currencies' codes; `{}` where nothing was added. */
  get amounts(): Readonly<Record<string, number>> {
    const sorted = [...this.#nanos].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(sorted.map(([currency, nanos]) => [currency, toUnits(nanos)]));
  }
}

/** The amount in whole units of its currency: the number that is nearest to it. */
function toUnits(nanos: bigint): number {
  const fraction = (nanos % NANOS_PER_UNIT).toString().padStart(NANO_DIGITS, '0');
  return Number(`${nanos / NANOS_PER_UNIT}.${fraction}`);
}
