/** A hard budget under bursts, in workerd over HTTP: exactly as many requests are admitted as it holds. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf } from '../../../tools/simulator/json.ts';
import { type Key, type Limited, startLimited } from './limited.ts';

let limited: Limited;
beforeAll(async () => {
  limited = await startLimited();
});
afterAll(() => limited[Symbol.asyncDispose]());

/** The tokens that a request of these tests reserves, measured with a large budget. */
async function upperBound(fields: JsonObject): Promise<number> {
  const key = await limited.create({ budget: { tokens: 1e9 } });
  const response = await limited.ask(key, fields);
  await response.text();
  return 1e9 - Number.parseInt(response.headers.get('x-weir-budget-remaining') ?? '', 10);
}

async function burst(key: Key, fields: JsonObject): Promise<number[]> {
  const before = limited.gateway.simulator.requests.length;
  const answers = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const response = await limited.ask(key, fields);
      const text = await response.text();
      if (response.status === 429) expect(text).toContain('"code":"budget_exceeded"');
      return response.status;
    }),
  );
  const passed = answers.filter((status) => status === 200).length;
  expect(answers.filter((status) => status === 429)).toHaveLength(200 - passed);
  // Refused requests are not sent upstream.
  expect(limited.gateway.simulator.requests.length - before).toBe(passed);
  return answers;
}

describe.each([
  ['streamed', { stream: true }],
  ['whole', {}],
])('G2 200 concurrent %s requests', (_, fields) => {
  test('against a budget for 100 in tokens: exactly 100 pass', async () => {
    const each = await upperBound(fields);
    limited.usage = { prompt: each - 100, completion: 100 };
    const key = await limited.create({ budget: { tokens: 100 * each + each - 1, per: 'month' } });
    const answers = await burst(key, fields);
    expect(answers.filter((status) => status === 200)).toHaveLength(100);
    const { budget } = await limited.settled(key);
    expect(objectOf(budget)).toMatchObject({ spent: 100 * each, reserved: 0, estimated: 0 });
  });

  test('against a budget for 100 in dollars: exactly 100 pass', async () => {
    const priced = { ...fields, model: 'mistral/codestral-latest' };
    const each = await upperBound(priced);
    limited.usage = { prompt: each - 100, completion: 100 };
    // 0.30 and 0.90 dollars per million, in 10^-9.
    const nano = (each - 100) * 300 + 100 * 900;
    const key = await limited.create({ budget: { USD: (100 * nano + nano - 1) / 1e9, per: 'day' } });
    const answers = await burst(key, priced);
    expect(answers.filter((status) => status === 200)).toHaveLength(100);
    const { budget } = await limited.settled(key);
    expect(objectOf(budget)).toMatchObject({ spent: (100 * nano) / 1e9, reserved: 0 });
  });

  test('that use less than their upper bound: as many pass as there is room for, and the limit is never exceeded', async () => {
    const each = await upperBound(fields);
    limited.usage = { prompt: (each >> 1) - 1, completion: 1 };
    const limit = 50 * each;
    const key = await limited.create({ budget: { tokens: limit } });
    const passed = (await burst(key, fields)).filter((status) => status === 200).length;
    expect(passed).toBeGreaterThanOrEqual(50);
    const { budget } = await limited.settled(key);
    expect(objectOf(budget).spent).toBe(passed * (each >> 1));
    expect(objectOf(budget).spent).toBeLessThanOrEqual(limit);
  });

  test('against rpm 100: exactly 100 pass', async () => {
    limited.usage = { prompt: 7, completion: 3 };
    const key = await limited.create({ rpm: 100 });
    const statuses = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const response = await limited.ask(key, fields);
        await response.text();
        return response.status;
      }),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(100);
  });
});

describe.each([
  ['streamed', { stream: true }],
  ['whole', {}],
])('Y6 200 concurrent %s requests of one user, and 200 of another', (_, fields) => {
  const model = 'mistral/codestral-latest';

  async function burstOfUsers(key: Key, body: JsonObject): Promise<Record<string, number>> {
    const before = limited.gateway.simulator.requests.length;
    const passed: Record<string, number> = { ada: 0, bob: 0 };
    await Promise.all(
      Array.from({ length: 400 }, async (_, i) => {
        const user = i % 2 === 0 ? 'ada' : 'bob';
        const response = await limited.ask(key, { ...body, user });
        const text = await response.text();
        if (response.status === 200) passed[user] = (passed[user] ?? 0) + 1;
        else expect([response.status, text]).toEqual([429, expect.stringMatching(/of this key|This key/)]);
      }),
    );
    expect(limited.gateway.simulator.requests.length - before).toBe((passed.ada ?? 0) + (passed.bob ?? 0));
    return passed;
  }

  test('against budgets for 20 in tokens: exactly 20 and 20 pass', async () => {
    const each = await upperBound({ ...fields, user: 'ada' });
    limited.usage = { prompt: each - 100, completion: 100 };
    const key = await limited.create({
      budget: { tokens: 60 * each },
      per_user: { budget: { tokens: 21 * each - 1, per: 'month' } },
    });
    expect(await burstOfUsers(key, fields)).toEqual({ ada: 20, bob: 20 });
    const { budget } = await limited.settled(key);
    expect(objectOf(budget)).toMatchObject({ spent: 40 * each, reserved: 0, estimated: 0 });
  });

  test('against budgets for 20 in dollars: exactly 20 and 20 pass', async () => {
    const priced = { ...fields, model };
    const each = await upperBound({ ...priced, user: 'ada' });
    limited.usage = { prompt: each - 100, completion: 100 };
    const nano = (each - 100) * 300 + 100 * 900;
    const key = await limited.create({ per_user: { budget: { USD: (21 * nano - 1) / 1e9, per: 'day' } } });
    expect(await burstOfUsers(key, priced)).toEqual({ ada: 20, bob: 20 });
  });

  test('against rpm 20: exactly 20 and 20 pass, and with a key for 30 exactly 30 of them pass', async () => {
    limited.usage = { prompt: 7, completion: 3 };
    const key = await limited.create({ per_user: { rpm: 20 } });
    expect(await burstOfUsers(key, fields)).toEqual({ ada: 20, bob: 20 });
    const narrow = await limited.create({ rpm: 30, per_user: { rpm: 20 } });
    const { ada = 0, bob = 0 } = await burstOfUsers(narrow, fields);
    expect(ada + bob).toBe(30);
  });

  test('against a key for 250, part of which users lease in advance: exactly 250 pass', async () => {
    limited.usage = { prompt: 7, completion: 3 };
    const key = await limited.create({ rpm: 250, per_user: { rpm: 200 } });
    const { ada = 0, bob = 0 } = await burstOfUsers(key, fields);
    expect(ada + bob).toBe(250);
  });
});
