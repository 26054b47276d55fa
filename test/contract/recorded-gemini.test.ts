/** Runs every recorded Gemini stream through the stream core, whole, cut and cut short, against a plain reading of the recording. */
import { describe, expect, test } from 'vitest';
import { DEFAULT_POLICIES } from '../../src/canonical/policies.ts';
import { check } from './check.ts';
import { type Conversion, convertObject, convertStream, cut } from './convert.ts';
import { expectationOf } from './expectation.ts';
import { objectOf, parseJson } from './json.ts';
import { differences, readClient } from './plain-reading.ts';
import { geminiEvents, readGemini } from './reading-gemini.ts';
import { framed, type Recording, readRecordings, recordingsNote } from './recordings.ts';

const encoder = new TextEncoder();
const recordings = readRecordings()
  .filter(({ protocol }) => protocol === 'gemini')
  .map((recording) => ({ ...recording, text: framed(recording) }));
const named = recordings.map((recording) => [recording.name, recording] as const);

const CONVERSION: Conversion = { provider: 'gemini', route: 'chat', model: 'asked-for', usageChunk: true };

/** What a client of these bytes gets that the upstream did not say, or lacks, and the rules that it breaks. */
function faults(upstream: string, conversion: Conversion = CONVERSION): string[] {
  const { text } = convertStream([encoder.encode(upstream)], conversion);
  const read = readGemini(geminiEvents(upstream));
  const { reasoning } = conversion.policies ?? DEFAULT_POLICIES;
  return [
    ...check(encoder.encode(text), expectationOf(conversion)),
    ...differences(read, readClient(text), { reasoning, usage: conversion.usageChunk ? 'end' : 'finish' }),
  ];
}

/** The bytes up to each event's end: the last one is the whole. */
function* prefixes({ text }: Recording): Generator<string> {
  for (const match of text.matchAll(/\r?\n\r?\n/g)) yield text.slice(0, match.index + match[0].length);
}

describe.skipIf(recordingsNote !== '')(`recorded Gemini streams${recordingsNote}`, () => {
  describe.each(named)('%s', (_, recording) => {
    const bytes = encoder.encode(recording.text);

    test('A3 A4 A5 A7 the client gets what Gemini said, all of it, in the contract’s form', () => {
      expect(faults(recording.text)).toEqual([]);
    });

    test('U2 usage that was not asked for rides on the finish', () => {
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

    test('A3 cut short behind any event: what came is there, and an unfinished answer is an error', () => {
      for (const prefix of prefixes(recording)) expect(faults(prefix)).toEqual([]);
    });

    test('A8 the fast path writes what the slow one does', () => {
      const slow = convertStream([bytes], { ...CONVERSION, fastPath: false }).text;
      expect(jsonOf(convertStream([bytes], CONVERSION).text)).toEqual(jsonOf(slow));
    });

    test('A3 whole: each event as an answer of its own says the same', () => {
      for (const event of geminiEvents(recording.text)) {
        const read = readGemini([event]);
        const object = encoder.encode(JSON.stringify(event));
        const { text } = convertObject(object, CONVERSION, true);
        // A whole answer needs no finish.
        if (read.error !== 'ended with an unfinished answer') {
          expect(differences(read, readClient(text))).toEqual([]);
        }
      }
    });
  });
});

function jsonOf(text: string): unknown[] {
  return text.split('\n\n').map((frame) => objectOf(parseJson(frame.slice('data: '.length))));
}
