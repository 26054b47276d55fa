/**
 * Tests agents' tool loops of five steps over Responses, with thinking, parallel calls and signatures: real clients
 * with strict providers.
 */
import { afterAll, describe, expect, test } from 'vitest';
import { compatibleScenes } from '../../../tools/simulator/scenes.ts';
import { CALLS, STEPS } from '../agent-loops.ts';
import { countCalls } from '../count-calls.ts';
import { startGateway } from '../gateway.ts';
import { MODELS, SIGNING } from '../loop-models.ts';
import { type LoopResult, runByHand, runWithAgents, runWithAiSdk } from './loops.ts';

/** The two providers with a Responses passthrough are also configured without it. */
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

const OTHERS = ['openai/o4-mini', 'chat/gpt-4o-mini', 'seek/deepseek-flash'];

type Loop = (baseURL: string, model: string, isStreamed: boolean) => Promise<LoopResult>;

/** For all other providers: tools/matrix, by hand. */
const LOOPS: readonly (readonly [client: string, loop: Loop, models: readonly string[]])[] = [
  ['the openai SDK by hand', runByHand, OTHERS],
  ['@openai/agents', runWithAgents, [...MODELS, ...SIGNING, ...OTHERS]],
  ['@ai-sdk/openai', runWithAiSdk, [...MODELS, ...SIGNING, ...OTHERS]],
];

describe.each(LOOPS)('%s', (_, loop, models) => {
  describe.each(models)('at %s', (model) => {
    test.each([true, false])(
      'I2 I4 I7 streamed %s: five steps with parallel calls end with a text',
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
