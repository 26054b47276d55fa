/**
 * Every recorded stream of Bedrock's Converse, to each client: whole, in reads of one byte, cut at every byte, and with one bit flipped at
 * every position, compared with what AWS's own codec reads. Both suites run a sample of the cuts and flips; STEP=1 runs all.
 */
import { describe, expect, test } from 'vitest';
import { messages } from '../../src/protocols/anthropic-messages/client.ts';
import { bedrockConverse } from '../../src/protocols/bedrock-converse/upstream-reader.ts';
import { geminiClient } from '../../src/protocols/gemini/client.ts';
import { ResponsesWriter } from '../../src/protocols/openai-responses/client-writer.ts';
import type { StreamWriter } from '../../src/stream/types.ts';
import { check } from '../../tools/conformance/contract/check.ts';
import { textOf } from '../../tools/conformance/contract/json.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import { readResponses } from '../protocols/openai-responses/reading.ts';
import { sessionOf } from '../protocols/openai-responses/run.ts';
import { stepOf } from '../random-run.ts';
import { type Conversion, convertStream, cut } from './convert.ts';
import { expectationOf } from './expectation.ts';
import { withJoinedDetails } from './reference-anthropic.ts';
import {
  citedIn,
  converseMessages,
  converseNote,
  converseRecordings,
  readConverse,
} from './reference-converse.ts';
import { geminiEvents, readGemini } from './reference-gemini.ts';
import { readMessage } from './reference-message.ts';
import { differences, readClient } from './reference-reader.ts';

const recordings = converseRecordings();
const PROVIDER = 'bedrock';
const CONVERSION: Conversion = {
  ...{ provider: PROVIDER, route: 'chat', model: 'asked-for', usageChunk: true },
  protocol: bedrockConverse,
};
/** `npm test` tries one of so many positions. */
const SAMPLED = stepOf(97, 47);

/** What a client has of an output. */
interface Seen {
  readonly text: string;
  readonly calls: readonly string[];
  readonly isComplete: boolean;
}

const CLIENTS: Readonly<
  Record<string, { openWriter?: Conversion['openWriter']; read: (text: string) => Seen }>
> = {
  chat: {
    read: (stream) => {
      const { choices, error } = readClient(stream);
      const { text = '', reasoning = '', toolCalls = [], finish = null } = choices.get(0) ?? {};
      const calls = toolCalls.map((call) => `${call.name} ${call.arguments}`);
      return { text: reasoning + text, calls, isComplete: error === null && finish !== null };
    },
  },
  Messages: {
    openWriter: (options): StreamWriter => messages.streamWriter(null, options),
    read: (stream) => {
      const { text, reasoning, calls, stop, error } = readMessage(stream);
      return {
        text: reasoning + text,
        calls: calls.map((call) => `${call.name} ${call.arguments}`),
        isComplete: error === null && stop !== null,
      };
    },
  },
  Responses: {
    openWriter: (options): StreamWriter => new ResponsesWriter(sessionOf(), options),
    read: (stream) => {
      const { choices } = readResponses(stream);
      const { text = '', reasoning = '', toolCalls = [] } = choices.get(0) ?? {};
      const calls = toolCalls.map((call) => `${call.name} ${call.arguments}`);
      const isComplete = /"type":"response\.(?:completed|incomplete)"/.test(stream);
      return { text: reasoning + text, calls, isComplete };
    },
  },
  Gemini: {
    openWriter: (options): StreamWriter =>
      geminiClient({ kind: 'events', hasEnumNumbers: false }).streamWriter(
        { showsThoughts: true, hasTools: false },
        options,
      ),
    read: (stream) => {
      const { choices, error } = readGemini(geminiEvents(stream));
      const { text = '', reasoning = '', toolCalls = [], finish = null } = choices.get(0) ?? {};
      const calls = toolCalls.map((call) => `${call.name} ${call.arguments}`);
      return { text: reasoning + text, calls, isComplete: error === null && finish !== null };
    },
  },
};

function faults(bytes: Uint8Array, conversion: Conversion = CONVERSION): string[] {
  const { text } = convertStream([bytes], conversion);
  const read = readConverse(converseMessages(bytes), PROVIDER);
  const { reasoning } = conversion.policies ?? DEFAULT_POLICIES;
  const expected = expectationOf(conversion);
  return [
    ...check(new TextEncoder().encode(text), expected),
    ...differences(read, withJoinedDetails(readClient(text)), {
      reasoning,
      usage: conversion.usageChunk ? 'end' : 'finish',
    }),
  ];
}

