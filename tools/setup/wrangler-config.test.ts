/** Changes of wrangler.toml: what is written is TOML, whatever the values; texts of others do not control a terminal or a shell. */
import { execFileSync } from 'node:child_process';
import { parse } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { objectOf } from '../simulator/json.ts';
import { readAnswers } from './answers.ts';
import { printable, printableName, shellWord } from './terminal-text.ts';
import { changeConfig, PRODUCTION } from './wrangler-config.ts';

const BEFORE = 'name = "weir"\n\n[[kv_namespaces]]\nbinding = "WEIR_KV"\n\n[vars]\nAUTH = "keys"\n';
const PARTS = [
  '"',
  "'",
  '\\',
  '\n',
  '\r',
  '\t',
  '\0',
  '\u001b',
  '\u007f',
  '\u0085',
  '\u009b',
  '\u2028',
  '\ud800',
  'é',
  '😀',
  '"""',
  "'''",
  '[vars]\n',
  '# no',
  '$(x)',
  '',
];

describe('changeConfig', () => {
  test('every value, and every pair of hard parts with a quote, comes back as it was, in each environment', () => {
    const values = PARTS.flatMap((first) => PARTS.map((second) => `a${first}"${second}z`)).concat(PARTS);
    const namespaces = new Map([
      [PRODUCTION, 'id-1'],
      ['staging', 'id-2'],
    ]);
    for (const value of values) {
      const { text } = changeConfig(BEFORE, { worker: 'other', namespaces, vars: { ALIASES: value } });
      const read = objectOf(parse(text));
      const expected = { AUTH: 'keys', ALIASES: value.toWellFormed() };
      expect(read.vars).toEqual(expected);
      expect(objectOf(objectOf(read.env).staging).vars).toEqual(expected);
    }
  });

  test('JSON text stays readable', () => {
    const { text } = changeConfig(BEFORE, {
      worker: 'weir',
      namespaces: new Map([[PRODUCTION, 'id']]),
      vars: { ALIASES: '{"a": "openai/b"}' },
    });
    expect(text).toContain(`ALIASES = '{"a": "openai/b"}'`);
  });

  test('a file whose form is not seen is not written: the variables to add are named', () => {
    const hidden = `name = "weir"\nnote = """\n[vars]\n"""\n[vars]\nAUTH = "keys"\n`;
    const change = () =>
      changeConfig(hidden, {
        worker: 'weir',
        namespaces: new Map([[PRODUCTION, 'id']]),
        vars: { RETRIES: '2' },
      });
    expect(change).toThrow(/add RETRIES by hand/);
  });
});

describe('texts of others', () => {
  test.each([
    ['\u001b[31mred', '\\u{1b}[31mred'],
    ['\u009b2J', '\\u{9b}2J'],
    ['a\u202eb', 'a\\u{202e}b'],
    ['a\u200bb\ufeff', 'a\\u{200b}b\\u{feff}'],
    ['\u007f\r', '\\u{7f}\\u{d}'],
    ['é😀 plain', 'é😀 plain'],
  ])('%j is printed without control of the terminal', (text, shown) => {
    expect(printable(text)).toBe(shown);
    expect(printableName(`${text}\n- another note`)).toBe(`${shown}\\n- another note`);
  });

  test.each([
    'https://a.example/b',
    "a'b",
    '$(touch x)',
    '`id`',
    'a b;c',
    '',
    '-x',
    '*',
    '"',
    'a\\b',
    "';id;'",
  ])('%j is one word of a shell', (word) => {
    const shown = execFileSync('sh', ['-c', `printf %s ${shellWord(word) || "''"}`], { encoding: 'utf8' });
    expect(shown).toBe(word);
  });
});

describe('answers', () => {
  const problemsOf = (file: object) => {
    const read = readAnswers(JSON.stringify({ providers: ['openai'], ...file }));
    return read.kind === 'error' ? read.error.join('\n') : '';
  };

  test.each(['ADMIN_TOKEN', 'USER_HASH_KEY', 'ALERT_SECRET'])(
    '%s is no key of a provider, and in no header',
    (name) => {
      const base_url = 'https://evil.example/v1';
      for (const entry of [{ api_key: name }, { headers: { x: `$${name}` } }, { query: { k: `$${name}` } }]) {
        const PROVIDERS = JSON.stringify({ evil: { base_url, ...entry } });
        expect(problemsOf({ vars: { PROVIDERS } })).toBe(
          `vars.PROVIDERS: evil names ${name}, a secret of Weir's own`,
        );
      }
    },
  );

  test('an address with a password is refused, and one with characters that URLs ignore is printed without them', () => {
    const PROVIDERS = JSON.stringify({ a: { base_url: 'http://user:PASSWORD1@a.example/v1' } });
    expect(problemsOf({ vars: { PROVIDERS } })).toBe('vars.PROVIDERS: base_url of a has a password');
    expect(problemsOf({ vars: { OPENAI_BASE_URL: 'https://u:PASSWORD1@a.example' } })).not.toContain(
      'PASSWORD1',
    );
    expect(problemsOf({ vars: { OPENAI_BASE_URL: 'https://u:PASSWORD1@a.example' } })).toContain(
      'OPENAI_BASE_URL',
    );
    for (const url of ['javascript:alert(1)', 'https://a:b@c.example', 'none'])
      expect(problemsOf({ addresses: { production: url } })).toContain('addresses');
    const read = readAnswers(
      JSON.stringify({ providers: ['openai'], addresses: { production: 'https://a.example/\n$(id)/' } }),
    );
    expect(read).toMatchObject({ value: { addresses: { production: 'https://a.example/$(id)' } } });
  });
});
