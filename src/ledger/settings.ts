/** The settings of the feature `ledger`. */
import { SettingsReader } from '../settings/reader.ts';
import type { JsonObject } from '../shared/json.ts';

export interface LedgerSettings {
  /** Where usage records are stored: in KV, or in Durable Objects, one for each key. */
  readonly ledger: 'kv' | 'object';
  /** How many days a ledger object keeps individual records. */
  readonly recordDays: number;
  /** Whether a key with limits is refused (`closed`) or allowed (`open`) while its ledger object is unavailable. */
  readonly budgetFail: 'closed' | 'open';
  /** The secret under which prompts are hashed, to know what providers counted; null: there is none, and nothing is hashed. */
  readonly hashSecret: string | null;
}

export function readLedgerSettings(reader: SettingsReader): LedgerSettings {
  return {
    ledger: reader.choice('LEDGER', ['kv', 'object']),
    recordDays: readDays(reader),
    budgetFail: reader.choice('BUDGET_FAIL', ['closed', 'open']),
    hashSecret: reader.secret('USER_HASH_KEY') ?? reader.secret('ADMIN_TOKEN') ?? null,
  };
}

/** A Queue redelivers for at most 14 days. A record must be stored for longer, so that a redelivery is recognized. */
const MIN_RECORD_DAYS = 15;
const MAX_RECORD_DAYS = 3650;
const DEFAULT_RECORD_DAYS = 35;

function readDays(reader: SettingsReader): number {
  const days = Number(reader.text('RECORD_DAYS') ?? DEFAULT_RECORD_DAYS);
  if (Number.isSafeInteger(days) && days >= MIN_RECORD_DAYS && days <= MAX_RECORD_DAYS) return days;
  reader.invalid(
    'RECORD_DAYS',
    `must be a whole number of days from ${MIN_RECORD_DAYS} to ${MAX_RECORD_DAYS}`,
  );
  return DEFAULT_RECORD_DAYS;
}

/** Reads `RECORD_DAYS` for ledger objects, which need no other setting. Invalid: the default, because the gateway reports the error. */
export function readRecordDays(env: JsonObject): number {
  return readDays(new SettingsReader(env));
}
