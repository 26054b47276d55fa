/** Tests that keys in JSON text are replaced, however it comes in pieces, and that all other text stays (Q3). */
import { describe, expect, test } from 'vitest';
import { KeyReplacer, replaceKeys } from '../../src/shared/json-keys.ts';

const KEYS = new Map([
  ['filter_id_a', 'filter[id]'],
  ['gr_e', 'größe'],
  ['quote', 'a"b\\'],
]);

const CASES: readonly (readonly [text: string, replaced: string])[] = [
  ['{"filter_id_a":"x"}', '{"filter[id]":"x"}'],
  ['{ "gr_e" : {"filter_id_a":[{"gr_e":1}]} }', '{ "größe" : {"filter[id]":[{"größe":1}]} }'],
  ['{"a":"gr_e","b":["gr_e","x"]}', '{"a":"gr_e","b":["gr_e","x"]}'],
  ['{"quote":1}', '{"a\\"b\\\\":1}'],
  ['{"gr\\u005fe":1,"k\\"gr_e":2}', '{"größe":1,"k\\"gr_e":2}'],
  [
    '{"n":2512292042121000001,"gr_e":1e5,"t":true,"z":null}',
    '{"n":2512292042121000001,"größe":1e5,"t":true,"z":null}',
  ],
  ['{"s":"{\\"gr_e\\":1}, \\\\","gr_e":[]}', '{"s":"{\\"gr_e\\":1}, \\\\","größe":[]}'],
  ['{}{"gr_e":1}', '{}{"größe":1}'],
  ['[{"gr_e":1},{"gr_e":2}]', '[{"größe":1},{"größe":2}]'],
  ['no JSON, "gr_e": }', 'no JSON, "gr_e": }'],
];

describe('KeyReplacer', () => {
  test.each(CASES)('Q3 %s, in one piece and split at each place', (text, replaced) => {
    expect(replaceKeys(text, KEYS)).toBe(replaced);
    for (let at = 0; at <= text.length; at++) {
      const replacer = new KeyReplacer(KEYS);
      const written = replacer.push(text.slice(0, at)) + replacer.push(text.slice(at)) + replacer.end();
      expect(written).toBe(replaced);
    }
    const each = new KeyReplacer(KEYS);
    expect([...text].map((char) => each.push(char)).join('') + each.end()).toBe(replaced);
  });

  test('Q3 holds nothing back but a key', () => {
    const replacer = new KeyReplacer(KEYS);
    expect(replacer.push('{"x":"some te')).toBe('{"x":"some te');
    expect(replacer.push('xt","gr')).toBe('xt",');
    expect(replacer.push('_e":')).toBe('"größe":');
    expect(replacer.push('1,"cu')).toBe('1,');
    expect(replacer.end()).toBe('"cu');
  });

  test('B4 a key without an end is not held back, and takes linear time', () => {
    const replacer = new KeyReplacer(KEYS);
    let written = replacer.push('{"');
    for (let i = 0; i < 2000; i++) written += replacer.push('x'.repeat(100));
    expect(written.length).toBeGreaterThan(190_000);
    const text = `{"a":${'['.repeat(90)}${'"gr_e",'.repeat(200_000)}`;
    expect(replaceKeys(text, KEYS)).toBe(text);
  });
});
