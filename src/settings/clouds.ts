/** Reads the settings of a cloud: the parts of its addresses, what replaces its hosts, and the models behind the operator's own names. */

import { type AiBinding, fetchByBinding } from '../providers/ai-binding.ts';
import type { Cloud, CloudBinding, CloudValues, Door, Profile, Provider } from '../providers/provider.ts';
import { isObject, readText } from '../shared/json.ts';
import { trimEnd } from '../shared/trim.ts';
import type { ReadAuth } from './auth.ts';
import type { ConfiguredDoor, ConfiguredProvider } from './configured-provider.ts';
import type { SettingsReader } from './reader.ts';

interface CloudOptions {
  readonly shared: Omit<
    ConfiguredProvider,
    'provider' | 'baseUrl' | 'urlSetting' | 'headers' | 'doors' | 'models' | 'otherBaseUrl'
  >;
  /** Makes the credentials; null: there is a key, or callers send it. */
  readonly made: ReadAuth | null;
  /** There is a key, or callers send it. Otherwise the settings are read for their names alone. */
  readonly isOn: boolean;
  /** The cloud is off where a setting is missing; otherwise that is a problem. */
  readonly isOptional: boolean;
}

/** The cloud with the addresses of this deployment; undefined: it is off, or a setting is invalid. */
export function readCloud(
  reader: SettingsReader,
  provider: Provider,
  cloud: Cloud,
  { shared, made, isOn, isOptional }: CloudOptions,
): ConfiguredProvider | undefined {
  const given = new Map(
    Object.entries(cloud.hosts).map(([host, { setting }]) => [host, reader.text(setting)] as const),
  );
  const values = readValues(reader, cloud, {
    // A host that a setting replaces needs no region.
    needsHosts: [...given.values()].some((url) => url === undefined),
    because: shared.keySetting,
    made,
    isReported: isOn && !isOptional,
  });
  const models = cloud.modelsSetting === undefined ? {} : readModels(reader, cloud.modelsSetting);
  if (!isOn || values === undefined) return undefined;
  const paths = cloud.doors.flatMap((door) => [door.path(values), door.otherPath ?? []].flat());
  const origins = new Map<string, string | undefined>();
  for (const [host, { setting, origin }] of Object.entries(cloud.hosts)) {
    const text = given.get(host);
    const url = text === undefined ? origin(values) : reader.url(setting, text);
    origins.set(host, url === undefined ? undefined : withoutPath(url, paths));
  }
  if ([...origins.values()].includes(undefined)) return undefined;
  const auths = new Map(
    Object.entries(cloud.hosts).map(([host, { awsService }]) => [
      host,
      made?.at(origins.get(host) ?? '', awsService) ?? null,
    ]),
  );
  if (made !== null && made.unreadable === null && [...auths.values()].includes(null)) {
    reader.invalid(made.missing.setting, made.missing.message);
    return undefined;
  }
  const ofHosts = cloud.parameters.find(({ isOfHost }) => isOfHost)?.setting;
  const configure = (door: Door): ConfiguredProvider => {
    const origin = origins.get(door.host) ?? '';
    return {
      ...shared,
      auth: auths.get(door.host) ?? null,
      provider: { ...ofProvider(provider), ...door.profile, id: provider.id, name: provider.name },
      baseUrl: origin + door.path(values),
      urlSetting: (given.get(door.host) === undefined ? ofHosts : cloud.hosts[door.host]?.setting) ?? null,
      headers: door.headers?.(values) ?? {},
      doors: [],
      models,
      otherBaseUrl: door.otherPath === undefined ? null : origin + door.otherPath,
    };
  };
  const doors: readonly ConfiguredDoor[] = cloud.doors.map((door) => ({
    serves: door.serves,
    configured: configure(door),
  }));
  const last = doors.at(-1)?.configured;
  return last && { ...last, doors };
}

/** Where a binding's requests would go, in messages and logs: the address that workerd has for it. */
const BINDING_URL = 'https://workers-binding.ai';

