/** Tests which rows are measured: by name, and with another checkout. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ROWS, requestedRows, takes } from './rows.ts';

/** Without any file. */
const OTHER = '/elsewhere/weir';
const THIS = join(import.meta.dirname, '..');

function shown(names: readonly string[], base: string | null) {
  return requestedRows(names, base).map(({ name, main }) => [name, fileURLToPath(main.href)]);
}

const FLOOR_FILE = join(import.meta.dirname, 'workers', 'floor.ts');
const WEIR_FILE = join(import.meta.dirname, '..', 'src', 'index.ts');

test('rows by name: those, in the order of the names', () => {
  expect(shown(['weir', 'floor'], null)).toEqual([
    ['weir', WEIR_FILE],
    ['floor', FLOOR_FILE],
  ]);
});

test('rows with another checkout: each row of Weir is followed by the one of that checkout, with the same requests', () => {
  expect(shown(['floor', 'weir', 'weir-limits'], OTHER)).toEqual([
    ['floor', FLOOR_FILE],
    ['weir', WEIR_FILE],
    ['base-weir', join(OTHER, 'src', 'index.ts')],
    ['weir-limits', WEIR_FILE],
    ['base-weir-limits', join(OTHER, 'src', 'index.ts')],
  ]);
  const [own, other] = requestedRows(['weir-limits'], THIS);
  const { name: _, main: __, what: ___, ...rest } = own ?? {};
  expect(other).toMatchObject(rest);
});

test('rows with a text that is replaced in the bundle: only of this checkout', () => {
  const replaced = ROWS.find(({ replace }) => replace !== null)?.name ?? '';
  expect(shown([replaced], OTHER)).toEqual([[replaced, WEIR_FILE]]);
});

test('a name that is no row: an error that has it', () => {
  expect(() => requestedRows(['weird'], null)).toThrow('weird is no row');
});

test('rows with an earlier checkout: without the clients, credentials and streams that it does not have', () => {
  const names = (base: string) => requestedRows(['weir-gemini', 'weir-signed'], base).map(({ name }) => name);
  expect(names(OTHER)).toEqual(['weir-gemini', 'weir-signed']);
  expect(names(THIS)).toEqual(['weir-gemini', 'base-weir-gemini', 'weir-signed', 'base-weir-signed']);
  const [own, earlier] = requestedRows(['weir'], OTHER);
  const providers = (row = own) => JSON.parse(row?.settings('http://upstream').PROVIDERS ?? '{}');
  expect(providers()).toHaveProperty('converse');
  expect(providers(earlier)).toEqual({});
  const reads = (row = own) => row !== undefined && takes(row, 'converse');
  expect([reads(), reads(earlier)]).toEqual([true, false]);
});
