/** Tests the checker: valid streams pass, and each invalid one is reported with its rule. */
import { describe, expect, test } from 'vitest';
import { check, type Expectation } from '../../tools/conformance/contract/check.ts';
import { type Json, parseJson } from '../../tools/conformance/contract/json.ts';
import { choiceBreaks } from './check-breaks-choice.ts';
import { chunkBreaks } from './check-breaks-chunk.ts';
import { streamBreaks } from './check-breaks-stream.ts';
import * as sample from './check-samples.ts';
import { readRecordings, recordingsNote } from './recordings.ts';

const { CALLS, DONE, ERROR, HEARTBEAT, HELLO, OPEN, STOP, STOP_WITH_USAGE, USAGE_CHUNK, VENDOR } = sample;
const { around, choice, chunk, errorFrame, deltaChunk, textChunk } = sample;

/** Every rule that can be checked on the bytes alone. The others need a clock, a counter or the upstream's bytes. */
const CHECKED_RULES = 'A7 C1 C10 C11 C2 C3 C4 C5 C6 C7 C8 C9 E2 E3 E4 F1 F2 F3 U1 U2 U3 V2';

const text = { shape: 'text' } as const;

/** A stream's first chunks, before the upstream sent its labels. */
const OPEN_WITHOUT_LABELS = [
  OPEN.replace('"service_tier":"default","system_fingerprint":"fp_1",', ''),
  OPEN.replace('"role":"assistant",', '')
    .replace('"content":""', '"content":"a"')
    .replace('"service_tier":"default","system_fingerprint":"fp_1",', ''),
];
const TEXT_STOP_WITH_USAGE = textChunk('', { finish_reason: 'stop' }).replace(
  '}\n\n',
  `,"usage":${JSON.stringify(sample.USAGE)}}\n\n`,
);
const EXTRA = { extra_content: { google: { thought_signature: 'EsQBCk' } } };

