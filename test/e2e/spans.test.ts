/** Tests the spans that the runtime records, as a tail Worker receives them (W4). */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { basePaths } from '../../tools/simulator/scenes.ts';
import { createSimulator, type Simulator } from '../../tools/simulator/server.ts';
import { startKv } from '../hostile/harness/kv.ts';
import { startWorkerd, type Workerd } from '../hostile/harness/workerd.ts';
import { streamedChat } from './client.ts';
import { CREDENTIALS } from './gateway.ts';
import { CLOCKS_OFF, event, replayOf, type Scenario } from './scenarios.ts';
import { writeBundle } from './workers.ts';

const GOOD = 'mistral/mistral-small-latest';
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  busy: { status: 503, chunks: ['{"error":{"message":"no"}}'] },
  'words-then-nothing': { chunks: [event('word ')], ending: 'hang' },
};

/** Logs each event with its span. The runtime's own numbers are big integers. */
const TAIL = `
const plain = (_, value) => (typeof value === 'bigint' ? Number(value) : value);
const log = ({ event, spanContext }) =>
  console.log(JSON.stringify({ traced: event, span: spanContext.spanId }, plain));
export default { tailStream: (onset) => (log(onset), log) };
`;
const POLL_MS = 10;

let simulator: Simulator;
let workerd: Workerd;

beforeAll(async () => {
  simulator = await createSimulator({ replay: replayOf(SCENARIOS) });
  const [bundle, kv] = await Promise.all([writeBundle('spans'), startKv()]);
  const base = (provider: 'openai' | 'mistral') => simulator.url + basePaths[provider];
  const vars = {
    ...CLOCKS_OFF,
    // workerd detects a disconnected client at a write.
    HEARTBEAT_SECONDS: '0.3',
    AUTH: 'open',
    RETRIES: '0',
    OPENAI_API_KEY: CREDENTIALS.OPENAI_API_KEY,
    OPENAI_BASE_URL: base('openai'),
    MISTRAL_API_KEY: CREDENTIALS.MISTRAL_API_KEY,
    MISTRAL_BASE_URL: base('mistral'),
  };
  workerd = await startWorkerd({ bundle, kvPort: kv.port, vars, tail: TAIL });
});
afterAll(async () => {
  await workerd.stop();
  await simulator.close();
});

interface Traced {
  readonly name: string;
  readonly parent: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly hasError: boolean;
}

/** The closed spans by id. */
function closedSpans(): Map<string, Traced> {
  const events = workerd.logged.flatMap(({ traced, span }) =>
    traced ? [{ ...objectOf(traced), span }] : [],
  );
  const of = (id: unknown, type: string) =>
    events.filter((one: JsonObject) => one.type === type && one.span === id);
  const spans = new Map<string, Traced>();
  for (const opened of events as JsonObject[]) {
    const { type, name, spanId, span } = opened;
    if (type !== 'spanOpen' || of(spanId, 'spanClose').length !== 1) continue;
    const attributes = of(spanId, 'attributes').flatMap(({ info }: JsonObject) => objectsOf(info));
    spans.set(textOf(spanId), {
      name: textOf(name),
      parent: textOf(span),
      attributes: Object.fromEntries(attributes.map(({ name: key, value }) => [textOf(key), value])),
      hasError: of(spanId, 'spanUpdate').length > 0,
    });
  }
  return spans;
}

/** The closed request span of this name, its attempts, and the names of their calls. */
async function treeOf(name: string) {
  for (;;) {
    const spans = closedSpans();
    const below = (id: string) => [...spans].filter(([, { parent }]) => parent === id);
    for (const [id, span] of spans) {
      if (span.name !== name || spans.has(span.parent)) continue;
      const targets = below(id).filter(([, { attributes }]) => 'gen_ai.operation.name' in attributes);
      const attempts = targets.map(([attempt, own]) => ({
        ...own,
        calls: below(attempt).map(([, call]) => call.name),
      }));
      return { ...span, attempts };
    }
    await setTimeout(POLL_MS);
  }
}

function post(body: JsonObject, signal?: AbortSignal): Promise<Response> {
  return fetch(`http://127.0.0.1:${workerd.port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

test('W4 a stream with a fallback: a span for the request, below it one for each attempt, below that the fetch', async () => {
  const response = await post(streamedChat('openai/busy', { models: [GOOD] }));
  await response.text();
  const { attributes, attempts, hasError } = await treeOf('chat openai/busy');
  expect(hasError).toBe(false);
  expect(attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'mistral_ai',
    'gen_ai.request.stream': true,
    'weir.request_id': response.headers.get('x-request-id'),
    'weir.status': 'finished',
  });
  expect(attributes['gen_ai.usage.output_tokens']).toBeGreaterThan(0);
  expect(attempts).toMatchObject([
    { name: 'chat busy', hasError: true, attributes: { 'http.response.status_code': 503 }, calls: ['fetch'] },
    { name: 'chat mistral-small-latest', hasError: false, calls: ['fetch'] },
  ]);
  expect(JSON.stringify([attributes, attempts])).not.toContain('Hello there');
});

test('W4 T4 a client that disconnects: both spans end', async () => {
  const leaving = new AbortController();
  const response = await post(streamedChat('openai/words-then-nothing'), leaving.signal);
  await response.body?.getReader().read();
  leaving.abort();
  const { attributes, attempts } = await treeOf('chat openai/words-then-nothing');
  expect(attributes['weir.status']).toBe('cancelled');
  expect(attempts.map(({ name }) => name)).toEqual(['chat words-then-nothing']);
});
