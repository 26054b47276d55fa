/**
 * Clouds' hosts and paths, with the SDKs of all client protocols against a simulator that refuses what each refuses.
 * `npm test` has one client protocol for each model.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loopCell } from '../../tools/matrix/cell.ts';
import { oneIn, stepOf } from '../random-run.ts';
import { type Gateway, SIGNED_BEDROCK, startGateway } from './gateway.ts';

const PROTOCOLS = ['chat', 'messages', 'responses'] as const;
let models = 0;
/** The next model has the next protocol. */
const protocols = () => oneIn(stepOf(3, 1), PROTOCOLS, models++);

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ vars: SIGNED_BEDROCK });
});
afterAll(() => gateway[Symbol.asyncDispose]());

describe.each([
  ['us.anthropic.claude-haiku-4-5-20251001-v1:0', '/bedrock/runtime/anthropic/v1/messages'],
  ['global.anthropic.claude-opus-5-5', '/bedrock/runtime/anthropic/v1/messages'],
  ['anthropic.claude-sonnet-5', '/bedrock/mantle/anthropic/v1/messages'],
  ['us.openai.gpt-6.1-terra', '/bedrock/runtime/openai/v1/responses'],
  ['openai.gpt-6.1-terra', '/bedrock/mantle/openai/v1/responses'],
  ['openai.gpt-oss-20b', '/bedrock/mantle/v1/chat/completions'],
  ['qwen.qwen3-32b', '/bedrock/mantle/v1/chat/completions'],
  ['gpt-4o-mini', '/azure/openai/v1/chat/completions'],
  ['gpt-6.1-terra', '/azure/openai/v1/responses'],
  ['prod-gpt', '/azure/openai/v1/responses'],
  ['prod-claude', '/azure/anthropic/v1/messages'],
  ['claude-haiku-4-5', '/azure/anthropic/v1/messages'],
  [
    '@cf/meta/llama-3.3-70b-instruct-fp8-fast',
    '/cloudflare/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/v1/chat/completions',
  ],
  [
    '@cf/openai/gpt-oss-20b',
    '/cloudflare/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/v1/chat/completions',
  ],
  ['openai/gpt-6.1-terra', '/cloudflare/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/v1/responses'],
  [
    'anthropic/claude-haiku-4-5',
    '/cloudflare/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/v1/messages',
  ],
  ['Llama-3.3-70B-Instruct', '/azure/openai/v1/chat/completions'],
  [
    'gemini-3-flash-preview',
    '/vertex/v1beta1/projects/acme-llm/locations/us-central1/publishers/google/models/gemini-3-flash-preview:generateContent',
  ],
  [
    'claude-haiku-4-5@20251001',
    '/vertex/v1/projects/acme-llm/locations/us-central1/publishers/anthropic/models/claude-haiku-4-5@20251001:rawPredict',
  ],
  [
    'meta/llama-3.3-70b-instruct-maas',
    '/vertex/v1/projects/acme-llm/locations/us-central1/endpoints/openapi/chat/completions',
  ],
])('W8 %s at %s', (model, path) => {
  test.each(protocols())('a tool loop of %s clients, streamed and whole', async (protocol) => {
    const before = gateway.simulator.requests.length;
    await loopCell(gateway, protocol, `${path.split('/')[1]}/${model}`);
    const last = gateway.simulator.requests.slice(before).at(-1);
    // The simulator refuses a signature that AWS's own package does not make.
    if (path.startsWith('/bedrock/'))
      expect(last?.headers.authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIDSIMULATOR\//);
    // The path of Vertex AI names it.
    if (!last?.path.includes('/models/')) expect(last?.body?.model).toBe(model);
    if (protocol !== 'responses') expect(last?.path).toBe(path);
  });
});

describe.each(['us.amazon.nova-2-lite-v1:0', 'moonshot.kimi-k2-thinking', 'mistral.mistral-large-2402-v1:0'])(
  'W8 %s at Converse',
  (model) => {
    test.each(protocols())('a tool loop of %s clients, streamed and whole', async (protocol) => {
      const before = gateway.simulator.requests.length;
      await loopCell(gateway, protocol, `bedrock/${model}`);
      const id = encodeURIComponent(model);
      const paths = new Set(gateway.simulator.requests.slice(before).map(({ path }) => path));
      expect([...paths]).toEqual(
        ['converse-stream', 'converse'].map((operation) => `/bedrock/runtime/model/${id}/${operation}`),
      );
    });
  },
);

test('W8 tokens of a model at Converse: are counted under its name without a region, and estimated where Bedrock counts none', async () => {
  const count = async (model: string) => {
    const body = JSON.stringify({
      model: `bedrock/${model}`,
      messages: [{ role: 'user', content: 'How many words is this?' }],
    });
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
    const response = await fetch(`${gateway.url}/v1/messages/count_tokens`, init);
    return [await response.json(), response.headers.get('x-weir-estimated')];
  };
  expect(await count('us.amazon.nova-2-lite-v1:0')).toEqual([{ input_tokens: 5 }, 'false']);
  expect(gateway.simulator.requests.at(-1)?.path).toBe(
    '/bedrock/runtime/model/amazon.nova-2-lite-v1%3A0/count-tokens',
  );
  expect((await count('us.amazon.unknown-v1:0'))[1]).toBe('true');
});
