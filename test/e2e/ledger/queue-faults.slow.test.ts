/**
 * The queue and the dead letters end to end under faults (L5, L6, L10, M1): whatever fails, each request is counted
 * once, and none is lost.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { createSimulator, type Simulator } from '../../../tools/simulator/server.ts';
import { chat } from '../client.ts';
import { ADMIN_TOKEN } from '../gateway.ts';
import { type Runtime, startWorkers, type WorkerOptions } from '../workers.ts';

const REQUESTS = 8;
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const TODAY = new Date().toISOString().slice(0, 10);

let simulator: Simulator;
let runtime: Runtime;
const lost: string[] = [];

function workerOf(ledger: 'kv' | 'object'): WorkerOptions {
  const queue = `queue-${ledger}`;
  return {
    name: ledger,
    main: 'ledger/queue-faults-worker.ts',
    vars: {
      AUTH: 'keys',
      ADMIN_TOKEN,
      LEDGER: ledger,
      OPENAI_API_KEY: 'sim-x',
      OPENAI_BASE_URL: `${simulator.url}/openai/v1`,
    },
    bindings: { USAGE_QUEUE: { type: 'queue', name: queue } },
    triggers: [{ type: 'queue', name: queue, maxBatchSize: 100, maxBatchTimeout: 1, maxRetries: 100 }],
  };
}

beforeAll(async () => {
  simulator = await createSimulator({});
  runtime = await startWorkers({
    workers: [workerOf('object'), workerOf('kv')],
    onLog: (line) => {
      if (decodeObject(line)?.event === 'record_lost') lost.push(line);
    },
  });
});
afterAll(async () => {
  await runtime[Symbol.asyncDispose]();
  await simulator.close();
});

class Deployment {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  async call(method: string, path: string, headers: Record<string, string>, body?: JsonObject) {
    const worker = await runtime.miniflare.getWorker(this.#name);
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await worker.fetch(`http://weir.example${path}`, init);
    const text = await response.text();
    const id = textOf(response.headers.get('x-weir-request-id'));
    return { status: response.status, id, json: decodeObject(text) ?? {} };
  }

  faults(query: string) {
    return this.call('POST', `/test/faults?${query}`, {});
  }

  /** Each part has met its fault, and some part that is broken by `half`. Where calls fail, the next sink has been tried. */
  async hasMet(query: string): Promise<boolean> {
    const { json } = await this.call('GET', '/test/met', {});
    const [met, calls] = [objectOf(json.met), objectOf(json.calls)];
    const parts = [...new URLSearchParams(query)];
    const halves = parts.filter(([, fault]) => fault === 'half');
    const others = parts.filter(([, fault]) => fault !== 'half');
    const next = others.flatMap(([part, fault]) => (fault === 'down' ? this.#sinkAfter(part, query) : []));
    return (
      (halves.length === 0 || halves.some(([part]) => Number(met[part]) > 0)) &&
      others.every(([part]) => Number(met[part]) > 0) &&
      next.every((part) => Number(calls[part]) > 0)
    );
  }

  #sinkAfter(part: string, query: string): readonly string[] {
    if (this.#name === 'object') return part === 'queue' ? ['ledger'] : part === 'ledger' ? ['letters'] : [];
    // The ledger object takes charges alone. They are tried for 7.5 s, less than the queue; then a reservation is charged in full.
    return part === 'queue' && !query.includes('ledger=') ? ['letters'] : [];
  }

  async daily(): Promise<void> {
    const worker = await runtime.miniflare.getWorker(this.#name);
    await worker.scheduled({ cron: '23 4 * * *', scheduledTime: new Date() });
  }

  async waiting(): Promise<number> {
    const { WEIR_KV } = await runtime.miniflare.getBindings<{ readonly WEIR_KV: KVNamespace }>(this.#name);
    return (await WEIR_KV.list({ prefix: 'stranded/' })).keys.length;
  }
}

describe.each(['object', 'kv'])('LEDGER=%s', (name) => {
  const deployment = new Deployment(name);

  test.each([
    'queue=down',
    'queue=lost',
    'queue=twice',
    'queue=half',
    'ledger=down',
    'ledger=lost',
    'ledger=half&queue=twice',
    'ledger=down&queue=down',
    'ledger=down&letters=down',
    'ledger=lost&letters=lost',
    'consumer=down',
    'consumer=lost',
    'consumer=half&ledger=half&queue=half&letters=half',
  ])('L5 L6 M1 %s, then all is well again: each request is counted once', (faults) =>
    countsOnce(deployment, faults),
  );
});

test.each([
  'queue=down',
  'ledger=down',
  'ledger=lost',
  'ledger=down&queue=down',
  'consumer=half&ledger=half&queue=half&letters=half',
])('L10 %s, and the key is spread over shards: each request is counted once', (faults) =>
  countsOnce(new Deployment('object'), faults, true),
);

/** @param isSpread requests come from two continents */
async function countsOnce(deployment: Deployment, faults: string, isSpread = false): Promise<void> {
  lost.length = 0;
  const made = await deployment.call('POST', '/admin/keys', ADMIN, {
    name: faults,
    budget: { tokens: 1_000_000, per: 'total', mode: 'hard' },
  });
  const keyId = textOf(made.json.id);
  const key = { authorization: `Bearer ${textOf(made.json.key)}` };
  const ask = (_: unknown, i: number) => {
    const from = isSpread ? { 'x-test-continent': i % 2 === 0 ? 'EU' : 'NA' } : {};
    return deployment.call('POST', '/v1/chat/completions', { ...key, ...from }, chat('openai/gpt-4o-mini'));
  };
  // More than six a minute from each.
  const before = await Promise.all(Array.from({ length: isSpread ? 2 * REQUESTS : 0 }, ask));
  const { json: shown } = await deployment.call('GET', `/admin/keys/${keyId}`, ADMIN);
  expect(shown.shards).toEqual(isSpread ? { EU: 1, NA: 1 } : undefined);
  await deployment.faults(faults);
  const during = await Promise.all(Array.from({ length: REQUESTS }, ask));
  const asked = [...before, ...during];
  expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 200));
  await expect.poll(() => deployment.hasMet(faults)).toBe(true);
  await deployment.faults('');
  const list = async () => {
    const { json } = await deployment.call('GET', `/v1/usage/records?from=${TODAY}&key=${keyId}`, ADMIN);
    return objectsOf(json.data);
  };
  await expect
    .poll(
      async () => {
        await deployment.daily();
        return (await list()).length;
      },
      { interval: 500 },
    )
    .toBe(asked.length);
  await expect.poll(() => deployment.waiting()).toBe(0);
  const records = await list();
  expect(records.map(({ request_id }) => request_id).sort()).toEqual(asked.map(({ id }) => id).sort());
  const tokens = records.reduce((sum, { total_tokens }) => sum + Number(total_tokens), 0);
  const { json } = await deployment.call('GET', `/v1/usage?from=${TODAY}&key=${keyId}`, ADMIN);
  expect(objectOf(json.total)).toMatchObject({ requests: asked.length, total_tokens: tokens });
  const spent = async () => {
    const { json: now } = await deployment.call('GET', `/admin/keys/${keyId}`, ADMIN);
    return objectOf(now.budget);
  };
  await expect.poll(async () => (await spent()).spent).toBe(tokens);
  expect(lost).toEqual([]);
}
