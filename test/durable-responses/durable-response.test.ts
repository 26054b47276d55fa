/** One durable response with a fake exchange and a clock that tests move: runs, cancellation, interruption, expiry, and the record. */
import { describe, expect, test } from 'vitest';
import { NO_CALLER_FACTS } from '../../src/auth/caller.ts';
import {
  ALARM_MS,
  DurableResponse,
  MAX_UNSTORED_EVENTS,
} from '../../src/durable-responses/durable-response.ts';
import { writeFrame } from '../../src/durable-responses/frames.ts';
import type { SettledResponse, StartRequest } from '../../src/durable-responses/response-calls.ts';
import type { ChargedRecord } from '../../src/metering/record.ts';
import { decodeObject, type JsonObject, objectOf } from '../../tools/simulator/json.ts';
import { MemoryStorage } from './memory-storage.ts';

const OWNER = 'key-1';
const DAY_MS = 86_400_000;
const RECORD = { request_id: 'r', time: '2026-11-22T10:00:00.000Z', status: 'failed' } as ChargedRecord;

/** An object whose upstream events the test sends. */
class Fixture {
  now = 1_000_000;
  readonly storage: MemoryStorage;
  readonly logged: JsonObject[] = [];
  /** The records that were written, in order. */
  readonly written: ChargedRecord[] = [];
  readonly timers: (() => void)[] = [];
  /** What the index of the owner's key received at the end of runs. */
  readonly settled: (SettledResponse & { readonly owner: string })[] = [];
  /** Records wait for it. */
  ledger: Promise<void> = Promise.resolve();
  refusal: Response | null = null;
  restarts = 0;
  signal: AbortSignal | null = null;
  #stream = new TransformStream<Uint8Array, Uint8Array>(undefined, undefined, { highWaterMark: 100 });
  #writer = this.#stream.writable.getWriter();
  #number = 0;
  object: DurableResponse;

  constructor(storage = new MemoryStorage()) {
    this.storage = storage;
    this.object = this.open();
  }

