/** Records that reach ledger objects indirectly: through a queue, after an outage, by the daily run. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { createSimulator, type Simulator } from '../../../tools/simulator/server.ts';
import { record } from '../../metering/records.ts';
import { chat } from '../client.ts';
import { type Runtime, startWorkers, type WorkerOptions } from '../workers.ts';

const KEY = 'open';
const TODAY = new Date().toISOString().slice(0, 10);

let simulator: Simulator;
let runtime: Runtime;

/** A Worker for either store, with the queue of this name or without one. */
function workerWith(name: string, ledger: 'kv' | 'object', queue?: string): WorkerOptions {
  return {
    name,
    main: 'ledger/unreachable-ledger-worker.ts',
    vars: {
      AUTH: 'open',
      LEDGER: ledger,
      OPENAI_API_KEY: 'sim-x',
      OPENAI_BASE_URL: `${simulator.url}/openai/v1`,
    },
    ...(queue === undefined
      ? {}
      : {
          bindings: { USAGE_QUEUE: { type: 'queue', name: queue } },
          triggers: [{ type: 'queue', name: queue, maxBatchSize: 100, maxBatchTimeout: 1 }],
        }),
  };
}

beforeAll(async () => {
  simulator = await createSimulator({});
  runtime = await startWorkers({
    workers: [
      workerWith('plain', 'object'),
      workerWith('queued', 'object', 'objects'),
      workerWith('queued-kv', 'kv', 'kv'),
    ],
  });
});
afterAll(async () => {
  await runtime[Symbol.asyncDispose]();
  await simulator.close();
});

interface Bindings {
  readonly WEIR_KV: KVNamespace;
  readonly USAGE_QUEUE: Queue;
}
async function fetchOf(
  name: string,
  path: string,
  init?: { method: string; headers: Record<string, string>; body: string },
) {
  const worker = await runtime.miniflare.getWorker(name);
  return worker.fetch(`http://weir.example${path}`, init);
}
const bindingsOf = (name: string) => runtime.miniflare.getBindings<Bindings>(name);

async function runDaily(name: string): Promise<void> {
  const worker = await runtime.miniflare.getWorker(name);
  await worker.scheduled({ cron: '23 4 * * *', scheduledTime: new Date() });
}

async function send(name: string): Promise<string> {
  const response = await fetchOf(name, '/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(chat('openai/gpt-4o-mini')),
  });
  await response.text();
  expect(response.status).toBe(200);
  return textOf(response.headers.get('x-weir-request-id'));
}

async function total(name: string): Promise<JsonObject> {
  const response = await fetchOf(name, `/v1/usage?from=${TODAY}`);
  return objectOf(objectOf(decodeObject(await response.text())).total);
}

/** Reads repeatedly until the ledger has so many requests. */
async function reached(name: string, requests: number): Promise<JsonObject> {
  for (let reads = 0; reads < 1000; reads++) {
    const sums = await total(name);
    if (sums.requests === requests) return sums;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${name} never had ${requests} requests: ${JSON.stringify(await total(name))}`);
}

async function deadLetters(name: string): Promise<string[]> {
  const { WEIR_KV } = await bindingsOf(name);
  return (await WEIR_KV.list({ prefix: 'stranded/' })).keys.map((key) => key.name);
}

describe('an unreachable ledger object', () => {
  test('L5 M1 its record waits in KV, and the next settlement stores it, once', async () => {
    await fetchOf('plain', '/down');
    const id = await send('plain');
    // The gateway retries for ten seconds.
    for (let reads = 0; (await deadLetters('plain')).length === 0; reads++) {
      if (reads > 700) throw new Error('The record was never written to KV');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await deadLetters('plain')).toEqual([`stranded/${KEY}/${id}`]);
    expect((await total('plain')).requests).toBe(0);
    await fetchOf('plain', '/up');
    await send('plain');
    const { total_tokens } = await reached('plain', 2);
    const one = await fetchOf('plain', `/v1/usage/records/${id}`);
    expect(Number(total_tokens)).toBe(2 * Number(decodeObject(await one.text())?.total_tokens));
    for (let reads = 0; reads < 100 && (await deadLetters('plain')).length > 0; reads++);
    expect(await deadLetters('plain')).toEqual([]);
  });

  test('L5 records that other isolates left: the daily run stores them once, also if it is repeated', async () => {
    const { WEIR_KV } = await bindingsOf('plain');
    const before = Number((await total('plain')).requests);
    const records = Array.from({ length: 30 }, (_, n) =>
      record({ key_id: KEY, time: new Date().toISOString() }, n),
    );
    const put = () =>
      Promise.all(
        records.map((one) => WEIR_KV.put(`stranded/${KEY}/${one.request_id}`, JSON.stringify(one))),
      );
    for (let run = 0; run < 2; run++) {
      await put();
      await runDaily('plain');
      expect(await deadLetters('plain')).toEqual([]);
      expect((await total('plain')).requests).toBe(before + 30);
    }
  });
});

describe.each(['queued', 'queued-kv'])('USAGE_QUEUE (%s)', (name) => {
  test('L6 M1 each request is stored through the queue, once', async () => {
    const ids = await Promise.all(Array.from({ length: 12 }, () => send(name)));
    await reached(name, 12);
    const list = await fetchOf(name, `/v1/usage/records?from=${TODAY}`);
    const listed = objectsOf(objectOf(decodeObject(await list.text())).data).map(({ request_id }) =>
      textOf(request_id),
    );
    expect(listed).toEqual(ids.sort().reverse());
  });

  test('L6 messages that are delivered again change nothing', async () => {
    const { USAGE_QUEUE } = await bindingsOf(name);
    const before = Number((await total(name)).requests);
    const records = Array.from({ length: 100 }, (_, n) =>
      record({ key_id: KEY, time: new Date().toISOString() }, n),
    );
    const messages = records.map((body) => ({ body, contentType: 'json' as const }));
    await USAGE_QUEUE.sendBatch(messages);
    await USAGE_QUEUE.sendBatch(messages);
    await reached(name, before + 100);
    // A further message shows that they are processed.
    await USAGE_QUEUE.send(record({ key_id: KEY, time: new Date().toISOString() }, 500), {
      contentType: 'json',
    });
    const { total_tokens } = await reached(name, before + 101);
    expect(Number(total_tokens) - 15 * 101).toBeGreaterThan(0);
  });
});

test('L5 L6 an unreachable ledger object with a queue: the records wait in KV', async () => {
  await fetchOf('queued', '/down');
  await send('queued');
  for (let reads = 0; (await deadLetters('queued')).length === 0; reads++) {
    if (reads > 700) throw new Error('The record was never written to KV');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await fetchOf('queued', '/up');
  const before = Number((await total('queued')).requests);
  await runDaily('queued');
  expect((await total('queued')).requests).toBe(before + 1);
});
