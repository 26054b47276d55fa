/** The README's matrix: every client's dialect at every provider, a loop of five steps with the SDK of each, as its cell says (Q2, Q3, A7, I2-I4, I7). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROVIDERS } from '../../src/providers/index.ts';
import type { Gateway } from '../e2e/gateway.ts';
import { COLUMNS, HEAD, rowLine, startMatrixGateway } from './matrix.ts';
import { ROWS } from './rows.ts';

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startMatrixGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

const lines = readFileSync(join(import.meta.dirname, '..', '..', 'README.md'), 'utf8').split('\n');
const start = lines.indexOf(HEAD[0] ?? '');
const table = lines.slice(start, lines.indexOf('', start));

test('it has a row for every provider that Weir knows by name', () => {
  expect(table.slice(0, 2)).toEqual(HEAD);
  expect(table).toHaveLength(HEAD.length + ROWS.length);
  const providers = new Set(ROWS.map(({ model }) => model.split('/')[0]));
  expect(PROVIDERS.map(({ id }) => id).filter((id) => !providers.has(id))).toEqual([]);
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
