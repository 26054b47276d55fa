/** Sends requests of SDKs at models that refuse what they send, in workerd: each passes after its changes, and the second one at once. */
import OpenAI from 'openai';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, sharedGateway } from './gateway.ts';

const TOOL = {
  type: 'function' as const,
  function: {
    name: 'read',
    parameters: { type: 'object', properties: { path: { type: 'string', pattern: '^/' } } },
  },
};
const MODEL = 'unknown/refuses-temperature+xhigh+pattern';

let gateway: Gateway;
beforeAll(async () => {
  gateway = await sharedGateway();
});

describe('Z1 Z4 a model that no table knows', () => {
  test('three refusals one after the other: the request passes, and the next one is sent as it is accepted', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'x', maxRetries: 0 });
    const calls = async () => {
      const before = gateway.simulator.requests.length;
      const stream = client.chat.completions.stream({
        model: MODEL,
        messages: [{ role: 'user', content: 'Who knocks?' }],
        tools: [TOOL],
        tool_choice: 'none',
        temperature: 0.4,
        reasoning_effort: 'xhigh',
      });
      const { choices } = await stream.finalChatCompletion();
      expect(choices[0]?.message.content).toBe('The gate opens at the second knock.');
      return gateway.simulator.requests.slice(before).map(({ body }) => body ?? {});
    };
    const first = await calls();
    expect(first).toHaveLength(4);
    const [last] = first.slice(-1);
    expect(last).toMatchObject({ reasoning_effort: 'high' });
    expect(last).not.toHaveProperty('temperature');
    expect(JSON.stringify(last?.tools)).not.toContain('"pattern":');
    expect(await calls()).toEqual([last]);
  });
});
