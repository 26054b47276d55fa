/** Limits for each user of a key: both limits hold exactly, few requests call the key, and lost calls lose nothing. */
import { describe, expect, test } from 'vitest';
import type { Reservation } from '../../../src/ledger/limits/reservations.ts';
import { UserNetwork } from './holder-network.ts';
import { MINUTE, NOW } from './memory-sql.ts';

const EACH = 100;
const LATE = 15_000;

async function burst(network: UserNetwork, user: string, count: number): Promise<readonly Reservation[]> {
  return Promise.all(
    Array.from({ length: count }, (_, i) => network.reserve(user, `${user}${network.now}-${i}`)),
  );
}

function passed(results: readonly Reservation[]): number {
  return results.filter(({ kind }) => kind === 'reserved').length;
}

describe('Y6 limits for each user', () => {
  test.each([
    ['tokens', { budget: { tokens: 20 * EACH + 50 } }],
    ['money', { budget: { USD: (20 * 190_000) / 1e9 } }],
    ['rpm', { rpm: 20 }],
    ['max_concurrent', { max_concurrent: 20 }],
  ])(
    '200 requests at once of each of two users against 20 in %s: exactly 20 and 20 pass',
    async (_, limits) => {
      const network = new UserNetwork({ per_user: limits });
      const [ada, bob] = await Promise.all([burst(network, 'ada', 200), burst(network, 'bob', 200)]);
      expect([passed(ada), passed(bob)]).toEqual([20, 20]);
      for (const result of [...ada, ...bob]) {
        if (result.kind === 'refused') expect(result.by).toBe('user');
      }
    },
  );

  test.each([
    ['budget', { budget: { tokens: 31 * EACH } }, 31],
    ['rpm', { rpm: 31 }, 31],
    ['max_concurrent', { max_concurrent: 31 }, 31],
    // So much that users lease in advance: what one does not use returns before another is refused.
    ['large budget', { budget: { tokens: 1037 * EACH } }, 1037],
    ['large rpm', { rpm: 1037 }, 1037],
    ['large max_concurrent', { max_concurrent: 1037 }, 1037],
  ])('the key holds over all users exactly: %s', async (_, limits, expected) => {
    const network = new UserNetwork({ ...limits, per_user: { rpm: 200 } });
    let total = 0;
    for (let i = 0; i < 20; i++) total += passed(await burst(network, `idle${i}`, 1));
    const users = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const results = await Promise.all(users.map((user) => burst(network, user, 200)));
    for (const result of results) total += passed(result);
    expect(total).toBe(expected);
    for (const result of results.flat()) {
      if (result.kind === 'refused') expect(result.by).toBe('key');
    }
  });

  test('a request that its user refuses takes nothing from the key, and one that the key refuses takes nothing from its user', async () => {
    const network = new UserNetwork({
      budget: { tokens: 30 * EACH },
      per_user: { budget: { tokens: 20 * EACH } },
    });
    expect(passed(await burst(network, 'ada', 200))).toBe(20);
    expect(network.standing.budget).toMatchObject({ reserved: 20 * EACH });
    expect(passed(await burst(network, 'bob', 15))).toBe(10);
    await network.patch({ budget: { tokens: 100 * EACH } });
    network.now += 1;
    // Ten of bob's twenty are left.
    expect(passed(await burst(network, 'bob', 15))).toBe(10);
    expect(network.standing.budget).toMatchObject({ reserved: 40 * EACH });
  });

  describe('a request that only tentative holds of its user keep out', () => {
    const small = { outputTokens: 190 };
    const large = { outputTokens: 890 };

    /** The user has room for 1,000 tokens, the key for fewer; both requests are sent at once. */
    async function both(left: number) {
      const network = new UserNetwork({ budget: { tokens: left }, per_user: { budget: { tokens: 1000 } } });
      await network.reserve('ada', 'opens');
      network.settle('ada', 'opens', 0);
      await network.wait(LATE);
      network.latency = () => new Promise(setImmediate);
      const sent = [network.reserve('ada', 'large', large), network.reserve('ada', 'small', small)];
      return { network, results: await Promise.all(sent) };
    }

    test('waits for their answers, and is admitted if the key refuses them', async () => {
      const { results, network } = await both(500);
      expect(results).toMatchObject([{ kind: 'refused', by: 'key' }, { kind: 'reserved' }]);
      expect(network.standing.budget).toMatchObject({ reserved: 200 });
    });

    test('is refused by the user if the key grants them', async () => {
      const { results } = await both(5000);
      expect(results).toMatchObject([{ kind: 'reserved' }, { kind: 'refused', by: 'user' }]);
    });

    test('waits no longer once it has ended', async () => {
      const network = new UserNetwork({
        budget: { tokens: 500 },
        per_user: { max_concurrent: 1, budget: { tokens: 1000 } },
      });
      await network.reserve('ada', 'opens');
      network.settle('ada', 'opens', 0);
      const answered = Promise.withResolvers<void>();
      network.latency = () => answered.promise;
      const sent = ['large', 'small'].map((id) => network.reserve('ada', id, id === 'large' ? large : small));
      const ended = expect(sent[1]).rejects.toThrow('ended');
      await new Promise(setImmediate);
      network.settle('ada', 'small', 0);
      answered.resolve();
      network.latency = () => Promise.resolve();
      await ended;
      expect(await sent[0]).toMatchObject({ kind: 'refused', by: 'key' });
      expect(network.standing.budget).toMatchObject({ reserved: 0 });
    });

    test('is decided after each of many that the key refuses, and is repeated once', async () => {
      const network = new UserNetwork({ budget: { tokens: 500 }, per_user: { budget: { tokens: 1000 } } });
      network.latency = () => new Promise(setImmediate);
      const sent = [
        ...Array.from({ length: 20 }, (_, i) => network.reserve('ada', `large ${i}`, large)),
        network.reserve('ada', 'small', small),
        network.reserve('ada', 'small', small),
      ];
      const results = await Promise.all(sent);
      expect(results.slice(0, 20).every((one) => one.kind === 'refused' && one.by === 'key')).toBe(true);
      expect(passed(results.slice(20))).toBe(2);
      expect(network.standing.budget).toMatchObject({ reserved: 200 });
    });
  });

  test('settled requests are charged once to both, and repeated settlements change nothing', async () => {
    const network = new UserNetwork({
      budget: { tokens: 30 * EACH },
      per_user: { budget: { tokens: 20 * EACH } },
    });
    await burst(network, 'ada', 5);
    for (let i = 0; i < 5; i++) network.settle('ada', `ada${NOW}-${i}`, 7);
    for (let i = 0; i < 5; i++) network.settle('ada', `ada${NOW}-${i}`, 7);
    await network.wait(LATE);
    expect(network.standing.budget).toMatchObject({ spent: 35, reserved: 0 });
    const own = network.member('ada').limits.status(network.standing.limits);
    expect(own?.budget).toMatchObject({ spent: 35, reserved: 0 });
  });

  test('a request without settlement expires by alarm and is charged to both; a late settlement replaces it', async () => {
    const network = new UserNetwork({ budget: { tokens: 1e6 }, per_user: { rpm: 100 } });
    await network.reserve('ada', 'lost');
    await network.wait(12 * MINUTE);
    expect(network.standing.budget).toMatchObject({ spent: EACH, reserved: 0, estimated: EACH });
    expect(network.logged).toMatchObject([{ event: 'reservation_expired', id: 'lost', tokens: EACH }]);
    network.settle('ada', 'lost', 30);
    await network.wait(LATE);
    expect(network.standing.budget).toMatchObject({ spent: 30, reserved: 0, estimated: 0 });
  });

  test('what is leased in advance returns to the key within seconds', async () => {
    const network = new UserNetwork({
      budget: { tokens: 10_000 * EACH },
      max_concurrent: 5000,
      per_user: { rpm: 100 },
    });
    await network.reserve('ada', 'a');
    expect(network.standing.budget?.reserved).toBeGreaterThan(EACH);
    await network.wait(LATE);
    expect(network.standing).toMatchObject({ running: 1, budget: { reserved: EACH } });
  });

  test('the object of a user that loses its memory with a lease returns the lease by alarm', async () => {
    const network = new UserNetwork({ budget: { tokens: 10_000 * EACH }, per_user: { rpm: 100 } });
    await network.reserve('ada', 'a');
    network.restart('ada');
    await network.wait(LATE);
    expect(network.standing.budget).toMatchObject({ spent: 0, reserved: EACH });
    network.settle('ada', 'a', 42);
    await network.wait(LATE);
    expect(network.standing.budget).toMatchObject({ spent: 42, reserved: 0 });
  });

  test('a lost response of the key’s object leaves nothing reserved', async () => {
    const network = new UserNetwork({ budget: { tokens: 10_000 * EACH }, per_user: { rpm: 100 } });
    await network.reserve('ada', 'a');
    network.fault = () => 'after';
    await network.wait(LATE);
    await expect(network.reserve('ada', 'b', { outputTokens: 5000 })).rejects.toThrow();
    network.restart('ada');
    network.fault = () => null;
    await network.wait(2 * MINUTE);
    expect(network.standing.budget).toMatchObject({ reserved: EACH });
    expect((await network.reserve('ada', 'b')).kind).toBe('reserved');
  });

  test('a request that is settled while it waits for the key reserves nothing', async () => {
    const network = new UserNetwork({ budget: { tokens: 50 * EACH }, per_user: { rpm: 100 } });
    await network.reserve('ada', 'a');
    const held = Promise.withResolvers<void>();
    network.latency = () => held.promise;
    const waiting = network.reserve('ada', 'b');
    waiting.catch(() => {});
    await new Promise(setImmediate);
    network.settle('ada', 'b', 0);
    network.latency = () => Promise.resolve();
    held.resolve();
    await expect(waiting).rejects.toThrow('ended');
    await network.wait(LATE);
    expect(network.standing.budget).toMatchObject({ reserved: EACH });
  });

  test('a repeated call reserves once, also while the first waits for the key', async () => {
    const network = new UserNetwork({ budget: { tokens: 50 * EACH }, per_user: { rpm: 100 } });
    const results = await Promise.all([network.reserve('ada', 'a'), network.reserve('ada', 'a')]);
    expect(passed(results)).toBe(2);
    expect((await network.reserve('ada', 'a')).kind).toBe('reserved');
    expect(network.standing.budget).toMatchObject({ reserved: EACH });
  });

  test.each([[null], ['before'], ['after']] as const)(
    'a request that arrives at any moment of another request is decided; fault: %s',
    async (fault) => {
      const network = new UserNetwork({ budget: { tokens: 50 * EACH }, per_user: { rpm: 1000 } });
      await network.reserve('ada', 'first');
      for (let microtasks = 0; microtasks < 60; microtasks++) {
        network.fault = () => fault;
        const requests = [network.reserve('ada', `a${microtasks}`)];
        requests[0]?.catch(() => {});
        for (let i = 0; i < microtasks; i++) await Promise.resolve();
        requests.push(network.reserve('ada', `b${microtasks}`));
        await Promise.allSettled(requests);
        network.fault = () => null;
        for (const name of ['a', 'b']) network.settle('ada', `${name}${microtasks}`, 0);
        await network.wait(2 * MINUTE);
      }
      expect(network.standing.budget).toMatchObject({ spent: EACH, reserved: 0 });
    },
  );

  test('further attempts need room in both budgets', async () => {
    const network = new UserNetwork({
      budget: { tokens: 3 * EACH },
      per_user: { budget: { tokens: 2 * EACH } },
    });
    await network.reserve('ada', 'a');
    expect((await network.reserve('ada', 'a', { attempts: 2 })).kind).toBe('reserved');
    expect(await network.reserve('ada', 'a', { attempts: 3 })).toMatchObject({ kind: 'refused', by: 'user' });
    await network.reserve('bob', 'b');
    expect(await network.reserve('bob', 'b', { attempts: 2 })).toMatchObject({ kind: 'refused', by: 'key' });
    expect(network.standing.budget).toMatchObject({ reserved: 3 * EACH });
  });

  test('a lowered limit applies to the next request, whatever was leased before', async () => {
    const network = new UserNetwork({ budget: { tokens: 10_000 * EACH }, per_user: { rpm: 1000 } });
    await burst(network, 'ada', 5);
    await network.patch({ budget: { tokens: 8 * EACH } });
    expect(passed(await burst(network, 'ada2', 5))).toBe(3);
    expect((await network.reserve('ada', 'one more')).kind).toBe('refused');
    await network.patch({ budget: { tokens: 10_000 * EACH }, per_user: { rpm: 7 } });
    expect(passed(await burst(network, 'ada', 0))).toBe(0);
    network.now += 1;
    expect(passed(await burst(network, 'ada', 5))).toBe(2);
  });

  test('a raised limit of users applies within 10 seconds', async () => {
    const network = new UserNetwork({ per_user: { budget: { tokens: 2 * EACH } } });
    expect(passed(await burst(network, 'ada', 5))).toBe(2);
    await network.patch({ per_user: { budget: { tokens: 4 * EACH } } });
    await network.wait(LATE);
    expect(passed(await burst(network, 'ada', 5))).toBe(2);
  });

  test('beyond max_users, all further users of the day share one allowance', async () => {
    const network = new UserNetwork({ per_user: { rpm: 5, max_users: 2 } });
    const own = await Promise.all(['a', 'b', 'c', 'd'].map((user) => burst(network, user, 10)));
    expect(own.map(passed)).toEqual([5, 5, 0, 0]);
    expect(
      own
        .slice(2)
        .flat()
        .every(({ kind }) => kind === 'shared'),
    ).toBe(true);
    expect(passed(await burst(network, '(other)', 10))).toBe(5);
    expect(passed(await burst(network, '', 10))).toBe(5);
    expect(network.member('c').sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'link'").toArray()).toEqual(
      [],
    );
    network.restartKey();
    expect(passed(await burst(network, 'e', 10))).toBe(0);
    await network.wait(24 * 60 * MINUTE);
    const next = await Promise.all(['c', 'd', 'a'].map((user) => burst(network, user, 10)));
    expect(next.map(passed)).toEqual([5, 5, 0]);
  });

  test('a request that could not be reserved is charged once to both', async () => {
    const network = new UserNetwork({ budget: { tokens: 1e6 }, per_user: { budget: { tokens: 1e6 } } });
    const charge = { tokens: 40, cost: null };
    for (const id of ['a', 'a', 'b']) {
      await network.member('ada').limits.settleUnreserved(id, charge, '2026-11-21');
    }
    await network.wait(LATE);
    expect(network.standing.budget).toMatchObject({ spent: 80, reserved: 0 });
    expect(network.member('ada').limits.status(network.standing.limits)?.budget?.spent).toBe(80);
  });

  test('100,000 users cost nothing until they send a request', () => {
    const network = new UserNetwork({ per_user: { rpm: 5, max_users: 100_000 } });
    expect([network.users, network.calls]).toEqual([[], { open: 0, lease: 0, recall: 0 }]);
    expect(network.key.exec("SELECT 1 FROM sqlite_master WHERE name = 'held'").toArray()).toEqual([]);
  });

  test('an object of a user that was restored from a backup works again after one failure', async () => {
    const network = new UserNetwork({ budget: { tokens: 50 * EACH }, per_user: { rpm: 1000 } });
    for (let i = 0; i < 5; i++) await network.reserve('ada', `r${i}`);
    network.member('ada').sql.exec('UPDATE link SET seq = 1');
    await expect(network.reserve('ada', 'later')).rejects.toThrow('later messages');
    expect((await network.reserve('ada', 'later')).kind).toBe('reserved');
  });

  test('the users of a revoked key are refused', async () => {
    const network = new UserNetwork({ per_user: { rpm: 5 }, budget: { tokens: 1000 } });
    await network.reserve('ada', 'a');
    network.isRevoked = true;
    expect((await network.reserve('ada', 'b')).kind).toBe('revoked');
    expect((await network.reserve('new', 'c')).kind).toBe('revoked');
    network.settle('ada', 'a', 10);
    await network.wait(LATE);
    expect(network.standing.budget).toMatchObject({ spent: 10, reserved: 0 });
  });

  test('the object of a user deletes itself after the month of its last request, and starts again at zero', async () => {
    const network = new UserNetwork({ per_user: { budget: { tokens: 3 * EACH, per: 'month' } } });
    await network.reserve('ada', 'a');
    network.settle('ada', 'a', 50);
    await network.wait(8 * 24 * 60 * MINUTE);
    expect(network.users).toEqual(['ada']);
    await network.wait(3 * 24 * 60 * MINUTE);
    expect(network.users).toEqual([]);
    expect(network.alarmOf('ada')).toBeNull();
    expect(network.member('ada').limits.status(network.standing.limits)).toBeNull();
    expect(passed(await burst(network, 'ada', 5))).toBe(3);
  });

  test('the object of a user stays until the week of its last request ends, also where the month ends before', async () => {
    const network = new UserNetwork({ per_user: { budget: { tokens: 3 * EACH, per: 'week' } } });
    const day = 24 * 60 * MINUTE;
    // A Monday, the last day of a month.
    await network.wait(Date.UTC(2026, 10, 30, 12) - network.now);
    await network.reserve('ada', 'a');
    network.settle('ada', 'a', 2 * EACH);
    await network.wait(3 * day);
    expect(network.users).toEqual(['ada']);
    expect(passed(await burst(network, 'ada', 5))).toBe(1);
    await network.wait(40 * day);
    expect(network.users).toEqual([]);
  });

  test('1,000 requests of 100 users with a large allowance: few call the key', async () => {
    const network = new UserNetwork({ budget: { tokens: 1e9 }, rpm: 1e6, per_user: { rpm: 100 } });
    for (let round = 0; round < 10; round++) {
      for (let user = 0; user < 100; user++) {
        const id = `${user}-${round}`;
        expect((await network.reserve(`user${user}`, id)).kind).toBe('reserved');
        network.settle(`user${user}`, id, 10);
      }
      await network.wait(500);
    }
    await network.wait(LATE);
    expect(network.standing.budget).toMatchObject({ spent: 10_000, reserved: 0 });
    expect(network.calls).toEqual({ open: 100, lease: 200, recall: 0 });
  });
});

