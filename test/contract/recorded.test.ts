/** Runs every OpenAI-shaped recording of a real provider through the stream core, and compares input with output. */
import { describe, expect, test } from 'vitest';
import { ROUTE_SHAPES, type Route } from '../../src/providers/provider.ts';
import { check } from '../../tools/conformance/contract/check.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import { type Conversion, convertStream, cut, recordedProvider } from './convert.ts';
import { expectationOf } from './expectation.ts';
import { framed, isTextCompletion, type Recording, readRecordings, recordingsNote } from './recordings.ts';
import { differences, readClient, readUpstream } from './reference-reader.ts';

const encoder = new TextEncoder();

/** Recordings of incomplete outputs, with the reason. Their clients get an error frame. */
const FAILURES: ReadonlyMap<string, string> = new Map([
  ['groq--event-error-after-text.sse', 'the upstream sends `event: error`'],
]);

const recordings = readRecordings().filter(({ protocol }) => protocol === 'openai');
const named = recordings.map((recording) => [recording.name, recording] as const);

function routeOf(recording: Recording): Route {
  const { name } = recording;
  if (name.includes('--codestral-fim')) return 'fim';
  if (name.includes('--agents')) return 'agents';
  return isTextCompletion(recording) ? 'completions' : 'chat';
}

function conversionOf(recording: Recording): Conversion {
  const provider = recordedProvider(recording.name);
  return { provider, route: routeOf(recording), model: 'asked-for', usageChunk: true };
}

describe.skipIf(recordingsNote !== '')(`recorded streams${recordingsNote}`, () => {
  describe.each(named)('%s', (_, recording) => {
    const conversion = conversionOf(recording);
    const upstream = framed(recording);
    const bytes = encoder.encode(upstream);
    const shape = ROUTE_SHAPES[conversion.route];
    const { text, error } = convertStream([bytes], conversion);

    test('the contract checker finds no broken rule', () => {
      expect(check(encoder.encode(text), expectationOf(conversion))).toEqual([]);
    });

    test('the client receives what the upstream sent, and nothing else', () => {
      expect(differences(readUpstream(upstream, 'sse'), readClient(text), { shape })).toEqual([]);
    });

    test('U2 usage that was not requested: on the chunk of the last finish, if it was reported by then', () => {
      const read = readUpstream(upstream, 'sse');
      const unasked = { ...conversion, usageChunk: false, choices: read.choices.size };
      const client = convertStream([bytes], unasked).text;
      expect(check(encoder.encode(client), expectationOf(unasked))).toEqual([]);
      expect(differences(read, readClient(client), { shape, usage: 'finish' })).toEqual([]);
    });

    test('C6 A7 reasoning that is stripped: the tokens that the upstream wants back stay', () => {
      const policies = { ...DEFAULT_POLICIES, reasoning: 'strip' } as const;
      const client = convertStream([bytes], { ...conversion, policies }).text;
      expect(check(encoder.encode(client), expectationOf({ ...conversion, policies }))).toEqual([]);
      const found = differences(readUpstream(upstream, 'sse'), readClient(client), {
        shape,
        reasoning: 'strip',
      });
      expect(found).toEqual([]);
    });

    test('S1 cut into reads of 7 bytes: the client gets the same bytes', () => {
      expect(convertStream(cut(bytes, 7), conversion).text).toBe(text);
    });

    test('E2 a failure is reported only for a recording of a failure', () => {
      expect(error !== null).toBe(FAILURES.has(recording.name));
    });
  });
});

test.runIf(recordingsNote !== '')(`recorded streams are left out${recordingsNote}`, () => {
  expect(recordings).toEqual([]);
});
