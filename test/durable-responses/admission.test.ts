/** The order in which requests for kept responses are served: size, memory, limits, and only then what is stored. */
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from '../gateway/limited-gateway.ts';
// For streams, whose classes only workerd has.
import '../gateway/upstreams.ts';
import { MemoryResponses } from './memory-responses.ts';

const MODEL = 'openai/gpt-4o-mini';

const ANSWER = {
  id: 'resp_up',
  object: 'response',
  status: 'completed',
  model: 'gpt-4o-mini',
  output: [
    { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] },
  ],
  usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
};

class Conversation {
  readonly responses = new MemoryResponses();
  readonly gateway: LimitedGateway;
  readonly token: string;
  /** Of the responses of the conversation, oldest first. */
  readonly ids: string[] = [];
  item = '';
  /** The upstream responds after it. */
  held: Promise<void> = Promise.resolve();

  private constructor(gateway: LimitedGateway, responses: MemoryResponses, token: string) {
    this.gateway = gateway;
    this.responses = responses;
    this.token = token;
  }

  /** A conversation of some responses by a key, which gets its limits afterwards. */
  static async create({ limits = {}, turns = 3, input = 'Hello', settings = {} }): Promise<Conversation> {
    const responses = new MemoryResponses();
    const upstream = async () => {
      await made.held;
      return Response.json(ANSWER);
    };
    const gateway = new LimitedGateway(
      { RESPONSES: 'durable', WEIR_RESPONSES: responses as never, ...settings },
      { fetch: upstream },
    );
    const token = await gateway.key();
    const made = new Conversation(gateway, responses, token);
    for (let turn = 0; turn < turns; turn++) {
      const previous = turn === 0 ? {} : { previous_response_id: made.last };
      const response = await made.send({ input, ...previous });
      const body = decodeObject(await response.text()) ?? {};
      made.ids.push(textOf(body.id));
      made.item = textOf(objectsOf(body.output)[0]?.id);
    }
    if (Object.keys(limits).length > 0) await made.limit(limits);
    await made.reset();
    return made;
  }

  get last(): string {
    return this.ids.at(-1) ?? '';
  }

  async limit(limits: JsonObject): Promise<void> {
    const id = decodeObject(await (await this.gateway.fetch('/v1/key', this.token)).text())?.id;
    const init = { method: 'PATCH', body: JSON.stringify(limits) };
    expect((await this.gateway.fetch(`/admin/keys/${textOf(id)}`, 'admin', init)).status).toBe(200);
  }

  async reset(): Promise<void> {
    await this.gateway.idle();
    this.gateway.calls.length = 0;
    this.responses.calls.length = 0;
  }

  send(fields: JsonObject, path = '/v1/responses'): Promise<Response> {
    return this.gateway.post(path, this.token, { model: MODEL, input: 'And?', ...fields });
  }

  /** The calls of both kinds of objects. */
  get calls(): readonly string[] {
    const ofLedger = this.gateway.calls.filter((call) => !/^kv|changeKey/.test(call));
    return [...this.responses.calls.map((call) => call.split(' ')[0] ?? ''), ...ofLedger];
  }
}

const TURN = { store: false, input: 'And?' };

