/**
 * A team and its keys: limits of the team, defaults for keys and their users, keys that change their team, and the end
 * of a team's keys.
 */
import { expect, test } from 'vitest';
import { changeLimits } from '../../../src/ledger/limits/limit-tables.ts';
import type { JsonObject } from '../../../tools/simulator/json.ts';
import { HolderNetwork } from './holder-network.ts';
import { MINUTE, transaction } from './memory-sql.ts';

const TEAM = { budget: { tokens: 1000 } };

function network(team: JsonObject = TEAM) {
  const tree = new HolderNetwork();
  tree.add('t', 'team', team);
  tree.add('z', 'team', TEAM);
  return tree;
}

const reservedAt = (tree: HolderNetwork, path: string) => tree.standingOf(path).budget?.reserved;
const spentAt = (tree: HolderNetwork, path: string) => tree.standingOf(path).budget?.spent;

test('G13 two keys share the budget of their team: what does not fit is refused by the team, and takes nothing of the key', async () => {
  const tree = network();
  tree.add('t/k', 'key', { budget: { tokens: 5000 } });
  tree.add('t/l', 'key');
  const asked = await Promise.all(
    Array.from({ length: 14 }, (_, i) => tree.reserveAt(i % 2 ? 't/k' : 't/l', `r${i}`)),
  );
  const refused = asked.filter(({ kind }) => kind === 'refused');
  expect(refused).toHaveLength(4);
  expect(refused).toContainEqual(expect.objectContaining({ by: 'team' }));
  expect(reservedAt(tree, 't')).toBe(1000);
  const ofKey = asked.filter(({ kind }, i) => i % 2 === 1 && kind === 'reserved').length;
  expect(reservedAt(tree, 't/k')).toBe(100 * ofKey);
});

test('G13 a request that its key refuses takes nothing of the team', async () => {
  const tree = network();
  tree.add('t/k', 'key', { budget: { tokens: 150 } });
  await tree.reserveAt('t/k', 'a');
  expect(await tree.reserveAt('t/k', 'b')).toMatchObject({ kind: 'refused', by: 'key' });
  tree.settleAt('t/k', 'a', 30);
  await tree.wait(MINUTE);
  expect([reservedAt(tree, 't'), spentAt(tree, 't'), spentAt(tree, 't/k')]).toEqual([0, 30, 30]);
});

test('G13 per_key and per_user of the team hold for a key that sets none of that kind', async () => {
  const tree = network({
    ...TEAM,
    per_key: { budget: { tokens: 300 } },
    per_user: { budget: { tokens: 200 } },
  });
  tree.add('t/k', 'key');
  tree.add('t/own', 'key', { budget: { tokens: 400 }, per_user: { rpm: 1 } });
  for (const user of ['t/k/ada', 't/k/bob', 't/own/ada']) tree.add(user, 'user');
  const by = async (path: string, id: string) => {
    const asked = await tree.reserveAt(path, id);
    return asked.kind === 'refused' ? asked.by : asked.kind;
  };
  const kinds = [];
  for (const id of ['a', 'b', 'c']) kinds.push(await by('t/k/ada', id));
  for (const id of ['d', 'e']) kinds.push(await by('t/k/bob', id));
  for (const id of ['f', 'g']) kinds.push(await by('t/own/ada', id));
  expect(kinds).toEqual(['reserved', 'reserved', 'user', 'reserved', 'key', 'reserved', 'user']);
});

test('G13 a key that changes its team: what runs stays with the team of its admission, what follows counts at the other', async () => {
  const tree = network();
  tree.add('t/k', 'key', { per_user: { budget: { tokens: 5000 } } });
  for (const user of ['t/k/ada', 't/k/']) tree.add(user, 'user');
  await tree.reserveAt('t/k/ada', 'a');
  await tree.reserveAt('t/k/', 'b');
  await tree.patch('t/k', { team: 'z' });
  await tree.reserveAt('t/k/ada', 'c');
  await tree.wait(11_000);
  expect([reservedAt(tree, 't'), reservedAt(tree, 'z')]).toEqual([200, 100]);
  tree.settleAt('t/k/ada', 'a', 1);
  tree.settleAt('t/k/', 'b', 20);
  tree.settleAt('t/k/ada', 'c', 40);
  await tree.wait(3 * MINUTE);
  const amounts = (path: string) => [reservedAt(tree, path), spentAt(tree, path)];
  expect([amounts('t'), amounts('z')]).toEqual([
    [0, 21],
    [0, 40],
  ]);
  // The team before has no row of the key any more, the other one counts it.
  expect(['t', 'z'].map((path) => tree.at(path).limits.children.members)).toEqual([0, 1]);
  expect(['t', 'z'].map((path) => tree.at(path).limits.children.names(9))).toEqual([[], ['k']]);
  // And back again: what it has spent there counts once.
  await tree.patch('t/k', { team: 't' });
  await tree.reserveAt('t/k/ada', 'd');
  tree.settleAt('t/k/ada', 'd', 300);
  await tree.wait(3 * MINUTE);
  expect([amounts('t'), amounts('z')]).toEqual([
    [0, 321],
    [0, 40],
  ]);
  await tree.patch('t/k', { team: null });
  await tree.reserveAt('t/k/ada', 'e');
  tree.settleAt('t/k/ada', 'e', 7);
  await tree.wait(3 * MINUTE);
  expect([spentAt(tree, 't'), spentAt(tree, 'z')]).toEqual([321, 40]);
  expect(tree.at('t').limits.children.members).toBe(0);
});

