/** Tests properties of every scene (documented token counts, keys, tool calls) and of the server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AwsSigner } from '../../src/credentials/aws-signature.ts';
import { encodeUtf8 } from '../../src/shared/encoding.ts';
import { SIMULATED_AWS } from './aws.ts';
import { decodeObject, objectOf, objectsOf } from './json.ts';
import { allScenes } from './scenes.ts';
import { createSimulator, type Simulator } from './server.ts';
import {
  chatBody,
  deltasOf,
  finishesOf,
  INCLUDE_USAGE,
  paths,
  sendRequest,
  stream,
  textIn,
  usageOf,
  WEATHER,
} from './test-requests.ts';

// workerd has it; Node has it only in later versions.
Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

let simulator: Simulator;
beforeAll(async () => {
  simulator = await createSimulator();
});
afterAll(() => simulator.close());

/** Completion tokens as the scene files document them. The prompt has five words. */
const NUMBERS: readonly [keyof typeof paths, string, number][] = [
  ['deepseek', 'deepseek-chat', 16],
  ['deepseek', 'deepseek-reasoner', 20],
  ['deepseek', 'deepseek-chat-busy', 6],
  ['mistral', 'mistral-small-latest', 12],
  ['mistral', 'magistral-medium-latest', 15],
  ['mistral', 'open-mistral-7b', 8],
  ['mistral', 'codestral-latest', 11],
  ['opentoken', 'google/gemini-3-flash', 10],
  ['opentoken', 'google/gemini-3-pro', 31],
  ['xerotier', 'llama-3.1-8b', 13],
  ['xerotier', 'llama-3.1-8b-refusal', 9],
  ['openai', 'gpt-4o-mini', 13],
  ['openai', 'o4-mini', 37],
  ['compatible', 'llama-3.3-70b-versatile', 10],
  ['compatible', 'openai/gpt-oss-20b', 14],
  ['deepseek', 'deepseek-flash', 19],
  ['deepseek', 'deepseek-v4-pro', 17],
  ['groq', 'llama-3.3-70b-versatile', 9],
  ['groq', 'openai/gpt-oss-120b', 14],
  ['groq', 'qwen/qwen3-32b', 12],
  ['cerebras', 'gpt-oss-120b', 15],
  ['cerebras', 'zai-glm-4.7', 13],
  ['openrouter', 'google/gemini-3-flash-preview', 15],
  // These requests do not enable thinking.
  ['openrouter', 'anthropic/claude-haiku-4.5', 9],
  ['openrouter', 'moonshotai/kimi-k2.5', 13],
  ['gemini-compatible', 'gemini-3-flash', 9],
  ['gemini-compatible', 'gemini-2.5-flash-lite', 8],
  ['xai', 'grok-4.3', 7],
  ['xai', 'grok-4.6', 9],
  ['xai', 'grok-4.20', 7],
];
/** Reasoning tokens that only the total includes, as at xAI. */
const BESIDE: Readonly<Record<string, number>> = { 'grok-4.3': 7, 'grok-4.6': 6 };
/** Mistral rejects the option. OpenRouter sends the finish twice: also on the usage chunk. */
const optionsAt = (at: string) => (/mistral|codestral/.test(at) ? {} : INCLUDE_USAGE);
const finishesAt = (at: string) => (at === 'openrouter' ? 2 : 1);

