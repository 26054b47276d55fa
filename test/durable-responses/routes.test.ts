/** The routes of kept responses through the gateway in memory: owners, errors, pages of input items, and what is counted. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { NO_HOOKS } from '../../src/http/hooks.ts';
import { Router } from '../../src/routes.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { FakeTracing } from '../gateway/fake-tracing.ts';
import { LimitedGateway } from '../gateway/limited-gateway.ts';
// For streams, whose classes only workerd has.
import '../gateway/upstreams.ts';
import { MemoryResponses } from './memory-responses.ts';

const MODEL = 'openai/gpt-4o-mini';
const SETTINGS = { RESPONSES: 'durable', AUTH: 'open', MISTRAL_API_KEY: 'k' };

async function jsonOf(response: Response): Promise<JsonObject> {
  return decodeObject(await response.text()) ?? {};
}

/** OpenAI's response to any request. */
const upstream = (calls: JsonObject[]) => async (_: unknown, init?: RequestInit) => {
  calls.push(decodeObject(String(init?.body)) ?? {});
  return Response.json({
    id: 'resp_up',
    object: 'response',
    status: 'completed',
    model: 'gpt-4o-mini',
    output: [
      { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] },
    ],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  });
};

class Fixture {
  readonly responses = new MemoryResponses();
  readonly sent: JsonObject[] = [];
  readonly gateway: LimitedGateway;

  constructor(settings: JsonObject = {}, tracing: FakeTracing | null = null) {
    // The host fixes the user that the token names.
    const onRequest = ({ headers }: Request) => {
      const [id, user] = (headers.get('authorization') ?? '').replace('Bearer ', '').split(':');
      return { id, user };
    };
    const ports = { fetch: upstream(this.sent), tracing };
    this.gateway = new LimitedGateway({ ...SETTINGS, WEIR_RESPONSES: this.responses, ...settings }, ports, {
      ...NO_HOOKS,
      onRequest,
    });
  }

  async create(fields: JsonObject = {}, token = 'host'): Promise<JsonObject> {
    const body = { model: MODEL, input: 'Hello', ...fields };
    return jsonOf(await this.gateway.post('/v1/responses', token, body));
  }

  get(path: string, token = 'host'): Promise<Response> {
    return this.gateway.fetch(`/v1/responses/${path}`, token);
  }
}

describe('X1 the owner of a response', () => {
  test.each<[users: string, settings: JsonObject]>([
    ['plain', { USERS: 'plain' }],
    ['hash', { USERS: 'hash', USER_HASH_KEY: 'a secret of users' }],
    ['off', { USERS: 'off' }],
  ])(
    'with USERS=%s is the user of the caller: for another user there is no such response',
    async (_, settings) => {
      const fixture = new Fixture(settings);
      const { gateway, responses } = fixture;
      const made = await fixture.create({}, 'host:ada@example.com');
      const id = textOf(made.id);
      const [item] = objectsOf(made.output);
      expect((await fixture.get(id, 'host:ada@example.com')).status).toBe(200);
      for (const other of ['host:ben@example.com', 'host', 'other:ada@example.com', 'admin']) {
        for (const path of [id, `${id}?stream=true`, `${id}/input_items`])
          expect((await fixture.get(path, other)).status).toBe(404);
        expect((await gateway.fetch(`/v1/responses/${id}`, other, { method: 'DELETE' })).status).toBe(404);
        expect((await gateway.post(`/v1/responses/${id}/cancel`, other, {})).status).toBe(404);
        if (other === 'admin') continue;
        const previous = await fixture.create({ previous_response_id: id }, other);
        expect(objectOf(previous.error).code).toBe('previous_response_not_found');
        const input = [{ type: 'item_reference', id: textOf(item?.id) }];
        const reference = await fixture.create({ input }, other);
        expect(textOf(objectOf(reference.error).message)).toBe(
          `Item with id '${textOf(item?.id)}' not found.`,
        );
      }
      // No name of a user is stored with the response.
      expect(JSON.stringify(responses.owners)).not.toMatch(/ada|ben|example/);
      // Nor, with USERS=off, a digest that a guessed name can be compared with.
      const digest = createHash('sha256').update('ada@example.com').digest('hex');
      expect(JSON.stringify(responses.owners).includes(digest.slice(0, 16))).toBe(settings.USERS === 'plain');
    },
  );
});

