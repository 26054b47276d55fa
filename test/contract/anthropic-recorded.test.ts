/** Runs every recorded Anthropic stream through the stream core: complete, split, and truncated at each event (A3-A5, A7). */
import { describe, expect, test } from 'vitest';
import { check } from '../../tools/conformance/contract/check.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import { type Conversion, convertStream, cut } from './convert.ts';
import { expectationOf } from './expectation.ts';
import { framed, readRecordings, recordingsNote } from './recordings.ts';
import { readAnthropic, withJoinedDetails } from './reference-anthropic.ts';
import { differences, readClient } from './reference-reader.ts';

const encoder = new TextEncoder();
const CONVERSION: Conversion = { provider: 'anthropic', route: 'chat', model: 'asked-for', usageChunk: true };

const recordings = readRecordings().filter(({ protocol }) => protocol === 'anthropic');
const named = recordings.map((recording) => [recording.name, framed(recording)] as const);

/** The end of each event. */
function eventEnds(text: string): number[] {
  return [...text.matchAll(/(?:\r?\n){2}/g)].map((match) => match.index + match[0].length);
}

function brokenRules(text: string, conversion: Conversion): string[] {
  return check(encoder.encode(text), expectationOf(conversion));
}

function lost(
  upstream: string,
  client: string,
  comparison: Parameters<typeof differences>[2] = {},
): string[] {
  return differences(readAnthropic(upstream), withJoinedDetails(readClient(client)), comparison);
}

describe.skipIf(recordingsNote !== '')(`recorded Anthropic streams${recordingsNote}`, () => {
  test('there are some', () => {
    expect(named.length).toBeGreaterThan(20);
  });

  describe.each(named)('%s', (_, upstream) => {
    const bytes = encoder.encode(upstream);
    const { text, error, accumulator } = convertStream([bytes], CONVERSION);

    test('A3 A4 A7 the contract holds, and the client receives what Anthropic sent, and nothing else', () => {
      expect(error).toBeNull();
      expect(brokenRules(text, CONVERSION)).toEqual([]);
      expect(lost(upstream, text)).toEqual([]);
    });

    test('A4 A5 the record has the upstream’s finish word and the additional billed tokens', () => {
      const read = readAnthropic(upstream);
      expect(accumulator.finishWord).toBe(read.choices.get(0)?.finish);
      const { usage } = accumulator.countBilled();
      expect(usage.prompt_tokens).toBe((read.usage?.prompt ?? 0) + read.besides.prompt);
      expect(usage.completion_tokens).toBe((read.usage?.completion ?? 0) + read.besides.completion);
    });

    test('U2 usage that was not requested: on the chunk of the finish', () => {
      const unasked = { ...CONVERSION, usageChunk: false };
      const client = convertStream([bytes], unasked).text;
      expect(brokenRules(client, unasked)).toEqual([]);
      expect(lost(upstream, client, { usage: 'finish' })).toEqual([]);
    });

    test('C6 A7 reasoning that is stripped: the tokens stay, each with its provider tag', () => {
      const policies = { ...DEFAULT_POLICIES, reasoning: 'strip' } as const;
      const client = convertStream([bytes], { ...CONVERSION, policies }).text;
      expect(brokenRules(client, { ...CONVERSION, policies })).toEqual([]);
      expect(lost(upstream, client, { reasoning: 'strip' })).toEqual([]);
    });

    test.each([1, 7, 64])('S1 cut into reads of %d bytes: the client gets the same bytes', (size) => {
      expect(convertStream(cut(bytes, size), CONVERSION).text).toBe(text);
    });

    test('A3 E2 truncated at any event: an error, and no earlier output is lost', () => {
      for (const end of eventEnds(upstream).slice(0, -1)) {
        const start = upstream.slice(0, end);
        const cutShort = convertStream([encoder.encode(start)], CONVERSION);
        expect(cutShort.error?.code).toBe('upstream_truncated');
        expect(brokenRules(cutShort.text, CONVERSION)).toEqual([]);
        expect(lost(start, cutShort.text)).toEqual([]);
      }
    });
  });
});

test.runIf(recordingsNote !== '')(`recorded Anthropic streams are left out${recordingsNote}`, () => {
  expect(recordings).toEqual([]);
});
