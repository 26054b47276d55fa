/** Tests the checker of Responses streams: providers' own streams pass but for what is known of them, and each damage is found. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../contract/json.ts';
import { readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { checkResponses } from './check.ts';
import { call, delta, FAILURE, finish, write } from './chunks.ts';

/** What OpenAI's and xAI's own streams have otherwise than Open Responses, or than a gateway that keeps nothing. */
const OWN_WAYS = [
  /is no key of it$/,
  /^\[DONE\] is not the last frame$/,
  /response store is no one of false: true$/,
  // OpenAI encrypts anew for the ending.
  /^the output is not what the items were$/,
  // xAI leaves some out, and ends its items otherwise.
  /reasoning_text|item content|item status/,
];

/** Recorded by others with their values taken out, or with keys of their own. */
const LEFT_OUT = /deepseek|lmstudio|web-search|error-in-stream/;

const recordings = readRecordings().filter(
  ({ protocol, kind, name }) => protocol === 'responses' && kind === 'sse' && !LEFT_OUT.test(name),
);

describe.skipIf(recordingsNote !== '')(`checkResponses, providers' own streams${recordingsNote}`, () => {
  test.each(recordings.map((recording) => [recording.name, recording.text] as const))('%s', (_, text) => {
    const frames = text.replaceAll('\r\n', '\n').replace(/^: .*\n\n/gm, '');
    const faults = checkResponses(frames.endsWith('\n\n') ? frames : `${frames}\n\n`);
    expect(faults.filter((fault) => !OWN_WAYS.some((pattern) => pattern.test(fault)))).toEqual([]);
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

test('checkResponses, a good stream: no fault', () => {
  expect(checkResponses(GOOD.text)).toEqual([]);
  expect(checkResponses(framesOf(EVENTS))).toEqual([]);
  expect(checkResponses(FAILED.text)).toEqual([]);
});

/** Deltas may be left out only with what they say. */
describe('checkResponses finds', () => {
  test.each(EVENTS.map(({ type }, position) => [position, type] as const))(
    'the event %d (%s) left out, also where the numbers go on',
    (position) => {
      const rest = EVENTS.filter((_, at) => at !== position);
      expect(checkResponses(framesOf(rest))).not.toEqual([]);
      expect(checkResponses(framesOf(renumbered(rest)))).not.toEqual([]);
    },
  );

  test.each(EVENTS.slice(1).map(({ type }, position) => [position + 1, type] as const))(
    'the event %d (%s) sent twice, or with the one before in the other order',
    (position) => {
      const twice = EVENTS.toSpliced(position, 0, EVENTS[position] ?? { type: '' });
      expect(checkResponses(framesOf(renumbered(twice)))).not.toEqual([]);
      const swapped = EVENTS.with(position, EVENTS[position - 1] ?? { type: '' }).with(
        position - 1,
        EVENTS[position] ?? { type: '' },
      );
      // Two deltas of one text in the other order say another text than its end.
      expect(checkResponses(framesOf(renumbered(swapped)))).not.toEqual([]);
    },
  );

  test('every key of every event missing or of another kind', () => {
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

  test('an event of a kind that clients do not know', () => {
    const text = framesOf(renumbered(EVENTS.toSpliced(3, 0, { type: 'response.vendor.thing' })));
    expect(checkResponses(text)).not.toEqual([]);
  });

  test('no [DONE], a second one, and frames without their name', () => {
    expect(checkResponses(framesOf(EVENTS, false))).not.toEqual([]);
    expect(checkResponses(`${GOOD.text}data: [DONE]\n\n`)).not.toEqual([]);
    expect(checkResponses(GOOD.text.replaceAll(/^event: .*\n/gm, ''))).not.toEqual([]);
  });

  test('an id that changes within its item', () => {
    const text = GOOD.text.replace(/(output_text\.done".*?"item_id":")[^"]*/, '$1msg_other');
    expect(checkResponses(text)).not.toEqual([]);
  });

  test('a failure without its error, and an error without its failure', () => {
    expect(checkResponses(FAILED.text.replace(/event: error\n.*\n\n/, ''))).not.toEqual([]);
    expect(checkResponses(FAILED.text.replace(/event: response\.failed\n.*\n\n/, ''))).not.toEqual([]);
  });
});