test('X4 the seventeenth reader of a response gets a 429, and one that leaves makes room', async () => {
  const fixture = new Fixture();
  const id = textOf((await fixture.create()).id);
  const read = () => fixture.get(`${id}?stream=true`);
  const readers = await Promise.all(Array.from({ length: 16 }, read));
  expect(readers.map(({ status }) => status)).toEqual(readers.map(() => 200));
  const refused = await read();
  expect(refused.status).toBe(429);
  expect(objectOf((await jsonOf(refused)).error).code).toBe('rate_limit_exceeded');
  await readers[3]?.body?.cancel();
  expect((await read()).status).toBe(200);
});

describe('X2 a response that cannot be read', () => {
  test('is a 500 for its owner and the admin and a 404 for others; who gets the 500 can delete it', async () => {
    for (const deleter of ['host', 'admin']) {
      const onRequest = ({ headers }: Request) =>
        headers.get('authorization') === 'Bearer admin' ? null : { id: 'host' };
      const fixture = new Fixture();
      const gateway = new LimitedGateway(
        { ...SETTINGS, AUTH: 'keys', WEIR_RESPONSES: fixture.responses },
        { fetch: upstream(fixture.sent) },
        { ...NO_HOOKS, onRequest },
      );
      const made = await gateway.post('/v1/responses', 'host', { model: MODEL, input: 'Hello' });
      const id = textOf((await jsonOf(made)).id);
      fixture.responses.change(id, '"version":1', '"version":9');
      for (const path of [id, `${id}?stream=true`, `${id}/input_items`]) {
        const response = await gateway.fetch(`/v1/responses/${path}`, deleter);
        expect(response.status).toBe(500);
        const error = objectOf((await jsonOf(response)).error);
        expect(error.code).toBe('response_unreadable');
        expect(error.message).toContain('version 9');
        expect((await fixture.get(path, 'other')).status).toBe(404);
      }
      const remove = () => gateway.fetch(`/v1/responses/${id}`, deleter, { method: 'DELETE' });
      expect(await jsonOf(await remove())).toEqual({ id, object: 'response', deleted: true });
      expect((await remove()).status).toBe(404);
    }
  });
});

test.each([true, false])(
  'X8 streamed %s: without storage a request makes no call to an object and has the bytes of a stateless gateway',
  async (stream) => {
    const durable = new Fixture();
    const stateless = new Fixture({ RESPONSES: 'stateless' });
    const texts: string[] = [];
    for (const model of [MODEL, 'mistral/m']) {
      for (const { gateway } of [durable, stateless]) {
        const body = { model, input: 'Hello', store: false, stream, tools: [{ type: 'web_search' }] };
        const response = await gateway.post('/v1/responses', 'host', body);
        texts.push((await response.text()).replaceAll(/[0-9a-f]{32}|"\w+_at":\d+/g, ''));
      }
    }
    expect(texts[0]).toContain('"Hi"');
    expect([texts[1], texts[3]]).toEqual([texts[0], texts[2]]);
    expect(durable.responses.calls).toEqual([]);
    expect(durable.sent).toEqual(stateless.sent);
  },
);

test('X8 a response that could not be stored has store: false, and the log has the reason', async () => {
  const fixture = new Fixture();
  fixture.responses.putError = new Error('The object is gone');
  const made = await fixture.create();
  expect(made).toMatchObject({ store: false, output: [{ type: 'message' }] });
  const digits = textOf(made.id).slice('resp_'.length);
  const [logged] = fixture.gateway.logged.filter(({ event }) => event === 'response_not_stored');
  expect(logged?.reason).toContain('The object is gone');
  expect(textOf(logged?.request_id as string).replaceAll('-', '')).toBe(digits);
});

