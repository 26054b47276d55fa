/** The settings of the feature `ledger`. */
import { isUnreadable, type Secret } from '../canonical/secret.ts';
import { SettingsReader } from '../settings/reader.ts';
import type { PlainSettings } from '../settings/table.ts';
import type { JsonObject } from '../shared/json.ts';
import type { AlertSettings } from './alerts/send-alert.ts';
import type { RoomLimits } from './records/key-records.ts';

export interface LedgerSettings extends PlainSettings<'ledger'> {
  /** Ledger objects read them themselves. */
  readonly room: RoomLimits;
  /** The secret under which prompts are hashed, to know what providers counted. Without its text nothing is hashed. */
  readonly hashSecret: Secret;
  /** Ledger objects read them themselves. */
  readonly alerts: AlertSettings;
}

export function readLedgerSettings(reader: SettingsReader): LedgerSettings {
  return {
    ...reader.plainOf('ledger'),
    room: readRoomLimits(reader),
    hashSecret: reader.secret('USER_HASH_KEY') ?? reader.secret('ADMIN_TOKEN'),
    alerts: readAlertSettings(reader),
  };
}

/** Reads `RECORD_DAYS` for ledger objects, which need no other setting. Invalid: the default, because the gateway reports the error. */
export function readRecordDays(env: JsonObject): number {
  return new SettingsReader(env).plain('recordDays');
}

/** While the archive fails, records stay in their object up to this size of its database. */
const MAX_OBJECT_BYTES = 9_500_000_000;

/** Reads what a ledger object may keep. Invalid: the default, because the gateway reports the error. */
export function readRoomLimits(reader: SettingsReader): RoomLimits {
  return { recordBytes: reader.plain('recordBytes'), objectBytes: MAX_OBJECT_BYTES };
}

/** A reservation that is never settled is charged this long after its request's deadline. */
const RESERVATION_GRACE_MS = 60_000;
/** Assumed for the reservation of a request without a deadline. */
export const LONGEST_REQUEST_MS = 24 * 60 * 60 * 1000;

/** After this time without a settlement a reservation expires. @param deadlineMs of requests; 0: none */
export function reservedMs(deadlineMs: number): number {
  return (deadlineMs || LONGEST_REQUEST_MS) + RESERVATION_GRACE_MS;
}

/** Reads {@link reservedMs} for ledger objects. Invalid: the default, because the gateway reports the error. */
export function readReservedMs(reader: SettingsReader): number {
  return reservedMs(reader.seconds('deadlineSeconds'));
}

const DEFAULT_PERCENTS = '50,80,100';
const MAX_PERCENTS = 10;
/** A shorter secret could be guessed from a signature. */
const MIN_SECRET_CHARS = 16;

/** Reads where alerts of budgets go. Invalid: none is sent. */
export function readAlertSettings(reader: SettingsReader): AlertSettings {
  const percents = readPercents(reader);
  const url = reader.secret('ALERT_URL');
  const secret = reader.secret('ALERT_SECRET');
  if (url === null) return { percents, target: null };
  if (!isUnreadable(url) && !isAlertUrl(url)) {
    reader.invalid('ALERT_URL', 'must be an https URL, or an http URL of localhost');
    return { percents, target: null };
  }
  if (!isUnreadable(url)) reader.show('ALERT_URL', new URL(url).host);
  if (secret === null || (!isUnreadable(secret) && secret.length < MIN_SECRET_CHARS)) {
    const message = `must be set to a secret of at least ${MIN_SECRET_CHARS} characters, because ALERT_URL is set: it signs the alerts`;
    reader.invalid('ALERT_SECRET', message);
    return { percents, target: null };
  }
  if (isUnreadable(url)) return { percents, target: url };
  return { percents, target: isUnreadable(secret) ? secret : { url, secret } };
}

function readPercents(reader: SettingsReader): readonly number[] {
  const text = reader.text('BUDGET_ALERTS') ?? DEFAULT_PERCENTS;
  if (text === 'off') return [];
  const percents = text.split(',').map((part) => Number(part.trim() || Number.NaN));
  const areValid = percents.every((one) => Number.isInteger(one) && one >= 1 && one <= 100);
  if (areValid && percents.length <= MAX_PERCENTS) return percents.toSorted((a, b) => a - b);
  reader.invalid('BUDGET_ALERTS', `must be off, or at most ${MAX_PERCENTS} whole numbers from 1 to 100`);
  return [];
}

const LOCAL_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

function isAlertUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && LOCAL_HOSTS.has(hostname));
}
