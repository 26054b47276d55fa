/** A ledger object that tests can kill at any step of its work. */
import { type LedgerEnv, LedgerObject, type LedgerStorage } from '../../../src/ledger/ledger-object.ts';

/** The remaining steps until the object is killed. */
interface Fuse {
  steps: number;
}

export class BreakableLedger extends LedgerObject {
  readonly #fuse: Fuse;

  constructor(context: DurableObjectState, env: LedgerEnv) {
    const fuse = { steps: Number.POSITIVE_INFINITY };
    super(
      context,
      env,
      breakable({ storage: context.storage, abort: (reason) => context.abort(reason) }, fuse),
    );
    this.#fuse = fuse;
  }

  /** Kills the object after so many steps. */
  async killAfter(steps: number): Promise<void> {
    this.#fuse.steps = steps;
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

type BoundState = Pick<DurableObjectState, 'storage' | 'abort'>;
