/** Runs every OpenAI-shaped recording of a real provider through the Responses writer: its grammar holds, and nothing is lost (I4). */
import { describe, expect, test } from 'vitest';
import { PROVIDERS } from '../../../src/providers/index.ts';
import { COMPATIBLE, type Conversion, cut } from '../../contract/convert.ts';
import { differences, type Reading, readUpstream } from '../../contract/plain-reading.ts';
import { framed, isTextCompletion, readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { checkResponses, eventsIn, valuesIn } from './check.ts';
import { readResponse, readResponses } from './reading.ts';
import { runStream, runWhole } from './run.ts';
import { responseFaults } from './schema.ts';

const encoder = new TextEncoder();

/** Chat alone is asked on behalf of a Responses client. */
const recordings = readRecordings().filter(
  (recording) =>
    recording.protocol === 'openai' &&
    !/--(?:codestral-fim|agents)/.test(recording.name) &&
    !isTextCompletion(recording),
);
const named = recordings.map((recording) => [recording.name, recording] as const);

/** What a Responses client can get of it: one answer, calls whose arguments are at least `{}`, and tokens with their texts. */
function expected(upstream: Reading): Reading {
  const [choice] = [...upstream.choices].filter(([index]) => index === 0).map(([, read]) => read);
  if (choice === undefined) return { ...upstream, choices: new Map() };
  const toolCalls = choice.toolCalls.map((call) => ({ ...call, arguments: call.arguments || '{}' }));
  const usage = upstream.usage;
  return {
    ...upstream,
    choices: new Map([[0, { ...choice, toolCalls, details: [] }]]),
    usage: usage && { ...usage, cached: usage.cached || null, reasoning: usage.reasoning || null },
  };
}

function withoutDetails(client: Reading): Reading {
  for (const choice of client.choices.values()) choice.details = [];
  return client;
}

describe.skipIf(recordingsNote !== '')(`recorded streams to a Responses client${recordingsNote}`, () => {
  describe.each(named)('%s', (name, recording) => {
    const maker = name.split('--')[0];
    const provider = PROVIDERS.find(({ id }) => id === maker)?.id ?? COMPATIBLE;
    const conversion: Conversion = { provider, route: 'chat', model: 'asked-for', usageChunk: true };
    const upstream = framed(recording);
    const bytes = encoder.encode(upstream);
    const { text } = runStream([bytes], conversion);
    const read = expected(readUpstream(upstream, 'sse'));

    test('I4 the checker finds no fault', () => {
      expect(checkResponses(text)).toEqual([]);
    });

    test('I4 the client receives what the upstream sent, and nothing else', () => {
      expect(differences(read, withoutDetails(readResponses(text)))).toEqual([]);
    });

    test.each([1, 7, 64])('S1 I4 cut into reads of %d bytes: the client gets the same', (size) => {
      const pieces = runStream(cut(bytes, size), conversion).text;
      expect(valuesIn(pieces)).toEqual(valuesIn(text));
    });

    test('I4 without the fast path: the client gets the same', () => {
      const slow = runStream([bytes], { ...conversion, fastPath: false }).text;
      expect(valuesIn(text)).toEqual(valuesIn(slow));
    });

    test('I4 whole: the same object as at the end of the stream', () => {
      if (read.error !== null) return;
      const whole = JSON.parse(runWhole(bytes, conversion));
      expect(responseFaults(whole)).toEqual([]);
      expect(differences(read, withoutDetails(readResponse(whole)))).toEqual([]);
      expect(whole).toEqual(eventsIn(text).at(-1)?.response);
    });
  });
});
