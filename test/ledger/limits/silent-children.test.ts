/** Holders that send no messages: what they hold is charged at the parent, until they do; and they are not asked for it again and again. */
import { expect, test } from 'vitest';
import { HolderNetwork, SILENT_MS } from './holder-network.ts';
import { MINUTE } from './memory-sql.ts';

const amounts = (tree: HolderNetwork, path: string) => {
  const { budget } = tree.standingOf(path);
  return { spent: budget?.spent, reserved: budget?.reserved, estimated: budget?.estimated };
};
const whole = (tokens: number) => ({ spent: tokens, reserved: 0, estimated: tokens });
const exact = (tokens: number) => ({ spent: tokens, reserved: 0, estimated: 0 });

/** A team whose keys cannot reach it after their first request, each. */
async function silentKeys(budget: number, ...keys: string[]) {
  const tree = new HolderNetwork();
  tree.add('t', 'team', { budget: { tokens: budget }, max_concurrent: 500, rpm: 500 });
  for (const key of keys) {
    tree.add(`t/${key}`, 'key');
    await tree.reserveAt(`t/${key}`, `of ${key}`);
  }
  tree.fault = () => 'before';
  return tree;
}

test.each([
  ['a request', 1000, 100],
  ['a request and as much in advance as there is plenty of', 1e6, 500],
])(
  'G13 of a key that is silent until its requests have expired, the team charges %s, as estimated; its next message replaces the charge',
  async (_, budget, held) => {
    const tree = await silentKeys(budget, 'k');
    expect(amounts(tree, 't')).toEqual({ spent: 0, reserved: held, estimated: 0 });
    await tree.wait(SILENT_MS - 1);
    expect(amounts(tree, 't')).toEqual({ spent: 0, reserved: held, estimated: 0 });
    await tree.wait(2);
    expect(amounts(tree, 't')).toEqual(whole(held));
    expect(tree.standingOf('t')).toMatchObject({ running: 0, requests: { used: 0 } });
    expect(tree.logged).toContainEqual(
      expect.objectContaining({ event: 'lease_expired', level: 'team', tokens: held }),
    );
    // The key has charged the whole request, which nobody has settled.
    tree.fault = () => null;
    await tree.wait(2 * MINUTE);
    expect(amounts(tree, 't')).toEqual(whole(100));
    tree.settleAt('t/k', 'of k', 30);
    await tree.wait(2 * MINUTE);
    expect(amounts(tree, 't')).toEqual(exact(30));
  },
);

test('G13 a key that was silent and still has a running request holds it again from its next message on', async () => {
  const tree = await silentKeys(1000, 'k');
  await tree.wait(SILENT_MS + 1);
  tree.fault = () => null;
  await tree.reserveAt('t/k', 'later');
  expect(amounts(tree, 't')).toEqual({ spent: 100, reserved: 100, estimated: 100 });
  tree.settleAt('t/k', 'of k', 20);
  tree.settleAt('t/k', 'later', 10);
  await tree.wait(MINUTE);
  expect(amounts(tree, 't')).toEqual(exact(30));
});

test('G13 a silent user is charged at its key, which tells its team, and both are right after its next message', async () => {
  const tree = new HolderNetwork();
  tree.add('t', 'team', { budget: { tokens: 1000 } });
  tree.add('t/k', 'key', { budget: { tokens: 800 }, per_user: { rpm: 5 } });
  tree.add('t/k/ada', 'user');
  await tree.reserveAt('t/k/ada', 'a');
  tree.fault = (to) => (to === 'k' ? 'before' : null);
  await tree.wait(SILENT_MS + MINUTE);
  expect([amounts(tree, 't/k'), amounts(tree, 't')]).toEqual([whole(100), whole(100)]);
  tree.fault = () => null;
  tree.settleAt('t/k/ada', 'a', 25);
  await tree.wait(2 * MINUTE);
  expect([amounts(tree, 't/k'), amounts(tree, 't')]).toEqual([exact(25), exact(25)]);
});

