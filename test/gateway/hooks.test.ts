/** The host's hooks: the callers that they identify, the records that they get, and hooks that fail. */
import { describe, expect, test } from 'vitest';
import type { Ports } from '../../src/http/context.ts';
import { NO_HOOKS, withRecordHook } from '../../src/http/hooks.ts';
import type { ChargedRecord } from '../../src/metering/record.ts';
import { RecordWriter } from '../../src/metering/record-writer.ts';
import { decodeObject, textOf } from '../../tools/simulator/json.ts';
import { record } from '../metering/records.ts';
import { LimitedGateway } from './limited-gateway.ts';

function onRequest(): never {
  throw new Error('broken on purpose');
}

describe('I1 W2 onRequest that throws: 500 without details', () => {
  const message = 'The Worker around Weir failed on this request; its log has the reason';
  const gateway = new LimitedGateway({ AUTH: 'open' }, {}, { ...NO_HOOKS, onRequest });
  const openai = { error: { type: 'server_error', code: 'internal_error', message } };
  const anthropic = { type: 'error', error: { type: 'api_error', message } };

  test.each([
    ['/v1/chat/completions', openai],
    ['/v1/responses', openai],
    ['/v1/messages', anthropic],
    ['/messages/count_tokens', anthropic],
  ])('%s: the error is in the client’s form', async (path, form) => {
    const response = await gateway.post(path, 'x', {});
    expect(response.status).toBe(500);
    const body = decodeObject(await response.text());
    expect(body).toMatchObject(form);
    if (path.includes('messages')) expect(body?.request_id).toBe(response.headers.get('request-id'));
  });
});

test('T4 a client that disconnects while onRequest runs: no upstream is called, and there is no record', async () => {
  const client = new AbortController();
  const runner = { ...NO_HOOKS, onRequest: () => client.abort() };
  const gateway = new LimitedGateway({ AUTH: 'open' }, {}, runner);
  for (const stream of [true, false]) {
    await gateway.ask('x', { stream }, { signal: client.signal }).catch(() => undefined);
    await gateway.idle();
  }
  expect(gateway.calls).not.toContain('upstream');
  expect(gateway.logged).toEqual([]);
});

/** A gateway whose host identifies callers by the bearer token `host:<id>`. */
function hostGateway(fetch?: (input: unknown, init?: RequestInit) => Promise<Response>): LimitedGateway {
  const onRequest = (request: Request) => {
    const [, id] = (request.headers.get('authorization') ?? '').split('Bearer ');
    // Other tokens are gateway keys or provider keys, which AUTH handles.
    return id?.startsWith('host:') ? { id: id.slice('host:'.length) } : null;
  };
  return new LimitedGateway({}, fetch === undefined ? {} : { fetch }, { ...NO_HOOKS, onRequest });
}

describe('W2 K1 the key id of a host’s caller in records and ledgers', () => {
  async function idOf(gateway: LimitedGateway, token: string): Promise<string> {
    return textOf(decodeObject(await (await gateway.fetch('/v1/key', token)).text())?.id);
  }

  test('a host id that equals the hash of another host id is another caller', async () => {
    const gateway = hostGateway();
    const hashed = await idOf(gateway, 'host:ada@example.com');
    const [digits = ''] = /[0-9a-f]{16}$/.exec(hashed) ?? [];
    expect(digits).not.toBe('');
    for (const impostor of [digits, hashed]) {
      expect(await idOf(gateway, `host:${impostor}`)).not.toBe(hashed);
    }
  });

  test('a host id that equals the id of a gateway key is another caller', async () => {
    const gateway = hostGateway();
    const token = await gateway.key();
    const id = await idOf(gateway, token);
    expect(await idOf(gateway, `host:${id}`)).not.toBe(id);
  });

  test.each(['open', 'ada', '0'.repeat(16), 'host_ada', '0a1b2c3d-0000-4000-8000-0123456789ab'])(
    'the host id %s: has a prefix, is short enough for a record, and is the same each time',
    async (id) => {
      const gateway = hostGateway();
      const keyId = await idOf(gateway, `host:${id}`);
      expect(keyId).toMatch(/^host_[\w-]{1,36}$/);
      expect(await idOf(gateway, `host:${id}`)).toBe(keyId);
    },
  );

  test('two callers whose ids and idempotency keys are equal when joined: the upstream gets different keys', async () => {
    const sent: (string | null)[] = [];
    const gateway = hostGateway(async (_, init) => {
      sent.push(new Headers(init?.headers).get('idempotency-key'));
      return Response.json({}, { status: 400 });
    });
    const requested: readonly [id: string, key: string][] = [
      ['a', 'b-c'],
      ['a-b', 'c'],
      ['a', '-b-c'],
      ['a","b', 'c'],
      ['a', 'b-c'],
    ];
    for (const [id, key] of requested) {
      const body = JSON.stringify({ model: 'openai/gpt-5', messages: [{ role: 'user', content: 'a' }] });
      const headers = { 'idempotency-key': key };
      await gateway.fetch('/v1/chat/completions', `host:${id}`, { method: 'POST', body, headers });
    }
    expect(new Set(sent).size).toBe(requested.length - 1);
    expect(sent[0]).toBe(sent.at(-1));
  });
});

test('W2 G3 onRecord of a request whose charge differs from its record: gets the record without the charge', async () => {
  const got: unknown[] = [];
  const written: unknown[] = [];
  const writer = new RecordWriter([{ put: async (records) => void written.push(...records) }], () => {});
  const waiting: Promise<unknown>[] = [];
  const records = withRecordHook(
    writer,
    async (record) => void got.push(record),
    // Only the log is used, when a hook fails.
    { ports: { log: () => {} } as unknown as Ports, waitUntil: (work) => void waiting.push(work) },
  );
  const charged: ChargedRecord = { ...record(), charge: { tokens: 1, cost: null } };
  await records.write(charged, () => () => {});
  await Promise.all(waiting);
  expect(got).toEqual([record()]);
  expect(written).toEqual([charged]);
});
