/**
 * Changes of `wrangler.toml` by lines, so that comments and everything else stay. What is there already is not changed, so a second run
 * changes nothing.
 */
import { parse, stringify, type TomlTable } from 'smol-toml';
import { isObject, type JsonObject, objectOf, objectsOf, textOf } from '../simulator/json.ts';

/** `production` is the top level of the file; any other is `[env.<name>]`. */
export const PRODUCTION = 'production';

/** The binding of the KV namespace, which is the only one that needs an id. */
const KV_BINDING = 'WEIR_KV';
/** The binding of Cloudflare's models. */
const AI_BINDING = 'AI';
/** The binding of the bucket for records that leave their object. */
const ARCHIVE_BINDING = 'WEIR_ARCHIVE';

/**
 * What wrangler takes from the top level for no environment, and staging can share as it is. Other such tables, for example `queues`,
 * name something that two deployments must not share.
 */
const COPIED = ['durable_objects', 'version_metadata', 'ratelimits'] as const;
const NOT_COPIED = [
  ...['queues', 'services', 'r2_buckets', 'd1_databases', 'secrets_store_secrets', 'vpc_services'],
  ...['hyperdrive', 'workflows', 'analytics_engine_datasets', 'tail_consumers', 'ai'],
] as const;

export interface ConfigChanges {
  /** The Worker's name. */
  readonly worker: string;
  /** The environments, and the id of the KV namespace of each. */
  readonly namespaces: ReadonlyMap<string, string>;
  readonly vars: Readonly<Record<string, string>>;
  /** The bucket for records of each environment that gets one. Absent: none does. */
  readonly buckets?: ReadonlyMap<string, Bucket>;
  /** Each environment gets the binding of Cloudflare's models. Absent: none does. */
  readonly ai?: boolean;
}

export interface Bucket {
  readonly name: string;
  /** Null: the bucket is in none. */
  readonly jurisdiction: string | null;
}

export interface ChangedConfig {
  readonly text: string;
  /** What the operator has to know or do. */
  readonly notes: readonly string[];
}

/** The name that wrangler gives to the Worker of an environment. */
export function workerName(worker: string, environment: string): string {
  return environment === PRODUCTION ? worker : `${worker}-${environment}`;
}

/** The id of an environment's KV namespace in the file; null: none. */
export function namespaceId(text: string, environment: string): string | null {
  const namespace = objectsOf(environmentTable(text, environment).kv_namespaces).find(
    ({ binding }) => binding === KV_BINDING,
  );
  return textOf(namespace?.id) || null;
}

/** Whether an environment has a bucket for records in the file. */
export function hasArchive(text: string, environment: string): boolean {
  return objectsOf(environmentTable(text, environment).r2_buckets).some(
    ({ binding }) => binding === ARCHIVE_BINDING,
  );
}

/** The table of an environment in the file: its bindings and variables, as wrangler reads them. */
export function environmentTable(text: string, environment: string): JsonObject {
  const config = objectOf(parse(text));
  return environment === PRODUCTION ? config : objectOf(objectOf(config.env)[environment]);
}

/**
 * Throws where the new text would not have each variable with its value: the file has a form that a change by lines does not see.
 * @returns the whole new text of the file, equal to the old one where nothing is missing
 */
export function changeConfig(
  before: string,
  { worker, namespaces, vars, buckets = new Map(), ai = false }: ConfigChanges,
): ChangedConfig {
  const notes: string[] = [];
  let text = withName(before, worker);
  for (const [environment, id] of namespaces) {
    if (environment !== PRODUCTION) continue;
    text = withId(text, '[[kv_namespaces]]', id);
    text = withVars(text, '[vars]', vars, objectOf(objectOf(parse(text)).vars), notes);
    text = withBucket(text, environment, buckets.get(environment));
    if (ai) text = withAi(text, environment);
  }
  for (const [environment, id] of namespaces) {
    if (environment === PRODUCTION) continue;
    const config = parse(text);
    const own = objectOf(objectOf(config.env)[environment]);
    const bucket = buckets.get(environment);
    const missing = missingTables(config, environment, own, id, { bucket: bucket !== undefined, ai }, notes);
    if (Object.keys(missing).length > 0) text = append(text, environmentText(environment, own, missing));
    text = withId(text, `[[env.${environment}.kv_namespaces]]`, id);
    const after = objectOf(objectOf(objectOf(parse(text)).env)[environment]);
    const inherited = Object.entries(inheritedVars(config, own)).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value] as const] : [],
    );
    const wanted = { ...vars, ...Object.fromEntries(inherited) };
    text = withVars(text, `[env.${environment}.vars]`, wanted, objectOf(after.vars), notes);
    text = withBucket(text, environment, bucket);
    if (ai) text = withAi(text, environment);
  }
  verify(before, text, { worker, namespaces, vars });
  return { text, notes };
}