describe('X5 G2 a request that its key’s limits refuse', () => {
  const exhausted = { budget: { tokens: 4000 } };
  const REFUSED: readonly [why: string, limits: JsonObject, isSent: boolean, code: string][] = [
    ['rpm', { rpm: 1 }, true, 'rate_limit_exceeded'],
    ['a hard budget in tokens', exhausted, false, 'insufficient_quota'],
    ['a hard budget in money', { budget: { USD: 0.000001 } }, false, 'insufficient_quota'],
  ];

  test.each(REFUSED)(
    '%s: costs two calls at most, for any length of the conversation',
    async (_, limits, isSent) => {
      for (const input of ['Hello', 'x'.repeat(60_000)]) {
        const made = await Conversation.create({ limits, turns: 5, input });
        if (isSent) expect((await made.send(TURN)).status).toBe(200);
        for (const fields of [
          { previous_response_id: made.last },
          { previous_response_id: made.last, store: false },
          { previous_response_id: made.last, background: true },
          { background: true },
          { background: true, store: false, stream: true },
          { store: false },
          {},
          { input: [{ type: 'item_reference', id: made.item }] },
          { previous_response_id: made.last, input: [{ type: 'item_reference', id: made.item }] },
        ]) {
          await made.reset();
          const response = await made.send(fields);
          expect([response.status >= 400, await response.text()]).toEqual([true, expect.any(String)]);
          await made.gateway.idle();
          expect(made.calls.length).toBeLessThanOrEqual(2);
          expect(made.calls).not.toContain('upstream');
          // Its input, which may be 30 MiB, is not sent to an object.
          expect(made.calls).not.toContain('start');
          expect(made.calls.filter((call) => call === 'items' || call === 'itemChars')).toEqual([]);
        }
      }
    },
  );

  test.each(REFUSED)(
    '%s: the refusal is that of a request with the items in its input',
    async (_, limits, isSent, code) => {
      const made = await Conversation.create({ limits });
      if (isSent) await (await made.send(TURN)).text();
      const [inline, continued] = await Promise.all(
        [TURN, { ...TURN, previous_response_id: made.last }].map(async (fields) => {
          const response = await made.send(fields);
          const { error } = decodeObject(await response.text()) ?? {};
          const headers = [...response.headers].filter(([name]) =>
            /ratelimit|budget|retry|x-weir-limit/.test(name),
          );
          return { code: objectOf(error).code, names: headers.map(([name]) => name) };
        }),
      );
      expect(continued?.code).toBe(code);
      expect(continued).toEqual(inline);
    },
  );

  test('max_concurrent: costs two calls, also if all come at once', async () => {
    const made = await Conversation.create({ limits: { max_concurrent: 1 }, turns: 8 });
    const { promise, resolve } = Promise.withResolvers<void>();
    made.held = promise;
    let refused = 0;
    const sent = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const response = await made.send({ previous_response_id: made.last, store: false });
        if (response.status === 429 && ++refused === 19) resolve();
        return response;
      }),
    );
    expect(sent.filter(({ status }) => status === 200)).toHaveLength(1);
    await made.gateway.idle();
    const reads = made.responses.calls.length;
    // One call each, and the chain of the one that was admitted.
    expect(reads).toBeLessThanOrEqual(20 + 8);
    expect(made.gateway.sql.count('reservations')).toBe(0);
  });

  test('a model that the key may not use, or that does not exist: costs one call', async () => {
    const made = await Conversation.create({ limits: { rpm: 100 } });
    for (const model of ['nowhere/m', 'deepseek/deepseek-flash']) {
      if (model.startsWith('deepseek')) await made.limit({ models: ['openai/*'] } as JsonObject);
      await made.reset();
      const response = await made.send({ model, previous_response_id: made.last });
      expect([403, 404]).toContain(response.status);
      expect(made.calls).toEqual(['conversation']);
    }
  });

  test('counting of tokens: a request against the rates, of which nothing is charged', async () => {
    const made = await Conversation.create({ limits: { rpm: 2, budget: { USD: 5 }, max_concurrent: 1 } });
    const count = () => made.send({ previous_response_id: made.last }, '/v1/responses/input_tokens');
    for (const status of [200, 200, 429]) {
      await made.reset();
      const response = await count();
      expect([response.status, await response.text()]).toEqual([status, expect.any(String)]);
      await made.gateway.idle();
      if (status === 429) expect(made.calls).toEqual(['conversation', 'reserve']);
    }
    const shown = decodeObject(await (await made.gateway.fetch('/v1/key', made.token)).text());
    expect(objectOf(shown?.budget)).toMatchObject({ spent: 0, reserved: 0 });
    expect(objectOf(shown?.concurrent).running).toBe(0);
  });
});

describe('X5 G2 a budget with room for the output, but not for the prompt of a long conversation', () => {
  test.each([
    ['tokens', { budget: { tokens: 100_000 } }],
    ['money', { budget: { USD: 0.01 } }],
  ])('in %s: refuses in two calls, and the message names what the whole request needs', async (_, limits) => {
    const made = await Conversation.create({ limits, turns: 5, input: 'é'.repeat(40_000) });
    const long = { previous_response_id: made.last, max_output_tokens: 10 };
    for (const fields of [long, { ...long, background: true }, { ...long, store: false, stream: true }]) {
      await made.reset();
      const response = await made.send(fields);
      const { error } = decodeObject(await response.text()) ?? {};
      expect([response.status, objectOf(error).code]).toEqual([429, 'insufficient_quota']);
      await made.gateway.idle();
      expect(made.calls).toEqual(['conversation', 'reserve']);
    }
    await made.reset();
    const short = { input: 'And?', max_output_tokens: 10, store: false };
    expect((await made.send(short)).status).toBe(200);
  });

  test('the texts of the chain are reserved before it is read, for a provider with Responses and for another', async () => {
    const made = await Conversation.create({
      limits: { budget: { tokens: 1e7 } },
      turns: 4,
      input: 'é"\n'.repeat(900),
    });
    const reserved: number[] = [];
    for (const model of ['openai/gpt-4o-mini', 'deepseek/deepseek-flash']) {
      await made.reset();
      let highest: number[] = [];
      made.gateway.onReserve = () => {
        const [row] = made.gateway.sql.exec<{ tokens: number }>('SELECT tokens FROM reservations').toArray();
        highest = [...highest, row?.tokens ?? 0];
      };
      await (await made.send({ model, previous_response_id: made.last, max_output_tokens: 10 })).text();
      await made.gateway.idle();
      reserved.push(...highest);
    }
    // The row before each of the two calls: the second one shows what the first has reserved. Inputs have 900 times 4 bytes each.
    expect(reserved.map((tokens) => tokens > 4 * 900 * 4)).toEqual([false, true, false, true]);
  });
});

