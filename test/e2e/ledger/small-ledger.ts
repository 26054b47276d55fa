/** Ledger objects in workerd that keep few records, and where each of their records is. */
import { expect } from 'vitest';
import { ObjectLedger } from '../../../src/ledger/records/object-ledger.ts';
import type { RecordQuery } from '../../../src/metering/ledger.ts';
import type { UsageRecord } from '../../../src/metering/record.ts';
import { type Group, Report } from '../../../src/metering/report.ts';
import { firstIdAt } from '../../../src/metering/time.ts';
import { decodeObject, textOf } from '../../../tools/simulator/json.ts';
import { manyRecords } from '../../metering/many-records.ts';
import { ARCHIVE, type Ledgers, startLedgers } from './ledgers.ts';

const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
export const NOW = Date.now();
export const TODAY = Math.floor(NOW / DAY) * DAY;
/** What an object keeps: the least that is allowed. */
export const LIMIT = 100_000;
/** Records of a test: four times the limit and more. */
const MANY = 600;
const BATCH = 40;
const GROUPS: readonly Group[] = ['day', 'model', 'status'];

let names = 0;
export const newKey = () => `key-${++names}`;

export interface SmallLedgerOptions {
  readonly hasBucket?: boolean;
  readonly vars?: Readonly<Record<string, string>>;
}

export class SmallLedger implements AsyncDisposable {
  readonly objects: Ledgers;
  readonly ledger: ObjectLedger;
  /** What the ledger, in the gateway, logged. */
  readonly logged: unknown[] = [];

  static async start({ hasBucket = true, vars = {} }: SmallLedgerOptions = {}): Promise<SmallLedger> {
    const bindings = hasBucket ? ARCHIVE : {};
    return new SmallLedger(await startLedgers({ vars: { RECORD_BYTES: String(LIMIT), ...vars }, bindings }));
  }

  constructor(objects: Ledgers) {
    this.objects = objects;
    this.ledger = new ObjectLedger({
      ledgers: objects.namespace,
      log: (entry) => this.logged.push(entry),
    });
  }

  [Symbol.asyncDispose]() {
    return this.objects[Symbol.asyncDispose]();
  }

  call(keyId: string, method: string, ...args: readonly unknown[]): Promise<unknown> {
    return this.objects.call(keyId, method, ...args);
  }

  /** Puts the records of one key in their order, and runs the alarm after each batch. */
  async put(records: readonly UsageRecord[]) {
    for (let at = 0; at < records.length; at += BATCH) {
      await this.ledger.put(records.slice(at, at + BATCH));
      await this.call(records[at]?.key_id ?? '', 'fireAlarm');
    }
  }

  /** All pages of a list. */
  async list(keyId: string, query: Partial<RecordQuery> = {}): Promise<string[]> {
    const ids: string[] = [];
    let beforeId: string | null = query.beforeId ?? firstIdAt(TODAY + DAY);
    for (let pages = 0; beforeId !== null; pages++) {
      if (pages > 200) throw new Error('The list does not end');
      const common = { fromId: firstIdAt(TODAY - 60 * DAY), model: null, statuses: null, limit: 250 };
      const page = await this.ledger.list({ ...common, ...query, keyId, beforeId });
      if (page.kind === 'error') throw new Error(page.error.message);
      ids.push(...page.value.records.map(({ request_id }) => request_id));
      beforeId = page.value.next;
    }
    return ids;
  }

  /** The ids in the object. */
  async stored(keyId: string): Promise<string[]> {
    const rows = (await this.call(keyId, 'run', 'SELECT id FROM records ORDER BY id')) as [string][];
    return rows.map(([id]) => id);
  }

  /** The ids in the object and in the bucket. */
  async places(keyId: string) {
    const [[bytes] = [0]] = (await this.call(keyId, 'run', 'SELECT TOTAL(LENGTH(record)) FROM records')) as [
      number,
    ][];
    const texts = [...(await this.objects.archived(`records/${keyId}/`)).values()];
    const lines = texts.flatMap((text) => text.trimEnd().split('\n'));
    return {
      stored: await this.stored(keyId),
      bytes,
      archived: lines.map((line) => textOf(decodeObject(line)?.request_id)),
      pieces: texts.length,
    };
  }

  /** A report over all days. */
  async report(keyId: string, groups = GROUPS) {
    const result = await this.ledger.report({ fromMs: TODAY - 60 * DAY, toMs: TODAY + DAY, keyId, groups });
    if (result.kind === 'error') throw new Error(result.error.message);
    return { rows: result.value.rows, total: result.value.total };
  }

  /** What the objects logged of a key. */
  events(keyId: string, event: string) {
    return this.objects.logged
      .map((line) => decodeObject(line) ?? {})
      .filter((line) => line.event === event && line.key_id === keyId);
  }

  /** Each record is in the object or in the archive, once, and is listed once; and the sums are those of all. */
  async expectEachOnce(keyId: string, records: readonly UsageRecord[]) {
    const { stored, archived } = await this.places(keyId);
    expect([...stored, ...archived].sort()).toEqual(idsOf(records));
    expect(await this.list(keyId)).toEqual(newestFirst(records));
    expect(await this.report(keyId)).toEqual(sumsOf(records));
  }
}

export const idsOf = (records: readonly Pick<UsageRecord, 'request_id'>[]) =>
  records.map(({ request_id }) => request_id).sort();

export const newestFirst = (records: readonly UsageRecord[]) => idsOf(records).reverse();

/** The same report, of the records. */
export function sumsOf(records: readonly UsageRecord[], groups = GROUPS) {
  const report = new Report(groups);
  for (const one of records) report.addRecord(one);
  return { rows: report.rows, total: report.total };
}

/** Records of a key in the order of their time. @param days before today from which on they are */
export function recordsOf(keyId: string, count = MANY, days = 3, seed = 1): UsageRecord[] {
  return manyRecords(count, [keyId], { fromMs: TODAY - days * DAY, toMs: TODAY + HOUR }, seed).sort((a, b) =>
    a.request_id < b.request_id ? -1 : 1,
  );
}

/** The records in an order that has nothing to do with their time. */
export function shuffled(records: readonly UsageRecord[]): UsageRecord[] {
  const hash = ({ request_id }: UsageRecord) => Number.parseInt(request_id.slice(-8), 16);
  return records.toSorted((a, b) => hash(a) - hash(b));
}
