/** Tests RESPONSES=durable with the openai SDK as it is: background runs, resumption, cancellation, state, and what is kept. */
import OpenAI from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { afterAll, describe, expect, test } from 'vitest';
import type { RecordedRequest } from '../../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../../tools/simulator/server.ts';
import { ADMIN_TOKEN, startGateway } from '../gateway.ts';
import { isOurs } from './loops.ts';

/** What the simulator sends instead of its scenes. */
let replay: ((request: RecordedRequest) => Replay | undefined) | undefined;
const gateway = await startGateway({
  pace: 5,
  replay: (request) => replay?.(request),
  vars: { RESPONSES: 'durable', AUTH: 'keys' },
});
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
const MODEL = 'mistral/mistral-small-latest';
/** A provider with Responses of its own. */
const PASSED = 'openai/o4-mini';

const MODELS = [
  PASSED,
  'deepseek/deepseek-flash',
  'anthropic/claude-sonnet-5',
  'gemini/gemini-3-flash-preview',
  MODEL,
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
  test.each(MODELS)(
    'X3: at %s a background response is queued at once, and completed when it is polled',
    async (model) => {
      const queued = await client.responses.create({ model, input: 'Hello there', background: true });
      expect(queued.status).toBe('queued');
      expect(queued.id).toMatch(/^resp_[0-9a-f]{32}$/);
      const { id, created_at } = queued;
      const done = await poll(id);
      expect(done).toMatchObject({ id, created_at, status: 'completed', background: true, store: true });
      expect(done.output_text).not.toBe('');
      await client.responses.delete(queued.id);
      await expect(client.responses.retrieve(queued.id)).rejects.toMatchObject({ status: 404 });
    },
  );

  test.each(MODELS)('X4: at %s a stored stream and its replay have the same bytes', async (model) => {
    const body = { model, input: 'Hello there', stream: true };
    const headers = { authorization: `Bearer ${client.apiKey}` };
    const live = await (await gateway.post('/v1/responses', body, { headers })).text();
    const id = /resp_[0-9a-f]{32}/.exec(live)?.[0];
    const replayed = await fetch(`${gateway.url}/v1/responses/${id}?stream=true`, { headers });
    expect(await replayed.text()).toBe(live.replaceAll(': heartbeat\n\n', ''));
    expect(live).toMatch(/\n\ndata: \[DONE\]\n\n$/);
  });

  // `durable.slow.test.ts` cuts the sockets of the other models.
  test.each([PASSED, MODEL])(
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

  test('X4: a client that disconnects during a run resumes at its last event, and the run continues', async () => {
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
    const requestCount = gateway.simulator.requests.length;
    const left = await client.responses.create({ model: MODEL, input, background: true });
    const upstream = await gateway.simulator.request(requestCount);
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

describe('records and prompts', () => {
  const MARK = 'marmalade';
  const requestIdOf = (id: string) => id.replace(/^resp_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

  test('Y2 a background run is recorded with the facts of its request', async () => {
    const before = (await gateway.records(0)).length;
    const headers = {
      'x-weir-user': 'ada',
      'x-weir-session': 'walk',
      'x-weir-app': 'guide',
      'x-weir-tags': 'team=river',
    };
    const queued = await client.responses.create(
      { model: PASSED, input: 'Hello there', background: true },
      { headers },
    );
    await poll(queued.id);
    await gateway.records(before + 1);
    const record = await gateway.fetch(`/v1/usage/records/${requestIdOf(queued.id)}`, {
      headers: { authorization: `Bearer ${client.apiKey}` },
    });
    expect(await record.json()).toMatchObject({
      user: 'ada',
      session: 'walk',
      app: 'guide',
      tags: { team: 'river' },
      route: 'chat',
      client: 'responses',
      model: 'o4-mini',
      status: 'finished',
    });
  });

  test('X10 no admin route and no log has the prompt or the output, but the record exists', async () => {
    const input = `Say ${MARK}`;
    const kept = await client.responses.create({ model: MODEL, input, instructions: MARK });
    const queued = await client.responses.create({ model: MODEL, input, background: true });
    const done = await poll(queued.id);
    await client.responses.create({ model: MODEL, input, previous_response_id: done.id, background: true });
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const texts: string[] = [];
    for (const path of [
      '/admin/keys',
      '/v1/usage',
      '/v1/usage?group_by=model,key',
      '/v1/usage/records?limit=100',
      '/v1/usage/refusals',
      `/v1/usage/records/${requestIdOf(kept.id)}`,
      `/v1/responses/${kept.id}`,
      `/v1/responses/${done.id}/input_items`,
    ])
      texts.push(await (await gateway.fetch(path, { headers })).text());
    expect(texts[5]).toContain('"client":"responses"');
    const seen = [...texts, ...gateway.logs()].join('\n');
    expect(seen).not.toContain(MARK);
    expect(done.output_text).not.toBe('');
    expect(seen).not.toContain(done.output_text);
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

describe('a long conversation', () => {
  test.each([MODEL, PASSED])(
    'X5: at %s a chain of 20 responses sends up what the whole conversation sends up',
    async (model) => {
      const whole: OpenAI.Responses.ResponseInputItem[] = [];
      let previous: string | undefined;
      for (let turn = 0; turn < 20; turn++) {
        const own = { role: 'user' as const, content: `Turn ${turn}` };
        const response: OpenAI.Responses.Response = await client.responses.create({
          model,
          input: [own],
          ...(previous === undefined ? {} : { previous_response_id: previous }),
        });
        const chained = gateway.simulator.requests.at(-1)?.body;
        whole.push(own);
        if (turn === 19) {
          await client.responses.create({ model, input: whole });
          expect(chained).toEqual(gateway.simulator.requests.at(-1)?.body);
          expect(Array.isArray(chained?.input) ? chained.input.length : 0).toBe(model === PASSED ? 58 : 0);
        }
        for (const item of response.output) if (isOurs(item)) whole.push(item);
        previous = response.id;
      }
    },
  );
});

describe('a provider with Responses of its own', () => {
  const recording = [
    { type: 'response.created', response: { id: 'resp_up', status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { id: 'ws_1', type: 'web_search_call' } },
    { type: 'response.web_search_call.searching', output_index: 0, item_id: 'ws_1', unknown: { a: 1 } },
    { type: 'response.output_item.done', output_index: 0, item: { id: 'ws_1', type: 'web_search_call' } },
    { type: 'response.brand_new', note: 'an event of tomorrow' },
    {
      type: 'response.completed',
      response: {
        id: 'resp_up',
        object: 'response',
        status: 'completed',
        model: 'o4-mini',
        store: false,
        background: false,
        previous_response_id: null,
        output: [{ id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search' } }],
        usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
      },
    },
  ];
  const frames = recording.map((event, sequence_number) => {
    const data = JSON.stringify({ ...event, sequence_number });
    return `event: ${event.type}\ndata: ${data}\n\n`;
  });

  async function replayed(body: object): Promise<string> {
    replay = () => ({ chunks: [new TextEncoder().encode(frames.join(''))] });
    try {
      const headers = { authorization: `Bearer ${client.apiKey}` };
      const request = { model: PASSED, input: 'Hi', stream: true, tools: [{ type: 'web_search' }], ...body };
      const response = await gateway.post('/v1/responses', request, { headers });
      expect(response.status).toBe(200);
      return await response.text();
    } finally {
      replay = undefined;
    }
  }

  /** With the provider's ids and state. */
  function asUnkept(text: string): string {
    return text
      .replaceAll(/"id":"resp_[0-9a-f]{32}"/g, '"id":"resp_up"')
      .replaceAll(/"[a-z]+_[0-9a-f]{32}_openai\./g, '"')
      .replaceAll(/,?"(?:store|background|previous_response_id)":(?:true|false|null)/g, '')
      .replace('data: [DONE]\n\n', '');
  }

  test('X5: in the foreground and the background, its events differ from those of stateless responses in ids and state only', async () => {
    const unkept = asUnkept(await replayed({ store: false }));
    expect(unkept).toContain('"model":"openai/o4-mini"');
    for (const body of [{}, { background: true }]) {
      const kept = await replayed(body);
      expect(kept).toMatch(/"item_id":"ws_[0-9a-f]{32}_openai\.ws_1"/);
      expect(asUnkept(kept)).toBe(unkept);
      const sent = gateway.simulator.requests.at(-1)?.body;
      expect(sent).toEqual({
        model: 'o4-mini',
        input: 'Hi',
        stream: true,
        tools: [{ type: 'web_search' }],
        store: false,
        include: ['reasoning.encrypted_content'],
      });
      const id = /resp_[0-9a-f]{32}/.exec(kept)?.[0] ?? '';
      expect(asUnkept(JSON.stringify(await client.responses.retrieve(id)))).toContain('"id":"ws_1"');
      const next = await client.responses.create({ model: PASSED, input: 'And?', previous_response_id: id });
      expect(next).toMatchObject({ previous_response_id: id, store: true });
      expect(gateway.simulator.requests.at(-1)?.body?.input).toMatchObject([
        { role: 'user', content: 'Hi' },
        { id: 'ws_1', type: 'web_search_call' },
        { role: 'user', content: 'And?' },
      ]);
    }
  });

  test('X5: a conversation continues at other providers and returns, with the reasoning that each can read', async () => {
    const instructions = 'Be short';
    const first = await client.responses.create({ model: PASSED, input: 'One', instructions });
    expect(first.output.map(({ type }) => type)).toEqual(['reasoning', 'message']);
    const second = await client.responses.create({
      model: MODEL,
      input: 'Two',
      previous_response_id: first.id,
    });
    const third = await client.responses.create({
      model: 'deepseek/deepseek-flash',
      input: 'Three',
      previous_response_id: second.id,
    });
    const inThird = gateway.simulator.requests.at(-1)?.body;
    expect(JSON.stringify(inThird)).not.toMatch(/encrypted_content|_[0-9a-f]{32}_openai/);
    await client.responses.create({ model: PASSED, input: 'Four', previous_response_id: third.id });
    const sent = gateway.simulator.requests.at(-1)?.body;
    expect(sent?.instructions).toBeUndefined();
    expect(sent?.input).toMatchObject([
      { content: 'One' },
      { type: 'reasoning', encrypted_content: expect.any(String) },
      { type: 'message', role: 'assistant' },
      { content: 'Two' },
      { type: 'message', role: 'assistant' },
      { content: 'Three' },
      { type: 'message', role: 'assistant' },
      { content: 'Four' },
    ]);
  });

  test('X5: a target without Responses continues after one with them fails', async () => {
    const model = `${PASSED}:error-first`;
    const stream = await client.responses.create({
      ...{ models: [model, MODEL] },
      model,
      input: 'Hello',
      background: true,
      stream: true,
    });
    const events = await collect(stream);
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { model: MODEL } });
  });

  test('X5: an upstream that breaks off ends the kept response as failed, with the ids of the gateway', async () => {
    replay = () => ({ chunks: [new TextEncoder().encode(frames.slice(0, 3).join(''))] });
    const stream = await client.responses.create({
      model: PASSED,
      input: 'Hi',
      background: true,
      stream: true,
    });
    const events: ResponseStreamEvent[] = [];
    // The SDK throws on the event `error`, which comes before the last one.
    await (async () => {
      for await (const event of stream) events.push(event);
    })().catch(() => {});
    replay = undefined;
    const [created] = events;
    if (created?.type !== 'response.created') throw new Error('No response.created');
    const { id } = created.response;
    expect(await client.responses.retrieve(id)).toMatchObject({ id, status: 'failed', background: true });
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
