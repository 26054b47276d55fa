/** What the roles of keys, teams and users get from their object. */
import type { KeyStore } from '../../auth/keys.ts';
import type { Log } from '../../shared/log-event.ts';
import type { AlertSettings } from '../alerts/send-alert.ts';
import type { LedgerNamespace } from '../ledger-calls.ts';
import type { ArchiveBucket, StartTimer } from '../records/archive.ts';
import type { RoomLimits } from '../records/key-records.ts';
import type { ObjectAlarm } from './role.ts';

export interface RolePorts {
  readonly sql: SqlStorage;
  readonly transaction: <Value>(act: () => Value) => Value;
  /** In ms since the epoch. */
  readonly now: () => number;
  readonly startTimer: StartTimer;
  readonly alarm: ObjectAlarm;
  /** Deletes all data of the object, and its alarm. */
  readonly forget: () => Promise<void>;
  /** The other objects, in the same jurisdiction. */
  readonly objects: () => LedgerNamespace;
  /** Null where `WEIR_KV` is not bound. */
  readonly store: KeyStore | null;
  /** Null where `WEIR_ARCHIVE` is not bound. */
  readonly bucket: ArchiveBucket | null;
  /** How long single records are kept, for an object that was never told. */
  readonly recordDays: () => number;
  readonly alertSettings: () => Promise<AlertSettings>;
  readonly roomLimits: () => Promise<RoomLimits>;
  /** After which time reservations expire. */
  readonly reservedMs: () => Promise<number>;
  readonly fetch: typeof fetch;
  readonly log: Log;
}
