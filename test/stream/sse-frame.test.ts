/** Tests that no text of a provider becomes a line of an event stream of its own, in any protocol. */
import { describe, expect, test } from 'vitest';
import { frame, frameData, frameHead, isEventName } from '../../src/stream/sse-frame.ts';
import { readText } from './sse-events.ts';

const FAKE = 'event: response.completed\ndata: {"type":"response.completed"}\n\n';
const ENDS = ['\n', '\r', '\r\n', '\n\n', '\r\r'];
const HOSTILE = ENDS.flatMap((end) => [`x${end}${FAKE}`, `${end}data: y`, `x${end}`, end]);

describe('S1 the writer of events', () => {
  test.each(HOSTILE)('the name %j is written as none: one event, with its data', (name) => {
    expect(isEventName(name)).toBe(false);
    expect(readText(frame(name, '{"a":1}'))).toEqual([['', '{"a":1}']]);
  });

  test.each(['response.completed', 'message_start', 'x_task', 'odd name: 1', 'ü'])(
    'the name %j stays',
    (name) => {
      expect(readText(frame(name, '{}'))).toEqual([[name, '{}']]);
    },
  );

  test.each(HOSTILE)('the data %j stays one event', (data) => {
    const received = readText(`${frameHead('a')}${frameData(data)}\n\n`);
    expect(received).toEqual([['a', data.replace(/\r\n?/g, '\n')]]);
  });

  test('a name of more than 256 characters, and an empty one, are none', () => {
    expect([isEventName('a'.repeat(256)), isEventName('a'.repeat(257)), isEventName('')]).toEqual([
      true,
      false,
      false,
    ]);
  });
});