  /** A new instance of the object over the same storage. */
  open(): DurableResponse {
    this.object = new DurableResponse({
      sql: this.storage,
      transaction: (write) => this.storage.transaction(write),
      exchange: {
        run: async (_, { signal, abortError, onSent, onEnd, onRecordWritten }) => {
          this.signal = signal;
          if (this.refusal !== null) return this.refusal;
          onSent(RECORD);
          let isOver = false;
          this.settle = async (status) => {
            if (isOver) return;
            isOver = true;
            const record = { ...RECORD, status };
            await onEnd(record);
            await this.ledger;
            this.written.push(record);
            onRecordWritten();
          };
          signal.addEventListener('abort', () => {
            void this.settle(abortError() === null ? 'cancelled' : 'failed');
          });
          return new Response(this.#stream.readable);
        },
        queued: (_, id) => JSON.stringify({ id, status: 'queued' }),
        interrupted: (record) => ({ ...record, error_code: 'interrupted' }),
        writeRecord: async (record) => {
          await this.ledger;
          this.written.push(record);
        },
      },
      settleKept: async (owner, settled) => void this.settled.push({ owner, ...settled }),
      now: () => this.now,
      startTimer: (_, onFire) => {
        this.timers.push(onFire);
        return () => void this.timers.splice(this.timers.indexOf(onFire), 1);
      },
      setAlarm: async (at) => {
        this.storage.alarm = at;
      },
      getAlarm: async () => this.storage.alarm,
      deleteAll: async () => this.storage.clear(),
      restart: () => this.restarts++,
      waitUntil: (work) => void work.catch(() => {}),
      log: (entry) => this.logged.push(decodeObject(JSON.stringify(entry)) ?? {}),
    });
    return this.object;
  }

  start(more: Partial<StartRequest> = {}) {
    return this.object.start({
      owner: OWNER,
      input: new TextEncoder().encode('[]'),
      chain: [],
      earlierChars: 0,
      earlierTextBytes: 0,
      keptMs: DAY_MS,
      maxBytes: 1_000_000,
      requestId: '01234567-0123-7123-8123-0123456789ab',
      caller: { keyId: OWNER, models: null, key: null, credential: null, facts: NO_CALLER_FACTS },
      arrivedAt: this.now,
      headers: [],
      body: new TextEncoder().encode('{"model":"m"}'),
      kept: { previousId: null, isStored: true, isBackground: true },
      ...more,
    });
  }

  /** Ends the exchange, as its meter does. */
  settle: (status: ChargedRecord['status']) => Promise<void> = async () => {};

  async send(type: string, members: JsonObject = {}): Promise<void> {
    await this.#writer.write(writeFrame(type, members, this.#number++).bytes);
    // The object reads in further turns of the event loop.
    await turn();
    if (type === 'completed') await this.closeUpstream('finished');
  }

  async closeUpstream(status: ChargedRecord['status']): Promise<void> {
    await this.#writer.close();
    void this.settle(status);
    await turn();
  }

  get response(): JsonObject {
    return decodeObject(this.object.read(OWNER)?.response ?? '') ?? {};
  }

  stream(after = -1): ReadableStream<Uint8Array> | null {
    const events = this.object.events(OWNER, after);
    if (events === 'busy') throw new Error('Too many readers');
    return events;
  }

  async events(after = -1): Promise<JsonObject[]> {
    const text = await new Response(this.stream(after)).text();
    return [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => objectOf(decodeObject(data)));
  }
}

/** Lets everything run that is ready. */
async function turn(): Promise<void> {
  for (let n = 0; n < 3; n++) await new Promise((resolve) => setImmediate(resolve));
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
    expect(fixture.object.conversation(OWNER, Number.POSITIVE_INFINITY)).toMatchObject({
      output: JSON.stringify([ITEM]),
      isOver: true,
    });
  });

  test('X3: is in progress while events without a response come before or after the first one with it', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('keepalive');
    expect(fixture.response.status).toBe('queued');
    await fixture.send('created', IN_PROGRESS);
    expect(fixture.response.status).toBe('in_progress');
    await fixture.object.cancel(OWNER);
    expect(fixture.response).toMatchObject({ status: 'cancelled', id: 'resp_1' });
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
    await fixture.closeUpstream('failed');
    expect((await fixture.events()).at(-1)).toMatchObject({ type: 'response.failed', sequence_number: 1 });
  });

  test('X6: an event is stored within a second', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    const blocks = () => fixture.storage.exec('SELECT * FROM response WHERE at >= 0').toArray().length;
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
    await turn();
    expect(fixture.written).toEqual([{ ...RECORD, error_code: 'interrupted' }]);
    expect(fixture.response).toMatchObject({ status: 'failed', output: [ITEM] });
    const events = await fixture.events();
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual([0, 1, 2 + MAX_UNSTORED_EVENTS]);
    // This reader had the event that was lost.
    expect(await fixture.events(2)).toMatchObject([{ type: 'response.failed' }]);
    fixture.open();
    await turn();
    expect(fixture.written).toHaveLength(1);
    expect(await fixture.events()).toEqual(events);
  });

  test('X7: without any stored event it writes response.created first, so that SDKs can read the stream', async () => {
    const fixture = new Fixture();
    await fixture.start();
    fixture.open();
    expect((await fixture.events()).map(({ type }) => type)).toEqual(['response.created', 'response.failed']);
  });
});

describe('the record of a run', () => {
  const NEVER = new Promise<void>(() => {});
  const statuses = (fixture: Fixture) => fixture.written.map(({ status }) => status);

  test('X7: is written after its end is stored, so an object that ends before both has one failed record', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    // The exchange has ended, and its last event is still on its way.
    void fixture.settle('finished');
    await turn();
    expect(fixture.written).toEqual([]);
    fixture.open();
    await turn();
    expect(fixture.written).toMatchObject([{ status: 'failed', error_code: 'interrupted' }]);
    expect(fixture.response.status).toBe('failed');
  });

  test('X7: is written by the next instance as it was, if the object ends before it is written', async () => {
    const fixture = new Fixture();
    await fixture.start();
    fixture.ledger = NEVER;
    await fixture.send('completed', { response: { status: 'completed' } });
    expect(fixture.written).toEqual([]);
    fixture.ledger = Promise.resolve();
    fixture.open();
    await turn();
    expect(fixture.written).toEqual([{ ...RECORD, status: 'finished' }]);
    fixture.open();
    await turn();
    expect(fixture.written).toHaveLength(1);
    expect(fixture.response.status).toBe('completed');
  });

  test('X3: cancelled when the exchange has ended: it is completed, and so is the record', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    void fixture.settle('finished');
    const cancelled = fixture.object.cancel(OWNER);
    await fixture.send('completed', { response: { status: 'completed' } });
    expect(await cancelled).toEqual({ kind: 'cancelled' });
    expect(fixture.response.status).toBe('completed');
    expect(statuses(fixture)).toEqual(['finished']);
  });

  test('X3: two cancels and a DELETE at once: one record, and all return', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    const { object } = fixture;
    const results = await Promise.all([
      ...[object.cancel(OWNER), object.cancel(OWNER), object.remove(OWNER)],
      ...[object.remove(OWNER), object.cancel(OWNER)],
    ]);
    expect(results.slice(0, 3)).toMatchObject([{ kind: 'cancelled' }, { kind: 'cancelled' }, true]);
    expect(statuses(fixture)).toEqual(['cancelled']);
    expect(fixture.storage.tables).toBe(0);
  });

  test('X3: a deletion waits for it, and meanwhile there is no response', async () => {
    const fixture = new Fixture();
    await fixture.start();
    const ledger = Promise.withResolvers<void>();
    fixture.ledger = ledger.promise;
    const removed = fixture.object.remove(OWNER);
    await turn();
    expect(fixture.object.read(OWNER)).toBeNull();
    expect(fixture.storage.tables).toBeGreaterThan(0);
    ledger.resolve();
    expect(await removed).toBe(true);
    expect(fixture.storage.tables).toBe(0);
  });

  test('X6: of a run with more events than RESPONSE_BYTES is failed', async () => {
    const fixture = new Fixture();
    await fixture.start({ maxBytes: 500 });
    await fixture.send('output_text.delta', { delta: 'x'.repeat(500) });
    expect(statuses(fixture)).toEqual(['failed']);
  });
});

