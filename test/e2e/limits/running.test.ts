/**
 * Budgets of the mode `running` in workerd, with both ledgers: a stream that ends by its budget, for official SDKs, and
 * what is charged.
 */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { objectOf } from '../../../tools/simulator/json.ts';
import { event, replayOf } from '../scenarios.ts';
import { type Limited, startLimited } from './limited.ts';

/** 50 tokens. */
const TEXT = event('token '.repeat(50));
const STREAM = { chunks: Array.from({ length: 700 }, () => TEXT), gapMs: 1, ending: 'hang' } as const;
const MODEL = 'deepseek/endless';
/** Its provider has no Responses API. */
const TRANSLATED = 'mistral/mistral-small-latest';
const LIMIT = 30_000;
const BUDGET = { budget: { tokens: 6000, mode: 'running' } };

describe.each(['kv', 'object'])('G9 with LEDGER=%s', (ledger) => {
  let limited: Limited;
  beforeAll(async () => {
    limited = await startLimited({
      vars: { LEDGER: ledger },
      replay: replayOf({ endless: STREAM, 'mistral-small-latest': STREAM }),
    });
  });
  afterAll(() => limited[Symbol.asyncDispose]());

  test.each([
    ['the key', BUDGET],
    ['its user', { per_user: BUDGET }],
  ])('a chat ends with length within the budget of %s, for OpenAI’s SDK', async (_, limits) => {
    const key = await limited.create(limits);
    const client = new OpenAI({ apiKey: key.token, baseURL: `${limited.gateway.url}/v1`, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'Hello' }];
    const stream = await client.chat.completions.create({
      ...{ model: MODEL, messages, max_tokens: LIMIT, stream: true, user: 'ada' },
    });
    let text = '';
    let finish: string | null = null;
    for await (const { choices } of stream) {
      text += choices[0]?.delta.content ?? '';
      finish = choices[0]?.finish_reason ?? finish;
    }
    expect(finish).toBe('length');
    expect(text.length / 'token '.length).toBeGreaterThanOrEqual(3900);
    expect(text.length / 'token '.length).toBeLessThan(6000);
    if (limits !== BUDGET) return;
    const { budget } = await limited.settled(key);
    // What was received, and what may have been on its way.
    expect(Number(objectOf(budget).spent)).toBeGreaterThan(3900);
    expect(Number(objectOf(budget).spent)).toBeLessThanOrEqual(6000);
  });

  test('a message ends with max_tokens, for Anthropic’s SDK', async () => {
    const key = await limited.create(BUDGET);
    const client = new Anthropic({
      authToken: key.token,
      apiKey: null,
      baseURL: limited.gateway.url,
      maxRetries: 0,
    });
    const stream = client.messages.stream({
      ...{ model: MODEL, max_tokens: LIMIT, messages: [{ role: 'user', content: 'Hello' }] },
    });
    const message = await stream.finalMessage();
    expect(message.stop_reason).toBe('max_tokens');
    expect(message.usage.output_tokens).toBeGreaterThan(3900);
  });

  test('a response is incomplete with its items, for OpenAI’s SDK', async () => {
    const key = await limited.create(BUDGET);
    const client = new OpenAI({ apiKey: key.token, baseURL: `${limited.gateway.url}/v1`, maxRetries: 0 });
    const stream = client.responses.stream({ model: TRANSLATED, input: 'Hello', max_output_tokens: LIMIT });
    const response = await stream.finalResponse();
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    });
    expect(response.output_text.length).toBeGreaterThan(3900 * 'token '.length);
  });
});
