/** The settings and bindings of each feature. The core knows their names, to report those of a feature that a deployment does not list. */
import type { JsonObject } from '../shared/json.ts';
import type { SettingProblem } from './reader.ts';

/** The names of the functions that create features. */
export type FeatureName = 'ledger' | 'attribution' | 'durableResponses' | 'privacy' | 'dashboard' | 'origin';

interface NamesOfFeature {
  readonly settings: readonly string[];
  readonly bindings: readonly string[];
}

export const FEATURE_SETTINGS: Readonly<Record<FeatureName, NamesOfFeature>> = {
  ledger: {
    settings: [
      ...['LEDGER', 'RECORD_DAYS', 'RECORD_BYTES', 'BUDGET_FAIL', 'USER_HASH_KEY'],
      ...['BUDGET_ALERTS', 'ALERT_URL', 'ALERT_SECRET'],
    ],
    bindings: ['WEIR_LEDGER', 'WEIR_ARCHIVE', 'USAGE_QUEUE'],
  },
  attribution: {
    settings: [
      ...['USERS', 'USER_HASH_KEY', 'TAGS', 'CACHE_REPORT'],
      ...['ACCESS_TEAM_DOMAIN', 'ACCESS_AUD', 'ACCESS_ADMINS'],
    ],
    bindings: [],
  },
  durableResponses: {
    settings: ['RESPONSES', 'RESPONSES_DAYS', 'RESPONSE_BYTES', 'KEPT_RESPONSES', 'KEPT_BYTES'],
    bindings: ['WEIR_RESPONSES'],
  },
  privacy: { settings: [], bindings: [] },
  dashboard: { settings: [], bindings: ['ASSETS'] },
  origin: { settings: ['ORIGIN', 'ORIGIN_HOSTS'], bindings: [] },
};

const FEATURES = Object.entries(FEATURE_SETTINGS).map(([name, of]) => ({ name, ...of }));

/** Whether a feature has this name. */
export function isFeatureName(name: unknown): name is FeatureName {
  return typeof name === 'string' && Object.hasOwn(FEATURE_SETTINGS, name);
}

/** What a host must write to have the feature. */
export function howToList(name: string): string {
  const entry = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return `import { ${name} } from 'weir-gateway/${entry}', and add ${name}() to the option features`;
}

/** The feature that has the setting; undefined for one of the core. */
export function featureOf(setting: string): string | undefined {
  return FEATURES.find(({ settings }) => settings.includes(setting))?.name;
}

/**
 * Variables and bindings of features that are not listed. A host may have variables of these names itself, so they are no errors.
 * @param listed the names of the deployment's features
 */
export function unusedSettings(env: JsonObject, listed: ReadonlySet<string>): readonly SettingProblem[] {
  // Two features read the key of hashes.
  const readSettings = new Set(
    FEATURES.filter(({ name }) => listed.has(name)).flatMap(({ settings }) => settings),
  );
  return FEATURES.filter(({ name }) => !listed.has(name) && name !== 'dashboard').flatMap(
    ({ name, settings, bindings }) => {
      const names: readonly string[] = [...settings, ...bindings];
      return names
        .filter((setting) => isSet(env[setting]) && !readSettings.has(setting))
        .map((setting) => ({ setting, message: `has no effect without ${name}(): ${howToList(name)}` }));
    },
  );
}

/**
 * Variables that restrict what a deployment does, and that only a feature enforces. Without the feature they are errors, so that no
 * request is served without the restriction.
 */
export function unenforcedSettings(
  { AUTH, USERS }: JsonObject,
  listed: ReadonlySet<string>,
): readonly SettingProblem[] {
  if (listed.has('attribution')) return [];
  const problems: SettingProblem[] = [];
  const needs = `needs attribution(): ${howToList('attribution')}`;
  if (textOf(AUTH) === 'access') problems.push({ setting: 'AUTH', message: `access ${needs}` });
  if (isSet(USERS) && textOf(USERS) !== 'plain')
    problems.push({ setting: 'USERS', message: `other than plain ${needs}` });
  return problems;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && textOf(value) !== '';
}

function textOf(value: unknown): unknown {
  return typeof value === 'string' ? value.trim() : value;
}
