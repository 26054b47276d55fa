/** Tests agents' tool loops of five steps over Responses, with thinking, parallel calls and signatures: real clients × strict providers (I1-I4, I7). */
import { afterAll, describe, expect, test } from 'vitest';
import { objectsOf } from '../../simulator/json.ts';
import { compatibleScenes } from '../../simulator/scenes.ts';
import { CALLS, STEPS } from '../agent-loops.ts';
import { startGateway } from '../gateway.ts';
import { type LoopResult, runByHand, runWithAgents, runWithAiSdk } from './loops.ts';

/** Besides, the two whose own Responses is a lane are asked as if they had chat alone. */
const gateway = await startGateway({
  vars: (url) => ({
    PROVIDERS: JSON.stringify({
      ...Object.fromEntries(
        compatibleScenes.map(({ id }) => [
          id,
          { base_url: `${url}/${id}/v1`, api_key: 'COMPATIBLE_SECRET', like: id },
        ]),
      ),
      compatible: { base_url: `${url}/compatible/v1`, api_key: 'COMPATIBLE_SECRET' },
      chat: { base_url: `${url}/openai/v1`, api_key: 'COMPATIBLE_SECRET', like: 'openai' },
      seek: { base_url: `${url}/deepseek`, api_key: 'COMPATIBLE_SECRET', like: 'deepseek' },
    }),
  }),
});
afterAll(() => gateway[Symbol.asyncDispose]());
const baseURL = `${gateway.url}/v1`;

const MODELS = [
  'deepseek/deepseek-flash',
  'seek/deepseek-flash',
  'mistral/mistral-small-latest',
  'groq/openai/gpt-oss-120b',
  'cerebras/gpt-oss-120b',
  'openrouter/moonshotai/kimi-k2.5',
  'xai/grok-4.3',
  'openai/gpt-4o-mini',
  'chat/gpt-4o-mini',
  'openai/o4-mini',
  'compatible/openai/gpt-oss-20b',
];

/** Models that refuse a step without the signature that they gave: only what carries it back gets through. */
const SIGNING = [
  'openrouter/anthropic/claude-haiku-4.5',
  'openrouter/google/gemini-3-flash-preview',
  'gemini/gemini-3-flash',
];

type Loop = (baseURL: string, model: string, isStreamed: boolean) => Promise<LoopResult>;

const LOOPS: readonly (readonly [client: string, loop: Loop])[] = [
  ['the openai SDK by hand', runByHand],
  ['@openai/agents', runWithAgents],
  ['@ai-sdk/openai', runWithAiSdk],
];

describe.each(LOOPS)('%s', (_, loop) => {
  describe.each([...MODELS, ...SIGNING])('at %s', (model) => {
    test.each([true, false])(
      'I2 I4 I7 streamed %s: five steps with parallel calls end in an answer',
      async (isStreamed) => {
        const before = gateway.simulator.requests.length;
        const { text, calls } = await loop(baseURL, model, isStreamed);
        expect(calls).toBe(CALLS);
        expect(text).not.toBe('');
        const requests = gateway.simulator.requests.slice(before);
        expect(requests).toHaveLength(STEPS + 1);
        const { messages, input } = requests.at(-1)?.body ?? {};
        if (input === undefined) {
          const sent = objectsOf(messages);
          expect(sent.filter(({ tool_calls }) => Array.isArray(tool_calls))).toHaveLength(STEPS);
          expect(sent.filter(({ role }) => role === 'tool')).toHaveLength(CALLS);
        } else {
          // N1: the provider speaks Responses itself.
          const types = objectsOf(input).map(({ type }) => type);
          expect(types.filter((type) => type === 'function_call')).toHaveLength(CALLS);
          expect(types.filter((type) => type === 'function_call_output')).toHaveLength(CALLS);
        }
        expect(JSON.stringify(messages ?? '')).not.toContain('skip_thought_signature_validator');
      },
    );
  });
});
