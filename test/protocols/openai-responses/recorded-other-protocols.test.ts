/** Runs recordings of providers with other protocols through the Responses writer: its output equals that of a chat client. */
import { describe, expect, test } from 'vitest';
import { openaiResponses } from '../../../src/protocols/openai-responses/upstream-reader.ts';
import { PROVIDERS } from '../../../src/providers/index.ts';
import { checkResponses, eventsIn, valuesIn } from '../../../tools/conformance/contract/check-responses.ts';
import type { ChoiceContent } from '../../../tools/conformance/contract/content.ts';
import { type Conversion, convertStream, cut } from '../../contract/convert.ts';
import { framed, readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { readClient } from '../../contract/reference-reader.ts';
import { readResponses } from './reading.ts';
import { runJson, runStream } from './run.ts';

const encoder = new TextEncoder();

/** Only of providers that Weir has. */
const recordings = readRecordings().flatMap((recording): [name: string, text: string, Conversion][] => {
  const { name, protocol } = recording;
  const text = framed(recording);
  const conversion = { route: 'chat', model: 'm', usageChunk: true } as const;
  if (protocol === 'responses') {
    const responses = { ...conversion, provider: 'openai', protocol: openaiResponses };
    return [[name, text, responses]];
  }
  const isKnown = PROVIDERS.some(({ id }) => id === protocol && protocol !== 'openai');
  return isKnown ? [[name, text, { ...conversion, provider: protocol }]] : [];
});

/** The common part of both outputs: a summary has the texts of the details, and a call without arguments has `{}`. */
function comparable({ toolCalls, details, ...choice }: ChoiceContent) {
  return {
    ...choice,
    calls: toolCalls.map(({ name, arguments: args }) => [name, args || '{}']),
    states: details.flatMap(({ signature, data }) => signature ?? data ?? []),
  };
}

describe.skipIf(recordingsNote !== '')(
  `recorded streams of other protocols to a Responses client${recordingsNote}`,
  () => {
    test('I4 I7 each stream is valid and has the texts, calls and reasoning states of a chat stream, however it is split', () => {
      for (const [name, text, conversion] of recordings) {
        const bytes = encoder.encode(text);
        const run = runStream([bytes], conversion);
        expect(checkResponses(run.text), name).toEqual([]);
        const chat = readClient(convertStream([bytes], conversion).text).choices.get(0);
        const client = readResponses(run.text).choices.get(0);
        if (run.error === null) expect(client && comparable(client), name).toEqual(chat && comparable(chat));
        if (run.error === null) {
          const json = JSON.parse(runJson(bytes, conversion));
          expect(json, name).toEqual(eventsIn(run.text).at(-1)?.response);
        }
        expect(valuesIn(runStream(cut(bytes, 7), conversion).text), name).toEqual(valuesIn(run.text));
      }
    });
  },
);
