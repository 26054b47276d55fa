/** The 401 of a credential that is no gateway key: it says what the credential looks like, and never contains it. */
import { expect, test } from 'vitest';
import { decodeObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

test.each([
  ['sk-proj-0f1e2d3c4b5a69788796a5b4', 'this looks like a key of OpenAI'],
  ['sk-ant-api03-0f1e2d3c4b5a69788', 'this looks like a key of Anthropic'],
  ['AIzaSy0f1e2d3c4b5a69788796a5b4', 'this looks like a key of Gemini'],
  ['gsk_0f1e2d3c4b5a69788796a5b4c3', 'this looks like a key of Groq'],
  ['sk-0f1e2d3c4b5a69788796a5b4c3d', 'this looks like a key of a provider'],
  ['0f1e2d3c4b5a69788796a5b4c3d2e1', "Weir's keys begin with weir_, and this is none"],
  ['weir_0f1e2d3c4b5a69788796a5b4c', 'This key is unknown, revoked, disabled or expired'],
  ['admin', 'The admin token is no gateway key: it creates keys (POST /admin/keys)'],
])('the credential %s is refused with a hint: %s', async (token, hint) => {
  const response = await new LimitedGateway().ask(token);
  expect(response.status).toBe(401);
  const text = await response.text();
  const error = objectOf(decodeObject(text)?.error);
  expect(error.code).toBe('invalid_api_key');
  expect(textOf(error.message)).toContain(hint);
  if (token !== 'admin') expect(text).not.toContain(token);
});

test('PATCH /admin/keys/:id names a field that a key does not have, and the nearest one', async () => {
  const gateway = new LimitedGateway();
  const created = await gateway.post('/admin/keys', 'admin', { name: 'a' });
  const id = textOf(decodeObject(await created.text())?.id);
  const body = JSON.stringify({ modles: ['openai/*'] });
  const response = await gateway.fetch(`/admin/keys/${id}`, 'admin', { method: 'PATCH', body });
  const { message, param } = objectOf(decodeObject(await response.text())?.error);
  expect([response.status, param]).toEqual([400, 'modles']);
  expect(textOf(message)).toContain('"modles": did you mean models?');
});

test('POST /admin/keys names a field that a key does not have, and the nearest one', async () => {
  const response = await new LimitedGateway().post('/admin/keys', 'admin', { name: 'a', bugdet: { USD: 1 } });
  const { message, param } = objectOf(decodeObject(await response.text())?.error);
  expect(param).toBe('bugdet');
  expect(textOf(message)).toMatch(
    /^A key has no field "bugdet": did you mean budget\? The fields are name, models, /,
  );
});
