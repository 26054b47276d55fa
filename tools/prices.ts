/**
 * Compares the shipped prices with `@pydantic/genai-prices` and lists differences, models that only one side has, and the rows of all
 * shipped tables that were not checked for 60 days: npm run prices. Exits with 1 if there are such old rows: read their sources, and
 * update `checked`.
 */
import { findPrice } from '../src/metering/pricing/cost.ts';
import { SHIPPED_PRICES } from '../src/metering/pricing/price-book.ts';
import {
  type ComparedRates,
  compare,
  compareResold,
  type Finding,
  MAX_CHECKED_DAYS,
  oldRows,
} from './prices/compare.ts';
import { GENAI_IDS, genai, genaiModels } from './prices/genai.ts';
import { CLOUDS, SHIPPED_TABLE } from './prices/resold.ts';
import { datedRows } from './prices/tables.ts';

function ratesText({ input, cached_input, cache_write, output }: ComparedRates): string {
  const numbers = [input, cached_input, cache_write, output];
  return numbers.map((rate) => rate ?? '–').join(' / ');
}

function lineOf(finding: Finding): string {
  const { price } = finding;
  const address = `${price.provider}/${finding.model}`;
  if (finding.kind === 'not there') return address;
  const when = finding.when === '' ? '' : ` (${finding.when})`;
  return `${address}${when}: ${ratesText(finding.here)}, there ${ratesText(finding.there)}\n    ${price.source}`;
}

function print(title: string, lines: readonly string[]): void {
  const count = lines.length === 0 ? 'none' : lines.length;
  process.stdout.write(`\n${title}: ${count}\n${lines.map((line) => `  ${line}\n`).join('')}`);
}

const now = Date.now();
const findings = compare(SHIPPED_PRICES.all(), genai, now);
const ofKind = (kind: Finding['kind']) => findings.filter((finding) => finding.kind === kind).map(lineOf);
const resold = CLOUDS.flatMap(({ id }) => compareResold(SHIPPED_TABLE, id, genaiModels(id), genai, now));
const unpriced = Object.keys(GENAI_IDS)
  .filter((provider) => provider !== 'codestral')
  .map((provider) => {
    const names = genaiModels(provider).filter(
      (model) => findPrice(SHIPPED_TABLE, [provider], model, now) === null,
    );
    return `${provider}: ${names.join(', ') || 'none'}`;
  });

print(
  'Differs from genai-prices (input / cached input / cache write / output, per million)',
  ofKind('differs'),
);
print('Of clouds, by their own or their makers’ prices: differs from genai-prices', resold.map(lineOf));
print('Not in genai-prices', ofKind('not there'));
print('Only in genai-prices', unpriced);
const old = oldRows(datedRows(now), now);
print(`Rows checked more than ${MAX_CHECKED_DAYS} days ago`, old);
if (old.length > 0) process.exitCode = 1;
