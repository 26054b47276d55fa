/** Tests clients that disconnect in every phase, in workerd: the upstream is cancelled, and one record is written (T4, M1, M3). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RecordSummary } from '../../src/metering/record.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import { chat, streamedChat } from './client.ts';
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts';
import { PROTOCOL_CLIENTS, scenariosOf } from './protocol-clients.ts';
import { CLOCKS_OFF, many, replayOf, type Scenario } from './scenarios.ts';

const CHAT = '/v1/chat/completions';
const WORD = ['word '];

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  ...scenariosOf('words-for-ever', many(WORD, 4000), { gapMs: 10 }),
  ...scenariosOf('words-then-nothing', many(WORD, 5), { ending: 'hang' }),
  silent: { chunks: [], ending: 'hang' },
  'vectors-then-nothing': {
    chunks: [`{"data":[{"embedding":[${'0.125,'.repeat(2000)}`],
    ending: 'hang',
  },
  'comments-then-nothing': { chunks: many(': waiting\n\n', 5), ending: 'hang' },
};

let gateway: Gateway;

function setUp(options: GatewayOptions): void {
  beforeAll(async () => {
    const vars = { ...CLOCKS_OFF, HEARTBEAT_SECONDS: '0.3', ...options.vars };
    gateway = await startGateway({ pace: 10, replay: replayOf(SCENARIOS), ...options, vars });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());
}

interface Exchange {
  readonly answer: Promise<Response>;
  readonly upstream: RecordedRequest;
  readonly disconnect: () => void;
}

/** Sends a request; resolves when it has reached the upstream. */
async function ask(body: JsonObject, path = CHAT): Promise<Exchange> {
  const requestCount = gateway.simulator.requests.length;
  const client = new AbortController();
  // The development server compresses JSON, and a compressor holds small pieces back.
  const headers = { 'accept-encoding': 'identity' };
  const answer = gateway.post(path, body, { signal: client.signal, headers });
  // A client that disconnects before the head gets no response.
  answer.catch(() => undefined);
  return {
    answer,
    upstream: await gateway.simulator.request(requestCount),
    disconnect: () => client.abort(),
  };
}

/** Reads a stream the given number of times. */
async function read(response: Response, reads: number): Promise<string> {
  const reader = response.body?.getReader();
  let text = '';
  for (let read = 0; read < reads; read++)
    text += Buffer.from((await reader?.read())?.value ?? []).toString();
  reader?.releaseLock();
  return text;
}

/** The only record of the newest request. A later request's record shows that no second one follows. */
async function onlyRecord(): Promise<RecordSummary> {
  const count = gateway.simulator.requests.length;
  const records = await gateway.records(count);
  const newest = records.sort((a, b) => a.time.localeCompare(b.time)).at(-1);
  const later = await gateway.post(CHAT, chat('deepseek/deepseek-chat'));
  await later.text();
  await gateway.record(later);
  expect(await gateway.records(count + 1)).toHaveLength(count + 1);
  expect(gateway.logs().filter((line) => line.includes(newest?.request_id ?? '?'))).toHaveLength(1);
  if (newest === undefined) throw new Error('The record is missing');
  return newest;
}

/** Whether all words came, and a heartbeat after them. */
function isStalled(text: string, words: number): boolean {
  const pieces = text.split('"content":"').length - 1;
  return pieces >= words && text.lastIndexOf(': heartbeat') > text.lastIndexOf('data: ');
}

