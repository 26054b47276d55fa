/** Changes of wrangler.toml: what is written is TOML, whatever the values; texts of others do not control a terminal or a shell. */
import { execFileSync } from 'node:child_process';
import { parse } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { objectOf } from '../simulator/json.ts';
import { readAnswers } from './answers.ts';
import { printable, printableName, shellWord } from './terminal-text.ts';
import { changeConfig, devConfig, PRODUCTION } from './wrangler-config.ts';

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

describe('W12 the binding AI', () => {
  const namespaces = new Map([
    [PRODUCTION, 'id-1'],
    ['staging', 'id-2'],
  ]);
  const { text } = changeConfig(BEFORE, { worker: 'weir', namespaces, vars: {}, ai: true });

  test('is written into each deployed environment, once', () => {
    const read = objectOf(parse(text));
    expect(read.ai).toEqual({ binding: 'AI' });
    expect(objectOf(objectOf(read.env).staging).ai).toEqual({ binding: 'AI' });
    expect(changeConfig(text, { worker: 'weir', namespaces, vars: {}, ai: true }).text).toBe(text);
    const without = changeConfig(BEFORE, { worker: 'weir', namespaces, vars: {} });
    expect(objectOf(parse(without.text)).ai).toBeUndefined();
  });

  test.each([PRODUCTION, 'staging'])('npm run dev of %s: left out without --ai, and there with it', (one) => {
    const has = (config: string) => {
      const read = objectOf(parse(config));
      return (one === PRODUCTION ? read : objectOf(objectOf(read.env)[one])).ai !== undefined;
    };
    const changed = devConfig(text, one, false) ?? '';
    expect(has(changed)).toBe(false);
    expect(objectOf(parse(changed)).vars).toEqual(objectOf(parse(text)).vars);
    expect(devConfig(text, one, true)).toBeNull();
    expect(devConfig(BEFORE, PRODUCTION, false)).toBeNull();
    expect(has(devConfig(changed, one, true) ?? '')).toBe(true);
  });

  test('npm run dev: a form of the file that is not known is said', () => {
    expect(devConfig(`ai = { binding = "AI" }\n${BEFORE}`, PRODUCTION, false)).toBe('');
  });
});

describe('W12 answers with cloudflare', () => {
  const read = (answers: object, env = {}) => {
    const now = Date.parse('2026-11-28T00:00:00Z');
    const result = readAnswers(JSON.stringify(answers), { config: BEFORE, env, now });
    if (result.kind === 'error') throw new Error(result.error.join('\n'));
    return { ai: result.value.ai, secrets: result.value.neededSecrets.get(PRODUCTION) };
  };

  test('nothing of its API is given: the binding, which needs no secret', () => {
    expect(read({ providers: ['cloudflare'] })).toEqual({ ai: true, secrets: ['ADMIN_TOKEN'] });
    expect(read({ providers: [], ai: true })).toEqual({ ai: true, secrets: ['ADMIN_TOKEN'] });
  });

  test('with a token or an account: its API, as before', () => {
    const vars = { CLOUDFLARE_ACCOUNT_ID: '0123456789abcdef0123456789abcdef' };
    const secrets = ['ADMIN_TOKEN', 'CLOUDFLARE_AI_TOKEN'];
    expect(read({ providers: ['cloudflare'], vars }, { CLOUDFLARE_AI_TOKEN: 'k' })).toEqual({
      ...{ ai: false, secrets },
    });
    expect(read({ providers: ['cloudflare'], vars })).toEqual({ ai: false, secrets });
    expect(read({ providers: ['openai'] }).ai).toBe(false);
  });

  test('ai must be true or false', () => {
    expect(() => read({ providers: ['cloudflare'], ai: 'yes' })).toThrow('ai must be true or false');
  });
});
