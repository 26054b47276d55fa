/** Tests the frames of vendor events, which the recorded streams don't cover. */
import { describe, expect, test } from 'vitest';
import { ChatWriter } from '../../../src/protocols/openai-chat/client-writer.ts';

const decoder = new TextDecoder();

describe('ChatWriter', () => {
  test('V2 writes the event line of a named vendor event, and its data on one line', () => {
    const writer = new ChatWriter('data', 1024);
    writer.vendor('{"a":\n1}', 'x_a.b');
    writer.vendor('{"type":"x_c"}', '');
    expect(decoder.decode(writer.output.take())).toBe(
      'event: x_a.b\ndata: {"a":1}\n\ndata: {"type":"x_c"}\n\n',
    );
  });
});
