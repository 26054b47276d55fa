/**
 * Streams that their client leaves, that their provider breaks, or that Weir ends, under running budgets: what is charged is never below
 * what a provider that stops has billed, and at most a tenth more, or what was reserved.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { PROFILES } from '../../src/providers/index.ts';
import { decodeObject, type JsonObject, objectOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';
import './upstreams.ts';

type Api = 'chat' | 'messages' | 'responses' | 'gemini';
type End = 'cancelled' | 'broken' | 'ended';

/** What a provider counts of one request. */
interface Prompt {
  readonly plain: number;
  readonly read: number;
  readonly written: number;
  /** Of these, for an hour. */
  readonly long: number;
  readonly searches: number;
}

/** USD a million tokens, and for a thousand searches. */
interface Rates {
  readonly input: number;
  readonly read: number;
  readonly write: number;
  readonly long: number;
  readonly output: number;
  readonly search: number;
}

const OWN: Rates = { input: 2, read: 0.2, write: 2.5, long: 4, output: 10, search: 10 };
const MODELS: Readonly<Record<Api, string>> = {
  chat: 'own/m',
  messages: 'anthropic/claude-sonnet-4-5',
  responses: 'openai/gpt-4.1',
  gemini: 'gemini/gemini-2.5-flash',
};
const ENV = {
  ANTHROPIC_API_KEY: 'k',
  GEMINI_API_KEY: 'k',
  RETRIES: '0',
  HEARTBEAT_SECONDS: '0',
  PROVIDERS: JSON.stringify({
    own: { base_url: 'https://own.example/v1' },
    router: { base_url: 'https://router.example/v1', like: 'openrouter' },
    says: { base_url: 'https://says.example/v1', stops_on_close: false },
  }),
  PRICES: JSON.stringify(
    ['own', 'anthropic', 'openai', 'gemini', 'router', 'says'].map((provider) => ({
      ...{ provider, models: ['*'], since: '2026-01-01', currency: 'USD', input: OWN.input },
      ...{ cached_input: OWN.read, cache_write: OWN.write, cache_write_long: OWN.long },
      ...{ output: OWN.output, web_search: OWN.search },
    })),
  ),
};
/** Tokens that a search adds to a prompt. */
const SEARCHED = 3000;
const WORDS = 50;
const TEXT = 'token '.repeat(WORDS);
const encoder = new TextEncoder();

function billed({ plain, read, written, long, searches }: Prompt, output: number): number {
  const input = plain + searches * SEARCHED;
  const short = written - long;
  const perMillion =
    input * OWN.input + read * OWN.read + short * OWN.write + long * OWN.long + output * OWN.output;
  return perMillion / 1e6 + (searches * OWN.search) / 1000;
}

