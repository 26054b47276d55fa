/** How a busy key is spread over shards: when it grows and shrinks, what its shards may use, and how many requests it then takes (L10). */
import { describe, expect, test } from 'vitest';
import { childObject, readObjectName } from '../../../src/ledger/ledger-calls.ts';
import { KeySpread, knownShards, shardName } from '../../../src/ledger/limits/spread.ts';
import { HolderNetwork } from './holder-network.ts';
import { MemorySql, MINUTE, NOW } from './memory-sql.ts';

const HOUR = 60 * MINUTE;

/** A key of which requests arrive at a steady rate. */
class Arriving {
  now = NOW;
  readonly sql = new MemorySql({ rpm: 1 });
  spread = new KeySpread(this.sql, () => this.now);

  /** @param rates requests a second by region */
  for(seconds: number, rates: Readonly<Record<string, number>>): void {
    const owed = new Map<string, number>();
    for (let second = 0; second < seconds; second++) {
      for (const [region, rate] of Object.entries(rates)) {
        const due = (owed.get(region) ?? 0) + rate;
        if (due >= 1) this.spread.note(region, Math.floor(due));
        owed.set(region, due % 1);
      }
      this.now += 1000;
    }
  }
}

describe('L10 the spread of a key', () => {
  test.each<[what: string, rates: Record<string, number>, spread: Record<string, number> | null]>([
    ['a quiet key', { EU: 5 }, null],
    ['a key that one region calls less than half as often as an object takes', { EU: 45 }, null],
    ['a busy key of one region', { EU: 60 }, { EU: 2 }],
    ['a key that two regions call', { EU: 5, NA: 0.2 }, { EU: 1, NA: 1 }],
    ['a region with less than six requests a minute', { EU: 5, NA: 0.05 }, null],
    ['a key of three regions, one of which is busy', { EU: 190, NA: 20, AS: 1 }, { EU: 4, NA: 1, AS: 1 }],
    ['more than a region may have', { all: 10_000 }, { all: 32 }],
  ])('%s', (_, rates, spread) => {
    const key = new Arriving();
    key.for(120, rates);
    expect(key.spread.current).toEqual(spread);
  });

  test('grows within ten seconds, and at once in a burst', () => {
    const key = new Arriving();
    key.for(10, { EU: 60 });
    expect(key.spread.current).toEqual({ EU: 2 });
    key.spread.note('EU', 10_000);
    expect(key.spread.current).toEqual({ EU: 32 });
  });

  test('shrinks after an hour of quiet, not before, and not while it is busy', () => {
    const key = new Arriving();
    key.for(60, { EU: 190, NA: 1 });
    expect(key.spread.current).toEqual({ EU: 4, NA: 1 });
    key.for(58 * 60, { EU: 1 });
    expect(key.spread.current).toEqual({ EU: 4, NA: 1 });
    key.for(10, { EU: 190 });
    key.for(HOUR / 1000 - 30, { EU: 1 });
    expect(key.spread.current).toEqual({ EU: 4 });
    key.for(60, { EU: 1 });
    expect(key.spread.current).toBeNull();
  });

  test('is stored: an object that has lost its memory has it, and an hour of quiet begins anew', () => {
    const key = new Arriving();
    key.for(60, { EU: 190, NA: 1 });
    key.spread = new KeySpread(key.sql, () => key.now);
    expect(key.spread.current).toEqual({ EU: 4, NA: 1 });
    key.for(59 * 60, { EU: 1 });
    expect(key.spread.current).toEqual({ EU: 4, NA: 1 });
  });

  test('has no more regions than a key may have', () => {
    const key = new Arriving();
    for (let i = 0; i < 100; i++) key.spread.note(`R${i}`, 600);
    expect(Object.keys(key.spread.current ?? {})).toHaveLength(16);
  });
});

test('L10 the names of shards among the children of a key, and of their objects', () => {
  const shard = shardName('EU', 3);
  expect(childObject('key1', shard)).toBe('key1/s/EU/3');
  expect(readObjectName('key1/s/EU/3')).toEqual({ keyId: 'key1', user: null, shard });
  // A user may have any name without a line break.
  expect(readObjectName('key1/u/a/s/EU/3')).toEqual({ keyId: 'key1', user: 'a/s/EU/3', shard: null });
});