/** A key whose request of `t` has expired after the key left: it is charged whole, and the last message to the team was sent. */
async function expiredInFormerTeam() {
  const tree = network();
  tree.add('t/k', 'key');
  await tree.reserveAt('t/k', 'a');
  await tree.patch('t/k', { team: null });
  await tree.wait(20 * MINUTE);
  const seen = () => {
    const { spent, estimated } = tree.standingOf('t').budget ?? {};
    return [spent, estimated, tree.at('t').limits.children.names(9)];
  };
  expect(seen()).toEqual([100, 100, []]);
  return { tree, seen };
}

test.each([30, 100])(
  'G13 a request of a former team that is settled as %d after the last message to that team: the team charges that, and no estimate',
  async (tokens) => {
    const { tree, seen } = await expiredInFormerTeam();
    tree.settleAt('t/k', 'a', tokens);
    await tree.wait(3 * MINUTE);
    expect(seen()).toEqual([tokens, 0, []]);
    // No row of the request stays.
    expect(tree.at('t/k').sql.exec('SELECT * FROM team_requests').toArray()).toEqual([]);
  },
);

test('G13 a request of a former team that is settled while the key returns to the team: the team gets the charge', async () => {
  const { tree, seen } = await expiredInFormerTeam();
  const { promise: arrives, resolve: arrive } = Promise.withResolvers<void>();
  let calls = 0;
  tree.latency = () => (calls++ === 0 ? arrives : Promise.resolve());
  const returned = tree.patch('t/k', { team: 't' });
  await new Promise(setImmediate);
  tree.settleAt('t/k', 'a', 30);
  await new Promise(setImmediate);
  arrive();
  await returned;
  await tree.wait(3 * MINUTE);
  expect(seen()).toEqual([30, 0, ['k']]);
});

test.each([0, 1])(
  'G13 a key whose return to a former team is lost, as are %d messages after it: the team gets a charge of that time',
  async (lost) => {
    const { tree, seen } = await expiredInFormerTeam();
    let calls = 0;
    tree.fault = () => (calls++ <= lost ? 'before' : null);
    await expect(tree.patch('t/k', { team: 't' })).rejects.toThrow('is lost');
    tree.settleAt('t/k', 'a', 30);
    await tree.wait(5 * MINUTE);
    expect(seen()).toEqual([30, 0, []]);
  },
);

test('G13 a key that returns to a former team: messages with the numbers of earlier ones repeat no charge', async () => {
  const tree = network();
  tree.add('t/k', 'key');
  const spend = async (id: string) => {
    await tree.reserveAt('t/k', id);
    tree.settleAt('t/k', id, 10);
    await tree.wait(MINUTE);
  };
  for (const id of ['a', 'b', 'c']) await spend(id);
  await tree.patch('t/k', { team: null });
  // The charges of the next day have their own rows.
  await tree.wait(24 * 60 * MINUTE);
  expect(tree.at('t').limits.children.names(9)).toEqual([]);
  await tree.patch('t/k', { team: 't' });
  for (const id of ['d', 'e', 'f', 'g', 'h']) await spend(id);
  expect(spentAt(tree, 't')).toBe(80);
});

test('G13 a key that has left is not counted among the keys of the team while a request of the team runs, and is again after its return', async () => {
  const tree = network();
  tree.add('t/k', 'key');
  await tree.reserveAt('t/k', 'a');
  await tree.patch('t/k', { team: null });
  await tree.wait(MINUTE);
  const { children } = tree.at('t').limits;
  expect([children.members, children.names(9), reservedAt(tree, 't')]).toEqual([0, ['k'], 100]);
  await tree.patch('t/k', { team: 't' });
  expect(children.members).toBe(1);
});