describe('G1 Y6 missing and unreadable limits', () => {
  const limits = { rpm: 10, per_user: { rpm: 3 } };

  test('the object of a new key takes the limits that its users’ requests list', async () => {
    const network = new UserNetwork(null);
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) => network.reserve(`u${i % 5}`, `r${i}`, { limits })),
    );
    expect(passed(results)).toBe(10);
    const again = await Promise.all(
      Array.from({ length: 4 }, (_, i) => network.reserve('u9', `s${i}`, { limits })),
    );
    expect(passed(again)).toBe(0);
  });

  test('an object without limits refuses where none are listed', async () => {
    const network = new UserNetwork(null);
    await expect(network.reserve('ada', 'a')).rejects.toThrow('the object has no limits');
  });

  test('limits of the key that cannot be read refuse the requests of every user', async () => {
    const network = new UserNetwork(limits);
    expect(passed(await burst(network, 'ada', 1))).toBe(1);
    network.key.exec('UPDATE limits SET json = ?', '{"version":9}');
    await network.wait(LATE);
    for (const user of ['ada', 'ben'])
      await expect(network.reserve(user, `${user} again`)).rejects.toThrow('ledger_unreadable: ');
    network.key.exec('UPDATE limits SET json = ?', JSON.stringify(limits));
    expect(passed(await burst(network, 'ben', 5))).toBe(3);
  });

  test('a copy of them in the object of a user that cannot be read is replaced by the key’s', async () => {
    const network = new UserNetwork(limits);
    expect(passed(await burst(network, 'ada', 1))).toBe(1);
    const { sql } = network.member('ada');
    sql.exec('UPDATE limits SET json = ?', '{"per_user":7}');
    network.restart('ada');
    network.now++;
    expect(passed(await burst(network, 'ada', 5))).toBe(2);
    expect(network.logged).toContainEqual(expect.objectContaining({ event: 'ledger_unreadable' }));
  });

  test('reservations that have expired keep no place although the alarm is late', async () => {
    const network = new UserNetwork({ per_user: { max_concurrent: 1 } });
    expect(passed(await burst(network, 'ada', 2))).toBe(1);
    network.now += 12 * MINUTE;
    expect(passed(await burst(network, 'ada', 1))).toBe(1);
  });
});