/** Reads the new text as wrangler does. */
function verify(before: string, after: string, { namespaces, vars }: ConfigChanges): void {
  const [old, changed] = [objectOf(parse(before)), parsedOrNull(after)];
  const varsOf = (config: Readonly<Record<string, unknown>>, environment: string) =>
    objectOf(environment === PRODUCTION ? config.vars : objectOf(objectOf(config.env)[environment]).vars);
  for (const environment of namespaces.keys()) {
    const inherited = environment === PRODUCTION ? {} : objectOf(old.vars);
    const wanted = { ...writable(vars), ...inherited, ...varsOf(old, environment) };
    const found = changed === null ? {} : varsOf(changed, environment);
    const lacking = Object.keys(vars).filter(
      (name) => JSON.stringify(found[name]) !== JSON.stringify(wanted[name]),
    );
    if (changed === null || lacking.length > 0)
      throw new Error(
        `The variables of ${environment} cannot be added to wrangler.toml, which has a form that is not known here: add ${lacking.join(', ')} by hand, and run this again`,
      );
  }
}

function parsedOrNull(text: string): TomlTable | null {
  try {
    return parse(text);
  } catch {
    return null;
  }
}

/** TOML has no halves of surrogates. */
function writable(vars: ConfigChanges['vars']): ConfigChanges['vars'] {
  return Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, value.toWellFormed()]));
}

/** The name stands before the first table. */
function withName(text: string, worker: string): string {
  const lines = text.split('\n');
  const tables = lines.findIndex((line) => line.startsWith('['));
  const at = lines.findIndex((line) => /^name\s*=/.test(line));
  if (at < 0 || at > tables || textOf(objectOf(parse(text)).name) === worker) return text;
  return lines.toSpliced(at, 1, `name = ${quoted(worker)}`).join('\n');
}

/** Puts the id of the KV namespace below the line with its binding, unless the table has an id. */
function withId(text: string, head: string, id: string): string {
  const lines = text.split('\n');
  const start = lines.findIndex(
    (line, at) =>
      line.trim() === head && tableLines(lines, at).some((row) => row.includes(`"${KV_BINDING}"`)),
  );
  if (start < 0 || tableLines(lines, start).some((row) => /^\s*id\s*=/.test(row))) return text;
  const binding = lines.findIndex((line, at) => at > start && line.includes(`"${KV_BINDING}"`));
  return lines.toSpliced(binding + 1, 0, `id = ${quoted(id)}`).join('\n');
}

/** Adds the binding of the bucket for records, unless there is one. */
function withBucket(text: string, environment: string, bucket: Bucket | undefined): string {
  if (bucket === undefined || hasArchive(text, environment)) return text;
  const { name, jurisdiction } = bucket;
  const lines = [
    '# Records that leave a full ledger object: docs/ledgers.md#records-leave-an-object.',
    environment === PRODUCTION ? '[[r2_buckets]]' : `[[env.${environment}.r2_buckets]]`,
    `binding = ${quoted(ARCHIVE_BINDING)}`,
    `bucket_name = ${quoted(name)}`,
    ...(jurisdiction === null ? [] : [`jurisdiction = ${quoted(jurisdiction)}`]),
  ];
  const changed = append(text, lines.join('\n'));
  if (parsedOrNull(changed) === null)
    throw new Error(
      `The bucket ${name} cannot be added to wrangler.toml, which has a form that is not known here: bind it as ${ARCHIVE_BINDING} by hand, and run this again`,
    );
  return changed;
}

/** Adds the binding of Cloudflare's models, unless there is one. */
function withAi(text: string, environment: string): string {
  if (environmentTable(text, environment).ai !== undefined) return text;
  const lines = [
    "# Cloudflare's models, without a key: docs/providers.md#by-the-binding. `npm run dev -- --ai` uses them, too.",
    environment === PRODUCTION ? '[ai]' : `[env.${environment}.ai]`,
    `binding = ${quoted(AI_BINDING)}`,
  ];
  const changed = append(text, lines.join('\n'));
  if (parsedOrNull(changed) === null)
    throw new Error(
      `The binding ${AI_BINDING} cannot be added to wrangler.toml, which has a form that is not known here: add it by hand, and run this again`,
    );
  return changed;
}

/**
 * The file for `wrangler dev`, which opens a remote session, and asks for a login, as soon as the binding is there.
 * @param environment as in `--env`
 * @returns null: the text has it as it should be; `''`: it has a form that is not known here
 */
