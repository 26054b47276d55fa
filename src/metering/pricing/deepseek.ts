/** DeepSeek's prices: https://api-docs.deepseek.com/quick_start/pricing, read on 2026-11-15. */
import type { Peak, Rates, ShippedPrice } from './price.ts';

type FlatRates = Required<Pick<Rates, 'cached_input' | 'input' | 'output'>>;

const PAGE = { currency: 'USD', source: 'https://api-docs.deepseek.com/quick_start/pricing' } as const;

/** Flash is also served under its retired names. */
const FLASH = ['deepseek-flash', 'deepseek-v4-flash', 'deepseek-v4-flash-vision-exp'];
const PRO = ['deepseek-v4-pro'];

/** Off-peak rates. Peak rates are double. */
const V4_FLASH: FlatRates = { cached_input: 0.007, input: 0.22, output: 0.66 };
const V4_PRO: FlatRates = { cached_input: 0.022, input: 0.66, output: 1.98 };
const V41_FLASH: FlatRates = { cached_input: 0.003, input: 0.15, output: 0.6 };

/** Web searches were free before {@link SEARCHES_SINCE}. */
const FREE_SEARCH = 0;
/** Per 1,000 searches or opened pages that returned a result; the same at all hours. */
const SEARCH = 0.75;

/** Beijing has no daylight saving time. */
const HOURS = {
  zone: '+08:00',
  hours: [
    ['09:00', '12:00'],
    ['14:00', '18:00'],
  ],
} as const;
const EVERY_DAY = { ...HOURS, days: [1, 2, 3, 4, 5, 6, 7] };
const WEEKDAYS = { ...HOURS, days: [1, 2, 3, 4, 5] };
const WORKDAYS = { ...WEEKDAYS, holidays: 'cn' } as const;

function priced(
  models: readonly string[],
  since: string,
  rates: FlatRates,
  hours: Omit<Peak, keyof Rates>,
  web_search = FREE_SEARCH,
) {
  const { cached_input, input, output } = rates;
  return {
    ...PAGE,
    provider: 'deepseek',
    models,
    since,
    ...rates,
    web_search,
    peak: { ...hours, cached_input: cached_input * 2, input: input * 2, output: output * 2 },
    checked: '2026-11-15',
  };
}

/** The same rates at all hours: BerriAI/litellm#29345 (2026-05-30) and the page at that time. */
const FLAT = {
  ...PAGE,
  provider: 'deepseek',
  since: '2026-04-26T12:15:00Z',
  web_search: FREE_SEARCH,
  checked: '2026-11-21',
} as const;
/** Peak prices: announced on the page, https://docs.apiyi.com/en/live/2026-08/deepseek-price-peak-tier (2026-08-15). */
const PEAK_SINCE = '2026-08-16T16:00:00Z';
/** No peak at weekends: DeepSeek's letter in MeteorNOX/DeepSeek-Balance-Whale-Widget#35. */
const WEEKENDS_SINCE = '2026-08-22T16:00:00Z';
/** V4.1 Flash with its price and names: anomalyco/models.dev#6904. */
const FLASH_SINCE = '2026-09-10T04:00:00Z';
/**
 * No peak on holidays: the page had no such statement on 2026-09-18, and has it since 2026-09-21 (wingsky-1/dsh-plugin-hub#945). The first
 * holiday after both days was 2026-09-25.
 */
const HOLIDAYS_SINCE = '2026-09-20T16:00:00Z';

/**
 * Searches that models run themselves are billed like those of `POST /v1/tools/search`: the zh-cn page and
 * https://apidog.com/blog/deepseek-search-api-free (read 2026-10-28), skills.sh/jpcaparas/skills/deepseek-search (2026-11-10).
 */
const SEARCHES_SINCE = '2026-10-31T16:00:00Z';

/** All prices of DeepSeek. */
export function deepseekPrices(): readonly ShippedPrice[] {
  return [
    { ...FLAT, models: ['deepseek-v4-flash'], cached_input: 0.0028, input: 0.14, output: 0.28 },
    { ...FLAT, models: PRO, cached_input: 0.003625, input: 0.435, output: 0.87 },
    priced(['deepseek-v4-flash'], PEAK_SINCE, V4_FLASH, EVERY_DAY),
    priced(PRO, PEAK_SINCE, V4_PRO, EVERY_DAY),
    priced(['deepseek-v4-flash', 'deepseek-v4-flash-vision-exp'], WEEKENDS_SINCE, V4_FLASH, WEEKDAYS),
    priced(PRO, WEEKENDS_SINCE, V4_PRO, WEEKDAYS),
    priced(FLASH, FLASH_SINCE, V41_FLASH, WEEKDAYS),
    priced(FLASH, HOLIDAYS_SINCE, V41_FLASH, WORKDAYS),
    priced(PRO, HOLIDAYS_SINCE, V4_PRO, WORKDAYS),
    { ...priced(FLASH, SEARCHES_SINCE, V41_FLASH, WORKDAYS, SEARCH), checked: '2026-11-22' },
    { ...priced(PRO, SEARCHES_SINCE, V4_PRO, WORKDAYS, SEARCH), checked: '2026-11-22' },
  ];
}
