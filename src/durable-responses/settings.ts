/** The settings of the feature `durable-responses`. */
import type { SettingsReader } from '../settings/reader.ts';
import type { PlainSettings } from '../settings/table.ts';
import type { KeptSums } from './response-calls.ts';

export interface DurableSettings
  extends Pick<PlainSettings<'durableResponses'>, 'responses' | 'responsesDays' | 'responseBytes'> {
  /** The most that one owner may keep. */
  readonly kept: KeptSums;
}

export function readDurableSettings(reader: SettingsReader): DurableSettings {
  const { keptResponses, keptBytes, ...settings } = reader.plainOf('durableResponses');
  return { ...settings, kept: { responses: keptResponses, bytes: keptBytes } };
}
