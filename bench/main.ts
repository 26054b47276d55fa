/**
 * Measures the cost of streams and requests: node bench/main.ts [--quick] [--json] [--only bulk,paced,cold,requests,prompts]
 * [--rows pass,weir] [--rounds 5] [--paces 200x25,1000x5] [--base ../before]
 *
 * `--base` adds the rows of another checkout of Weir, which has its packages and its page (`npm ci && npm run page`): each row of
 * Weir's that is measured gets a second one, `base-weir`, in the same turns.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Bundle, bundle, installPeers } from './build.ts';
import { goalLines } from './goals.ts';
import { jsonReport, tables } from './report.ts';
import { BASELINE, ROWS, type Row, rowsOfCheckout, type SectionName } from './rows.ts';
import { type Load, startLoad } from './runner.ts';
import { Samples } from './samples.ts';
import { SECTIONS } from './sections.ts';

const SECTION_NAMES: readonly SectionName[] = ['bulk', 'paced', 'cold', 'requests', 'prompts'];
const ROUNDS = 5;
const QUICK_ROUNDS = 2;
/** Number of streams, and the frames per second of each. Only 1000x50 is more than one core can handle. */
const PACES = '10x50,100x50,200x25,1000x5,1000x50';
const QUICK_PACES = '10x50,200x25,1000x5';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    only: { type: 'string', default: SECTION_NAMES.join() },
    rows: { type: 'string', default: ROWS.map(({ name }) => name).join() },
    rounds: { type: 'string' },
    paces: { type: 'string' },
    base: { type: 'string' },
  },
});

function showProgress(progress: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${progress}`);
}

/** The rows that could be bundled; `notes` gets the reasons for the others. */
async function bundles(notes: string[]): Promise<ReadonlyMap<Row, Bundle>> {
  showProgress('installing the packages that Weir is compared with');
  const missing = await installPeers();
  if (missing !== null) notes.push(missing);
  const requested = [BASELINE, ...values.rows.split(',')];
  const built = new Map<Row, Bundle>();
  const rows = ROWS.filter(({ name }) => requested.includes(name));
  const base = values.base === undefined ? [] : rowsOfCheckout(resolve(values.base), rows);
  for (const row of [...rows, ...base]) {
    showProgress(`bundling ${row.name}`);
    try {
      const made = await bundle(row);
      if (made === null) notes.push(`${row.name}: src/ has no "${row.replace?.[0]}" to replace`);
      else built.set(row, made);
    } catch (error) {
      if (!row.isPeer) throw error;
      notes.push(`${row.name}: can't be bundled: ${String(error).slice(0, 300)}`);
    }
  }
  return built;
}

async function measure(load: Load): Promise<boolean> {
  const notes: string[] = [];
  const samples = new Samples();
  const built = await bundles(notes);
  const rounds = Number(values.rounds ?? (values.quick ? QUICK_ROUNDS : ROUNDS));
  const sections = SECTION_NAMES.filter((name) => values.only.split(',').includes(name));
  const isQuick = values.quick;
  const paces = (values.paces ?? (isQuick ? QUICK_PACES : PACES)).split(',');
  for (const section of sections) {
    await SECTIONS[section]({ load, bundles: built, samples, rounds, paces, isQuick, showProgress });
  }
  const invalid = samples.all.filter(({ problem }) => problem !== null);
  const problems = invalid.map(
    (sample) => `${sample.row}: invalid output in ${sample.section}, ${sample.point}: ${sample.problem}`,
  );
  showProgress('');
  notes.push(...problems);
  const goals = goalLines(samples, built);
  const text = values.json
    ? jsonReport(samples, built, goals, notes)
    : [...tables(samples, built), ...goals, ...notes].join('\n');
  process.stdout.write(`${text}\n`);
  // Invalid output of a compared package is only reported in its row. All other rows must be valid.
  return invalid.every(({ row }) => ROWS.some(({ name, isPeer }) => name === row && isPeer));
}

const load = await startLoad();
try {
  if (!(await measure(load))) process.exitCode = 1;
} finally {
  load.stop();
}
