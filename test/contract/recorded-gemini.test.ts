/** Runs every recorded Gemini stream through the stream core, complete, split and truncated, and compares it with a simple content. */
import { describe, expect, test } from 'vitest';
import { check } from '../../tools/conformance/contract/check.ts';
import { objectOf, parseJson } from '../../tools/conformance/contract/json.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import { type Conversion, convertObject, convertStream, cut } from './convert.ts';
import { expectationOf } from './expectation.ts';
import { framed, type Recording, readRecordings, recordingsNote } from './recordings.ts';
import { geminiEvents, readGemini } from './reference-gemini.ts';
import { differences, readClient } from './reference-reader.ts';

const encoder = new TextEncoder();
const recordings = readRecordings()
  .filter(({ protocol }) => protocol === 'gemini')
  .map((recording) => ({ ...recording, text: framed(recording) }));
const named = recordings.map((recording) => [recording.name, recording] as const);

const CONVERSION: Conversion = { provider: 'gemini', route: 'chat', model: 'asked-for', usageChunk: true };

/** Differences between what the upstream sent and the client received, and the rules that the client's bytes break. */
function faults(upstream: string, conversion: Conversion = CONVERSION): string[] {
  const { text } = convertStream([encoder.encode(upstream)], conversion);
  const read = readGemini(geminiEvents(upstream));
  const { reasoning } = conversion.policies ?? DEFAULT_POLICIES;
  return [
    ...check(encoder.encode(text), expectationOf(conversion)),
    ...differences(read, readClient(text), { reasoning, usage: conversion.usageChunk ? 'end' : 'finish' }),
  ];
}

/** The bytes up to each event's end. The last one is the complete stream. */
function* prefixes({ text }: Recording): Generator<string> {
  for (const match of text.matchAll(/\r?\n\r?\n/g)) yield text.slice(0, match.index + match[0].length);
}

describe.skipIf(recordingsNote !== '')(`recorded Gemini streams${recordingsNote}`, () => {
  describe.each(named)('%s', (_, recording) => {
    const bytes = encoder.encode(recording.text);

    test('A3 A4 A5 A7 the client gets everything that Gemini sent, in the contract’s form', () => {
      expect(faults(recording.text)).toEqual([]);
    });

    test('U2 usage that was not requested is on the chunk of the finish', () => {
      expect(faults(recording.text, { ...CONVERSION, usageChunk: false })).toEqual([]);
    });

    test('C6 A7 reasoning that is stripped: signatures stay', () => {
      const policies = { ...DEFAULT_POLICIES, reasoning: 'strip' } as const;
      expect(faults(recording.text, { ...CONVERSION, policies })).toEqual([]);
    });

    test.each([1, 7, 64])('S1 in reads of %d bytes: the same bytes', (size) => {
      const whole = convertStream([bytes], CONVERSION).text;
      expect(convertStream(cut(bytes, size), CONVERSION).text).toBe(whole);
    });

    test('A3 truncated after any event: the output so far is there, and an unfinished one is an error', () => {
      for (const prefix of prefixes(recording)) expect(faults(prefix)).toEqual([]);
    });

    test('A8 the fast path writes what the normal path writes', () => {
      const slow = convertStream([bytes], { ...CONVERSION, fastPath: false }).text;
      expect(jsonOf(convertStream([bytes], CONVERSION).text)).toEqual(jsonOf(slow));
    });

    test('A3 each event as a non-streaming response reads the same', () => {
      for (const event of geminiEvents(recording.text)) {
        const read = readGemini([event]);
        const object = encoder.encode(JSON.stringify(event));
        const { text } = convertObject(object, CONVERSION, true);
        const isImages = JSON.stringify(event).includes('"inlineData"');
        // A non-streaming response needs no finish, and one of images alone is an error (C12).
        if (read.error !== 'ended with an unfinished answer' && !isImages) {
          expect(differences(read, readClient(text))).toEqual([]);
        }
      }
    });
  });
});

function jsonOf(text: string): unknown[] {
  return text.split('\n\n').map((frame) => objectOf(parseJson(frame.slice('data: '.length))));
}
