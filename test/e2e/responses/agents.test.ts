/** Tests agents' tool loops of five steps over Responses, with thinking, parallel calls and signatures: real clients × strict providers (I1-I4, I7). */
import { afterAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectsOf } from '../../simulator/json.ts';
import { compatibleScenes } from '../../simulator/scenes.ts';
import { CALLS, STEPS } from '../agent-loops.ts';
import { startGateway } from '../gateway.ts';
import { type LoopResult, runByHand, runWithAgents, runWithAiSdk } from './loops.ts';

/** Besides, the two whose own Responses is a lane are asked as if they had chat alone. */
const gateway = await startGateway({
  vars: (url) => ({
    PROVIDERS: JSON.stringify({
      ...Object.fromEntries(
        compatibleScenes.map(({ id, profile: like = id }) => [
          id,
          { base_url: `${url}/${id}/v1`, api_key: 'COMPATIBLE_SECRET', like },
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
  'gemini-compatible/gemini-3-flash',
  'anthropic/claude-opus-5-5',
  'gemini/gemini-3-flash-preview',
];

/** Calls and results in what an upstream was sent, in whichever dialect it speaks. */
function countCalls(body: JsonObject) {
  const parts = [
    ...objectsOf(body.input),
    ...objectsOf(body.messages).flatMap((message) => [
      message,
      ...objectsOf(message.tool_calls),
      ...objectsOf(message.content),
    ]),
    ...objectsOf(body.contents).flatMap(({ parts: inner }) => objectsOf(inner)),
  ];
  const count = (isIt: (part: JsonObject) => boolean) => parts.filter(isIt).length;
  return {
    calls: count(
      ({ type, functionCall, function: fn }) =>
        type === 'function_call' || type === 'tool_use' || fn !== undefined || functionCall !== undefined,
    ),
    results: count(
      ({ type, role, functionResponse }) =>
        type === 'function_call_output' ||
        type === 'tool_result' ||
        role === 'tool' ||
        functionResponse !== undefined,
    ),
  };
}

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
        const sent = requests.at(-1)?.body ?? {};
        expect(countCalls(sent)).toEqual({ calls: CALLS, results: CALLS });
        expect(JSON.stringify(sent)).not.toContain('skip_thought_signature_validator');
      },
    );
  });
});
