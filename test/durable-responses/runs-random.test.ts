/**
 * Random background runs through the gateway, in memory: readers that are cut, cancels, deletions, objects that are killed at any moment,
 * upstreams that fail, fallbacks, and both ledgers. Each run has one record, one settlement, and the right end.
 *
 * RUNS=5000 runs longer. SEED=7 RUNS=1 repeats a run.
 */
import { expect, test } from 'vitest';
import { type KeyStore, makeKey, putKey } from '../../src/auth/keys.ts';
import { DurableResponse } from '../../src/durable-responses/durable-response.ts';
import { createExchange } from '../../src/durable-responses/exchange.ts';
import { KeptIndex } from '../../src/durable-responses/kept-index.ts';
import {
  AFTER_HEADER,
  indexName,
  type KeptSums,
  OWNER_HEADER,
  type ResponseNamespace,
  type ResponseStub,
} from '../../src/durable-responses/response-calls.ts';
import { createGateway, type GatewayPorts } from '../../src/gateway.ts';
import type { LedgerStub } from '../../src/ledger/ledger-calls.ts';
import { settle, settleRecords, settleUnreserved } from '../../src/ledger/limits/reservations.ts';
import type { ChargedRecord, UsageRecord } from '../../src/metering/record.ts';
import { responses } from '../../src/protocols/openai-responses/client.ts';
import { decodeObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { deploymentOf } from '../settings/read-settings.ts';
import '../gateway/upstreams.ts';
import { MemorySql, reserve } from '../ledger/limits/memory-sql.ts';
import { MemoryStore } from '../metering/records.ts';
import { seeded } from '../random.ts';
import { repeatable, runsOf, SEED, useOrderedDigests } from '../random-run.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { MemoryStorage } from './memory-storage.ts';

const RUNS = runsOf(100, 500);
const LEDGERS = ['kv', 'object'] as const;
const ALARM_MS = 20_000;
const MAX_PENDING_TURNS = 100_000;
useOrderedDigests();

const LIMITS = { budget: { tokens: 1e9 }, max_concurrent: 1e6 };

const SETTINGS = {
  ADMIN_TOKEN: 'admin',
  AUTH: 'keys',
  RESPONSES: 'durable',
  MISTRAL_API_KEY: 'k',
  DEADLINE_SECONDS: '120',
  IDLE_TIMEOUT_SECONDS: '60',
  RETRIES: '1',
  ALIASES: { three: ['mistral/one', 'mistral/two', 'mistral/three'] },
};

type Dice = (max: number) => number;

async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve));
}

/** Everything that outlives the isolates. */
class World {
  readonly clock = new FakeClock();
  readonly limits = new MemorySql(LIMITS);
  readonly kv = new MemoryStore();
  /** All that was written for each request id: JSON. */
  readonly written = new Map<string, Set<string>>();
  /** Requests that were sent upstream. */
  sent = 0;
  readonly objects = new Map<string, LiveObject>();
  /** Requests to the gateway that wait for their response. */
  pending = 0;
  readonly dice: Dice;
  readonly ledger: (typeof LEDGERS)[number];
  readonly token: string;
  readonly front: Isolate;

  private constructor(random: () => number, ledger: World['ledger'], token: string) {
    this.dice = (max) => Math.floor(random() * max);
    this.ledger = ledger;
    this.token = token;
    this.front = new Isolate(this);
  }

  static async create(random: () => number, ledger: World['ledger']): Promise<World> {
    const fields = { name: 'test', models: null, expires_at: null, limits: LIMITS };
    const { key, token, digest } = await makeKey(fields, new Date());
    const world = new World(random, ledger, token);
    await putKey(world.kv as unknown as KeyStore, key, digest);
    return world;
  }

  write(record: UsageRecord): void {
    const all = this.written.get(record.request_id) ?? new Set();
    this.written.set(record.request_id, all.add(JSON.stringify(record)));
  }

  readonly responses: ResponseNamespace = {
    getByName: (name) => {
      const object = this.objects.get(name) ?? new LiveObject(this);
      this.objects.set(name, object);
      return object.stub;
    },
  };

