/** The demo sees whether a stream is as expected, and its table is aligned. */
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
  expected: { finish: 'stop', promptTokens: 1, completionTokens: 2, parts: ['thinks', 'says'] },
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

/** What the demo says of a stream with this data, sent byte by byte. */
async function verdict(data: readonly string[]): Promise<string[]> {
  const chunks = [...new TextEncoder().encode(data.map((line) => `data: ${line}\n\n`).join(''))].map((byte) =>
    Uint8Array.of(byte),
  );
  await using gateway = await createSimulator({ replay: () => ({ chunks }) });
  return await show(gateway.url, example);
}

test('a stream as expected is shown part by part, and nothing is wrong with it', async () => {
  expect(await verdict(GOOD)).toEqual([]);
  expect(written.join('')).toMatch(/given {4}Go\n {2}thinks {3}Hm\n {2}says {5}Æ\n {11}stop · 1 \+ 2 tokens/);
});

test.each([
  ['no [DONE]', GOOD.slice(0, -1), '[DONE]: 0, expected 1'],
  ['two finishes', [choice({}, 'stop'), ...GOOD], 'finish: stop,stop, expected stop'],
  ['other parts', GOOD.slice(1), 'parts: says, expected thinks,says'],
  ['no usage', GOOD.filter((line) => line !== USAGE), 'prompt tokens: undefined, expected 1'],
  [
    'an error',
    [...GOOD.slice(0, 2), '{"error":{"message":"x"}}', '[DONE]'],
    'parts: thinks,says,error, expected thinks,says',
  ],
  ['a chunk after [DONE]', [...GOOD, USAGE], 'something follows [DONE]'],
])('%s is said', async (_, data, difference) => {
  expect(await verdict(data)).toContain(difference);
});

test('numbers stand to the right below their titles, words to the left', () => {
  const lines = table(
    ['name', 'count'],
    [
      ['a', 5],
      ['longer', 1234567],
    ],
  );
  expect(lines).toEqual(['  name      count', '  a             5', '  longer  1234567']);
});
