/** Tests the cost in a response's usage, through the deployed gateway: reported by the upstream, else from the table (P2, P3, P5). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf } from '../../tools/simulator/json.ts';
import { chat, framesOf, jsonOf, streamedChat } from './client.ts';
import { type Gateway, startGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';
const WITH_COST = { usage: { include: true } };
const OWN = { provider: 'compatible', since: '2026-01-01', currency: 'USD', output: 0 };
const PRICES = [
  { ...OWN, models: ['llama-*'], input: 100_000 },
  { ...OWN, provider: 'xerotier', models: ['llama-*'], currency: 'CNY', input: 1 },
  { ...OWN, provider: 'openai', models: ['o4-mini'], input: 200_000 },
];
const IN_KV = [{ ...OWN, models: ['openai/gpt-oss-20b'], input: 300_000 }];

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ vars: { PRICES: JSON.stringify(PRICES) } });
  await gateway.put('config/prices', JSON.stringify(IN_KV));
  // A new isolate reads KV concurrently with its first request.
  const first = await gateway.post(CHAT, chat('openai/gpt-4o-mini'));
  await first.text();
});
afterAll(() => gateway[Symbol.asyncDispose]());

interface Sent {
  readonly usage: JsonObject;
  /** The body that the upstream received. */
  readonly sent: JsonObject;
}

/** Sends a request. A stream's usage must be only in its last chunk (U1). */
async function send(model: string, isStreamed: boolean, more: JsonObject = WITH_COST): Promise<Sent> {
  const count = gateway.simulator.requests.length;
  const response = await gateway.post(CHAT, isStreamed ? streamedChat(model, more) : chat(model, more));
  expect(response.status).toBe(200);
  const usage = isStreamed ? streamedUsage(await response.text()) : objectOf((await jsonOf(response)).usage);
  return { usage, sent: (await gateway.simulator.request(count)).body ?? {} };
}

function streamedUsage(text: string): JsonObject {
  const frames = framesOf(text);
  expect(frames.filter((frame) => frame.includes('"usage"'))).toHaveLength(1);
  const last = objectOf(JSON.parse((frames.at(-2) ?? '').slice('data: '.length)));
  expect(last.choices).toEqual([]);
  return objectOf(last.usage);
}

describe.each([
  ['a stream', true],
  ['a non-streaming response', false],
])('%s with usage.include', (_, isStreamed) => {
  test('P3 P5 OpenRouter gets the field, and its reported cost is in the usage', async () => {
    const { usage, sent } = await send('openrouter/moonshotai/kimi-k2.5', isStreamed);
    expect(usage.cost).toBe(0.00004025);
    expect(sent.usage).toEqual({ include: true });
  });

  test('P3 P5 xAI’s ticks are converted to dollars', async () => {
    const { usage, sent } = await send('xai/grok-4.6', isStreamed);
    expect(usage.cost).toBe(0.0000739);
    expect(sent).not.toHaveProperty('usage');
  });

  test('P5 OpenAI: the cost at the shipped price', async () => {
    const { usage, sent } = await send('openai/gpt-4o-mini', isStreamed);
    const cached = Number(objectOf(usage.prompt_tokens_details).cached_tokens ?? 0);
    const fresh = Number(usage.prompt_tokens) - cached;
    const nano = fresh * 150 + cached * 75 + Number(usage.completion_tokens) * 600;
    expect(usage.cost).toBe(nano / 1e9);
    expect(nano).toBeGreaterThan(0);
    expect(sent).not.toHaveProperty('usage');
    expect(Object.keys(usage).at(-1)).toBe('cost');
  });

  test.each([
    ['a model of the setting PRICES', 'compatible/llama-3.3-70b-versatile', 0.1],
    ['a model with a price in PRICES and a shipped one', 'openai/o4-mini', 0.2],
    ['a model of the KV key config/prices', 'compatible/openai/gpt-oss-20b', 0.3],
  ])('P2 P5 %s: own prices apply', async (__, model, dollarsAToken) => {
    const { usage } = await send(model, isStreamed);
    expect(usage.cost).toBeCloseTo(Number(usage.prompt_tokens) * dollarsAToken, 9);
  });

  test.each([
    ['a model without a price', 'opentoken/google/gemini-3-flash'],
    ['a price in another currency than dollars', 'xerotier/llama-3.1-8b'],
  ])('P5 %s: no cost, which is not zero', async (__, model) => {
    const { usage } = await send(model, isStreamed);
    expect(usage).not.toHaveProperty('cost');
    expect(usage.total_tokens).toBeGreaterThan(0);
  });

  test('C1 P5 without usage.include: no cost', async () => {
    const without = { stream_options: { include_usage: true } };
    for (const model of ['openrouter/moonshotai/kimi-k2.5', 'xai/grok-4.6', 'openai/gpt-4o-mini']) {
      expect((await send(model, isStreamed, without)).usage).not.toHaveProperty('cost');
      const declined = await send(model, isStreamed, { ...without, usage: { include: false } });
      expect(declined.usage).not.toHaveProperty('cost');
    }
  });
});
