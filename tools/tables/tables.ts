/** The tables of documents that doc comments in `src` are written into: settings, entries of PROVIDERS, steps of aliases, errors, log events. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS, type ErrorKind } from '../../src/canonical/error.ts';
import { between, commentedRows, linked, table } from './commented.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const MEMBER = /readonly (\w+)\??:/g;

/** The sections of docs/settings.md. A test compares the names with those that the code knows. */
export const SETTINGS = {
  Routing: ['bareModels', 'aliases', 'retries'],
  Access: ['auth', 'adminToken', 'accessTeamDomain', 'accessAud', 'accessAdmins', 'corsOrigins'],
  'Request translation': ['learn', 'errorTexts', 'unsupported', 'promptCache'],
  Streams: ['usageChunk', 'vendorEvents', 'reasoning', 'errorFrames'],
  'Limits and time': [
    ...['heartbeatSeconds', 'idleTimeoutSeconds', 'deadlineSeconds', 'maxEventBytes', 'maxRequestBytes'],
  ],
  'Metering and budgets': [
    ...['ledger', 'recordDays', 'recordBytes', 'users', 'userHashKey', 'cacheReport', 'tags'],
    ...['budgetFail', 'budgetAlerts', 'alertUrl', 'alertSecret', 'prices'],
  ],
  Responses: ['responses', 'responsesDays', 'responseBytes', 'keptResponses', 'keptBytes'],
  Location: ['basePath', 'origin', 'originHosts', 'jurisdiction', 'locationHint'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

const settingName = (option: string) => option.replace(/[A-Z]/g, '_$&').toUpperCase();

function settingsTable(options: readonly string[]): string {
  const rows = commentedRows(
    between(read('src/settings/options.ts'), 'export interface SettingOptions', '\n}'),
    MEMBER,
  );
  const known = new Set(rows.flatMap(({ names }) => names));
  /** Options in a comment are settings on the page: `origin: 'pass'` is `ORIGIN=pass`. */
  const asSettings = (text: string) =>
    text
      .replace(/`(\w+): '(\w+)'`/g, (whole, option: string, value: string) =>
        known.has(option) ? `\`${settingName(option)}=${value}\`` : whole,
      )
      .replace(/`(\w+[A-Z]\w*)`/g, (whole, option: string) =>
        known.has(option) ? `\`${settingName(option)}\`` : whole,
      );
  return table(
    ['name', 'values', 'effect'],
    options.map((option) => {
      const row = rows.find(({ names }) => names.includes(option));
      if (row === undefined) throw new Error(`src/settings/options.ts has no ${option} with a comment`);
      const values = [...row.rest.matchAll(/'([\w-]+)'/g)].map(([, value = '']) => `\`${value}\``);
      return [`\`${settingName(option)}\``, values.join(', ') || ' ', linked(asSettings(row.text))];
    }),
  );
}

/** The members of an interface of src/settings/options.ts, in their order. */
function membersTable(name: string): string {
  const source = between(read('src/settings/options.ts'), `export interface ${name} {`, '\n}');
  return table(
    ['field', 'meaning'],
    commentedRows(source, MEMBER).map(({ names, text, rest }) => {
      const values = [...rest.matchAll(/'([\w-]+)'/g)].map(([, value = '']) => `\`${value}\``);
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
  'docs/settings.md': Object.fromEntries(
    Object.entries(SETTINGS).map(([section, options]) => [section, () => settingsTable(options)]),
  ),
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