export function devConfig(text: string, environment: string, usesAi: boolean): string | null {
  const has = (one: string) => environmentTable(one, environment).ai !== undefined;
  if (has(text) === usesAi) return null;
  if (usesAi) return withAi(text, environment);
  const head = environment === PRODUCTION ? '[ai]' : `[env.${environment}.ai]`;
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.trim() === head);
  const changed = lines.toSpliced(start, start < 0 ? 0 : 1 + tableLines(lines, start).length).join('\n');
  return parsedOrNull(changed) === null || has(changed) ? '' : changed;
}

/** The lines of a table, up to the next one. */
function tableLines(lines: readonly string[], start: number): readonly string[] {
  const end = lines.findIndex((line, at) => at > start && line.trimStart().startsWith('['));
  return lines.slice(start + 1, end < 0 ? lines.length : end);
}

/** Adds variables that are missing. One that is there with another value stays. */
function withVars(
  text: string,
  head: string,
  vars: ConfigChanges['vars'],
  present: Readonly<Record<string, unknown>>,
  notes: string[],
): string {
  const missing: string[] = [];
  for (const [name, value] of Object.entries(vars)) {
    if (!(name in present)) missing.push(`${name} = ${quoted(value)}`);
    else if (present[name] !== value.toWellFormed())
      notes.push(`${name} in ${head} has another value, which stays`);
  }
  if (missing.length === 0) return text;
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.trim() === head);
  return start < 0
    ? append(text, [head, ...missing].join('\n'))
    : lines.toSpliced(start + 1, 0, ...missing).join('\n');
}

/** The variables of the top level that an environment without its own gets. */
function inheritedVars(config: TomlTable, own: Readonly<Record<string, unknown>>): TomlTable {
  return own.vars === undefined && isTable(config.vars) ? config.vars : {};
}

function isTable(value: unknown): value is TomlTable {
  return isObject(value);
}

/** The tables of the top level that an environment needs and does not have. */
function missingTables(
  config: TomlTable,
  environment: string,
  own: Readonly<Record<string, unknown>>,
  id: string,
  gets: { readonly bucket: boolean; readonly ai: boolean },
  notes: string[],
): TomlTable {
  const missing: TomlTable = {};
  // Routes are inherited: without this line staging would take the requests of production.
  const hasRoutes = config.routes !== undefined || config.route !== undefined;
  if (hasRoutes && own.routes === undefined && own.route === undefined)
    Object.assign(missing, { routes: [], workers_dev: true });
  if (!objectsOf(own.kv_namespaces).some(({ binding }) => binding === KV_BINDING))
    missing.kv_namespaces = [{ binding: KV_BINDING, id }];
  for (const name of COPIED) {
    const table = config[name];
    if (table !== undefined && own[name] === undefined) missing[name] = table;
  }
  const tables = Object.entries(inheritedVars(config, own)).filter(([, value]) => typeof value !== 'string');
  if (tables.length > 0) missing.vars = Object.fromEntries(tables);
  for (const name of NOT_COPIED) {
    const isAdded = (name === 'r2_buckets' && gets.bucket) || (name === 'ai' && gets.ai);
    if (config[name] !== undefined && own[name] === undefined && !isAdded)
      notes.push(`[env.${environment}] has no ${name}: add one of its own if it needs it`);
  }
  return missing;
}

function environmentText(
  environment: string,
  own: Readonly<Record<string, unknown>>,
  tables: TomlTable,
): string {
  const text = stringify({ env: { [environment]: tables } }).trim();
  if (Object.keys(own).length > 0) return text;
  return `# The environment ${environment}: npm run deploy -- --env ${environment}. It has bindings and variables of its own, because wrangler inherits none.\n${text}`;
}

function append(text: string, block: string): string {
  return `${text.trimEnd()}\n\n${block}\n`;
}

/** What a literal string cannot have. */
const NOT_LITERAL = /['\p{Cc}]/u;
/** What one of several lines cannot have, besides a line that looks like the head of a table to a change by lines. */
const NOT_LITERAL_LINES = /'|(?!\n)\p{Cc}|\n[ \t]*\[/u;

/** A TOML string. JSON text stays readable in a literal one. */
function quoted(value: string): string {
  const text = value.toWellFormed();
  if (text.includes('"') && !NOT_LITERAL.test(text)) return `'${text}'`;
  // A line break after the opening quotes would be lost.
  if (text.includes('"') && !text.startsWith('\n') && !NOT_LITERAL_LINES.test(text)) return `'''${text}'''`;
  return JSON.stringify(text).replace(
    /\p{Cc}/gu,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
}
