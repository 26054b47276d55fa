/**
 * Weir's own checks of a deployment that does not exist yet: the settings of each environment, the secrets that they
 * need, the first team and the first key.
 */

import { registerHooks } from 'node:module';
import { secretsOfAuth } from '../../src/settings/auth.ts';
import type { JsonObject as Settings } from '../../src/shared/json.ts';
import { didYouMean } from '../../src/shared/nearest.ts';
import { decodeObject, isObject, type JsonObject, objectOf, objectsOf, textOf } from '../simulator/json.ts';
import { privateHost, wayToPrivateHost } from './private-hosts.ts';
import { changeConfig, environmentTable } from './wrangler-config.ts';

// The classes of Durable Objects extend one of the runtime, which Node does not have. None of them is created here.
const RUNTIME = 'data:text/javascript,export class DurableObject {}';
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'cloudflare:workers' ? { url: RUNTIME, shortCircuit: true } : next(specifier, context),
});
const [
  { ledger },
  { attribution },
  { durableResponses },
  { origin },
  { readDeployment, readFeatures },
  { misspeltSettings, weakSettings },
  { isOwnSecret },
  { checkNewKey },
  { checkNewTeam },
  { SHIPPED_PRICES },
  { layerOf },
] = await Promise.all([
  import('../../src/ledger/feature.ts'),
  import('../../src/attribution/feature.ts'),
  import('../../src/durable-responses/feature.ts'),
  import('../../src/origin-proxy/feature.ts'),
  import('../../src/feature.ts'),
  import('../../src/settings/settings.ts'),
  import('../../src/settings/providers.ts'),
  import('../../src/api/keys.ts'),
  import('../../src/api/teams.ts'),
  import('../../src/metering/pricing/price-book.ts'),
  import('../../src/metering/pricing/price.ts'),
]);

/** Those of the deployed Worker that have settings. */
const { features: FEATURES } = readFeatures([ledger(), attribution(), durableResponses(), origin()]);

export interface PlannedDeployment {
  readonly worker: string;
  readonly environments: readonly string[];
  readonly vars: Readonly<Record<string, string>>;
  /** Names of secrets that are needed whatever the settings say. */
  readonly secrets: readonly string[];
  /** The body of `POST /admin/keys`; null: it is checked elsewhere. */
  readonly key: JsonObject | null;
  /** The body of `POST /v1/admin/teams`; null: no team is made, or it is checked elsewhere. */
  readonly team: JsonObject | null;
  /** Whether each environment gets a bucket for records. */
  readonly archive: boolean;
  /** Whether each environment gets the binding of Cloudflare's models. */
  readonly ai: boolean;
}

export interface Surroundings {
  /** The text of `wrangler.toml`. */
  readonly config: string;
  /** The secret with this name that an environment is given; null: none. */
  readonly secretOf: (environment: string, name: string) => string | null;
  /** ms since the epoch. */
  readonly now: number;
}

/** A setting that Weir refuses, in all of these environments. */
export interface PlannedProblem {
  readonly setting: string;
  /** With the name, and where it is set. */
  readonly text: string;
  readonly environments: readonly string[];
}

export interface DeploymentCheck {
  readonly problems: readonly PlannedProblem[];
  /** What is wrong with the first team and the first key. */
  readonly bodyProblems: readonly string[];
  /** What the operator should know. */
  readonly notes: readonly string[];
  /** The names of all secrets of each environment. */
  readonly secrets: ReadonlyMap<string, readonly string[]>;
}

/** Reads the settings of each environment as its Worker will. Throws where `wrangler.toml` cannot be changed. */
export function checkDeployment(
  { worker, environments, vars, secrets: listed, key, team, archive, ai }: PlannedDeployment,
  { config, secretOf, now }: Surroundings,
): DeploymentCheck {
  const bucket = { name: 'records', jurisdiction: null };
  const { text } = changeConfig(config, {
    worker,
    vars,
    namespaces: new Map(environments.map((one) => [one, 'id'])),
    buckets: new Map(archive ? environments.map((one) => [one, bucket]) : []),
    ai,
  });
  const found = new Map<string, { readonly setting: string; readonly environments: string[] }>();
  const notes = new Set<string>();
  const secrets = new Map<string, readonly string[]>();
  const bodyProblems = new Set<string>();
  for (const environment of environments) {
    const table = environmentTable(text, environment);
    const present = objectOf(table.vars);
    const placeOf = (name: string) =>
      present[name] !== undefined && present[name] === vars[name]?.toWellFormed()
        ? `vars.${name}`
        : present[name] === undefined
          ? name
          : `${name} in wrangler.toml`;
    const say = (setting: string, message: string) => {
      const problem = `${placeOf(setting)} ${message}`;
      const known = found.get(problem);
      if (known === undefined) found.set(problem, { setting, environments: [environment] });
      else known.environments.push(environment);
    };
    const { names, read } = readEnvironment(table, listed, (name) => secretOf(environment, name));
    secrets.set(environment, names);
    for (const { setting, message } of read.problems) say(setting, message);
    const { settings } = read.deployment;
    for (const name of Object.keys(vars).filter((one) => !read.names.has(one))) {
      const nearest = didYouMean(name, read.names);
      if (nearest === '') notes.add(`vars.${name} is no setting of Weir`);
      else say(name, `is no setting${nearest}`);
    }
    for (const { setting, message } of misspeltSettings(present, present, read.names))
      if (!(setting in vars)) notes.add(`${setting} in wrangler.toml ${message}`);
    for (const name of Object.keys(vars))
      if (isOwnSecret(name))
        notes.add(`vars.${name} is written into wrangler.toml. As a secret, nobody reads it there`);
    for (const [id, { base_url, binding }] of entriesOf(present.PROVIDERS)) {
      const host = binding === undefined ? privateHost(textOf(base_url)) : null;
      if (host !== null) notes.add(`PROVIDERS ${id}: ${wayToPrivateHost(host, 'the entry')}`);
    }
    for (const { setting, message } of weakSettings(settings))
      notes.add(`${setting} of ${environment} ${message}`);
    const bodies = [
      { field: 'team', body: team, check: checkNewTeam },
      { field: 'key', body: key, check: checkNewKey },
    ];
    for (const { field, body, check } of bodies) {
      if (body === null) continue;
      const checked = check(body, settings, [layerOf(settings.prices), SHIPPED_PRICES], now);
      if (checked.kind === 'error') bodyProblems.add(`${field}: ${checked.error.message}`);
      else for (const { message } of checked.value) notes.add(`${field}: ${message}`);
    }
  }
  const problems = [...found].map(([text, problem]) => ({ text, ...problem }));
  return { problems, bodyProblems: [...bodyProblems], notes: [...notes], secrets };
}

