/** Tests how often the body of a key with limits is written, and of which request a refusal is then read (G2, Z1). */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { ReplayableRequest } from '../../src/completion/replayable-request.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

const ALIASES = { all: ['openai/gpt-4o-mini', 'mistral/mistral-small-latest', 'deepseek/deepseek-flash'] };
const SETTINGS = { ALIASES: JSON.stringify(ALIASES), MISTRAL_API_KEY: 'k', RETRIES: '0' };

afterEach(() => {
  vi.restoreAllMocks();
});

/** The calls of `writeFor` for one request. */
async function writesOf(limits: JsonObject, fields: JsonObject): Promise<number> {
  const gateway = new LimitedGateway(SETTINGS);
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
  ])('%s: each body is written once', async (_, limits, fields) => {
    expect(await writesOf(limits, fields)).toBe(3);
  });

  test('a limit that the request exceeds: the one that is sent is written again with it', async () => {
    expect(await writesOf({ max_output_tokens: 500 }, { max_tokens: 800 })).toBe(4);
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
      return Response.json({
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      });
    },
  });
  const token = await gateway.key({ rpm: 100 });
  // At Mistral the field has another name.
  const models = ['openai/gpt-4o-mini', 'mistral/mistral-small-latest'];
  const response = await gateway.ask(token, { model: 'openai/gpt-4o-mini', models, seed: 7 });
  expect(response.headers.get('x-weir-dropped')).toBe('seed');
  expect(sent.map(({ model }) => model)).toEqual(['gpt-4o-mini', 'gpt-4o-mini']);
});