describe('storage that fails', () => {
  test('X7: during a run: the object restarts, and the next instance ends the run with one record', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    fixture.storage.failure = new Error('SQLITE_FULL');
    for (const fire of fixture.timers.splice(0)) expect(fire).toThrow('SQLITE_FULL');
    expect(fixture.restarts).toBe(1);
    expect(fixture.logged).toMatchObject([{ event: 'response_storage_failed' }]);
    fixture.storage.failure = null;
    fixture.open();
    await turn();
    expect(fixture.response).toMatchObject({ status: 'failed' });
    expect(fixture.written).toHaveLength(1);
  });

  test('X7: at the end of a run: the terminal event and the record are both not stored', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    fixture.storage.failure = new Error('SQLITE_IOERR');
    await fixture.send('completed', { response: { status: 'completed' } });
    expect(fixture.restarts).toBeGreaterThan(0);
    expect(fixture.written).toEqual([]);
    fixture.storage.failure = null;
    fixture.open();
    await turn();
    expect(fixture.response).toMatchObject({ status: 'failed' });
    expect(fixture.written).toMatchObject([{ error_code: 'interrupted' }]);
  });

  test('X3: at the start: the run is cancelled, and its record is written', async () => {
    const fixture = new Fixture();
    fixture.storage.failure = new Error('SQLITE_FULL');
    await expect(fixture.start()).rejects.toThrow('SQLITE_FULL');
    fixture.storage.failure = null;
    await turn();
    expect(fixture.signal?.aborted).toBe(true);
    expect(fixture.written).toMatchObject([{ status: 'cancelled' }]);
    expect(fixture.storage.tables).toBe(0);
  });
});

