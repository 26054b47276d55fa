/** Properties of the stream core over any cut of the bytes, any line ends, and any damage. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { check } from '../../tools/conformance/contract/check.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import { type Conversion, convertStream } from './convert.ts';
import { conversionOf, expectationOf } from './expectation.ts';
import { fixtures } from './fixtures.ts';
import { anyEvents, cutInto, edits, mutate, readSizes, textStreams } from './mutations.ts';

const streams = fixtures.filter((fixture) => fixture.upstreamIsStream && fixture.stream);
const named = streams.map((fixture) => [fixture.name, fixture] as const);
const encoder = new TextEncoder();

/** A fixed seed makes runs reproducible. Change it to search further. */
fc.configureGlobal({ seed: 20261121 });

/** Faults of the upstream's content that Weir cannot repair: missing or invalid values. */
const CONTENT: readonly RegExp[] = [
  /^C2: created is \d+, no plausible second/,
  /^C7: name is ""/,
  /^C9: (logprob is not a number|bytes is neither null nor bytes)/,
];

/** What an upstream sends after its last finish. The usage on that finish was already sent, because nothing waits (F4). */
const AFTER_THE_LAST_FINISH: readonly RegExp[] = [
  /^U2: usage on a stream that failed/,
  /^U2: usage before the last finish/,
];

/** The rules of the contract that these bytes break, except those that only their content decides. */
function brokenRules(text: string, conversion: Conversion): string[] {
  const expectation = expectationOf(conversion);
  const allowed = expectation.usage === 'finish' ? [...CONTENT, ...AFTER_THE_LAST_FINISH] : CONTENT;
  const broken = check(encoder.encode(text), expectation);
  return broken.filter((fault) => !allowed.some((pattern) => pattern.test(fault)));
}

/** `convertStream` itself throws unless the stream ends exactly once. */
function holds(bytes: Uint8Array, sizes: readonly number[], conversion: Conversion): void {
  const { text, error } = convertStream(cutInto(bytes, sizes), conversion);
  expect(brokenRules(text, conversion)).toEqual([]);
  const frames = text.split('\n\n').slice(0, -1);
  expect(frames.filter((frame) => frame === 'data: [DONE]')).toHaveLength(1);
  expect(/^(event: error\n)?data: \{"error":/.test(frames.at(-2) ?? '')).toBe(error !== null);
  expect(valuesOf(text)).toEqual(valuesOf(convertStream([bytes], { ...conversion, fastPath: false }).text));
}

/** The frames with their JSON as values: the fast path may keep the upstream's own escapes (F1). */
function valuesOf(text: string): unknown[] {
  return text.split('\n\n').map((frame) => {
    const at = frame.indexOf('data: ') + 'data: '.length;
    const json = frame.slice(at);
    return frame === '' || json === '[DONE]' ? frame : [frame.slice(0, at), JSON.parse(json)];
  });
}

describe.each(named)('%s', (_, fixture) => {
  const conversion = conversionOf(fixture);

  test('S1 any split of the bytes: the client gets the expected bytes', () => {
    fc.assert(
      fc.property(readSizes, (sizes) => {
        expect(convertStream(cutInto(fixture.upstream, sizes), conversion).text).toBe(fixture.expected);
      }),
      { numRuns: 12 },
    );
  });

  test('F2 any damage to the bytes: no throw, one end, and the contract holds', () => {
    fc.assert(
      fc.property(edits, readSizes, (damage, sizes) => {
        holds(mutate(fixture.upstream, damage), sizes, conversion);
      }),
      { numRuns: 15 },
    );
  });

  test('F2 the bytes end anywhere: no throw, one end, and the contract holds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: fixture.upstream.length - 1 }), (end) => {
        holds(fixture.upstream.subarray(0, end), [end + 1], conversion);
      }),
      { numRuns: 10 },
    );
  });
});

const PLAIN_ENDS = named.filter(([, { upstream }]) => !upstream.includes(13));

test.each(PLAIN_ENDS)('S1 %s: CR or CRLF instead of LF changes nothing, at any split', (_, fixture) => {
  const conversion = conversionOf(fixture);
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fixture.upstream);
  fc.assert(
    fc.property(fc.constantFrom('\r', '\r\n'), readSizes, (end, sizes) => {
      const bytes = encoder.encode(text.replaceAll('\n', end));
      expect(convertStream(cutInto(bytes, sizes), conversion).text).toBe(fixture.expected);
    }),
    { numRuns: 6 },
  );
});

/** Vendor events pass and reasoning is stripped: the output then differs most from the input. */
const STRIPPING: Conversion = {
  provider: 'compatible',
  route: 'chat',
  model: 'm',
  usageChunk: true,
  policies: { ...DEFAULT_POLICIES, vendorEvents: ['*'], reasoning: 'strip' },
};

describe('bytes of no provider', () => {
  const conversions: readonly (readonly [string, Conversion])[] = [
    ['chat', { provider: 'openai', route: 'chat', model: 'm', usageChunk: true }],
    ['completions', { provider: 'openai', route: 'completions', model: 'm', usageChunk: true }],
    ['fim', { provider: 'deepseek', route: 'fim', model: 'm', usageChunk: false }],
    ['chat that passes and strips', { ...STRIPPING, usageChunk: false, choices: 2 }],
  ];

  test.each(conversions)(
    'F2 %s, any bytes at all: no throw, one end, and the contract holds',
    (_, conversion) => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 300 }), readSizes, (bytes, sizes) => {
          holds(bytes, sizes, conversion);
        }),
        { numRuns: 250 },
      );
    },
  );

  test.each(conversions)(
    'F2 %s, fields that hold anything: no throw, one end, and the contract holds',
    (_, conversion) => {
      fc.assert(
        fc.property(anyEvents, readSizes, (bytes, sizes) => {
          holds(bytes, sizes, conversion);
        }),
        { numRuns: 250 },
      );
    },
  );

  test.each(conversions)(
    'F2 %s, texts in frames that are mostly alike: the contract holds, and the fast path gives the same output',
    (_, conversion) => {
      fc.assert(
        fc.property(textStreams, readSizes, (bytes, sizes) => {
          holds(bytes, sizes, conversion);
        }),
        { numRuns: 250 },
      );
    },
  );
});
