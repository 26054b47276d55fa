/**
 * Runs every client protocol with every provider and prints the results as a table: npm run matrix. With `-- --write` it writes the table
 * to docs/providers.md. Exits with 1, and writes nothing, if a cell fails.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { COLUMNS, HEAD, rowLine, startMatrixGateway } from './matrix/matrix.ts';
import { ROWS } from './matrix/rows.ts';

const PAGE = 'docs/providers.md';

await using gateway = await startMatrixGateway();
const lines: string[] = [];
const print = (line: string) => {
  lines.push(line);
  process.stdout.write(`${line}\n`);
};
for (const line of HEAD) print(line);
for (const row of ROWS) {
  const cells: string[] = [];
  for (const [title, run] of COLUMNS) {
    const cell = await run(gateway, row).catch((error: unknown) => {
      process.exitCode = 1;
      process.stderr.write(`${title} at ${row.model}: ${String(error)}\n`);
      return 'FAILED';
    });
    cells.push(cell);
  }
  print(rowLine(row, cells));
}
if (process.argv.includes('--write') && process.exitCode !== 1) {
  const page = readFileSync(PAGE, 'utf8').split('\n');
  const start = page.indexOf(HEAD[0] ?? '');
  if (start < 0) throw new Error(`${PAGE} has no table with the head ${HEAD[0]}`);
  page.splice(start, page.indexOf('', start) - start, ...lines);
  writeFileSync(PAGE, page.join('\n'));
}
