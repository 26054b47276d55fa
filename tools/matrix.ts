/** Runs every client protocol with every provider and prints the results as a table: npm run matrix. Exits with 1 if a cell fails. */
import { COLUMNS, HEAD, rowLine, startMatrixGateway } from './matrix/matrix.ts';
import { ROWS } from './matrix/rows.ts';

await using gateway = await startMatrixGateway();
process.stdout.write(`${HEAD.join('\n')}\n`);
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
  process.stdout.write(`${rowLine(row, cells)}\n`);
}