/** A key with shards, of which each call between objects and each request is counted. */
function spreadKey(limits: Parameters<HolderNetwork['add']>[2], shards: number) {
  const network = new HolderNetwork();
  network.add('k', 'key', limits);
  const names = Array.from({ length: shards }, (_, n) => `k/${shardName('EU', n)}`);
  for (const name of names) network.add(name, 'shard');
  const calls = new Map<string, number>();
  const called = (path: string) => calls.set(path, (calls.get(path) ?? 0) + 1);
  const toKey = () => network.calls.open + network.calls.lease;
  const ask = async (path: string, id: string) => {
    called(path);
    const { kind } = await network.reserveAt(path, id);
    called(path);
    network.settleAt(path, id, 30);
    return kind;
  };
  return { network, names, calls, toKey, ask };
}

describe('L10 what shards save', () => {
  test('32 shards take at least 20 times the requests of one object, if each object takes 200 calls a second', async () => {
    const requests = 3200;
    const { names, calls, toKey, ask } = spreadKey({ budget: { tokens: 1e9 }, rpm: 1e7 }, 32);
    for (let i = 0; i < requests; i++) expect(await ask(names[i % 32] ?? '', `r${i}`)).toBe('reserved');
    const seconds = Math.max(toKey(), ...calls.values()) / 200;
    // One object is called twice for each request.
    expect(requests / seconds).toBeGreaterThanOrEqual(20 * 100);
  });

  test('the key’s own object gets at most 0.1 calls for a request while its limits have room for 1,000', async () => {
    const { network, names, toKey, ask } = spreadKey({ budget: { tokens: 1e9 }, rpm: 1e7 }, 4);
    for (let i = 0; i < 400; i++) await ask(names[i % 4] ?? '', `w${i}`);
    // 1,500 requests of 100 tokens at their bound; each is charged 30.
    const { spent = 0 } = network.standingOf('k').budget ?? {};
    await network.patch('k', { budget: { tokens: spent + 150_000 } });
    const before = toKey();
    for (let i = 0; i < 500; i++) expect(await ask(names[i % 4] ?? '', `r${i}`)).toBe('reserved');
    // Half of what is allowed: slow shards renew leases that they have not used up.
    expect((toKey() - before) / 500).toBeLessThanOrEqual(0.05);
  });

  test('with 80 ms between regions, a request waits for the key once a lease, and else for the near shard alone', async () => {
    const { network, names, toKey, ask } = spreadKey({ budget: { tokens: 1e9 }, rpm: 1e7 }, 1);
    let farMs = 0;
    network.latency = async () => {
      farMs += 80;
    };
    const waits: number[] = [];
    for (let i = 0; i < 100; i++) {
      const before = farMs;
      await ask(names[0] ?? '', `r${i}`);
      waits.push(farMs - before);
    }
    expect(waits[0]).toBeGreaterThanOrEqual(160);
    expect(waits.filter((ms) => ms > 0).length).toBeLessThanOrEqual(5);
    expect(toKey()).toBeLessThanOrEqual(6);
  });
});

describe.each([
  ['budget', { budget: { tokens: 4000 } }],
  ['rpm', { rpm: 40 }],
  ['tpm', { tpm: 3760 }],
  ['max_concurrent', { max_concurrent: 40 }],
])('L10 %s over all shards', (kind, limits) => {
  test('is exact: of 100 requests at once at five shards 40 pass', async () => {
    const { network, names } = spreadKey(limits, 5);
    const kinds = await Promise.all(
      Array.from({ length: 100 }, async (_, i) => network.reserveAt(names[i % 5] ?? '', `r${i}`)),
    );
    expect(kinds.filter((one) => one.kind === 'reserved')).toHaveLength(40);
    expect(kinds.find((one) => one.kind === 'refused')).toMatchObject({ by: 'key' });
    if (kind !== 'budget') return;
    // The last cent: what a shard gives back is there for another one.
    network.settleAt(names[0] ?? '', 'r0', 0);
    await network.wait(11_000);
    expect((await network.reserveAt(names[1] ?? '', 'last')).kind).toBe('reserved');
    expect((await network.reserveAt(names[2] ?? '', 'more')).kind).toBe('refused');
  });
});

test('L10 a shard that is lost is charged whole by its key until it reports again', async () => {
  const { network, names } = spreadKey({ budget: { tokens: 100_000 } }, 2);
  const [lost = '', other = ''] = names;
  await network.reserveAt(lost, 'a');
  network.restartAt(lost);
  network.fault = () => 'before';
  await network.wait(MINUTE);
  expect(network.standingOf('k').budget?.reserved).toBeGreaterThanOrEqual(100);
  network.fault = () => null;
  expect((await network.reserveAt(other, 'b')).kind).toBe('reserved');
  network.settleAt(lost, 'a', 30);
  network.settleAt(other, 'b', 30);
  await network.wait(2 * MINUTE);
  expect(network.standingOf('k').budget).toMatchObject({ spent: 60, reserved: 0 });
});

