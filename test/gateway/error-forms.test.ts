/** Tests errors in forms that no provider here has: never a success, and their reason reaches every client's SDK (E1, E2, F2). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { CLIENTS, see } from './sdk-clients.ts';
import { type Behavior, DONE, event, json, ROLE, RoutedGateway, read, sse } from './upstreams.ts';

const NAMES = Object.keys(CLIENTS);
const data = (value: object | string) =>
  `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;

/** The error and the words of it that the client gets. */
const FORMS: Readonly<Record<string, readonly [event: string, reason: string]>> = {
  'a list under error': [data({ error: [{ message: 'Worker died' }] }), 'Worker died'],
  'a list of texts under error': [data({ error: ['Worker died'] }), 'Worker died'],
  'a number under error': [data({ error: 500, message: 'Worker died' }), 'Worker died'],
  'true under error': [data({ error: true, message: 'Worker died' }), 'Worker died'],
  'errors in a list': [
    data({ success: false, errors: [{ code: 5021, message: 'Worker died' }] }),
    'Worker died',
  ],
  'errors by field': [data({ errors: { model: ['Worker died'] } }), 'model: Worker died'],
  'a code and a message': [data({ code: 'InternalError', message: 'Worker died' }), 'Worker died'],
  'a code and msg': [data({ code: 1234, msg: 'Worker died' }), 'Worker died'],
  base_resp: [
    data({ choices: null, base_resp: { status_code: 1024, status_msg: 'Worker died' } }),
    'Worker died',
  ],
  'success: false': [data({ success: false, message: 'Worker died' }), 'Worker died'],
  'status: error': [data({ status: 'error', message: 'Worker died' }), 'Worker died'],
  'a lone message': [data({ message: 'Worker died' }), 'Worker died'],
  'a message with an id of the request': [data({ message: 'Worker died', request_id: 'r' }), 'Worker died'],
  'x_groq.error': [event({}, null, { x_groq: { id: 'r', error: 'over_capacity' } }), 'over_capacity'],
  'x_groq.error beside a finish': [
    event({}, 'stop', { x_groq: { error: 'over_capacity' } }),
    'over_capacity',
  ],
  'an error of a choice': [
    data({ choices: [{ index: 0, delta: {}, error: { message: 'Worker died' }, finish_reason: 'stop' }] }),
    'Worker died',
  ],
  'the field error': ['error: {"code":500,"message":"Worker died"}\n\n', 'Worker died'],
  'the field error with a text': ['error: Worker died\n\n', 'Worker died'],
};
const LIST = Object.entries(FORMS).map(([form, [piece, reason]]) => ({ form, piece, reason }));

describe.each(LIST)('F2 E2 $form', ({ piece, reason }) => {
  const failed = { error: expect.stringContaining(reason) };

  test.each(NAMES)('%s: first, after text, and after the finish', async (client) => {
    const text = event({ content: 'Half an ans' });
    expect(await see(client, 'chat', sse(piece, DONE))).toEqual(failed);
    expect(await see(client, 'chat', sse(ROLE, text, piece, DONE))).toEqual(failed);
    expect(await see(client, 'chat', sse(ROLE, text, piece))).toEqual(failed);
    expect(await see(client, 'chat', sse(ROLE, text, event({}, 'stop'), piece, DONE))).toEqual(failed);
  });
});

const WHOLE = LIST.filter(({ piece }) => piece.startsWith('data: '));

describe.each(WHOLE)('E1 $form, as a complete response with the status 200', ({ piece, reason }) => {
  test.each(NAMES)('%s: the reason', async (client) => {
    const whole = JSON.parse(piece.slice('data: '.length).replace('"delta"', '"message"'));
    expect(await see(client, 'chat', json(whole))).toEqual({ error: expect.stringContaining(reason) });
  });
});

const PROVIDERS = JSON.stringify({ any: { base_url: 'https://any' }, next: { base_url: 'https://next' } });
const ALIASES = JSON.stringify({ both: [{ model: 'any/a' }, { model: 'next/b' }] });
const GATEWAY = { PROVIDERS, ALIASES };
const refused = (status: number, body: JsonObject): Behavior => ({
  kind: 'refuse',
  status,
  body: JSON.stringify(body),
});

