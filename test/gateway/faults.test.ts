/** Whose fault a failed request is, and by which code of Weir's reports group it. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import {
  answerWith,
  type Behavior,
  event,
  ROLE,
  RoutedGateway,
  read,
  refuse,
  settle,
  sse,
} from './upstreams.ts';

const ENV = {
  PROVIDERS: {
    acme: { base_url: 'https://acme/v1', api_key: 'ACME_KEY' },
    brook: { base_url: 'https://brook/v1', api_key: 'BROOK_KEY' },
  },
  ACME_KEY: 'key-of-acme',
  BROOK_KEY: 'key-of-brook',
  ALIASES: { one: 'acme/m', two: ['acme/m', 'brook/n'] },
};

async function failureOf(
  behaviors: ConstructorParameters<typeof RoutedGateway>[0],
  fields: JsonObject = {},
  env: JsonObject = {},
) {
  const gateway = new RoutedGateway(behaviors, { ...ENV, ...env });
  await read(await gateway.ask({ model: 'acme/m', ...fields }));
  await settle();
  const [record] = gateway.records;
  return [record?.fault, record?.error, record?.error_code];
}

const MISSING = refuse(404, { message: 'The model `m` does not exist', code: 'model_not_found' });
const FILTERED = refuse(403, { message: 'The content filter stopped it', code: 'content_filter' });
const UNREACHABLE: Behavior = { kind: 'unreachable' };

describe.each([true, false])('E6 streamed: %s', (stream) => {
  test.each<[string, Behavior, readonly string[]]>([
    ['a mistake', refuse(400), ['caller', 'invalid_request', 'invalid_request']],
    ['a mistake with a code', refuse(422, { code: '3051' }), ['caller', 'invalid_request', '3051']],
    ['a body that is too large', refuse(413), ['caller', 'request_too_large', 'request_too_large']],
    ['another 4xx', refuse(409), ['caller', 'upstream_error', 'upstream_error']],
    ['a model that the caller named', MISSING, ['caller', 'model_not_found', 'model_not_found']],
    ['a content filter', FILTERED, ['caller', 'content_filter', 'content_filter']],
    ['a credential', refuse(401), ['deployment', 'upstream_credential', 'upstream_credential']],
    ['something forbidden', refuse(403), ['deployment', 'upstream_refused', 'upstream_refused']],
    ['a balance', refuse(402), ['deployment', 'upstream_balance', 'upstream_balance']],
    ['a rate limit', refuse(429, { code: '4290' }), ['provider', 'rate_limited', '4290']],
    ['an overload', refuse(529), ['provider', 'upstream_overloaded', 'upstream_overloaded']],
    ['a failure', refuse(500, { code: '5000' }), ['provider', 'upstream_error', '5000']],
    [
      'a word of Weir',
      refuse(500, { code: 'internal_error' }),
      ['provider', 'upstream_error', 'internal_error'],
    ],
    ['no connection', UNREACHABLE, ['provider', 'upstream_unreachable', 'upstream_unreachable']],
  ])('%s', async (_, behavior, expected) => {
    expect(await failureOf({ m: [behavior] }, { stream })).toEqual(expected);
  });

  test('a model that an alias names is the fault of the deployment', async () => {
    const [fault, error] = await failureOf({ m: [MISSING] }, { stream, model: 'one' });
    expect([fault, error]).toEqual(['deployment', 'model_not_found']);
  });

  test('an alias has the fault of its last attempt', async () => {
    const [fault] = await failureOf({ m: [refuse(503)], n: [refuse(400)] }, { stream, model: 'two' });
    expect(fault).toBe('caller');
  });

  test('the own credential of a caller is the fault of the caller', async () => {
    expect((await failureOf({ m: [refuse(401)] }, { stream }, { AUTH: 'passthrough' }))[0]).toBe('caller');
  });

  test('a finished request has none', async () => {
    expect(await failureOf({ m: [answerWith('Hi')] }, { stream })).toEqual([null, null, null]);
  });
});

test('E6 a truncated stream is the fault of the provider, with any word of its error', async () => {
  const error = { error: { message: 'no', code: 'internal_error' } };
  const broken = sse(ROLE, event({ content: 'Hi' }), `data: ${JSON.stringify(error)}\n\n`);
  expect((await failureOf({ m: [broken] }, { stream: true }))[0]).toBe('provider');
  const cut = sse(ROLE, event({ content: 'Hi' }));
  expect((await failureOf({ m: [cut] }, { stream: true })).slice(0, 2)).toEqual([
    'provider',
    'upstream_truncated',
  ]);
});
