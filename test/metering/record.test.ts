/** Tests the compact form of a record (M2, M4) and its bounds: nothing is lost, and it always fits into KV metadata. */
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { viewRecord } from '../../src/api/record-view.ts';
import { ERRORS_OF_PROVIDERS, FAULTS } from '../../src/canonical/fault.ts';
import {
  boundName,
  boundRecord,
  decodeRecord,
  encodeRecord,
  extendRecord,
  MAX_FACT_BYTES,
  type RecordSummary,
  recordText,
  type UsageRecord,
} from '../../src/metering/record.ts';
import { isoTime } from '../../src/metering/time.ts';
import { record } from './records.ts';

/** The limit of KV metadata, as JSON. */
const KV_MAX_METADATA_BYTES = 1024;
const MAX = Number.MAX_SAFE_INTEGER;

const bytesOf = (one: UsageRecord) => new TextEncoder().encode(JSON.stringify(encodeRecord(one))).length;

/** The largest value of every field. Ids and routes are Weir's own, a provider's name comes from a setting, and the rest is arbitrary. */
function worst(text: string): UsageRecord {
  return boundRecord({
    ...record({ key_id: `host_${'k'.repeat(36)}` }),
    provider: 'p'.repeat(32),
    asked: text,
    model: text,
    user: boundName(text, MAX_FACT_BYTES),
    session: boundName(text, MAX_FACT_BYTES),
    app: boundName(text, MAX_FACT_BYTES),
    route: 'completions',
    client: 'responses',
    status: 'cancelled',
    error_code: text,
    error: ERRORS_OF_PROVIDERS.at(-1) ?? null,
    fault: FAULTS.at(-1) ?? null,
    finish_reason: text,
    prompt_tokens: MAX,
    completion_tokens: MAX,
    total_tokens: MAX,
    cached_tokens: MAX,
    cache_write_tokens: MAX,
    reasoning_tokens: MAX,
    vendor_events: MAX,
    vendor_tokens: MAX,
    first_token_ms: MAX,
    total_ms: MAX,
    bytes_out: MAX,
    estimated: true,
    cost_nanos: MAX,
    cost_parts_nanos: { input: MAX, cached: MAX, output: MAX },
    currency: text,
    cost_source: 'upstream',
    price_since: '2026-09-10T00:00:00.000Z',
    cost_estimated: true,
    // These are in the value only.
    prefix: 'p'.repeat(108),
    cache: { cause: 'history', at: 7, by: 'fallback', lost_tokens: MAX, lost_nanos: MAX },
    cache_saves: MAX,
  });
}

/** Whether the parts of a cost fit into the metadata beside the names. */
function hasRoom(one: Partial<RecordSummary>): boolean {
  return [one.asked, one.model, one.user, one.session, one.app].join('').length < 250;
}

