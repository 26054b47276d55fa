/** The prices of clouds, which sell models of several makers: their own rows, and the makers' where these apply. */
import type { PriceLayer } from '../../src/metering/pricing/price.ts';
import { SHIPPED_PRICES } from '../../src/metering/pricing/price-book.ts';
import { ResalePrices } from '../../src/metering/pricing/resale-prices.ts';
import { PROVIDERS } from '../../src/providers/index.ts';

export const CLOUDS = PROVIDERS.flatMap(({ id, cloud }) => (cloud === undefined ? [] : [{ id, ...cloud }]));

/** What a deployment finds prices in that has none of its own. */
export const SHIPPED_TABLE: readonly PriceLayer[] = [
  SHIPPED_PRICES,
  new ResalePrices(new Map(CLOUDS.map((cloud) => [cloud.id, cloud])), SHIPPED_PRICES),
];