describe('E1 the reason of a refusal', () => {
  test.each<[string, JsonObject, string]>([
    [
      'errors',
      { success: false, errors: [{ code: 5006, message: 'AiError: Bad input' }], result: null },
      'any: AiError: Bad input',
    ],
    ['two errors', { errors: [{ message: 'one' }, { message: 'two' }] }, 'any: one'],
    ['errors that are texts', { errors: ['one', 'two'] }, 'any: one; two'],
    [
      'errors by field',
      { errors: { stop: ['is unknown', 'is bad'], n: 'too big' } },
      'any: stop: is unknown; is bad; n: too big',
    ],
    ['base_resp', { base_resp: { status_code: 2013, status_msg: 'invalid params' } }, 'any: invalid params'],
    ['msg', { code: 1210, msg: 'invalid params' }, 'any: invalid params'],
    ['error_msg', { error_code: 17, error_msg: 'invalid params' }, 'any: invalid params'],
    ['a reason', { error: { reason: 'invalid params' } }, 'any: invalid params'],
    ['a title', { type: 'about:blank', title: 'invalid params' }, 'any: invalid params'],
  ])('%s', async (_, body, message) => {
    const gateway = new RoutedGateway({ a: [refused(400, body)] }, GATEWAY);
    const got = await read(await gateway.ask({ model: 'any/a' }));
    expect(got).toMatchObject({ status: 400, error: { message } });
  });
});

describe('E1 the status that a code means, in a response with the status 200', () => {
  test.each<[string, JsonObject, number, string, string]>([
    [
      'MiniMax’s rate limit',
      { base_resp: { status_code: 1002, status_msg: 'slow down' } },
      429,
      '1002',
      'any: slow down',
    ],
    [
      'MiniMax’s parameters',
      { base_resp: { status_code: 2013, status_msg: 'bad' } },
      400,
      '2013',
      'any: bad',
    ],
    [
      'MiniMax’s filter',
      { base_resp: { status_code: 1026, status_msg: 'input new_sensitive' } },
      400,
      '1026',
      'any: input new_sensitive',
    ],
    [
      'MiniMax’s balance, which is the deployment’s',
      { base_resp: { status_code: 1008, status_msg: 'no' } },
      502,
      'upstream_balance',
      'refused this deployment',
    ],
    [
      'an unknown code of MiniMax',
      { base_resp: { status_code: 1999, status_msg: 'no' } },
      502,
      '1999',
      'any: no',
    ],
    [
      'Cloudflare’s capacity',
      { success: false, errors: [{ code: 3040, message: 'full' }] },
      429,
      '3040',
      'any: full',
    ],
    ['a code that is a status', { code: 429, message: 'slow down' }, 429, 'rate_limited', 'any: slow down'],
    ['a number under error', { error: 429, message: 'slow down' }, 429, 'rate_limited', 'any: slow down'],
    [
      'a word',
      { code: 'rate_limit_exceeded', message: 'slow down' },
      429,
      'rate_limit_exceeded',
      'any: slow down',
    ],
    ['an unknown code', { code: 4711, msg: 'no' }, 502, '4711', 'any: no'],
  ])('%s', async (_, body, status, code, message) => {
    for (const behavior of [json(body), sse(data(body), DONE)]) {
      const gateway = new RoutedGateway({ a: [behavior] }, GATEWAY);
      const got = await read(await gateway.ask({ model: 'any/a', stream: behavior.kind === 'answer' }));
      expect(got).toMatchObject({ status, error: { code, message: expect.stringContaining(message) } });
      expect(gateway.records).toHaveLength(1);
    }
  });
});

test('R2 an unknown form of an error, before output: the next target', async () => {
  const failing = sse(ROLE, data({ success: false, message: 'no' }), DONE);
  const gateway = new RoutedGateway(
    { a: [failing], b: [sse(event({ content: 'b' }, 'stop'), DONE)] },
    GATEWAY,
  );
  expect(await read(await gateway.ask({ model: 'both', stream: true }))).toMatchObject({
    text: 'b',
    error: null,
  });
});

describe.each(['messages', 'gemini', 'responses'] as const)(
  'E1 E2 a host of %s that reports in another form',
  (upstream) => {
    const forms = ['a code and msg', 'base_resp', 'a lone message', 'errors in a list', 'the field error'];
    const cases = forms.flatMap((form) => NAMES.map((client) => ({ form, client })));

    test.each(cases)('$form, $client: the reason', async ({ form, client }) => {
      const [piece = '', reason = ''] = FORMS[form] ?? [];
      const failed = { error: expect.stringContaining(reason) };
      expect(await see(client, upstream, sse(piece))).toEqual(failed);
      if (!piece.startsWith('data: ')) return;
      expect(await see(client, upstream, json(JSON.parse(piece.slice('data: '.length))))).toEqual(failed);
    });
  },
);