  /** What the key keeps, by its index. */
  get kept(): KeptSums {
    const [name, object] = [...this.objects].find(([name]) => name.startsWith(indexName(''))) ?? [];
    return object?.kept(name?.slice(indexName('').length) ?? '') ?? { responses: 0, bytes: 0 };
  }

  /** Lets time pass, with the alarms of all objects. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= ALARM_MS / 2) {
      // Digests take real time, in which hours of this clock could pass.
      for (let n = 0; this.pending > 0 && n < MAX_PENDING_TURNS; n++) await turns(1);
      this.clock.advance(ALARM_MS / 2);
      for (const object of this.objects.values()) await object.fireAlarm();
      await turns(20);
    }
  }
}

const ANSWERS = ['whole', 'whole', 'whole', 'no usage', 'cut', 'hang', '503', '400', 'unreachable'] as const;

const DEAD = Symbol('dead');

/** A gateway that may die at any moment: from then on it neither does nor learns anything. */
class Isolate {
  isAlive = true;
  readonly gateway: ReturnType<typeof createGateway>;
  readonly #world: World;
  readonly #abort = new AbortController();
  #lastCall: Promise<unknown> = Promise.resolve();
  #isLastCallOver = false;
  readonly #death = Promise.withResolvers<typeof DEAD>();

