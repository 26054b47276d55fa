/** Runs every recorded stream of Chat Completions through the Responses writer: the result is valid, and nothing is lost. */
import { describe, expect, test } from 'vitest';
import { checkResponses, eventsIn, valuesIn } from '../../../tools/conformance/contract/check-responses.ts';
import { responseFaults } from '../../../tools/conformance/contract/responses-schema.ts';
import { type Conversion, cut, recordedProvider } from '../../contract/convert.ts';
import { framed, isTextCompletion, readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { type Content, differences, readUpstream } from '../../contract/reference-reader.ts';
import { readResponse, readResponses } from './reading.ts';
import { runJson, runStream } from './run.ts';

const encoder = new TextEncoder();

/** Responses requests are translated into chat requests only. */
const recordings = readRecordings().filter(
  (recording) =>
    recording.protocol === 'openai' &&
    !/--(?:codestral-fim|agents)/.test(recording.name) &&
    !isTextCompletion(recording),
);
const named = recordings.map((recording) => [recording.name, recording] as const);

/** What the protocol can express: one choice, and calls with at least `{}` as arguments. Reasoning states are compared elsewhere. */
function expected(upstream: Content): Content {
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

function withoutDetails(client: Content): Content {
  for (const choice of client.choices.values()) choice.details = [];
  return client;
}

describe.skipIf(recordingsNote !== '')(`recorded streams to a Responses client${recordingsNote}`, () => {
  describe.each(named)('%s', (name, recording) => {
    const provider = recordedProvider(name);
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

    test.each([1, 7, 64])('S1 I4 split into reads of %d bytes: the client receives the same', (size) => {
      const pieces = runStream(cut(bytes, size), conversion).text;
      expect(valuesIn(pieces)).toEqual(valuesIn(text));
    });

    test('I4 without the fast path: the client receives the same', () => {
      const slow = runStream([bytes], { ...conversion, fastPath: false }).text;
      expect(valuesIn(text)).toEqual(valuesIn(slow));
    });

    test('I4 non-streaming: the same object as at the end of the stream', () => {
      if (read.error !== null) return;
      const json = JSON.parse(runJson(bytes, conversion));
      expect(responseFaults(json)).toEqual([]);
      expect(differences(read, withoutDetails(readResponse(json)))).toEqual([]);
      expect(json).toEqual(eventsIn(text).at(-1)?.response);
    });
  });
});