const good: sample.Case[] = [
  ['a chat stream', [OPEN, HELLO, STOP, DONE]],
  [
    'content beside role and finish in one chunk',
    [deltaChunk({ role: 'assistant', content: 'Hi' }, { finish_reason: 'length' }), DONE],
  ],
  ['heartbeats between frames', [HEARTBEAT, OPEN, HEARTBEAT, STOP, HEARTBEAT, DONE]],
  [
    'reasoning, refusal and logprobs',
    [
      OPEN,
      deltaChunk({ reasoning_content: 'Hm' }),
      deltaChunk({ refusal: 'No' }, { logprobs: sample.LOGPROBS }),
      STOP,
      DONE,
    ],
  ],
  ['logprobs alone', [OPEN, deltaChunk({}, { logprobs: sample.LOGPROBS }), STOP, DONE]],
  ['tool calls', CALLS],
  [
    "a custom tool's call, beside a function's",
    [
      OPEN,
      deltaChunk({
        tool_calls: [{ index: 0, id: 'call_1', type: 'custom', custom: { name: 'patch', input: '' } }],
      }),
      deltaChunk({ tool_calls: [{ index: 0, custom: { input: 'x' } }] }),
      deltaChunk({ tool_calls: [sample.callFragment(1, 'call_2', '{}')] }),
      deltaChunk({}, { finish_reason: 'tool_calls' }),
      DONE,
    ],
  ],
  [
    "a call's extra content with an integer beyond 2^53, as its upstream wrote it",
    CALLS.map((frame, at) =>
      at === 1
        ? frame.replace(/("function":\{[^}]*\})\}/, '$1,"extra_content":{"x":9007199254740993}}')
        : frame,
    ),
  ],
  [
    'tool calls from Mistral',
    CALLS.map((frame) => frame.replace('deepseek/', 'mistral/')),
    { provider: 'mistral' },
  ],
  ['tool calls cut by length', [...CALLS.slice(0, -2), deltaChunk({}, { finish_reason: 'length' }), DONE]],
  [
    'two choices, the second finished first',
    [
      chunk([
        choice({ role: 'assistant', content: 'a' }),
        choice({ role: 'assistant', content: 'b' }, { index: 1, finish_reason: 'stop' }),
      ]),
      STOP,
      DONE,
    ],
    { requestedChoices: 2 },
  ],
  ['a usage chunk', [OPEN, STOP, USAGE_CHUNK, DONE], { usage: 'end' }],
  ['other escapes in strings', [OPEN.replace('fp_1', 'fp\\u005f1\\/'), STOP.replace('fp_1', 'fp_1/'), DONE]],
  ['a vendor event passed', [VENDOR, OPEN, VENDOR, STOP, DONE], { vendorEvents: 'pass' }],
  [
    'a passed event that is named by its SSE field',
    around(`event: x_a.b\n${sample.dataFrame({ name: 'a' })}`),
    { vendorEvents: 'pass' },
  ],
  [
    'a passed event with a type, and a name of its own',
    around(`event: x_a.b\n${VENDOR}`),
    { vendorEvents: 'pass' },
  ],
  [
    'labels that come late, and then change',
    [
      ...OPEN_WITHOUT_LABELS,
      HELLO.replace('"system_fingerprint":"fp_1",', ''),
      STOP.replace('"default"', '"flex"'),
      DONE,
    ],
  ],
  ['usage on the finish', [OPEN, HELLO, STOP_WITH_USAGE, DONE]],
  ['usage on the finish of a text stream', [textChunk('a'), TEXT_STOP_WITH_USAGE, DONE], text],
  [
    'usage on the last of two finishes',
    [OPEN, deltaChunk({ role: 'assistant' }, { index: 1, finish_reason: 'stop' }), STOP_WITH_USAGE, DONE],
  ],
  [
    'usage without details',
    [OPEN, STOP, chunk([], { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }), DONE],
    { usage: 'end' },
  ],
  ['no usage, where none is to be', [OPEN, STOP, DONE], { usage: 'nowhere' }],
  [
    'reasoning details beside reasoning, and a signature alone',
    around(
      deltaChunk({ reasoning_content: 'Hm', reasoning_details: [sample.DETAIL] }),
      deltaChunk({ reasoning_details: [sample.SIGNATURE] }),
    ),
  ],
  [
    'stripped reasoning: a signature and encrypted data',
    around(deltaChunk({ reasoning_details: [sample.SIGNATURE, { type: 'reasoning.encrypted', data: 'a' }] })),
    { reasoning: 'strip' },
  ],
  [
    'extra_content on a first fragment, on a later one and alone',
    [
      OPEN,
      deltaChunk({ tool_calls: [{ ...sample.callFragment(0, 'call_1', ''), ...EXTRA }] }),
      deltaChunk({ tool_calls: [{ ...sample.laterFragment(0, '{}'), ...EXTRA }] }),
      deltaChunk({ tool_calls: [{ ...sample.laterFragment(0, ''), ...EXTRA }] }),
      deltaChunk({}, { finish_reason: 'tool_calls' }),
      DONE,
    ],
  ],
  [
    "a made id, beside the upstream's",
    CALLS.map((frame) => frame.replace('"call_2"', '"aB3dE5gH7"')),
    { upstreamIds: ['call_1'] },
  ],
  ['a failed stream', [OPEN, HELLO, ERROR, DONE], { usage: 'end' }],
  ['a stream that failed at once', [ERROR, DONE]],
  ['an error event', [OPEN, `event: error\n${ERROR}`, DONE], { errorFrames: 'event' }],
  [
    'an error that points to public documents',
    [
      errorFrame(
        'DeepSeek: see https://api-docs.deepseek.com/keys (request 9f9d90210f194076abeee223863eaaf0)',
      ),
      DONE,
    ],
  ],
  [
    'a client that disconnected within a frame',
    [OPEN, HELLO.slice(0, 50)],
    { clientLeft: true, usage: 'end' },
  ],
  ['a client that disconnected before the head', [], { clientLeft: true }],
  [
    'a text stream',
    [textChunk('a'), textChunk('', { finish_reason: 'stop' }), sample.TEXT_USAGE_CHUNK, DONE],
    { ...text, usage: 'end' },
  ],
  [
    'text logprobs',
    [textChunk('a', { logprobs: sample.TEXT_LOGPROBS, finish_reason: 'length' }), DONE],
    text,
  ],
  [
    'text logprobs with nulls',
    [
      textChunk('a', {
        logprobs: { ...sample.TEXT_LOGPROBS, token_logprobs: [null], top_logprobs: [null] },
        finish_reason: 'stop',
      }),
      DONE,
    ],
    text,
  ],
  ['an answer without a choice', [DONE]],
];

function faults(frames: string[], more: Partial<Expectation> = {}): string[] {
  return check(new TextEncoder().encode(frames.join('')), { ...sample.expected, ...more });
}

function rulesOf(found: string[]): string[] {
  return [...new Set(found.map((fault) => fault.slice(0, fault.indexOf(':'))))];
}

