/** Tests the bound for tool names that are kept until the response (B3). */
import { describe, expect, test } from 'vitest';
import { rewrite } from './send.ts';

const tools = (count: number, chars: number) =>
  Array.from({ length: count }, (_, i) => ({
    type: 'function',
    function: { name: `f${i}`.padEnd(chars, 'x') },
  }));

describe('B3 tool names that the provider refuses', () => {
  test.each([
    ['100 of 128 characters', tools(100, 128), true],
    ['1,000 of 128 characters', tools(1000, 128), false],
    ['one of 100,000 characters', tools(1, 100_000), false],
    ['1,000 that it takes', tools(1000, 60), true],
  ])('%s', (_, given, isTaken) => {
    const written = rewrite('openai', {
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
      tools: given,
    });
    expect(written).toMatchObject(
      isTaken
        ? { kind: 'body' }
        : { kind: 'error', error: { status: 400, code: 'invalid_request', param: 'tools' } },
    );
  });
});