test('X8 a response that is stored after its client read store: false is removed', async () => {
  const fixture = new Fixture();
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.responses.putAfter = promise;
  const made = await fixture.create();
  expect(made.store).toBe(false);
  resolve();
  await fixture.gateway.idle();
  expect(fixture.responses.calls.map((call) => call.split(' ')[0])).toEqual([
    'claimKept',
    'put',
    'remove',
    'releaseKept',
  ]);
  expect((await fixture.get(textOf(made.id))).status).toBe(404);
});

test('X8 an object that does not respond: 503 at the deadline, for reading and for continuing', async () => {
  const fixture = new Fixture({ DEADLINE_SECONDS: '5' });
  const { responses } = fixture;
  const id = textOf((await fixture.create()).id);
  responses.hanging = 'read';
  expect((await fixture.get(id)).status).toBe(503);
  responses.hanging = 'conversation';
  const { error } = await fixture.create({ previous_response_id: id });
  expect(objectOf(error)).toMatchObject({ code: 'server_is_overloaded' });
});

test('X10 spans have nothing of the prompt or the output', async () => {
  const tracing = new FakeTracing();
  const fixture = new Fixture({}, tracing);
  const { id } = await fixture.create({ input: 'marmalade', instructions: 'marmalade' });
  await fixture.create({ input: 'marmalade', previous_response_id: textOf(id) });
  await fixture.gateway.idle();
  expect(tracing.ended.length).toBeGreaterThan(2);
  expect(JSON.stringify(tracing.ended.map(({ name, attributes }) => [name, attributes]))).not.toMatch(
    /marmalade|"Hi"/,
  );
});

test('X1 below a base path beside a site, the routes of responses are the gateway’s', async () => {
  const router = new Router('/ai', []);
  for (const path of ['', '/resp_1', '/resp_1/cancel', '/resp_1/input_items', '/input_tokens']) {
    expect(router.hasRoute(`/ai/v1/responses${path}`)).toBe(true);
    expect(router.hasRoute(`/v1/responses${path}`)).toBe(false);
  }
  const { gateway } = new Fixture({ BASE_PATH: '/ai' });
  const made = await jsonOf(await gateway.post('/ai/v1/responses', 'host', { model: MODEL, input: 'Hello' }));
  const read = await gateway.fetch(`/ai/v1/responses/${textOf(made.id)}`, 'host');
  expect(await jsonOf(read)).toEqual(made);
  expect((await gateway.fetch(`/ai/v1/responses/${textOf(made.id)}/nothing`, 'host')).status).toBe(404);
});

describe('X5 input items', () => {
  const input = Array.from({ length: 5 }, (_, index) => ({ role: 'user', content: `Item ${index}` }));
  const textsOf = (page: JsonObject) =>
    objectsOf(page.data).map(({ content }) => textOf(objectsOf(content)[0]?.text));

  test('are listed newest first, in pages that continue after an item', async () => {
    const fixture = new Fixture();
    const id = textOf((await fixture.create({ input })).id);
    const first = await jsonOf(await fixture.get(`${id}/input_items?limit=2`));
    expect(textsOf(first)).toEqual(['Item 4', 'Item 3']);
    expect(first).toMatchObject({ object: 'list', has_more: true });
    const second = await jsonOf(
      await fixture.get(`${id}/input_items?limit=3&after=${encodeURIComponent(textOf(first.last_id))}`),
    );
    expect(textsOf(second)).toEqual(['Item 2', 'Item 1', 'Item 0']);
    expect(second).toMatchObject({ has_more: false, first_id: objectsOf(second.data)[0]?.id });
    expect(textsOf(await jsonOf(await fixture.get(`${id}/input_items?order=asc&limit=1`)))).toEqual([
      'Item 0',
    ]);
    expect(objectsOf(first.data)[0]).toMatchObject({ type: 'message', role: 'user' });
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=x', 'limit'],
    ['order=up', 'order'],
    ['after=msg_none', 'after'],
  ])('%s: 400 that names the parameter', async (query, param) => {
    const fixture = new Fixture();
    const id = textOf((await fixture.create({ input })).id);
    const response = await fixture.get(`${id}/input_items?${query}`);
    expect(response.status).toBe(400);
    expect(objectOf((await jsonOf(response)).error).param).toBe(param);
  });

  test('go up as they were sent, also where a reference names one of them', async () => {
    const fixture = new Fixture();
    const id = textOf((await fixture.create({ input })).id);
    const { data } = await jsonOf(await fixture.get(`${id}/input_items?order=asc`));
    const reference = { type: 'item_reference', id: textOf(objectsOf(data)[1]?.id) };
    await fixture.create({ previous_response_id: id, input: [reference] });
    expect(fixture.sent.at(-1)?.input).toEqual([
      ...input,
      { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] },
      input[1],
    ]);
    expect(fixture.sent.at(-1)).toMatchObject({ store: false });
    expect(fixture.sent.at(-1)).not.toHaveProperty('previous_response_id');
  });
});