describe('T4: heartbeats of 0.3 s and no timeout', () => {
  setUp({});

  test.each([
    'deepseek/deepseek-chat:hang',
    'deepseek/deepseek-chat:stall-head',
    'openai/comments-then-nothing',
  ])(
    'M1 %s: a client that disconnects before the head: upstream cancelled, one record, cancelled',
    async (model) => {
      const { upstream, disconnect } = await ask(streamedChat(model));
      disconnect();
      expect(await upstream.closed).toBe('disconnected');
      const record = await onlyRecord();
      expect(record).toMatchObject({ status: 'cancelled', error_code: null, completion_tokens: 0 });
      expect(record.estimated).toBe(true);
      expect(record.prompt_tokens).toBeGreaterThan(0);
      expect(record.total_tokens).toBe(record.prompt_tokens);
    },
  );

  test.each([
    ['openai/words-then-nothing-chat', 5],
    ['deepseek/deepseek-chat:stall-mid', 8],
  ])(
    'M3 %s: a client that disconnects from a stalled stream is detected at a heartbeat',
    async (model, words) => {
      const { answer, upstream, disconnect } = await ask(streamedChat(model));
      const response = await answer;
      // On a slow machine a heartbeat comes between the words, too.
      for (let text = ''; !isStalled(text, words); ) text += await read(response, 1);
      disconnect();
      expect(await upstream.closed).toBe('disconnected');
      const record = await onlyRecord();
      expect(record).toMatchObject({ status: 'cancelled', estimated: true });
      expect(record.completion_tokens).toBeGreaterThanOrEqual(words);
      expect(record.completion_tokens).toBeLessThan(words * 2);
    },
  );

  describe.each(PROTOCOL_CLIENTS)(
    'a client of $name',
    ({ client, path, body, upstream: upstreamName, word, heartbeat }) => {
      const countWords = (text: string) => text.match(word)?.length ?? 0;

      test('M1 that disconnects before the head: upstream cancelled, one record, cancelled', async () => {
        const { upstream, disconnect } = await ask(body('silent'), path);
        disconnect();
        expect(await upstream.closed).toBe('disconnected');
        const record = await onlyRecord();
        expect(record).toMatchObject({ status: 'cancelled', error_code: null, client, completion_tokens: 0 });
        expect(record.estimated).toBe(true);
        expect(record.prompt_tokens).toBeGreaterThan(0);
      });

      test('M3 that disconnects midway: upstream cancelled, one record with the tokens that were forwarded', async () => {
        const { answer, upstream, disconnect } = await ask(body(`words-for-ever-${upstreamName}`), path);
        const response = await answer;
        let text = '';
        while (countWords(text) < 8) text += await read(response, 1);
        disconnect();
        expect(await upstream.closed).toBe('disconnected');
        const record = await onlyRecord();
        expect(record).toMatchObject({ status: 'cancelled', error_code: null, finish_reason: null, client });
        expect(record.completion_tokens).toBeGreaterThanOrEqual(countWords(text));
        expect(record.bytes_out).toBeGreaterThanOrEqual(text.length);
        expect(record.estimated).toBe(true);
      });

      test('M3 that disconnects from a stalled stream: detected at a heartbeat', async () => {
        const { answer, upstream, disconnect } = await ask(body(`words-then-nothing-${upstreamName}`), path);
        const response = await answer;
        let text = '';
        while (countWords(text) < 5) text += await read(response, 1);
        while (!text.includes(heartbeat)) text += await read(response, 1);
        disconnect();
        expect(await upstream.closed).toBe('disconnected');
        const record = await onlyRecord();
        expect(record).toMatchObject({ status: 'cancelled', estimated: true, client });
        expect(record.completion_tokens).toBeGreaterThanOrEqual(5);
        expect(record.completion_tokens).toBeLessThan(10);
      });
    },
  );

  test('a client that reads to the end and closes: the record is finished, not cancelled', async () => {
    const { answer, disconnect } = await ask(streamedChat('deepseek/deepseek-chat'));
    const response = await answer;
    await response.text();
    disconnect();
    expect(await onlyRecord()).toMatchObject({ status: 'finished', estimated: false });
  });

  test('many that disconnect at once: one record each, all cancelled, all upstreams cancelled', async () => {
    const before = gateway.simulator.requests.length;
    const clients = many('openai/words-for-ever-chat', 25).map((model) => {
      const client = new AbortController();
      return { client, answer: gateway.post(CHAT, streamedChat(model), { signal: client.signal }) };
    });
    const disconnected = clients.map(async ({ client, answer }) => {
      const response = await answer;
      for (let text = ''; !text.includes('word '); ) text += await read(response, 1);
      client.abort();
      return response.headers.get('x-weir-request-id');
    });
    const ids = await Promise.all(disconnected);
    const upstreams = gateway.simulator.requests.slice(before);
    expect(upstreams).toHaveLength(clients.length);
    expect(new Set(await Promise.all(upstreams.map(({ closed }) => closed)))).toEqual(
      new Set(['disconnected']),
    );
    const records = await gateway.records(before + clients.length);
    const cancelled = records.filter(({ request_id }) => ids.includes(request_id));
    expect(cancelled.map(({ status }) => status)).toEqual(many('cancelled', clients.length));
    const lines = gateway.logs().filter((line) => line.includes('"event":"request"'));
    expect(records).toHaveLength(lines.length);
  });
});

describe('T4: a deadline of 1.5 s', () => {
  setUp({ vars: { DEADLINE_SECONDS: '1.5' } });

  test.each(['hang', 'stall-head', 'stall-mid'])(
    // workerd detects a disconnect on the next write, and a non-streaming response has none before its end.
    'M1 a non-streaming request, %s: the client disconnects: upstream cancelled by the deadline at the latest, one record',
    async (fault) => {
      const { upstream, disconnect } = await ask(chat(`deepseek/deepseek-chat:${fault}`));
      disconnect();
      expect(await upstream.closed).toBe('disconnected');
      const record = await onlyRecord();
      expect(['cancelled', 'timed_out']).toContain(record.status);
      expect(record.estimated).toBe(true);
      expect(record.prompt_tokens).toBeGreaterThan(0);
    },
  );

  test.each(['silent', 'vectors-then-nothing'])('J1 M1 embeddings, %s: the same', async (model) => {
    const body = { model: `openai/${model}`, input: 'two words' };
    const { answer, upstream, disconnect } = await ask(body, '/v1/embeddings');
    if (model !== 'silent') await answer;
    disconnect();
    expect(await upstream.closed).toBe('disconnected');
    const record = await onlyRecord();
    expect(['cancelled', 'timed_out']).toContain(record.status);
    expect(record).toMatchObject({ route: 'embeddings', estimated: true, completion_tokens: 0 });
  });
});

describe.each([
  ['takes 1.5 s for each write', { KV_DELAY_MS: '1500' }, 1],
  ['fails two writes of each record', { KV_REFUSALS: '2' }, 3],
] as const)('T4 M1: a KV that %s', (_, vars, tries) => {
  setUp({ vars, entrypoint: 'bad-kv-worker.ts' });

  test('a client that disconnects midway: its record is still written, once', async () => {
    const { answer, upstream, disconnect } = await ask(streamedChat('openai/words-for-ever-chat'));
    const response = await answer;
    await read(response, 3);
    disconnect();
    expect(await upstream.closed).toBe('disconnected');
    await gateway.logged((lines) => lines.some((line) => line.event === 'stored'));
    const record = await gateway.record(response);
    expect(record).toMatchObject({ status: 'cancelled', estimated: true });
    const stored = gateway.logs().filter((line) => line.includes('"stored"'));
    expect(stored).toHaveLength(1);
    expect(stored[0]).toContain(`"tries":${tries}`);
    expect(await gateway.entries('usage/')).toHaveLength(1);
    expect(gateway.logs().some((line) => line.includes('record_lost'))).toBe(false);
  });
});
