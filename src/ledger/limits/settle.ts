/** Ends reservations: with what a request really used, or, where nothing settles it in time, with what it might have used (G3). */
import { type Charge, type ChargedRecord, chargeOfRecord } from '../../metering/record.ts';
import { correctWindow } from './sliding-window.ts';
import { hadLimits, type Sql } from './tables.ts';

/** For so long a charge waits for the settlement that still comes: as long as records are kept, by default. */
const LATE_SETTLEMENT_MS = 35 * 24 * 60 * 60 * 1000;

type Amounts = {
  readonly day: string;
  readonly tokens: number;
  /** `''` where no price is known. */
  readonly currency: string;
  /** Integer of 10^-9 of the currency. */
  readonly cost: number;
};

type ReservationRow = Amounts & { readonly second: number; readonly expected_tokens: number };

/**
 * Counts what a request used, on the day on which it was reserved, and drops its reservation; a charge for its expiry is replaced.
 * Repeated, it changes nothing.
 * @returns false where nothing is known of a reservation
 */
export function settle(sql: Sql, id: string, charge: Charge): boolean {
  const [reserved] = sql
    .exec<ReservationRow>('DELETE FROM reservations WHERE id = ? RETURNING *', id)
    .toArray();
  if (reserved !== undefined) {
    addCharge(sql, charge, reserved);
    const { recordedTokens = charge.tokens } = charge;
    correctWindow(sql, reserved.second, recordedTokens - reserved.expected_tokens);
    return true;
  }
  const [expired] = sql.exec<Amounts>('DELETE FROM expired WHERE id = ? RETURNING *', id).toArray();
  if (expired === undefined) return false;
  addTo(sql, 'spent', { ...expired, tokens: -expired.tokens, cost: -expired.cost });
  addCharge(sql, charge, expired);
  return true;
}

/** Settles requests by their records, of which none has been here before: those that have no reservation count, too. */
export function settleRecords(sql: Sql, records: readonly ChargedRecord[]): void {
  // A key that never had limits has nothing here, and its records cost no more than this.
  if (!hadLimits(sql)) return;
  for (const record of records) {
    settleNew(sql, record.request_id, record.charge ?? chargeOfRecord(record), record.time.slice(0, 10));
  }
}

/**
 * Settles a request that may have no reservation. Repeated, it changes nothing.
 * @param day the UTC day on which it counts where it has none
 * @param now in ms since the epoch
 */
export function settleUnreserved(sql: Sql, id: string, charge: Charge, day: string, now: number): void {
  const insert = 'INSERT OR IGNORE INTO unreserved VALUES (?, ?) RETURNING id';
  const isFirst = sql.exec(insert, id, now).toArray().length > 0;
  if (isFirst) settleNew(sql, id, charge, day);
}

function settleNew(sql: Sql, id: string, charge: Charge, day: string): void {
  if (!settle(sql, id, charge)) addCharge(sql, charge, { day, tokens: 0, currency: '', cost: 0 });
}

/**
 * @param reserved what was reserved for it: it counts where tokens were used and their cost is not known, as a budget in money
 * must hold
 */
function addCharge(sql: Sql, charge: Charge, reserved: Amounts): void {
  const { tokens, cost, unreported } = charge;
  const { day } = reserved;
  const isUnpriced = cost === null && tokens > 0;
  const currency = isUnpriced ? reserved.currency : (cost?.currency ?? '');
  addTo(sql, 'spent', { day, currency, tokens, cost: isUnpriced ? reserved.cost : (cost?.nano ?? 0) });
  if (unreported === undefined) return;
  const unreportedCost = isUnpriced ? reserved.cost : unreported.nano;
  addTo(sql, 'unreported', { day, currency, tokens: unreported.tokens, cost: unreportedCost });
}

function addTo(sql: Sql, table: 'spent' | 'unreported', { day, currency, tokens, cost }: Amounts): void {
  if (tokens === 0 && cost === 0) return;
  sql.exec(
    `INSERT INTO ${table} VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost`,
    ...[day, currency, tokens, cost],
  );
}

/** A reservation that was charged because nothing settled it in time. */
export type ExpiredReservation = Amounts & { readonly id: string };

/**
 * Charges every reservation whose time is over with all that it reserved: its upstream may have been used to the last token, and
 * a hard budget must hold. Forgets charges and ids for which no settlement can come any more.
 * @param now in ms since the epoch
 */
export function expire(sql: Sql, now: number): readonly ExpiredReservation[] {
  const over = sql
    .exec<ExpiredReservation>(
      'DELETE FROM reservations WHERE expires_at <= ? RETURNING id, day, tokens, currency, cost',
      now,
    )
    .toArray();
  for (const { id, day, tokens, currency, cost } of over) {
    addTo(sql, 'spent', { day, tokens, currency, cost });
    sql.exec('INSERT INTO expired VALUES (?, ?, ?, ?, ?, ?)', ...[id, day, tokens, currency, cost, now]);
  }
  sql.exec('DELETE FROM expired WHERE expired_at <= ?', now - LATE_SETTLEMENT_MS);
  sql.exec('DELETE FROM unreserved WHERE settled_at <= ?', now - LATE_SETTLEMENT_MS);
  return over;
}

/** When {@link expire} has something to do next, in ms since the epoch; null: nothing is reserved or kept. */
export function nextExpiry(sql: Sql): number | null {
  const query = `SELECT min(at) AS at FROM (
    SELECT min(expires_at) AS at FROM reservations
    UNION ALL SELECT min(expired_at) + ?1 FROM expired
    UNION ALL SELECT min(settled_at) + ?1 FROM unreserved
  )`;
  return sql.exec<{ at: number | null }>(query, LATE_SETTLEMENT_MS).toArray()[0]?.at ?? null;
}