describe('X5 what a request continues', () => {
  test('is counted by input_tokens', async () => {
    const fixture = new Fixture();
    const count = async (fields: JsonObject) => {
      const body = { model: 'mistral/m', input: 'And?', ...fields };
      return jsonOf(await fixture.gateway.post('/v1/responses/input_tokens', 'host', body));
    };
    const { id } = await fixture.create({ input: 'word '.repeat(1000) });
    const alone = await count({});
    const continued = await count({ previous_response_id: textOf(id) });
    expect(alone).toMatchObject({ object: 'response.input_tokens' });
    expect(Number(continued.input_tokens)).toBeGreaterThan(Number(alone.input_tokens) + 500);
    const unknown = await count({ previous_response_id: 'resp_unknown' });
    expect(objectOf(unknown.error).code).toBe('previous_response_not_found');
  });

  test('is bounded: MAX_REQUEST_BYTES for all items, and the responses that references name', async () => {
    const fixture = new Fixture({ MAX_REQUEST_BYTES: '100000' });
    const first = textOf((await fixture.create({ input: 'a'.repeat(60_000) })).id);
    const tooLong = await fixture.create({ previous_response_id: first, input: 'b'.repeat(60_000) });
    expect(objectOf(tooLong.error)).toMatchObject({
      code: 'request_too_large',
      param: 'previous_response_id',
    });
    const { data } = await jsonOf(await fixture.get(`${first}/input_items`));
    const reference = { type: 'item_reference', id: textOf(objectsOf(data)[0]?.id) };
    const twice = await fixture.create({ input: [reference, reference] });
    expect(objectOf(twice.error).code).toBe('request_too_large');
    const ids = Array.from({ length: 1001 }, (_, index) => String(index).padStart(32, '0'));
    const many = await fixture.create({
      input: ids.map((hex) => ({ type: 'item_reference', id: `msg_${hex}_0` })),
    });
    expect(textOf(objectOf(many.error).message)).toContain('more than 1000 responses');
    expect(fixture.responses.calls.filter((call) => call.startsWith('items'))).toHaveLength(1);
  });

  test.each<[what: string, path: string, fields: JsonObject]>([
    ['kept', '', {}],
    ['not kept', '', { store: false }],
    ['counted', '/input_tokens', { model: 5 }],
  ])('releases its memory when it is %s and refused', async (_, path, fields) => {
    const { gateway } = new Fixture();
    const post = (more: JsonObject, headers: Record<string, string> = {}) => {
      const body = { model: MODEL, input: 'a'.repeat(3e6), ...more };
      return gateway.post(`/v1/responses${path}`, 'host', body, { headers });
    };
    // Together they have more bytes than all bodies of an isolate may hold.
    for (let i = 0; i < 8; i++)
      expect((await post(fields, { 'x-weir-unsupported': 'unknown' })).status).toBe(400);
    expect((await post({})).status).toBe(200);
    await gateway.idle();
  });

  test('is refused as too large before the other responses of its chain are read', async () => {
    const fixture = new Fixture({ MAX_REQUEST_BYTES: '100000' });
    const input = 'a'.repeat(30_000);
    let previous = textOf((await fixture.create({ input })).id);
    for (let link = 0; link < 2; link++)
      previous = textOf((await fixture.create({ input, previous_response_id: previous })).id);
    expect(fixture.sent.at(-1)?.input).toHaveLength(5);
    const before = fixture.responses.calls.length;
    const { error } = await fixture.create({ input, previous_response_id: previous });
    expect(objectOf(error).code).toBe('request_too_large');
    expect(fixture.responses.calls.slice(before)).toEqual([`conversation ${previous}`]);
    const short = await fixture.create({ input: 'a', previous_response_id: previous });
    expect(short.previous_response_id).toBe(previous);
    expect(fixture.sent.at(-1)?.input).toHaveLength(7);
  });

  test.each<[what: string, fields: JsonObject, message: RegExp]>([
    ['conversation', { conversation: 'conv_1' }, /keeps responses, but no conversations/],
    [
      'a stored prompt where the request is translated',
      { model: 'mistral/m', prompt: { id: 'pmpt_1' } },
      /keeps no prompts/,
    ],
  ])('%s: 400 that says what to send instead', async (what, fields, message) => {
    const fixture = new Fixture();
    const { error } = await fixture.create(fields);
    if (what === 'conversation') expect(objectOf(error)).toMatchObject({ param: 'conversation' });
    expect(textOf(objectOf(error).message)).toMatch(message);
  });
});

