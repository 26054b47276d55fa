/** Slow readers under real workerd: the upstream waits for them, and nothing is buffered meanwhile (T5, T1, B1). */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RecordedRequest } from '../simulator/server.ts';
import { streamedChat } from './client.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { CLOCKS_OFF } from './plays.ts';
import { residentBytes, workerdIds } from './processes.ts';

const CHAT = '/v1/chat/completions';
const MIB = 1024 * 1024;
/** What the simulator would send to a client that reads it all. */
const FLOOD_BYTES = 64 * MIB;
/** Sockets on the way may buffer some of a flood: four of them, with a few MiB each at most. */
const MAX_HELD_BYTES = 24 * MIB;
const SLOW_READERS = 20;
/** One sample every 0.1 s: so many equal ones mean that the upstream has stopped. */
const EQUAL_SAMPLES = 10;

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({
    vars: { ...CLOCKS_OFF, HEARTBEAT_SECONDS: '0.2', IDLE_TIMEOUT_SECONDS: '1' },
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** Opens a flood and reads a little of it. */
async function open() {
  const client = new AbortController();
  const body = streamedChat('openai/gpt-4o-mini:flood');
  const response = await gateway.post(CHAT, body, { signal: client.signal });
  const reader = response.body?.getReader();
  for (let text = ''; !text.includes('data: '); )
    text = Buffer.from((await reader?.read())?.value ?? []).toString();
  return { response, reader, disconnect: () => client.abort() };
}

/** Resolves with the total bytes sent, once the upstreams have stopped for a second. */
async function untilStopped(upstreams: readonly RecordedRequest[]): Promise<number> {
  let sent = 0;
  for (let equal = 0; equal < EQUAL_SAMPLES; ) {
    const now = upstreams.reduce((sum, { bytesSent }) => sum + bytesSent, 0);
    equal = now === sent ? equal + 1 : 0;
    sent = now;
    await setTimeout(100);
  }
  return sent;
}

describe('T5', () => {
  test('T1 T2 a client that stops reading: the upstream stops, waits longer than any timeout, and continues when the client does', async () => {
    const asked = gateway.simulator.requests.length;
    const { response, reader, disconnect } = await open();
    const upstream = await gateway.simulator.request(asked);
    const held = await untilStopped([upstream]);
    expect(held).toBeLessThan(MAX_HELD_BYTES);
    // The client causes this silence, not the upstream: it outlasts the idle timeout without triggering it.
    const chunks: Buffer[] = [];
    for (let read = 0; read < held + MIB; ) {
      const { value = new Uint8Array() } = (await reader?.read()) ?? {};
      expect(value.length).toBeGreaterThan(0);
      chunks.push(Buffer.from(value));
      read += value.length;
    }
    expect(upstream.bytesSent).toBeGreaterThan(held);
    const text = Buffer.concat(chunks).toString();
    expect(text).not.toContain('"error"');
    // No heartbeats are queued while the client does not read; one may have been in transit.
    expect(text.split(': heartbeat\n\n').length - 1).toBeLessThanOrEqual(1);
    disconnect();
    expect(await upstream.closed).toBe('disconnected');
    expect(await gateway.record(response)).toMatchObject({ status: 'cancelled' });
  });

  test(`B1 ${SLOW_READERS} clients that stop reading: every upstream stops, and workerd's memory stays far below what they would send`, async () => {
    const workerd = workerdIds();
    expect(workerd.length).toBeGreaterThan(0);
    const before = residentBytes(workerd);
    const asked = gateway.simulator.requests.length;
    const readers = await Promise.all(Array.from({ length: SLOW_READERS }, open));
    const upstreams = gateway.simulator.requests.slice(asked);
    expect(upstreams).toHaveLength(SLOW_READERS);
    const held = await untilStopped(upstreams);
    expect(held).toBeLessThan(SLOW_READERS * MAX_HELD_BYTES);
    const grown = residentBytes(workerd) - before;
    expect(grown).toBeLessThan((SLOW_READERS * FLOOD_BYTES) / 4);
    // Memory does not grow while the upstreams are stopped.
    const stopped = residentBytes(workerd);
    await untilStopped(upstreams);
    expect(residentBytes(workerd) - stopped).toBeLessThan(16 * MIB);
    for (const { disconnect } of readers) disconnect();
    expect(new Set(await Promise.all(upstreams.map(({ closed }) => closed)))).toEqual(
      new Set(['disconnected']),
    );
    for (const { response } of readers)
      expect(await gateway.record(response)).toMatchObject({ status: 'cancelled' });
  });
});
