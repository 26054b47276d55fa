/** A gateway in memory, with gateway keys and limits. Its ledger objects can fail or hang, and every outgoing call is recorded. */
import { timingSafeEqual } from 'node:crypto';
import { createGateway, type GatewayPorts } from '../../src/gateway.ts';
import type { Erasure } from '../../src/http/erasure.ts';
import { type Hooks, NO_HOOKS } from '../../src/http/hooks.ts';
import type {
  KeyCalls,
  LedgerNamespace,
  LedgerStub,
  LimitCalls,
  OwnLimitCalls,
  SettleCalls,
} from '../../src/ledger/ledger-calls.ts';
import {
  changeLimits,
  readLimitStatus,
  readLimitsRow,
  storedLimits,
} from '../../src/ledger/limits/limit-tables.ts';
import { settle, settleRecords, settleUnreserved } from '../../src/ledger/limits/reservations.ts';
import type { Spread } from '../../src/ledger/limits/spread.ts';
import { addToBudget, currentTopUps } from '../../src/ledger/limits/top-ups.ts';
import { StoredKey } from '../../src/ledger/stored-key.ts';
import type { Clock } from '../../src/stream/timers.ts';
import { decodeObject, type JsonObject, textOf } from '../../tools/simulator/json.ts';
import { MemorySql, reserve } from '../ledger/limits/memory-sql.ts';
import { MemoryStore } from '../metering/records.ts';
import { ALL_FEATURES, deploymentOf } from '../settings/read-settings.ts';

// workerd has these; Node has them elsewhere, or only in later versions.
Object.assign(crypto.subtle, { timingSafeEqual });
Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

const ADMIN_TOKEN = 'admin';
const ANSWER = {
  id: 'a',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
};

const LONG_MS = 25_000;
const SOON_MS = 20;
const PASSED_MS = 1500;

/** `lost`: the call runs, and its result does not arrive. */
type Trouble = 'none' | 'fails' | 'lost' | 'hangs' | 'overloaded' | 'reset';

/** What the runtime says of a call that an object did not get. */
const NOT_TAKEN: Partial<Record<Trouble, () => Error>> = {
  fails: () => new Error('The object is gone'),
  overloaded: () => Object.assign(new Error('Durable Object is overloaded.'), { overloaded: true }),
  reset: () =>
    Object.assign(new Error('Durable Object reset.'), { durableObjectReset: true, retryable: true }),
};

/**
 * A clock on which waits of 1.5 s at most are over after 20 ms, with all that is due by then.
 * @param longer starts longer timers. The clock advances with this one, so that a timer that is started late is due at the same time.
 */
export function passingClock(longer: Clock): Clock {
  const start = longer.now();
  let passedUntil = 0;
  const now = () => Math.max(Date.now(), passedUntil) + longer.now() - start;
  return {
    now,
    startTimer: (ms, onFire) => {
      if (ms > PASSED_MS) return longer.startTimer(ms, onFire);
      const at = now() + ms;
      return startTimer(Math.min(ms, SOON_MS), () => {
        passedUntil = Math.max(passedUntil, at - (longer.now() - start));
        onFire();
      });
    },
  };
}

/** A timer of the runtime, which does not keep the process. @param ms null: it never fires */
export function startTimer(ms: number | null, onFire: () => void): () => void {
  const timer = ms === null ? undefined : setTimeout(onFire, ms).unref();
  return () => clearTimeout(timer);
}

export class LimitedGateway {
  /** Every outgoing call, in order: `reserve`, `settleReservation`, …, `kv get`, `upstream`. */
  readonly calls: string[] = [];
  /** The bodies that the upstream received. */
  readonly sent: JsonObject[] = [];
  readonly logged: Readonly<Record<string, unknown>>[] = [];
  trouble: Trouble = 'none';
  /** How a key is spread, as the answers to requests say it. */
  spread: Spread | null = null;
  /** The objects of shards run an earlier version. */
  hasOldShards = false;
  /** The objects that are overloaded. */
  readonly overloaded = new Set<string>();
  /** The object that each reservation asked. */
  readonly asked: string[] = [];
  /** Called during a reservation. */
  onReserve: () => void = () => {};
  readonly sql = new MemorySql();
  readonly #work: Promise<unknown>[] = [];
  readonly #gateway: ReturnType<typeof createGateway>;

  /** @param ports and `features`, by default all */
  constructor(
    settings: Readonly<Record<string, unknown>> = {},
    { features = ALL_FEATURES, ...ports }: Partial<GatewayPorts> & { features?: typeof ALL_FEATURES } = {},
    hooks: Hooks = NO_HOOKS,
  ) {
    const { store = new KeyedStore(this.calls) as unknown as GatewayPorts['store'] } = ports;
    const env = {
      ADMIN_TOKEN,
      OPENAI_API_KEY: 'k',
      DEEPSEEK_API_KEY: 'k',
      WEIR_LEDGER: this.#ledgers(store),
    };
    const deployment = deploymentOf({ ...env, ...settings }, features);
    const own: GatewayPorts = {
      store,
      limiter: null,
      fetch: async (_, init) => {
        this.calls.push('upstream');
        this.sent.push(decodeObject(String(init?.body)) ?? {});
        return Response.json(ANSWER);
      },
      // Deadlines never fire.
      clock: passingClock({
        now: () => 0,
        startTimer: (ms, onFire) => startTimer(ms < LONG_MS ? SOON_MS : null, onFire),
      }),
      random: () => crypto.randomUUID(),
      tracing: null,
      log: (entry) => this.logged.push(entry),
      ...ports,
    };
    this.#gateway = createGateway(deployment, own, hooks);
  }

