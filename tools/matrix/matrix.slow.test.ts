/**
 * Checks the matrix in docs/providers.md: each cell runs a tool loop of five steps with the SDK of the client protocol
 * (Q2, Q3, A7, I2-I4, I7).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROVIDERS } from '../../src/providers/index.ts';
import type { Gateway } from '../../test/e2e/gateway.ts';
import { COLUMNS, HEAD, rowLine, startMatrixGateway } from './matrix.ts';
import { ROWS } from './rows.ts';

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startMatrixGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

const lines = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'providers.md'), 'utf8').split('\n');
const start = lines.indexOf(HEAD[0] ?? '');
const table = lines.slice(start, lines.indexOf('', start));

test('it has a row for every built-in provider', () => {
  expect(table.slice(0, 2)).toEqual(HEAD);
  const models = table.slice(2).map((line) => /^\| `([^`]+)` \|/.exec(line)?.[1]);
  const providers = new Set(ROWS.map(({ model }) => model.split('/')[0]));
  const problems = [
    ...PROVIDERS.filter(({ id }) => !providers.has(id)).map(
      ({ id }) => `${id} has no row in the matrix: add one of its models to tools/matrix/rows.ts`,
    ),
    ...ROWS.filter(({ model }) => !models.includes(model)).map(
      ({ model }) => `docs/providers.md has no row for ${model}: run npm run matrix -- --write`,
    ),
    ...models
      .filter((model) => !ROWS.some((row) => row.model === model))
      .map(
        (model) =>
          `docs/providers.md has a row for ${model}, which is not in tools/matrix/rows.ts: remove one or add the other`,
      ),
  ];
  expect(problems, problems.join('\n')).toEqual([]);
});

describe.each(ROWS)('$model', (row) => {
  const line = table.find((text) => text.startsWith(rowLine(row, ['']).slice(0, -2))) ?? '';
  const [, ...cells] = line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, ''));

  test.each(COLUMNS.map(([title, run], column) => [title, cells[column] ?? '', run] as const))(
    'Q2 Q3 A7 I2 I7 %s: %s',
    async (_, cell, run) => {
      expect(await run(gateway, row)).toBe(cell);
    },
  );
});
