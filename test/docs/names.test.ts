/** Tests that the pages of errors, settings, log events and headers have every name that the code has. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ERRORS } from '../../src/canonical/error.ts';
import { PROVIDER_SETTINGS } from '../../src/providers/index.ts';
import { ROWS } from '../../src/settings/table.ts';
import { LOG_EVENTS } from '../../src/shared/log-event.ts';
import { openApiText } from '../../tools/openapi/document.ts';
import { decodeObject, objectOf } from '../../tools/simulator/json.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const page = (name: string) => readFileSync(join(ROOT, 'docs', name), 'utf8');
const sourceOf = (folder: string) =>
  readdirSync(join(ROOT, 'src', folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && !path.startsWith('dashboard/'))
    .map((path) => readFileSync(join(ROOT, 'src', folder, path), 'utf8'))
    .join('\n');
const source = sourceOf('');

/** All first groups of a pattern's matches, each once. */
function allOf(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map(([, name = '']) => name))];
}

const lacking = (text: string, names: readonly string[]) =>
  names.filter((name) => !text.includes(`\`${name}`));

describe('docs/errors.md', () => {
  const errors = page('errors.md');

  test.each(Object.entries(ERRORS))('has %s with its status', (code, { status }) => {
    expect(errors).toContain(`\n| \`${code}\` | ${status} |`);
  });

  test('has each code that an error has in place of its own', () => {
    const codes = [
      'protocols',
      'api',
      'http',
      'completion',
      'durable-responses',
      'ledger',
      'attribution',
    ].flatMap((folder) => allOf(sourceOf(folder), /^ +(?:return \{ .*)?\bcode: '(\w+)'/gm));
    expect(codes).toContain('thread_unsupported_request');
    expect(lacking(errors, codes)).toEqual([]);
  });

  test('has the type of each code', () => {
    const rowOf = (type: string) =>
      errors.split('\n').find((line) => line.startsWith(`| \`${type}\` |`)) ?? '';
    const wrong = Object.entries(ERRORS).filter(([code, { status, type }]) => {
      if (type === 'server_error') return false;
      if (type === 'invalid_request_error') return !rowOf(type).includes(String(status));
      return !rowOf(type).includes(`\`${code}\``);
    });
    expect(wrong).toEqual([]);
  });
});

test('docs/settings.md has every setting', () => {
  expect(ROWS.size).toBeGreaterThan(30);
  expect(lacking(page('settings.md'), [...ROWS.keys(), ...PROVIDER_SETTINGS])).toEqual([]);
});

test('docs/operations.md has every log event', () => {
  expect(LOG_EVENTS.length).toBeGreaterThan(30);
  expect(lacking(page('operations.md'), [...LOG_EVENTS])).toEqual([]);
});

test('the pages have every header of Weir', () => {
  // Two are between the Worker and its objects, one goes to a site, and one to the receiver of alerts.
  const names = allOf(source, /'(x-weir-[\w-]+)'/g).filter(
    (name) => !/-(?:owner|after|origin-pass|signature)$/.test(name),
  );
  expect(names.length).toBeGreaterThan(15);
  expect(lacking(page('headers.md'), names)).toEqual([]);
});

describe('every field of the API has a meaning', () => {
  const schemas = objectOf(objectOf(decodeObject(openApiText())?.components).schemas);
  const reference = page('api.md');

  test.each(['Record', 'ReportRow', 'NewKey', 'Limits', 'Model'])('%s', (schema) => {
    const fields = Object.entries(objectOf(objectOf(schemas[schema]).properties));
    expect(fields.length).toBeGreaterThan(4);
    const unexplained = fields.filter(([, field]) => typeof objectOf(field).description !== 'string');
    expect(unexplained.map(([name]) => name)).toEqual([]);
    expect(
      lacking(
        reference,
        fields.map(([name]) => name),
      ),
    ).toEqual([]);
  });
});
