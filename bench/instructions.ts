/**
 * Counts the instructions that workerd executes for one request: node bench/instructions.ts [--rows floor,contract-floor,weir]
 * [--only streamed,whole] [--base ../before]. It needs callgrind (Debian's package `valgrind`). CPU times of a shared machine vary by a
 * fifth, these counts by a fiftieth.
 *
 * `--base` counts each row of Weir's a second time with the source of another checkout, as `npm run bench` does: `base-weir`.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { bundle } from './build.ts';
import { type Row, requestedRows } from './rows.ts';
import { type Load, startLoad, startWorkerd } from './runner.ts';
import { targetOf } from './sections.ts';

/** V8 compiles a function after some hundred calls. Until then an interpreter runs it, with several times the instructions. */
const WARM_UP_REQUESTS = 8000;
const ROUND_MS = 10_000;
const MAX_DUMP_MS = 10_000;
const POLL_MS = 200;

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: 'floor,contract-floor,weir' },
    only: { type: 'string', default: 'streamed,whole' },
    base: { type: 'string' },
  },
});
const rows = requestedRows(values.rows.split(','), values.base === undefined ? null : resolve(values.base));

async function instructions(load: Load, row: Row, isStreamed: boolean): Promise<number> {
  const bundled = await bundle(row);
  if (bundled === null) throw new Error(`${row.name}: no text to replace`);
  const output = mkdtempSync(join(tmpdir(), 'weir-instructions-'));
  // One thread runs at a time. Without a fair turn, V8's compilers hardly get one.
  const workerd = await startWorkerd(row, bundled, load.ports, [
    ...['valgrind', '--tool=callgrind', '--instr-atstart=no', '--fair-sched=yes', '--smc-check=all-non-file'],
    ...['--max-stackframe=8000000', '--main-stacksize=16000000', `--callgrind-out-file=${output}/counts`],
  ]);
  const control = (...what: string[]) =>
    execFileSync('callgrind_control', [...what, String(workerd.pid)], { stdio: 'ignore' });
  try {
    const target = (await targetOf({ load }, row, workerd))('deepseek');
    const send = async (): Promise<number> => {
      const { figures, problem } = await load.run({ kind: 'requests', target, isStreamed, ms: ROUND_MS });
      if (problem !== null) throw new Error(`${row.name}: ${problem}`);
      return figures.requests ?? 0;
    };
    for (let sent = 0; sent < WARM_UP_REQUESTS; ) sent += await send();
    control('-i', 'on');
    const counted = await send();
    control('-d');
    return (await dumpedTotal(output)) / counted;
  } finally {
    await workerd.stop();
    rmSync(output, { recursive: true });
  }
}

/** The total of the dump, which callgrind writes after the command has returned. */
async function dumpedTotal(directory: string): Promise<number> {
  for (let waitedMs = 0; waitedMs < MAX_DUMP_MS; waitedMs += POLL_MS) {
    await setTimeout(POLL_MS);
    for (const name of readdirSync(directory)) {
      const total = /^(?:totals|summary): (\d+)/m.exec(readFileSync(join(directory, name), 'utf8'))?.[1];
      if (total !== undefined) return Number(total);
    }
  }
  throw new Error('callgrind wrote no counts');
}

const load = await startLoad();
try {
  for (const [kind, isStreamed] of [
    ['streamed', true],
    ['whole', false],
  ] as const) {
    if (!values.only.split(',').includes(kind)) continue;
    process.stdout.write(`${isStreamed ? 'streamed' : 'not streamed'}, thousand instructions a request\n`);
    let first: number | undefined;
    for (const row of rows) {
      const count = await instructions(load, row, isStreamed);
      first ??= count;
      const ratio = (count / first).toFixed(2);
      process.stdout.write(`  ${row.name.padEnd(18)}${(count / 1000).toFixed(0).padStart(6)}  ${ratio}\n`);
    }
  }
} finally {
  load.stop();
}
