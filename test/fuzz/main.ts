/**
 * Sends random hostile requests and responses through the gateway: node test/fuzz/main.ts [--seconds 60] [--seed N] [--only CASE].
 * Exits with 1 if a response breaks the contract, a record is missing or duplicated, or another stream had to wait.
 */
import { parseArgs } from 'node:util';
import { MAX_GAP_MS, MAX_RSS_MIB, runFuzz } from './run.ts';

const MAX_SECONDS = 86_400;
const MAX_SEED = 1_000_000_000;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * MAX_SEED)) },
    only: { type: 'string' },
  },
});
const seed = Number(values.seed);
const seconds = Math.min(Number(values.seconds), MAX_SECONDS);
process.stdout.write(`seed ${seed}, ${seconds} s\n`);

const result = await runFuzz({ seed, seconds, only: values.only === undefined ? null : Number(values.only) });
const rows = [
  ['requests', result.requests],
  ['requests that reached the upstream', result.asked],
  ['records', result.records],
  ['complete paced streams', result.pacedStreams],
  [`longest work while a paced stream waited, ms (at most ${MAX_GAP_MS})`, Math.round(result.gap.ranMs)],
  [`peak memory above idle, MiB (at most ${MAX_RSS_MIB})`, Math.round(result.rssMib)],
  ...Object.entries(result.ends).sort(([, one], [, other]) => other - one),
  ['faults', result.faults.length],
] as const;
for (const [name, value] of rows) process.stdout.write(`${name.padEnd(62)}${String(value).padStart(8)}\n`);
for (const fault of result.faults) process.stdout.write(`${fault}\n`);
if (result.faults.length > 0)
  process.stdout.write(`node test/fuzz/main.ts --seed ${seed} --only CASE repeats one case\n`);
// The open servers would keep the process running.
process.exit(result.faults.length > 0 ? 1 : 0);
