/** Tests what of the chat frames no stream shows: a vendor event's own lines. */
import { describe, expect, test } from 'vitest';
import { ChatWriter } from '../../../src/protocols/openai-chat/client-writer.ts';

const decoder = new TextDecoder();

describe('ChatWriter', () => {
  test('V2 a vendor event with a name: its event line stands before its data, on one line', () => {
    const writer = new ChatWriter('data', 1024);
    writer.vendor('{"a":\n1}', 'x_a.b');
    writer.vendor('{"type":"x_c"}', '');
    expect(decoder.decode(writer.output.take())).toBe(
      'event: x_a.b\ndata: {"a":1}\n\ndata: {"type":"x_c"}\n\n',
    );
  });
});
