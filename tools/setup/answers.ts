/** What the set-up needs to know: the answers of a person at the terminal, or of a file. */
import { PROVIDERS } from '../../src/providers/index.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { isOwnSecret } from '../../src/settings/providers.ts';
import { didYouMean } from '../../src/shared/nearest.ts';
import { failure, ok, type Result } from '../../src/shared/result.ts';
import { decodeObject, isObject, type JsonObject, objectOf, textOf } from '../simulator/json.ts';
import { PRODUCTION } from './wrangler-config.ts';

interface FirstKey extends JsonObject {
  readonly name: string;
}

export interface Answers {
  /** The Worker's name. */
  readonly worker: string;
  /** In the order in which they are set up. */
  readonly environments: readonly string[];
  readonly providers: readonly Provider[];
  /** Variables of `wrangler.toml`. */
  readonly vars: Readonly<Record<string, string>>;
  /** Where clients reach an environment. Absent: the address that wrangler prints. */
  readonly addresses: Readonly<Record<string, string>>;
  /** Further secrets, which entries of `PROVIDERS` name. */
  readonly secrets: readonly string[];
  /** Whether each environment gets an R2 bucket for records that leave their object. */
  readonly archive: boolean;
  /** The first gateway key: the body of `POST /admin/keys`. */
  readonly key: FirstKey;
}

const WORKER = /^[a-z0-9](?:[a-z0-9-]{0,52}[a-z0-9])?$/;
const ENVIRONMENT = /^[a-z][a-z0-9-]{0,19}$/;
const VARIABLE = /^[A-Z][A-Z0-9_]*$/;
const SECRET = /_(API_KEY|TOKEN|SECRET|HASH_KEY|PASSWORD)$/;
/** A jurisdiction of Durable Objects that R2 does not have (https://developers.cloudflare.com/r2/reference/data-location/, 2026-11-28). */
const NO_BUCKETS = 'fedramp-high';
const FIELDS = ['worker', 'environments', 'providers', 'secrets', 'vars', 'addresses', 'archive', 'key'];

export const PROVIDER_IDS: readonly string[] = PROVIDERS.map(({ id }) => id);

/** @returns the answers, or every problem with them */
export function readAnswers(text: string): Result<Answers, readonly string[]> {
  const file = decodeObject(text);
  if (file === undefined) return failure(['The answers must be a JSON object']);
  const problems: string[] = [];
  const say = (problem: string) => void problems.push(problem);
  for (const field of Object.keys(file))
    if (!FIELDS.includes(field)) say(`${field} is no field of the answers${didYouMean(field, FIELDS)}`);

  const { worker = 'weir' } = file;
  const key = firstKey(file.key ?? 'first');
  if (typeof worker !== 'string' || !WORKER.test(worker))
    say('worker must be 1 to 54 lowercase letters, digits and dashes');
  if (key === null) say('key must be the name of a gateway key, or an object with its name and limits');
  const environments = textsOf(file.environments ?? [PRODUCTION]);
  if (
    environments === null ||
    environments.length === 0 ||
    !environments.every((one) => ENVIRONMENT.test(one))
  )
    say('environments must be a list of names, such as ["production", "staging"]');
  const vars = recordOf(file.vars ?? {});
  for (const name of Object.keys(vars ?? {})) {
    if (!VARIABLE.test(name)) say(`vars.${name} must be a name in capitals`);
    else if (SECRET.test(name)) say(`vars.${name} is a secret: set it in the environment of this command`);
    else if (hasPassword(vars?.[name] ?? '')) say(`vars.${name} has a password in a URL: make it a secret`);
  }
  for (const problem of entryProblems(decodeObject(vars?.PROVIDERS ?? '') ?? {})) say(problem);
  if (vars === null) say('vars must be an object of texts');
  const addresses = recordOf(file.addresses ?? {});
  if (addresses === null || !Object.values(addresses).every(isAddress))
    say('addresses must be an object of environments and http(s) URLs');

  const { archive = vars?.LEDGER === 'object' } = file;
  if (typeof archive !== 'boolean') say('archive must be true or false');
  else if (archive && vars?.JURISDICTION === NO_BUCKETS)
    say(`archive must be false: R2 has no jurisdiction ${NO_BUCKETS}, and records would leave it`);

  const secrets = textsOf(file.secrets ?? []);
  if (secrets === null || !secrets.every((name) => VARIABLE.test(name)))
    say('secrets must be a list of names in capitals');
  const ids = textsOf(file.providers ?? []);
  if (ids === null || (ids.length === 0 && vars?.PROVIDERS === undefined))
    say(`providers must be a list of: ${PROVIDER_IDS.join(', ')}`);
  const providers = (ids ?? []).flatMap((id) => {
    const provider = PROVIDERS.find((one) => one.id === id);
    if (provider === undefined) say(`${id} is no provider${didYouMean(id, PROVIDER_IDS)}`);
    else if (needsUrl(provider) && vars?.[provider.baseUrlSettings[0]] === undefined)
      say(`vars needs ${provider.baseUrlSettings[0]}, because ${provider.name} has no address of its own`);
    return provider ?? [];
  });
  if (problems.length > 0) return failure(problems);
  return ok({
    worker: String(worker),
    environments: environments ?? [],
    providers,
    vars: vars ?? {},
    addresses: Object.fromEntries(
      Object.entries(addresses ?? {}).map(([environment, url]) => [environment, plainAddress(url)]),
    ),
    secrets: secrets ?? [],
    archive: archive === true,
    key: key ?? { name: '' },
  });
}

