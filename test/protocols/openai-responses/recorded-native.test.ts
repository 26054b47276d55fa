/** Runs recordings of providers with a protocol of their own through the Responses writer: what a chat client gets of them, a Responses client does (I4, I7). */
import { describe, expect, test } from 'vitest';
import { openaiResponses } from '../../../src/protocols/openai-responses/upstream-reader.ts';
import { PROVIDERS } from '../../../src/providers/index.ts';
import { type Conversion, convertStream, cut } from '../../contract/convert.ts';
import { readClient } from '../../contract/plain-reading.ts';
import type { ChoiceReading } from '../../contract/reading.ts';
import { framed, readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { checkResponses, eventsIn, valuesIn } from './check.ts';
import { readResponses } from './reading.ts';
import { runStream, runWhole } from './run.ts';

const encoder = new TextEncoder();

/** As far as Weir has the provider. */
const recordings = readRecordings().flatMap((recording): [name: string, text: string, Conversion][] => {
  const { name, protocol } = recording;
  const text = framed(recording);
  const conversion = { route: 'chat', model: 'm', usageChunk: true } as const;
  if (protocol === 'responses') {
    const spoken = { ...conversion, provider: 'openai', protocol: openaiResponses };
    return [[name, text, spoken]];
  }
  const isNative = PROVIDERS.some(({ id }) => id === protocol && protocol !== 'openai');
  return isNative ? [[name, text, { ...conversion, provider: protocol }]] : [];
});

/** What both clients get of a choice: a summary has the details' texts, and a call without arguments `{}`. */
function comparable({ toolCalls, details, ...choice }: ChoiceReading) {
  return {
    ...choice,
    calls: toolCalls.map(({ name, arguments: args }) => [name, args || '{}']),
    tokens: details.flatMap(({ signature, data }) => signature ?? data ?? []),
  };
}

describe.skipIf(recordingsNote !== '')(
  `recorded streams of other protocols to a Responses client${recordingsNote}`,
  () => {
    test('I4 I7 each: its grammar holds, its texts, calls and tokens are a chat client’s, every cut alike', () => {
      for (const [name, text, conversion] of recordings) {
        const bytes = encoder.encode(text);
        const run = runStream([bytes], conversion);
        expect(checkResponses(run.text), name).toEqual([]);
        const chat = readClient(convertStream([bytes], conversion).text).choices.get(0);
        const client = readResponses(run.text).choices.get(0);
        if (run.error === null) expect(client && comparable(client), name).toEqual(chat && comparable(chat));
        if (run.error === null) {
          const whole = JSON.parse(runWhole(bytes, conversion));
          expect(whole, name).toEqual(eventsIn(run.text).at(-1)?.response);
        }
        expect(valuesIn(runStream(cut(bytes, 7), conversion).text), name).toEqual(valuesIn(run.text));
      }
    });
  },
);
