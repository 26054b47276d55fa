/** The demo detects a stream that is not as expected, and its table is aligned. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Example } from './demo-examples.ts';
import { show } from './demo-stream.ts';
import { compact, type JsonObject } from './json.ts';
import { createSimulator } from './server.ts';
import { table } from './terminal.ts';

const written: string[] = [];
beforeEach(() => {
  written.length = 0;
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
});
afterEach(() => vi.restoreAllMocks());

const example: Example = {
  title: 'A test',
  path: '/v1/chat/completions',
  body: { messages: [{ role: 'user', content: 'Go' }] },
  expected: { finish: 'stop', promptTokens: 1, completionTokens: 2, parts: ['reasoning', 'text'] },
};

function choice(delta: JsonObject, finish_reason: string | null = null): string {
  return compact({ choices: [{ index: 0, delta, finish_reason }] });
}
const USAGE = compact({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } });
const GOOD = [
  choice({ reasoning_content: 'Hm' }),
  choice({ content: 'Æ' }),
  choice({}, 'stop'),
  USAGE,
  '[DONE]',
];

/** The differences that the demo reports for a stream with this data, sent byte by byte. */
async function differencesOf(data: readonly string[]): Promise<string[]> {
  const chunks = [...new TextEncoder().encode(data.map((line) => `data: ${line}\n\n`).join(''))].map((byte) =>
    Uint8Array.of(byte),
  );
  await using gateway = await createSimulator({ replay: () => ({ chunks }) });
  return await show({ url: gateway.url, key: 'any' }, example);
}

test('a stream as expected is printed part by part, and no difference is reported', async () => {
  expect(await differencesOf(GOOD)).toEqual([]);
  expect(written.join('')).toMatch(
    /prompt {5}Go\n {2}reasoning {2}Hm\n {2}text {7}Æ\n {13}stop · 1 \+ 2 tokens/,
  );
});

test.each([
  ['no [DONE]', GOOD.slice(0, -1), '[DONE]: 0, expected 1'],
  ['two finishes', [choice({}, 'stop'), ...GOOD], 'finish: stop,stop, expected stop'],
  ['other parts', GOOD.slice(1), 'parts: text, expected reasoning,text'],
  ['no usage', GOOD.filter((line) => line !== USAGE), 'prompt tokens: undefined, expected 1'],
  [
    'an error',
    [...GOOD.slice(0, 2), '{"error":{"message":"x"}}', '[DONE]'],
    'parts: reasoning,text,error, expected reasoning,text',
  ],
  ['a chunk after [DONE]', [...GOOD, USAGE], 'something follows [DONE]'],
])('%s is reported', async (_, data, difference) => {
  expect(await differencesOf(data)).toContain(difference);
});

test('numbers are right-aligned below their titles, words left-aligned', () => {
  const lines = table(
    ['name', 'count'],
    [
      ['a', 5],
      ['longer', 1234567],
    ],
  );
  expect(lines).toEqual(['  name      count', '  a             5', '  longer  1234567']);
});
