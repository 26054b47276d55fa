/** Tests the stream with extreme values in every field: each is passed or refused, and none breaks the contract. */
import { afterEach, describe, expect, test } from 'vitest';
import type { Route } from '../../src/providers/provider.ts';
import { check } from '../../tools/conformance/contract/check.ts';
import { type Conversion, convertObject, convertStream } from '../contract/convert.ts';
import { expectationOf } from '../contract/expectation.ts';
import { PLACES, VALUES } from './hostile-values.ts';
import { bodyOf, readAll, run } from './stream-bench.ts';

const encoder = new TextEncoder();
const DEEP = 100_000;
const STOP =
  'data: {"choices":[{"index":0,"delta":{},"text":"","finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

/** The routes whose protocols differ: chat chunks, text completions, and each read in the other's shape. */
const ROUTES: readonly (readonly [provider: string, route: Route])[] = [
  ['openai', 'chat'],
  ['openai', 'completions'],
  ['deepseek', 'fim'],
  ['mistral', 'completions'],
];

const PROTOTYPES = [Object.prototype, Array.prototype, String.prototype, Function.prototype];
const membersBefore = PROTOTYPES.map((prototype) => Reflect.ownKeys(prototype));

afterEach(() => {
  expect(PROTOTYPES.map((prototype) => Reflect.ownKeys(prototype))).toEqual(membersBefore);
  expect({}).not.toHaveProperty('polluted');
});

function conversionOf(provider: string, route: Route): Conversion {
  return { provider, route, model: 'm', usageChunk: true };
}

/**
 * What the checker doubts and the contract does not forbid: an implausible second is still the first that the upstream sent (C2),
 * and a token without a number has none (C9).
 */
const DOUBTED = /no plausible second|logprob is not a number/;

/** The rules that the client's bytes break. */
function breaks(bytes: Uint8Array, conversion: Conversion): string[] {
  return breaksIn(convertStream([bytes], conversion).text, conversion);
}

function breaksIn(text: string, conversion: Conversion): string[] {
  return check(encoder.encode(text), expectationOf(conversion)).filter((fault) => !DOUBTED.test(fault));
}

function framed(event: string): string {
  return `data: ${event}\n\n${STOP}`;
}

describe.each(Object.entries(PLACES))('convertStream, %s', (_, place) => {
  test.each(Object.entries(VALUES))('E2 C1: %s: passed or refused, as the contract requires', (__, value) => {
    const bytes = encoder.encode(framed(place(value)));
    for (const [provider, route] of ROUTES) {
      const conversion = conversionOf(provider, route);
      expect(breaks(bytes, conversion), `${provider} ${route}`).toEqual([]);
      expect(breaks(bytes, { ...conversion, usageChunk: false }), `${provider} ${route} unasked`).toEqual([]);
    }
  });

  test('C1: any of the values in a non-streaming response gives an object or an error, and throws nothing', () => {
    for (const value of Object.values(VALUES)) {
      const bytes = encoder.encode(place(value));
      for (const [provider, route] of ROUTES)
        for (const toStream of [true, false])
          expect(() => convertPlain(bytes, conversionOf(provider, route), toStream), value).not.toThrow();
    }
  });

  test('S1: raw NUL, invalid UTF-8 and raw line ends in it: passed or refused', () => {
    const [before = '', after = ''] = framed(place('"HERE"')).split('HERE');
    for (const raw of [
      [0],
      [0xff],
      [0xc3],
      [0xed, 0xa0, 0x80],
      [0xf0, 0x9f],
      [0xef, 0xbb, 0xbf],
      [10],
      [13],
      [10, 10],
    ]) {
      const bytes = Uint8Array.from([...encoder.encode(before), ...raw, ...encoder.encode(after)]);
      for (const [provider, route] of ROUTES)
        expect(breaks(bytes, conversionOf(provider, route)), `${provider} ${route} ${raw}`).toEqual([]);
    }
  });

  test(`B1: ${DEEP} lists in one another: the stream ends as the contract requires`, async () => {
    for (const value of [
      '['.repeat(DEEP) + ']'.repeat(DEEP),
      '{"a":'.repeat(DEEP) + '1' + '}'.repeat(DEEP),
    ]) {
      const text = await readAll(run(bodyOf(framed(place(value)))).readable);
      // An error before the head is not a stream.
      if (text !== '')
        expect(breaksIn(text, { ...conversionOf('openai', 'chat'), usageChunk: false })).toEqual([]);
    }
  });
});

describe('convertStream, more than an output may have', () => {
  const chat = conversionOf('openai', 'chat');

  function events(count: number, event: (at: number) => string): Uint8Array {
    return encoder.encode(Array.from({ length: count }, (_, at) => `data: ${event(at)}\n\n`).join('') + STOP);
  }

  function list(count: number, item: (at: number) => string): string {
    return Array.from({ length: count }, (_, at) => item(at)).join(',');
  }

  test('C3: 5,000 choices in one chunk, or in a chunk each: passed or refused', () => {
    const choice = (at: number) => `{"index":${at},"delta":{"content":"a"}}`;
    expect(
      breaks(
        events(1, () => `{"choices":[${list(5000, choice)}]}`),
        chat,
      ),
    ).toEqual([]);
    expect(
      breaks(
        events(5000, (at) => `{"choices":[${choice(at)}]}`),
        chat,
      ),
    ).toEqual([]);
  });

  test.each([
    ['each with its index', (at: number) => `{"index":${at},"id":"c${at}","function":{"name":"f"}}`],
    ['all with one index', (at: number) => `{"index":0,"id":"c${at}","function":{"name":"f"}}`],
    ['without an index', (at: number) => `{"id":"c${at}","function":{"name":"f"}}`],
    ['without anything', () => '{"function":{"name":"f"}}'],
  ])('C7 E2: 5,000 tool calls %s: an error frame after the first thousand', (_, call) => {
    for (const bytes of [
      events(1, () => `{"choices":[{"index":0,"delta":{"tool_calls":[${list(5000, call)}]}}]}`),
      events(5000, (at) => `{"choices":[{"index":0,"delta":{"tool_calls":[${call(at)}]}}]}`),
    ]) {
      expect(breaks(bytes, chat)).toEqual([]);
      expect(convertStream([bytes], chat).error).toMatchObject({ code: 'upstream_invalid' });
    }
  });

  test('C7: a tool call whose index is the largest integer: later calls have other indexes', () => {
    const first = `{"index":${Number.MAX_SAFE_INTEGER},"id":"a","function":{"name":"f","arguments":"{}"}}`;
    const next = ['b', 'c', 'd'].map((id) => `{"id":"${id}","function":{"name":"f","arguments":"{}"}}`);
    const bytes = events(1, () => `{"choices":[{"index":0,"delta":{"tool_calls":[${[first, ...next]}]}}]}`);
    expect(breaks(bytes, chat)).toEqual([]);
    const indexes = [...convertStream([bytes], chat).text.matchAll(/"index":(\d+),"id"/g)].map(
      ([, at]) => at,
    );
    expect(new Set(indexes).size).toBe(4);
  });
});

/** A response that is not an object is refused before it is converted. */
function convertPlain(bytes: Uint8Array, conversion: Conversion, toStream: boolean): void {
  const text = new TextDecoder().decode(bytes);
  if (text.startsWith('{')) convertObject(bytes, conversion, toStream);
}
