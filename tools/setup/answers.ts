/** What the set-up needs to know: the answers of a person at the terminal, or of a file. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROVIDERS, secretSettings } from '../../src/providers/index.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { secretsOfAuth } from '../../src/settings/auth.ts';
import { isOwnSecret } from '../../src/settings/providers.ts';
import { parseJson } from '../../src/shared/json.ts';
import { jsonFault } from '../../src/shared/json-fault.ts';
import { didYouMean } from '../../src/shared/nearest.ts';
import { failure, ok, type Result } from '../../src/shared/result.ts';
import { decodeObject, isObject, type JsonObject, objectOf, textOf } from '../simulator/json.ts';
import { checkDeployment, type DeploymentCheck, type PlannedDeployment, placeSuffix } from './check.ts';
import { PRODUCTION, workerName } from './wrangler-config.ts';

/** The body of a route that makes a key or a team. */
interface NamedBody extends JsonObject {
  readonly name: string;
}

export interface Answers {
  /** The Worker's name. */
  readonly worker: string;
  /** In the order in which they are set up. */
  readonly environments: readonly string[];
  /** Variables of `wrangler.toml`. */
  readonly vars: Readonly<Record<string, string>>;
  /** Where clients reach an environment. Absent: the address that wrangler prints. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly providers: readonly Provider[];
  /** Further secrets. */
  readonly secrets: readonly string[];
  /** The names of all secrets of each environment: the admin token, providers' keys, those above, and what the settings name. */
  readonly neededSecrets: ReadonlyMap<string, readonly string[]>;
  /** Whether each environment gets an R2 bucket for records that leave their object. */
  readonly archive: boolean;
  /** Whether each environment gets the binding of Cloudflare's models. */
  readonly ai: boolean;
  /** The first gateway key: the body of `POST /admin/keys`, without the first team. */
  readonly key: NamedBody;
  /** The first team, of which the first key is: the body of `POST /v1/admin/teams`. Null: there is none. */
  readonly team: NamedBody | null;
  /** What the operator should know. */
  readonly notes: readonly string[];
}

/** What the answers are checked with. */
export interface Surroundings {
  /** The text of `wrangler.toml`. */
  readonly config: string;
  /** Where secrets are looked up. */
  readonly env: NodeJS.ProcessEnv;
  /** ms since the epoch. */
  readonly now: number;
}

const WORKER = /^[a-z0-9](?:[a-z0-9-]{0,52}[a-z0-9])?$/;
/** A label of a host name, of which an address on `workers.dev` is made. */
const MAX_WORKER_CHARS = 63;
const ENVIRONMENT = /^[a-z][a-z0-9-]{0,19}$/;
const VARIABLE = /^[A-Z][A-Z0-9_]*$/;
const SECRET = /_(API_KEY|TOKEN|SECRET|HASH_KEY|PASSWORD)$/;
const KEYS = new Set(PROVIDERS.flatMap(secretSettings));
const isSecret = (name: string) => KEYS.has(name) || SECRET.test(name);
/** A jurisdiction of Durable Objects that R2 does not have (https://developers.cloudflare.com/r2/reference/data-location/, 2026-11-28). */
const NO_BUCKETS = 'fedramp-high';
const FIELDS = [
  'worker',
  'environments',
  'providers',
  'secrets',
  'vars',
  'addresses',
  'archive',
  'ai',
  'key',
  'team',
];

export const PROVIDER_IDS: readonly string[] = PROVIDERS.map(({ id }) => id);

/**
 * Reads the text of an answers file.
 * @returns the answers, or every problem with them: with their form, with the settings and secrets of each environment,
 * and with team and key
 */