describe.skipIf(converseNote !== '')(`recorded streams of Converse${converseNote}`, () => {
  test('there are some', () => expect(recordings.length).toBeGreaterThan(20));

  describe.each(recordings.map((one) => [one.name, one.bytes] as const))('%s', (_, bytes) => {
    const whole = convertStream([bytes], CONVERSION).text;

    test('A10 a chat client gets everything that Bedrock sent, in the contract’s form', () => {
      expect(faults(bytes)).toEqual([]);
    });

    test('A10 pages that it cites are on the finish, once each', () => {
      const urls = [...whole.matchAll(/"url_citation":\{[^{}]*"url":"([^"]+)"/g)].map(([, url]) => url);
      expect([...new Set(urls)]).toEqual(citedIn(converseMessages(bytes)));
    });

    test('A10 nothing of padding, metrics and traces reaches a client', () => {
      const paddings = converseMessages(bytes).map(({ payload }) => textOf(payload.p));
      for (const padding of paddings.filter(({ length }) => length > 8)) expect(whole).not.toContain(padding);
      expect(whole).not.toMatch(/latencyMs|trace|contentBlock/);
    });

    test('C6 A7 reasoning that is stripped: signatures stay', () => {
      const policies = { ...DEFAULT_POLICIES, reasoning: 'strip' } as const;
      const { text } = convertStream([bytes], { ...CONVERSION, policies });
      expect(readClient(text).choices.get(0)?.reasoning).toBe('');
    });

    test('A8 the fast path writes what the normal path writes', () => {
      for (const { openWriter } of Object.values(CLIENTS)) {
        const conversion = { ...CONVERSION, openWriter };
        const slow = convertStream([bytes], { ...conversion, fastPath: false });
        const fast = convertStream([bytes], conversion);
        expect(fast.text).toBe(slow.text);
        expect(fast.accumulator.countBilled()).toEqual(slow.accumulator.countBilled());
      }
    });

    test('A10 cut behind each message: the output so far, and an error until its messageStop came', () => {
      let at = 0;
      for (const message of converseMessages(bytes)) {
        at += message.bytes.length;
        expect(faults(bytes.subarray(0, at))).toEqual([]);
      }
    });

    describe.each(Object.entries(CLIENTS))('%s', (__, { openWriter, read }) => {
      const conversion = { ...CONVERSION, openWriter };
      const { text: right } = convertStream([bytes], conversion);
      const expected = read(right);
      const stop = converseMessages(bytes).reduce(
        (sum, { type, bytes: own }, i, all) =>
          all.slice(i).some((later) => later.type === 'messageStop') || type === 'messageStop'
            ? sum + own.length
            : sum,
        0,
      );

      test('S4 in reads of one byte: the same bytes', () => {
        expect(expected.isComplete).toBe(true);
        expect(convertStream(cut(bytes, 1), conversion).text).toBe(right);
      });

      test('S4 cut in two at every byte: the same bytes', () => {
        for (let at = 1 + (bytes.length % SAMPLED); at < bytes.length; at += SAMPLED) {
          const reads = [bytes.subarray(0, at), bytes.subarray(at)];
          if (convertStream(reads, conversion).text !== right) expect(at).toBe('nowhere');
        }
      });

      test('S4 ended at every byte: an error, unless messageStop came', () => {
        for (let at = bytes.length % SAMPLED; at < bytes.length; at += SAMPLED) {
          const { text } = convertStream([bytes.subarray(0, at)], conversion);
          const seen = read(text);
          const isRight = seen.isComplete === at >= stop && expected.text.startsWith(seen.text);
          if (!isRight) expect(seen, `at ${at} of ${stop}`).toEqual('an error');
        }
      });

      test('S4 one bit flipped at every position: an error, and no other text', () => {
        for (let at = bytes.length % SAMPLED; at < bytes.length; at += SAMPLED) {
          const damaged = bytes.slice();
          damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8));
          const { text, error } = convertStream([damaged], conversion);
          const seen = read(text);
          const isRight =
            error?.code === 'upstream_invalid' && !seen.isComplete && expected.text.startsWith(seen.text);
          if (!isRight) expect({ error, ...seen }, `byte ${at}`).toEqual('an error');
        }
      });
    });
  });
});
