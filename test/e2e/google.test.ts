/** Tokens of a service account in workerd: one exchange for a flood of requests, also where the first requester is gone or the token ends within it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeGoogle, SERVICE_ACCOUNT } from '../credentials/fake-google.ts';
import { type Runtime, startWorkers, type WorkerOptions } from './workers.ts';

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

let google: FakeGoogle;
let runtime: Runtime;

function workers(): WorkerOptions[] {
  const self = { type: 'worker', worker: 'weir' } as const;
  return [
    {
      main: 'flood-worker.ts',
      vars: VARS,
      bindings: { SELF: self },
      outbound: (url, init) => google.fetch(url, init),
    },
  ];
}

beforeAll(async () => {
  google = new FakeGoogle(Date.now, answer);
  runtime = await startWorkers({ workers: workers() });
});
beforeEach(async () => {
  google = new FakeGoogle(Date.now, answer);
  // A restart is a fresh isolate.
  await runtime.set(workers());
});
afterAll(() => runtime[Symbol.asyncDispose]());

const messages = [{ role: 'user', content: 'Hello' }];

function ask(init: RequestInit = {}): Promise<Response> {
  return fetch(`${runtime.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'vertex/gemini-2.5-flash', messages }),
    ...init,
  });
}

async function flood(model: string, count: number): Promise<string[]> {
  const body = JSON.stringify({ model, messages });
  const response = await fetch(`${runtime.url}/flood?count=${count}`, { method: 'POST', body });
  return JSON.parse(await response.text());
}

/** Holds back the token. The promise of its first exchange is awaited, because a poll would take a processor from workerd. */
function holdToken() {
  const arrived = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  google.beforeToken = () => {
    arrived.resolve();
    return release.promise;
  };
  return { arrived: arrived.promise, release: release.resolve };
}

describe('W11 tokens of Google in workerd', () => {
  test('1,000 concurrent requests in a fresh isolate: at most two exchanges, and all are served', async () => {
    const { arrived, release } = holdToken();
    const asked = flood('near/m', 1000);
    await Promise.race([arrived, asked]);
    release();
    const answers = await asked;
    expect([answers.length, new Set(answers)]).toEqual([1000, new Set(['served'])]);
    expect(google.exchanges).toBeLessThanOrEqual(2);
  });

  test('the first requester disconnects: those that wait for its token are served by it', async () => {
    const { arrived, release } = holdToken();
    const first = new AbortController();
    const cancelled = ask({ signal: first.signal });
    await arrived;
    const asked = Array.from({ length: 20 }, async () => (await ask()).status);
    first.abort();
    await expect(cancelled).rejects.toThrow();
    release();
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
    expect(google.exchanges).toBeLessThanOrEqual(2);
  });

  test('the token ends in mid-flood: one more exchange, and no request fails', async () => {
    google.onRequest = () => {
      if (google.requests.length === 50) google.revoke();
    };
    const answers = await flood('vertex/gemini-2.5-flash', 200);
    expect([answers.length, new Set(answers)]).toEqual([200, new Set(['served'])]);
    expect(google.exchanges).toBe(2);
  });
});