test('G13 a change of the team that is stored while a key opens its lease: the other team decides about the request', async () => {
  const { tree, sql, limits, asked, answer } = await asking([]);
  transaction(sql, () => changeLimits(sql, { team: 'z' }));
  answer();
  expect(await asked).toMatchObject({ kind: 'refused', by: 'team' });
  await limits.changed();
  await tree.wait(MINUTE);
  expect([reservedAt(tree, 't'), reservedAt(tree, 'z')]).toEqual([0, 0]);
});

test('G13 a change of the team while a request waits for the team: the other team decides about it', async () => {
  const { tree, sql, limits, asked, answer } = await asking(['a']);
  transaction(sql, () => changeLimits(sql, { team: 'z' }));
  await limits.changed();
  answer();
  expect(await asked).toMatchObject({ kind: 'refused', by: 'team' });
  await tree.wait(MINUTE);
  expect([reservedAt(tree, 't'), reservedAt(tree, 'z')]).toEqual([100, 0]);
});

/** A request of a key whose call to its team has no answer yet. The team `z`, which also counts the key, has no room for it. */
async function asking(before: readonly string[]) {
  const tree = network();
  const { sql, limits } = tree.add('t/k', 'key');
  await tree.patch('z', { budget: { tokens: 50 } });
  await limits.join('z');
  for (const id of before) await tree.reserveAt('t/k', id);
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  const calls = { ...tree.calls };
  tree.latency = () => promise;
  const asked = tree.reserveAt('t/k', 'b');
  await new Promise(setImmediate);
  expect(tree.calls).not.toEqual(calls);
  tree.latency = () => Promise.resolve();
  return { tree, sql, limits, asked, answer };
}

test('G13 what a key has spent before it joins a team is not charged to the team', async () => {
  const tree = network();
  tree.add('k', 'key', { budget: { tokens: 5000 } });
  await tree.reserveAt('k', 'a');
  tree.settleAt('k', 'a', 90);
  await tree.reserveAt('k', 'b');
  await tree.patch('k', { team: 't' });
  await tree.reserveAt('k', 'c');
  tree.settleAt('k', 'b', 5);
  tree.settleAt('k', 'c', 10);
  await tree.wait(MINUTE);
  expect([spentAt(tree, 't'), spentAt(tree, 'k')]).toEqual([10, 105]);
});

test('G13 a revoked key reports what it was charged, and then the team does not count it any more', async () => {
  const tree = network();
  tree.add('t/k', 'key', {});
  await tree.reserveAt('t/k', 'a');
  tree.at('t/k').isRevoked = true;
  tree.settleAt('t/k', 'a', 60);
  await tree.wait(2 * MINUTE);
  expect([spentAt(tree, 't'), reservedAt(tree, 't')]).toEqual([60, 0]);
  expect(tree.at('t').limits.children.members).toBe(0);
});

test.each(['before', 'after'] as const)(
  'G13 a revoked key whose last message is lost %s it arrives sends it again, and the team does not count it any more',
  async (fault) => {
    const tree = network();
    const key = tree.add('t/k', 'key', {});
    await tree.reserveAt('t/k', 'a');
    tree.settleAt('t/k', 'a', 60);
    await tree.wait(MINUTE);
    const { lease } = tree.calls;
    key.isRevoked = true;
    key.alarmAt = tree.now;
    tree.fault = () => (tree.calls.lease === lease + 1 ? fault : null);
    await tree.wait(3 * MINUTE);
    expect(tree.calls.lease).toBeGreaterThan(lease + 1);
    expect(tree.at('t').limits.children.names(9)).toEqual([]);
    expect(spentAt(tree, 't')).toBe(60);
  },
);

test('G13 a key in a deleted team gets no requests', async () => {
  const tree = network();
  tree.add('t/k', 'key', {});
  tree.at('t').isRevoked = true;
  expect(await tree.reserveAt('t/k', 'a')).toEqual({ kind: 'revoked' });
});

test('G13 a user of a revoked key whose request is settled after the last message to the team: the team gets that charge', async () => {
  const tree = network();
  tree.add('t/k', 'key', { per_user: { rpm: 5 } });
  tree.add('t/k/ada', 'user');
  await tree.reserveAt('t/k/ada', 'a');
  tree.at('t/k').isRevoked = true;
  // The reservation expires, and is charged whole.
  await tree.wait(20 * MINUTE);
  expect([spentAt(tree, 't'), tree.at('t').limits.children.names(9)]).toEqual([100, []]);
  tree.settleAt('t/k/ada', 'a', 30);
  await tree.wait(3 * MINUTE);
  expect([spentAt(tree, 't'), tree.at('t').limits.children.names(9)]).toEqual([30, []]);
});

