/** `docs/openapi.json` against live responses: each operation is called, and what comes back has the schema that the document gives it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@cfworker/json-schema';
import { afterAll, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { ADMIN_TOKEN, startGateway } from './gateway.ts';

const FILE = join(import.meta.dirname, '..', '..', 'docs', 'openapi.json');
const document = decodeObject(readFileSync(FILE, 'utf8')) ?? {};
const paths = objectOf(document.paths);
const gateway = await startGateway({ vars: { AUTH: 'keys', LEDGER: 'object', RESPONSES: 'durable' } });
afterAll(() => gateway[Symbol.asyncDispose]());

const called = new Set<string>();
const MODEL = 'deepseek/deepseek-flash';
const MESSAGES = [{ role: 'user', content: 'Why a weir?' }];

interface Call {
  readonly key?: string;
  readonly body?: JsonObject;
  /** Values of the path's parameters. */
  readonly values?: Readonly<Record<string, string>>;
  readonly query?: string;
  /** Default: the status of success. */
  readonly status?: number;
}

/** Checks a value against a schema of the document, whose references it resolves. */
function problemsOf(schema: JsonObject, value: unknown): readonly string[] {
  const validator = new Validator({ ...schema, components: document.components ?? null }, '2020-12', false);
  const { errors } = validator.validate(value);
  return errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`);
}

/** Calls an operation and checks status and body. */
async function call(method: string, path: string, options: Call = {}): Promise<JsonObject> {
  const { key = ADMIN_TOKEN, body, values = {}, query = '', status } = options;
  const operation = objectOf(objectOf(paths[path])[method.toLowerCase()]);
  expect(operation, `${method} ${path} in docs/openapi.json`).not.toEqual({});
  if (body !== undefined) {
    const { schema } = objectOf(objectOf(objectOf(operation.requestBody).content)['application/json']);
    expect(problemsOf(objectOf(schema), body), `${method} ${path}, body of the request`).toEqual([]);
  }
  const url = path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '') + query;
  const response = await gateway.fetch(url, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const responses = objectOf(operation.responses);
  const [success = ''] = Object.keys(responses);
  expect(response.status, text).toBe(status ?? Number(success));
  const described = objectOf(responses[String(response.status)] ?? responses.default);
  const json = objectOf(described.content)['application/json'];
  if (status === undefined) called.add(`${method} ${path}`);
  if (json === undefined) return {};
  const value: unknown = JSON.parse(text);
  expect(
    problemsOf(objectOf(objectOf(json).schema), value),
    `${method} ${path}: ${text.slice(0, 500)}`,
  ).toEqual([]);
  return objectOf(value);
}

const made = await call('POST', '/admin/keys', {
  body: {
    name: 'openapi',
    budget: { USD: 5, per: 'month' },
    rpm: 600,
    per_user: { rpm: 60 },
    tags: { team: 'docs' },
  },
});
// A budget refuses models without a price.
const unlimited = await call('POST', '/admin/keys', { body: { name: 'unlimited' } });
const key = textOf(unlimited.key);
const limitedKey = textOf(made.key);
const values = { id: textOf(made.id) };

test('completions, messages, responses, embeddings and counts', async () => {
  await call('POST', '/v1/chat/completions', { key, body: { model: MODEL, messages: MESSAGES } });
  await call('POST', '/v1/completions', {
    key,
    body: { model: 'openai/gpt-3.5-turbo-instruct', prompt: 'A weir' },
  });
  await call('POST', '/v1/fim/completions', {
    key,
    body: { model: 'codestral/codestral-latest', prompt: 'def f(', suffix: ')' },
  });
  await call('POST', '/v1/agents/completions', {
    key,
    body: { agent_id: 'mistral/ag_weir', messages: MESSAGES },
  });
  await call('POST', '/v1/embeddings', {
    key,
    body: { model: 'openai/text-embedding-3-small', input: 'weir' },
  });
  const message = { model: MODEL, max_tokens: 100, messages: MESSAGES };
  await call('POST', '/v1/messages', { key, body: message });
  await call('POST', '/v1/messages/count_tokens', { key, body: message });
  await call('POST', '/v1/responses/input_tokens', { key, body: { model: MODEL, input: 'Why a weir?' } });
});

test('Gemini’s routes', async () => {
  const content = { role: 'user', parts: [{ text: 'Why a weir?' }] };
  const contents = [content];
  const values = { model: MODEL };
  await call('POST', '/v1beta/models/{model}:generateContent', { key, values, body: { contents } });
  await call('POST', '/v1beta/models/{model}:streamGenerateContent', { key, values, body: { contents } });
  await call('POST', '/v1beta/models/{model}:countTokens', { key, values, body: { contents } });
  const embedder = 'openai/text-embedding-3-small';
  await call('POST', '/v1beta/models/{model}:embedContent', {
    key,
    values: { model: embedder },
    body: { content },
  });
  await call('POST', '/v1beta/models/{model}:batchEmbedContents', {
    key,
    values: { model: embedder },
    body: { requests: [{ model: `models/${embedder}`, content }] },
  });
});

test('kept responses', async () => {
  const body = { model: MODEL, input: 'Why a weir?', store: true };
  const id = textOf((await call('POST', '/v1/responses', { key, body })).id);
  await call('GET', '/v1/responses/{id}', { key, values: { id } });
  await call('GET', '/v1/responses/{id}/input_items', { key, values: { id } });
  const background = await call('POST', '/v1/responses', { key, body: { ...body, background: true } });
  await call('POST', '/v1/responses/{id}/cancel', { key, values: { id: textOf(background.id) } });
  await call('DELETE', '/v1/responses/{id}', { key, values: { id } });
});

test('models', async () => {
  await call('GET', '/v1/models', { key });
  await call('GET', '/v1/models', { key, query: '?details=true' });
  await call('GET', '/v1/models/{id}', { key, values: { id: MODEL }, query: '?details=true' });
});

test('reports, records and refusals', async () => {
  const failing = { model: 'mistral/mistral-small-latest:status-429', messages: MESSAGES };
  await call('POST', '/v1/chat/completions', { key, body: failing, status: 429 });
  await call('POST', '/v1/chat/completions', { key: 'weir_unknown', body: failing, status: 401 });
  await gateway.logged((lines) =>
    lines.some(({ event, status }) => event === 'request' && status === 'failed'),
  );
  await call('GET', '/v1/usage', { key, query: '?group_by=day,model,status' });
  const list = await call('GET', '/v1/usage/records', { key });
  const [record] = Array.isArray(list.data) ? list.data : [];
  await call('GET', '/v1/usage/records/{id}', { key, values: { id: textOf(objectOf(record).request_id) } });
  await call('GET', '/v1/usage/refusals', { query: '?group_by=code,key' });
});

test('teams', async () => {
  const limits = { budget: { USD: 5, per: 'month' }, per_key: { rpm: 9 }, per_user: { rpm: 3 } };
  const team = { id: textOf((await call('POST', '/v1/admin/teams', { body: { name: 'a', ...limits } })).id) };
  await call('GET', '/v1/admin/teams');
  await call('PATCH', '/v1/admin/teams/{id}', { values: team, body: { per_key: { rpm: 10 }, tpm: 5 } });
  await call('POST', '/v1/admin/teams/{id}/budget', { values: team, body: { add: { USD: 1 } } });
  await call('GET', '/v1/admin/teams/{id}', { values: team });
  const member = textOf((await call('POST', '/admin/keys', { body: { name: 'a', team: team.id } })).id);
  await call('GET', '/admin/keys/{id}', { values: { id: member } });
  await call('DELETE', '/v1/admin/teams/{id}', { values: team, status: 409 });
  await call('PATCH', '/admin/keys/{id}', { values: { id: member }, body: { team: null } });
  await call('DELETE', '/v1/admin/teams/{id}', { values: team });
});

test('keys, their limits, the audit and the status', async () => {
  await call('GET', '/v1/key', { key });
  await call('GET', '/v1/key', { key: limitedKey });
  const reader = { name: 'BI', scope: 'usage', filter: { user: 'ada' }, expires_at: '2999-01-01' };
  const token = await call('POST', '/admin/keys', { body: reader });
  await call('GET', '/v1/usage', { key: textOf(token.key) });
  await call('GET', '/admin/keys');
  await call('GET', '/admin/keys/{id}', { values, query: '?user=ada' });
  await call('PATCH', '/admin/keys/{id}', {
    values,
    body: { rpm: null, models: ['deepseek/*'], disabled: true },
  });
  await call('POST', '/v1/admin/keys/{id}/rotate', { values, body: { overlap_hours: 1 } });
  await call('POST', '/v1/admin/keys/{id}/budget', { values, body: { add: { USD: 1 }, note: 'launch' } });
  await call('GET', '/admin/keys/{id}/limits', { values });
  await call('PUT', '/admin/keys/{id}/limits', { values, body: { tpm: 1000 } });
  await call('DELETE', '/admin/keys/{id}/limits', { values });
  await call('DELETE', '/admin/keys/{id}', { values });
  await call('GET', '/admin/keys/{id}', { values, status: 404 });
  await call('GET', '/v1/admin/audit');
  await call('GET', '/v1/admin/status');
  await call('GET', '/v1/admin/users/{name}/export', { values: { name: 'ada' } });
  const erasure = await call('DELETE', '/v1/admin/users/{name}', { values: { name: 'ada' } });
  await call('GET', '/v1/admin/erasures/{id}', { values: { id: textOf(erasure.id) } });
});

test('the rest, and every operation with a JSON body was called', async () => {
  await call('GET', '/health');
  await call('POST', '/v1/messages', {
    key: 'weir_unknown',
    body: { model: MODEL, messages: MESSAGES },
    status: 401,
  });
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(objectOf(methods)).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const missing = operations.filter(
    (operation) => !called.has(operation) && !operation.startsWith('GET /dashboard'),
  );
  expect(missing, 'operations of docs/openapi.json that no test above calls').toEqual([]);
});
