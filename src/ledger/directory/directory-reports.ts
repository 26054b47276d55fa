/** Reports of a directory: over sums of its keys, and of the keys themselves where no sum has the answer. */
import type { ReportQuery } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import {
  amountsOf,
  type FactGroup,
  factsOf,
  groupValues,
  isFactGroup,
  matchesFilter,
  OTHER,
} from '../../metering/report.ts';
import { DAY_MS, firstIdAt, HOUR_MS } from '../../metering/time.ts';
import { MAX_QUERIED_LEDGERS } from '../../shared/limits.ts';
import { SHARD_OBJECT } from '../limits/spread.ts';
import {
  addColumns,
  MAX_SPEED_CHARS,
  type SumRow,
  shortenSpeeds,
  toColumns,
} from '../records/sum-columns.ts';
import {
  COLUMNS,
  factRows,
  HOURS_PER_DAY,
  MAX_ROWS,
  partsOfTime,
  type RowsResult,
  type Span,
  type SumSource,
  sumRows,
} from '../records/sums.ts';
import { INCOMPLETE, recentRecords } from './recent-records.ts';
import { readDirectoryState } from './tables.ts';

/** Objects of keys whose sums are held at a time. Each may have thousands of rows. */
const SUMMED_LEDGERS_AT_ONCE = 6;

/** A part of a report. An object returns it by RPC. */
export type ReportPart =
  | {
      readonly kind: 'rows';
      readonly rows: readonly SumRow[];
      /** Further keys are read from here; null: this was the last part. */
      readonly next: string | null;
    }
  | Extract<RowsResult, { kind: 'parts' }>;

/** Reads the report of one key. */
export type ReadKey = (keyId: string, query: ReportQuery) => Promise<RowsResult>;

/** The time of a report in ms, by what answers it. */
interface Plan {
  /** Whole days, in days since the epoch, from the sums of days. */
  readonly days: Span;
  /** Whole hours, in hours since the epoch, from the sums of hours or of facts. */
  readonly hours: readonly Span[];
  /** What the keys themselves sum from single records. */
  readonly parts: readonly Span[];
  readonly fact: FactGroup | undefined;
}

const NOTHING: Span = { from: 0, to: 0 };

function planOf({ fromMs, toMs, groups, only = {} }: ReportQuery): Plan {
  const time = { from: fromMs, to: toMs };
  const facts = factsOf(groups, only);
  const [fact] = facts;
  const byHour = groups.includes('hour');
  // Sums have one fact each, and no hours with it.
  if (facts.length > 1 || (fact !== undefined && byHour))
    return { days: NOTHING, hours: [], parts: [time], fact };
  const days = { from: Math.ceil(fromMs / DAY_MS), to: Math.floor(toMs / DAY_MS) };
  const ofDays = { from: days.from * HOURS_PER_DAY, to: days.to * HOURS_PER_DAY };
  if (fact !== undefined) {
    const hours = days.from < days.to ? [ofDays] : [];
    return { days: NOTHING, hours, parts: partsOfTime(time, days, DAY_MS), fact };
  }
  const hours = { from: Math.ceil(fromMs / HOUR_MS), to: Math.floor(toMs / HOUR_MS) };
  const parts = partsOfTime(time, hours, HOUR_MS);
  if (byHour || days.from >= days.to)
    return { days: NOTHING, hours: hours.from < hours.to ? [hours] : [], parts, fact };
  const edges = [
    { from: hours.from, to: ofDays.from },
    { from: ofDays.to, to: hours.to },
  ];
  return { days, hours: edges.filter(({ from, to }) => from < to), parts, fact };
}

/**
 * The sums of this directory for a report over all keys, part by part.
 * @param after the last key that was read; null: this is the first part, which also has the sums
 */
export async function reportPart(
  sql: SqlStorage,
  query: ReportQuery,
  after: string | null,
  read: ReadKey,
): Promise<ReportPart> {
  const plan = planOf(query);
  const merged = new MergedRows(query);
  for (const row of after === null ? summedRows(sql, query, plan) : []) merged.add(row);
  // In one step, so that each record is found either here or at its key.
  const { keys, next } = keysToRead(sql, query, plan, after ?? '');
  const isRead = (keyId: string, day: number) => keys.get(keyId)?.days.has(day) !== true;
  for (const span of plan.parts)
    addRecords(merged, recordsOf(sql, query, span, { after: after ?? '', last: next }, isRead), query);
  const spans = new Map([...keys].map(([keyId, own]) => [keyId, own.spans]));
  return readKeys(query, spans, merged, next, read);
}

