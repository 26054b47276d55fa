/**
 * The tables of documents that doc comments in `src` are written into: settings, entries of PROVIDERS, steps of
 * aliases, errors, log events.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS, type ErrorKind } from '../../src/canonical/error.ts';
import { FEATURES } from '../../src/settings/feature-settings.ts';
import { ROWS, settingName } from '../../src/settings/table.ts';
import { between, commentedRows, linked, table } from './commented.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const MEMBER = /readonly (\w+)\??:/g;

/** The table of settings, in the code. */
const TABLE = between(read('src/settings/table.ts'), 'export const SETTINGS = {', '\n};');

/** The sections of docs/settings.md, which comments name between the rows. The first one, of providers, is written by hand. */
const SECTIONS: readonly (readonly [section: string, rows: string])[] = [
  ...TABLE.matchAll(/^ {2}\/\/ (.+)\n((?:(?! {2}\/\/ ).*\n?)*)/gm),
]
  .map(([, section = '', rows = '']) => [section, rows] as const)
  .slice(1);

function settingsTable(section: string): string {
  /** Options in a comment are settings on the page: `origin: 'pass'` is `ORIGIN=pass`. */
  const asSettings = (text: string) =>
    text
      .replace(/`(\w+): '(\w+)'`/g, (whole, option: string, value: string) =>
        ROWS.has(settingName(option)) ? `\`${settingName(option)}=${value}\`` : whole,
      )
      .replace(/`(\w+[A-Z]\w*)`/g, (whole, option: string) =>
        ROWS.has(settingName(option)) ? `\`${settingName(option)}\`` : whole,
      );
  return table(
    ['name', 'values', 'effect'],
    commentedRows(section, /^ {2}(\w+):/gm).flatMap(({ names, text, rest }) =>
      names.map((option) => {
        const name = settingName(option);
        const row = ROWS.get(name);
        const words = row?.kind === 'word' ? row.words : valuesOf(/<([^>]*)>/.exec(rest)?.[1] ?? '');
        const values = words.map((value) => `\`${value}\``).join(', ') || ' ';
        return [`\`${name}\``, values, linked(asSettings(text))];
      }),
    ),
  );
}

/** What needs a feature besides its settings. */
const ALSO: Readonly<Record<string, string>> = { attribution: '; `AUTH=access`' };

function featuresTable(): string {
  const rows = FEATURES.filter(({ settings }) => settings.length > 0).map(({ name, settings }) => [
    `\`${name}()\``,
    settings.map((setting) => `\`${setting}\``).join(', ') + (ALSO[name] ?? ''),
  ]);
  return table(['feature', 'settings'], rows);
}

/** The words of a type. */
function valuesOf(type: string): readonly string[] {
  return [...type.matchAll(/'([\w-]+)'/g)].map(([, value = '']) => value);
}

/** The members of an interface of src/settings/entries.ts, in their order. */
function membersTable(name: string): string {
  const source = between(read('src/settings/entries.ts'), `export interface ${name} {`, '\n}');
  return table(
    ['field', 'meaning'],
    commentedRows(source, MEMBER).map(({ names, text, rest }) => {
      const values = valuesOf(rest).map((value) => `\`${value}\``);
      const suffix = values.length > 1 ? ` Values: ${values.join(', ')}.` : '';
      return [names.map((field) => `\`${field}\``).join(', '), `${linked(text)}${suffix}`];
    }),
  );
}

/** Whose error it is, by its row in the code. */
function errorsTable(isInGroup: (kind: ErrorKind, code: string) => boolean): string {
  const source = between(read('src/canonical/error.ts'), 'export const ERRORS = {', '} as const');
  const texts = new Map(
    commentedRows(source, /^ {2}(\w+):/gm).flatMap(({ names, text }) =>
      names.map((code) => [code, text] as const),
    ),
  );
  const rows = Object.entries<ErrorKind>(ERRORS).filter(([code, kind]) => isInGroup(kind, code));
  return table(
    ['code', 'status', 'cause, and what to do'],
    rows.map(([code, { status }]) => [`\`${code}\``, `${status}`, linked(texts.get(code) ?? '')]),
  );
}

const isOfRequest = ({ status }: ErrorKind) => status < 500;
const isOfProvider = (kind: ErrorKind, code: string) =>
  !isOfRequest(kind) && kind.fault === undefined && code !== 'origin_loop';

function eventsTable(): string {
  const source = between(read('src/shared/log-event.ts'), 'export const LOG_EVENTS = [', '] as const;');
  const rows = commentedRows(source, /'(\w+)'/g);
  return table(
    ['event', 'when, what to do, fields'],
    rows.map(({ names, text }) => [names.map((name) => `\`${name}\``).join(', '), linked(text)]),
  );
}

/** Each table, by its page and its name there. */
const TABLES: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  'docs/settings.md': {
    ...Object.fromEntries(SECTIONS.map(([section, rows]) => [section, () => settingsTable(rows)])),
    'settings of features': featuresTable,
  },
  'docs/providers.md': { 'an entry': () => membersTable('ProviderEntry') },
  'docs/routing.md': { 'a step': () => membersTable('AliasStep') },
  'docs/errors.md': {
    'errors of the request': () => errorsTable(isOfRequest),
    'errors of the deployment': () =>
      errorsTable((kind, code) => !isOfRequest(kind) && !isOfProvider(kind, code)),
    'errors of the provider': () => errorsTable(isOfProvider),
  },
  'docs/operations.md': { 'log events': eventsTable },
};

/** The pages with their tables as the code has them. Throws if a page has no place for one. */
export function pagesWithTables(): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(TABLES).map(([path, tables]) => {
      let text = read(path);
      for (const [name, write] of Object.entries(tables)) {
        const begin = `<!-- ${name}: npm run tables -->\n\n`;
        const end = `\n\n<!-- end of ${name} -->`;
        const old = between(text, begin, end);
        text = text.replace(`${begin}${old}${end}`, () => `${begin}${write()}${end}`);
      }
      return [path, text];
    }),
  );
}
