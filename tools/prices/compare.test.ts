/** Tests the comparison of the shipped prices with another source, and that this source is not bundled (P6). */
import { describe, expect, test } from 'vitest';
import { findPrice } from '../../src/metering/pricing/cost.ts';
import type { ShippedPrice } from '../../src/metering/pricing/price.ts';
import { SHIPPED_PRICES } from '../../src/metering/pricing/price-book.ts';
import { deployedSources } from '../../test/e2e/workers.ts';
import { type ComparedRates, compare, compareResold, oldRows } from './compare.ts';
import { genai, genaiModels } from './genai.ts';
import { SHIPPED_TABLE } from './resold.ts';
import { datedRows, priceRows } from './tables.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');

function shipped(fields: Partial<ShippedPrice> = {}): ShippedPrice {
  return {
    provider: 'p',
    models: ['m'],
    since: '2026-01-01T00:00:00Z',
    currency: 'USD',
    input: 1,
    output: 2,
    source: 's',
    checked: '2026-11-20',
    ...fields,
  };
}

function kinds(prices: readonly ShippedPrice[], there: ComparedRates | null): string[] {
  return compare(prices, () => there, NOW).map(({ kind }) => kind);
}

describe('compare', () => {
  const SAME = { input: 1, output: 2 };
  test.each<[what: string, prices: ShippedPrice[], there: ComparedRates | null, found: string[]]>([
    ['the same rates', [shipped()], SAME, []],
    ['another rate', [shipped()], { input: 1, output: 3 }, ['differs']],
    ['a rate that only one side has', [shipped()], { ...SAME, cached_input: 0.1 }, ['differs']],
    [
      'a difference in the last digit of a double',
      [shipped({ output: 1.8 })],
      { input: 1, output: 1.2 * 1.5 },
      [],
    ],
    ['an embedding model, which has no output there', [shipped({ output: 0 })], { input: 1 }, []],
    ['an output rate that the other source does not have', [shipped()], { input: 1 }, ['differs']],
    ['a model that the other source does not have', [shipped()], null, ['not there']],
    ['a glob, which has no name to compare', [shipped({ models: ['m*'] })], null, []],
    ['a price that begins later', [shipped({ since: '2027-01-01T00:00:00Z' })], null, []],
    ['a price that has ended', [shipped({ input: 9 }), shipped({ since: '2026-06-01T00:00:00Z' })], SAME, []],
    [
      'rates above a threshold that the other source does not have',
      [shipped({ above: { prompt_tokens: 10, input: 2, output: 3 } })],
      SAME,
      ['differs'],
    ],
    [
      'peak hours that the other source does not have',
      [
        shipped({
          peak: { zone: '+08:00', days: [1, 2, 3, 4, 5], hours: [['09:00', '12:00']], input: 2, output: 4 },
        }),
      ],
      SAME,
      ['differs'],
    ],
  ])('P6 %s', (_, prices, there, found) => {
    expect(kinds(prices, there)).toEqual(found);
  });

  test('P6 compares the shipped prices with genai-prices: finds the known differences, and most prices agree', () => {
    const findings = compare(SHIPPED_PRICES.all(), genai, NOW);
    const differing = findings.flatMap((finding) => (finding.kind === 'differs' ? [finding.model] : []));
    expect(differing).toEqual(expect.arrayContaining(['deepseek-v4-flash', 'mistral-large-latest']));
    const agreeing = [
      'deepseek-v4-pro',
      'gpt-4o-mini',
      'claude-sonnet-5',
      'gemini-2.5-pro',
      'grok-4.6',
      'openai/gpt-oss-20b',
    ];
    expect(differing.filter((model) => agreeing.includes(model))).toEqual([]);
    expect(differing.length).toBeLessThan(20);
  });

  test.each(['bedrock', 'cloudflare'])(
    'P6 %s: most of the prices agree, its own and its makers’',
    (cloud) => {
      const names = genaiModels(cloud);
      const ask = (one: string) => compareResold(SHIPPED_TABLE, cloud, [one], genai, NOW);
      const priced = names.filter((name) => findPrice(SHIPPED_TABLE, [cloud], name, NOW) !== null);
      expect(priced.length).toBeGreaterThan(names.length / 2);
      const differing = priced.filter((name) => ask(name).some(({ kind }) => kind === 'differs'));
      expect(differing.length).toBeLessThan(priced.length / 4);
    },
  );

  test('P6 a cloud’s price that differs is found', () => {
    const [first = ''] = genaiModels('bedrock').filter(
      (name) => findPrice(SHIPPED_TABLE, ['bedrock'], name, NOW) !== null,
    );
    const found = compareResold(SHIPPED_TABLE, 'bedrock', [first], () => ({ input: 1e5, output: 1e5 }), NOW);
    expect(found).toMatchObject([{ kind: 'differs', model: first }]);
  });
});

describe('old rows', () => {
  const at = (row: string, checked: string | null) => ({
    table: 'fields',
    row,
    checked,
    source: 'https://s',
  });

  test('P6 rows checked 61 days ago or never, each by its table and name', () => {
    const rows = [at('a', '2026-09-22'), at('b', '2026-09-21'), at('c', null)];
    expect(oldRows(rows, NOW)).toEqual([
      'fields, b: checked 61 days ago; read https://s',
      'fields, c: no day of a check; read https://s',
    ]);
  });

  test('P6 prices of other tiers and of globs are rows, too; a price that has ended is none', () => {
    const prices = [
      shipped({ input: 9 }),
      shipped({ since: '2026-06-01T00:00:00Z' }),
      shipped({ service_tiers: ['flex'] }),
      shipped({ models: ['n*'] }),
    ];
    expect(priceRows(prices, NOW).map(({ row }) => row)).toEqual(['p/m', 'p/m (flex)', 'p/n*']);
  });

  test('P6 every shipped table has a day for each row: prices, facts, families, fields and efforts', () => {
    const rows = datedRows(NOW);
    expect(rows.filter(({ checked }) => !/^2026-\d{2}-\d{2}$/.test(checked ?? ''))).toEqual([]);
    const tables = [...new Set(rows.map(({ table }) => table))].sort();
    expect(tables).toEqual(['APIs', 'efforts', 'families', 'fields', 'model facts', 'prices']);
  });
});

describe('the bundle', () => {
  test('P6 contains the shipped prices and no part of genai-prices', async () => {
    const sources = await deployedSources();
    expect(sources).toContain('src/metering/pricing/price-book.ts');
    expect(sources.filter((path) => path.includes('@pydantic'))).toEqual([]);
  });
});