function data(event: JsonObject): string {
  const name = typeof event.type === 'string' ? `event: ${event.type}\n` : '';
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

const chunk = (delta: JsonObject, finish: string | null = null, more: JsonObject = {}) =>
  data({
    ...{ id: 'c', object: 'chat.completion.chunk', model: 'm' },
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  });

/** The beginning, the events of a search, a text, and the end, whose usage is not reported before it. */
interface Script {
  readonly start: (prompt: Prompt) => string;
  readonly search: (at: number) => string;
  readonly text: (prompt: Prompt, written: number) => string;
}

const SCRIPTS: Readonly<Record<Api, Script>> = {
  chat: {
    start: () => chunk({ role: 'assistant', content: '' }),
    search: () => '',
    text: () => chunk({ content: TEXT }),
  },
  messages: {
    start: ({ plain, read, written, long }) =>
      data({
        type: 'message_start',
        message: {
          ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null },
          usage: {
            ...{ input_tokens: plain, output_tokens: 1 },
            ...(read > 0 && { cache_read_input_tokens: read }),
            ...(written > 0 && {
              cache_creation_input_tokens: written,
              cache_creation: {
                ephemeral_5m_input_tokens: written - long,
                ephemeral_1h_input_tokens: long,
              },
            }),
          },
        },
      }) + data({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    search: (at) =>
      data({
        ...{ type: 'content_block_start', index: 2 * at + 1 },
        content_block: { type: 'server_tool_use', id: `s${at}`, name: 'web_search', input: {} },
      }) +
      data({ type: 'content_block_stop', index: 2 * at + 1 }) +
      data({
        ...{ type: 'content_block_start', index: 2 * at + 2 },
        content_block: {
          ...{ type: 'web_search_tool_result', tool_use_id: `s${at}` },
          content: [{ type: 'web_search_result', url: 'https://a.example', title: 'A' }],
        },
      }) +
      data({ type: 'content_block_stop', index: 2 * at + 2 }),
    text: () => data({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: TEXT } }),
  },
  responses: {
    start: () =>
      data({
        type: 'response.created',
        response: { id: 'resp_1', object: 'response', status: 'in_progress', model: 'm', output: [] },
      }) +
      data({
        ...{ type: 'response.output_item.added', output_index: 0 },
        item: { id: 'i0', type: 'message', role: 'assistant', status: 'in_progress', content: [] },
      }),
    search: (at) =>
      data({
        ...{ type: 'response.output_item.added', output_index: at + 1 },
        item: { id: `w${at}`, type: 'web_search_call', status: 'in_progress' },
      }) +
      data({
        ...{ type: 'response.output_item.done', output_index: at + 1 },
        item: { id: `w${at}`, type: 'web_search_call', status: 'completed', action: { type: 'search' } },
      }),
    text: () =>
      data({
        ...{ type: 'response.output_text.delta', item_id: 'i0', output_index: 0, content_index: 0 },
        delta: TEXT,
      }),
  },
  gemini: {
    start: () => '',
    search: (at) =>
      data({
        responseId: 'r',
        candidates: [
          {
            ...{ index: 0, content: { role: 'model', parts: [{ text: ' ' }] } },
            groundingMetadata: { webSearchQueries: [`query ${at}`] },
          },
        ],
      }),
    text: ({ plain, read, written }, output) =>
      data({
        responseId: 'r',
        candidates: [{ index: 0, content: { role: 'model', parts: [{ text: TEXT }] } }],
        usageMetadata: {
          promptTokenCount: plain + read + written,
          ...(read > 0 && { cachedContentTokenCount: read }),
          candidatesTokenCount: output + WORDS,
          totalTokenCount: plain + read + written + output + WORDS,
        },
      }),
  },
};

interface Outcome {
  readonly spent: number;
  readonly billed: number;
  /** The most that was reserved. */
  readonly reserved: number;
  readonly left: unknown;
  readonly unreported: unknown;
  readonly record: Readonly<Record<string, unknown>> | undefined;
}

interface Played {
  readonly api: Api;
  readonly end: End;
  readonly prompt: Prompt;
  readonly ledger?: 'kv' | 'object';
  readonly model?: string;
  readonly mode?: 'running' | 'hard';
  /** Tokens after which the stream is cancelled or broken. */
  readonly after?: number;
  readonly client?: 'chat' | 'messages' | 'responses';
}

function apiOf(url: string): Api {
  if (url.endsWith('/messages')) return 'messages';
  if (url.endsWith('/responses')) return 'responses';
  return url.includes('enerateContent') ? 'gemini' : 'chat';
}

const LIMIT = 32_000;
const NEVER = new Promise<never>(() => {});

/** A request of an agent with this many tokens in its prompt, at four bytes each. */
function requestOf({ plain, read, written, searches }: Prompt, client: 'chat' | 'messages' | 'responses') {
  const text = 'Four'.repeat(plain + read + written);
  const messages = [{ role: 'user', content: text }];
  const tool =
    client === 'messages'
      ? { type: 'web_search_20250305', name: 'web_search', max_uses: 5 }
      : { type: 'web_search' };
  const tools = searches > 0 && client !== 'chat' ? { tools: [tool] } : {};
  if (client === 'responses')
    return { path: '/v1/responses', body: { input: text, max_output_tokens: LIMIT, ...tools } };
  if (client === 'messages') return { path: '/v1/messages', body: { messages, max_tokens: LIMIT, ...tools } };
  return { path: '/v1/chat/completions', body: { messages, max_tokens: LIMIT } };
}

async function play({
  api,
  end,
  prompt,
  ledger = 'kv',
  mode = 'running',
  ...more
}: Played): Promise<Outcome> {
  const { model = MODELS[api], after = 3000, client = api === 'gemini' ? 'chat' : api } = more;
  let written = 0;
  let reserved = 0;
  let isClosed = false;
  const gateway: LimitedGateway = new LimitedGateway(
    { ...ENV, LEDGER: ledger },
    {
      fetch: async (url, init) => {
        const script = SCRIPTS[apiOf(String(url))];
        let step = 0;
        const body = new ReadableStream({
          type: 'bytes',
          start: (controller) =>
            init?.signal?.addEventListener('abort', () => {
              if (!isClosed) controller.error(new Error('aborted'));
              isClosed = true;
            }),
          pull: async (controller) => {
            await new Promise(setImmediate);
            if (isClosed) return;
            const [row] = gateway.sql.exec<{ cost: number }>('SELECT cost FROM reservations').toArray();
            reserved = Math.max(reserved, row?.cost ?? 0);
            if (end === 'broken' && written >= after) {
              isClosed = true;
              return controller.error(new Error('broken'));
            }
            if (written > 2 * LIMIT) return controller.error(new Error('The stream was not ended'));
            const at = step++;
            if (at === 0) {
              const searches = Array.from({ length: prompt.searches }, (_, i) => script.search(i));
              const start = script.start(prompt) + searches.join('');
              return controller.enqueue(encoder.encode(start === '' ? ': \n\n' : start));
            }
            controller.enqueue(encoder.encode(script.text(prompt, written)));
            written += WORDS;
            // The provider of a stream that Weir does not end writes no more than its client waits for.
            if (end === 'cancelled' && written > after + 200) await NEVER;
          },
          cancel: () => {
            isClosed = true;
          },
        });
        return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
      },
    },
  );
  // A stream that Weir ends has room for its prompt and two slices.
  const { path, body } = requestOf(prompt, client);
  const free = 1000;
  const token = await gateway.key({ budget: { USD: free, mode } });
  const response = await gateway.post(path, token, { model, stream: true, ...body });
  // A stream that breaks before its output is an error.
  expect(response.status).toBe(end === 'broken' && after === 0 ? 502 : 200);
  if (end === 'ended') {
    const [row] = gateway.sql.exec<{ cost: number }>('SELECT cost FROM reservations').toArray();
    gateway.sql.limit({ budget: { USD: Math.ceil((row?.cost ?? 0) / 1e6 + 30) / 1000, mode } });
  }
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  for (let text = ''; ; ) {
    const next = await reader?.read().catch(() => undefined);
    if (next?.done !== false) break;
    text += decoder.decode(next.value, { stream: true });
    if (end !== 'cancelled' || text.split('token ').length <= after) continue;
    await reader?.cancel();
    break;
  }
  await gateway.idle();
  const key = decodeObject(await (await gateway.fetch('/v1/key', token)).text());
  const { spent, reserved: left, unreported } = objectOf(key?.budget);
  return {
    ...{ spent: Number(spent), billed: billed(prompt, written), reserved: reserved / 1e9, left, unreported },
    record: gateway.logged.findLast(({ event }) => event === 'request'),
  };
}

const PLAIN: Prompt = { plain: 1200, read: 0, written: 0, long: 0, searches: 0 };
const PROMPTS: readonly (readonly [name: string, prompt: Prompt])[] = [
  ['a plain prompt', PLAIN],
  ['cached reads and writes', { ...PLAIN, plain: 12, read: 100_000, written: 2000 }],
  ['writes for an hour', { ...PLAIN, plain: 12, read: 20_000, written: 30_000, long: 25_000 }],
  ['searches', { ...PLAIN, searches: 2 }],
  ['cached reads and searches', { ...PLAIN, plain: 12, read: 60_000, searches: 3 }],
];
const APIS: readonly Api[] = ['chat', 'messages', 'responses', 'gemini'];
const ENDS: readonly End[] = ['cancelled', 'broken', 'ended'];

/** A server that reports at its end alone: whether its prompt was written to a cache is not known. */
function isPlayed(api: Api, { written, searches }: Prompt): boolean {
  if (api === 'messages') return true;
  return written === 0 && (searches === 0 || api === 'responses');
}

const WAYS = APIS.flatMap((api) =>
  PROMPTS.filter(([, prompt]) => isPlayed(api, prompt)).flatMap(([name, prompt]) =>
    ENDS.flatMap((end) =>
      (['kv', 'object'] as const).map((ledger) => [api, name, end, ledger, prompt] as const),
    ),
  ),
);

describe('G3 G9 a stream of a provider that stops', () => {
  test.each(WAYS)(
    'of %s with %s that is %s, LEDGER=%s: charged what was billed, and at most a tenth more or what was reserved',
    async (api, _, end, ledger, prompt) => {
      const {
        spent,
        billed: bill,
        reserved,
        left,
        unreported,
        record,
      } = await play({ api, end, ledger, prompt });
      expect(spent).toBeGreaterThanOrEqual(bill);
      expect(spent).toBeLessThanOrEqual(Math.max(1.1 * bill, reserved));
      expect([left, unreported]).toEqual([0, spent]);
      expect(record).toMatchObject({ estimated: true });
    },
  );

  test.each(ENDS)(
    'of Messages with 97%% of its prompt read from a cache, that is %s: charged within a third of what was billed',
    async (end) => {
      const prompt = { ...PLAIN, plain: 50, read: 97_000, written: 2950 };
      const { spent, billed: bill } = await play({ api: 'messages', end, prompt });
      expect(spent / bill).toBeGreaterThanOrEqual(1);
      expect(spent / bill).toBeLessThan(1.33);
    },
  );

  test.each(['chat', 'messages', 'responses'] as const)(
    'through another protocol, whose client of %s leaves: the same',
    async (client) => {
      for (const api of APIS) {
        const {
          spent,
          billed: bill,
          reserved,
        } = await play({ api, client, end: 'cancelled', prompt: PLAIN });
        expect(spent).toBeGreaterThanOrEqual(bill);
        expect(spent).toBeLessThanOrEqual(Math.max(1.1 * bill, reserved));
      }
    },
  );

  test.each(APIS)('of %s that breaks before its first text is charged a slice at most', async (api) => {
    for (const end of ['broken', 'cancelled'] as const) {
      const { spent, billed: bill, reserved } = await play({ api, end, prompt: PLAIN, after: 0 });
      expect(spent).toBeGreaterThanOrEqual(bill);
      expect(spent).toBeLessThanOrEqual(reserved);
    }
  });
});

describe('G3 a stream of a provider that is known to go on', () => {
  test.each(['router/m', 'says/m'])('%s is charged its whole output limit', async (model) => {
    for (const end of ENDS) {
      const { spent } = await play({ api: 'chat', model, end, prompt: PLAIN });
      expect(spent).toBeGreaterThanOrEqual((LIMIT * OWN.output) / 1e6);
    }
  });
});

describe('G3 a hard budget', () => {
  test.each(ENDS.slice(0, 2))(
    'charges a stream that is %s its cached prompt as reported, and the output limit',
    async (end) => {
      const prompt = { ...PLAIN, plain: 12, read: 100_000, written: 2000 };
      const { spent } = await play({ api: 'messages', end, prompt, mode: 'hard' });
      expect(spent).toBeCloseTo(billed(prompt, LIMIT), 9);
    },
  );

  test('charges a prompt whose report has no word about caches as written to one', async () => {
    const { spent } = await play({ api: 'messages', end: 'cancelled', prompt: PLAIN, mode: 'hard' });
    expect(spent).toBeCloseTo((PLAIN.plain * OWN.write + LIMIT * OWN.output) / 1e6, 9);
  });
});

test('G3 the documents name each provider that is known to go on, with its source', () => {
  const page = readFileSync('docs/providers.md', 'utf8');
  for (const { id, goesOnAfterClose } of PROFILES) {
    if (goesOnAfterClose === undefined) continue;
    expect(page).toContain(`\`${id}\`: `);
    expect(page).toContain(`${goesOnAfterClose.source}), ${goesOnAfterClose.checked}`);
  }
});
