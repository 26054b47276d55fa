/** Tests slow readers of each protocol in workerd: the upstream waits for them, and nothing is buffered or lost (T5, T1, B1). */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { residentBytes, workerdIds } from './processes.ts';
import { PROTOCOL_CLIENTS, type ProtocolClient, scenariosOf } from './protocol-clients.ts';
import { CLOCKS_OFF, many, replayOf } from './scenarios.ts';

const MIB = 1024 * 1024;
/** The minimal size of the complete stream. */
const FLOOD_BYTES = 160 * MIB;
/**
 * The kernel's buffers of both connections hold part of a flood. On Linux each receive buffer can grow to 32 MiB and each
 * send buffer to 4 MiB (`tcp_rmem`, `tcp_wmem`), independent of the processes.
 */
const MAX_HELD_BYTES = 80 * MIB;
/** The allowed growth of workerd for each stream. */
const MAX_GROWN_BYTES = 16 * MIB;
const SLOW_READERS = 20;
const SAMPLE_MS = 100;
const STOPPED_MS = 1000;
const IDLE_SECONDS = 4;

/** Consecutive numbers that restart. A client must receive each after the previous one. */
const NUMBERS = Array.from({ length: 100 }, (_, number) => `${number} `);
const SMALLEST_EVENT_BYTES = 80;
const FLOOD = many(NUMBERS, FLOOD_BYTES / (NUMBERS.length * SMALLEST_EVENT_BYTES));

