/** Tests the JSON that stands in strings: what is beyond the bounds, together, is not parsed (B2). */
import { describe, expect, test } from 'vitest';
import { decodeBase64, encodeBase64 } from '../../src/shared/base64.ts';
import { EmbeddedJson } from '../../src/shared/embedded-json.ts';
import { MAX_JSON_DEPTH, MAX_JSON_VALUES } from '../../src/shared/limits.ts';
import { decodePercent } from '../../src/shared/percent.ts';

const values = (count: number) => `{"a":[${'0,'.repeat(count)}0]}`;

describe('B2 JSON in a string', () => {
  test.each([
    ['an object', '{"a":1}', { a: 1 }],
    ['an object behind white space', ' \n{"a":1}', { a: 1 }],
    ['a list', '[1]', undefined],
    ['a number', '1', undefined],
    ['a text without an end', '{"a":', undefined],
    ['as many levels as a body may have', `{"a":${'['.repeat(MAX_JSON_DEPTH)}`, undefined],
    ['nothing', '', undefined],
  ])('%s: the object, or none', (_, text, value) => {
    expect(new EmbeddedJson().object(text)).toEqual(value);
  });

  test('integers beyond 2^53 keep their digits', () => {
    expect(JSON.stringify(new EmbeddedJson().object('{"a":12345678901234567890}'))).toBe(
      '{"a":12345678901234567890}',
    );
  });

  test('a list, and what is none', () => {
    expect(new EmbeddedJson().list('[{"a":1}]')).toEqual([{ a: 1 }]);
    expect(new EmbeddedJson().list('{"a":1}')).toEqual([]);
  });

  test('one text of too many values or levels: none', () => {
    expect(new EmbeddedJson().object(values(MAX_JSON_VALUES))).toBeUndefined();
    expect(new EmbeddedJson().object(`{"a":${'['.repeat(101)}${']'.repeat(101)}}`)).toBeUndefined();
  });

  test('many texts: those beyond the values that a body may have together are none, however short', () => {
    const embedded = new EmbeddedJson();
    const half = values(MAX_JSON_VALUES / 2 - 10);
    expect([half, half, half].map((text) => embedded.object(text) !== undefined)).toEqual([
      true,
      true,
      false,
    ]);
    const short = new EmbeddedJson();
    const parsed = Array.from({ length: MAX_JSON_VALUES }, () => short.object('{"a":1}'));
    expect(parsed.filter((value) => value !== undefined)).toHaveLength(MAX_JSON_VALUES / 2);
  });

  test('texts that are no JSON: after a thousand of them no further one is tried', () => {
    const embedded = new EmbeddedJson();
    for (let i = 0; i < 999; i++) embedded.object('{"a":');
    expect(embedded.object('{"a":1}')).toEqual({ a: 1 });
    embedded.object('{"a":');
    expect(embedded.object('{"a":1}')).toBeUndefined();
  });
});

describe('B2 texts in base64 and in percent signs', () => {
  test.each(['', 'a', 'ab', 'abc', 'é水🌊', '\ufeffa'])('%j: as it was', (text) => {
    expect(decodeBase64(encodeBase64(text))).toBe(text.replace('\ufeff', ''));
    expect(decodePercent(encodeURIComponent(text))).toBe(text);
  });

  test.each(['QUI=0', 'Q', '!', 'Q=Q', 'é'])('%j is no base64', (text) =>
    expect(decodeBase64(text)).toBeNull(),
  );
  test.each(['%', '%4', '%4g', '%ff', '%ed%a0%80'])('%j is no text', (text) =>
    expect(decodePercent(text)).toBeNull(),
  );
  test.each(['QQ', 'QQ==', ' Q Q ', 'QUI='])('%j is base64, as the engine takes it', (text) => {
    expect(decodeBase64(text)).toBe(Buffer.from(atob(text), 'latin1').toString());
  });
});
