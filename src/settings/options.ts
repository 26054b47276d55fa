/** Settings as options of `weir()`: `basePath` is `BASE_PATH`. An option takes precedence over the variable of the environment. */

import { PROVIDER_SETTINGS, type ProviderSetting } from '../providers/index.ts';
import { isObject, type JsonObject, objectOf } from '../shared/json.ts';
import { didYouMean } from '../shared/nearest.ts';
import { featureOf, howToList } from './feature-settings.ts';
import type { SettingProblem } from './reader.ts';
import { SETTINGS, type SettingRows, settingName } from './table.ts';

/** `DEEPSEEK_API_KEY` is `deepseekApiKey`. */
type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Lowercase<Head>}${Capitalize<CamelCase<Tail>>}`
  : Lowercase<Name>;

/** The key and base URL of each built-in provider, such as `deepseekApiKey` and `mistralBaseUrl`. */
export type ProviderOptions = { readonly [Option in CamelCase<ProviderSetting>]?: string | undefined };

/** Every setting as an option. An absent option is read from the environment. */
export interface SettingOptions extends ProviderOptions, SettingRows {
  /** The secrets that `providers` refers to, by name: `{ GROQ_API_KEY: '…' }`. */
  readonly secrets?: Readonly<Record<string, string | undefined>> | undefined;
}

const knownOptions = (): ReadonlySet<string> =>
  new Set(['secrets', ...Object.keys(SETTINGS), ...PROVIDER_SETTINGS.map(optionName)]);

/** The environment with the options in it. An undefined option does not replace a variable. */
export function withOptions(env: JsonObject, options: JsonObject): JsonObject {
  const { secrets, ...settings } = options;
  const optionSettings = Object.entries(settings).map(([option, value]) => [
    settingName(option),
    settingValue(value),
  ]);
  const overrides = [...Object.entries(objectOf(secrets)), ...optionSettings].filter(
    ([, value]) => value !== undefined,
  );
  return { ...env, ...Object.fromEntries(overrides) };
}

/** What an environment was read with. */
interface ReadSettings {
  /** The names of all settings that were read; null if some were not read because of an error. */
  readonly names: ReadonlySet<string> | null;
  /** The names of the deployment's features. */
  readonly listed: ReadonlySet<string>;
}

/** Reports unknown options, with the most similar known name, options of features that are not listed, and unused secrets. */
export function optionProblems(
  { secrets = {}, ...options }: JsonObject,
  { names, listed }: ReadSettings,
): SettingProblem[] {
  const setOptions = Object.keys(options).filter((option) => options[option] !== undefined);
  // Most deployments set none, and would make the names at each start.
  const known = setOptions.length === 0 ? new Set<string>() : knownOptions();
  const problems = setOptions.flatMap((option) => {
    if (known.has(option)) {
      const feature = featureOf(settingName(option));
      if (feature === undefined || listed.has(feature)) return [];
      return [{ setting: `the option ${option}`, message: `needs ${feature}(): ${howToList(feature)}` }];
    }
    const nearest = didYouMean(option, known);
    const hint = /ApiKey$/.test(option) ? ': put the keys of your own providers into secrets' : '';
    return [{ setting: `the option ${option}`, message: `does not exist${nearest || hint}` }];
  });
  if (!isObject(secrets)) {
    return [...problems, { setting: 'the option secrets', message: 'must be an object of strings' }];
  }
  const unused = names === null ? [] : Object.keys(secrets).filter((name) => !names.has(name));
  return [
    ...problems,
    ...unused.map((name) => ({
      setting: `the option secrets.${name}`,
      message: `is not used by providers${didYouMean(name, names ?? [])}`,
    })),
  ];
}

function optionName(setting: string): string {
  return setting.toLowerCase().replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The value as the environment has it: numbers and lists of strings as text, objects unchanged. */
function settingValue(value: unknown): unknown {
  if (typeof value === 'number') return String(value);
  const isWord = (item: unknown) => typeof item === 'string' || typeof item === 'number';
  return Array.isArray(value) && value.every(isWord) ? value.join(',') : value;
}
