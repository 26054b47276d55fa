/** The Durable Object that is one key's ledger: what a request used and what its limits allow change in one transaction (L4). */
import { DurableObject } from 'cloudflare:workers';
import type { LedgerStub } from './metering/object/ledger-stub.ts';
import { createRecords, findRecord, insertRecord } from './metering/object/records.ts';
import type { UsageRecord } from './metering/record.ts';

/** The part of an object's storage that is used. */
export type LedgerStorage = Pick<DurableObjectStorage, 'sql' | 'transactionSync' | 'getAlarm' | 'setAlarm'>;

/** An object has one alarm, which several jobs share: each does what is due and tells when it is needed next (ms), or null. */
type Job = (now: number) => number | null;

export class LedgerObject extends DurableObject implements LedgerStub {
  readonly #storage: LedgerStorage;
  readonly #sql: SqlStorage;
  readonly #jobs: readonly Job[];

  /** @param storage the object's own, or one around it */
  constructor(context: DurableObjectState, env: Cloudflare.Env, storage: LedgerStorage = context.storage) {
    super(context, env);
    this.#storage = storage;
    this.#sql = storage.sql;
    createRecords(this.#sql);
    this.#jobs = [];
  }

  /** Takes records of this key, all or none. One that is there already changes nothing. */
  async settle(records: readonly UsageRecord[]): Promise<void> {
    this.#storage.transactionSync(() => {
      for (const record of records) if (insertRecord(this.#sql, record)) this.#account(record);
    });
  }

  async find(requestId: string): Promise<UsageRecord | null> {
    return findRecord(this.#sql, requestId);
  }

  /** What follows from a new record, once, in the transaction that takes it: this is where limits settle. */
  #account(_record: UsageRecord): void {}

  override async alarm(): Promise<void> {
    const now = Date.now();
    const next = this.#jobs.map((job) => job(now)).filter((time) => time !== null);
    if (next.length > 0) await this.#wakeBy(Math.min(...next));
  }

  /** Has the alarm go off at that time (ms since the epoch) or before. */
  async #wakeBy(time: number): Promise<void> {
    const set = await this.#storage.getAlarm();
    if (set === null || set > time) await this.#storage.setAlarm(time);
  }
}
