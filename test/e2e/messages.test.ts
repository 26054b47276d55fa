/** Tests Anthropic's clients against the gateway, with providers that speak chat and with Anthropic (I1-I3, I6, I7). */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkMessages } from '../../tools/conformance/contract/check-messages.ts';
import { objectOf, textOf } from '../../tools/simulator/json.ts';
import { jsonOf } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const TEXT = 'Water over the crest, “unhurried”, and every drop of it counted — naïvely.';
const messages = [{ role: 'user' as const, content: 'Hello there' }];
const BODY = { model: 'openai/gpt-4o-mini', max_tokens: 64, messages };

/** Sets a field, which prevents passthrough: the request is translated to chat and back. */
const TRANSLATED = {
  'translated/claude-haiku-4-5': { model: 'anthropic/claude-haiku-4-5', set: { service_tier: 'auto' } },
};

let gateway: Gateway;
let client: Anthropic;

function clientWith(apiKey: string): Anthropic {
  return new Anthropic({ apiKey, baseURL: gateway.url, maxRetries: 0 });
}

beforeAll(async () => {
  gateway = await startGateway({
    vars: { AUTH: 'keys', ALIASES: JSON.stringify({ ...TRANSLATED, 'claude-*': 'deepseek/deepseek-flash' }) },
  });
  const admin = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const created = await gateway.post('/admin/keys', { name: 'sdk' }, { headers: admin });
  client = clientWith(textOf((await jsonOf(created)).key));
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** The error that the SDK throws. */
async function thrown(work: PromiseLike<unknown>): Promise<InstanceType<typeof Anthropic.APIError>> {
  const error = await Promise.resolve(work).catch((reason: unknown) => reason);
  if (!(error instanceof Anthropic.APIError)) throw new Error(`It threw ${String(error)}`);
  return error;
}

describe('J4 the version 2026-10-21, which the SDK sends', () => {
  const MODELS_OF_OTHERS = ['openai/gpt-4o-mini', 'gemini/gemini-3.8-flash', 'translated/claude-haiku-4-5'];

  test.each(
    MODELS_OF_OTHERS.flatMap((model) => [true, false].map((isStreamed) => [model, isStreamed] as const)),
  )(
    'I1 %s, streamed: %s: translated, with the provider’s credential and without the version',
    async (model, isStreamed) => {
      const before = gateway.simulator.requests.length;
      const body = { ...BODY, model };
      const message = isStreamed
        ? await client.messages.stream(body).finalMessage()
        : await client.messages.create(body);
      expect(message).toMatchObject({ type: 'message', stop_reason: 'end_turn' });
      const upstream = gateway.simulator.requests[before];
      expect(JSON.stringify(upstream?.headers)).not.toContain('2026-10-21');
      expect(JSON.stringify(upstream?.headers)).not.toContain(client.apiKey ?? 'none');
    },
  );
});

describe('@anthropic-ai/sdk', () => {
  test('I3 messages.stream: text deltas, and the final message with the reported usage', async () => {
    const pieces: string[] = [];
    const stream = client.messages.stream(BODY).on('text', (piece) => pieces.push(piece));
    const message = await stream.finalMessage();
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.join('')).toBe(TEXT);
    expect(message).toMatchObject({
      type: 'message',
      role: 'assistant',
      model: BODY.model,
      content: [{ type: 'text', text: TEXT }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 2, output_tokens: 13 },
    });
  });

  test('I1 messages.create: the same message, and a record that names the protocol', async () => {
    const { data, response } = await client.messages.create(BODY).withResponse();
    expect(data).toMatchObject({ content: [{ type: 'text', text: TEXT }], stop_reason: 'end_turn' });
    expect(response.headers.get('request-id')).toBe(response.headers.get('x-weir-request-id'));
    expect(await gateway.record(response)).toMatchObject({
      route: 'chat',
      client: 'messages',
      provider: 'openai',
      prompt_tokens: 2,
      completion_tokens: 13,
    });
  });

  test('I3 reasoning of another provider becomes thinking blocks', async () => {
    const message = await client.messages
      .stream({ ...BODY, model: 'mistral/magistral-medium-latest' })
      .finalMessage();
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'Two locks, ten minutes each, one boat…' },
      { type: 'text', text: 'Twenty minutes, if no boat comes against it.' },
    ]);
  });

  test("I6 Claude Code's model names reach any provider through a glob", async () => {
    const { response } = await client.messages.create({ ...BODY, model: 'claude-sonnet-5' }).withResponse();
    expect(response.headers.get('x-weir-provider')).toBe('deepseek');
    expect(response.headers.get('x-weir-alias')).toBe('claude-sonnet-5');
  });

  test('I1 messages.countTokens: an estimate, without a request to an upstream', async () => {
    const before = gateway.simulator.requests.length;
    const { input_tokens } = await client.messages.countTokens({ model: BODY.model, messages });
    expect(input_tokens).toBeGreaterThan(1);
    expect(gateway.simulator.requests).toHaveLength(before);
  });

  test('I6 models.list: a page that the SDK reads to its end, without the globs', async () => {
    const ids: string[] = [];
    for await (const model of client.models.list({ limit: 1000 })) {
      expect(model).toMatchObject({ type: 'model', display_name: model.id });
      expect(Date.parse(model.created_at)).not.toBeNaN();
      ids.push(model.id);
    }
    expect(ids).toContain('openai/gpt-4o-mini');
    expect(ids).not.toContain('claude-*');
    expect((await client.models.retrieve('openai/gpt-4o-mini')).display_name).toBe('openai/gpt-4o-mini');
  });

  test('I1 a wrong key: 401 authentication_error', async () => {
    const error = await thrown(clientWith('weir_wrong').messages.create(BODY));
    expect(error).toBeInstanceOf(Anthropic.AuthenticationError);
    expect(error.error).toMatchObject({ type: 'error', error: { type: 'authentication_error' } });
    expect(error.requestID).not.toBeNull();
  });

  test('I1 an unknown model: 404 not_found_error', async () => {
    const error = await thrown(client.messages.create({ ...BODY, model: 'nobody/x' }));
    expect(error).toBeInstanceOf(Anthropic.NotFoundError);
    expect(error.type).toBe('not_found_error');
  });

  test('I2 a thread: 400 with the code that makes the tool runner send the whole conversation', async () => {
    const error = await thrown(client.messages.create({ ...BODY, ...{ thread: { type: 'create' } } }));
    expect(error.status).toBe(400);
    expect(error.error).toMatchObject({ error: { details: { error_code: 'thread_unsupported_request' } } });
  });
});

