/** Tests how often the body of a key with limits is written, what sends it, and of which request a refusal is then read (G2, Z1). */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Attempt, AttemptRunner, stopped } from '../../src/completion/attempt-runner.ts';
import { ReplayableRequest } from '../../src/completion/replayable-request.ts';
import { changeLimits } from '../../src/ledger/limits/limit-tables.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

const ALIASES = { all: ['openai/gpt-4o-mini', 'mistral/mistral-small-latest', 'deepseek/deepseek-flash'] };
const SETTINGS = { ALIASES: JSON.stringify(ALIASES), MISTRAL_API_KEY: 'k', RETRIES: '0' };

const ANSWER = {
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
};

afterEach(() => {
  vi.restoreAllMocks();
});

/** The calls of `writeFor` for one request. */
async function writesOf(
  limits: JsonObject,
  fields: JsonObject,
  gateway = new LimitedGateway(SETTINGS),
): Promise<number> {
  const token = await gateway.key(limits);
  const writes = vi.spyOn(ReplayableRequest.prototype, 'writeFor');
  const response = await gateway.ask(token, { model: 'all', ...fields });
  expect(response.status).toBe(200);
  await response.text();
  return writes.mock.calls.length;
}

describe('G2 a key with limits and three targets', () => {
  test.each([
    ['a limit of the output that the request keeps', { max_output_tokens: 500 }, { max_tokens: 100 }],
    ['the limit of the output itself', { max_output_tokens: 500 }, { max_completion_tokens: 500 }],
    ['a rate alone', { rpm: 100 }, {}],
    ['a budget, and a request with a limit', { budget: { tokens: 1e9 } }, { max_tokens: 100 }],
    ['a limit that the request exceeds', { max_output_tokens: 500 }, { max_tokens: 800 }],
    ['a limit, and a request without one', { max_output_tokens: 500 }, {}],
    ['a budget, and a request without a limit', { budget: { tokens: 1e9 } }, {}],
  ])('%s: each body is written once', async (_, limits, fields) => {
    expect(await writesOf(limits, fields)).toBe(3);
  });

  test('the first one fails: what was measured is sent to it, and the second one gets a body of its own', async () => {
    const urls: string[] = [];
    const fetch = async (url: RequestInfo | URL) => {
      urls.push(new URL(String(url)).hostname);
      return urls.length === 1 ? new Response('', { status: 500 }) : Response.json(ANSWER);
    };
    const gateway = new LimitedGateway(SETTINGS, { fetch });
    expect(await writesOf({ budget: { tokens: 1e9 } }, { max_tokens: 100 }, gateway)).toBe(4);
    expect(urls).toEqual(['api.openai.com', 'api.mistral.ai']);
  });

  test.each([
    ['lower', 200, { max_tokens: 300 }, 200],
    ['higher', 800, {}, 800],
    ['higher than the limit of the request', 800, { max_tokens: 600 }, 600],
    ['gone', null, {}, undefined],
  ])(
    'the object has another limit than KV, %s: the body that is sent is written with it',
    async (_, max, fields, sent) => {
      const gateway = new LimitedGateway(SETTINGS);
      const token = await gateway.key({ rpm: 100, max_output_tokens: 500 });
      changeLimits(gateway.sql, { max_output_tokens: max });
      await (await gateway.ask(token, { model: 'mistral/mistral-small-latest', ...fields })).text();
      expect(gateway.sent.map(({ max_tokens }) => max_tokens)).toEqual([sent]);
    },
  );

  test('no object answers, under BUDGET_FAIL=open: the body has the limit of the request alone', async () => {
    const gateway = new LimitedGateway({ ...SETTINGS, BUDGET_FAIL: 'open' });
    const token = await gateway.key({ budget: { tokens: 1e9 } });
    gateway.trouble = 'fails';
    await (await gateway.ask(token)).text();
    expect(gateway.sent).toEqual([{ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] }]);
  });
});

test('Z1 a refusal of the first target is read of the request that it got, and not of one that was only measured', async () => {
  const sent: JsonObject[] = [];
  const gateway = new LimitedGateway(SETTINGS, {
    fetch: async (_, init) => {
      const body: JsonObject = JSON.parse(String(init?.body));
      sent.push(body);
      const message = "Unsupported parameter: 'seed' is not supported with this model.";
      if (body.seed !== undefined) return Response.json({ error: { message } }, { status: 400 });
      return Response.json(ANSWER);
    },
  });
  const token = await gateway.key({ rpm: 100 });
  // At Mistral the field has another name.
  const models = ['openai/gpt-4o-mini', 'mistral/mistral-small-latest'];
  const response = await gateway.ask(token, { model: 'openai/gpt-4o-mini', models, seed: 7 });
  expect(response.headers.get('x-weir-dropped')).toBe('seed');
  expect(sent.map(({ model }) => model)).toEqual(['gpt-4o-mini', 'gpt-4o-mini']);
});

describe('R10 constructors call no provider', () => {
  /** The outgoing calls of one request. */
  async function callsOf(): Promise<readonly string[]> {
    const gateway = new LimitedGateway(SETTINGS);
    const response = await gateway.ask(await gateway.key({ rpm: 100 }));
    await response.text();
    return gateway.calls;
  }

  test('a runner that does not run', async () => {
    const run = vi.spyOn(AttemptRunner.prototype, 'run').mockResolvedValue({ ...stopped(), value: null });
    const calls = await callsOf();
    expect(run).toHaveBeenCalledOnce();
    expect(calls).toContain('reserve');
    expect(calls).not.toContain('upstream');
  });

  test('an attempt that does not send', async () => {
    const send = vi.spyOn(Attempt.prototype, 'send').mockImplementation(function (this: Attempt) {
      this.relay.end(stopped());
    });
    const calls = await callsOf();
    expect(send).toHaveBeenCalledOnce();
    expect(calls).not.toContain('upstream');
  });
});
