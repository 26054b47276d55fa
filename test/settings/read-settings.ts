/** Reads settings as the deployed Worker does, with every feature. */
import { attribution } from '../../src/attribution/feature.ts';
import { type AttributionSettings, readAttributionSettings } from '../../src/attribution/settings.ts';
import { dashboard } from '../../src/dashboard/feature.ts';
import { durableResponses } from '../../src/durable-responses/feature.ts';
import { type DurableSettings, readDurableSettings } from '../../src/durable-responses/settings.ts';
import { type Deployment, readDeployment, readFeatures } from '../../src/feature.ts';
import { ledger } from '../../src/ledger/feature.ts';
import { type LedgerSettings, readLedgerSettings } from '../../src/ledger/settings.ts';
import { origin } from '../../src/origin-proxy/feature.ts';
import { type Origin, readOrigin } from '../../src/origin-proxy/settings.ts';
import { privacy } from '../../src/privacy/feature.ts';
import { type SettingProblem, SettingsReader } from '../../src/settings/reader.ts';
import { readSettings as readCore, type Settings } from '../../src/settings/settings.ts';
import type { JsonObject } from '../../src/shared/json.ts';

export const ALL_FEATURES = readFeatures([
  ledger(),
  attribution(),
  durableResponses(),
  privacy(),
  dashboard(),
  origin(),
]).features;

/** The settings of the core and of all features. */
export interface AllSettings extends Settings, LedgerSettings, AttributionSettings, DurableSettings {
  readonly origin: Origin;
}

type Read = { readonly names: ReadonlySet<string>; readonly overridden: readonly SettingProblem[] } & (
  | { readonly kind: 'valid'; readonly settings: AllSettings }
  | { readonly kind: 'invalid'; readonly problems: readonly SettingProblem[] }
);

/** Without bindings. */
export function readSettings(env: JsonObject): Read {
  const reader = new SettingsReader(env);
  const core = readCore(reader);
  const settings: AllSettings = {
    ...core,
    ...readLedgerSettings(reader),
    ...readAttributionSettings(reader, core.auth),
    ...readDurableSettings(reader),
    origin: readOrigin(reader),
  };
  const { names, problems, overridden } = reader;
  const read = { names, overridden };
  return problems.length > 0 ? { kind: 'invalid', ...read, problems } : { kind: 'valid', ...read, settings };
}

/** Throws if a setting is invalid. */
export function deploymentOf(env: JsonObject, features = ALL_FEATURES): Deployment {
  const { deployment, problems } = readDeployment(env, features);
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  return deployment;
}
