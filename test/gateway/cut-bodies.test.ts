/** A non-streaming response that ends too early: the error says so, and has nothing of the text. */
import { expect, test } from 'vitest';
import { decodeObject, objectOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

const CUT = '{"id":"a","choices":[{"message":{"content":"secret wo';

test.each([
  [
    'in the middle of a text',
    CUT,
    `a response of ${CUT.length} characters that is not valid JSON: it ends too early, at line 1`,
  ],
  ['before its first character', '', 'a response of 0 characters that is empty'],
  ['with something else than JSON', '<html>', 'that is not valid JSON: the error is at line 1, column 1'],
  ['with a list', '[1]', 'that is a list'],
])('E1 a body that ends %s', async (_, text, words) => {
  const fetch = async () => new Response(text, { headers: { 'content-type': 'application/json' } });
  const gateway = new LimitedGateway({ RETRIES: '0' }, { fetch });
  const response = await gateway.ask(await gateway.key());
  const { message, code } = objectOf(decodeObject(await response.text())?.error);
  expect([response.status, code]).toEqual([502, 'upstream_invalid']);
  expect(message).toContain(words);
  expect(message).not.toContain('secret');
});
