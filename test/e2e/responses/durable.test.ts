/** Tests RESPONSES=durable with the openai SDK as it is: background runs, resumption, cancellation, state, and what is kept. */
import OpenAI from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { afterAll, describe, expect, test } from 'vitest';
import { CALLS } from '../agent-loops.ts';
import { countCalls } from '../count-calls.ts';
import { ADMIN_TOKEN, startGateway } from '../gateway.ts';
import { isOurs, runWithAgents, runWithAiSdk } from './loops.ts';

const gateway = await startGateway({ pace: 5, vars: { RESPONSES: 'durable', AUTH: 'keys' } });
afterAll(() => gateway[Symbol.asyncDispose]());

async function newClient(): Promise<OpenAI> {
  const response = await gateway.post(
    '/admin/keys',
    { name: 'test' },
    { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } },
  );
  const { key } = (await response.json()) as { key: string };
  return new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
}

const client = await newClient();
const MODEL = 'deepseek/deepseek-flash';

const MODELS = [
  MODEL,
  'anthropic/claude-sonnet-5',
  'gemini/gemini-3-flash-preview',
  'mistral/mistral-small-latest',
];
const TOOL = {
  type: 'function' as const,
  name: 'gauge',
  strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
};

async function collect(stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

async function poll(id: string) {
  for (;;) {
    const response = await client.responses.retrieve(id);
    if (response.status !== 'queued' && response.status !== 'in_progress') return response;
  }
}

describe('background', () => {
  test('X3: a background response is queued at once, and completed when it is polled', async () => {
    const queued = await client.responses.create({ model: MODEL, input: 'Hello there', background: true });
    expect(queued.status).toBe('queued');
    expect(queued.id).toMatch(/^resp_[0-9a-f]{32}$/);
    const done = await poll(queued.id);
    expect(done).toMatchObject({ id: queued.id, status: 'completed', background: true, store: true });
    expect(done.output_text).not.toBe('');
    await client.responses.delete(queued.id);
    await expect(client.responses.retrieve(queued.id)).rejects.toMatchObject({ status: 404 });
  });

  test.each(MODELS)(
    'X4: at %s a stream that is cut after any event and resumed has the events of the uncut stream',
    async (model) => {
      const stream = await client.responses.create({
        model,
        input: 'steps:2 How high is the river?',
        tools: [TOOL],
        reasoning: { effort: 'high' },
        background: true,
        stream: true,
      });
      const whole = await collect(stream);
      const [created] = whole;
      if (created?.type !== 'response.created') throw new Error('No response.created');
      const { id } = created.response;
      expect(whole.map(({ sequence_number }) => sequence_number)).toEqual(whole.map((_, index) => index));
      expect(whole.at(-1)?.type).toBe('response.completed');
      for (let cut = 0; cut < whole.length; cut++) {
        const rest = await client.responses.retrieve(id, { stream: true, starting_after: cut });
        expect(await collect(rest)).toEqual(whole.slice(cut + 1));
      }
      const runner = client.responses.stream({ response_id: id, starting_after: 3 });
      const final = await runner.finalResponse();
      const { output } = await client.responses.retrieve(id);
      expect(output.map(({ type }) => type)).toContain('function_call');
      expect(final.output).toMatchObject(output);
    },
  );

  test('X4: a client that leaves during a run resumes it where it was, and the run goes on', async () => {
    const stream = await client.responses.create({
      model: MODEL,
      input: 'Hello there',
      background: true,
      stream: true,
    });
    const first: ResponseStreamEvent[] = [];
    let id = '';
    for await (const event of stream) {
      first.push(event);
      if (event.type === 'response.created') id = event.response.id;
      if (first.length === 4) break;
    }
    const rest = await collect(await client.responses.retrieve(id, { stream: true, starting_after: 3 }));
    const whole = await collect(await client.responses.retrieve(id, { stream: true }));
    expect([...first, ...rest]).toEqual(whole);
    expect(whole.at(-1)?.type).toBe('response.completed');
  });

  test('X3: a request that is refused before it is sent upstream is an HTTP error', async () => {
    const unknown = client.responses.create({ model: 'nobody/nothing', input: 'Hello', background: true });
    await expect(unknown).rejects.toMatchObject({ status: 404 });
  });

  test('X3: a cancelled run ends as incomplete with the status cancelled, also when it is cancelled twice', async () => {
    const queued = await client.responses.create({ model: MODEL, input: 'Hello there', background: true });
    const cancelled = await client.responses.cancel(queued.id);
    expect(cancelled.status).toBe('cancelled');
    expect((await client.responses.cancel(queued.id)).status).toBe('cancelled');
    const events = await collect(await client.responses.retrieve(queued.id, { stream: true }));
    expect(events.at(-1)).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'cancelled' },
    });
  });
});

describe('records', () => {
  test('X3: a run has one record, finished, cancelled, or failed, and a cancelled one has aborted its upstream call', async () => {
    const before = (await gateway.records(0)).length;
    const done = await client.responses.create({ model: MODEL, input: 'Hello there', background: true });
    await poll(done.id);
    const input = 'Hello '.repeat(50);
    const asked = gateway.simulator.requests.length;
    const left = await client.responses.create({ model: MODEL, input, background: true });
    const upstream = await gateway.simulator.request(asked);
    await client.responses.cancel(left.id);
    await upstream.closed;
    const records = await gateway.records(before + 2);
    const statusOf = (id: string) =>
      records
        .filter(({ request_id }) => `resp_${request_id.replaceAll('-', '')}` === id)
        .map(({ status }) => status);
    expect(statusOf(done.id)).toEqual(['finished']);
    expect(statusOf(left.id)).toEqual(['cancelled']);
  });
});

