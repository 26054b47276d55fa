/** The settings and bindings of each feature. The core knows their names, to report those of a feature that a deployment does not list. */
import type { JsonObject } from '../shared/json.ts';
import type { SettingProblem } from './reader.ts';
import { type FeatureName, ROWS } from './table.ts';

/** The bindings of each feature. */
const BINDINGS: Readonly<Record<FeatureName, readonly string[]>> = {
  ledger: ['WEIR_LEDGER', 'WEIR_ARCHIVE', 'USAGE_QUEUE'],
  attribution: [],
  durableResponses: ['WEIR_RESPONSES'],
  privacy: [],
  dashboard: ['ASSETS'],
  origin: [],
};

interface NamesOfFeature {
  readonly name: FeatureName;
  readonly settings: readonly string[];
  readonly bindings: readonly string[];
}

const NAMES = Object.keys(BINDINGS) as FeatureName[]; // decode

/** What each feature reads. */
export const FEATURES: readonly NamesOfFeature[] = NAMES.map((name) => ({
  name,
  settings: settingsOf(name),
  bindings: BINDINGS[name],
}));

function settingsOf(feature: FeatureName): readonly string[] {
  return [...ROWS].flatMap(([name, row]) => (row.feature === feature || row.alsoOf === feature ? name : []));
}

/** Whether a feature has this name. */
export function isFeatureName(name: unknown): name is FeatureName {
  return typeof name === 'string' && Object.hasOwn(BINDINGS, name);
}

/** What a host must write to have the feature. */
export function howToList(name: string): string {
  const entry = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return `import { ${name} } from 'weir-gateway/${entry}', and add ${name}() to the option features`;
}

/** The feature that has the setting; undefined for one of the core. */
export function featureOf(setting: string): string | undefined {
  return ROWS.get(setting)?.feature ?? undefined;
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