describe('X2 a deleted or expired response', () => {
  test('deleted or expired: 404 for each route, and 400 for a request that continues it', async () => {
    for (const end of ['deleted', 'expired'] as const) {
      const fixture = new Fixture({ RESPONSES_DAYS: '1' });
      const id = textOf((await fixture.create()).id);
      if (end === 'deleted') {
        const deleted = await fixture.gateway.fetch(`/v1/responses/${id}`, 'host', { method: 'DELETE' });
        expect(await jsonOf(deleted)).toEqual({ id, object: 'response', deleted: true });
      } else {
        fixture.responses.later = 86_400_001;
        await fixture.responses.alarm();
      }
      const response = await fixture.get(id);
      expect(response.status).toBe(404);
      expect(objectOf((await jsonOf(response)).error)).toMatchObject({
        message: `Response with id '${id}' not found.`,
      });
      const { error } = await fixture.create({ previous_response_id: id });
      expect(objectOf(error)).toMatchObject({
        message: `Previous response with id '${id}' not found.`,
        code: 'previous_response_not_found',
        param: 'previous_response_id',
      });
    }
  });
});

describe('X7 an object that is reset during a call, as by a deployment', () => {
  const ACTIONS: readonly (readonly [name: string, path: string, init: RequestInit])[] = [
    ['a read', '', {}],
    ['a list of its items', '/input_items', {}],
    ['a deletion', '', { method: 'DELETE' }],
  ];

  test.each(ACTIONS)('%s: called a second time', async (_, path, init) => {
    const fixture = new Fixture();
    const { id } = await fixture.create();
    fixture.responses.resets = 1;
    const response = await fixture.gateway.fetch(`/v1/responses/${textOf(id)}${path}`, 'host', init);
    expect(response.status).toBe(200);
  });

  test('a response is stored at the second call, and has store: false after two failures', async () => {
    const fixture = new Fixture();
    fixture.responses.resets = 1;
    const { id } = await fixture.create();
    expect((await fixture.get(textOf(id))).status).toBe(200);
    fixture.responses.resets = 2;
    expect(await fixture.create()).toMatchObject({ status: 'completed', store: false });
    fixture.responses.resets = 2;
    expect((await fixture.get(textOf(id))).status).toBe(503);
  });
});
