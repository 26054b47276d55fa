/** Clients that stop reading, under real workerd: the upstream waits for them, and nothing is collected meanwhile (T5, T1, B1). */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RecordedRequest } from '../simulator/server.ts';
import { streamedChat } from './client.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { CLOCKS_OFF } from './plays.ts';
import { residentBytes, workerdIds } from './processes.ts';

const CHAT = '/v1/chat/completions';
const MIB = 1024 * 1024;
/** What the simulator would send to a client that takes it all. */
const FLOOD_BYTES = 64 * MIB;
/** Sockets on the way may hold some of a flood: four of them, with a few MiB each at most. */
const MAX_HELD_BYTES = 24 * MIB;
const DAWDLERS = 20;
/** A look a tenth of a second: so many alike mean that the upstream stands still. */
const LOOKS_ALIKE = 10;

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
  return { response, reader, leave: () => client.abort() };
}

/** Resolves with what was sent in all, once the upstreams have stood still for a second. */
async function standstill(upstreams: readonly RecordedRequest[]): Promise<number> {
  let sent = 0;
  for (let alike = 0; alike < LOOKS_ALIKE; ) {
    const now = upstreams.reduce((sum, { bytesSent }) => sum + bytesSent, 0);
    alike = now === sent ? alike + 1 : 0;
    sent = now;
    await setTimeout(100);
  }
  return sent;
}

describe('T5', () => {
  test('T1 T2 a client that stops reading: the upstream stops, waits longer than any timeout, and goes on with it', async () => {
    const asked = gateway.simulator.requests.length;
    const { response, reader, leave } = await open();
    const upstream = await gateway.simulator.request(asked);
    const held = await standstill([upstream]);
    expect(held).toBeLessThan(MAX_HELD_BYTES);
    // The silence is the client's, not the upstream's: it outlasts the idle timeout and is none.
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
    // None was collected while the client did not read: one may have been on its way.
    expect(text.split(': heartbeat\\n\\n').length - 1).toBeLessThanOrEqual(1);
    leave();
    expect(await upstream.closed).toBe('client-left');
    expect(await gateway.record(response)).toMatchObject({ status: 'cancelled' });
  });

  test(`B1 ${DAWDLERS} clients that stop reading: every upstream stops, and workerd's memory is far below what they would send`, async () => {
    const workerd = workerdIds();
    expect(workerd.length).toBeGreaterThan(0);
    const before = residentBytes(workerd);
    const asked = gateway.simulator.requests.length;
    const dawdlers = await Promise.all(Array.from({ length: DAWDLERS }, open));
    const upstreams = gateway.simulator.requests.slice(asked);
    expect(upstreams).toHaveLength(DAWDLERS);
    const held = await standstill(upstreams);
    expect(held).toBeLessThan(DAWDLERS * MAX_HELD_BYTES);
    const grown = residentBytes(workerd) - before;
    expect(grown).toBeLessThan((DAWDLERS * FLOOD_BYTES) / 4);
    // Standing still costs nothing: what is held does not grow with the time for which it is.
    const standing = residentBytes(workerd);
    await standstill(upstreams);
    expect(residentBytes(workerd) - standing).toBeLessThan(16 * MIB);
    for (const { leave } of dawdlers) leave();
    expect(new Set(await Promise.all(upstreams.map(({ closed }) => closed)))).toEqual(
      new Set(['client-left']),
    );
    for (const { response } of dawdlers)
      expect(await gateway.record(response)).toMatchObject({ status: 'cancelled' });
  });
});
