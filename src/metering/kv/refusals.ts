/** Counts of refused requests in KV: `refused/<day>/<batch id>-<n>`, some rows each, in the entry's metadata (M6, LEDGER=kv). */
import { isObject, readArray, readCount, readText } from '../../shared/json.ts';
import { MAX_REPORT_LISTINGS, REFUSALS_KEPT_DAYS } from '../../shared/limits.ts';
import { DAY_MS, daysBetween, HOUR_MS, isoDay } from '../days.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../refusals.ts';
import { Listings } from './listings.ts';

const PREFIX = 'refused/';
/** A row takes at most 90 bytes, and metadata holds 1,024. */
const ROWS_PER_ENTRY = 10;
const KEPT_SECONDS = REFUSALS_KEPT_DAYS * (DAY_MS / 1000);
/** Of longer times whole months are listed: entries are few, and each listing costs as much as a thousand of them. */
const MAX_DAY_LISTINGS = 3;

/** The same entries each time: a repeated call changes nothing. */
export async function putRefusals(
  store: Pick<KVNamespace, 'put'>,
  { id, rows }: RefusalBatch,
): Promise<void> {
  const byDay = Map.groupBy(rows, ({ hour }) => isoDay(hour * HOUR_MS));
  const entries = [...byDay].flatMap(([day, own]) =>
    Array.from({ length: Math.ceil(own.length / ROWS_PER_ENTRY) }, (_, n) => {
      const some = own.slice(n * ROWS_PER_ENTRY, (n + 1) * ROWS_PER_ENTRY);
      const metadata = { rows: some.map(({ hour, keyId, code, requests }) => [hour, keyId, code, requests]) };
      return { name: `${PREFIX}${day}/${id}-${n}`, metadata };
    }),
  );
  await Promise.all(
    entries.map(({ name, metadata }) => store.put(name, '', { metadata, expirationTtl: KEPT_SECONDS })),
  );
}

/** @returns null where that takes more listings than one answer may make */
export async function listRefusals(
  store: Pick<KVNamespace, 'list'>,
  { fromHour, toHour, keyId }: RefusalQuery,
): Promise<RefusalRow[] | null> {
  const days = daysBetween(fromHour * HOUR_MS, toHour * HOUR_MS);
  const months = new Set(days.map((day) => `${PREFIX}${day.slice(0, 7)}`));
  const prefixes = days.length <= MAX_DAY_LISTINGS ? days.map((day) => `${PREFIX}${day}/`) : [...months];
  const rows: RefusalRow[] = [];
  const isWhole = await new Listings(store, MAX_REPORT_LISTINGS).read(prefixes, ({ metadata }) => {
    for (const row of decodeRows(metadata)) {
      const isAsked = row.hour >= fromHour && row.hour < toHour && (keyId === null || keyId === row.keyId);
      if (isAsked) rows.push(row);
    }
  });
  return isWhole ? rows : null;
}

function decodeRows(metadata: unknown): RefusalRow[] {
  return readArray(isObject(metadata) ? metadata.rows : undefined).flatMap((row) => {
    const [first, second, third, fourth] = readArray(row);
    const hour = readCount(first);
    const keyId = readText(second);
    const code = readText(third);
    const requests = readCount(fourth);
    const isRow = hour !== undefined && keyId !== undefined && code !== undefined && requests !== undefined;
    return isRow ? { hour, keyId, code, requests } : [];
  });
}
