/** Budgets of a day hold where a grant, an extension or a difference between two clocks crosses midnight. */
import { describe, expect, test } from 'vitest';
import { UserNetwork } from './holder-network.ts';
import { MemorySql } from './memory-sql.ts';

const EACH = 100;
const MIDNIGHT = Date.UTC(2026, 10, 22);
const BUDGET = { tokens: 10 * EACH, per: 'day' };

/** What requests of each day may use, as the objects of the users count them. */
function reservedByDay(network: UserNetwork, users: readonly string[]): Record<string, number> {
  const rows = users.flatMap((user) =>
    network
      .member(user)
      .sql.exec<{ day: string; tokens: number }>('SELECT day, tokens FROM reservations')
      .toArray(),
  );
  const byDay: Record<string, number> = {};
  for (const { day, tokens } of rows) byDay[day] = (byDay[day] ?? 0) + tokens;
  return byDay;
}

async function burst(network: UserNetwork, user: string, name: string): Promise<number> {
  const ids = Array.from({ length: 20 }, (_, i) => `${user} ${name} ${i}`);
  const results = await Promise.all(ids.map((id) => network.reserve(user, id)));
  return results.filter(({ kind }) => kind === 'reserved').length;
}

describe('G2 Y6 budgets of a day at midnight', () => {
  test('a grant that arrives after midnight counts in the day of its grant, for the key and its user', async () => {
    const network = new UserNetwork({ budget: BUDGET, per_user: { budget: BUDGET } });
    await network.reserve('ada', 'opens');
    network.settle('ada', 'opens', 0);
    await network.wait(15_000);
    network.now = MIDNIGHT - 1;
    const answered = Promise.withResolvers<void>();
    let steps = 0;
    // The call arrives at once, its answer after midnight.
    network.latency = () => (steps++ === 0 ? Promise.resolve() : answered.promise);
    const crossing = network.reserve('ada', 'crosses');
    await new Promise(setImmediate);
    network.now = MIDNIGHT + 1;
    network.latency = () => Promise.resolve();
    answered.resolve();
    expect((await crossing).kind).toBe('reserved');
    expect(reservedByDay(network, ['ada'])).toEqual({ '2026-11-21': EACH });
    expect(await burst(network, 'bob', 'next day')).toBe(10);
    expect(await burst(network, 'ada', 'next day')).toBe(0);
    expect(reservedByDay(network, ['ada', 'bob'])).toEqual({ '2026-11-21': EACH, '2026-11-22': 10 * EACH });
  });

  test.each([
    ['ahead of', 4000],
    ['behind', -4000],
  ])(
    'no budget of a day is passed while the clock of a user’s object is %s that of the key’s',
    async (_, skew) => {
      const network = new UserNetwork({ budget: BUDGET, per_user: { budget: BUDGET } });
      network.skewOf = (user) => (user === 'ada' ? skew : 0);
      network.now = MIDNIGHT - 6000;
      const users = ['ada', 'bob', 'cy'];
      const passed: number[] = [];
      for (let round = 0; round < 6; round++) {
        const results = await Promise.all(users.map((user) => burst(network, user, `round ${round}`)));
        passed.push(results.reduce((sum, one) => sum + one, 0));
        for (const sum of Object.values(reservedByDay(network, users))) expect(sum).toBeLessThanOrEqual(1000);
        await network.wait(2000);
      }
      expect(passed).toEqual([10, 0, 0, 10, 0, 0]);
      expect(reservedByDay(network, users)).toEqual({ '2026-11-21': 1000, '2026-11-22': 1000 });
    },
  );

  test('what was leased in advance on one day is not used on the next, by either clock', async () => {
    for (const skew of [0, 4000, -4000]) {
      const network = new UserNetwork({ budget: { tokens: 1e6, per: 'day' }, per_user: { rpm: 1000 } });
      network.skewOf = () => skew;
      network.now = MIDNIGHT - 3000;
      await network.reserve('ada', 'leases');
      network.now = MIDNIGHT - 2000;
      await network.reserve('ada', 'a second later');
      network.now = MIDNIGHT + 4500;
      await network.reserve('ada', 'next day');
      const sums = reservedByDay(network, ['ada']);
      const held = network.key
        .exec<{ day: string; tokens: number }>('SELECT day, tokens FROM held')
        .toArray();
      for (const [day, sum] of Object.entries(sums)) {
        const ofKey = held.filter((row) => row.day === day).reduce((all, { tokens }) => all + tokens, 0);
        expect(ofKey).toBeGreaterThanOrEqual(sum);
      }
    }
  });

  test('a further attempt after midnight needs room in the day of its request, in the object of a key', () => {
    const sql = new MemorySql({ budget: BUDGET });
    for (let i = 0; i < 10; i++) expect(sql.reserve(`r${i}`, {}, MIDNIGHT - 1).kind).toBe('reserved');
    expect(sql.reserve('r0', { attempts: 2 }, MIDNIGHT + 1)).toMatchObject({
      kind: 'refused',
      refusal: { kind: 'budget', waitMs: 1000 },
    });
    expect(sql.reserve('next day', { attempts: 10 }, MIDNIGHT + 1).kind).toBe('reserved');
  });

  test.each([
    ['key', { budget: BUDGET, per_user: { rpm: 100 } }],
    ['user', { per_user: { budget: BUDGET } }],
  ])('a further attempt after midnight needs room in the day of its request, of a %s', async (by, limits) => {
    const network = new UserNetwork(limits);
    network.now = MIDNIGHT - 1;
    expect(await burst(network, 'ada', 'before')).toBe(10);
    network.now = MIDNIGHT + 1;
    const further = await network.reserve('ada', 'ada before 0', { attempts: 2 });
    expect(further).toMatchObject({ kind: 'refused', by });
    expect(await burst(network, 'ada', 'after')).toBe(10);
  });

  test('further attempts of two days that share a month count once each', async () => {
    const network = new UserNetwork({
      budget: [
        { tokens: 5 * EACH, per: 'day' },
        { tokens: 7 * EACH, per: 'month' },
      ],
      per_user: { rpm: 1000 },
    });
    network.now = MIDNIGHT - 1;
    for (const id of ['a', 'b']) await network.reserve('ada', id);
    network.now = MIDNIGHT + 1;
    for (const id of ['c', 'd']) await network.reserve('ada', id);
    const further = await Promise.all(
      ['a', 'b', 'c', 'd'].map((id) => network.reserve('ada', id, { attempts: 2 })),
    );
    expect(further.map(({ kind }) => kind)).toEqual(['reserved', 'reserved', 'reserved', 'refused']);
    expect(network.standing.budget).toMatchObject({ reserved: 3 * EACH });
  });
});
