/** The erasure of a user beside requests that run (Y10), in workerd: of the user, of others, and those that end after the search. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, textOf } from '../../tools/simulator/json.ts';
import { chat, jsonOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';
import { HeldUpstream, WORD } from './held-upstream.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const ERASURES = encodeURIComponent('*erasures');
const DAY_MS = 86_400_000;
const HELD = 'mistral/mistral-small-latest';
/** Answers at once. */
const QUICK = 'openai/gpt-4o-mini';

describe.each(['object', 'kv'])('Y10 LEDGER=%s', (LEDGER) => {
  const upstream = new HeldUpstream();
  let gateway: Gateway;
  let key: Readonly<Record<string, string>>;
  beforeAll(async () => {
    const url = await upstream.listen();
    gateway = await startGateway({
      entrypoint: 'later-worker.ts',
      vars: { AUTH: 'keys', RESPONSES: 'durable', LEDGER, DEADLINE_SECONDS: '60', MISTRAL_BASE_URL: url },
    });
    const made = await jsonOf(await gateway.post('/admin/keys', { name: 'k' }, { headers: ADMIN }));
    key = { authorization: `Bearer ${textOf(made.key)}` };
  });
  afterAll(async () => {
    upstream.close();
    await gateway[Symbol.asyncDispose]();
  });

  async function control(path: string): Promise<void> {
    const response = await gateway.fetch(`/test/${path}`);
    if (!response.ok) throw new Error(await response.text());
    await response.text();
  }

  /** A stream of this user, which has its first output. */
  async function openStream(user: string) {
    const response = await gateway.post('/v1/chat/completions', streamedChat(HELD), {
      headers: { ...key, 'x-weir-user': user },
    });
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    let text = '';
    while (!text.includes(WORD)) text += decoder.decode((await reader?.read())?.value, { stream: true });
    return async () => {
      for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
        text += decoder.decode(part.value, { stream: true });
      return text;
    };
  }

  async function askAs(user: string): Promise<number> {
    const headers = { ...key, 'x-weir-user': user };
    const response = await gateway.post('/v1/chat/completions', chat(QUICK), { headers });
    await response.text();
    return response.status;
  }

  /** The lines of the user's export that have data. */
  async function storedOf(user: string): Promise<readonly JsonObject[]> {
    const response = await gateway.fetch(`/v1/admin/users/${user}/export`, { headers: ADMIN });
    const lines = (await response.text()).trim().split('\n');
    expect(decodeObject(lines.at(-1) ?? '')?.type).toBe('end');
    return lines.slice(1, -1).map((line) => decodeObject(line) ?? {});
  }

  const countOf = async (user: string, type: string) =>
    (await storedOf(user)).filter((line) => line.type === type).length;

  async function erase(user: string): Promise<string> {
    const started = await gateway.fetch(`/v1/admin/users/${user}`, { method: 'DELETE', headers: ADMIN });
    expect(started.status).toBe(202);
    return textOf((await jsonOf(started)).id);
  }

  const statusOf = async (id: string) =>
    textOf((await jsonOf(await gateway.fetch(`/v1/admin/erasures/${id}`, { headers: ADMIN }))).status);

  async function advance(id: string, phase: string): Promise<void> {
    await expect
      .poll(async () => {
        await control(`fire?name=${ERASURES}`);
        return statusOf(id);
      })
      .toBe(phase);
  }

  test('streams that run when it begins end whole, new ones are refused, and their records are erased', async () => {
    const [ada, ben] = ['ada-1', 'ben-1'];
    const ends = [await openStream(ada), await openStream(ben)];
    const id = await erase(ada);
    await control('later?ms=31000');
    expect(await askAs(ada)).toBe(403);
    expect(await askAs(ben)).toBe(200);
    upstream.finish();
    for (const end of ends) expect(await end()).toMatch(/data: \[DONE\]\n\n$/);
    await expect.poll(() => countOf(ada, 'record')).toBe(1);
    await control(`fire?name=${ERASURES}`);
    expect(await statusOf(id)).toBe('waiting');
    await control(`later?ms=${3 * 60_000}`);
    await advance(id, 'erased');
    expect(await storedOf(ada)).toEqual([]);
    await expect.poll(() => countOf(ben, 'record')).toBe(2);
  });

  test('a stream that ends after the search: the late search erases its record, and what came later stays', async () => {
    const ada = 'ada-2';
    const end = await openStream(ada);
    const id = await erase(ada);
    await control(`later?ms=${4 * 60_000}`);
    await advance(id, 'erased');
    upstream.finish();
    await end();
    await expect.poll(() => countOf(ada, 'record')).toBe(1);
    await control('later?ms=61000');
    // The user comes back.
    expect(await askAs(ada)).toBe(200);
    await expect.poll(() => countOf(ada, 'record')).toBe(2);
    await control(`later?ms=${15 * DAY_MS}`);
    await advance(id, 'done');
    expect(await countOf(ada, 'record')).toBe(1);
  });

  test('a background response of the user that runs: it is erased with its record', async () => {
    const ada = 'ada-3';
    const made = await jsonOf(
      await gateway.post('/admin/keys', { name: 'of ada', user: ada }, { headers: ADMIN }),
    );
    const headers = { authorization: `Bearer ${textOf(made.key)}` };
    const body = { model: HELD, input: 'Hello', background: true };
    const response = await jsonOf(await gateway.post('/v1/responses', body, { headers }));
    const path = `/v1/responses/${textOf(response.id)}`;
    await expect.poll(() => upstream.open).toBe(1);
    const id = await erase(ada);
    upstream.finish();
    const read = async () => jsonOf(await gateway.fetch(path, { headers }));
    await expect.poll(read).toMatchObject({ status: 'completed', error: null });
    await expect.poll(() => countOf(ada, 'record')).toBe(1);
    await control(`later?ms=${4 * 60_000}`);
    await advance(id, 'erased');
    expect(await storedOf(ada)).toEqual([]);
    expect((await gateway.fetch(path, { headers: key })).status).toBe(404);
  });

  test('requests of others while the stores are searched, several times at once: none is refused, lost or erased', async () => {
    const [ada, ben] = ['ada-4', 'ben-4'];
    for (let n = 0; n < 5; n++) expect(await askAs(ada)).toBe(200);
    await expect.poll(() => countOf(ada, 'record')).toBe(5);
    const id = await erase(ada);
    await control(`later?ms=${4 * 60_000}`);
    const statuses = await Promise.all([
      ...Array.from({ length: 20 }, () => askAs(ben)),
      ...Array.from({ length: 3 }, async () => {
        await control(`fire?name=${ERASURES}`);
        return 200;
      }),
    ]);
    expect(new Set(statuses)).toEqual(new Set([200]));
    await advance(id, 'erased');
    expect(await storedOf(ada)).toEqual([]);
    await expect.poll(() => countOf(ben, 'record')).toBe(20);
  });
});