  constructor(world: World) {
    this.#world = world;
    const { kv } = world;
    const put = this.#call((name: string, value: string) => {
      // Others are dead letters, whose record arrives, too.
      if (name.startsWith('usage/')) world.write(JSON.parse(value));
    });
    const store = { put, get: kv.get.bind(kv), list: kv.list.bind(kv) };
    const ledger: Partial<LedgerStub> = {
      reserve: this.#call((request) => reserve(world.limits, request, world.clock.now())),
      settleReservation: this.#call((id, charge) => void settle(world.limits, id, charge, world.clock.now())),
      settleUnreserved: this.#call((id, charge, day) =>
        settleUnreserved(world.limits, id, charge, day, world.clock.now()),
      ),
      settle: this.#call((records: readonly ChargedRecord[]) => {
        for (const { charge, ...record } of records) {
          if (world.written.has(record.request_id)) continue;
          world.write(record);
          settleRecords(world.limits, [{ ...record, ...(charge && { charge }) }], world.clock.now());
        }
        return [];
      }),
    };
    const ports: GatewayPorts = {
      store: store as unknown as GatewayPorts['store'],
      limiter: null,
      fetch: (_, init) => this.#fetch(init),
      clock: { now: world.clock.now, startTimer: this.startTimer },
      random: () => crypto.randomUUID(),
      tracing: null,
      log: () => {},
    };
    const deployment = deploymentOf({
      ...SETTINGS,
      LEDGER: world.ledger,
      WEIR_LEDGER: { getByName: () => ledger as LedgerStub },
      WEIR_RESPONSES: world.responses,
    });
    this.gateway = createGateway(deployment, ports);
  }

  kill(): void {
    this.isAlive = false;
    this.#abort.abort();
    this.#death.resolve(DEAD);
  }

  get death(): Promise<typeof DEAD> {
    return this.#death.promise;
  }

  readonly startTimer = (ms: number, onFire: () => void) =>
    this.#world.clock.startTimer(ms, () => {
      if (this.isAlive) onFire();
    });

  /** A call to another object. Calls arrive in order; when the isolate ends, the next one may be on its way. */
  #call<Args extends readonly never[] | readonly unknown[], Value>(act: (...args: Args) => Value) {
    return async (...args: Args): Promise<Value> => {
      const { dice } = this.#world;
      const arrived = this.#lastCall.then(async () => {
        await Promise.race([turns(2 + dice(4)), this.death]);
        if (!this.isAlive && (this.#isLastCallOver || dice(2) === 0)) return new Promise<never>(() => {});
        this.#isLastCallOver = !this.isAlive;
        return act(...args);
      });
      this.#lastCall = arrived.catch(() => {});
      const value = await arrived;
      await turns(dice(4));
      return this.isAlive ? value : new Promise(() => {});
    };
  }

  async #fetch(init: RequestInit | undefined): Promise<Response> {
    const { dice } = this.#world;
    this.#world.sent++;
    const signal = AbortSignal.any([this.#abort.signal, ...(init?.signal ? [init.signal] : [])]);
    const kind = ANSWERS[dice(ANSWERS.length)] ?? 'whole';
    await turns(dice(10));
    if (!this.isAlive) return new Promise(() => {});
    if (kind === 'unreachable') throw new Error('connect ECONNREFUSED');
    if (kind === '503' || kind === '400') {
      return Response.json({ error: { message: 'no' } }, { status: Number(kind) });
    }
    const events = [...eventsOf(dice, kind)];
    const encoder = new TextEncoder();
    const body = new ReadableStream(
      {
        type: 'bytes',
        start(controller) {
          signal.addEventListener('abort', () => controller.error(new Error('aborted')), { once: true });
        },
        async pull(controller) {
          await turns(dice(6));
          const event = events.shift();
          if (signal.aborted) return;
          if (event !== undefined) return controller.enqueue(encoder.encode(event));
          if (kind === 'hang') return new Promise<void>(() => {});
          if (kind === 'cut') return controller.error(new Error('connection reset'));
          controller.close();
          controller.byobRequest?.respond(0);
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  }
}

function* eventsOf(dice: Dice, kind: (typeof ANSWERS)[number]): Generator<string> {
  const event = (delta: object, finish_reason: string | null = null, more: object = {}) =>
    `data: ${JSON.stringify({ id: 'up', choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`;
  yield event({ role: 'assistant', content: '' });
  for (let words = dice(12); words > 0; words--) yield event({ content: `word ${words} ` });
  if (kind === 'cut' || kind === 'hang') return;
  const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
  yield event({}, dice(5) === 0 ? 'length' : 'stop', kind === 'no usage' ? {} : { usage });
  yield 'data: [DONE]\n\n';
}

/** A Durable Object: its storage, and the instance that runs, if any. */
class LiveObject {
  readonly #world: World;
  readonly #storage = new MemoryStorage();
  /** Where this is the index of a key. It is never killed. */
  readonly #index: KeptIndex;
  #alarm: number | null = null;
  #instance: { readonly isolate: Isolate; readonly response: DurableResponse } | null = null;

  constructor(world: World) {
    this.#world = world;
    this.#index = new KeptIndex({
      sql: this.#storage,
      transaction: (write) => this.#storage.transaction(write),
      now: world.clock.now,
      setAlarm: async () => {},
      getAlarm: async () => 0,
      deleteAll: async () => this.#storage.clear(),
    });
  }

  kept(owner: string): KeptSums {
    return this.#index.sums(owner);
  }

  kill(): void {
    this.#instance?.isolate.kill();
    this.#instance = null;
  }

  async fireAlarm(): Promise<void> {
    if (this.#alarm === null || this.#alarm > this.#world.clock.now()) return;
    this.#alarm = null;
    await this.#open().response.alarm();
  }

  get stub(): ResponseStub {
    const call =
      <Args extends readonly unknown[], Value>(
        method: (response: DurableResponse, ...args: Args) => Promise<Value> | Value,
      ) =>
      async (...args: Args): Promise<Value> => {
        await turns(this.#world.dice(3));
        const { isolate, response } = this.#open();
        const value = await Promise.race([method(response, ...args), isolate.death]);
        if (value === DEAD || !isolate.isAlive) throw new Error('The object was reset');
        return value;
      };
    return {
      claimKept: async (claim) => this.#index.claim(claim),
      settleKept: async (settled) => this.#index.settle(settled),
      releaseKept: async (id) => this.#index.release(id),
      keptSums: async (owner) => this.#index.sums(owner),
      keptOfUser: async (users, owners, after) => this.#index.ofUser(users, owners, after),
      start: call((response, request) => response.start(request)),
      put: call((response, finished) => response.put(finished)),
      read: call((response, owner, maxChars) => response.read(owner, maxChars)),
      input: call((response, owner, maxChars) => response.input(owner, maxChars)),
      itemChars: call((response, owner, ids) => response.itemChars(owner, ids)),
      cancel: call((response, owner) => response.cancel(owner)),
      remove: call((response, owner) => response.remove(owner)),
      unreadable: call((response, owner) => response.unreadable(owner)),
      conversation: call((response, owner, maxChars) => response.conversation(owner, maxChars)),
      items: call((response, owner, ids, maxChars) => response.items(owner, ids, maxChars)),
      fetch: call((response, { headers }: Request) => {
        const events = response.events(headers.get(OWNER_HEADER) ?? '', Number(headers.get(AFTER_HEADER)));
        if (events === 'busy') return new Response(null, { status: 429 });
        return new Response(events, { status: events === null ? 404 : 200 });
      }),
    };
  }

  #open() {
    if (this.#instance !== null) return this.#instance;
    const { clock } = this.#world;
    const isolate = new Isolate(this.#world);
    const whileAlive = (act: () => void) => {
      if (!isolate.isAlive) throw new Error('The object was reset');
      act();
    };
    const response = new DurableResponse({
      sql: {
        exec: (query, ...bindings) => {
          if (!isolate.isAlive) throw new Error('The object was reset');
          return this.#storage.exec(query, ...bindings);
        },
      },
      transaction: (write) => whileAlive(() => this.#storage.transaction(write)),
      exchange: createExchange(
        (facts, waitUntil) => isolate.gateway.newContext(facts, responses, waitUntil),
        { now: clock.now, log: () => {} },
      ),
      settleKept: async (owner, settled) => {
        if (isolate.isAlive) await this.#world.responses.getByName(indexName(owner)).settleKept(settled);
      },
      now: clock.now,
      startTimer: isolate.startTimer,
      setAlarm: async (at) =>
        whileAlive(() => {
          this.#alarm = at;
        }),
      getAlarm: async () => this.#alarm,
      deleteAll: async () =>
        whileAlive(() => {
          this.#storage.clear();
          this.#alarm = null;
        }),
      restart: () => this.kill(),
      waitUntil: (work) => void work.catch(() => {}),
      log: () => {},
    });
    this.#instance = { isolate, response };
    return this.#instance;
  }
}

const counts: Record<string, number> = {};
function count(name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

async function fetchFrom(world: World, path: string, init: RequestInit = {}): Promise<Response> {
  const { front, token } = world;
  const headers = { authorization: `Bearer ${token}` };
  const request = new Request(`https://weir.example/v1/responses${path}`, { ...init, headers });
  world.pending++;
  try {
    return await front.gateway.fetch(request, { waitUntil: (work) => void work.catch(() => {}) });
  } finally {
    world.pending--;
  }
}

/** Follows a run, is cut at random, and resumes. @returns the data of the events, or null if the response is gone */
async function follow(world: World, id: string): Promise<string[] | null> {
  const events: string[] = [];
  let number = -1;
  for (;;) {
    const response = await fetchFrom(world, `/${id}?stream=true&starting_after=${number}`);
    if (response.status === 404) return null;
    if (!response.ok) continue;
    const cutAfter = world.dice(3) === 0 ? 1 + world.dice(4) : 1000;
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (let reads = 0; reads < cutAfter; reads++) {
      // Undefined: it waits for the next event, for which time may have to pass, or the object is dead.
      const read = await Promise.race([reader?.read(), turns(30)]).catch(() => null);
      if (!read || read.done) break;
      text += read.value;
      for (let at = text.indexOf('\n\n'); at >= 0; at = text.indexOf('\n\n')) {
        const [, data] = /^data: (\{.*\})$/m.exec(text.slice(0, at)) ?? [];
        text = text.slice(at + 2);
        if (data === undefined) continue;
        const next = Number(objectOf(decodeObject(data)).sequence_number);
        expect(next).toBeGreaterThan(number);
        number = next;
        events.push(data);
        const type = textOf(objectOf(decodeObject(data)).type);
        if (['response.completed', 'response.incomplete', 'response.failed'].includes(type)) return events;
      }
    }
    void reader?.cancel().catch(() => {});
    await turns(1);
  }
}

/** Cancels, kills and deletions at random moments. */
async function disturb(world: World, id: string): Promise<{ isCancelled: boolean; isDeleted: boolean }> {
  const { dice } = world;
  const done = { isCancelled: false, isDeleted: false };
  for (let acts = dice(4); acts > 0; acts--) {
    await turns(dice(80));
    const act = dice(6);
    if (act <= 1) {
      const { status } = await fetchFrom(world, `/${id}/cancel`, { method: 'POST' });
      if (status === 200) done.isCancelled = true;
      count('cancels');
    } else if (act === 2) {
      world.objects.get(id)?.kill();
      count('kills');
    } else if (act === 3 && dice(2) === 0) {
      const { status } = await fetchFrom(world, `/${id}`, { method: 'DELETE' });
      if (status === 200) done.isDeleted = true;
      count('deletions');
    }
  }
  return done;
}

async function runOnce(world: World): Promise<void> {
  const { dice } = world;
  const body = { model: 'three', input: 'Hello', background: true, max_output_tokens: 100 };
  const queued = await fetchFrom(world, '', { method: 'POST', body: JSON.stringify(body) });
  const id = textOf(objectOf(decodeObject(await queued.text())).id);
  expect(queued.status).toBe(200);
  const readers = Array.from({ length: dice(3) }, () => follow(world, id));
  const [done] = await Promise.all([disturb(world, id), passTime(world, readers)]);
  const followed = await Promise.all(readers);
  const requestId = id.replace(/^resp_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  const records = [...(world.written.get(requestId) ?? [])].map((json) => objectOf(decodeObject(json)));
  expect(records, 'records').toHaveLength(1);
  const [record = {}] = records;
  for (const table of ['reservations', 'expired'])
    expect(world.limits.exec(`SELECT id FROM ${table} WHERE id = ?`, requestId).toArray(), table).toEqual([]);
  count(`record ${textOf(record.status)}`);
  const response = await fetchFrom(world, `/${id}`);
  const kept = world.kept;
  if (done.isDeleted) {
    expect(response.status).toBe(404);
    expect(kept.responses, 'kept responses').toBe(0);
    return;
  }
  expect(kept.responses, 'kept responses').toBe(response.status === 404 ? 0 : 1);
  const object = objectOf(decodeObject(await response.text()));
  const status = textOf(object.status);
  count(status);
  expect(ENDS[textOf(record.status)], JSON.stringify({ record, object })).toContain(status);
  if (done.isCancelled) expect(['in_progress', 'queued']).not.toContain(status);
  const replay = await (await fetchFrom(world, `/${id}?stream=true`)).text();
  const whole = [...replay.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => data);
  for (const events of followed) {
    // Events that were lost with the object are only in the readers' hands.
    const isInterrupted = record.error_code === 'interrupted';
    if (isInterrupted) expect(events?.at(-1)).toBe(whole.at(-1));
    else expect(events).toEqual(whole);
  }
}

/** The statuses of a response whose record has this one. */
const ENDS: Readonly<Record<string, readonly string[]>> = {
  finished: ['completed', 'incomplete'],
  cancelled: ['cancelled'],
  failed: ['failed'],
  timed_out: ['failed'],
};

/** Until all readers are done and every object has had the time to end its run. */
async function passTime(world: World, readers: readonly Promise<unknown>[]): Promise<void> {
  let areDone = false;
  void Promise.allSettled(readers).then(() => {
    areDone = true;
  });
  await turns(200);
  for (let minutes = 0; minutes < 4 || (!areDone && minutes < 60); minutes++) await world.pass(60_000);
  expect(areDone, 'readers are done within the hour').toBe(true);
}

test(`X3 X4 X7 random runs have one record each, no reservation is left, and all readers agree (SEED=${SEED}, ${RUNS} runs)`, async () => {
  for (let seed = SEED; seed < SEED + RUNS; seed++) {
    const ledger = LEDGERS[seed % LEDGERS.length] ?? 'kv';
    const world = await World.create(seeded(seed), ledger);
    await repeatable(seed, () => runOnce(world));
  }
  process.stdout.write(`${JSON.stringify({ seed: SEED, ...counts })}\n`);
});
