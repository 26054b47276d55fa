/** Output reaches the client, whichever member a server adds to its answer (C4). */
import { describe, expect, test } from 'vitest';
import { anthropicMessages } from '../../src/protocols/anthropic-messages/upstream-reader.ts';
import { gemini } from '../../src/protocols/gemini/upstream-reader.ts';
import { openaiResponses } from '../../src/protocols/openai-responses/upstream-reader.ts';
import type { UpstreamProtocol } from '../../src/stream/types.ts';
import { isObject, type Json, type JsonObject } from '../../tools/conformance/contract/json.ts';
import { COMPATIBLE, type Conversion, convertObject, convertStream } from './convert.ts';
import { conversionOf } from './expectation.ts';
import { fixtures } from './fixtures.ts';
import { hasOutput, lostOutput, objectsIn } from './lost-output.ts';
import { framed, readRecordings, recordingsNote } from './recordings.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const PROTOCOLS: Readonly<Record<string, UpstreamProtocol | undefined>> = {
  anthropic: anthropicMessages,
  gemini,
  responses: openaiResponses,
};

function chatOf(protocol: UpstreamProtocol | undefined): Conversion {
  const own = protocol === undefined ? {} : { protocol };
  return { provider: COMPATIBLE, route: 'chat', model: 'm', usageChunk: false, ...own };
}

describe('C4 fixtures', () => {
  test.each(fixtures.map((fixture) => [fixture.name, fixture] as const))(
    '%s loses no output',
    (_, fixture) => {
      const conversion = conversionOf(fixture);
      const { upstream, upstreamIsStream, stream } = fixture;
      const { text } = upstreamIsStream
        ? convertStream([upstream], conversion)
        : convertObject(upstream, conversion, stream);
      expect(lostOutput(objectsIn(decoder.decode(upstream)), objectsIn(text))).toEqual([]);
    },
  );
});

const recordings = readRecordings().filter(
  ({ protocol, text }) => protocol in PROTOCOLS || (protocol === 'openai' && text.includes('"delta"')),
);

describe.skipIf(recordingsNote !== '')(`C4 recordings${recordingsNote}`, () => {
  test.each(recordings.map((recording) => [recording.name, recording] as const))(
    '%s loses no output',
    (_, recording) => {
      const upstream = framed(recording);
      const { text } = convertStream([encoder.encode(upstream)], chatOf(PROTOCOLS[recording.protocol]));
      expect(lostOutput(objectsIn(upstream), objectsIn(text))).toEqual([]);
    },
  );
});

const CALL = { id: 'call_1', type: 'function', function: { name: 'gauge', arguments: '{"at":"pier"}' } };

/** Whole answers with a text, and with a call. */
const ANSWERS: readonly (readonly [name: string, answer: JsonObject, protocol?: UpstreamProtocol])[] = [
  [
    'chat',
    {
      id: 'a',
      choices: [{ index: 0, message: { role: 'assistant', content: 'pong' }, finish_reason: 'stop' }],
    },
  ],
  [
    'chat with a call',
    {
      id: 'a',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: null, tool_calls: [CALL] },
          finish_reason: 'tool_calls',
        },
      ],
    },
  ],
  [
    'Messages',
    {
      id: 'a',
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'pong' }],
      stop_reason: 'end_turn',
    },
    anthropicMessages,
  ],
  [
    'Gemini',
    { candidates: [{ index: 0, content: { parts: [{ text: 'pong' }] }, finishReason: 'STOP' }] },
    gemini,
  ],
  [
    'Responses',
    {
      id: 'a',
      object: 'response',
      status: 'completed',
      output: [
        { id: 'b', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'pong' }] },
      ],
    },
    openaiResponses,
  ],
];

/** Names that servers use, and some that they may. */
const NAMES = [
  ...[
    'delta',
    'message',
    'text',
    'content',
    'output',
    'output_text',
    'reasoning',
    'reasoning_content',
    'thinking',
  ],
  ...[
    'refusal',
    'tool_calls',
    'function_call',
    'audio',
    'annotations',
    'citations',
    'logprobs',
    'usage',
    'name',
  ],
  ...[
    'signature',
    'summary',
    'parts',
    'thought',
    'extra_content',
    'provider',
    'native_finish_reason',
    'x_any',
  ],
];
const EMPTY_VALUES: readonly Json[] = [
  null,
  '',
  [],
  {},
  { role: 'assistant', content: '' },
  { content: null, tool_calls: [] },
];

/** The answer with one member more in each of its objects in turn. What it has is not replaced. */
function* withMember(value: Json, name: string, added: Json): Generator<Json> {
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) {
      for (const changed of withMember(item, name, added)) yield value.with(at, changed);
    }
  } else if (isObject(value)) {
    if (!(name in value)) {
      yield { ...value, [name]: added };
      yield { [name]: added, ...value };
    }
    for (const [key, member] of Object.entries(value)) {
      for (const changed of withMember(member ?? null, name, added)) yield { ...value, [key]: changed };
    }
  }
}

describe.each(ANSWERS.map((row) => [row[0], row] as const))(
  'C4 a whole answer of %s',
  (_, [, answer, protocol]) => {
    const conversion = chatOf(protocol);
    const seen = (value: Json, isStreamed: boolean) =>
      convertObject(encoder.encode(JSON.stringify(value)), conversion, isStreamed).text;

    test.each(NAMES)('%s beside its members: no output is lost, streamed and not', (name) => {
      const lost: string[] = [];
      for (const added of EMPTY_VALUES) {
        for (const changed of withMember(answer, name, added)) {
          for (const isStreamed of [true, false]) {
            const client = objectsIn(seen(changed, isStreamed));
            if (!client.some(hasOutput)) lost.push(JSON.stringify(changed));
          }
        }
      }
      expect(lost).toEqual([]);
    });
  },
);

test('lostOutput sees an answer whose output the client does not get', () => {
  const upstream = [{ choices: [{ message: { content: 'pong' }, delta: { content: '' } }] }];
  const empty = [{ choices: [{ message: { content: '' }, finish_reason: 'stop' }] }];
  expect(lostOutput(upstream, empty)).toHaveLength(1);
  expect(lostOutput(upstream, [...empty, { error: { message: 'm' } }])).toEqual([]);
  expect(lostOutput(upstream, upstream)).toEqual([]);
  expect(lostOutput(empty, empty)).toEqual([]);
});