describe('deletion during a read', () => {
  test('X3: a reader that waits for the next event receives the terminal one', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    const events = fixture.events();
    await turn();
    await fixture.object.remove(OWNER);
    expect((await events).map(({ type }) => type)).toEqual(['response.created', 'response.incomplete']);
  });

  test('X2: a reader with events still to come fails, when the response expires', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    await fixture.send('output_item.done', { item: ITEM });
    await fixture.send('completed', { response: { status: 'completed' } });
    const reader = fixture.stream()?.getReader();
    fixture.now += DAY_MS;
    await fixture.object.alarm();
    await expect(reader?.read()).rejects.toThrow('The response was deleted');
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

  test('X7: delivered twice, late, or after the clock was set back: a run continues, an end stays, a deletion is in time', async () => {
    const fixture = new Fixture();
    await fixture.start();
    fixture.now += 10 * ALARM_MS;
    await Promise.all([fixture.object.alarm(), fixture.object.alarm()]);
    expect(fixture.response.status).toBe('queued');
    expect(fixture.storage.alarm).toBe(fixture.now + ALARM_MS);
    await fixture.send('completed', { response: { status: 'completed' } });
    const expiresAt = fixture.now + DAY_MS;
    fixture.now -= DAY_MS;
    await fixture.object.alarm();
    expect(fixture.storage.alarm).toBe(expiresAt);
    fixture.now = expiresAt;
    await Promise.all([fixture.object.alarm(), fixture.object.alarm()]);
    expect(fixture.storage.tables).toBe(0);
    await fixture.open().alarm();
    expect(fixture.storage.alarm).toBeNull();
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

describe('X2 a run that failed', () => {
  const TEN_MINUTES = 10 * 60_000;

  test.each<[how: string, send: (fixture: Fixture) => Promise<void>]>([
    ['before its first event', async (fixture) => fixture.closeUpstream('failed')],
    [
      'with an error of its provider',
      async (fixture) => {
        await fixture.send('created', IN_PROGRESS);
        await fixture.send('failed', { response: { status: 'failed', output: [] } });
        await fixture.closeUpstream('failed');
      },
    ],
  ])('%s is kept for ten minutes', async (_, send) => {
    const fixture = new Fixture();
    await fixture.start();
    await send(fixture);
    expect(fixture.response.status).toBe('failed');
    expect(fixture.storage.alarm).toBe(fixture.now + TEN_MINUTES);
    fixture.now += TEN_MINUTES;
    expect(fixture.object.read(OWNER)).toBeNull();
    await fixture.object.alarm();
    expect(fixture.storage.tables).toBe(0);
  });

  test('after output is kept as others', async () => {
    const fixture = new Fixture();
    await fixture.start();
    await fixture.send('created', IN_PROGRESS);
    await fixture.send('output_text.delta', { delta: 'Hi' });
    await fixture.send('failed', { response: { status: 'failed', output: [] } });
    await fixture.closeUpstream('failed');
    expect(fixture.storage.alarm).toBe(fixture.now + DAY_MS);
  });
});

describe('X2 expiry does not depend on one alarm', () => {
  const FINISHED = {
    owner: OWNER,
    input: new TextEncoder().encode('[]'),
    chain: [],
    earlierChars: 0,
    earlierTextBytes: 0,
    keptMs: DAY_MS,
    maxBytes: 1_000_000,
    events: writeFrame('completed', { response: { id: 'resp_1', status: 'completed', output: [] } }, 0).bytes,
  };

  test('a response whose alarm is late is not found by any call', async () => {
    const fixture = new Fixture();
    await fixture.object.put(FINISHED);
    fixture.now += DAY_MS;
    for (const object of [fixture.object, fixture.open()]) {
      expect(object.read(OWNER)).toBeNull();
      expect(object.events(OWNER, -1)).toBeNull();
      expect(object.conversation(OWNER, Number.POSITIVE_INFINITY)).toBeNull();
      expect(object.items(OWNER, ['msg_1'], 100)).toBeNull();
      expect(await object.cancel(OWNER)).toEqual({ kind: 'none' });
    }
  });

  test.each([
    ['of a finished response', async (fixture: Fixture) => fixture.object.put(FINISHED), DAY_MS],
    [
      'of a run that ends with the instance',
      async (fixture: Fixture) => void (await fixture.start()),
      DAY_MS,
    ],
  ])('an instance sets an alarm that is missing: %s', async (_, store, after) => {
    const fixture = new Fixture();
    await store(fixture);
    fixture.storage.alarm = null;
    fixture.open();
    await turn();
    expect(fixture.storage.alarm).toBe(fixture.now + after);
    fixture.now += after;
    await fixture.open().alarm();
    expect(fixture.storage.tables).toBe(0);
  });

  test('storing that fails after its rows and is repeated has an alarm', async () => {
    const fixture = new Fixture();
    await fixture.object.put(FINISHED);
    fixture.storage.alarm = null;
    await fixture.object.put(FINISHED);
    expect(fixture.storage.alarm).toBe(fixture.now + DAY_MS);
  });

  test('an alarm that is set before rows that are not stored does nothing', async () => {
    const fixture = new Fixture();
    fixture.storage.failure = new Error('SQLITE_FULL');
    await expect(fixture.object.put(FINISHED)).rejects.toThrow('SQLITE_FULL');
    fixture.storage.failure = null;
    fixture.now += DAY_MS;
    await fixture.object.alarm();
    expect(fixture.storage.tables).toBe(0);
  });
});

describe('X2 rows that cannot be read', () => {
  async function stored(change: (row: JsonObject) => unknown, isRunning = false): Promise<Fixture> {
    const fixture = new Fixture();
    await fixture.start();
    if (!isRunning) await fixture.send('completed', { response: { status: 'completed' } });
    const [row] = fixture.storage
      .exec<{ value: string }>('SELECT value FROM response WHERE at = -1')
      .toArray();
    const changed = change(decodeObject(row?.value ?? '') ?? {});
    const json = typeof changed === 'string' ? changed : JSON.stringify(changed);
    fixture.storage.exec('UPDATE response SET value = ? WHERE at = -1', json);
    fixture.logged.length = 0;
    fixture.open();
    await turn();
    return fixture;
  }

  test('a row without a version is read as one of the first', async () => {
    const fixture = await stored(({ version: _, ...row }) => row);
    expect(fixture.response.status).toBe('completed');
  });

  test.each<[what: string, change: (row: JsonObject) => unknown]>([
    ['of a later version', (row) => ({ ...row, version: 2 })],
    ['without a size', ({ earlierChars: _, ...row }) => row],
    ['with a size that is a text', (row) => ({ ...row, earlierChars: '12' })],
    ['with a time that is none', (row) => ({ ...row, keptMs: null })],
    ['with half a chain', (row) => ({ ...row, chain: ['resp_1', 7] })],
  ])('%s: it is not found, says why, and its owner deletes it', async (_, change) => {
    const fixture = await stored(change);
    const { object } = fixture;
    expect(fixture.logged).toMatchObject([{ event: 'response_unreadable', reason: expect.any(String) }]);
    expect(object.read(OWNER)).toBeNull();
    expect(object.events(OWNER, -1)).toBeNull();
    expect(object.conversation(OWNER, 100)).toBeNull();
    expect(object.unreadable(OWNER)).toMatch(/row of the response/);
    expect(object.unreadable('key-2')).toBeNull();
    expect(await object.remove('key-2')).toBe(false);
    expect(await object.remove(OWNER)).toBe(true);
    expect([fixture.storage.tables, fixture.storage.alarm]).toEqual([0, null]);
    expect(object.unreadable(OWNER)).toBeNull();
  });

  test.each<[what: string, change: (row: JsonObject) => unknown]>([
    ['is no JSON', () => '{"owner":"key-1"'],
    ['is missing', () => ''],
    ['is a list', () => []],
    ['has no owner', ({ owner: _, ...row }) => row],
  ])('one that %s: no owner has it, and the admin deletes it', async (_, change) => {
    const { object, storage } = await stored(change);
    expect(object.unreadable(OWNER)).toBeNull();
    expect(await object.remove(OWNER)).toBe(false);
    expect(object.unreadable(null)).toMatch(/row of the response/);
    expect(await object.remove(null)).toBe(true);
    expect(storage.tables).toBe(0);
  });

  test('the admin deletes nothing that can be read', async () => {
    const { object } = await stored((row) => row);
    expect(object.unreadable(null)).toBeNull();
    expect(await object.remove(null)).toBe(false);
  });

  test('they expire: by their own time where it is readable, else with their alarm', async () => {
    const later = await stored((row) => ({ ...row, version: 2 }));
    later.storage.alarm = null;
    later.open();
    await turn();
    expect(later.storage.alarm).toBe(later.now + DAY_MS);
    await later.object.alarm();
    expect(later.storage.tables).toBe(1);
    later.now += DAY_MS;
    await later.object.alarm();
    expect(later.storage.tables).toBe(0);
    const damaged = await stored(() => '{');
    expect(damaged.storage.alarm).toBe(damaged.now + DAY_MS);
    await damaged.object.alarm();
    expect(damaged.storage.tables).toBe(0);
  });

  test('a run of later code stays until code that can read it ends it', async () => {
    const fixture = await stored((row) => ({ ...row, version: 2 }), true);
    fixture.now += 40 * DAY_MS;
    await fixture.object.alarm();
    expect(fixture.storage.tables).toBe(1);
    expect(fixture.storage.alarm).toBeGreaterThan(fixture.now);
  });
});

test('X1: only the owner finds a response, and a read of an unknown one stores nothing', async () => {
  const fixture = new Fixture();
  expect(fixture.object.read(OWNER)).toBeNull();
  expect(fixture.storage.tables).toBe(0);
  await fixture.start();
  for (const owner of ['', 'admin', 'key-2']) {
    expect(fixture.object.read(owner)).toBeNull();
    expect(fixture.object.events(owner, -1)).toBeNull();
    expect(fixture.object.conversation(owner, Number.POSITIVE_INFINITY)).toBeNull();
    expect(await fixture.object.cancel(owner)).toEqual({ kind: 'none' });
    expect(await fixture.object.remove(owner)).toBe(false);
  }
  expect(fixture.response.status).toBe('queued');
});
