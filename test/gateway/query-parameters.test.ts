/** Query parameters that a route does not have (M11): refused on reports, lists and admin routes, ignored where clients call. */
import { describe, expect, test } from 'vitest';
import {
  AUDIT_PARAMS,
  KEY_FILTER,
  RECORD_PARAMS,
  REFUSAL_PARAMS,
  STATUS_PARAMS,
  USAGE_PARAMS,
} from '../../src/api/parameters.ts';
import { decodeObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

const ADMIN = 'admin';
const gateway = new LimitedGateway({}, { fetch: async () => Response.json({}) });

async function errorOf(path: string, token = ADMIN, init?: RequestInit) {
  const response = await gateway.fetch(path, token, init);
  const error = objectOf(decodeObject(await response.text())?.error);
  return {
    status: response.status,
    code: error?.code,
    param: error?.param,
    message: textOf(error?.message ?? ''),
  };
}

const KEY = '/admin/keys/0123456789abcdef';

describe('M11 a parameter that is one letter off', () => {
  test.for([
    ['/v1/usage?form=2026-11-28', 'form', 'from'],
    ['/v1/usage?from=2026-11-28&grup_by=model', 'grup_by', 'group_by'],
    ['/v1/usage?modle=deepseek/x', 'modle', 'model'],
    ['/v1/usage/records?limt=5', 'limt', 'limit'],
    ['/v1/usage/records?sesion=a', 'sesion', 'session'],
    ['/v1/usage/records/01a20438-8440-72d2-9401-d408940ad56d?kye=a', 'kye', 'key'],
    ['/v1/usage/refusals?group_bi=code', 'group_bi', 'group_by'],
    ['/v1/admin/audit?curser=a', 'curser', 'cursor'],
    ['/v1/admin/status?onyl=isolate', 'onyl', 'only'],
    [`${KEY}?usr=ada`, 'usr', 'user'],
  ] as const)('%s: a 400 that names the nearest one', async ([path, param, nearest]) => {
    const error = await errorOf(path);
    expect(error).toMatchObject({ status: 400, code: 'invalid_request', param });
    expect(error.message).toContain(`has no parameter "${param}": did you mean ${nearest}?`);
  });
});

describe('M11 a parameter of a route that takes others, or none', () => {
  test.for([
    ['/v1/usage?search=a', 'search'],
    ['/v1/usage/refusals?model=a', 'model'],
    ['/admin/keys?limit=1', 'limit'],
    ['/v1/admin/status?_=1', '_'],
    ['/v1/usage?=1', ''],
  ] as const)('%s is a 400', async ([path, param]) => {
    expect(await errorOf(path)).toMatchObject({ status: 400, code: 'invalid_request', param });
  });

  test.for([
    ['POST', '/admin/keys?name=a'],
    ['PATCH', `${KEY}?disabled=true`],
    ['DELETE', `${KEY}?force=true`],
    ['PUT', `${KEY}/limits?per=day`],
  ] as const)('%s %s is a 400, and nothing is made or changed', async ([method, path]) => {
    const body = method === 'DELETE' ? {} : { body: JSON.stringify({ name: 'a' }) };
    expect(await errorOf(path, ADMIN, { method, ...body })).toMatchObject({ status: 400 });
    const keys = decodeObject(await (await gateway.fetch('/admin/keys', ADMIN)).text());
    expect(keys).toMatchObject({ data: [] });
  });

  test('a name of 10,000 characters is cut, and a value is in no message', async () => {
    const error = await errorOf(`/v1/usage?${'x'.repeat(10_000)}=hidden-value`);
    expect(error.message.length).toBeLessThan(500);
    expect(JSON.stringify(error)).not.toContain('hidden-value');
  });

  test('a wrong token is a 401 before its parameters are read', async () => {
    expect(await errorOf('/v1/usage?form=a', 'weir_wrong')).toMatchObject({ status: 401 });
    expect(await errorOf('/admin/keys?form=a', 'weir_wrong')).toMatchObject({ status: 401 });
  });
});

test('M11 every parameter that a route has is taken, and those of clients are ignored', async () => {
  for (const [path, names] of [
    ['/v1/usage', USAGE_PARAMS],
    ['/v1/usage/records', RECORD_PARAMS],
    ['/v1/usage/records/a', KEY_FILTER],
    ['/v1/usage/refusals', REFUSAL_PARAMS],
    ['/v1/admin/audit', AUDIT_PARAMS],
    ['/v1/admin/status', STATUS_PARAMS],
  ] as const)
    for (const name of Object.keys(names))
      expect((await errorOf(`${path}?${name}=a`)).message, name).not.toContain('has no parameter');
  const body = JSON.stringify({
    model: 'deepseek/deepseek-chat',
    messages: [{ role: 'user', content: 'Hi' }],
  });
  for (const path of ['/v1/models', '/v1/key', '/health'])
    expect((await gateway.fetch(`${path}?beta=true&api-version=1&alt=sse`, ADMIN)).status, path).not.toBe(
      400,
    );
  const { message } = await errorOf('/v1/chat/completions?beta=true&alt=sse', ADMIN, {
    method: 'POST',
    body,
  });
  expect(message).not.toContain('has no parameter');
});
