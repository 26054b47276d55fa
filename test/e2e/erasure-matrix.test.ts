/** The erasure of one user (Y10) in workerd: a search of everything that is stored, on both ledgers, with records in the queue. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { sampleOf } from '../random-run.ts';
import { chat, jsonOf } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const MODEL = 'openai/gpt-4o-mini';
const DAY_MS = 86_400_000;
/** Without a name of the object, its alarm cannot be fired. */
const ERASURES = '*erasures';

interface Made {
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
}

describe.each<[users: string, vars: Readonly<Record<string, string>>]>([
  ['plain', {}],
  ['hash', { USERS: 'hash', USER_HASH_KEY: 'a secret of users' }],
])('Y10 with USERS=%s', (users, userVars) => {
  let gateway: Gateway;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'weir-erasure-'));
    gateway = await startGateway({
      entrypoint: 'later-worker.ts',
      persist: folder,
      vars: { AUTH: 'keys', RESPONSES: 'durable', DEADLINE_SECONDS: '60', ...userVars },
    });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const admin = async (method: string, path: string) =>
    jsonOf(await gateway.fetch(path, { method, headers: ADMIN }));
  const control = async (path: string) => {
    const response = await gateway.fetch(`/test/${path}`);
    if (!response.ok) throw new Error(await response.text());
    return response.text();
  };

  async function makeKey(fields: JsonObject): Promise<Made> {
    const made = await jsonOf(
      await gateway.post('/admin/keys', { name: 'k', ...fields }, { headers: ADMIN }),
    );
    return { id: textOf(made.id), headers: { authorization: `Bearer ${textOf(made.key)}` } };
  }

  /** @returns the status, and the code of an error */
  async function ask(key: Made, user: string, path = '/v1/chat/completions', body: JsonObject = chat(MODEL)) {
    const headers = { ...key.headers, 'x-weir-user': user, 'x-weir-session': `session of ${user}` };
    const response = await gateway.post(path, body, { headers });
    return [response.status, objectOf((await jsonOf(response)).error).code ?? null];
  }

  async function recordsOf(user: string): Promise<readonly JsonObject[]> {
    const response = await gateway.fetch(`/v1/admin/users/${user}/export`, { headers: ADMIN });
    const lines = (await response.text()).trim().split('\n');
    expect(decodeObject(lines.at(-1) ?? '')?.type).toBe('end');
    return lines.map((line) => decodeObject(line) ?? {}).filter(({ type }) => type === 'record');
  }

  async function spentBy(user: string, key: Made): Promise<number> {
    const shown = await admin('GET', `/admin/keys/${key.id}?user=${user}`);
    return Number(objectOf(objectOf(shown.per_user).budget).spent);
  }

  /** Everything in KV and in the tables of all objects. */
  async function everything(): Promise<readonly string[]> {
    const kv = await gateway.entries('');
    const files = readdirSync(join(folder, 'do'), { recursive: true, withFileTypes: true });
    const rows = files
      .filter((file) => file.isFile() && file.name.endsWith('.sqlite'))
      .flatMap(({ parentPath, name }) => {
        const path = join(parentPath, name);
        const database = new DatabaseSync(path, { readOnly: true });
        const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
        const found = tables.flatMap((table) => {
          const rows = database.prepare(`SELECT * FROM "${String(table.name)}"`);
          // Times of alarms are in nanoseconds.
          rows.setReadBigInts(true);
          return rows.all().map((row) => {
            const values = Object.values(row).map(textOfValue).join(' | ');
            return `${name} ${String(table.name)} ${values}`;
          });
        });
        database.close();
        return found;
      });
    expect(kv.length).toBeGreaterThan(5);
    expect(rows.length).toBeGreaterThan(10);
    return [...kv.map((entry) => JSON.stringify(entry)), ...rows];
  }

  const textOfValue = (value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value);

  /** What is stored that has one of the marks. */
  async function found(marks: RegExp): Promise<readonly string[]> {
    return (await everything()).filter((text) => marks.test(text)).map((text) => text.slice(0, 300));
  }

  async function advance(id: string, phase: string): Promise<JsonObject> {
    for (let n = 0; n < 20; n++) {
      await control(`fire?name=${encodeURIComponent(ERASURES)}`);
      const shown = await admin('GET', `/v1/admin/erasures/${id}`);
      if (shown.status === phase) return shown;
      expect(shown.problem).toBeNull();
    }
    throw new Error(`The erasure is not ${phase}`);
  }

  test.each(sampleOf([users === 'plain' ? 'object' : 'kv'], ['kv', 'object']))(
    'LEDGER=%s: nothing of the user is left, and all of the others',
    async (ledger) => {
      await gateway.set({
        ...{ AUTH: 'keys', RESPONSES: 'durable', DEADLINE_SECONDS: '60', LEDGER: ledger },
        ...userVars,
      });
      const mark = `Qx${users}${ledger}`;
      const [ada, ben] = [`${mark}-ada`, `ben-${users}-${ledger}`];
      const shared = await makeKey({ per_user: { budget: { USD: 100, per: 'total' } } });
      const own = await makeKey({ name: `${mark} laptop`, user: ada });
      await makeKey({ name: `${mark} report`, scope: 'usage', filter: { user: ada } });
      const once = await makeKey({ name: `${mark} phone`, user: ada });
      expect((await admin('DELETE', `/admin/keys/${once.id}`)).deleted).toBe(true);
      for (const user of [ada, ben]) {
        expect(await ask(shared, user)).toEqual([200, null]);
        const input = `I am ${user}`;
        expect(await ask(shared, user, '/v1/responses', { model: MODEL, input })).toEqual([200, null]);
      }
      expect(await ask(own, 'somebody')).toEqual([200, null]);
      await control('hold?on=yes');
      expect(await ask(shared, ada)).toEqual([200, null]);
      await expect.poll(async () => Number(await control('hold?on=no'))).toBe(1);
      await expect.poll(async () => (await recordsOf(ada)).length).toBe(3);
      await expect.poll(() => spentBy(ada, shared)).toBeGreaterThan(0);
      // The object of a user reports within 10 s; the records of the key are settled already.
      const [record] = await recordsOf(ada);
      const stranded = { ...record, user: users === 'plain' ? ada : undefined, attempts: [] };
      if (users === 'plain')
        await gateway.put(
          `stranded/${textOf(record?.key_id)}/${textOf(record?.request_id)}`,
          JSON.stringify(stranded),
        );
      const hashed = (await gateway.entries('audit/')).flatMap(
        ({ value }) => /h_[0-9a-f]{24}/.exec(value) ?? [],
      );
      const owner = createHash('sha256')
        .update(hashed[0] ?? ada)
        .digest('hex');
      const marks = new RegExp([mark, owner, ...hashed].join('|'), 'i');
      // Each kind of store has the name before.
      const before = (await found(marks)).join('\n');
      for (const store of [
        'key/',
        'audit/',
        'usage-token/',
        'revoked-key/',
        'kept ',
        'key_users',
        'response ',
      ])
        expect(before, store).toContain(store);

      const started = await gateway.fetch(`/v1/admin/users/${ada}`, { method: 'DELETE', headers: ADMIN });
      expect(started.status).toBe(202);
      const { id, status } = await jsonOf(started);
      expect(status).toBe('waiting');
      expect((await admin('DELETE', `/v1/admin/users/${ada}`)).id).toBe(id);
      // Isolates know it after a while, and requests of others are not affected.
      await control('later?ms=31000');
      expect(await ask(shared, ada)).toEqual([403, 'user_being_erased']);
      expect(await ask(own, 'somebody')).toEqual([403, 'user_being_erased']);
      expect(await ask(shared, ben)).toEqual([200, null]);
      await control(`fire?name=${encodeURIComponent(ERASURES)}`);
      expect((await admin('GET', `/v1/admin/erasures/${textOf(id)}`)).status).toBe('waiting');

      const spent = await spentBy(ada, shared);
      await control(`later?ms=${3 * 60_000}`);
      const erased = await advance(textOf(id), 'erased');
      expect(erased.erased).toMatchObject({ keys: 1, tokens: 1, responses: 1, limits: 1 });
      expect(await found(marks)).toEqual([]);
      expect((await recordsOf(ben)).length).toBe(3);
      const day = (fromNow: number) => new Date(Date.now() + fromNow * DAY_MS).toISOString().slice(0, 10);
      const usage = await admin('GET', `/v1/usage?key=${shared.id}&from=${day(-1)}&to=${day(2)}`);
      expect(objectOf(usage.total).requests).toBe(5);

      // The record that was in the queue arrives, and the user comes back.
      expect(Number(await control('deliver'))).toBe(1);
      expect((await recordsOf(ada)).length).toBe(1);
      await control(`later?ms=${31_000}`);
      expect(await ask(shared, ada)).toEqual([200, null]);
      await expect.poll(() => spentBy(ada, shared)).toBeGreaterThan(spent);
      await expect.poll(async () => (await recordsOf(ada)).length).toBe(2);
      await control(`later?ms=${15 * DAY_MS}`);
      const late = await advance(textOf(id), 'done');
      expect(Number(objectOf(late.erased).records) - Number(objectOf(erased.erased).records)).toBe(1);
      const [returned, ...others] = await recordsOf(ada);
      expect(others).toEqual([]);
      expect(Date.parse(textOf(returned?.time)) > Date.parse(textOf(late.erased_at))).toBe(true);
      // What is known of an erasure ends with it.
      await control(`later?ms=${30 * DAY_MS}`);
      await control(`fire?name=${encodeURIComponent(ERASURES)}`);
      expect((await gateway.fetch(`/v1/admin/erasures/${textOf(id)}`, { headers: ADMIN })).status).toBe(404);
    },
  );

  test.runIf(sampleOf(users === 'hash', true))(
    'without ledger objects, each repeated DELETE takes a step, and so does the daily run',
    async () => {
      const vars = { AUTH: 'keys', RESPONSES: 'durable', DEADLINE_SECONDS: '60', NO_LEDGER: 'yes' };
      await gateway.set({ ...vars, ...userVars, LEDGER: 'kv' });
      const [ada, dan] = [`Qx${users}alone-ada`, `Qx${users}alone-dan`];
      const key = await makeKey({});
      for (const user of [ada, dan]) {
        expect(await ask(key, user)).toEqual([200, null]);
        expect(await ask(key, user, '/v1/responses', { model: MODEL, input: `I am ${user}` })).toEqual([
          200,
          null,
        ]);
        await expect.poll(async () => (await recordsOf(user)).length).toBe(2);
      }
      const erase = (user: string) => admin('DELETE', `/v1/admin/users/${user}`);
      const [first, second] = [await erase(ada), await erase(dan)];
      expect([first.status, second.status]).toEqual(['waiting', 'waiting']);
      await control('later?ms=31000');
      for (const user of [ada, dan]) expect(await ask(key, user)).toEqual([403, 'user_being_erased']);
      expect(await erase(ada)).toEqual(first);
      await control(`later?ms=${3 * 60_000}`);
      expect(await erase(ada)).toMatchObject({
        ...{ id: first.id, status: 'erased' },
        erased: { records: 2, responses: 1 },
      });
      await control('daily');
      expect((await admin('GET', `/v1/admin/erasures/${textOf(second.id)}`)).status).toBe('erased');
      expect(await found(new RegExp(`Qx${users}alone`))).toEqual([]);
      await control('later?ms=31000');
      expect(await ask(key, 'eve')).toEqual([200, null]);
      await control(`later?ms=${31 * DAY_MS}`);
      for (let n = 0; n < 3; n++) await control('daily');
      expect(await gateway.entries('eras')).toEqual([]);
    },
  );
});
