/** A grid of sentences about limits: each is read right, or the request is left as it is. */
import { describe, expect, test } from 'vitest';
import { readUpstreamRefusal } from '../../src/canonical/upstream-error.ts';
import { changeOf } from '../../src/fitting/fit.ts';
import { readStatements } from '../../src/fitting/statements.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { PLAIN_FORM } from '../fitting/plain-form.ts';

const OPTIONS = { unsupported: 'auto', form: PLAIN_FORM } as const;

interface Read {
  /** The field's value in the second request; what was asked if nothing changes. */
  readonly value: unknown;
  readonly isRemembered: boolean;
}

function readLimit(text: string, field: string, asked: number): Read {
  const { message = '', code = '', param } = readUpstreamRefusal(text);
  const body: JsonObject = { model: 'm', messages: [{ role: 'user', content: 'Hello' }], [field]: asked };
  const statements = readStatements({ message, code, field: param }, { body, betas: [] });
  let mended = body;
  let isRemembered = false;
  for (const statement of statements) {
    const change = changeOf(statement.finding, mended, OPTIONS);
    if (change === null) continue;
    mended = change.body;
    isRemembered ||= statement.isRemembered;
  }
  const { [field]: value, ...rest } = mended;
  expect(rest, text).toEqual({ model: 'm', messages: body.messages });
  return { value, isRemembered };
}

/** How hosts carry a sentence. */
const FORMS: readonly ((message: string, field: string) => string)[] = [
  (message, field) => JSON.stringify({ error: { message, param: field, code: 'invalid_value' } }),
  (message) => JSON.stringify({ error: { message, type: 'invalid_request_error', param: null } }),
  (message) => JSON.stringify({ error: message }),
  (message) => JSON.stringify({ message }),
  (message) => JSON.stringify({ object: 'error', message: JSON.stringify({ error: { message } }) }),
  (message) => JSON.stringify({ error: { message: 'Provider returned error', metadata: { raw: message } } }),
  (message) => message,
];

type Phrasing = (field: string, limit: string, model: string) => string;

/** Sentences that limit the output. */
const PHRASINGS: readonly Phrasing[] = [
  (_, limit, model) => `The maximum output tokens for ${model} is ${limit}`,
  (field, limit, model) => `The maximum value of ${field} for ${model} is ${limit}.`,
  (field, limit) => `${field} cannot be larger than ${limit}`,
  (field, limit, model) => `${field} cannot exceed ${limit} for the model ${model}`,
  (field, limit) => `${field} must be less than or equal to ${limit}`,
  (field, limit) => `${field} must be <= ${limit}`,
  (field, limit) => `Invalid ${field} value, the valid range of ${field} is [1, ${limit}]`,
  (field, limit) => `${field} must be between 1 and ${limit}`,
  (field, limit, model) => `${field} is too large. ${model} supports at most ${limit} completion tokens.`,
  (field, limit) => `${field}: 200000 > ${limit}, which is the maximum allowed number of output tokens`,
  (field, limit) => `Invalid '${field}': integer above maximum value. Expected a value <= ${limit}`,
  (field, limit) => `${field} must be ${limit} or less`,
  (field, limit) => `${field} exceeds the model's limit of ${limit}`,
  (field, limit) => `body.${field}: Input should be less than or equal to ${limit}`,
];

/** Plain numbers are read, the others right or not at all. */
const WRITINGS: readonly ((limit: number) => readonly [text: string, ...right: number[]])[] = [
  (limit) => [String(limit), limit],
  (limit) => [limit.toLocaleString('en'), limit],
  (limit) => [limit.toLocaleString('de'), limit],
  (limit) => [limit.toLocaleString('en').replaceAll(',', ' '), limit],
  (limit) => [limit.toLocaleString('en').replaceAll(',', '\u202f'), limit],
  (limit) => [limit.toLocaleString('en').replaceAll(',', '_'), limit],
  (limit) => [limit.toLocaleString('en').replaceAll(',', "'"), limit],
  (limit) => [`${limit / 1024}K`, limit, (limit / 1024) * 1000],
  (limit) => [`${limit / 1024}k`, limit, (limit / 1024) * 1000],
  (limit) => [`${limit / 1024} K`, limit, (limit / 1024) * 1000],
  (limit) => [`${limit / 1024}KiB`],
  (limit) => [`2^${Math.log2(limit)}`, limit],
  (limit) => [`2**${Math.log2(limit)}`, limit],
  (limit) => [`${limit / 1000}e3`, limit],
  (limit) => [`0x${limit.toString(16)}`, limit],
  (limit) => [`${limit}.0`, limit],
  (limit) => [`~${limit}`, limit],
  (limit) => [`${limit} tokens`, limit],
  (limit) => [`${limit} output tokens`, limit],
  (limit) => [`${limit} (${limit / 1024}K)`, limit],
];

