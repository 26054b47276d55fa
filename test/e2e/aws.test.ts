/** Signed requests and sessions of AWS in workerd: one exchange for a flood of requests, also where the first requester is gone. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeAws } from '../credentials/fake-aws.ts';
import { FloodGateway, hold } from './flood-gateway.ts';

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

const MODEL = 'bedrock/openai.gpt-oss-120b';

let aws: FakeAws;
let gateway: FloodGateway;
beforeAll(async () => {
  aws = new FakeAws({ now: Date.now, answer });
  gateway = await FloodGateway.start(VARS, (url, init) => aws.fetch(url, init));
});
beforeEach(async () => {
  aws = new FakeAws({ now: Date.now, answer });
  aws.identities.set(ID, { secret: SECRET });
  await gateway.restart();
});
afterAll(() => gateway[Symbol.asyncDispose]());

function holdSession() {
  const session = hold();
  aws.beforeSession = session.wait;
  return session;
}

describe('W11 in workerd', () => {
  test('AWS’s own package accepts what workerd sends, and a body in UTF-8', async () => {
    expect((await gateway.ask(MODEL)).status).toBe(200);
    expect(aws.requests.map(({ service, refused }) => [service, refused])).toEqual([
      ['sts', null],
      ['bedrock-mantle', null],
    ]);
  });

  test('1,000 concurrent requests in a fresh isolate: at most two sessions, and all are served', async () => {
    const { arrived, release } = holdSession();
    const asked = gateway.flood('near/m', 1000);
    await Promise.race([arrived, asked]);
    release();
    const answers = await asked;
    expect([answers.length, new Set(answers)]).toEqual([1000, new Set(['served'])]);
    expect(aws.sessionCalls).toBeLessThanOrEqual(2);
    expect(aws.requests.map(({ refused }) => refused)).toEqual(aws.requests.map(() => null));
  });

  test('the first requester disconnects: those that wait for its session are served by it', async () => {
    expect(new Set(await gateway.leaveFirst(MODEL, holdSession()))).toEqual(new Set([200]));
    expect(aws.sessionCalls).toBeLessThanOrEqual(2);
  });
});
