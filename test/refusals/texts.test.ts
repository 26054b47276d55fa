/** Reads real refusals, and changes the request that they refuse. */
import { describe, expect, test } from 'vitest';
import { readUpstreamRefusal } from '../../src/canonical/upstream-error.ts';
import { changeOf } from '../../src/fitting/fit.ts';
import { readStatements } from '../../src/fitting/statements.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { compareWithRequest } from '../../src/upstream/provider-message.ts';
import { REFUSAL_TEXTS } from '../../tools/simulator/refusal-texts.ts';
import { PLAIN_FORM } from '../fitting/plain-form.ts';

const BASE = { model: 'unknown-1', messages: [{ role: 'user', content: 'Hello' }] };

describe('Z2 Z3 refusals', () => {
  test.each(REFUSAL_TEXTS.map((row) => [row.name, row] as const))('%s', (_, { text, sent, mended }) => {
    const body: JsonObject = { ...BASE, ...sent };
    const { message = '', code = '', param } = readUpstreamRefusal(text);
    const all = readStatements({ message, code, field: param }, { body, betas: [] });
    const comparison = compareWithRequest(
      message,
      body,
      all.map(({ claim }) => claim),
    );
    const statements = all.filter(({ claim }) => comparison !== null && !comparison.isEcho(claim));
    const options = { unsupported: 'auto', form: PLAIN_FORM } as const;
    let changed = body;
    for (const { finding } of statements) changed = changeOf(finding, changed, options)?.body ?? changed;
    expect(changed, JSON.stringify({ message, statements })).toEqual(
      mended === null ? body : { ...BASE, ...mended },
    );
  });

  test.each([
    ['temperature must be ≤ 1', { temperature: 2 }, { temperature: 1 }],
    ['top_p must be ≥ 0.5', { top_p: 0.1 }, { top_p: 0.5 }],
  ])('a bound that is written as a sign: %s', (message, sent, mended) => {
    const request = { body: { ...BASE, ...sent }, betas: [] };
    const [statement] = readStatements({ message, code: '', field: undefined }, request);
    const options = { unsupported: 'auto', form: PLAIN_FORM } as const;
    expect(statement && changeOf(statement.finding, request.body, options)?.body).toEqual({
      ...BASE,
      ...mended,
    });
  });
});
