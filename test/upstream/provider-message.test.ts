/** What a provider said about a failure, without the prompt. */
import { describe, expect, test } from 'vitest';
import { readUpstreamRefusal } from '../../src/canonical/upstream-error.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { compareWithRequest } from '../../src/upstream/provider-message.ts';
import { REFUSAL_TEXTS } from '../../tools/simulator/refusal-texts.ts';

const UPSTREAM = { name: 'Unknown', secret: 'sk-of-the-deployment-42' };

function user(content: unknown): JsonObject {
  return { model: 'unknown-1', messages: [{ role: 'user', content }] };
}

function keep(message: string, body: JsonObject): string | null {
  return compareWithRequest(message, body)?.keep(UPSTREAM) ?? null;
}

/** Prompts with secrets and odd text. */
const PROMPTS: readonly string[] = [
  'My password is hunter2, tell nobody about it',
  'The card 4111 1111 1111 1111 expires in 04/29',
  'p@$$w0rd!#%&*+/=? is what I type every morning',
  'Call Ada Lovelace at +44 20 7946 0958 tomorrow',
  'ada.lovelace@example.com wrote the merger plan',
  'Straße in Zürich, naïve café, ÀÉÎÕÜ façade',
  '患者の王小明は糖尿病です。次の診察は金曜日です。',
  '我的密码是天王盖地虎宝塔镇河妖',
  'Секретный проект «Берёза» начнётся в мае',
  'السر هو الكلمة المفتاحية للمشروع الجديد',
  'merger 🔥🔥🔥 with 𝓢𝓮𝓬𝓻𝓮𝓽 Corp. 👩‍👩‍👧‍👦 next week',
  'zero\u200bwidth\u200bsecret project\u00a0falcon launches',
  'line one of the plan\nline two of the plan\r\n\tline three',
  'He said "sell everything" and she said \'buy it back\'',
  '{"api_key":"zzz-123-topsecret","user":"grace.hopper"}',
  '<b>confidential</b> &amp; "quoted" <script>alert(1)</script>',
  'C:\\Users\\grace\\secret plans\\merger.docx and \\u0041',
  'lone \ud800 surrogate beside the falcon secret',
  'ssn 078-05-1120 of patient Grace Brewster Hopper',
  "SELECT * FROM customers WHERE name = 'O''Brien' AND 1=1;--",
];

/** How providers quote a prompt. */
const QUOTES: readonly (readonly [string, (prompt: string) => string])[] = [
  ['as it is', (prompt) => `Invalid value: ${prompt}. Please correct it`],
  ['in quotation marks', (prompt) => `Invalid value: "${prompt}". Please correct it`],
  ['in single quotation marks', (prompt) => `Input should be a valid list, got '${prompt}'`],
  [
    'as JSON',
    (prompt) => `Failed to parse ${JSON.stringify({ role: 'user', content: prompt })} as a request`,
  ],
  ['in ASCII', (prompt) => `Bad input: ${escapeAll(JSON.stringify(prompt))}`],
  ['as JSON in JSON', (prompt) => `Error from backend: ${JSON.stringify(JSON.stringify(prompt))}`],
  ['in HTML', (prompt) => `Blocked: ${prompt.replace(/[<>&"]/g, (sign) => `&#${sign.charCodeAt(0)};`)}`],
  ['in capitals', (prompt) => `BLOCKED: ${prompt.toUpperCase()}`],
  ['cut', (prompt) => `Prompt is flagged: "${prompt.slice(0, 30)}..."`],
  ['on one line', (prompt) => `Unexpected text: ${prompt.replace(/\s+/g, ' ')}`],
  ['without spaces', (prompt) => `Blocked: ${prompt.replace(/\s+/g, '')}`],
  ['with a space behind each letter', (prompt) => `Blocked: ${Array.from(prompt).join(' ')}`],
  ['with _ for spaces', (prompt) => `Blocked: ${prompt.replace(/\s+/g, '_')}`],
  ['with double spaces', (prompt) => `Blocked: ${prompt.replace(/\s/g, '  ')}`],
  ['after a long text', (prompt) => `${'x'.repeat(950)} ${prompt}`],
];

function escapeAll(text: string): string {
  return text.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The words of a text, whatever stands between and above them. */
function wordsOf(text: string): string[] {
  const plain = text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\p{M}\p{Cf}]/gu, '');
  return plain.match(/[\p{L}\p{N}]{2,}/gu) ?? [];
}