/** Each takes memory while it is read and sent: three streams take nearly all. */
const LARGE_EVENT = `data: {"choices":[{"index":0,"delta":{"content":"${'x'.repeat(600_000)}"}}]}\n\n`;
const LARGE_EVENTS = 150;
const STALLED_READERS = 3;

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({
    vars: { ...CLOCKS_OFF, HEARTBEAT_SECONDS: '0.5', IDLE_TIMEOUT_SECONDS: String(IDLE_SECONDS) },
    replay: replayOf({ ...scenariosOf('flood', FLOOD), large: { chunks: many(LARGE_EVENT, LARGE_EVENTS) } }),
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** Opens a flood and reads a little of it. */
async function open({ path, body, upstream, word }: ProtocolClient) {
  const client = new AbortController();
  const response = await gateway.post(path, body(`flood-${upstream}`), { signal: client.signal });
  const reader = response.body?.getReader();
  const chunks: Uint8Array[] = [];
  async function readBytes(count: number): Promise<void> {
    for (let read = 0; read < count; ) {
      const { value = new Uint8Array() } = (await reader?.read()) ?? {};
      expect(value.length).toBeGreaterThan(0);
      chunks.push(value);
      read += value.length;
    }
  }
  const text = () => Buffer.concat(chunks).toString();
  while (text().match(word) === null) await readBytes(1);
  return {
    response,
    readBytes,
    text,
    disconnect: () => client.abort(),
  };
}

/** Resolves with the total bytes sent after the upstreams have stopped for this time. */
async function untilStopped(upstreams: readonly RecordedRequest[], stoppedMs = STOPPED_MS): Promise<number> {
  let sent = 0;
  for (let equalMs = 0; equalMs < stoppedMs; ) {
    const now = upstreams.reduce((sum, { bytesSent }) => sum + bytesSent, 0);
    equalMs = now === sent ? equalMs + SAMPLE_MS : 0;
    sent = now;
    await setTimeout(SAMPLE_MS);
  }
  return sent;
}

describe.each(PROTOCOL_CLIENTS)('T5 a client of $name', (protocol) => {
  test('T1 T2 that stops reading: the upstream stops, waits longer than any timeout, and continues when the client does, without a gap', async () => {
    const requestCount = gateway.simulator.requests.length;
    const { response, readBytes, text, disconnect } = await open(protocol);
    const upstream = await gateway.simulator.request(requestCount);
    const held = await untilStopped([upstream], IDLE_SECONDS * 1000 + STOPPED_MS);
    expect(held).toBeLessThan(MAX_HELD_BYTES);
    // The client causes this pause, not the upstream, so it doesn't trigger the idle timeout.
    await readBytes(2 * held + MIB);
    expect(upstream.bytesSent).toBeGreaterThan(held);
    // The upstream runs in this process, and is silent while the test inspects the stream.
    disconnect();
    expect(await upstream.closed).toBe('disconnected');
    const stream = text();
    expect(/"error":[^n]/.test(stream)).toBe(false);
    const words = Array.from(stream.matchAll(protocol.word), ([, word]) => word);
    expect(words.length).toBeGreaterThan(NUMBERS.length);
    expect(words.findIndex((word, at) => word !== NUMBERS[at % NUMBERS.length])).toBe(-1);
    // No heartbeats are queued while the client doesn't read. One may have been in transit. Those before the first output don't count:
    // the first request to a new Worker can wait for it for several heartbeats.
    const sinceOutput = stream.slice(stream.search(protocol.word));
    expect(sinceOutput.split(protocol.heartbeat).length - 1).toBeLessThanOrEqual(1);
    const record = await gateway.record(response);
    expect(record).toMatchObject({ status: 'cancelled', client: protocol.client });
    expect(record.completion_tokens).toBeGreaterThan(0);
  });

  test(`B1 ${SLOW_READERS} that stop reading: every upstream stops, and workerd's memory stays far below the size of the streams`, async () => {
    const workerd = workerdIds();
    expect(workerd.length).toBeGreaterThan(0);
    const before = residentBytes(workerd);
    const requestCount = gateway.simulator.requests.length;
    const readers = await Promise.all(Array.from({ length: SLOW_READERS }, () => open(protocol)));
    const upstreams = gateway.simulator.requests.slice(requestCount);
    expect(upstreams).toHaveLength(SLOW_READERS);
    const held = await untilStopped(upstreams);
    expect(held).toBeLessThan(SLOW_READERS * MAX_HELD_BYTES);
    const grown = residentBytes(workerd) - before;
    expect(grown).toBeLessThan(SLOW_READERS * MAX_GROWN_BYTES);
    // Memory does not grow while the upstreams are stopped.
    const stopped = residentBytes(workerd);
    await untilStopped(upstreams);
    expect(residentBytes(workerd) - stopped).toBeLessThan((SLOW_READERS * FLOOD_BYTES) / 40);
    for (const { disconnect } of readers) disconnect();
    expect(new Set(await Promise.all(upstreams.map(({ closed }) => closed)))).toEqual(
      new Set(['disconnected']),
    );
    for (const { response } of readers)
      expect(await gateway.record(response)).toMatchObject({ status: 'cancelled' });
  });
});

test(`B3 ${STALLED_READERS} that stop reading large events: another request gets their memory within 10 s, and one of them loses its stream`, async () => {
  const requestCount = gateway.simulator.requests.length;
  const ask = { model: 'openai/large', messages: [{ role: 'user', content: 'Hi' }], stream: true };
  const stalled = await Promise.all(
    Array.from({ length: STALLED_READERS }, async () => {
      const client = new AbortController();
      const response = await gateway.post('/v1/chat/completions', ask, { signal: client.signal });
      return { response, client };
    }),
  );
  await untilStopped(gateway.simulator.requests.slice(requestCount));
  const content = 'a longer question '.repeat(200_000);
  const other = await gateway.post('/v1/chat/completions', {
    model: 'openai/gpt-4o-mini',
    messages: [{ role: 'user', content }],
  });
  expect(other.status).toBe(200);
  await other.text();
  for (const { client } of stalled) client.abort();
  const records = await Promise.all(stalled.map(({ response }) => gateway.record(response)));
  expect(records.map(({ error_code }) => error_code).sort()).toEqual([null, null, 'overloaded']);
  expect(gateway.logs().filter((line) => /uncaught|exception/i.test(line))).toEqual([]);
});
