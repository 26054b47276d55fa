/** Tests what the blocks of a message get of a tool call's arguments. */
import { expect, test } from 'vitest';
import { MessageBlocks } from '../../../src/protocols/anthropic-messages/client-blocks.ts';

function argumentsOf(...pieces: readonly string[]): string {
  let text = '';
  const blocks = new MessageBlocks(
    {
      open: () => {},
      text: (piece) => {
        text += piece;
      },
      cite: () => {},
      sign: () => {},
      close: () => {},
      reasoningState: () => {},
    },
    1024,
  );
  blocks.read({
    tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }],
  });
  for (const piece of pieces) blocks.read({ tool_calls: [{ index: 0, function: { arguments: piece } }] });
  blocks.finish();
  return text;
}

test('C7 arguments of white space alone: none', () => {
  expect(argumentsOf(' ', '\n')).toBe('');
});

test('C7 arguments that are no JSON, and begin with white space: as they came', () => {
  expect(argumentsOf(' low', ' tide ')).toBe(' low tide ');
});
