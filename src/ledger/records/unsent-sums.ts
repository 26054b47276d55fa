/** What a key's object sends to its directory: the absolute values of sums that changed, and new records. */
import type { UsageRecord } from '../../metering/record.ts';
import { OTHER } from '../../metering/report.ts';
import { DAY_MS, firstIdAt, HOUR_MS, idAfter } from '../../metering/time.ts';
import { FACT_DAYS, factsOfRecord } from './fact-sums.ts';
import { decodeStored, recordsFrom } from './records.ts';
import { type DayRow, DIMENSIONS, NUMBER_SUMS, readColumns } from './sum-columns.ts';
import { keyText, type StoredSum, type SumKey, type SumTable } from './sum-tables.ts';
import { dayOf, HOURS, HOURS_PER_DAY, hourRow, MODEL, OTHER_MODEL } from './sums.ts';

/** Rows of sums in one message. */
const MAX_MESSAGE_ROWS = 2000;
/** Records in one message. */
const MAX_MESSAGE_RECORDS = 1000;
/** New records of a day whose ids are remembered, and records of one hour that are sent again. */
const MAX_SENT_RECORDS = 20_000;
/** Of the latest records of a day, which a new instance may not have sent. */
const LATEST_RECORDS = 20;
/** Hours before this one whose records are sent again where a directory lacks some. Earlier ones are read from the key. */
const RESENT_HOURS = 48;
/** Days whose changed rows are remembered: yesterday's and today's requests end today. */
const MAX_REMEMBERED_DAYS = 3;

/** Sums and records of one key, as its object has them. A repeated or late message changes nothing. */
export interface SumsMessage {
  readonly days: readonly DayRow[];
  /** The keys of the rows begin with the hour, since the epoch. */
  readonly hours: readonly StoredSum[];
  /** The keys begin with the day, the fact and the name. */
  readonly facts: readonly StoredSum[];
  /** The sums of all names of the facts above; the keys begin with the day and the fact. */
  readonly factTotals: readonly StoredSum[];
  readonly records: readonly UsageRecord[];
  /** How many days records are kept. */
  readonly recordDays: number;
}

/** What changed on a day since the directory received all of it. */
interface Changes {
  readonly hours: Map<string, SumKey>;
  readonly facts: Map<string, SumKey>;
  readonly ids: string[];
}

export interface UnsentPorts {
  readonly sql: SqlStorage;
  readonly recordDays: () => number;
  readonly now: () => number;
}

/** Remembers which rows change. What a new instance does not know is sent as a whole. */
export class UnsentSums {
  readonly #ports: UnsentPorts;
  /** Days since the epoch, which this instance has sent. */
  readonly #days = new Map<number, Changes>();
  /** Hours since the epoch, whose records this instance has sent again. */
  readonly #resentHours = new Set<number>();

  constructor(ports: UnsentPorts) {
    this.#ports = ports;
  }

  /** @param records that were stored and summed */
  note(records: readonly UsageRecord[]): void {
    for (const record of records) {
      const row = hourRow(record);
      const changes = this.#days.get(dayOf(row));
      if (changes === undefined) continue;
      // Names beyond a limit are in other rows, which are read if they exist.
      for (const dimensions of [row.dimensions, row.dimensions.with(MODEL, OTHER_MODEL)]) {
        remember(changes.hours, [row.hour, ...dimensions]);
        for (const [fact, name] of factsOfRecord(record))
          for (const one of [name, OTHER]) remember(changes.facts, [dayOf(row), fact, one, ...dimensions]);
      }
      if (changes.ids.length < MAX_SENT_RECORDS) changes.ids.push(record.request_id);
    }
  }

  /** Has everything of the remembered days sent again. */
  forget(): void {
    this.#days.clear();
    this.#resentHours.clear();
  }

