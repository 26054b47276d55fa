/** One durable response with a fake exchange and a clock that tests move: runs, cancellation, interruption, expiry, and the record. */
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { NO_CALLER_FACTS } from '../../src/auth/caller.ts';
import { ALARM_MS, DurableResponse, LEAP } from '../../src/durable-responses/durable-response.ts';
import { writeFrame } from '../../src/durable-responses/frames.ts';
import type { StartRequest } from '../../src/durable-responses/response-calls.ts';
import type { Sql } from '../../src/durable-responses/tables.ts';
import type { UsageRecord } from '../../src/metering/record.ts';
import { decodeObject, type JsonObject, objectOf } from '../../tools/simulator/json.ts';

/** The storage of one object, which outlives its instances. */
class Storage implements Sql {
  readonly #database = new DatabaseSync(':memory:');
  alarm: number | null = null;

  exec<Row>(query: string, ...bindings: readonly SqlStorageValue[]): { toArray(): Row[] } {
    const values = bindings.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value));
    const rows = this.#database.prepare(query).all(...values);
    return { toArray: () => rows as Row[] };
  }

  get tables(): number {
    return this.exec("SELECT name FROM sqlite_master WHERE type = 'table'").toArray().length;
  }

  clear(): void {
    for (const table of ['response', 'input', 'blocks']) this.exec(`DROP TABLE IF EXISTS ${table}`);
    this.alarm = null;
  }
}

const OWNER = 'key-1';
const DAY_MS = 86_400_000;
const RECORD = { request_id: 'r', time: '2026-11-22T10:00:00.000Z' } as UsageRecord;

/** An object whose upstream events the test sends. */
class Fixture {
  now = 1_000_000;
  readonly storage: Storage;
  readonly logged: JsonObject[] = [];
  readonly interrupted: UsageRecord[] = [];
  readonly timers: (() => void)[] = [];
  refusal: Response | null = null;
  signal: AbortSignal | null = null;
  #stream = new TransformStream<Uint8Array, Uint8Array>(undefined, undefined, { highWaterMark: 100 });
  #writer = this.#stream.writable.getWriter();
  #number = 0;
  object: DurableResponse;

  constructor(storage = new Storage()) {
    this.storage = storage;
    this.object = this.open();
  }

  /** A new instance of the object over the same storage. */
  open(): DurableResponse {
    this.object = new DurableResponse({
      sql: this.storage,
      exchange: {
        run: async (_, { signal, onSent }) => {
          this.signal = signal;
          if (this.refusal !== null) return this.refusal;
          onSent(RECORD);
          return new Response(this.#stream.readable);
        },
        writeInterrupted: async (record) => void this.interrupted.push(record),
      },
      now: () => this.now,
      startTimer: (_, onFire) => {
        this.timers.push(onFire);
        return () => void this.timers.splice(this.timers.indexOf(onFire), 1);
      },
      setAlarm: async (at) => {
        this.storage.alarm = at;
      },
      deleteAll: async () => this.storage.clear(),
      waitUntil: () => {},
      log: (entry) => this.logged.push(decodeObject(JSON.stringify(entry)) ?? {}),
    });
    return this.object;
  }

  start(more: Partial<StartRequest> = {}) {
    return this.object.start({
      owner: OWNER,
      input: '[]',
      chain: [],
      keptMs: DAY_MS,
      maxBytes: 1_000_000,
      requestId: '01234567-0123-7123-8123-0123456789ab',
      caller: { keyId: OWNER, models: null, key: null, credential: null, facts: NO_CALLER_FACTS },
      arrivedAt: this.now,
      headers: [],
      body: '{"model":"m"}',
      kept: { previousId: null, isStored: true, isBackground: true },
      ...more,
    });
  }

  async send(type: string, members: JsonObject = {}): Promise<void> {
    await this.#writer.write(writeFrame(type, members, this.#number++).bytes);
    // The object reads in further turns of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
  }

  async closeUpstream(): Promise<void> {
    await this.#writer.close();
    await new Promise((resolve) => setImmediate(resolve));
  }

  get response(): JsonObject {
    return decodeObject(this.object.read(OWNER)?.response ?? '') ?? {};
  }

  async events(after = -1): Promise<JsonObject[]> {
    const text = await new Response(this.object.events(OWNER, after)).text();
    return [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => objectOf(decodeObject(data)));
  }
}

const IN_PROGRESS = { response: { id: 'resp_1', status: 'in_progress', output: [] } };
const ITEM = { id: 'msg_1', type: 'message' };

describe('a background run', () => {
  test('X3: is queued, in progress, and completed', async () => {
    const fixture = new Fixture();
    await fixture.start();
    expect(fixture.response.status).toBe('queued');
    await fixture.send('created', IN_PROGRESS);
    expect(fixture.response.status).toBe('in_progress');
    await fixture.send('completed', { response: { id: 'resp_1', status: 'completed', output: [ITEM] } });
    expect(fixture.response.status).toBe('completed');
    expect(fixture.object.conversation(OWNER)).toMatchObject({
      output: JSON.stringify([ITEM]),
      isOver: true,
    });
  });

  test('X3: one that is refused before it is sent upstream stores nothing', async () => {
    const fixture = new Fixture();
    fixture.refusal = Response.json({ error: {} }, { status: 404 });
    expect(await fixture.start()).toMatchObject({ kind: 'refused', status: 404 });
    expect(fixture.storage.tables).toBe(0);
  });

  test('X3: cancelled in the middle: the upstream is aborted, finished items stay, later events are ignored', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    await fixture.send('output_item.done', { item: ITEM });
    await fixture.object.cancel(OWNER);
    expect(fixture.signal?.aborted).toBe(true);
    expect(fixture.response).toMatchObject({ status: 'cancelled', output: [ITEM] });
    await fixture.send('completed', { response: { status: 'completed' } });
    const events = await fixture.events();
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.output_item.done',
      'response.incomplete',
    ]);
    expect(await fixture.object.cancel(OWNER)).toMatchObject({ kind: 'cancelled' });
    expect(await fixture.events()).toEqual(events);
  });

  test('X3: cancelled after its end: it stays as it ended', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('completed', { response: { status: 'completed' } });
    await fixture.object.cancel(OWNER);
    expect(fixture.response.status).toBe('completed');
  });

  test('X3: deleted in the middle: the upstream is aborted and nothing stays', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    expect(await fixture.object.remove(OWNER)).toBe(true);
    expect(fixture.signal?.aborted).toBe(true);
    expect(fixture.storage.tables).toBe(0);
    expect(fixture.object.read(OWNER)).toBeNull();
    expect(await fixture.object.remove(OWNER)).toBe(false);
  });

  test('X6: more events than RESPONSE_BYTES: the run fails and its upstream is aborted', async () => {
    const fixture = new Fixture();
    await fixture.start({ maxBytes: 500 });
    await fixture.send('created', IN_PROGRESS);
    await fixture.send('output_text.delta', { delta: 'x'.repeat(500) });
    expect(fixture.signal?.aborted).toBe(true);
    expect(fixture.response).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
  });

  test('X7: a stream that ends without a terminal event has failed', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    await fixture.closeUpstream();
    expect((await fixture.events()).at(-1)).toMatchObject({ type: 'response.failed', sequence_number: 1 });
  });

  test('X6: an event is stored within a second', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    const blocks = () => fixture.storage.exec('SELECT * FROM blocks').toArray().length;
    expect(blocks()).toBe(0);
    for (const fire of fixture.timers.splice(0)) fire();
    expect(blocks()).toBe(1);
  });
});

