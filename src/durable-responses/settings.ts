/** The settings of the feature `durable-responses`. */
import type { SettingsReader } from '../settings/reader.ts';

export interface DurableSettings {
  /** Whether Responses are kept, each in its Durable Object. */
  readonly responses: 'stateless' | 'durable';
  /** How many days a stored response is kept. */
  readonly responsesDays: number;
  /** The bound on the events of a kept response. */
  readonly responseBytes: number;
}

const DEFAULT_RESPONSE_BYTES = 32 * 1024 * 1024;

export function readDurableSettings(reader: SettingsReader): DurableSettings {
  return {
    responses: reader.choice('RESPONSES', ['stateless', 'durable']),
    responsesDays: readResponseDays(reader),
    responseBytes: reader.bytes('RESPONSE_BYTES', DEFAULT_RESPONSE_BYTES),
  };
}

const DEFAULT_RESPONSE_DAYS = 30;
const MAX_RESPONSE_DAYS = 365;

function readResponseDays(reader: SettingsReader): number {
  const days = Number(reader.text('RESPONSES_DAYS') ?? DEFAULT_RESPONSE_DAYS);
  if (Number.isSafeInteger(days) && days >= 1 && days <= MAX_RESPONSE_DAYS) return days;
  reader.invalid('RESPONSES_DAYS', `must be a whole number of days from 1 to ${MAX_RESPONSE_DAYS}`);
  return DEFAULT_RESPONSE_DAYS;
}
