/** Alarms of retention in workerd, with the clock moved on: what has a time ends with it, what has none stays (L4, X1). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { chat, jsonOf } from '../client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from '../gateway.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const DAY_MS = 86_400_000;
const RECORD_DAYS = 15;
const MODEL = 'openai/gpt-4o-mini';

describe('LEDGER=object', () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway({
      entrypoint: 'later-worker.ts',
      vars: {
        ...{ AUTH: 'keys', LEDGER: 'object', RESPONSES: 'durable' },
        ...{ RECORD_DAYS: String(RECORD_DAYS), RESPONSES_DAYS: '2' },
      },
    });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  async function control(path: string): Promise<void> {
    const response = await gateway.fetch(`/test/${path}`);
    if (!response.ok) throw new Error(await response.text());
    await response.text();
  }
  const admin = async (path: string) => jsonOf(await gateway.fetch(path, { headers: ADMIN }));
  const day = (fromNow: number) => new Date(Date.now() + fromNow * DAY_MS).toISOString().slice(0, 10);

  async function keyWith(fields: JsonObject) {
    const made = await jsonOf(
      await gateway.post('/admin/keys', { name: 'k', ...fields }, { headers: ADMIN }),
    );
    return { id: textOf(made.id), headers: { authorization: `Bearer ${textOf(made.key)}` } };
  }

  async function ask(headers: Readonly<Record<string, string>>): Promise<number> {
    const response = await gateway.post('/v1/chat/completions', chat(MODEL), { headers });
    await response.text();
    return response.status;
  }

  test('L4 records end with RECORD_DAYS, also where the alarm is late or fires twice at once; sums and what was spent stay', async () => {
    const key = await keyWith({ budget: { tokens: 1_000_000, per: 'total' } });
    for (let asked = 0; asked < 3; asked++) expect(await ask(key.headers)).toBe(200);
    const recordsOf = async (to: number) =>
      objectsOf((await admin(`/v1/usage/records?key=${key.id}&from=${day(-1)}&to=${day(to)}`)).data).length;
    const sumOf = async (to: number) =>
      objectOf((await admin(`/v1/usage?key=${key.id}&from=${day(-1)}&to=${day(to)}`)).total).requests;
    const spent = async () => objectOf((await admin(`/admin/keys/${key.id}`)).budget).spent;
    await expect.poll(() => recordsOf(1)).toBe(3);
    const before = await spent();
    expect(Number(before)).toBeGreaterThan(0);
    const fire = () => control(`fire?name=${key.id}`);
    // A day before their time, nothing ends.
    await control(`later?ms=${(RECORD_DAYS - 1) * DAY_MS}`);
    await fire();
    expect(await recordsOf(RECORD_DAYS)).toBe(3);
    expect(await ask(key.headers)).toBe(200);
    await expect.poll(() => recordsOf(RECORD_DAYS)).toBe(4);
    // Two days late, twice at once, beside a request.
    await control(`later?ms=${3 * DAY_MS}`);
    const [, , status] = await Promise.all([fire(), fire(), ask(key.headers)]);
    expect(status).toBe(200);
    await expect.poll(() => recordsOf(RECORD_DAYS + 4)).toBe(2);
    await expect.poll(() => sumOf(RECORD_DAYS + 4)).toBe(5);
    expect(Number(await spent())).toBeGreaterThan(Number(before));
  });

  test('X1 a kept response ends with RESPONSES_DAYS, also before its alarm has run', async () => {
    const key = await keyWith({});
    const body = { model: MODEL, input: 'Hello' };
    const made = await jsonOf(await gateway.post('/v1/responses', body, { headers: key.headers }));
    const read = async () =>
      (await gateway.fetch(`/v1/responses/${textOf(made.id)}`, { headers: key.headers })).status;
    expect(await read()).toBe(200);
    await control(`later?ms=${1.9 * DAY_MS}`);
    expect(await read()).toBe(200);
    await control(`later?ms=${0.2 * DAY_MS}`);
    expect(await read()).toBe(404);
  });
});
