/** A ledger object that tests can kill at any step of its work, whose archive they can make fail, and which they can restore. */
import { type LedgerEnv, LedgerObject, type LedgerStorage } from '../../../src/ledger/ledger-object.ts';
import type { ArchiveBucket } from '../../../src/ledger/records/archive.ts';
import type { RoomLimits } from '../../../src/ledger/records/key-records.ts';

/** The remaining steps until the object is killed. */
interface Fuse {
  steps: number;
  /** The database takes no new rows and tables until records are deleted. */
  isFull: boolean;
  /** Calls of the archive: they fail, or wait until this promise is resolved. */
  archive: 'works' | 'fails' | Promise<void>;
}

export class BreakableLedger extends LedgerObject {
  readonly #fuse: Fuse;

  constructor(context: DurableObjectState, env: LedgerEnv) {
    const isFull = context.storage.sql.exec(HAS_TABLE, 'test_is_full').toArray().length > 0;
    const fuse: Fuse = { steps: Number.POSITIVE_INFINITY, archive: 'works', isFull };
    const { WEIR_ARCHIVE } = env;
    super(
      context,
      WEIR_ARCHIVE === undefined
        ? env
        : { ...env, WEIR_ARCHIVE: breakableBucket(WEIR_ARCHIVE, fuse, (reason) => context.abort(reason)) },
      breakable({ storage: context.storage, abort: (reason) => context.abort(reason) }, fuse),
    );
    this.#fuse = fuse;
  }

  /** Kills the object after so many steps. */
  async killAfter(steps: number): Promise<void> {
    this.#fuse.steps = steps;
  }

  /** Ends the instance. */
  async die(): Promise<void> {
    this.ctx.abort('killed by the test');
  }

  /** The object is as one that another version has filled. */
  async becomeFull(): Promise<void> {
    this.ctx.storage.sql.exec('CREATE TABLE test_is_full (x)');
    this.ctx.storage.sql.exec('DROP TABLE IF EXISTS left_ids');
    await this.ctx.storage.sync();
    this.ctx.abort('killed by the test');
  }

  /** From now on, calls of the archive fail, or work again. */
  async failArchive(fails: boolean): Promise<void> {
    this.#fuse.archive = fails ? 'fails' : 'works';
  }

  /** Runs the alarm while other calls run, and lets the archive answer only after them. */
  async fireAlarmDuring(method: 'settle', ...args: Parameters<LedgerObject['settle']>): Promise<void> {
    const held = Promise.withResolvers<void>();
    this.#fuse.archive = held.promise;
    const alarm = this.alarm();
    await this[method](...args);
    this.#fuse.archive = 'works';
    held.resolve();
    await alarm;
  }

  protected override async roomLimits(): Promise<RoomLimits> {
    const { OBJECT_BYTES } = this.env;
    const limits = await super.roomLimits();
    return typeof OBJECT_BYTES === 'string' ? { ...limits, objectBytes: Number(OBJECT_BYTES) } : limits;
  }

  protected override get maxRecentBytes(): number {
    const { RECENT_BYTES } = this.env;
    return typeof RECENT_BYTES === 'string' ? Number(RECENT_BYTES) : super.maxRecentBytes;
  }

  /** Keeps a copy of all tables, for {@link restore}. */
  async save(): Promise<void> {
    for (const table of this.#tables()) {
      this.ctx.storage.sql.exec(`DROP TABLE IF EXISTS saved_${table}`);
      this.ctx.storage.sql.exec(`CREATE TABLE saved_${table} AS SELECT * FROM ${table}`);
    }
  }

  /** Makes all tables as they were, as point-in-time recovery does, and ends the instance. */
  async restore(): Promise<void> {
    for (const table of this.#tables()) {
      this.ctx.storage.sql.exec(`DELETE FROM ${table}`);
      this.ctx.storage.sql.exec(`INSERT INTO ${table} SELECT * FROM saved_${table}`);
    }
    await this.ctx.storage.sync();
    this.ctx.abort('killed by the test');
  }

  #tables(): string[] {
    const select =
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'saved_%' AND name NOT LIKE '_cf_%' AND name NOT LIKE 'sqlite_%'";
    return [...this.ctx.storage.sql.exec(select)].map(({ name }) => String(name));
  }

  /** Runs the alarm immediately. */
  async fireAlarm(): Promise<void> {
    await this.alarm();
  }

  async count(table: string): Promise<number> {
    return Number(this.ctx.storage.sql.exec(`SELECT COUNT(*) AS rows FROM ${table}`).one().rows);
  }

  /** Runs a statement without counting it as a step. */
  async run(query: string): Promise<unknown[][]> {
    return [...this.ctx.storage.sql.exec(query).raw()];
  }

  /** Of the database, in bytes. */
  async size(): Promise<number> {
    return this.ctx.storage.sql.databaseSize;
  }

  /** Deletes the alarm, as the platform does after its last try, and ends the instance. */
  async loseAlarm(): Promise<void> {
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.sync();
    this.ctx.abort('killed by the test');
  }

  async alarmTime(): Promise<number | null> {
    return this.ctx.storage.getAlarm();
  }
}

const HAS_TABLE = 'SELECT 1 FROM sqlite_master WHERE name = ?';

/** Counts each statement and each setting of the alarm as a step. */
function breakable({ storage, abort }: BoundState, fuse: Fuse): LedgerStorage {
  function step(): void {
    if (fuse.steps-- <= 0) abort('killed by the test');
  }
  return {
    sql: new Proxy(storage.sql, {
      get: (sql, name) => {
        if (name !== 'exec') return Reflect.get(sql, name);
        return (...args: Parameters<SqlStorage['exec']>) => {
          step();
          const [query] = args;
          if (query.startsWith('DELETE FROM records WHERE id IN (SELECT value')) fuse.isFull = false;
          const [, created] = /^CREATE (?:TABLE|INDEX) IF NOT EXISTS (\w+)/.exec(query) ?? [];
          const isNew = created !== undefined && sql.exec(HAS_TABLE, created).toArray().length === 0;
          if (fuse.isFull && (isNew || query.startsWith('INSERT')))
            throw new Error('database or disk is full: SQLITE_FULL');
          return sql.exec(...args);
        };
      },
    }),
    transactionSync: (work) => storage.transactionSync(work),
    getAlarm: () => storage.getAlarm(),
    setAlarm: (time) => {
      step();
      return storage.setAlarm(time);
    },
    deleteAlarm: () => storage.deleteAlarm(),
    deleteAll: () => storage.deleteAll(),
  };
}

/** Counts each call, and its return, as a step. */
function breakableBucket(bucket: ArchiveBucket, fuse: Fuse, abort: (reason: string) => void): ArchiveBucket {
  const step = () => {
    if (fuse.steps-- <= 0) abort('killed by the test');
  };
  return new Proxy(bucket, {
    get:
      (_, name) =>
      async (...args: readonly unknown[]): Promise<unknown> => {
        step();
        if (fuse.archive === 'fails') throw new Error('R2 is broken by the test');
        if (fuse.archive !== 'works') await fuse.archive;
        const answer: unknown = await Reflect.apply(Reflect.get(bucket, name), bucket, args);
        step();
        return answer;
      },
  });
}

type BoundState = Pick<DurableObjectState, 'storage' | 'abort'>;
