/** Storing a foreground response: its terminal event waits for the store, and says whether it worked. */
import { describe, expect, test } from 'vitest';
import { storeForeground } from '../../src/durable-responses/foreground.ts';
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

const bytesOf = async (stored: Promise<Response>) => new Uint8Array(await (await stored).arrayBuffer());

describe('a stream', () => {
  test('X8 passes unchanged, and its events are stored once, before the terminal event is sent', async () => {
    const stored: Uint8Array[] = [];
    const isStored = Promise.withResolvers<boolean>();
    const result = await storeForeground(new Response(stream), true, (bytes) => {
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
    const result = await bytesOf(storeForeground(new Response(stream), true, async () => false));
    const last = splitFrames(result).at(-2) ?? new Uint8Array();
    expect(readFrame(last)).toMatchObject({ response: { ...response('completed'), store: false } });
  });

  test('X8 that ends without a terminal event is not stored', async () => {
    const store = () => Promise.reject(new Error('stored'));
    const cut = joinBytes([created, delta]);
    expect(await bytesOf(storeForeground(new Response(cut), true, store))).toEqual(cut);
  });
});

describe('an object', () => {
  test('X8 passes unchanged and is stored as two events', async () => {
    const json = JSON.stringify(response('completed'));
    const stored: Uint8Array[] = [];
    const result = await storeForeground(new Response(json), false, async (bytes) => stored.push(bytes) > 0);
    expect(await result.text()).toBe(json);
    const [first, last] = splitFrames(stored[0] ?? new Uint8Array()).map(readFrame);
    expect(first).toMatchObject({ type: 'response.created', response: { status: 'in_progress' } });
    expect(last).toMatchObject({ type: 'response.completed', response: response('completed') });
  });

  test('X8 that could not be stored has store: false', async () => {
    const json = JSON.stringify(response('completed'));
    const result = await storeForeground(new Response(json), false, async () => false);
    expect(await result.json()).toEqual({ ...response('completed'), store: false });
  });
});