const count = fc.nat(MAX);
const word = fc.stringMatching(/^[ !#-[\]-~]{1,32}$/);
const anyRecord: fc.Arbitrary<RecordSummary> = fc
  .record({
    request_id: fc.uuid(),
    time: fc
      .date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) })
      .map((date) => date.toISOString()),
    key_id: fc.stringMatching(/^[0-9a-f]{16}$|^host_[\w-]{36}$/),
    provider: word,
    model: fc.stringMatching(/^[ !#-[\]-~]{1,128}$/),
    route: fc.constantFrom('chat', 'completions', 'fim', 'agents'),
    client: fc.constantFrom('chat', 'completions', 'messages', 'responses'),
    status: fc.constantFrom('finished', 'failed', 'timed_out', 'cancelled'),
    error_code: fc.option(word),
    fault: fc.option(fc.constantFrom(...FAULTS)),
    ownCode: fc.option(fc.constantFrom(...ERRORS_OF_PROVIDERS)),
    finish_reason: fc.option(word),
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    cached_tokens: fc.option(count),
    cache_write_tokens: fc.option(count),
    reasoning_tokens: fc.option(count),
    vendor_events: count,
    vendor_tokens: count,
    first_token_ms: fc.option(count),
    total_ms: count,
    bytes_out: count,
    estimated: fc.boolean(),
    asked: fc.stringMatching(/^[ !#-[\]-~]{1,128}$/),
    user: fc.option(word),
    session: fc.option(word),
    app: fc.option(word),
    cost_nanos: fc.option(count),
    currency: fc.option(fc.constantFrom('USD', 'CNY')),
    cost_source: fc.constantFrom('none', 'upstream', 'table'),
    price_since: fc.option(fc.constant('2026-09-10T00:00:00.000Z')),
    cost_estimated: fc.boolean(),
    parts: fc.option(fc.record({ input: count, cached: count, output: count })),
  })
  .map(({ ownCode, parts, ...one }) => ({
    ...one,
    ...(parts !== null && hasRoom(one) && { cost_parts_nanos: parts }),
    error: ownCode ?? one.error_code,
    ended: isoTime(Date.parse(one.time) + one.total_ms),
  }));

describe('encodeRecord and decodeRecord', () => {
  test('M2 M4 L1 any record: unchanged after a round trip through JSON', () => {
    fc.assert(
      fc.property(anyRecord, (one) => {
        expect(decodeRecord(JSON.parse(JSON.stringify(encodeRecord(one))))).toEqual(one);
      }),
      { numRuns: 300, seed: 20261121 },
    );
  });

  test('P5 the parts of a cost are left out where long names leave no room for them', () => {
    const cost_parts_nanos = { input: 12_345_678, cached: 0, output: 1 };
    const read = (name: string) =>
      decodeRecord(encodeRecord(record({ cost_parts_nanos, asked: name, model: name })))?.cost_parts_nanos;
    expect(read('gpt-5')).toEqual(cost_parts_nanos);
    expect(read('m'.repeat(240))).toBeUndefined();
    for (const cp of ['', '1.2', 'x', '1.-2.3', '1.2.3.4'])
      expect(decodeRecord({ ...encodeRecord(record()), cp })).not.toHaveProperty('cost_parts_nanos');
  });

  test('M4 absent fields take no space in the metadata', () => {
    const encoded: unknown = JSON.parse(
      JSON.stringify(encodeRecord(record({ cached_tokens: null, first_token_ms: null }))),
    );
    expect(
      Object.values(encoded as object).filter(
        (value) => typeof value !== 'string' && typeof value !== 'number',
      ),
    ).toEqual([]);
  });

  test('M2 zero and null stay distinct', () => {
    for (const cached_tokens of [0, null]) {
      expect(decodeRecord(encodeRecord(record({ cached_tokens })))?.cached_tokens).toBe(cached_tokens);
    }
  });

  test.each([
    ['plain letters', 'm'],
    ['letters of two bytes', 'é'],
    ['letters of three bytes', '日'],
    ['letters of four bytes', '𝄞'],
    ['lone surrogates', '\uD834'],
    ['quotes', '"'],
    ['backslashes', '\\'],
    ['control characters', '\u0001'],
    ['line separators', '\u2028'],
    ['deletes', '\x7f'],
  ])('M4 L1 a record with long texts of %s and the largest numbers fits into the metadata', (_, char) => {
    expect(bytesOf(worst(char.repeat(2_000)))).toBeLessThanOrEqual(KV_MAX_METADATA_BYTES);
  });

  test('M4 L1 a record with any texts fits into the metadata and can be read back', () => {
    const texts = fc.string({ unit: 'binary', minLength: 200, maxLength: 300 });
    fc.assert(
      fc.property(texts, (text) => {
        expect(bytesOf(worst(text))).toBeLessThanOrEqual(KV_MAX_METADATA_BYTES);
        expect(decodeRecord(encodeRecord(worst(text)))).toMatchObject({
          status: 'cancelled',
          bytes_out: MAX,
        });
      }),
      { seed: 20261121 },
    );
  });

  test('M2 real model names are not truncated', () => {
    const model = 'accounts/fireworks/models/llama-v3p1-405b-instruct@2026-01-01:free';
    expect(decodeRecord(encodeRecord(record({ model })))?.model).toBe(model);
  });
});

describe('decodeRecord, what is not a record', () => {
  test.each([
    ['null', null],
    ['a text', 'finished'],
    ['a list', []],
    ['no status', { id: 'a', t: '2026-11-20T10:20:30.456Z' }],
    ['an unknown status', { id: 'a', t: '2026-11-20T10:20:30.456Z', s: 'done' }],
    ['no time', { id: 'a', s: 'finished' }],
    ['no id', { t: '2026-11-20T10:20:30.456Z', s: 'finished' }],
    ['an invalid time', { id: 'a', t: 'noon', s: 'finished' }],
  ])('M4 %s: null', (_, metadata) => {
    expect(decodeRecord(metadata)).toBeNull();
  });

  test('M4 invalid numbers count as absent', () => {
    const broken = { ...encodeRecord(record()), pt: 'many', ca: -1, ms: 1.5 };
    expect(decodeRecord(broken)).toMatchObject({ prompt_tokens: 0, cached_tokens: null, total_ms: 0 });
  });
});

const jsonBytes = (text: string) => new TextEncoder().encode(JSON.stringify(text)).length - 2;

test.each([
  ['gpt-4o', 'gpt-4o'],
  ['"quoted" \\ name', '"quoted" \\ name'],
  ['a\u0000b\u007fc\n', 'abc'],
  ['\ud800', '\ufffd'],
  ['x'.repeat(50), 'x'.repeat(20)],
  ['水'.repeat(50), '水'.repeat(6)],
  ['🌊'.repeat(50), '🌊'.repeat(5)],
  ['"'.repeat(50), '"'.repeat(10)],
])('L1 boundName of %j in 20 bytes: %j', (text, bound) => {
  expect(boundName(text, 20)).toBe(bound);
});

test('L1 boundName of any text: within the bytes, well-formed, and a prefix of the cleaned text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), fc.nat(40), (text, maxBytes) => {
      const bound = boundName(text, maxBytes);
      expect(jsonBytes(bound)).toBeLessThanOrEqual(maxBytes);
      expect(bound.isWellFormed()).toBe(true);
      expect(
        text
          .toWellFormed()
          .replace(/[^\x20-\u{10ffff}]|\x7f/gu, '')
          .startsWith(bound),
      ).toBe(true);
    }),
  );
});

