/** Running budgets under load: agents of which half are cancelled, and many streams at once for little room (G9). */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { LIMIT, Running } from './running-gateway.ts';

/** USD for a million tokens. */
const INPUT = 2;
const OUTPUT = 10;
const PRICES = JSON.stringify([
  { provider: 'stops', models: ['*'], since: '2026-01-01', currency: 'USD', input: INPUT, output: OUTPUT },
]);
const cost = (prompt: number, output: number) => (prompt * INPUT + output * OUTPUT) / 1e6;

test('G9 ten agents with $3, each $0.08, half of them cancelled: all are admitted, and 1.5 times what was billed is charged at most', async () => {
  const tested = new Running({ PRICES });
  tested.outputTokens = 5000;
  tested.usage = { prompt: 15_000 };
  const token = await tested.gateway.key({ budget: { USD: 3, mode: 'running' } });
  const content = 'Agents send 60 KB. '.repeat(3200);
  const statuses = await Promise.all(
    Array.from({ length: 10 }, async (_, agent) => {
      const messages = [{ role: 'user', content }];
      const response = await tested.send(token, 'chat', 'stops/llama', { messages });
      if (agent % 2 === 0) await response.text();
      else {
        const reader = response.body?.getReader();
        for (let bytes = 0; bytes < 10_000; ) bytes += (await reader?.read())?.value?.length ?? 10_000;
        await reader?.cancel();
      }
      return response.status;
    }),
  );
  await tested.gateway.idle();
  expect(statuses).toEqual(Array.from({ length: 10 }, () => 200));
  expect(tested.isCut.filter((isCut) => isCut)).toHaveLength(5);
  const billed = tested.written.reduce((sum, written) => sum + cost(15_000, written), 0);
  expect(cost(15_000, 5000)).toBe(0.08);
  const { spent, reserved } = await tested.budget(token);
  expect(reserved).toBe(0);
  expect(Number(spent)).toBeGreaterThanOrEqual(billed);
  expect(Number(spent)).toBeLessThanOrEqual(1.5 * billed);
});

/** How a stream ended for a client: its reason, or the status of a refusal. */
type Ask = (fetch: typeof globalThis.fetch, model: string) => Promise<unknown>;

const MESSAGES = [{ role: 'user' as const, content: 'Hello' }];
const options = { apiKey: 'x', maxRetries: 0 };
const CLIENTS: readonly (readonly [sdk: string, reason: string, ask: Ask])[] = [
  [
    'chat',
    'length',
    async (fetch, model) => {
      const client = new OpenAI({ ...options, baseURL: 'https://weir.example/v1', fetch });
      const stream = client.chat.completions.stream({ model, messages: MESSAGES, max_tokens: LIMIT });
      return (await stream.finalChatCompletion()).choices[0]?.finish_reason;
    },
  ],
  [
    'Responses',
    'max_output_tokens',
    async (fetch, model) => {
      const client = new OpenAI({ ...options, baseURL: 'https://weir.example/v1', fetch });
      const stream = client.responses.stream({ model, input: 'Hello', max_output_tokens: LIMIT });
      return (await stream.finalResponse()).incomplete_details?.reason;
    },
  ],
  [
    'Messages',
    'max_tokens',
    async (fetch, model) => {
      const client = new Anthropic({ ...options, baseURL: 'https://weir.example', fetch });
      const stream = client.messages.stream({ model, messages: MESSAGES, max_tokens: LIMIT });
      return (await stream.finalMessage()).stop_reason;
    },
  ],
];

describe('G9 200 streams at once with room for 20', () => {
  const SLICE = 2000;
  /** What a prompt is estimated at, with the most that a provider adds. */
  const PROMPT_RESERVED = 1100;
  const BUDGET = 20 * (PROMPT_RESERVED + SLICE);

  const WAYS = CLIENTS.flatMap(([sdk, reason, ask]) =>
    ['stops/llama', 'host/llama', 'goes-on/llama'].map(
      (model) => [sdk, model, { reason, ask, stops: model !== 'goes-on/llama' }] as const,
    ),
  );

  test.each(WAYS)(
    '%s at %s: those without room are refused, the others end as at a limit',
    async (_, model, { reason, ask, stops }) => {
      const tested = new Running();
      tested.outputTokens = LIMIT;
      const token = await tested.gateway.key({ budget: { tokens: BUDGET, mode: 'running' } });
      const fetch: typeof globalThis.fetch = (url, init) =>
        tested.gateway.fetch(new URL(String(url)).pathname, token, { ...init, signal: null });
      const outcomes = await Promise.all(
        Array.from({ length: 200 }, async () => {
          try {
            return await ask(fetch, model);
          } catch (error) {
            return (error as JsonObject).status;
          }
        }),
      );
      await tested.gateway.idle();
      const refused = outcomes.filter((outcome) => outcome === 429);
      const ended = outcomes.filter((outcome) => outcome === reason);
      expect(refused.length + ended.length).toBe(200);
      expect(ended.length).toBeGreaterThanOrEqual(19);
      expect(ended.length).toBeLessThanOrEqual(22);
      const { spent, reserved } = await tested.budget(token);
      expect(reserved).toBe(0);
      const promised = BUDGET + ended.length * (stops ? SLICE : SLICE + LIMIT);
      expect(Number(spent)).toBeLessThanOrEqual(promised);
      expect(Number(spent)).toBeGreaterThanOrEqual(tested.written.reduce((sum, written) => sum + written, 0));
    },
  );
});

test('G9 a model that thinks unseen until its budget is used up, before its provider responds: 429', async () => {
  // A heartbeat would begin the response, and half a minute may be two.
  const tested = new Running({
    ...{ HEARTBEAT_SECONDS: '0', IDLE_TIMEOUT_SECONDS: '0', DEADLINE_SECONDS: '0' },
  });
  let signal: AbortSignal | null = null;
  tested.beforeHead = (of) => {
    signal = of;
    return new Promise((_, reject) => of?.addEventListener('abort', () => reject(of.reason)));
  };
  const token = await tested.gateway.key({ budget: { tokens: 3500, mode: 'running' } });
  const now = Date.now;
  const start = now();
  // Timers fire after 20 ms: half a minute.
  Date.now = () => start + (now() - start) * 1500;
  try {
    const response = await tested.send(token, 'chat', 'openai/gpt-5.4-mini');
    expect(response.status).toBe(429);
    expect(await response.text()).toContain('budget_exceeded');
    expect(signal).toMatchObject({ aborted: true });
  } finally {
    Date.now = now;
  }
});
