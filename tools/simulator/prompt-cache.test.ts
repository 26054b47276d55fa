/** The simulator's prompt cache. */
import { expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf } from './json.ts';
import { PromptCache } from './prompt-cache.ts';
import { createSimulator } from './server.ts';

const message = (content: string) => ({ role: 'user', content });
const MESSAGES = ['one', 'two', 'three'].map(message);

test('a prompt that continues an earlier one reads it, also if a cache mark has moved; another model reads nothing', () => {
  const cache = new PromptCache();
  const mark = { cache_control: { type: 'ephemeral' } };
  const first = { tools: [{ name: 'read' }], system: 'Hi', messages: [{ ...message('one'), ...mark }] };
  expect(cache.read('p a', first)).toBe(0);
  const longer = cache.read('p a', { ...first, messages: [message('one'), message('one')] });
  expect(longer).toBeGreaterThan(0.6);
  expect(longer).toBeLessThan(0.9);
  expect(cache.read('p b', first)).toBe(0);
  expect(cache.read('p a', { ...first, tools: [] })).toBe(0);
  expect(cache.read('p a', first)).toBe(1);
});

test.each([
  ['/deepseek/chat/completions', { messages: MESSAGES }, 'prompt_tokens_details'],
  ['/openai/v1/responses', { input: MESSAGES }, 'input_tokens_details'],
  ['/anthropic/v1/messages', { messages: MESSAGES, max_tokens: 9 }, ''],
])('%s reports what it read from the cache', async (path, body: JsonObject, details) => {
  await using simulator = await createSimulator({ hasPromptCache: true });
  const models = { '/d': 'deepseek-flash', '/o': 'gpt-5.6', '/a': 'claude-sonnet-5' };
  const model = Object.entries(models).find(([start]) => path.startsWith(start))?.[1];
  const read = async () => {
    const headers = {
      authorization: 'Bearer sim-1',
      'x-api-key': 'sim-1',
      'anthropic-version': '2023-06-01',
    };
    const init = { method: 'POST', headers, body: JSON.stringify({ model, ...body }) };
    const usage = objectOf(decodeObject(await (await fetch(simulator.url + path, init)).text())?.usage);
    return details === '' ? usage.cache_read_input_tokens : objectOf(usage[details]).cached_tokens;
  };
  expect([await read(), await read()]).toEqual([0, 3]);
});