test.each(['before', 'after'] as const)(
  'G13 a key that names a team while the call is lost %s it runs does not count there',
  async (fault) => {
    const tree = network();
    tree.add('t/k', 'key');
    await tree.reserveAt('t/k', 'a');
    tree.fault = (to) => (to === 'z' ? fault : null);
    await expect(tree.patch('t/k', { team: 'z' })).rejects.toThrow('is lost');
    tree.fault = () => null;
    await tree.wait(3 * MINUTE);
    expect(['t', 'z'].map((path) => tree.at(path).limits.children.names(9))).toEqual([['k'], []]);
    // What it was granted before counts on at its team.
    expect(reservedAt(tree, 't')).toBe(100);
    await tree.patch('t/k', { team: 'z' });
    await tree.reserveAt('t/k', 'b');
    tree.settleAt('t/k', 'a', 10);
    tree.settleAt('t/k', 'b', 20);
    await tree.wait(3 * MINUTE);
    expect([spentAt(tree, 't'), spentAt(tree, 'z')]).toEqual([10, 20]);
  },
);

test('G13 a team without limits does not take those of its first key', async () => {
  const tree = new HolderNetwork();
  tree.add('t', 'team');
  tree.add('t/k', 'key', { rpm: 1 });
  tree.add('t/l', 'key');
  const listed = { rpm: 1, team: 't' };
  expect(await tree.reserveAt('t/k', 'a', { limits: listed })).toMatchObject({ kind: 'reserved' });
  expect(await tree.reserveAt('t/k', 'b', { limits: listed })).toMatchObject({ kind: 'refused', by: 'key' });
  for (const id of ['c', 'd', 'e'])
    expect(await tree.reserveAt('t/l', id, { limits: { team: 't' } })).toMatchObject({ kind: 'reserved' });
  expect(tree.at('t').limits.limits().rpm).toBeNull();
});

const PERSON = { ada: 't/access_ada', bob: 't/access_bob' };

test('Y12 people of a team are users of it: per_user for each, and its budget for them and its keys together', async () => {
  const tree = network({ ...TEAM, per_key: { rpm: 9 }, per_user: { budget: { tokens: 300 }, max_users: 2 } });
  tree.add('t/k', 'key');
  for (const path of Object.values(PERSON)) tree.add(path, 'user');
  const by = async (path: string, id: string) => {
    const answer = await tree.reserveAt(path, id);
    return answer.kind === 'refused' ? answer.by : answer.kind;
  };
  const asked = [];
  for (const id of ['a', 'b', 'c', 'd']) asked.push(await by(PERSON.ada, id));
  expect(asked).toEqual(['reserved', 'reserved', 'reserved', 'user']);
  for (const id of ['e', 'f', 'g']) expect(await by(PERSON.bob, id)).toBe('reserved');
  for (const id of ['h', 'i', 'j', 'k']) expect(await by('t/k', id)).toBe('reserved');
  expect(await by('t/k', 'l')).toBe('team');
  expect(reservedAt(tree, 't')).toBe(1000);
});

test('Y12 keys of a team do not count in max_users, and people not as its keys', async () => {
  const tree = network({ ...TEAM, per_user: { rpm: 5, max_users: 1 } });
  for (const path of ['t/k', 't/l']) tree.add(path, 'key');
  for (const path of Object.values(PERSON)) tree.add(path, 'user');
  for (const [n, path] of ['t/k', 't/l', PERSON.ada].entries())
    expect(await tree.reserveAt(path, `r${n}`)).toMatchObject({ kind: 'reserved' });
  expect(await tree.reserveAt(PERSON.bob, 's')).toEqual({ kind: 'shared' });
  const { children } = tree.at('t').limits;
  expect([children.members, children.people(9)]).toEqual([2, ['access_ada']]);
});

test('Y12 a person of a deleted team gets no further requests, and what ran is counted', async () => {
  const tree = network({ ...TEAM, per_user: { rpm: 5 } });
  tree.add(PERSON.ada, 'user');
  await tree.reserveAt(PERSON.ada, 'a');
  tree.at('t').isRevoked = true;
  tree.settleAt(PERSON.ada, 'a', 60);
  await tree.wait(MINUTE);
  expect([spentAt(tree, 't'), reservedAt(tree, 't')]).toEqual([60, 0]);
  expect(await tree.reserveAt(PERSON.ada, 'b')).toEqual({ kind: 'revoked' });
  expect(await tree.at(PERSON.ada).limits.drain(null)).toBe(true);
  expect(tree.at('t').limits.children.people(9)).toEqual([]);
});
