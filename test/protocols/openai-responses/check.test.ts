/** Tests the checker of Responses streams: it accepts providers' streams, except for known differences, and finds every damage. */
import { describe, expect, test } from 'vitest';
import { checkResponses } from '../../../tools/conformance/contract/check-responses.ts';
import type { JsonObject } from '../../../tools/conformance/contract/json.ts';
import { readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { call, delta, FAILURE, finish, write } from './chunks.ts';

/** Known differences of OpenAI's and xAI's streams from Open Responses, or from a gateway that stores nothing. */
const KNOWN_DIFFERENCES = [
  /is no key of it$/,
  /^\[DONE\] is not the last frame$/,
  /response store is no one of false: true$/,
  // OpenAI encrypts the reasoning again for the last event.
  /^the output differs from the items$/,
  // xAI omits some events, and ends its items with others.
  /reasoning_text|item content|item status/,
];

/** Recordings of others, with removed values or with additional keys. */
const SKIPPED = /deepseek|lmstudio|web-search|error-in-stream/;

const recordings = readRecordings().filter(
  ({ protocol, kind, name }) => protocol === 'responses' && kind === 'sse' && !SKIPPED.test(name),
);

describe.skipIf(recordingsNote !== '')(`checkResponses, providers' own streams${recordingsNote}`, () => {
  test.each(recordings.map((recording) => [recording.name, recording.text] as const))('%s', (_, text) => {
    const frames = text.replaceAll('\r\n', '\n').replace(/^: .*\n\n/gm, '');
    const faults = checkResponses(frames.endsWith('\n\n') ? frames : `${frames}\n\n`);
    expect(faults.filter((fault) => !KNOWN_DIFFERENCES.some((pattern) => pattern.test(fault)))).toEqual([]);
  });
});

const GOOD = write([
  delta({ reasoning_content: 'r' }),
  delta({ content: 'one ' }),
  delta({ content: 'two' }),
  delta({ refusal: 'no' }),
  call(0, 'a', '{"x":1}'),
  finish('tool_calls'),
]);
const FAILED = write([delta({ content: 'one' })], { failure: FAILURE });

type Event = JsonObject & { type: string };

function framesOf(events: readonly Event[], isDone = true): string {
  const frames = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
  return isDone ? `${frames}data: [DONE]\n\n` : frames;
}

function renumbered(events: readonly Event[]): Event[] {
  return events.map((event, sequence_number) => ({ ...event, sequence_number }));
}

const EVENTS: readonly Event[] = GOOD.events.map((event) => ({ ...event, type: String(event.type) }));

test('checkResponses: a valid stream has no fault', () => {
  expect(checkResponses(GOOD.text)).toEqual([]);
  expect(checkResponses(framesOf(EVENTS))).toEqual([]);
  expect(checkResponses(FAILED.text)).toEqual([]);
});

describe('checkResponses finds', () => {
  test.each(EVENTS.map(({ type }, position) => [position, type] as const))(
    'the missing event %d (%s), also without a gap in the numbers',
    (position) => {
      const rest = EVENTS.filter((_, at) => at !== position);
      expect(checkResponses(framesOf(rest))).not.toEqual([]);
      expect(checkResponses(framesOf(renumbered(rest)))).not.toEqual([]);
    },
  );

  test.each(EVENTS.slice(1).map(({ type }, position) => [position + 1, type] as const))(
    'the event %d (%s) twice, or in the wrong order',
    (position) => {
      const twice = EVENTS.toSpliced(position, 0, EVENTS[position] ?? { type: '' });
      expect(checkResponses(framesOf(renumbered(twice)))).not.toEqual([]);
      const swapped = EVENTS.with(position, EVENTS[position - 1] ?? { type: '' }).with(
        position - 1,
        EVENTS[position] ?? { type: '' },
      );
      // Two swapped deltas yield a text that differs from the `done` event.
      expect(checkResponses(framesOf(renumbered(swapped)))).not.toEqual([]);
    },
  );

  test('every missing key of every event, and every value of another type', () => {
    for (const [position, event] of EVENTS.entries()) {
      for (const key of Object.keys(event).filter((name) => name !== 'type' && name !== 'logprobs')) {
        const { [key]: _, ...without } = event;
        for (const damaged of [without, { ...event, [key]: ['other'] }]) {
          const text = framesOf(EVENTS.with(position, { ...damaged, type: event.type }));
          expect(checkResponses(text), `${event.type} ${key}`).not.toEqual([]);
        }
      }
    }
  });

  test('an unknown event', () => {
    const text = framesOf(renumbered(EVENTS.toSpliced(3, 0, { type: 'response.vendor.thing' })));
    expect(checkResponses(text)).not.toEqual([]);
  });

  test('a missing or second [DONE], and frames without a name', () => {
    expect(checkResponses(framesOf(EVENTS, false))).not.toEqual([]);
    expect(checkResponses(`${GOOD.text}data: [DONE]\n\n`)).not.toEqual([]);
    expect(checkResponses(GOOD.text.replaceAll(/^event: .*\n/gm, ''))).not.toEqual([]);
  });

  test('an id that changes within its item', () => {
    const text = GOOD.text.replace(/(output_text\.done".*?"item_id":")[^"]*/, '$1msg_other');
    expect(checkResponses(text)).not.toEqual([]);
  });

  test('a failure without an error event, and an error event without a failure', () => {
    expect(checkResponses(FAILED.text.replace(/event: error\n.*\n\n/, ''))).not.toEqual([]);
    expect(checkResponses(FAILED.text.replace(/event: response\.failed\n.*\n\n/, ''))).not.toEqual([]);
  });
});