describe('E5 a kept message', () => {
  test.each(PROMPTS.flatMap((prompt) => QUOTES.map(([how, quote]) => [how, prompt, quote] as const)))(
    'has no word of the prompt that is quoted %s: %s',
    (_, prompt, quote) => {
      for (const body of [
        user(prompt),
        user([{ type: 'text', text: `Hello. ${prompt} Thanks.` }]),
        { model: 'm', input: prompt },
        {
          model: 'm',
          messages: [],
          tools: [{ type: 'function', function: { name: 'f', description: prompt } }],
        },
      ]) {
        const own = new Set(wordsOf(quote('')));
        const kept = keep(quote(prompt), body) ?? '';
        const secret = wordsOf(prompt).filter((word) => !own.has(word));
        expect(
          wordsOf(kept).filter((word) => secret.includes(word)),
          kept,
        ).toEqual([]);
      }
    },
  );

  test.each(REFUSAL_TEXTS.map((row) => [row.name, row] as const))(
    'is the whole refusal %s if the prompt shares nothing with it',
    (_, { text, sent }) => {
      const { message = '' } = readUpstreamRefusal(text);
      const kept = keep(message, { ...user('Hi'), ...sent }) ?? '';
      expect(message.startsWith(kept.split('…')[0] ?? ''), kept).toBe(true);
      for (const field of Object.keys(sent)) {
        if (message.slice(0, 300).includes(field)) expect(kept).toContain(field);
      }
    },
  );

  test('names fields, and no quoted word of the prompt', () => {
    const body = { ...user('Set temperature to medium'), temperature: 2, reasoning_effort: 'low' };
    expect(keep("Unsupported value: 'temperature' does not support 'medium', but 'low'", body)).toBe(
      "Unsupported value: 'temperature' does not support '…', but 'low'",
    );
    expect(keep('messages[0].content: must be shorter', user('messages[0].content is mine'))).toBe(
      'messages[0].content: must be shorter',
    );
  });

  test.each(['""', "''", '``', '“”', '‘’', '«»', '„“', '「」'])(
    'has no word of the prompt in %s',
    ([open, close]) => {
      const message = (word: string) => `The value ${open}${word}${close} is not supported`;
      expect(keep(message('medium'), user('Set it to medium'))).toBe(message('…'));
    },
  );

  test('has no name of a schema or an argument that the caller chose', () => {
    const parameters = { type: 'object', properties: { patient_name: { type: 'string' } } };
    const body = { ...user('Hi'), tools: [{ type: 'function', function: { name: 'find_it', parameters } }] };
    expect(keep("Invalid schema for function 'find_it': 'patient_name' is not allowed", body)).toBe(
      "Invalid schema for function '…': '…' is not allowed",
    );
  });

  test('hides a name that is part of a path', () => {
    const body = { ...user('Hi'), tools: [{ input_schema: { properties: { codename_falcon: {} } } }] };
    expect(keep('tools.0.input_schema.properties.codename_falcon: invalid', body)).not.toContain('falcon');
  });

  test.each([
    ['Kr\\u00f6te9813', 'Kröte9813'],
    ['h%75nter2', 'hunter2'],
    ['hun&#116;er2', 'hunter2'],
    ['&#x68;unter2', 'hunter2'],
    ['HUNTER2', 'hunter2'],
    ['Kr\\\\u00f6te9813', 'Kröte9813'],
    ['\\u{68}unter2', 'hunter2'],
    ['\\U00000068unter2', 'hunter2'],
    ['\\x68unter2', 'hunter2'],
    ['\\150unter2', 'hunter2'],
    ['Kr\\xc3\\xb6te9813', 'Kröte9813'],
    ['Kr\\xf6te9813', 'Kröte9813'],
    ['Kr\\303\\266te9813', 'Kröte9813'],
    ['Kr%C3%B6te9813', 'Kröte9813'],
    ['h%2575nter2', 'hunter2'],
    ['&amp;#104;unter2', 'hunter2'],
    ['&#0000104;unter2', 'hunter2'],
    ['&#X000068;unter2', 'hunter2'],
  ])('has no word with a digit of the prompt, however it is escaped: %s', (echo, word) => {
    expect(keep(`Wrong word ${echo} in it`, user(`My password is ${word}, please`))).toBe(
      'Wrong word … in it',
    );
  });

  test.each([
    ['4711-0815', '4711-0815'],
    ['4711 0815', '4711-0815'],
    ['(030) 4711', '030 4711'],
    ['555.0123.99', '555-0123-99'],
    ['12/34', '12/34'],
    ['4711-0815', '47110815'],
    ['4711.0815', '4711 0815'],
    ['47110815', '4711-0815'],
    ['4711, 0815', '(4711) 0815'],
    ['49304711 0815', '+49 30 4711-0815'],
    ['4111-1111-1111-1111', '4111111111111111'],
    ['4111111111111111', '4111 1111 1111 1111'],
    ['4111\u00a01111\u20111111\u20131111', '4111_1111_1111_1111'],
    ['４７１１-０８１５', '4711 0815'],
    ['4711%2D0815', '4711 0815'],
  ])('has no number of two groups that is in the prompt: %s', (echo, number) => {
    expect(keep(`Wrong number ${echo} given`, user(`It is ${number}, or so`))).not.toMatch(/\d/);
  });

  test.each([
    ['User lemur may not use it', { user: 'lemur' }],
    ['user_lemur: blocked', { user: 'lemur' }],
    ['End user LEMUR.X exceeded', { user: 'lemur.x@example.com' }],
    ['lemur, as safety identifier, is blocked', { safety_identifier: 'lemur' }],
    ['Account lemur is blocked', { metadata: { user_id: 'user_0_account_lemur_session_s' } }],
    ['User %6Cemur is blocked', { user: 'lemur' }],
  ])('has no word of the name of the user: %s', (said, body) => {
    expect(keep(said, { messages: [], ...body })).not.toMatch(/lemur|%6Cemur/i);
    expect(keep(said, { messages: [] })).toBe(said);
  });

  test('has the words of refusals, also where the user has their names', () => {
    expect(keep('Unknown parameter of the user: seed', { user: 'the user' })).toBe(
      'Unknown parameter of the user: seed',
    );
  });

  test('has limits and counts, also those that are in the prompt', () => {
    const said = 'max_tokens: 32000 > 8192, between 1 and 8192, [1, 8192], 0.5';
    expect(keep(said, user('Count 32000, 8192, 1, then 0.5'))).toBe(said);
    expect(keep('Wrong number 4711-0815 given', user('Nothing of it: 4711'))).toContain('4711-0815');
  });

  test('has no credential, and at most 300 characters', () => {
    expect(keep(`Wrong key sk-proj-abcdef123456 ${'word '.repeat(100)}`, user('Hi'))).toMatch(
      /^Wrong key \[redacted\] .{200,}$/,
    );
    expect(keep('abc '.repeat(500), user('Hi'))).toHaveLength(300);
  });

  test('is null if nothing is left, or if the request is too large or too deep to compare', () => {
    expect(keep('"My password is hunter2"', user('My password is hunter2'))).toBeNull();
    expect(keep('Too long', user('x'.repeat(8 * 1024 * 1024 + 1)))).toBeNull();
    expect(keep('Too long', user('x'.repeat(8 * 1024 * 1024)))).toBe('Too long');
    // Nothing of it repeats, and the numbers are searched a second time.
    const numbers = Array.from({ length: 500_000 }, (_, i) => i + 1_000_000).join(' ');
    expect(keep('Too long: 123456789', user(numbers))).toBeNull();
    expect(keep('Too long', user(numbers))).toBe('Too long');
    let deep: unknown = 'Hi';
    for (let i = 0; i < 100; i++) deep = [deep];
    expect(keep('Too deep', user(deep))).toBeNull();
  });
});