export function readAnswers(
  text: string,
  surroundings: Surroundings = ownSurroundings(),
): Result<Answers, readonly string[]> {
  const file = decodeObject(text);
  if (file === undefined)
    return failure([`The answers must be a JSON object, and the text ${jsonFault(text, parseJson(text))}`]);
  const problems: string[] = [];
  const say = (problem: string) => void problems.push(problem);
  for (const field of Object.keys(file))
    if (!FIELDS.includes(field)) say(`${field} is no field of the answers${didYouMean(field, FIELDS)}`);

  const { worker = 'weir' } = file;
  const isName = typeof worker === 'string' && WORKER.test(worker);
  if (!isName) say('worker must be 1 to 54 lowercase letters, digits and dashes');
  const environments = readEnvironments(file.environments ?? [PRODUCTION], isName ? worker : '', say);
  const vars = readVars(file.vars ?? {}, say);
  const addresses = readAddresses(file.addresses ?? {}, environments, say);

  const { archive = vars.LEDGER === 'object' } = file;
  if (typeof archive !== 'boolean') say('archive must be true or false');
  else if (archive && vars.JURISDICTION === NO_BUCKETS)
    say(`archive must be false: R2 has no jurisdiction ${NO_BUCKETS}, and records would leave it`);

  const { ai = isByBinding(file.providers, vars, surroundings.env) } = file;
  if (typeof ai !== 'boolean') say('ai must be true or false');
  const secrets = textsOf(file.secrets ?? []);
  if (secrets === null || !secrets.every((name) => VARIABLE.test(name)))
    say('secrets must be a list of names in capitals');
  const ids = textsOf(file.providers ?? []);
  if (ids === null || (ids.length === 0 && vars.PROVIDERS === undefined && ai !== true))
    say(`providers must be a list of: ${PROVIDER_IDS.join(', ')}`);
  const providers = (ids ?? []).flatMap((id) => {
    const provider = PROVIDERS.find((one) => one.id === id);
    if (provider === undefined) say(`${id} is no provider${didYouMean(id, PROVIDER_IDS)}`);
    return provider ?? [];
  });
  for (const name of providers.flatMap(secretSettings)) {
    const given = environments.map((environment) => secretOf(surroundings.env, environment, name));
    if (given.some((text) => text?.startsWith('@'))) say(`${name} names a file that cannot be read`);
  }
  const key = namedBody(file.key ?? 'first');
  if (key === null) say('key must be the name of a gateway key, or an object with its name and limits');
  const { team: givenTeam = null } = file;
  const team = givenTeam === null ? null : namedBody(givenTeam);
  if (givenTeam !== null && team === null)
    say('team must be the name of a team, or an object with its name and limits');
  if (team !== null && key?.team !== undefined)
    say('key: its team is the one that the answers make: leave out one of the two');

  const plan = {
    worker: isName ? worker : 'weir',
    environments: environments.length === 0 ? [PRODUCTION] : environments,
    vars,
    secrets: [
      ...providerKeys(
        providers.filter(({ cloud }) => ai !== true || cloud?.binding === undefined),
        surroundings.env,
      ),
      ...(secrets ?? []),
    ],
    archive: archive === true,
    ai: ai === true,
    key,
    team,
  };
  const check = checked(plan, surroundings, say, [...problems]);
  if (check === null || problems.length > 0) return failure(problems);
  return ok({
    ...plan,
    providers,
    addresses,
    secrets: secrets ?? [],
    neededSecrets: check.secrets,
    key: key ?? { name: '' },
    notes: check.notes,
  });
}

/** Whether a provider with a binding is chosen, and nothing of what its API needs is given. */
function isByBinding(ids: unknown, vars: Readonly<Record<string, string>>, env: NodeJS.ProcessEnv): boolean {
  return PROVIDERS.some(
    ({ id, cloud, apiKeySettings }) =>
      cloud?.binding !== undefined &&
      textsOf(ids)?.includes(id) === true &&
      apiKeySettings.every((name) => secretOf(env, PRODUCTION, name) === null) &&
      cloud.parameters.every(
        ({ setting, byDefault }) => byDefault !== undefined || vars[setting] === undefined,
      ),
  );
}

/** Weir's own checks. What was already said of a variable is not said again. @returns null: there is a problem */
function checked(
  plan: PlannedDeployment,
  { config, env, now }: Surroundings,
  say: (problem: string) => void,
  said: readonly string[],
): DeploymentCheck | null {
  let check: DeploymentCheck;
  try {
    const find = (environment: string, name: string) => secretOf(env, environment, name);
    check = checkDeployment(plan, { config, secretOf: find, now });
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    return null;
  }
  for (const problem of check.problems)
    if (!said.some((text) => text.startsWith(`vars.${problem.setting}`)))
      say(problem.text + placeSuffix(problem, plan.environments));
  for (const problem of check.bodyProblems) say(problem);
  return check;
}

/** `wrangler.toml` of this clone, and the environment of this command. */
function ownSurroundings(): Surroundings {
  const config = readFileSync(join(import.meta.dirname, '..', '..', 'wrangler.toml'), 'utf8');
  return { config, env: process.env, now: Date.now() };
}

function readEnvironments(value: unknown, worker: string, say: (problem: string) => void): readonly string[] {
  const names = textsOf(value);
  if (names === null || names.length === 0) {
    say('environments must be a list of names, such as ["production", "staging"]');
    return [];
  }
  for (const name of new Set(names)) {
    if (!ENVIRONMENT.test(name))
      say(
        `environments: ${JSON.stringify(name)} must be 1 to 20 lowercase letters, digits and dashes, and begin with a letter`,
      );
    else if (workerName(worker, name).length > MAX_WORKER_CHARS)
      say(`environments: ${workerName(worker, name)} is longer than ${MAX_WORKER_CHARS} characters`);
    if (names.indexOf(name) < names.lastIndexOf(name))
      say(`environments has ${JSON.stringify(name)} more than once`);
  }
  return [...new Set(names.filter((name) => ENVIRONMENT.test(name)))];
}

