/** The rows of all shipped tables with the day of their last check: prices, facts of models, and what models accept. */
import { findPrice } from '../../src/metering/pricing/cost.ts';
import { layerOf, type PriceLayer, type ShippedPrice } from '../../src/metering/pricing/price.ts';
import { SHIPPED_PRICES } from '../../src/metering/pricing/price-book.ts';
import { CLAUDE_FAMILIES } from '../../src/providers/anthropic.ts';
import { GEMINI_FAMILIES } from '../../src/providers/gemini.ts';
import { PROFILES, PROVIDERS } from '../../src/providers/index.ts';
import type { Profile } from '../../src/providers/provider.ts';
import type { DatedRow } from './compare.ts';

/** @param nowMs prices that ended before this moment are no rows */
export function datedRows(nowMs: number): DatedRow[] {
  const profiles = new Map([...PROFILES, ...PROVIDERS].map((profile) => [profile.id, profile]));
  const families = [...CLAUDE_FAMILIES, ...GEMINI_FAMILIES];
  return [
    ...priceRows(SHIPPED_PRICES.all(), nowMs),
    ...families.map(({ models = ['newer models'], checked }) => ({
      table: 'families',
      row: models.join(', '),
      checked,
    })),
    ...[...profiles.values()].flatMap(profileRows),
  ];
}

/** Each price that is in force for one of its names and tiers. */
export function priceRows(prices: readonly ShippedPrice[], nowMs: number): DatedRow[] {
  const layer = layerOf(prices);
  return prices
    .filter((price) => isInForce(price, layer, nowMs))
    .map(({ provider, models, service_tiers, checked, source }) => {
      const tiers = service_tiers === undefined ? '' : ` (${service_tiers.join(', ')})`;
      return { table: 'prices', row: `${provider}/${models[0]}${tiers}`, checked, source };
    });
}

function isInForce(price: ShippedPrice, layer: PriceLayer, nowMs: number): boolean {
  const tiers = price.service_tiers ?? [undefined];
  return price.models.some((name) =>
    tiers.some(
      (tier) => findPrice([layer], [price.provider], name.replaceAll('*', '0'), nowMs, tier) === price,
    ),
  );
}

function profileRows({ id, endpoints: { chat }, responses, modelTraits = [] }: Profile): DatedRow[] {
  const facts = modelTraits.map(({ models, checked, source }) => {
    return { table: 'model facts', row: `${id}/${models.join(', ')}`, checked, source };
  });
  const api = responses === undefined ? [] : [{ table: 'APIs', row: id, checked: responses.checked ?? null }];
  if (chat?.request.kind !== 'chat') return [...facts, ...api];
  const { rules } = chat.request;
  const efforts =
    rules.effort === undefined ? [] : [{ table: 'efforts', row: id, checked: rules.effort.checked ?? null }];
  return [...facts, ...api, { table: 'fields', row: id, checked: rules.checked ?? null }, ...efforts];
}