const QUOTATIONS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `\`${text}\``,
  (text) => `'${text}'`,
];

const MODELS = ['gpt-4o', 'claude-3-5-sonnet-20241022', 'llama-3.1-8b', 'qwen2.5:7b', 'o3', 'acme/m-4.1'];
const FIELDS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];
const LIMITS = [4096, 8192, 16384, 32768, 65536];
const ASKED = 128_000;

describe('Z2 a limit in a sentence', () => {
  test('of a grid of sentences is read right or left', () => {
    let sentences = 0;
    let read = 0;
    const wrong: string[] = [];
    for (const [p, phrase] of PHRASINGS.entries())
      for (const [w, write] of WRITINGS.entries())
        for (const [l, limit] of LIMITS.entries())
          for (const quote of QUOTATIONS)
            for (const [f, field] of FIELDS.entries()) {
              const [number, ...right] = write(limit);
              const model = MODELS[(p + l + f) % MODELS.length] ?? '';
              const form = FORMS[(p + w + l + f) % FORMS.length];
              const text = form?.(phrase(field, quote(number), model), field) ?? '';
              const { value } = readLimit(text, field, ASKED);
              sentences += 1;
              if (value === ASKED) continue;
              read += 1;
              if (!right.includes(Number(value))) wrong.push(`${value}: ${text}`);
            }
    expect(wrong).toEqual([]);
    expect(sentences).toBeGreaterThan(12_000);
    expect(read).toBeGreaterThan(sentences / 3);
  });

  test.each(
    PHRASINGS.flatMap((phrase) => MODELS.map((model) => [phrase('max_tokens', '16384', model)] as const)),
  )('with a plain number is read: %s', (message) => {
    expect(readLimit(message, 'max_tokens', 100_000)).toEqual({ value: 16384, isRemembered: true });
  });

  test.each([
    'up to 4 images are supported',
    'at most 3 concurrent requests',
    'max_tokens is too large: you may send at most 4 images',
    'Invalid max_tokens. The maximum number of stop sequences is 4',
    'max_tokens: at most 5 requests per minute',
    'max_tokens: up to 8192 tokens per minute',
    'max_tokens plus prompt must be at most 8192 tokens',
    'max_tokens is limited to 8192 characters',
    'The maximum for max_tokens is 4 or 8192, which depends on the plan',
    'max_tokens must be at most 8192 input tokens',
    'The maximum context window for gpt-4o is 8192; max_tokens is too large',
    'max_tokens must be at most 4.5',
    'max_tokens must be at most 10% of the window',
    'max_tokens must be at most 1/4 of the window',
    'max_tokens must be at most 4x of that of gpt-4',
    'max_tokens must be at most 4096-8192',
    'max_tokens must be <= -1',
    'You can have up to 16 tools. Lower max_tokens',
    'Only 1 is allowed for n when max_tokens is set',
  ])('that counts something else is left: %s', (message) => {
    expect(readLimit(message, 'max_tokens', 100_000)).toEqual({ value: 100_000, isRemembered: false });
  });

  test.each([
    [6250, true],
    [6249, false],
    [16, false],
  ])('of %i for 100,000 is used, and remembered from a sixteenth on: %s', (limit, isRemembered) => {
    expect(readLimit(`max_tokens must be <= ${limit}`, 'max_tokens', 100_000)).toEqual({
      value: limit,
      isRemembered,
    });
  });
});

describe('Z2 a number of another field', () => {
  test.each([
    ['temperature must be between 0 and 2', 'temperature', 3, 2],
    ['temperature must be between 0,0 and 2,0', 'temperature', 3, 3],
    ['temperature must be in [0,1]', 'temperature', 3, 1],
    ['temperature should be in the range [0,1]', 'temperature', 3, 1],
    ['temperature: range: 0..1', 'temperature', 3, 1],
    ['temperature must be at most 1.5', 'temperature', 3, 1.5],
    ['temperature must be at most 1.5 tokens', 'temperature', 3, 3],
    ['temperature is fixed at 1', 'temperature', 3, 1],
    ['temperature only supports 1', 'temperature', 3, 1],
    ['this model only supports temperature=1', 'temperature', 3, 1],
    ['temperature must be 0 or 1', 'temperature', 3, 3],
    ['temperature must be 0, 0.5 or 1', 'temperature', 3, 3],
    ['top_k must be at most 40', 'top_k', 100, 40],
    ['top_k must be at most 40 when 4 images are sent', 'top_k', 100, 40],
    ['Invalid top_k. Send at most 3 stop sequences', 'top_k', 100, 100],
  ])('%s', (message, field, asked, expected) => {
    expect(readLimit(message, field, asked).value).toBe(expected);
  });
});