  /** The messages that tell a directory about these changed days. Each is read when it is asked for. */
  *messages(changed: readonly DayRow[]): Generator<SumsMessage> {
    const { recordDays, now } = this.#ports;
    const empty = this.#empty;
    // Directories keep nothing but days of earlier ones.
    const first = Math.floor(now() / DAY_MS) - recordDays();
    const old = changed.filter(({ day }) => day < first);
    if (old.length > 0) yield { ...empty, days: old };
    const recent = Map.groupBy(
      changed.filter(({ day }) => day >= first),
      ({ day }) => day,
    );
    for (const [day, days] of [...recent].sort(([a], [b]) => b - a)) {
      const changes = this.#days.get(day);
      this.#remember(day);
      const [records = [], ...further] =
        changes === undefined ? [this.#latest(day)] : [...this.#recordsOf(changes.ids)];
      for (const some of further) yield { ...empty, records: some };
      let message: SumsMessage = { ...empty, days, records };
      for (const part of changes === undefined ? this.#wholeDay(day) : this.#changed(changes)) {
        yield { ...message, ...part };
        message = empty;
      }
    }
  }

  #remember(day: number): void {
    this.#days.delete(day);
    this.#days.set(day, { hours: new Map(), facts: new Map(), ids: [] });
    for (const oldest of [...this.#days.keys()].slice(0, -MAX_REMEMBERED_DAYS)) this.#days.delete(oldest);
  }

  /** All rows of a day. */
  *#wholeDay(day: number): Generator<Partial<SumsMessage>> {
    const { sql } = this.#ports;
    const hours = pages(sql, HOURS, day * HOURS_PER_DAY, (day + 1) * HOURS_PER_DAY);
    const facts = pages(sql, FACT_DAYS, day, day + 1);
    for (;;) {
      const [hourPage, factPage] = [hours.next(), facts.next()];
      if (hourPage.done === true && factPage.done === true) return;
      const rows = factPage.value ?? [];
      yield { hours: hourPage.value ?? [], facts: rows, factTotals: totalsOf(sql, rows) };
    }
  }

  *#changed({ hours, facts }: Changes): Generator<Partial<SumsMessage>> {
    const { sql } = this.#ports;
    const hourKeys = [...hours.values()];
    const factKeys = [...facts.values()];
    for (let at = 0; at < Math.max(hourKeys.length, factKeys.length, 1); at += MAX_MESSAGE_ROWS) {
      const rows = FACT_DAYS.read(sql, factKeys.slice(at, at + MAX_MESSAGE_ROWS));
      yield {
        hours: HOURS.read(sql, hourKeys.slice(at, at + MAX_MESSAGE_ROWS)),
        facts: rows,
        factTotals: totalsOf(sql, rows),
      };
    }
  }

  /** The messages with the records of an hour (since the epoch) that a directory does not have. Each hour is sent once. */
  *recordsOfHour(hour: number): Generator<SumsMessage> {
    const { sql, now } = this.#ports;
    const first = Math.floor(now() / HOUR_MS) - RESENT_HOURS;
    if (hour < first || this.#resentHours.has(hour)) return;
    for (const old of this.#resentHours) if (old < first) this.#resentHours.delete(old);
    this.#resentHours.add(hour);
    const end = firstIdAt((hour + 1) * HOUR_MS);
    let sent = 0;
    for (let from = firstIdAt(hour * HOUR_MS); sent < MAX_SENT_RECORDS; ) {
      const records = recordsFrom(sql, from, end, MAX_MESSAGE_RECORDS);
      const last = records.at(-1);
      if (last === undefined) return;
      yield { ...this.#empty, records };
      sent += records.length;
      from = idAfter(last.request_id);
    }
  }

  get #empty(): SumsMessage {
    const recordDays = this.#ports.recordDays();
    return { days: [], hours: [], facts: [], factTotals: [], records: [], recordDays };
  }

  *#recordsOf(ids: readonly string[]): Generator<readonly UsageRecord[]> {
    const select = 'SELECT record FROM records WHERE id IN (SELECT value FROM json_each(?))';
    for (let at = 0; at < ids.length; at += MAX_MESSAGE_RECORDS) {
      const some = JSON.stringify(ids.slice(at, at + MAX_MESSAGE_RECORDS));
      yield [...this.#ports.sql.exec(select, some)].map(({ record }) => decodeStored(record));
    }
  }

  #latest(day: number): readonly UsageRecord[] {
    const rows = this.#ports.sql.exec(
      `SELECT record FROM records WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ${LATEST_RECORDS}`,
      firstIdAt(day * DAY_MS),
      firstIdAt((day + 1) * DAY_MS),
    );
    return [...rows].map(({ record }) => decodeStored(record));
  }
}

function remember(keys: Map<string, SumKey>, key: SumKey): void {
  keys.set(keyText(key), key);
}

/** The rows of some hours or days, in parts. */
function* pages(
  sql: SqlStorage,
  table: SumTable,
  from: number,
  to: number,
): Generator<readonly StoredSum[], undefined> {
  for (let after: SumKey | null = null; ; ) {
    const rows: readonly StoredSum[] = table.page(sql, { from, to }, after, MAX_MESSAGE_ROWS);
    if (rows.length > 0) yield rows;
    if (rows.length < MAX_MESSAGE_ROWS) return;
    after = rows.at(-1)?.key ?? null;
  }
}

/** The sums of all names of the facts in these rows, by their day, fact and dimensions, without speeds: their text has no bound. */
function totalsOf(sql: SqlStorage, facts: readonly StoredSum[]): readonly StoredSum[] {
  const pairs = new Map(facts.map(({ key: [day, fact] }) => [`${day} ${fact}`, [day, fact]]));
  const keys = ['day', 'fact', ...DIMENSIONS];
  const columns = keys.map((key) => `fact_days.${key}`).join(', ');
  const select = `SELECT ${columns}, ${NUMBER_SUMS}, '' FROM json_each(?) AS wanted CROSS JOIN fact_days
    WHERE day = wanted.value ->> 0 AND fact = wanted.value ->> 1 GROUP BY ${columns}`;
  return [...sql.exec(select, JSON.stringify([...pairs.values()])).raw()].map((row) => ({
    key: row.slice(0, keys.length),
    columns: readColumns(row.slice(keys.length)),
  }));
}