describe('E2 what is no error', () => {
  test.each<[string, JsonObject]>([
    ['null, empty or false under error', { choices: [], error: null }],
    ['an empty text', { choices: [], error: '' }],
    ['false', { error: false, choices: [] }],
    ['a base_resp of 0', { choices: [], base_resp: { status_code: 0, status_msg: '' } }],
    ['an empty list of errors', { choices: [], errors: [], success: true }],
    [
      'a code of success beside a chunk',
      { code: 0, message: 'success', choices: [{ index: 0, delta: { content: 'b' } }] },
    ],
    ['nothing', {}],
  ])('%s', async (_, value) => {
    const gateway = new RoutedGateway({ a: [sse(event({ content: 'a' }), data(value), DONE)] }, GATEWAY);
    expect(await read(await gateway.ask({ model: 'any/a', stream: true }))).toMatchObject({
      finishes: ['stop'],
      error: null,
    });
  });
});

describe('F2 [DONE] without a finish', () => {
  const truncated = { status: 502, error: { code: 'upstream_truncated' } };
  const usage = { prompt_tokens: 5, completion_tokens: 0, total_tokens: 5 };

  test.each<[string, string[]]>([
    ['nothing', []],
    ['a role', [ROLE]],
    ['a role alone', [event({ role: 'assistant' })]],
    ['an empty delta', [event({})]],
    ['an empty object', [ROLE, data({})]],
    ['empty reasoning', [event({ role: 'assistant', reasoning_content: '' })]],
    ['usage of no tokens', [ROLE, data({ choices: [], usage })]],
  ])('%s before it: truncated, and the next target is tried', async (_, pieces) => {
    const gateway = new RoutedGateway(
      { a: [sse(...pieces, DONE)], b: [sse(event({ content: 'b' }, 'stop'), DONE)] },
      GATEWAY,
    );
    expect(await read(await gateway.ask({ model: 'any/a', stream: true }))).toMatchObject(truncated);
    expect(await read(await gateway.ask({ model: 'both', stream: true }))).toMatchObject({
      text: 'b',
      error: null,
    });
  });

  test.each(NAMES)('%s: a role before it: truncated', async (client) => {
    expect(await see(client, 'chat', sse(ROLE, DONE))).toEqual({
      error: expect.stringContaining('before the answer was'),
    });
  });

  test.each<[string, object]>([
    ['an object of no known form', { state: 'shutting_down' }],
    ['a type that nobody knows', { type: 'notice', text: 'Bye' }],
    ['choices that are null', { id: 'a', choices: null }],
  ])('text and %s before it: truncated; with a finish, complete', async (_, value) => {
    const text = event({ content: 'a' });
    const gateway = new RoutedGateway({ a: [sse(text, data(value), DONE)] }, GATEWAY);
    const got = await read(await gateway.ask({ model: 'any/a', stream: true }));
    expect(got).toMatchObject({ text: 'a', finishes: [], error: { code: 'upstream_truncated' } });
    const finished = new RoutedGateway({ a: [sse(text, data(value), event({}, 'stop'), DONE)] }, GATEWAY);
    expect(await read(await finished.ask({ model: 'any/a', stream: true }))).toMatchObject({
      finishes: ['stop'],
      error: null,
    });
  });

  test.each<[string, string]>([
    ['usage alone', data({ usage: { prompt_tokens: 5, completion_tokens: 2 } })],
    ['a chunk without choices', data({ object: 'chat.completion.chunk', id: 'a' })],
    ['a vendor event', data({ type: 'x_a.b' })],
    ['an empty object', data({})],
  ])('text and %s before it: stop', async (_, piece) => {
    const gateway = new RoutedGateway({ a: [sse(event({ content: 'a' }), piece, DONE)] }, GATEWAY);
    const got = await read(await gateway.ask({ model: 'any/a', stream: true }));
    expect(got).toMatchObject({ text: 'a', finishes: ['stop'], error: null });
  });

  test.each(NAMES)('%s: a complete response with nothing in it, and no finish: truncated', async (client) => {
    const message = { role: 'assistant', content: '' };
    expect(await see(client, 'chat', json({ choices: [{ index: 0, message }] }))).toEqual({
      error: expect.stringContaining('without a finish_reason'),
    });
  });
});
