/** Tests the tool loops of Anthropic's clients at each provider (I2, I3, I7). */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sampleOf } from '../random-run.ts';
import { countCalls } from './count-calls.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { MODELS, SIGNING } from './loop-models.ts';
import { CALLS, runByHand, runWithAiSdk, runWithToolRunner, STEPS } from './messages-loops.ts';

/** Aliases for Claude's models that set a field, which prevents passthrough: the request is translated to chat and back. */
const TRANSLATED = Object.fromEntries(
  ['claude-haiku-4-5', 'claude-sonnet-5', 'claude-opus-5-5'].map((model) => [
    `translated/${model}`,
    { model: `anthropic/${model}`, set: { service_tier: 'auto' } },
  ]),
);

const API_KEY = 'unused';

let gateway: Gateway;
let client: Anthropic;
beforeAll(async () => {
  gateway = await startGateway({ vars: { ALIASES: JSON.stringify(TRANSLATED) } });
  client = new Anthropic({ apiKey: API_KEY, baseURL: gateway.url, maxRetries: 0 });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** Claude's models use passthrough, which has its own tests, at Anthropic and at clouds. */
const isPassthrough = (model: string) => /^(?:anthropic|bedrock|azure)\/.*claude/.test(model);
const LOOPED = sampleOf(
  ['deepseek/deepseek-flash', 'gemini/gemini-3-flash-preview', 'translated/claude-opus-5-5'],
  [...[...MODELS, ...SIGNING].filter((model) => !isPassthrough(model)), ...Object.keys(TRANSLATED)],
);

/** No request of the loop was refused, and the last one has every call and its result. */
function expectWholeLoop(requestsBefore: number): void {
  const requests = gateway.simulator.requests.slice(requestsBefore);
  expect(requests).toHaveLength(STEPS + 1);
  expect(countCalls(requests.at(-1)?.body ?? {})).toEqual({ calls: CALLS, results: CALLS });
  expect(requests.at(-1)?.text).not.toContain('skip_thought_signature_validator');
}

describe.each(LOOPED.filter((model) => model in TRANSLATED))('a tool loop with thinking at %s', (model) => {
  test.each([true, false])('I7 manual, streamed: %s', async (isStreamed) => {
    const before = gateway.simulator.requests.length;
    const { text, calls } = await runByHand(client, model, isStreamed);
    expect(calls).toBe(CALLS);
    expect(text).not.toBe('');
    expectWholeLoop(before);
  });
});

/** The manual loop is in tools/matrix. */
describe.each(LOOPED)('a tool loop with thinking at %s', (model) => {
  test('I2 I3 the SDK’s tool runner', async () => {
    const before = gateway.simulator.requests.length;
    const { text, calls } = await runWithToolRunner(client, model);
    expect(calls).toBe(CALLS);
    expect(text).not.toBe('');
    expectWholeLoop(before);
  });

  test.each([true, false])('I7 @ai-sdk/anthropic, streamed: %s', async (isStreamed) => {
    const before = gateway.simulator.requests.length;
    const { text, calls } = await runWithAiSdk(`${gateway.url}/v1`, API_KEY, model, isStreamed);
    expect(calls).toBe(CALLS);
    expect(text).not.toBe('');
    expectWholeLoop(before);
  });
});