/** A secret whose value is not known here: every setting accepts one. */
const UNREAD = { get: async () => '' };

/** Reads one environment, with a secret for each name that its settings ask for. */
function readEnvironment(
  table: JsonObject,
  listed: readonly string[],
  secretOf: (name: string) => string | null,
) {
  const vars = objectOf(table.vars);
  const names = new Set(['ADMIN_TOKEN', ...listed, ...secretsOfEntries(vars.PROVIDERS)]);
  for (;;) {
    const secrets = [...names].map((name): readonly [string, unknown] => [name, secretOf(name) ?? UNREAD]);
    const env: Settings = { ...Object.fromEntries(secrets), ...bindingsOf(table), ...vars };
    const read = readDeployment(env, FEATURES);
    const own = [...read.names].filter((name) => isOwnSecret(name) && !names.has(name) && !(name in vars));
    // Weir's own secrets: those that are given, and those that others need.
    const added = own.filter(
      (name) => secretOf(name) !== null || read.problems.some(({ setting }) => setting === name),
    );
    if (added.length === 0) return { names: [...names], read };
    for (const name of added) names.add(name);
  }
}

const SECRET_NAME = /^[A-Z][A-Z0-9_]*$/;

/** The secrets that entries of `PROVIDERS` name: as `api_key`, in `auth`, and as `$NAME` in headers and parameters. */
function secretsOfEntries(value: unknown): readonly string[] {
  return entriesOf(value)
    .flatMap(([, { api_key, auth, headers, query }]) => {
      const texts = [...Object.values(objectOf(headers)), ...Object.values(objectOf(query))].map(textOf);
      return [
        textOf(api_key),
        ...secretsOfAuth(auth),
        ...texts.flatMap((text) => (text.startsWith('$') ? text.slice(1) : [])),
      ];
    })
    .filter((name) => SECRET_NAME.test(name) && !isOwnSecret(name));
}

/** The entries of `PROVIDERS`, as text or as a table. */
function entriesOf(value: unknown): readonly (readonly [id: string, entry: JsonObject])[] {
  const entries = typeof value === 'string' ? (decodeObject(value) ?? {}) : objectOf(value);
  return Object.entries(entries).map(([id, entry]) => [id, objectOf(entry)]);
}

/** What Weir reads of a binding before the first request. */
const BOUND: object = {
  fetch: async () => new Response(),
  run: async () => new Response(),
  getByName: () => ({}),
  jurisdiction: () => BOUND,
};

/** The bindings of an environment's table, by name. */
function bindingsOf(table: JsonObject): Settings {
  const { durable_objects, queues, secrets_store_secrets, vars: _, ...others } = table;
  const named = [
    ...Object.values(others).flatMap((value) => (isObject(value) ? [value] : objectsOf(value))),
    ...objectsOf(objectOf(queues).producers),
  ].map(({ binding }) => textOf(binding));
  const objects = [...objectsOf(objectOf(durable_objects).bindings), ...objectsOf(table.ratelimits)].map(
    ({ name }) => textOf(name),
  );
  const stored = objectsOf(secrets_store_secrets).map(({ binding }) => textOf(binding));
  return {
    ...Object.fromEntries([...named, ...objects].map((name) => [name, BOUND])),
    ...Object.fromEntries(stored.map((name) => [name, UNREAD])),
  };
}

/** In which environments a problem is, unless it is in all. */
export function placeSuffix({ environments }: PlannedProblem, all: readonly string[]): string {
  return environments.length === all.length ? '' : ` (${environments.join(', ')})`;
}