/** Of entries of `PROVIDERS`: wrangler.toml is often in a repository, and no provider gets a secret of Weir's own. */
function entryProblems(entries: JsonObject): readonly string[] {
  return Object.entries(entries).flatMap(([id, entry]) => {
    const { base_url, api_key, headers, query } = objectOf(entry);
    const values = [...Object.values(objectOf(headers)), ...Object.values(objectOf(query))].map(textOf);
    const names = [textOf(api_key), ...values.flatMap((text) => (text.startsWith('$') ? text.slice(1) : []))];
    const own = names.find(isOwnSecret);
    return [
      ...(own === undefined ? [] : [`vars.PROVIDERS: ${id} names ${own}, a secret of Weir's own`]),
      ...(hasPassword(textOf(base_url)) ? [`vars.PROVIDERS: base_url of ${id} has a password`] : []),
    ];
  });
}

function hasPassword(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username + password !== '';
}

function isAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && !hasPassword(text);
}

/** Without the characters that a URL ignores, and without a slash at its end. */
function plainAddress(text: string): string {
  return new URL(text).href.replace(/\/+$/, '');
}

/** Whether a deployment has to name the provider's base URL. */
export function needsUrl({ defaultBaseUrl }: Provider): boolean {
  return defaultBaseUrl === null;
}

/**
 * The value of a secret in the environment of the command. `STAGING_OPENAI_API_KEY` is for the environment `staging` alone and comes
 * before `OPENAI_API_KEY`. The admin token is never shared: for staging it is in `STAGING_ADMIN_TOKEN` only.
 * @returns null: not set
 */
export function secretOf(env: NodeJS.ProcessEnv, environment: string, name: string): string | null {
  const own = env[`${environment.toUpperCase().replaceAll('-', '_')}_${name}`];
  const shared = name === 'ADMIN_TOKEN' && environment !== PRODUCTION ? undefined : env[name];
  return own || shared || null;
}

function firstKey(value: unknown): FirstKey | null {
  const key = isObject(value) ? value : { name: value };
  const { name } = key;
  return typeof name === 'string' && name !== '' ? { ...key, name } : null;
}

function textsOf(value: unknown): readonly string[] | null {
  return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : null;
}

function recordOf(value: unknown): Readonly<Record<string, string>> | null {
  if (!isObject(value)) return null;
  const entries = Object.entries(value).flatMap(([name, text]) =>
    typeof text === 'string' ? [[name, text] as const] : [],
  );
  return entries.length === Object.keys(value).length ? Object.fromEntries(entries) : null;
}
