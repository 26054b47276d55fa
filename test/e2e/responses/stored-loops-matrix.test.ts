/** Tests agents' tool loops that refer to stored items, with RESPONSES=durable: real clients at each kind of provider. */
import { afterAll, describe, expect, test } from 'vitest';
import { sampleOf } from '../../random-run.ts';
import { CALLS } from '../agent-loops.ts';
import { countCalls } from '../count-calls.ts';
import { startGateway } from '../gateway.ts';
import { runWithAgents, runWithAiSdk } from './loops.ts';

const gateway = await startGateway({ vars: { RESPONSES: 'durable' } });
afterAll(() => gateway[Symbol.asyncDispose]());

const MODELS = sampleOf(
  ['openai/o4-mini', 'mistral/mistral-small-latest'],
  [
    'openai/o4-mini',
    'deepseek/deepseek-flash',
    'anthropic/claude-sonnet-5',
    'gemini/gemini-3-flash-preview',
    'mistral/mistral-small-latest',
  ],
);

describe.each([
  ['@ai-sdk/openai', runWithAiSdk],
  ['@openai/agents with previousResponseId', runWithAgents],
] as const)('%s', (_, loop) => {
  test.each(MODELS)('X5: at %s five steps with parallel calls end with a text', async (model) => {
    for (const isStreamed of [true, false]) {
      const { text, calls } = await loop(`${gateway.url}/v1`, model, isStreamed, {
        apiKey: 'unused',
        isStored: true,
      });
      expect(calls).toBe(CALLS);
      expect(text).not.toBe('');
      expect(countCalls(gateway.simulator.requests.at(-1)?.body ?? {})).toEqual({
        calls: CALLS,
        results: CALLS,
      });
    }
  });
});
