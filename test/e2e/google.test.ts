/**
 * Tokens of a service account in workerd: one exchange for a flood of requests, also where the first requester is gone
 * or the token ends within it.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeGoogle, SERVICE_ACCOUNT } from '../credentials/fake-google.ts';
import { FloodGateway, hold } from './flood-gateway.ts';

const VARS = {
  ...{ AUTH: 'open', RETRIES: '0', VERTEX_LOCATION: 'us-central1' },
  // As a secret of a file has it: with line ends.
  GOOGLE_SERVICE_ACCOUNT: JSON.stringify(SERVICE_ACCOUNT, null, 2),
  // The models of the first flood are in workerd. Its tokens come from Google.
  PROVIDERS: JSON.stringify({
    near: {
      ...{ base_url: 'https://models.internal/v1', binding: 'MODELS' },
      auth: { google: 'GOOGLE_SERVICE_ACCOUNT' },
    },
  }),
};

const answer = () =>
  Response.json({
    candidates: [{ content: { role: 'model', parts: [{ text: 'Here.' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3, totalTokenCount: 8 },
  });

const MODEL = 'vertex/gemini-2.5-flash';

let google: FakeGoogle;
let gateway: FloodGateway;
beforeAll(async () => {
  google = new FakeGoogle(Date.now, answer);
  gateway = await FloodGateway.start(VARS, (url, init) => google.fetch(url, init));
});
beforeEach(async () => {
  google = new FakeGoogle(Date.now, answer);
  await gateway.restart();
});
afterAll(() => gateway[Symbol.asyncDispose]());

function holdToken() {
  const token = hold();
  google.beforeToken = token.wait;
  return token;
}

describe('W11 tokens of Google in workerd', () => {
  test('1,000 concurrent requests in a fresh isolate: at most two exchanges, and all are served', async () => {
    const { arrived, release } = holdToken();
    const asked = gateway.flood('near/m', 1000);
    await Promise.race([arrived, asked]);
    release();
    const answers = await asked;
    expect([answers.length, new Set(answers)]).toEqual([1000, new Set(['served'])]);
    expect(google.exchanges).toBeLessThanOrEqual(2);
  });

  test('the first requester disconnects: those that wait for its token are served by it', async () => {
    expect(new Set(await gateway.leaveFirst(MODEL, holdToken()))).toEqual(new Set([200]));
    expect(google.exchanges).toBeLessThanOrEqual(2);
  });

  test('the token ends in mid-flood: one more exchange, and no request fails', async () => {
    google.onRequest = () => {
      if (google.requests.length === 50) google.revoke();
    };
    const answers = await gateway.flood(MODEL, 200);
    expect([answers.length, new Set(answers)]).toEqual([200, new Set(['served'])]);
    expect(google.exchanges).toBe(2);
  });
});
