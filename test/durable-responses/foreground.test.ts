/** Storing a foreground response: its terminal event waits for the store, and says whether it worked. */
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { EventRoom, storeForeground } from '../../src/durable-responses/foreground.ts';
import {
  DONE,
  HEARTBEAT,
  joinBytes,
  readFrame,
  splitFrames,
  writeFrame,
} from '../../src/durable-responses/frames.ts';

const KEPT = { metadata: { note: '"store":true,"background":' } };
const response = (status: string) => ({ status, output: [], store: true, background: false, ...KEPT });
const created = writeFrame('created', { response: response('in_progress') }, 0).bytes;
const delta = writeFrame('output_text.delta', { delta: 'Hi' }, 1).bytes;
const completed = writeFrame('completed', { response: response('completed') }, 2).bytes;
const events = joinBytes([created, delta, completed]);
const stream = joinBytes([HEARTBEAT, created, delta, HEARTBEAT, completed, DONE]);

let room = new EventRoom();
const { signal } = new AbortController();

function storing(
  body: BodyInit,
  isStreamed: boolean,
  store: (events: Uint8Array | null) => Promise<boolean>,
): Promise<Response> {
  return storeForeground(new Response(body), { isStreamed, store, room, signal });
}

const bytesOf = async (stored: Promise<Response>) => new Uint8Array(await (await stored).arrayBuffer());

describe('a stream', () => {
  test('X8 passes unchanged, and its events are stored once, before the terminal event is sent', async () => {
    const stored: (Uint8Array | null)[] = [];
    const isStored = Promise.withResolvers<boolean>();
    const result = await storing(stream, true, (bytes) => {
      stored.push(bytes);
      return isStored.promise;
    });
    const reader = result.body?.getReader();
    const first = (await reader?.read())?.value ?? new Uint8Array();
    expect(first).toEqual(joinBytes([HEARTBEAT, created, delta, HEARTBEAT]));
    expect(stored).toEqual([events]);
    isStored.resolve(true);
    expect((await reader?.read())?.value).toEqual(joinBytes([completed, DONE]));
  });

  test('X8 that could not be stored ends with store: false', async () => {
    const result = await bytesOf(storing(stream, true, async () => false));
    const last = splitFrames(result).at(-2) ?? new Uint8Array();
    expect(readFrame(last)).toMatchObject({ response: { ...response('completed'), store: false } });
  });

  test('B1 that has ended leaves no listener at the signal of its request, which would keep its events in memory', async () => {
    const client = new AbortController();
    const options = { isStreamed: true, store: async () => true, room, signal: client.signal };
    const result = await storeForeground(new Response(stream), options);
    const before = getEventListeners(client.signal, 'abort').length;
    await result.arrayBuffer();
    await new Promise(setImmediate);
    expect([before, getEventListeners(client.signal, 'abort').length]).toEqual([1, 0]);
  });

  test('X4 ends with [DONE] as each replay does, also where the provider sends none', async () => {
    const bytes = joinBytes([created, delta, completed]);
    expect(await bytesOf(storing(bytes, true, async () => true))).toEqual(joinBytes([events, DONE]));
  });

  test('X8 that ends without a terminal event is not stored', async () => {
    const store = () => Promise.reject(new Error('stored'));
    const cut = joinBytes([created, delta]);
    expect(await bytesOf(storing(cut, true, store))).toEqual(cut);
  });
});

describe('the room of an isolate', () => {
  const MIB = 1024 * 1024;
  const large = writeFrame('output_text.delta', { delta: 'x'.repeat(3 * MIB) }, 1).bytes;

  test('X8: streams that find no room are not stored, and pass', async () => {
    room = new EventRoom();
    const stored: (Uint8Array | null)[] = [];
    const store = async (events: Uint8Array | null) => stored.push(events) > 0 && events !== null;
    const open = Array.from({ length: 9 }, () => {
      const source = new TransformStream<Uint8Array, Uint8Array>();
      const result = storing(source.readable, true, store).then((response) => response.arrayBuffer());
      return { writer: source.writable.getWriter(), result };
    });
    for (const { writer } of open) await writer.write(joinBytes([created, large]));
    expect(room.held).toBeLessThanOrEqual(24 * MIB);
    for (const { writer, result } of open) {
      await writer.write(completed);
      await writer.close();
      const text = new TextDecoder().decode(await result);
      expect(text.length).toBeGreaterThan(3 * MIB);
    }
    expect(stored.filter((events) => events === null)).toHaveLength(2);
    expect(room.held).toBe(0);
  });

  test.each(['aborts the request', 'cancels the body'])(
    'X8: a client that disconnects leaves its room to others: it %s',
    async (how) => {
      room = new EventRoom();
      const client = new AbortController();
      const source = new TransformStream<Uint8Array, Uint8Array>();
      const options = { isStreamed: true, store: async () => true, room, signal: client.signal };
      const response = await storeForeground(new Response(source.readable), options);
      const reader = response.body?.getReader();
      const reading = reader?.read();
      const writer = source.writable.getWriter();
      await writer.write(joinBytes([created, large]));
      await reading;
      expect(room.held).toBeGreaterThan(3 * MIB);
      if (how === 'aborts the request') client.abort();
      else {
        await reader?.cancel();
        await expect(writer.closed).rejects.toBeUndefined();
      }
      expect(room.held).toBe(0);
    },
  );
});

describe('an object', () => {
  test('X8 passes unchanged and is stored as two events', async () => {
    const json = JSON.stringify(response('completed'));
    const stored: (Uint8Array | null)[] = [];
    const result = await storing(json, false, async (bytes) => stored.push(bytes) > 0);
    expect(await result.text()).toBe(json);
    const [first, last] = splitFrames(stored[0] ?? new Uint8Array()).map(readFrame);
    expect(first).toMatchObject({ type: 'response.created', response: { status: 'in_progress' } });
    expect(last).toMatchObject({ type: 'response.completed', response: response('completed') });
  });

  test('X8 that could not be stored has store: false', async () => {
    const json = JSON.stringify(response('completed'));
    const result = await storing(json, false, async () => false);
    expect(await result.json()).toEqual({ ...response('completed'), store: false });
  });
});
