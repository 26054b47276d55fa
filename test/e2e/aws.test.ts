/** Signed requests and sessions of AWS in workerd: one exchange for a flood of requests, also where the first requester is gone. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeAws } from '../credentials/fake-aws.ts';
import { type Runtime, startWorkers, type WorkerOptions } from './workers.ts';

const ID = 'AKIDEXAMPLE';
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const AUTH = {
  access_key_id: 'AWS_ACCESS_KEY_ID',
  secret_access_key: 'AWS_SECRET_ACCESS_KEY',
  role_arn: 'arn:aws:iam::123456789012:role/weir',
};
const VARS = {
  AUTH: 'open',
  RETRIES: '0',
  AWS_ACCESS_KEY_ID: ID,
  AWS_SECRET_ACCESS_KEY: SECRET,
  AWS_REGION: 'eu-central-1',
  AWS_ROLE_ARN: AUTH.role_arn,
  // The models of the flood are in workerd. Its sessions come from AWS.
  PROVIDERS: JSON.stringify({
    near: {
      ...{ base_url: 'https://models.internal/v1', binding: 'MODELS' },
      auth: { aws: { ...AUTH, region: 'eu-central-1', service: 'bedrock' } },
    },
  }),
};

const message = { role: 'assistant', content: 'Here.' };
const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
const answer = () =>
  Response.json({ id: 'c', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }], usage });

let aws: FakeAws;
let runtime: Runtime;

function workers(): WorkerOptions[] {
  const self = { type: 'worker', worker: 'weir' } as const;
  return [
    {
      main: 'flood-worker.ts',
      vars: VARS,
      bindings: { SELF: self },
      outbound: (url, init) => aws.fetch(url, init),
    },
  ];
}

beforeAll(async () => {
  aws = new FakeAws({ now: Date.now, answer });
  runtime = await startWorkers({ workers: workers() });
});
beforeEach(async () => {
  aws = new FakeAws({ now: Date.now, answer });
  aws.identities.set(ID, { secret: SECRET });
  // A restart is a fresh isolate.
  await runtime.set(workers());
});
afterAll(() => runtime[Symbol.asyncDispose]());

const messages = [{ role: 'user', content: 'Hellö 👋' }];

function ask(init: RequestInit = {}): Promise<Response> {
  return fetch(`${runtime.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'bedrock/openai.gpt-oss-120b', messages }),
    ...init,
  });
}

/** Holds back the session. The promise of its first request is awaited, because a poll would take a processor from workerd. */
function holdSession() {
  const arrived = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  aws.beforeSession = () => {
    arrived.resolve();
    return release.promise;
  };
  return { arrived: arrived.promise, release: release.resolve };
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
    const { arrived, release } = holdSession();
    const body = JSON.stringify({ model: 'near/m', messages });
    const asked = fetch(`${runtime.url}/flood?count=1000`, { method: 'POST', body });
    await Promise.race([arrived, asked]);
    release();
    const answers: string[] = JSON.parse(await (await asked).text());
    expect([answers.length, new Set(answers)]).toEqual([1000, new Set(['served'])]);
    expect(aws.sessionCalls).toBeLessThanOrEqual(2);
    expect(aws.requests.map(({ refused }) => refused)).toEqual(aws.requests.map(() => null));
  });

  test('the first requester disconnects: those that wait for its session are served by it', async () => {
    const { arrived, release } = holdSession();
    const first = new AbortController();
    const cancelled = ask({ signal: first.signal });
    await arrived;
    const asked = Array.from({ length: 20 }, async () => (await ask()).status);
    first.abort();
    await expect(cancelled).rejects.toThrow();
    release();
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
    expect(aws.sessionCalls).toBeLessThanOrEqual(2);
  });
});
