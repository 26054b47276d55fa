/** Signed requests and sessions of AWS in workerd: one exchange for a flood of requests, also where the first requester is gone. */
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeAws } from '../credentials/fake-aws.ts';
import { type Gateway, startGateway } from './gateway.ts';

const ID = 'AKIDEXAMPLE';
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const VARS = {
  AUTH: 'open',
  AWS_BEARER_TOKEN_BEDROCK: undefined,
  AWS_ACCESS_KEY_ID: ID,
  AWS_SECRET_ACCESS_KEY: SECRET,
  AWS_REGION: 'eu-central-1',
  AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/weir',
  BEDROCK_BASE_URL: undefined,
  BEDROCK_MANTLE_BASE_URL: undefined,
};

const message = { role: 'assistant', content: 'Here.' };
const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
const answer = () =>
  Response.json({ id: 'c', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }], usage });

let aws: FakeAws;
let gateway: Gateway | undefined;

beforeEach(async () => {
  aws = new FakeAws({ now: Date.now, answer });
  aws.identities.set(ID, { secret: SECRET });
  // A restart is a fresh isolate.
  gateway ??= await startGateway({ vars: VARS, outbound: (url, init) => aws.fetch(url, init) });
  await gateway.set(VARS);
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

function ask(init: RequestInit = {}): Promise<Response> {
  const messages = [{ role: 'user', content: 'Hello' }];
  if (gateway === undefined) throw new Error('No gateway');
  return gateway.post('/v1/chat/completions', { model: 'bedrock/openai.gpt-oss-120b', messages }, init);
}

async function arrived(): Promise<void> {
  while (aws.sessionCalls === 0) await setImmediate();
}

describe('W11 in workerd', () => {
  test('AWS’s own package accepts what workerd sends, and a body in UTF-8', async () => {
    expect((await ask()).status).toBe(200);
    expect(aws.requests.map(({ service, refused }) => [service, refused])).toEqual([
      ['sts', null],
      ['bedrock-mantle', null],
    ]);
  });

  test('1,000 concurrent requests in a fresh isolate: at most two sessions, and all are served', async () => {
    const release = Promise.withResolvers<void>();
    aws.beforeSession = () => release.promise;
    const asked = Array.from({ length: 1000 }, async () => {
      const response = await ask();
      return response.status === 200 ? 'served' : response.text();
    });
    await arrived();
    release.resolve();
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['served']));
    expect(aws.sessionCalls).toBeLessThanOrEqual(2);
  });

  test('the first requester disconnects: those that wait for its session are served by it', async () => {
    const release = Promise.withResolvers<void>();
    aws.beforeSession = () => release.promise;
    const first = new AbortController();
    const cancelled = ask({ signal: first.signal });
    await arrived();
    const asked = Array.from({ length: 20 }, async () => (await ask()).status);
    first.abort();
    await expect(cancelled).rejects.toThrow();
    release.resolve();
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
    expect(aws.sessionCalls).toBeLessThanOrEqual(2);
  });
});