test('L10 a shard that is silent for longer than a request may take is charged whole, until it reports what was used', async () => {
  const { network, names } = spreadKey({ budget: { tokens: 100_000 } }, 2);
  const [lost = ''] = names;
  await network.reserveAt(lost, 'a');
  network.fault = () => 'before';
  await network.wait(30 * MINUTE);
  const { spent = 0, estimated, reserved } = network.standingOf('k').budget ?? {};
  expect(spent).toBeGreaterThanOrEqual(100);
  expect([estimated, reserved]).toEqual([spent, 0]);
  network.fault = () => null;
  network.settleAt(lost, 'a', 30);
  await network.wait(3 * MINUTE);
  expect(network.standingOf('k').budget).toMatchObject({ spent: 30, reserved: 0, estimated: 0 });
});

test('L10 a shard that had no requests for 20 minutes is no child of its key until the next one: all that it charges counts', async () => {
  const { network, names } = spreadKey({ budget: { tokens: 100_000 } }, 1);
  const [path = ''] = names;
  const { sql, limits } = network.at('k');
  const spend = async (id: string, tokens: number) => {
    await network.reserveAt(path, id);
    network.settleAt(path, id, tokens);
    await network.wait(MINUTE);
  };
  await spend('a', 30);
  expect(limits.children.names(9)).toEqual([shardName('EU', 0)]);
  await network.wait(20 * MINUTE);
  expect(limits.children.names(9)).toEqual([]);
  // Its records are still read.
  expect(knownShards(sql)).toEqual([shardName('EU', 0)]);
  await spend('b', 40);
  expect(network.standingOf('k').budget).toMatchObject({ spent: 70, reserved: 0 });
  expect(limits.children.names(9)).toEqual([shardName('EU', 0)]);
});

test('L10 a shard whose request has expired stays a child of its key: the late charge counts', async () => {
  const { network, names } = spreadKey({ budget: { tokens: 100_000 } }, 1);
  const [path = ''] = names;
  await network.reserveAt(path, 'a');
  await network.wait(60 * MINUTE);
  expect(network.standingOf('k').budget).toMatchObject({ spent: 100, estimated: 100 });
  network.settleAt(path, 'a', 30);
  await network.wait(MINUTE);
  expect(network.standingOf('k').budget).toMatchObject({ spent: 30, reserved: 0, estimated: 0 });
});

test('L10 the standing of a key with 300 shards has what each of them was charged', async () => {
  const { network, names, ask } = spreadKey({ budget: { tokens: 1e9 } }, 300);
  for (const [n, path] of names.entries()) await ask(path, `r${n}`);
  await network.at('k').limits.children.reportShards();
  expect(network.standingOf('k').budget?.spent).toBe(300 * 30);
});

test('L10 a rollback: shards have tables of their own, and those of users are empty', async () => {
  const { network, names } = spreadKey({ budget: { tokens: 100_000 } }, 2);
  await network.reserveAt(names[0] ?? '', 'a');
  const { sql } = network.at('k');
  expect(knownShards(sql)).toEqual([shardName('EU', 0)]);
  const tables = sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
  const found = tables.map(({ name }) => name);
  expect(found).toEqual(expect.arrayContaining(['key_shards', 'shard_held', 'shards', 'spread']));
  expect(found).not.toContain('key_users');
  expect(found).not.toContain('held');
});

test('L10 the answer of a key and of its shards says how it is spread, to a caller that says where it is', async () => {
  const { network, names } = spreadKey({ budget: { tokens: 1e9 } }, 1);
  expect(await network.reserveAt('k', 'a')).not.toHaveProperty('spread');
  expect(await network.reserveAt('k', 'b', { region: 'EU' })).toMatchObject({ spread: null });
  for (let i = 0; i < 600; i++) await network.reserveAt('k', `c${i}`, { region: 'EU' });
  expect(await network.reserveAt('k', 'd', { region: 'EU' })).toMatchObject({ spread: { EU: 2 } });
  expect(await network.reserveAt(names[0] ?? '', 'e', { region: 'EU' })).toMatchObject({ spread: { EU: 2 } });
});
