/**
 * Row `limits-floor`: the row `contract-floor`, and the least that limits add to it: two calls to the object of a key, each with one
 * transaction of two statements, for the key's limits and for the request.
 */
import { DurableObject } from 'cloudflare:workers';
import { contractFloor } from './contract-floor.ts';
import type { MeteredEnv } from './metering.ts';

interface LimitedEnv extends MeteredEnv {
  readonly WEIR_LEDGER: DurableObjectNamespace<LedgerObject>;
}

const EXPIRES_MS = 600_000;

/** Has the name that the bench binds. */
export class LedgerObject extends DurableObject<LimitedEnv> {
  readonly #sql = this.ctx.storage.sql;

  constructor(context: DurableObjectState, env: LimitedEnv) {
    super(context, env);
    this.#sql.exec(
      'CREATE TABLE IF NOT EXISTS limits (id INTEGER PRIMARY KEY, budget INTEGER, spent INTEGER)',
    );
    this.#sql.exec(
      'CREATE TABLE IF NOT EXISTS reservations (id TEXT PRIMARY KEY, tokens INTEGER, expires INTEGER)',
    );
    this.#sql.exec('INSERT OR IGNORE INTO limits VALUES (1, 1e15, 0)');
  }

  async reserve(id: string): Promise<void> {
    this.ctx.storage.transactionSync(() => {
      const { budget, spent } = this.#sql
        .exec<{ budget: number; spent: number }>('SELECT budget, spent FROM limits WHERE id = 1')
        .one();
      if (spent > budget) throw new Error('The budget is used up');
      this.#sql.exec('INSERT INTO reservations VALUES (?, 4096, ?)', id, Date.now() + EXPIRES_MS);
    });
  }

  async settle(id: string, tokens: number): Promise<void> {
    this.ctx.storage.transactionSync(() => {
      this.#sql.exec('DELETE FROM reservations WHERE id = ?', id);
      this.#sql.exec('UPDATE limits SET spent = spent + ? WHERE id = 1', tokens);
    });
  }
}

export default contractFloor<LimitedEnv>({
  reserve: (env, requestId) => env.WEIR_LEDGER.getByName('key').reserve(requestId),
  settle: (env, requestId, tokens) => env.WEIR_LEDGER.getByName('key').settle(requestId, tokens),
});