  /** @param token empty: no credential is sent */
  fetch(path: string, token: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (token !== '') headers.set('authorization', `Bearer ${token}`);
    return this.send(new Request(`https://weir.example${path}`, { ...init, headers }));
  }

  send(request: Request): Promise<Response> {
    return this.#gateway.fetch(request, { waitUntil: (promise) => this.#work.push(promise) });
  }

  post(path: string, token: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    return this.fetch(path, token, { ...init, method: 'POST', body: JSON.stringify(body) });
  }

  ask(token: string, fields: JsonObject = {}, init: RequestInit = {}): Promise<Response> {
    const messages = [{ role: 'user', content: 'Hello' }];
    return this.post(
      '/v1/chat/completions',
      token,
      { model: 'openai/gpt-4o-mini', messages, ...fields },
      init,
    );
  }

  /** @returns the token of a new key. The calls that created it are not recorded. */
  async key(limits: JsonObject = {}): Promise<string> {
    const response = await this.post('/admin/keys', ADMIN_TOKEN, { name: 'test', ...limits });
    const made = decodeObject(await response.text()) ?? {};
    if (response.status !== 201) throw new Error(JSON.stringify(made));
    this.calls.length = 0;
    return textOf(made.key);
  }

  /** As the object of erasures has it called. */
  stepErasure(erasure: Erasure): Promise<Erasure | null> {
    return this.#gateway.stepErasure(erasure, (promise) => this.#work.push(promise));
  }

  /** Resolves when all work in `waitUntil` is done. */
  async idle(): Promise<void> {
    for (let done = 0; done < this.#work.length; ) {
      done = this.#work.length;
      await Promise.all(this.#work);
    }
  }

  #ledgers(store: GatewayPorts['store']): LedgerNamespace {
    const { sql } = this;
    const call = async <Value>(name: string, act: () => Value): Promise<Value> => {
      this.calls.push(name);
      const error = NOT_TAKEN[this.trouble]?.();
      if (error !== undefined) throw error;
      const value = act();
      if (this.trouble === 'lost') throw new Error('The answer is lost');
      return this.trouble === 'hangs' ? new Promise(() => {}) : value;
    };
    const stub: LimitCalls &
      Pick<SettleCalls, 'settleReservation' | 'settleUnreserved'> &
      Pick<OwnLimitCalls, 'standing' | 'addToBudget'> = {
      reserve: (request) =>
        call('reserve', () => {
          this.onReserve();
          return reserve(sql, request, Date.now());
        }),
      settleReservation: (id, charge) =>
        call('settleReservation', () => void settle(sql, id, charge, Date.now())),
      settleUnreserved: (id, charge, day) =>
        call('settleUnreserved', () => settleUnreserved(sql, id, charge, day, Date.now())),
      standing: (listed = null) =>
        call('standing', () => {
          const limits = storedLimits(sql, listed);
          const topUps = currentTopUps(sql, limits, Date.now());
          return { ...readLimitStatus(sql, Date.now(), undefined, limits), topUps };
        }),
      addToBudget: (added, listed = null) =>
        call('addToBudget', () => addToBudget(sql, storedLimits(sql, listed), added, Date.now())),
      limitsRow: () => call('limitsRow', () => readLimitsRow(sql)),
      changeLimits: (fields) => call('changeLimits', () => changeLimits(sql, fields)),
    };
    const key = new StoredKey({
      sql,
      transaction: (act) => act(),
      store,
      wait: () => new Promise(setImmediate),
    });
    const keyCalls: KeyCalls = {
      changeKey: async (change) => (await call('changeKey', () => {})) ?? key.changeKey(change),
      revokeKey: async (id) => (await call('revokeKey', () => {})) ?? key.revokeKey(id),
    };
    // With LEDGER=object the object settles by records, and keeps none.
    const records: Pick<LedgerStub, 'settle'> = {
      settle: (all) =>
        call('settle', () => {
          settleRecords(sql, all, Date.now());
          return [];
        }),
    };
    const reserveAt = async (name: string, request: Parameters<LimitCalls['reserve']>[0]) => {
      this.asked.push(name);
      if (this.overloaded.has(name)) throw NOT_TAKEN.overloaded?.();
      const reserved = await stub.reserve(request);
      return 'standing' in reserved ? { ...reserved, spread: this.spread } : reserved;
    };
    return {
      getByName: (name) =>
        ({
          ...{ ...stub, ...keyCalls, ...records },
          reserve: (request) => reserveAt(name, request),
          reserveInShard: async (request) => {
            // As workerd says it.
            if (this.hasOldShards)
              throw new TypeError('The RPC receiver does not implement the method "reserveInShard".');
            return reserveAt(name, request);
          },
        }) as LedgerStub,
    };
  }
}

/** A KV namespace in memory that records the reads of each entry. */
class KeyedStore extends MemoryStore {
  readonly #calls: string[];

  constructor(calls: string[]) {
    super();
    this.#calls = calls;
  }

  override async get(names: string | readonly string[]): Promise<unknown> {
    this.#calls.push(`kv get ${String(names).split('/')[0]}`);
    return super.get(names);
  }
}
