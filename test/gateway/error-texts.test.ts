/** What records and logs keep of a provider's message, and who sees it. */
import { describe, expect, test } from 'vitest';
import { viewRecord } from '../../src/api/record-view.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import {
  answerWith,
  DONE,
  event,
  json,
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
  ALIASES: { two: ['acme/m', 'brook/n'] },
};
const QUOTING = refuse(400, { message: "Invalid value 'Hello' of messages: the key-of-acme may not use it" });
const BUSY = refuse(503, { message: 'The cluster is warming up' });

async function ask(
  behaviors: ConstructorParameters<typeof RoutedGateway>[0],
  fields: JsonObject,
  env: JsonObject = {},
  init: RequestInit = {},
) {
  const gateway = new RoutedGateway(behaviors, { ...ENV, ...env });
  const response = await read(await gateway.ask({ model: 'acme/m', ...fields }, init));
  await settle();
  const [record] = gateway.records;
  if (record === undefined) throw new Error('There is no record');
  return { gateway, response, record };
}

describe.each([true, false])('E5 streamed: %s', (stream) => {
  test('the record and the log have what the provider said, without the prompt and the credential', async () => {
    const { response, record } = await ask({ m: [QUOTING] }, { stream });
    expect(response.status).toBe(400);
    expect(record.attempts).toMatchObject([
      {
        status: 400,
        message: "Invalid value '…' of messages: the [redacted] may not use it",
        message_shown: true,
      },
    ]);
  });

  test('an error in a response with success has one while another target may follow', async () => {
    const error = { error: { message: 'The cluster is warming up', code: 503 } };
    const first = stream ? sse(`data: ${JSON.stringify(error)}\n\n`) : json(error);
    const { response, record } = await ask({ m: [first], n: [answerWith('Hi')] }, { model: 'two', stream });
    expect(response.text).toBe('Hi');
    expect(record.attempts[0]).toMatchObject({ message: 'The cluster is warming up' });
  });

  test('a key sees only what its own error had; the admin sees all', async () => {
    const { record } = await ask({ m: [BUSY], n: [QUOTING] }, { model: 'two', stream });
    const messages = (isAdmin: boolean) =>
      viewRecord(record, isAdmin).attempts?.map(({ message = null }) => message);
    expect(messages(true)).toEqual(['The cluster is warming up', expect.stringMatching(/^Invalid value/)]);
    expect(messages(false)).toEqual([null, expect.stringMatching(/^Invalid value/)]);
  });

  test('a key does not see why the deployment was refused; the admin does', async () => {
    const refused = refuse(401, { message: 'This account is suspended' });
    const { record } = await ask({ m: [refused] }, { stream });
    expect(viewRecord(record, true).attempts).toMatchObject([{ message: 'This account is suspended' }]);
    expect(viewRecord(record, false).attempts?.[0]).not.toHaveProperty('message');
  });

  test.each([
    ['ERROR_TEXTS=off', { ERROR_TEXTS: 'off' }],
    ['AUTH=passthrough', { AUTH: 'passthrough' }],
  ])('%s keeps none', async (_, env) => {
    const { record } = await ask({ m: [QUOTING] }, { stream }, env);
    expect(record.status).toBe('failed');
    expect(JSON.stringify(record)).not.toContain('may not use it');
  });

  test('LEARN=off keeps them', async () => {
    const { record } = await ask({ m: [QUOTING] }, { stream }, { LEARN: 'off' });
    expect(record.attempts[0]).toHaveProperty('message');
  });

  test('a finished request has none', async () => {
    const { record } = await ask({ m: [answerWith('Hi')] }, { stream });
    expect(record.attempts[0]).not.toHaveProperty('message');
  });
});

describe('E5 what Weir says of a failure is kept as what the provider says, and the key sees it', () => {
  const kept = ({ record }: Awaited<ReturnType<typeof ask>>) =>
    viewRecord(record, false).attempts?.map(({ message = null }) => message);

  test.each([{}, { ERROR_TEXTS: 'off' }])('a response that is no JSON (%j)', async (env) => {
    const answer = { kind: 'answer', type: 'application/json', pieces: ['certainly no JSON'] } as const;
    const asked = await ask({ m: [answer] }, {}, env);
    expect(asked.record).toMatchObject({ error_code: 'upstream_invalid' });
    expect(kept(asked)).toEqual([expect.stringContaining('is not valid JSON')]);
    expect(JSON.stringify(asked.record)).not.toContain('certainly');
  });

  test('a stream that ends after some output', async () => {
    const asked = await ask({ m: [sse(ROLE, event({ content: 'Hi' }))] }, { stream: true });
    expect(asked.record).toMatchObject({ status: 'failed', error_code: 'upstream_truncated' });
    expect(kept(asked)).toEqual([expect.stringContaining('ended the stream before the answer was complete')]);
  });

  test('the first of two attempts: only the admin, whose client got another one', async () => {
    const answer = { kind: 'answer', type: 'application/json', pieces: ['no JSON'] } as const;
    const asked = await ask({ m: [answer], n: [answerWith('Hi')] }, { model: 'two' });
    expect(asked.record.attempts[0]?.message).toContain('is not valid JSON');
    expect(kept(asked)).toEqual([null, null]);
  });
});

test('E5 an error after output has no message, because the body was released', async () => {
  const error = { error: { message: 'The cluster is warming up' } };
  const script = sse(ROLE, event({ content: 'Hi' }), `data: ${JSON.stringify(error)}\n\n`);
  const { record } = await ask({ m: [script] }, { stream: true });
  expect(record.status).toBe('failed');
  expect(record.attempts[0]).not.toHaveProperty('message');
});

describe('E5 a word of the provider is stored in the form of a code, otherwise as one of Weir', () => {
  const SENTENCE = 'my password is zebraquartz for alice';
  const WORDS = [
    ['eos_token', true],
    ['MAX.OUTPUT-tokens_4', true],
    ['x'.repeat(64), true],
    ['x'.repeat(65), false],
    [SENTENCE, false],
    ['zebraquartz:alice', false],
    ['zebra/quartz', false],
    ['Zebraquärtz', false],
    ['zebraquartz\n', false],
  ] as const;

  test.each(WORDS)('the finish reason %j: %s', async (word, isStored) => {
    const end = sse(ROLE, event({ content: 'Hi' }), event({}, word), DONE);
    const { gateway, record } = await ask({ m: [end] }, { stream: true });
    expect(record).toMatchObject({ status: 'finished', finish_reason: isStored ? word : 'other' });
    if (!isStored) expect(JSON.stringify([record, gateway.gateway.logged])).not.toContain(word);
  });

  test.each(WORDS)('the type %j, which stands for a missing code: %s', async (type, isStored) => {
    const error = { error: { message: 'No', type } };
    const inStream = sse(ROLE, event({ content: 'Hi' }), `data: ${JSON.stringify(error)}\n\n`);
    const { gateway, record } = await ask({ m: [inStream] }, { stream: true });
    expect(record.error_code).toBe(isStored ? type : 'upstream_error');
    if (!isStored) expect(JSON.stringify([record, gateway.gateway.logged])).not.toContain(type);
  });
});