describe('X5 G3 a request that is admitted', () => {
  test('is charged what its provider reports, once, and leaves no reservation', async () => {
    const made = await Conversation.create({ limits: { budget: { tokens: 1e6 }, rpm: 100, tpm: 1e6 } });
    for (let n = 0; n < 3; n++) {
      const response = await made.send({ previous_response_id: made.last, store: n > 0 });
      expect(response.headers.get('x-ratelimit-remaining-requests')).toBe(String(99 - n));
      await response.text();
    }
    await made.gateway.idle();
    const shown = decodeObject(await (await made.gateway.fetch('/v1/key', made.token)).text());
    expect(objectOf(shown?.budget)).toMatchObject({ spent: 30, reserved: 0 });
    expect(objectOf(shown?.requests).remaining).toBe(97);
  });

  test('reserves its whole prompt before it is sent', async () => {
    const made = await Conversation.create({
      limits: { budget: { tokens: 1e6 } },
      input: 'x'.repeat(50_000),
    });
    let reserved = 0;
    made.gateway.onReserve = () => {
      const [row] = made.gateway.sql.exec<{ tokens: number }>('SELECT tokens FROM reservations').toArray();
      reserved = Math.max(reserved, row?.tokens ?? 0);
    };
    // The second call extends what the first one reserved.
    await made.send({ previous_response_id: made.last, store: false });
    expect(made.calls.filter((call) => call === 'reserve')).toHaveLength(2);
    expect(reserved).toBeGreaterThan(3 * 50_000);
    await made.limit({ budget: { tokens: 100_000 } });
    const refused = await made.send({ previous_response_id: made.last, store: false });
    expect(objectOf(decodeObject(await refused.text())?.error).code).toBe('insufficient_quota');
    await made.gateway.idle();
    expect(made.gateway.sql.count('reservations')).toBe(0);
  });

  test.each<[what: string, fields: JsonObject]>([
    ['names an item that does not exist', { input: [{ type: 'item_reference', id: 'msg_none' }] }],
    ['has more in its prompt than can be counted', { previous_response_id: 'last', tools: 'none' }],
    ['continues nothing that exists', { previous_response_id: `resp_${'0'.repeat(32)}` }],
    ['names a conversation', { conversation: 'conv_1' }],
  ])('and then refused, because it %s, keeps no reservation', async (_, fields) => {
    const made = await Conversation.create({ limits: { budget: { tokens: 1e6 }, max_concurrent: 1 } });
    const previous = fields.previous_response_id === 'last' ? { previous_response_id: made.last } : {};
    for (let n = 0; n < 3; n++) {
      const response = await made.send({ ...fields, ...previous });
      expect([response.status, await response.text()]).toEqual([
        fields.tools ? 429 : 400,
        expect.any(String),
      ]);
      await made.gateway.idle();
      expect(made.gateway.sql.count('reservations')).toBe(0);
    }
  });
});

describe('B3 memory', () => {
  const LARGE = 'x'.repeat(4_000_000);

  test('of a large conversation is granted before it is read: two of 8 MB at once', async () => {
    const made = await Conversation.create({ turns: 2, input: LARGE });
    let reading = 0;
    let most = 0;
    const { getByName } = made.responses;
    made.responses.getByName = (name) => {
      const stub = getByName.call(made.responses, name);
      return {
        ...stub,
        conversation: async (owner, maxChars) => {
          const isRead = maxChars > 200_000;
          if (isRead) most = Math.max(most, ++reading);
          const read = await stub.conversation(owner, maxChars);
          if (isRead) setTimeout(() => reading--, 5);
          return read;
        },
      };
    };
    const sent = await Promise.all(
      Array.from({ length: 6 }, () => made.send({ previous_response_id: made.last, store: false })),
    );
    // In this gateway the wait for memory is short.
    expect(sent.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
    expect(sent.map(({ status }) => status)).toContain(200);
    // Each of the two conversations has two responses.
    expect(most).toBeLessThanOrEqual(4);
  });

  test.each(['', '/input_items', '/cancel'])(
    'of a large stored text is granted before it is read: %s',
    async (path) => {
      const made = await Conversation.create({ turns: 1, input: LARGE });
      const method = path === '/cancel' ? 'POST' : 'GET';
      const read = async () => {
        const response = await made.gateway.fetch(`/v1/responses/${made.last}${path}`, made.token, {
          method,
        });
        return { status: response.status, text: await response.text() };
      };
      const answers = await Promise.all(Array.from({ length: 12 }, read));
      const [first] = answers;
      expect(first?.status).toBe(path === '/cancel' ? 400 : 200);
      for (const answer of answers) expect(answer).toEqual(first);
      if (path === '/input_items') expect(first?.text.length).toBeGreaterThan(LARGE.length);
    },
  );

  test('of a response whose client leaves is released', async () => {
    const made = await Conversation.create({ turns: 1, input: LARGE });
    for (let n = 0; n < 12; n++) {
      const response = await made.gateway.fetch(`/v1/responses/${made.last}/input_items`, made.token);
      expect(response.status).toBe(200);
      await response.body?.cancel();
    }
  });
});
