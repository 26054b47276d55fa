/**
 * The life of kept responses in workerd: restarts and kills during runs, readers that stop, a store that hangs, floods,
 * and what it costs.
 */
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import OpenAI from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../../tools/simulator/json.ts';
import { seeded } from '../../random.ts';
import type { Key, Limited } from '../limits/limited.ts';
import { startLimited } from '../limits/limited.ts';
import { event, many, replayOf, type Scenario } from '../scenarios.ts';

const DONE = 'data: [DONE]\n\n';
const USAGE = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 } })}\n\n`;
const END = [event('', 'stop'), USAGE, DONE];

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  long: { chunks: [...many(event('word '), 3000), ...END], gapMs: 50 },
  short: { chunks: [...many(event('word '), 12), ...END], gapMs: 20 },
  broken: { chunks: many(event('word '), 5), gapMs: 20, ending: 'reset' },
  silent: { chunks: [], ending: 'hang' },
  // 2,000 events at the client: 8 more than the deltas.
  counted: { chunks: [...many(event('word '), 1992), ...END] },
  large: { chunks: [...many(event('word '.repeat(2000)), 200), ...END] },
};
const VARS = { AUTH: 'keys', RESPONSES: 'durable', HEARTBEAT_SECONDS: '0' };

let limited: Limited;
let key: Key;

beforeAll(async () => {
  limited = await startLimited({
    pace: 10,
    vars: VARS,
    replay: replayOf(SCENARIOS),
    entrypoint: 'responses/counted-responses-worker.ts',
  });
  // The simulator's own output for models without a scenario.
  limited.usage = null;
  key = await limited.create({ budget: { tokens: 1e9 } });
});
afterAll(() => limited[Symbol.asyncDispose]());

function send(path: string, init: RequestInit = {}): Promise<Response> {
  return limited.gateway.fetch(`/v1/responses${path}`, {
    ...init,
    headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json' },
  });
}

async function create(model: string, fields: JsonObject = {}): Promise<JsonObject> {
  const body = { model: `mistral/${model}`, input: 'Hello', max_output_tokens: 5000, ...fields };
  const response = await send('', { method: 'POST', body: JSON.stringify(body) });
  const json = await response.text();
  if (!response.ok) throw new Error(json);
  return decodeObject(json) ?? {};
}

async function start(model: string, fields: JsonObject = {}): Promise<string> {
  return textOf((await create(model, { ...fields, background: true })).id);
}

async function read(id: string): Promise<JsonObject> {
  return decodeObject(await (await send(`/${id}`)).text()) ?? {};
}

async function ended(id: string): Promise<JsonObject> {
  for (;;) {
    const response = await read(id);
    if (response.status !== 'queued' && response.status !== 'in_progress') return response;
    await setTimeout(50);
  }
}

async function control(method: string, id = ''): Promise<unknown> {
  return (await limited.gateway.fetch(`/test/${method}/${id}`)).json();
}

function eventsOf(text: string): JsonObject[] {
  return [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => objectOf(decodeObject(data)));
}

/** Reads until there are so many events; then the rest comes by `rest`. */
async function readSome(response: Response, count: number) {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (text.split('\n\n').length <= count) text += (await reader?.read())?.value ?? '';
  return { text, reader };
}

function requestIdOf(id: string): string {
  return id.replace(/^resp_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The log lines of the records of a response. */
function recordsOf(id: string): JsonObject[] {
  const lines = limited.gateway.logs().map((line) => decodeObject(line) ?? {});
  return lines.filter((line) => line.event === 'request' && line.request_id === requestIdOf(id));
}

async function settled(): Promise<JsonObject> {
  return objectOf((await limited.settled(key)).budget);
}

describe.each(['kv', 'object'])('LEDGER=%s', (ledger) => {
  test('X7 a workerd that is replaced in the middle of a run: it fails within a minute without a request, with one record, settled', async () => {
    await limited.gateway.set({ ...VARS, LEDGER: ledger });
    const before = await settled();
    const id = await start('long');
    const first = await readSome(await send(`/${id}?stream=true`), 30);
    const number = Number(eventsOf(first.text).at(-1)?.sequence_number);
    const killedAt = Date.now();
    await limited.gateway.set({ ...VARS, LEDGER: ledger });
    await limited.gateway.logged((lines) =>
      lines.some((line) => line.event === 'response_interrupted' && line.request_id === requestIdOf(id)),
    );
    const failedAfterMs = Date.now() - killedAt;
    expect(failedAfterMs).toBeLessThan(60_000);
    const rest = eventsOf(await (await send(`/${id}?stream=true&starting_after=${number}`)).text());
    expect(rest.at(-1)).toMatchObject({ type: 'response.failed', response: { status: 'failed' } });
    expect(Number(rest.at(-1)?.sequence_number)).toBeGreaterThan(number + 1);
    expect(await read(id)).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect(recordsOf(id)).toMatchObject([{ status: 'failed', error_code: 'interrupted' }]);
    const after = await settled();
    // The upper bound: the output's limit, and the bytes of the prompt.
    expect(Number(after.spent) - Number(before.spent)).toBeGreaterThanOrEqual(5000);
    expect(Number(after.estimated)).toBe(Number(before.estimated));
    process.stdout.write(`restart, LEDGER=${ledger}: failed after ${failedAfterMs} ms\n`);
  });

  test('X3 X7 forty runs at once with kills, cancels, deletions and failing upstreams: one record each, nothing reserved', async () => {
    const random = seeded(ledger === 'kv' ? 1 : 2);
    const dice = (max: number) => Math.floor(random() * max);
    const models = ['short', 'broken', 'long', 'silent'] as const;
    const runs = Array.from({ length: 40 }, () => ({
      model: models[dice(models.length)] ?? 'short',
      acts: Array.from({ length: 1 + dice(3) }, () => ({ act: dice(4), ms: dice(300) })),
    }));
    const results = await Promise.all(
      runs.map(async ({ model, acts }) => {
        const id = await start(model);
        let isDeleted = false;
        for (const { act, ms } of acts) {
          await setTimeout(ms);
          if (act === 0) await control('kill', id).catch(() => {});
          else if (act === 1) isDeleted ||= (await send(`/${id}`, { method: 'DELETE' })).ok;
          else await (await send(`/${id}/cancel`, { method: 'POST' })).text();
        }
        if (!isDeleted) await (await send(`/${id}/cancel`, { method: 'POST' })).text();
        return { id, status: isDeleted ? 'deleted' : textOf((await ended(id)).status) };
      }),
    );
    await limited.gateway.logged(() => results.every(({ id }) => recordsOf(id).length >= 1));
    const budget = await settled();
    expect(budget.reserved).toBe(0);
    const headers = { authorization: `Bearer ${key.token}` };
    for (const { id, status } of results) {
      const found = await limited.gateway.fetch(`/v1/usage/records/${requestIdOf(id)}`, { headers });
      const record = decodeObject(await found.text()) ?? {};
      const wanted: Record<string, readonly unknown[]> = {
        completed: ['finished'],
        cancelled: ['cancelled'],
        failed: ['failed', 'timed_out'],
      };
      if (status !== 'deleted')
        expect(wanted[status], JSON.stringify({ record, status })).toContain(record.status);
    }
  });
});

const MODELS = [
  'deepseek/deepseek-flash',
  'anthropic/claude-sonnet-5',
  'gemini/gemini-3-flash-preview',
  'mistral/mistral-small-latest',
];

/** Reasoning, a text and calls. */
function requestOf(model: string) {
  const parameters = { type: 'object', properties: { city: { type: 'string' } } };
  return {
    model,
    input: 'steps:2 How high is the river?',
    tools: [{ type: 'function' as const, name: 'gauge', strict: false, parameters }],
    reasoning: { effort: 'high' as const },
    background: true,
    stream: true as const,
  };
}

/** The frames of events, with their blank lines. */
function framesIn(stream: string): string[] {
  return stream.split(/(?<=\n\n)/).filter((frame) => !frame.startsWith(':'));
}

describe.each(MODELS)('%s', (model) => {
  test('X4 the socket is cut after each event: both readers of the SDK, and two at once, have the events and bytes of the uncut run', async () => {
    const client = new OpenAI({
      baseURL: `${limited.gateway.url}/v1`,
      apiKey: key.token,
      maxRetries: 0,
    });
    const uncut = await client.responses.create(requestOf(model));
    const types: string[] = [];
    for await (const { type } of uncut) types.push(type);
    expect(types.join()).toMatch(/reasoning.*function_call_arguments\.done/);
    const count = types.length;
    const cuts = Array.from({ length: count }, (_, cut) => cut);
    await Promise.all(
      cuts.map(async (cut) => {
        const stream = await client.responses.create(requestOf(model));
        const first: ResponseStreamEvent[] = [];
        let id = '';
        for await (const event of stream) {
          first.push(event);
          if (event.type === 'response.created') id = event.response.id;
          // Leaving the loop aborts the request.
          if (event.sequence_number === cut) break;
        }
        const retrieved = async () => {
          const rest: ResponseStreamEvent[] = [];
          const options = { stream: true as const, starting_after: cut };
          for await (const event of await client.responses.retrieve(id, options)) rest.push(event);
          return rest;
        };
        const streamed = async () => {
          const rest: ResponseStreamEvent[] = [];
          const runner = client.responses.stream({ response_id: id, starting_after: cut });
          for await (const event of runner) rest.push(event);
          return { rest, final: await runner.finalResponse() };
        };
        const bytes = async (after: string) => (await send(`/${id}?stream=true${after}`)).text();
        const [one, other, { rest, final }, tail] = await Promise.all([
          ...[retrieved(), retrieved()],
          streamed(),
          bytes(`&starting_after=${cut}`),
        ] as const);
        const whole = await bytes('');
        const events = eventsOf(whole);
        expect(events).toHaveLength(count);
        expect([...first, ...one]).toEqual(events);
        expect(other).toEqual(one);
        // This reader adds the parsed text to events, and has no event after the terminal one.
        expect(rest).toMatchObject(one);
        expect(final.output).toMatchObject((await client.responses.retrieve(id)).output);
        const frames = framesIn(whole);
        expect([...frames.slice(0, cut + 1), ...framesIn(tail)].join('')).toBe(frames.join(''));
      }),
    );
  });
});

test('X4 readers that stop: the run and the other readers go on, and those who read again receive every byte', async () => {
  const options = { headers: { authorization: `Bearer ${key.token}` }, agent: false };
  const id = await start('large');
  const stopped = await Promise.all(
    Array.from(
      { length: 10 },
      () =>
        new Promise<IncomingMessage>((resolve) => {
          get(`${limited.gateway.url}/v1/responses/${id}?stream=true`, options, resolve);
        }),
    ),
  );
  const whole = await (await send(`/${id}?stream=true`)).text();
  expect(eventsOf(whole).at(-1)?.type).toBe('response.completed');
  expect(whole.length).toBeGreaterThan(4_000_000);
  for (const response of stopped) expect(await text(response)).toBe(whole);
});

describe('X3', () => {
  test.each([
    ['before any output', 'silent', 0],
    ['in the middle', 'long', 12],
  ] as const)(
    'cancelled %s: the upstream call is aborted, and pollers and readers see it, also the second time',
    async (_, model, events) => {
      const requestCount = limited.gateway.simulator.requests.length;
      const id = await start(model);
      const upstream = await limited.gateway.simulator.request(requestCount);
      const followed = await send(`/${id}?stream=true`);
      const { text: head, reader } = await readSome(followed, events);
      expect(['queued', 'in_progress']).toContain((await read(id)).status);
      for (let n = 0; n < 2; n++) {
        const cancelled = await send(`/${id}/cancel`, { method: 'POST' });
        expect(decodeObject(await cancelled.text())).toMatchObject({ id, status: 'cancelled' });
      }
      expect(await upstream.closed).toBe('disconnected');
      expect(await read(id)).toMatchObject({ status: 'cancelled' });
      let rest = head;
      for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read())
        rest += piece.value;
      expect(eventsOf(rest).at(-1)).toMatchObject({
        type: 'response.incomplete',
        response: { status: 'cancelled' },
      });
      expect(rest).toBe(await (await send(`/${id}?stream=true`)).text());
      expect(recordsOf(id)).toMatchObject([{ status: 'cancelled' }]);
    },
  );

  test('deleted in a run: the upstream call is aborted, and nothing is left to read, cancel or delete', async () => {
    const requestCount = limited.gateway.simulator.requests.length;
    const id = await start('long');
    const upstream = await limited.gateway.simulator.request(requestCount);
    expect((await send(`/${id}`, { method: 'DELETE' })).status).toBe(200);
    expect(await upstream.closed).toBe('disconnected');
    const gone = [`/${id}`, `/${id}?stream=true`, `/${id}/input_items`].map((path) => send(path));
    gone.push(send(`/${id}/cancel`, { method: 'POST' }), send(`/${id}`, { method: 'DELETE' }));
    for (const response of await Promise.all(gone)) expect(response.status).toBe(404);
    expect(recordsOf(id)).toMatchObject([{ status: 'cancelled' }]);
  });
});

test('X6 an input of 10 MB with characters of every width runs in the background, is listed, and is continued', async () => {
  const input = `${'word '.repeat(1_900_000)}é漢🌊`;
  const id = await start('short', { input });
  expect((await ended(id)).status).toBe('completed');
  const items = decodeObject(await (await send(`/${id}/input_items`)).text()) ?? {};
  expect(JSON.stringify(items)).toContain('é漢🌊');
  const next = await create('short', { input: 'More', previous_response_id: id, store: false });
  expect(next.status).toBe('completed');
  const { body } = limited.gateway.simulator.requests.at(-1) ?? {};
  expect(JSON.stringify(body).length).toBeGreaterThan(input.length);
});

describe('X8 a foreground response', () => {
  test('with store: false makes no call to any object', async () => {
    await control('counts');
    await create('short', { store: false });
    expect(await control('counts')).toMatchObject({ calls: 0, statements: 0 });
  });

  test('whose store hangs ends after 2 s with store: false, and the log has the reason', async () => {
    await control('hang', 'on');
    try {
      const response = await create('short');
      expect(response).toMatchObject({ status: 'completed', store: false });
      await limited.gateway.logged((lines) =>
        lines.some(
          (line) =>
            line.event === 'response_not_stored' && line.request_id === requestIdOf(textOf(response.id)),
        ),
      );
    } finally {
      await control('hang', 'off');
    }
  });
});

test('X1 2,000 reads of one response at once are all served', async () => {
  const id = await start('short');
  const whole = JSON.stringify(await ended(id));
  const startedAt = Date.now();
  let served = 0;
  for (let batch = 0; batch < 2; batch++) {
    const all = await Promise.all(Array.from({ length: 1000 }, () => read(id)));
    served += all.filter((response) => JSON.stringify(response) === whole).length;
  }
  expect(served).toBe(2000);
  process.stdout.write(`2,000 reads: ${Date.now() - startedAt} ms\n`);
});

test('X6 the rows and calls of responses of 2,000 events, of polls and of replays', async () => {
  const figures: Record<string, unknown> = {};
  // The first response of a key creates the tables of its index.
  await create('short');
  await control('counts');
  const measure = async (name: string) => {
    await setTimeout(1000);
    figures[name] = await control('counts');
  };
  const foreground = await create('counted', { stream: false });
  await measure('foreground, one object');
  const stream = await send('', {
    method: 'POST',
    body: JSON.stringify({
      model: 'mistral/counted',
      input: 'Hello',
      stream: true,
      max_output_tokens: 5000,
    }),
  });
  expect(eventsOf(await stream.text())).toHaveLength(2000);
  await measure('foreground, streamed');
  const id = await start('counted');
  await ended(id);
  await measure('background with polls');
  await read(id);
  await measure('a poll');
  await (await send(`/${id}?stream=true`)).text();
  await measure('a replay');
  await (await send(`/${id}?stream=true&starting_after=1990`)).text();
  await measure('a resumption near the end');
  await create('short', { previous_response_id: textOf(foreground.id), store: false });
  await measure('a continuation');
  await send(`/${id}`, { method: 'DELETE' });
  await measure('a deletion');
  const slow = await start('short');
  const alarm = Number(await control('alarmTime', slow));
  expect(alarm - Date.now()).toBeLessThanOrEqual(20_000);
  await ended(slow);
  // Only the deletion alarm is left.
  await expect
    .poll(async () => Number(await control('alarmTime', slow)) - Date.now())
    .toBeGreaterThan(29 * 86_400_000);
  process.stdout.write(`${JSON.stringify(figures, null, 1)}\n`);
  expect(figures).toMatchObject({
    'foreground, one object': { calls: 2, rowsWritten: 8, alarmsSet: 1 },
    'foreground, streamed': { calls: 2, rowsWritten: 10, alarmsSet: 1 },
    // The newest block is in memory.
    'a poll': { calls: 1, rowsWritten: 0, rowsRead: 0 },
    'a replay': { calls: 1, rowsWritten: 0 },
  });
});
