/**
 * Messages between the objects of users or shards and their key that are lost in workerd: nothing counts twice, and no
 * limit is passed (G9, L10).
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { objectOfShard, userObject } from '../../../src/ledger/ledger-calls.ts';
import { shardName } from '../../../src/ledger/limits/spread.ts';
import { objectOf } from '../../../tools/simulator/json.ts';
import { seeded } from '../../random.ts';
import { type Ledgers, startLedgers } from './ledgers.ts';

let ledgers: Ledgers;
beforeAll(async () => {
  ledgers = await startLedgers({ main: 'lossy-ledger-worker.ts' });
});
afterAll(() => ledgers[Symbol.asyncDispose]());

const SHARDS: Readonly<Record<string, string>> = { ada: shardName('EU', 0), bob: shardName('NA', 0) };

/** A key whose users have limits of their own, or one with a shard for each user. Each request reserves 100 tokens. */
async function createKey(id: string, budget: number, kind: 'users' | 'shards' = 'users') {
  const isSpread = kind === 'shards';
  await ledgers.call(id, 'changeLimits', {
    budget: { tokens: budget },
    ...(!isSpread && { per_user: { budget: { tokens: 1e6 } } }),
  });
  const child = (name: string) => (isSpread ? objectOfShard(id, SHARDS[name] ?? '') : userObject(id, name));
  return {
    child,
    lose: (name: string, ...losses: readonly (string | null)[]) => ledgers.call(child(name), 'lose', losses),
    reserve: async (name: string, request: string): Promise<unknown> => {
      const asked = {
        ...{ id: request, promptTokens: 10, estimatedPromptTokens: 4, outputTokens: 90, choices: 1 },
        ...{ price: null, expiresAfterMs: 600_000 },
      };
      return objectOf(await ledgers.call(child(name), isSpread ? 'reserveInShard' : 'reserveForUser', asked))
        .kind;
    },
    settle: (name: string, request: string, tokens: number) =>
      ledgers.call(child(name), 'settleReservation', request, { tokens, cost: null }),
    report: (name: string) => ledgers.call(child(name), 'fireAlarm'),
    used: async () => objectOf(objectOf(await ledgers.call(id, 'standing')).budget),
  };
}

describe.each(['call', 'answer', 'reset'])('a message to the key whose %s is lost', (loss) => {
  test.each([
    ['G9', 'users'],
    ['L10', 'shards'],
  ] as const)(
    '%s of %s: a request then fails, the next one is admitted, and each charge counts once',
    async (_, kind) => {
      const key = await createKey(`lost-${loss}-${kind}`, 10_000, kind);
      expect(await key.reserve('ada', 'r1')).toBe('reserved');
      await key.settle('ada', 'r1', 30);
      await key.report('ada');
      expect(await key.used()).toMatchObject({ spent: 30, reserved: 0 });
      await key.lose('ada', loss);
      await expect(key.reserve('ada', 'r2')).rejects.toThrow(
        loss === 'call' ? 'call is lost' : 'answer is lost',
      );
      expect(await key.reserve('ada', 'r3')).toBe('reserved');
      await key.settle('ada', 'r3', 50);
      await key.lose('ada', loss);
      await key.report('ada').catch(() => {});
      await key.report('ada');
      expect(await key.used()).toMatchObject({ spent: 80, reserved: 0 });
    },
  );
});

test.each([
  ['G9', 'users'],
  ['L10', 'shards'],
] as const)(
  '%s while messages of two %s are lost at random, the budget of the key is never passed',
  async (_, kind) => {
    const random = seeded(20261129);
    const key = await createKey(`lost-random-${kind}`, 1000, kind);
    const names = ['ada', 'bob'];
    const running: { name: string; id: string }[] = [];
    let [charged, next] = [0, 0];
    for (let step = 0; step < 60; step++) {
      const name = names[step % 2] ?? '';
      const losses = Array.from({ length: 3 }, () =>
        random() < 0.4 ? (random() < 0.5 ? 'call' : 'answer') : null,
      );
      await key.lose(name, ...losses);
      const one = running[0];
      if (random() < 0.5 && one !== undefined) {
        running.shift();
        const tokens = Math.floor(random() * 100);
        await key.settle(one.name, one.id, tokens);
        charged += tokens;
      } else {
        const id = `r${next++}`;
        const kind = await key.reserve(name, id).catch(() => 'failed');
        if (kind === 'reserved') running.push({ name, id });
        // As the gateway does after a call that failed: it may have reserved.
        else await key.settle(name, id, 0);
      }
      expect(charged + running.length * 100).toBeLessThanOrEqual(1000);
    }
    for (const { name, id } of running) {
      await key.settle(name, id, 1);
      charged++;
    }
    for (const name of names) {
      await key.lose(name);
      await key.report(name);
    }
    expect(await key.used()).toMatchObject({ spent: charged, reserved: 0 });
    expect(charged).toBeGreaterThan(300);
  },
);

test.each([
  ['G6', 'users'],
  ['L10', 'shards'],
] as const)(
  '%s an overload of the key reaches the caller of the object of one of its %s, which does not call the key again at once',
  async (_, kind) => {
    const key = await createKey(`overloaded-${kind}`, 10_000, kind);
    expect(await key.reserve('ada', 'r1')).toBe('reserved');
    // What is leased in advance would admit the next ones.
    await ledgers.call(key.child('ada'), 'returnLease');
    const before = await ledgers.call(key.child('ada'), 'callsToParents');
    await key.lose('ada', 'overloaded');
    for (const id of ['r2', 'r3', 'r4'])
      await expect(key.reserve('ada', id)).rejects.toThrow(
        'overloaded: Error: Durable Object is overloaded.',
      );
    expect(await ledgers.call(key.child('ada'), 'callsToParents')).toBe(Number(before) + 1);
  },
);