describe('check, valid streams', () => {
  test.each(good)('%s: nothing is reported', (_name, frames, more) => {
    expect(faults(frames, more)).toEqual([]);
  });

  test('a valid stream truncated at any byte: accepted only for a client that disconnected', () => {
    const bytes = new TextEncoder().encode(CALLS.join(''));
    for (let length = 0; length < bytes.length; length += 1) {
      const cut = bytes.subarray(0, length);
      expect(check(cut, { ...sample.expected, clientLeft: true })).toEqual([]);
      expect(check(cut, sample.expected)).not.toEqual([]);
    }
  });
});

const breaks = { ...streamBreaks, ...chunkBreaks, ...choiceBreaks };

for (const [rule, cases] of Object.entries(breaks)) {
  describe(`check, streams that break ${rule}`, () => {
    test.each(cases)(`%s: ${rule} is reported and no other rule`, (_name, frames, more) => {
      expect(rulesOf(faults(frames, more))).toEqual([rule]);
    });
  });
}

test.each<[name: string, frames: string[], broken: string[]]>([
  ['usage before an error', [OPEN, USAGE_CHUNK, ERROR, DONE], ['U1', 'U2']],
  ['an error with an empty message', [errorFrame(''), DONE], ['E2', 'E4']],
  ['choices that are not an array', around(OPEN.replace(/"choices":.*/, '"choices":null}')), ['C1', 'C5']],
])('check, %s: each of the broken rules is reported', (_name, frames, broken) => {
  expect(rulesOf(faults(frames, { usage: frames.includes(USAGE_CHUNK) ? 'end' : 'finish' })).sort()).toEqual(
    broken,
  );
});

test('check, bytes that are not UTF-8: F1 is reported', () => {
  const bytes = new TextEncoder().encode(around(HELLO).join('')).map((byte) => (byte === 72 ? 0xff : byte));
  expect(rulesOf(check(bytes, sample.expected))).toEqual(['F1']);
});

test('check: every rule that bytes can break has streams that break it', () => {
  expect(Object.keys(breaks).sort().join(' ')).toBe(CHECKED_RULES);
});

/** Every invalid copy of a value: one key removed, or one value replaced by one that no field may have. */
function* spoiled(value: Json, path = ''): Generator<[path: string, value: Json]> {
  if (typeof value !== 'object' || value === null) return yield [path, true];
  for (const [key, part] of Object.entries(value)) {
    for (const [where, other] of spoiled(part, `${path}.${key}`)) {
      yield [
        where,
        Array.isArray(value) ? value.map((old) => (old === part ? other : old)) : { ...value, [key]: other },
      ];
    }
    if (Array.isArray(value)) continue;
    const { [key]: _left, ...rest } = value;
    yield [`${path}.${key} left out`, rest];
  }
}

/** An opening delta may omit its empty content, logprobs may come alone, and labels and counts may be absent. */
const MAY_BE_LEFT_OUT =
  /^[01]\.choices\.0\.delta\.content left|^0\.(service_tier|system_fingerprint) left|\.usage\.[a-z]+_tokens_details(\.\w+)? left/;

describe('check, a valid stream with one invalid value', () => {
  const chat = [
    ...around(deltaChunk({ content: 'a' }, { logprobs: sample.LOGPROBS })).slice(0, -1),
    USAGE_CHUNK,
    DONE,
  ];
  const written = [textChunk('a'), textChunk('', { finish_reason: 'stop' }), sample.TEXT_USAGE_CHUNK, DONE];
  test.each<sample.Case>([
    ['a chat stream with logprobs and usage', chat, { usage: 'end' }],
    ['a stream with tool calls', CALLS],
    ['a text stream', written, { ...text, usage: 'end' }],
    ['a failed stream', [OPEN, ERROR, DONE]],
  ])('%s: every invalid value is reported', (_name, frames, more) => {
    const missed: string[] = [];
    for (const [position, frame] of frames.entries()) {
      for (const [path, value] of spoiled(parseJson(frame.slice('data: '.length)) ?? null)) {
        const found = faults(frames.with(position, sample.dataFrame(value)), more);
        if (found.length === 0) missed.push(`${position}${path}`);
      }
    }
    expect(missed.filter((path) => !MAY_BE_LEFT_OUT.test(path))).toEqual([]);
  });
});

test.skipIf(recordingsNote !== '')(
  `check, recorded upstreams sent on untouched: each is reported${recordingsNote}`,
  () => {
    const untouched = readRecordings().filter(({ text: body }) => {
      const bytes = new TextEncoder().encode(body);
      return check(bytes, sample.expected).length === 0;
    });
    expect(untouched.map(({ name }) => name)).toEqual([]);
  },
);