describe('state', () => {
  test('X5: a request with previous_response_id sends the conversation up', async () => {
    const first = await client.responses.create({ model: MODEL, input: 'One two', instructions: 'Be short' });
    expect(first).toMatchObject({ store: true });
    const second = await client.responses.create({
      model: MODEL,
      input: 'Three four',
      previous_response_id: first.id,
    });
    expect(second.previous_response_id).toBe(first.id);
    const sent = gateway.simulator.requests.at(-1)?.body ?? {};
    expect(sent.messages).toMatchObject([
      { role: 'user', content: 'One two' },
      { role: 'assistant', content: first.output_text },
      { role: 'user', content: 'Three four' },
    ]);
    const items = await client.responses.inputItems.list(second.id);
    expect(items.data).toMatchObject([{ type: 'message', role: 'user' }]);
  });

  test('X5: an item_reference stands for the item of an earlier response', async () => {
    const first = await client.responses.create({ model: MODEL, input: 'One two' });
    const message = first.output.find(({ type }) => type === 'message');
    await client.responses.create({
      model: MODEL,
      input: [
        { role: 'user', content: 'One two' },
        { type: 'item_reference', id: message?.id ?? '' },
        { role: 'user', content: 'Three' },
      ],
    });
    const sent = gateway.simulator.requests.at(-1)?.body ?? {};
    expect(sent.messages).toMatchObject([
      { role: 'user', content: 'One two' },
      { role: 'assistant', content: first.output_text },
      { role: 'user', content: 'Three' },
    ]);
  });

  test('X5: an unknown previous response is a 400 in the words of OpenAI', async () => {
    const previous_response_id = `resp_${'0'.repeat(32)}`;
    await expect(
      client.responses.create({ model: MODEL, input: 'Hello', previous_response_id }),
    ).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' });
  });
});

describe('agents that refer to stored items', () => {
  const baseURL = `${gateway.url}/v1`;
  const loops = [
    ['@ai-sdk/openai', runWithAiSdk],
    ['@openai/agents with previousResponseId', runWithAgents],
  ] as const;

  describe.each(loops)('%s', (_, loop) => {
    test.each(MODELS)('X5: at %s five steps with parallel calls end with a text', async (model) => {
      for (const isStreamed of [true, false]) {
        const { text, calls } = await loop(baseURL, model, isStreamed, {
          apiKey: client.apiKey ?? '',
          isStored: true,
        });
        expect(calls).toBe(CALLS);
        expect(text).not.toBe('');
        expect(countCalls(gateway.simulator.requests.at(-1)?.body ?? {})).toEqual({
          calls: CALLS,
          results: CALLS,
        });
      }
    });
  });

  test('X5: a chain of 20 responses sends up what the whole conversation sends up', async () => {
    const whole: OpenAI.Responses.ResponseInputItem[] = [];
    let previous: string | undefined;
    for (let turn = 0; turn < 20; turn++) {
      const own = { role: 'user' as const, content: `Turn ${turn}` };
      const response: OpenAI.Responses.Response = await client.responses.create({
        model: MODEL,
        input: [own],
        ...(previous === undefined ? {} : { previous_response_id: previous }),
      });
      const chained = gateway.simulator.requests.at(-1)?.body;
      whole.push(own);
      if (turn === 19) {
        await client.responses.create({ model: MODEL, input: whole });
        expect(chained).toEqual(gateway.simulator.requests.at(-1)?.body);
      }
      for (const item of response.output) if (isOurs(item)) whole.push(item);
      previous = response.id;
    }
  });
});

describe('what is kept', () => {
  test('X1: for another key there is no such response', async () => {
    const { id } = await client.responses.create({ model: MODEL, input: 'Hello' });
    const other = await newClient();
    for (const attempt of [
      () => other.responses.retrieve(id),
      () => other.responses.retrieve(id, { stream: true }),
      () => other.responses.cancel(id),
      () => other.responses.delete(id),
      () => other.responses.inputItems.list(id),
      () => other.responses.retrieve('resp_nonsense'),
    ])
      await expect(attempt()).rejects.toMatchObject({ status: 404 });
    await expect(
      other.responses.create({ model: MODEL, input: 'Hello', previous_response_id: id }),
    ).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' });
    expect((await client.responses.retrieve(id)).id).toBe(id);
  });

  test('X10: the admin token reads no response', async () => {
    const { id } = await client.responses.create({ model: MODEL, input: 'Hello' });
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    for (const path of [
      `/v1/responses/${id}`,
      `/v1/responses/${id}?stream=true`,
      `/v1/responses/${id}/input_items`,
    ])
      expect((await gateway.fetch(path, { headers })).status).toBe(404);
  });

  test('X2: a foreground response is kept unless store is false', async () => {
    const stream = await client.responses.create({ model: MODEL, input: 'Hello there', stream: true });
    const whole = await collect(stream);
    const [created] = whole;
    if (created?.type !== 'response.created') throw new Error('No response.created');
    const replayed = await client.responses.retrieve(created.response.id, { stream: true });
    expect(await collect(replayed)).toEqual(whole);
    await expect(client.responses.cancel(created.response.id)).rejects.toMatchObject({ status: 400 });
    const unkept = await client.responses.create({ model: MODEL, input: 'Hello', store: false });
    expect(unkept).toMatchObject({ store: false });
    await expect(client.responses.retrieve(unkept.id)).rejects.toMatchObject({ status: 404 });
  });
});