/** Merges the reports of keys into these rows. */
export async function readKeys(
  query: ReportQuery,
  keys: ReadonlyMap<string, readonly Span[]>,
  merged: MergedRows,
  next: string | null,
  read: ReadKey,
): Promise<ReportPart> {
  const calls = [...keys].flatMap(([keyId, spans]) => spans.map((span) => ({ keyId, span })));
  for (let at = 0; at < calls.length && !merged.isFull; at += SUMMED_LEDGERS_AT_ONCE) {
    const some = calls.slice(at, at + SUMMED_LEDGERS_AT_ONCE);
    const results = await Promise.all(
      some.map(({ keyId, span }) => read(keyId, { ...query, keyId, fromMs: span.from, toMs: span.to })),
    );
    for (const result of results) {
      if (result.kind === 'parts') return result;
      for (const row of result.rows) merged.add(row);
    }
  }
  return { kind: 'rows', rows: merged.rows, next: merged.isFull ? null : next };
}

/** The records of a part of the report's time that the directory has. */
function* recordsOf(
  sql: SqlStorage,
  { only = {} }: ReportQuery,
  { from, to }: Span,
  keys: { readonly after: string; readonly last: string | null },
  isRead: (keyId: string, day: number) => boolean,
): Generator<UsageRecord> {
  const hours = { from: Math.floor(from / HOUR_MS), to: Math.ceil(to / HOUR_MS) };
  const [first, end] = [firstIdAt(from), firstIdAt(to)];
  for (const record of recentRecords(sql, hours, keys, only, isRead)) {
    const { request_id } = record;
    if (request_id >= first && request_id < end && matchesFilter(record, only)) yield record;
  }
}

function addRecords(merged: MergedRows, records: Iterable<UsageRecord>, { groups }: ReportQuery): void {
  for (const record of records) {
    if (merged.isFull) return;
    const amounts = amountsOf(record);
    merged.add({
      values: groupValues(record, groups),
      currency: amounts.currency ?? '',
      columns: toColumns(amounts),
    });
  }
}

function summedRows(sql: SqlStorage, query: ReportQuery, { days, hours, fact }: Plan): readonly SumRow[] {
  const byKey = query.groups.includes('key');
  const first = sumsFrom(sql, query, fact) * HOURS_PER_DAY;
  const kept = hours
    .map(({ from, to }) => ({ from: Math.max(from, first), to }))
    .filter(({ from, to }) => from < to);
  if (fact === undefined) {
    const sources = [
      sourceOf('day', byKey ? 'key_days' : 'all_days', days, byKey),
      ...kept.map((span) => sourceOf('hour', byKey ? 'key_hours' : 'all_hours', span, byKey)),
    ];
    return sumRows(sql, unionOf(sources), query);
  }
  return kept.flatMap(({ from, to }) => {
    const all = sourceOf('hour', byKey ? 'key_hours' : 'all_hours', { from, to }, byKey);
    return factRows(sql, { all, fact: factSource(fact, { from, to }, byKey) }, query, fact);
  });
}

function sourceOf(unit: 'day' | 'hour', table: string, { from, to }: Span, byKey: boolean): SumSource {
  const time = unit === 'day' ? 'NULL AS hour, day' : `hour, hour / ${HOURS_PER_DAY} AS day`;
  return {
    select: `SELECT ${time}, ${byKey ? KEY_OF_LEDGER : "''"} AS key, ${COLUMNS} FROM ${table} WHERE ${unit} >= ? AND ${unit} < ?`,
    bindings: [from, to],
  };
}

/** @param hours of whole days */
function factSource(fact: FactGroup, { from, to }: Span, byKey: boolean): SumSource {
  const table = byKey ? 'key_facts' : 'all_facts';
  return {
    select: `SELECT NULL AS hour, day, ${byKey ? KEY_OF_LEDGER : "''"} AS key, name, ${COLUMNS} FROM ${table}
      WHERE day >= ? AND day < ? AND fact = ?`,
    bindings: [from / HOURS_PER_DAY, to / HOURS_PER_DAY, fact],
  };
}

/** The column `key` of sums names the ledger: the object of a key, or of a shard of it. */
const KEY_OF_LEDGER = `iif(instr(key, '${SHARD_OBJECT}') = 0, key, substr(key, 1, instr(key, '${SHARD_OBJECT}') - 1))`;

function unionOf(sources: readonly SumSource[]): SumSource {
  return {
    select: sources.map(({ select }) => select).join(' UNION ALL '),
    bindings: sources.flatMap(({ bindings }) => bindings),
  };
}

/** What is read from a key itself. */
interface KeySpans {
  readonly spans: readonly Span[];
  /** Since the epoch. */
  readonly days: ReadonlySet<number>;
}

/** Keys to read for a span, each on some days of it. */
interface KeySource {
  /** In ms. */
  readonly span: Span;
  readonly select: string;
  readonly bindings: readonly number[];
}