/** The cloud by its binding, which needs no key and no address; undefined: the name of its gateway is invalid. */
export function readBoundCloud(
  reader: SettingsReader,
  provider: Provider,
  { binding, bound, ai }: { readonly binding: CloudBinding; readonly bound: Cloud; readonly ai: AiBinding },
  shared: CloudOptions['shared'],
): ConfiguredProvider | undefined {
  const parameters = bound.parameters.filter(({ setting }) => setting === binding.gateway);
  const because = { needsHosts: false, because: binding.name, made: null, isReported: true };
  const values = readValues(reader, { ...bound, parameters }, because);
  if (values === undefined) return undefined;
  const fetch = fetchByBinding(ai, { gateway: values[binding.gateway] ?? '', models: binding.models });
  const configure = (profile: Profile): ConfiguredProvider => ({
    ...shared,
    provider: { ...ofProvider(provider), ...profile, id: provider.id, name: provider.name },
    ...{ baseUrl: BINDING_URL, urlSetting: null, headers: {}, fetch },
    ...{ apiKey: '', auth: null, unreadableKey: null, keySetting: binding.name },
    ...{ doors: [], models: {}, otherBaseUrl: null },
  });
  const doors = binding.doors.map(({ serves, profile }) => ({ serves, configured: configure(profile) }));
  const last = doors.at(-1)?.configured;
  return last && { ...last, doors };
}

/** What is the provider's own whichever API serves a model. */
function ofProvider({ apiKeySettings, baseUrlSettings, cloud }: Provider) {
  return { apiKeySettings, baseUrlSettings, defaultBaseUrl: null, ...(cloud === undefined ? {} : { cloud }) };
}

/** A setting may have been given with the path of an API, which Weir appends. */
function withoutPath(url: string, paths: readonly string[]): string {
  const path = paths.toSorted((a, b) => b.length - a.length).find((one) => one !== '' && url.endsWith(one));
  return trimEnd(path === undefined ? url : url.slice(0, -path.length), '/');
}

interface ValueOptions {
  readonly needsHosts: boolean;
  /** The setting that turns the cloud on. */
  readonly because: string;
  readonly made: ReadAuth | null;
  readonly isReported: boolean;
}

/** @returns undefined if one is missing or invalid */
function readValues(
  reader: SettingsReader,
  { parameters }: Cloud,
  { needsHosts, because, made, isReported }: ValueOptions,
): CloudValues | undefined {
  const values: Record<string, string> = {};
  let isComplete = true;
  for (const { setting, form, what, byDefault, isOfHost, isOfAuth } of parameters) {
    const value = reader.text(setting) ?? (made?.parameters[setting] || byDefault);
    if (value !== undefined && form.test(value)) values[setting] = value;
    else if (value === undefined && isOfAuth === true && made === null) continue;
    else if (value !== undefined || !isOfHost || needsHosts) {
      isComplete = false;
      const problem = value === undefined ? `must be set, because ${because} is: ${what}` : `must be ${what}`;
      if (isReported) reader.invalid(setting, problem);
    }
  }
  return isComplete ? values : undefined;
}

/** A larger number is a mistake. */
const MAX_MODELS = 200;
const MAX_NAME_CHARS = 256;
const MAKER_MODEL = /^[a-z0-9][a-z0-9_-]{0,31}\/\S{1,223}$/;

/** The models behind the operator's own names, from a setting or from `models` of an entry; null if the value is invalid. */
export function readModelNames(value: unknown): Readonly<Record<string, string>> | null {
  if (!isObject(value) || Object.keys(value).length > MAX_MODELS) return null;
  const models: Record<string, string> = {};
  for (const [name, given] of Object.entries(value)) {
    const model = readText(given);
    if (name === '' || name.length > MAX_NAME_CHARS || model === undefined || !MAKER_MODEL.test(model))
      return null;
    models[name] = model;
  }
  return models;
}

/** What `models` and the settings like it must be. */
export const MODEL_NAMES = `an object of at most ${MAX_MODELS} names and models: {"my-gpt": "openai/gpt-6.1-terra"}`;

function readModels(reader: SettingsReader, setting: string): Readonly<Record<string, string>> {
  const models = readModelNames(reader.object(setting));
  if (models === null) reader.invalid(setting, `must be ${MODEL_NAMES}`);
  return models ?? {};
}
