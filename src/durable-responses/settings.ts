/** The settings of the feature `durable-responses`. */
import type { SettingsReader } from '../settings/reader.ts';
import type { KeptSums } from './response-calls.ts';

export interface DurableSettings {
  /** Whether Responses are kept, each in its Durable Object. */
  readonly responses: 'stateless' | 'durable';
  /** How many days a stored response is kept. */
  readonly responsesDays: number;
  /** The bound on the events of a kept response. */
  readonly responseBytes: number;
  /** The most that one owner may keep. */
  readonly kept: KeptSums;
}

const DEFAULT_RESPONSE_BYTES = 32 * 1024 * 1024;
/** 10 GiB, which Cloudflare stores for $2 a month (2026-11-22). */
const DEFAULT_KEPT_BYTES = 10 * 1024 * 1024 * 1024;
const DEFAULT_KEPT_RESPONSES = 100_000;
/** Rows of one index, of some 200 bytes each. An object has at most 10 GB. */
const MAX_KEPT_RESPONSES = 10_000_000;

export function readDurableSettings(reader: SettingsReader): DurableSettings {
  return {
    responses: reader.choice('RESPONSES', ['stateless', 'durable']),
    responsesDays: readResponseDays(reader),
    responseBytes: reader.bytes('RESPONSE_BYTES', DEFAULT_RESPONSE_BYTES),
    kept: {
      responses: readKeptResponses(reader),
      bytes: reader.bytes('KEPT_BYTES', DEFAULT_KEPT_BYTES),
    },
  };
}

function readKeptResponses(reader: SettingsReader): number {
  const responses = Number(reader.text('KEPT_RESPONSES') ?? DEFAULT_KEPT_RESPONSES);
  if (Number.isSafeInteger(responses) && responses >= 1 && responses <= MAX_KEPT_RESPONSES) return responses;
  reader.invalid('KEPT_RESPONSES', `must be a whole number from 1 to ${MAX_KEPT_RESPONSES}`);
  return DEFAULT_KEPT_RESPONSES;
}

const DEFAULT_RESPONSE_DAYS = 30;
const MAX_RESPONSE_DAYS = 365;

function readResponseDays(reader: SettingsReader): number {
  const days = Number(reader.text('RESPONSES_DAYS') ?? DEFAULT_RESPONSE_DAYS);
  if (Number.isSafeInteger(days) && days >= 1 && days <= MAX_RESPONSE_DAYS) return days;
  reader.invalid('RESPONSES_DAYS', `must be a whole number of days from 1 to ${MAX_RESPONSE_DAYS}`);
  return DEFAULT_RESPONSE_DAYS;
}