test('G13 of a user who is erased after a silence, nothing stays but the charge', async () => {
  const tree = new HolderNetwork();
  tree.add('k', 'key', { budget: { tokens: 1000 }, per_user: { rpm: 5 } });
  for (const user of ['ada', 'bob']) {
    tree.add(`k/${user}`, 'user');
    await tree.reserveAt(`k/${user}`, `of ${user}`);
  }
  tree.fault = () => 'before';
  tree.restartAt('k');
  await tree.at('k').limits.alarm();
  await tree.wait(SILENT_MS + 1);
  tree.fault = () => null;
  expect(await tree.at('k/ada').limits.drain('a hash')).toBe(true);
  const { sql } = tree.at('k');
  for (const table of ['key_users', 'held', 'heard', 'silent'])
    expect(sql.exec(`SELECT user FROM ${table} WHERE user = 'ada'`).toArray()).toEqual([]);
  expect(amounts(tree, 'k')).toEqual(whole(200));
});

test('G13 what a silent user holds of a former team of its key is charged at that team', async () => {
  const tree = new HolderNetwork();
  for (const team of ['t', 'z']) tree.add(team, 'team', { budget: { tokens: 1000 } });
  tree.add('t/k', 'key', { per_user: { rpm: 5 } });
  tree.add('t/k/ada', 'user');
  await tree.reserveAt('t/k/ada', 'a');
  tree.fault = (to) => (to === 'k' ? 'before' : null);
  await tree.patch('t/k', { team: 'z' });
  await tree.wait(SILENT_MS + 2 * MINUTE);
  expect([amounts(tree, 't'), amounts(tree, 'z')]).toEqual([whole(100), exact(0)]);
  tree.fault = () => null;
  tree.settleAt('t/k/ada', 'a', 25);
  await tree.wait(3 * MINUTE);
  expect([amounts(tree, 't'), amounts(tree, 'z')]).toEqual([exact(25), exact(0)]);
});

test('G13 a team that restarts finds its silent keys, one that spoke is none of them, and the rows about them are deleted', async () => {
  const tree = await silentKeys(1000, 'k', 'l');
  await tree.wait(SILENT_MS / 2);
  tree.restartAt('t');
  tree.fault = () => null;
  tree.settleAt('t/l', 'of l', 40);
  await tree.reserveAt('t/l', 'again');
  tree.fault = (to) => (to === 't' ? 'before' : null);
  await tree.wait(SILENT_MS);
  tree.restartAt('t');
  // Since when keys are silent is known from an alarm on.
  await tree.wait(SILENT_MS);
  expect(amounts(tree, 't')).toEqual({ spent: 240, reserved: 0, estimated: 200 });
  tree.fault = () => null;
  tree.settleAt('t/k', 'of k', 1);
  tree.settleAt('t/l', 'again', 2);
  await tree.wait(2 * MINUTE);
  expect(amounts(tree, 't')).toEqual(exact(43));
  await tree.wait(2 * SILENT_MS);
  expect(['silent', 'heard'].map((table) => tree.at('t').sql.count(table))).toEqual([0, 0]);
});

test('G13 a child that does not return what it holds is not asked again for 10 seconds, or until its next message', async () => {
  const tree = new HolderNetwork();
  tree.add('t', 'team', { budget: { tokens: 100_000 } });
  for (const key of ['t/k', 't/l']) tree.add(key, 'key');
  await tree.reserveAt('t/l', 'a');
  // So much that the key `l` holds something in advance, and the budget is used up.
  tree.fault = (to) => (to === 'l' ? 'before' : null);
  const ask = async (id: string) => {
    const { recall } = tree.calls;
    const { kind } = await tree.reserveAt('t/k', id, { outputTokens: 99_000 });
    return [kind, tree.calls.recall - recall];
  };
  expect(await ask('b')).toEqual(['refused', 1]);
  expect(await ask('c')).toEqual(['refused', 0]);
  // It says what it holds, and holds something in advance again.
  await tree.wait(11_000);
  await tree.reserveAt('t/l', 'd');
  expect(await ask('e')).toEqual(['refused', 1]);
  tree.now += 9_999;
  expect(await ask('f')).toEqual(['refused', 0]);
  tree.now += 1;
  expect(await ask('g')).toEqual(['refused', 1]);
});