describe('I1 the routes', () => {
  const headers = () => ({ 'x-api-key': client.apiKey ?? '', 'anthropic-version': '2023-06-01' });

  test.each(['/v1/messages', '/messages', '/v1/messages?beta=true'])('%s is served', async (path) => {
    const response = await gateway.post(path, { ...BODY, stream: true }, { headers: headers() });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(checkMessages(await response.text())).toEqual([]);
  });

  test.each(['/v1/messages/count_tokens', '/messages/count_tokens?beta=true'])(
    '%s is served',
    async (path) => {
      const response = await gateway.post(path, BODY, { headers: headers() });
      expect(await response.json()).toEqual({ input_tokens: expect.any(Number) });
    },
  );

  // The simulator counts words; the estimate is another number.
  test.each(['anthropic/claude-sonnet-5', 'gemini/gemini-3-flash-preview'])(
    'J3: %s counts tokens itself',
    async (model) => {
      const { max_tokens } = BODY;
      const messages = [{ role: 'user', content: 'one two three four five' }];
      const body = { model, max_tokens, messages };
      const response = await gateway.post('/v1/messages/count_tokens', body, { headers: headers() });
      expect(response.headers.get('x-weir-estimated')).toBe('false');
      expect(await response.json()).toEqual({ input_tokens: 5 });
    },
  );

  test('invalid JSON, another method and an unknown path are errors in the form of the protocol', async () => {
    const broken = await gateway.fetch('/v1/messages', { method: 'POST', headers: headers(), body: '{' });
    const got = await gateway.fetch('/v1/messages', { headers: headers() });
    const batches = await gateway.post('/v1/messages/batches', {}, { headers: headers() });
    for (const [response, status, type] of [
      [broken, 400, 'invalid_request_error'],
      [got, 405, 'invalid_request_error'],
      [batches, 404, 'not_found_error'],
    ] as const) {
      expect(response.status).toBe(status);
      expect(objectOf((await jsonOf(response)).error).type).toBe(type);
    }
  });

  test('HEAD / has a response without a body', async () => {
    const response = await gateway.fetch('/', { method: 'HEAD' });
    expect(response.status).toBe(404);
    expect(await response.text()).toBe('');
  });
});

describe.each([
  'mistral/mistral-small-latest',
  'codestral/codestral-latest',
  'deepseek/deepseek-flash',
  'compatible/Qwen/Qwen3.8-27B',
  'gemini/gemini-3-flash-preview',
])('Q1 system messages after the user’s and after results, as Claude Code sends them, at %s', (model) => {
  test('are accepted, and each request begins like the previous one', async () => {
    const before = gateway.simulator.requests.length;
    const history: Anthropic.MessageParam[] = [
      { role: 'user', content: 'steps:2 How high is the river?' },
      { role: 'system', content: [{ type: 'text', text: 'The date is today.' }] },
    ];
    const tools = [{ name: 'gauge', input_schema: { type: 'object' as const } }];
    const base = { model, max_tokens: 2048, system: [{ type: 'text' as const, text: 'Be brief.' }], tools };
    for (let step = 0; step < 3; step++) {
      const { content } = await client.messages.stream({ ...base, messages: history }).finalMessage();
      const results = content.flatMap((block) =>
        block.type === 'tool_use'
          ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: '312 cm' }]
          : [],
      );
      history.push({ role: 'assistant', content }, { role: 'user', content: results });
      history.push({ role: 'system', content: 'Hurry.' });
    }
    const sent = gateway.simulator.requests.slice(before).map(({ body }) => {
      return JSON.stringify(body?.messages ?? body?.contents).slice(0, -1);
    });
    expect(sent).toHaveLength(3);
    expect(sent[1]?.startsWith(sent[0] ?? '-')).toBe(true);
    expect(sent[2]?.startsWith(sent[1] ?? '-')).toBe(true);
  });
});