/** The keys to read themselves, in order, after this one, and when: as many as one call may read. */
function keysToRead(
  sql: SqlStorage,
  query: ReportQuery,
  plan: Plan,
  after: string,
): { readonly keys: ReadonlyMap<string, KeySpans>; readonly next: string | null } {
  const sources = keySources(sql, query, plan);
  if (sources.length === 0) return { keys: new Map(), next: null };
  const all = sources.map(({ select }) => `SELECT key FROM (${select})`).join(' UNION ');
  const bindings = sources.flatMap((source) => source.bindings);
  const found = [
    ...sql
      .exec(
        `SELECT key FROM (${all}) WHERE key > ? ORDER BY key LIMIT ?`,
        ...bindings,
        after,
        MAX_QUERIED_LEDGERS + 1,
      )
      .raw(),
  ].map(([key]) => String(key));
  const keyIds = found.slice(0, MAX_QUERIED_LEDGERS);
  const last = keyIds.at(-1) ?? '';
  const spans = sources.flatMap(({ span, select, bindings: own }) =>
    [
      ...sql
        .exec(
          `SELECT DISTINCT key, day FROM (${select}) WHERE key > ? AND key <= ? ORDER BY key, day`,
          ...own,
          after,
          last,
        )
        .raw(),
    ].map(([key, day]) => ({ key: String(key), day: Number(day), span: within(span, Number(day)) })),
  );
  const byKey = Map.groupBy(spans, ({ key }) => key);
  const keys = keyIds.map((keyId): [string, KeySpans] => {
    const own = byKey.get(keyId) ?? [];
    return [keyId, { spans: joined(own.map(({ span }) => span)), days: new Set(own.map(({ day }) => day)) }];
  });
  return { keys: new Map(keys), next: found.length > keyIds.length ? last : null };
}

function keySources(sql: SqlStorage, query: ReportQuery, { hours, parts, fact }: Plan): readonly KeySource[] {
  const { details_from } = readDirectoryState(sql);
  const summedFrom = sumsFrom(sql, query, fact);
  const daysOf = ({ from, to }: Span) => [Math.floor(from / DAY_MS), Math.ceil(to / DAY_MS)] as const;
  const earlier = 'SELECT DISTINCT key, day FROM key_days WHERE day >= ? AND day < MIN(?, ?)';
  const unsummed = 'SELECT key, day FROM unsummed_days WHERE day >= ? AND day < ?';
  return [
    ...hours.map((one): KeySource => {
      const span = { from: one.from * HOUR_MS, to: one.to * HOUR_MS };
      const [from, to] = daysOf(span);
      return { span, select: `${unsummed} UNION ${earlier}`, bindings: [from, to, from, to, summedFrom] };
    }),
    ...parts.map((span): KeySource => {
      const [from, to] = daysOf(span);
      const firstHour = Math.max(Math.floor(span.from / HOUR_MS), details_from * HOURS_PER_DAY);
      return {
        span,
        select: `SELECT key, hour / ${HOURS_PER_DAY} AS day FROM (${INCOMPLETE}) UNION ${unsummed} UNION ${earlier}`,
        bindings: [firstHour, Math.ceil(span.to / HOUR_MS), from, to, from, to, details_from],
      };
    }),
  ];
}

/** The first day whose sums this directory has for such a report. */
function sumsFrom(sql: SqlStorage, { groups }: ReportQuery, fact: FactGroup | undefined): number {
  const { details_from, hours_from } = readDirectoryState(sql);
  return fact !== undefined || groups.includes('key') ? details_from : hours_from;
}

/** The part of a span on one day. */
function within({ from, to }: Span, day: number): Span {
  return { from: Math.max(from, day * DAY_MS), to: Math.min(to, (day + 1) * DAY_MS) };
}

/** Joins spans that follow each other. */
function joined(spans: readonly Span[]): readonly Span[] {
  const all: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (last !== undefined && last.to === span.from) all[all.length - 1] = { from: last.from, to: span.to };
    else all.push(span);
  }
  return all;
}

/** Adds up rows of several keys with the same values. */
export class MergedRows {
  readonly #groups: ReportQuery['groups'];
  readonly #rows = new Map<string, SumRow>();

  constructor({ groups }: ReportQuery) {
    this.#groups = groups;
  }

  add({ values, currency, columns }: SumRow): void {
    const id = JSON.stringify([values, currency]);
    const row = this.#rows.get(id);
    if (row === undefined && this.#rows.size >= MAX_ROWS && this.#groups.some(isFactGroup)) {
      const others = this.#groups.map(() => OTHER);
      const isOther = values.every((value) => value === OTHER);
      if (!isOther) return this.add({ values: others, currency, columns });
    }
    const sum = row === undefined ? columns : addColumns(row.columns, columns);
    const speeds = sum.speeds.length > MAX_SPEED_CHARS ? shortenSpeeds(sum.speeds) : sum.speeds;
    this.#rows.set(id, { values, currency, columns: { ...sum, speeds } });
  }

  /** There are more rows than any report may have. */
  get isFull(): boolean {
    return this.#rows.size > MAX_ROWS && !this.#groups.some(isFactGroup);
  }

  get rows(): readonly SumRow[] {
    return [...this.#rows.values()];
  }
}