/** The variables as texts. Objects and lists, which are tables in `wrangler.toml`, become JSON text of several lines. */
function readVars(value: unknown, say: (problem: string) => void): Readonly<Record<string, string>> {
  if (!isObject(value)) {
    say('vars must be an object of texts, objects and lists');
    return {};
  }
  const vars: Record<string, string> = {};
  for (const [name, given] of Object.entries(value)) {
    if (!VARIABLE.test(name)) say(`vars.${name} must be a name in capitals`);
    else if (isSecret(name)) say(`vars.${name} is a secret: set it in the environment of this command`);
    else if (given === null || given === undefined) say(`vars.${name} must be a text, an object or a list`);
    else if (hasPassword(textOf(given))) say(`vars.${name} has a password in a URL: make it a secret`);
    else vars[name] = typeof given === 'object' ? JSON.stringify(given, null, 2) : String(given);
  }
  for (const problem of entryProblems(decodeObject(vars.PROVIDERS ?? '') ?? {})) say(problem);
  return vars;
}

function readAddresses(
  value: unknown,
  environments: readonly string[],
  say: (problem: string) => void,
): Readonly<Record<string, string>> {
  const addresses = objectOf(value);
  const isRecord = isObject(value) && Object.values(addresses).every((url) => isAddress(textOf(url)));
  if (!isRecord) {
    say(
      'addresses must be an object of environments and http(s) URLs, without a password, query and fragment',
    );
    return {};
  }
  for (const environment of Object.keys(addresses))
    if (!environments.includes(environment))
      say(
        `addresses: ${JSON.stringify(environment)} is not among environments${didYouMean(environment, environments)}`,
      );
  return Object.fromEntries(
    Object.entries(addresses).map(([environment, url]) => [environment, plainAddress(textOf(url))]),
  );
}

/**
 * The names of the secrets with each provider's credential: the key that is given where it has several, as Mistral's serves Codestral, too;
 * where no key is given, what else its credential is made of.
 */
function providerKeys(providers: readonly Provider[], env: NodeJS.ProcessEnv): readonly string[] {
  const isGiven = (name: string) => secretOf(env, PRODUCTION, name) !== null;
  return providers.flatMap((provider) => {
    const { apiKeySettings } = provider;
    const key = apiKeySettings.find(isGiven);
    const made = secretSettings(provider).filter((name) => !apiKeySettings.includes(name) && isGiven(name));
    return key === undefined && made.length > 0 ? made : [key ?? apiKeySettings[0]];
  });
}

/** Of entries of `PROVIDERS`: wrangler.toml is often in a repository, and no provider gets a secret of Weir's own. */
function entryProblems(entries: JsonObject): readonly string[] {
  return Object.entries(entries).flatMap(([id, entry]) => {
    const { base_url, api_key, auth, headers, query } = objectOf(entry);
    const values = [...Object.values(objectOf(headers)), ...Object.values(objectOf(query))].map(textOf);
    const names = [
      textOf(api_key),
      ...secretsOfAuth(auth),
      ...values.flatMap((text) => (text.startsWith('$') ? text.slice(1) : [])),
    ];
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
  if (!URL.canParse(text) || hasPassword(text)) return false;
  const { protocol, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && search + hash === '';
}

/** Without the characters that a URL ignores, and without a slash at its end. */
function plainAddress(text: string): string {
  return new URL(text).href.replace(/\/+$/, '');
}

/**
 * The value of a secret in the environment of the command. `STAGING_OPENAI_API_KEY` is for the environment `staging` alone and comes
 * before `OPENAI_API_KEY`. The admin token is never shared: for staging it is in `STAGING_ADMIN_TOKEN` only.
 * @returns null: not set
 */
export function secretOf(env: NodeJS.ProcessEnv, environment: string, name: string): string | null {
  const own = env[`${environment.toUpperCase().replaceAll('-', '_')}_${name}`];
  const shared = name === 'ADMIN_TOKEN' && environment !== PRODUCTION ? undefined : env[name];
  return textOfSecret(own || shared || null);
}

/** `@key.json` stands for the text of the file, which has line ends: a key of a service account, a certificate. */
function textOfSecret(given: string | null): string | null {
  if (given === null || !given.startsWith('@')) return given;
  try {
    return readFileSync(given.slice(1), 'utf8');
  } catch {
    return given;
  }
}

function namedBody(value: unknown): NamedBody | null {
  const body = isObject(value) ? value : { name: value };
  const { name } = body;
  return typeof name === 'string' && name !== '' ? { ...body, name } : null;
}

function textsOf(value: unknown): readonly string[] | null {
  return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : null;
}