describe('an instance that finds an unfinished run', () => {
  test('X7: writes response.failed above any number that may have been sent, and one record', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    await fixture.send('output_item.done', { item: ITEM });
    await fixture.send('output_text.delta', { delta: 'lost' });
    fixture.open();
    expect(fixture.interrupted).toEqual([RECORD]);
    expect(fixture.response).toMatchObject({ status: 'failed', output: [ITEM] });
    const events = await fixture.events();
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual([0, 1, 2 + LEAP]);
    // This reader had the event that was lost.
    expect(await fixture.events(2)).toMatchObject([{ type: 'response.failed' }]);
    fixture.open();
    expect(fixture.interrupted).toHaveLength(1);
    expect(await fixture.events()).toEqual(events);
  });

  test('X7: without any stored event it writes response.created first, so that SDKs can read the stream', async () => {
    const fixture = new Fixture();
    await fixture.start();
    fixture.open();
    expect((await fixture.events()).map(({ type }) => type)).toEqual(['response.created', 'response.failed']);
  });
});

describe('alarms', () => {
  test('X7: a run has an alarm each 20 s', async () => {
    const fixture = new Fixture();
    await fixture.start();
    expect(fixture.storage.alarm).toBe(fixture.now + ALARM_MS);
    fixture.now += ALARM_MS;
    await fixture.object.alarm();
    expect(fixture.storage.alarm).toBe(fixture.now + ALARM_MS);
  });

  test('X2: an ended response is deleted when its time is over, also by another instance', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('completed', { response: { status: 'completed' } });
    expect(fixture.storage.alarm).toBe(fixture.now + DAY_MS);
    fixture.now += DAY_MS - 1;
    await fixture.open().alarm();
    expect(fixture.object.read(OWNER)).not.toBeNull();
    fixture.now += 1;
    await fixture.open().alarm();
    expect(fixture.object.read(OWNER)).toBeNull();
    expect(fixture.storage.tables).toBe(0);
  });
});

test('X1: nobody but the owner finds a response, and a question for an unknown one stores nothing', async () => {
  const fixture = new Fixture();
  expect(fixture.object.read(OWNER)).toBeNull();
  expect(fixture.storage.tables).toBe(0);
  await fixture.start();
  for (const owner of ['', 'admin', 'key-2']) {
    expect(fixture.object.read(owner)).toBeNull();
    expect(fixture.object.events(owner, -1)).toBeNull();
    expect(fixture.object.conversation(owner)).toBeNull();
    expect(await fixture.object.cancel(owner)).toEqual({ kind: 'none' });
    expect(await fixture.object.remove(owner)).toBe(false);
  }
  expect(fixture.response.status).toBe('queued');
});