test('M2 a stored record with more cached tokens than its prompt has: responses have those of the prompt', () => {
  const counts = { prompt_tokens: 10, cached_tokens: 9, cache_write_tokens: 9 };
  expect(viewRecord(record(counts), false)).toMatchObject({ ...counts, cache_write_tokens: 1 });
  expect(viewRecord(record({ ...counts, cached_tokens: null }), false)).toMatchObject({
    cached_tokens: null,
    cache_write_tokens: 9,
  });
});

describe('recordText', () => {
  test('the text of a record that is asked for twice: made once', () => {
    const one = record();
    const stringify = vi.spyOn(JSON, 'stringify');
    try {
      const texts = [recordText(one), recordText(one)];
      expect(stringify).toHaveBeenCalledTimes(1);
      expect(texts.map((text) => JSON.parse(text))).toEqual([one, one]);
    } finally {
      stringify.mockRestore();
    }
  });

  test.each([
    ['with the text of the record', true],
    ['without it', false],
  ])('a record that is extended by its hashes, %s: JSON of all fields', (_, isMade) => {
    const one = record();
    if (isMade) recordText(one);
    for (const fields of [{ prefix: 'v1"é' }, { prefix: 'p', cache_saves: 7 }]) {
      const extended = extendRecord(one, fields);
      expect(extended).toEqual({ ...one, ...fields });
      expect(recordText(extended)).toBe(JSON.stringify(extended));
    }
    expect(recordText(one)).toBe(JSON.stringify(one));
  });
});