/** Anthropic requires it in every request. */
const BESIDE_KEY = { 'anthropic-version': '2023-06-01' };
const MISTRAL = '{"detail":"Invalid API Key"}';
const BAD_KEYS: Readonly<Record<string, [status: number, text: unknown]>> = {
  deepseek: [401, expect.stringContaining('"type":"authentication_error"')],
  bedrock: [403, expect.stringContaining('make sure your API Key is valid')],
  mistral: [401, MISTRAL],
  codestral: [401, MISTRAL],
  xai: [400, expect.stringMatching(/^\{"code":"invalid-argument","error":"Incorrect API key provided/)],
  'gemini-compatible': [400, expect.stringMatching(/^\[\{"error":\{"code":400,"message":"API key not valid/)],
};

describe('every scene', () => {
  test.each(NUMBERS)(
    '%s %s: streaming and non-streaming responses report the documented tokens',
    async (at, model, completion) => {
      const streamed = await stream(simulator, paths[at], { ...chatBody(model), ...optionsAt(at) });
      const total = 5 + completion + (BESIDE[model] ?? 0);
      const counts = { prompt_tokens: 5, completion_tokens: completion, total_tokens: total };
      const lastUsage = objectOf(streamed.chunks.findLast((chunk) => chunk.usage)?.usage);
      expect(lastUsage).toMatchObject(counts);
      expect([finishesOf(streamed).length, streamed.dones]).toEqual([finishesAt(at), 1]);
      const whole = await sendRequest(simulator, { path: paths[at], body: chatBody(model) });
      expect(whole.headers.get('content-type')).toBe('application/json');
      expect(await whole.json()).toMatchObject({ object: 'chat.completion', usage: counts });
    },
  );

  test.each(allScenes.map((scene) => [scene.id, scene] as const))(
    '%s: rejects an invalid key with the provider’s error, and lists models',
    async (id, scene) => {
      for (const [path, operation] of Object.entries(scene.routes)) {
        const method = operation === 'models' ? 'GET' : 'POST';
        const headers = { ...BESIDE_KEY, authorization: 'Bearer invalid', 'x-api-key': 'invalid' };
        const refusal = await fetch(simulator.url + path, { method, headers });
        expect([refusal.status, await refusal.text()]).toEqual(BAD_KEYS[id] ?? [401, expect.any(String)]);
        expect((await fetch(simulator.url + path, { method })).status).toBe(401);
        if (operation !== 'models') continue;
        const list = await fetch(simulator.url + path, {
          headers: { ...BESIDE_KEY, authorization: 'Bearer sim-x', 'x-api-key': 'sim-x' },
        });
        expect(objectsOf(decodeObject(await list.text())?.data).map((model) => model.id)).toEqual([
          ...scene.models,
          ...(scene.embeddingModels ?? []),
        ]);
      }
    },
  );

  test.each(NUMBERS)('%s %s: a tool call is sent once, and its arguments are JSON', async (at, model) => {
    const received = await stream(simulator, paths[at], chatBody(model, { tools: [WEATHER] }));
    const fragments = deltasOf(received).flatMap((delta) => objectsOf(delta.tool_calls));
    expect(fragments.filter((fragment) => fragment.id)).toHaveLength(1);
    const parts = fragments.map((fragment) => objectOf(fragment.function).arguments);
    expect(decodeObject(parts.join(''))).toEqual({ city: 'Zürich' });
    expect(new Set(finishesOf(received))).toEqual(
      new Set([at === 'gemini-compatible' ? 'stop' : 'tool_calls']),
    );
  });

  test('max_tokens truncates the output, and the finish is length', async () => {
    const received = await stream(simulator, paths.openai, {
      ...chatBody('gpt-4o-mini', { max_tokens: 3 }),
      ...INCLUDE_USAGE,
    });
    expect([textIn(received), finishesOf(received)]).toEqual(['Water over the', ['length']]);
    expect(usageOf(received)).toMatchObject({ completion_tokens: 3 });
  });
});

describe('bedrock: a request that is signed', () => {
  const { accessKeyId, secretAccessKey, region } = SIMULATED_AWS;
  const keys = { accessKeyId, secretAccessKey, sessionToken: null };
  const path = '/bedrock/runtime/model/us.amazon.nova-2-lite-v1%3A0/converse';
  const text = JSON.stringify({ messages: [{ role: 'user', content: [{ text: 'Hé' }] }] });

  test.each<
    [name: string, change: { keys?: object; scope?: object; late?: number; sent?: string }, said: string]
  >([
    ['rightly', {}, 'tokens'],
    ['with another secret', { keys: { secretAccessKey: 'other' } }, 'signature we calculated does not match'],
    ['with an unknown key', { keys: { accessKeyId: 'AKIDOTHER' } }, 'security token included in the request'],
    ['with a token of no session', { keys: { sessionToken: 't' } }, 'security token included in the request'],
    ['for another region', { scope: { region: 'us-east-1' } }, 'scoped to a valid region'],
    ['for the other host', { scope: { service: 'bedrock-mantle' } }, "scoped to correct service: 'bedrock'"],
    ['too early', { late: -600_000 }, 'Signature expired'],
    ['too late', { late: 600_000 }, 'Signature not yet current'],
    ['and then changed', { sent: text.replace('Hé', 'No') }, 'signature we calculated does not match'],
  ])('%s', async (_, { keys: otherKeys, scope, late = 0, sent = text }, said) => {
    const signer = new AwsSigner({ ...keys, ...otherKeys });
    const headers = { 'content-type': 'application/json' };
    const url = simulator.url + path;
    const signed = await signer.sign(
      { method: 'POST', url, headers, body: encodeUtf8(text) },
      { region, service: 'bedrock', ...scope },
      Date.now() + late,
    );
    const response = await fetch(url, { method: 'POST', headers: { ...headers, ...signed }, body: sent });
    const isRight = said === 'tokens';
    expect(response.status).toBe(isRight ? 200 : 403);
    expect((await response.text()).toLowerCase()).toContain(said.toLowerCase());
  });
});

describe('the server', () => {
  test('given chunks are served unchanged, without a check of key or route', async () => {
    const chunks = [new TextEncoder().encode('data: {"a":1}\r'), Uint8Array.of(0x0a, 0xff)];
    await using replaying = await createSimulator({
      replay: ({ path }) =>
        path === '/exact' ? { status: 202, headers: { 'x-a': 'b' }, chunks } : undefined,
    });
    const response = await fetch(`${replaying.url}/exact`, { method: 'POST', body: '{"q":1}' });
    expect([response.status, response.headers.get('x-a')]).toEqual([202, 'b']);
    expect(await response.bytes()).toEqual(new Uint8Array(Buffer.concat(chunks)));
    expect(replaying.requests[0]?.body).toEqual({ q: 1 });
    expect((await fetch(replaying.url)).status).toBe(404);
  });

  test('records the content of each request and how it ended', async () => {
    const place = simulator.requests.length;
    const body = chatBody('gpt-4o-mini', { stream: true });
    await (await sendRequest(simulator, { path: paths.openai, body })).text();
    const request = await simulator.request(place);
    expect(request).toMatchObject({ method: 'POST', path: paths.openai, body, text: JSON.stringify(body) });
    expect(await request.closed).toBe('finished');
  });

  test('close ends open connections, and a second close is harmless', async () => {
    const closing = await createSimulator({ fault: 'stall-head' });
    const response = await sendRequest(closing, { path: paths.openai, body: chatBody('gpt-4o-mini') });
    await closing.close();
    await closing.close();
    await expect(response.text()).rejects.toThrow();
    expect(await closing.requests[0]?.closed).toBe('aborted');
  });
});
