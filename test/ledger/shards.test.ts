/** Which object of a spread key an isolate chooses for a request (L10). */
import { describe, expect, test } from 'vitest';
import { KnownSpreads, shardHint } from '../../src/ledger/shards.ts';
import { placeObjects } from '../../src/settings/placement.ts';

const caller = (affinity: string, region = 'EU') => ({ keyId: 'k', region, affinity });

function knowing(spread: Readonly<Record<string, number>>): KnownSpreads {
  const spreads = new KnownSpreads(false);
  spreads.learn('k', spread, 0);
  return spreads;
}

describe('L10 the shard of a request', () => {
  test('is in the region of its caller, one for all requests of a session', () => {
    const spreads = knowing({ EU: 4, NA: 1 });
    const first = spreads.shardsFor(caller('session'), 0)[0];
    expect(first).toMatch(/^k\/s\/EU\/[0-3]$/);
    for (let i = 0; i < 20; i++) expect(spreads.shardsFor(caller('session'), i)[0]).toBe(first);
    expect(spreads.shardsFor(caller('session', 'NA'), 0)).toEqual(['k/s/NA/0']);
  });

  test('all shards of a region get about as many sessions', () => {
    const spreads = knowing({ EU: 32 });
    const counts = new Map<string, number>();
    for (let i = 0; i < 3200; i++) {
      const [name = ''] = spreads.shardsFor(
        caller(`0193a7c0-0000-7000-8000-${String(i).padStart(12, '0')}`),
        0,
      );
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    expect(counts.size).toBe(32);
    expect(Math.max(...counts.values())).toBeLessThan(160);
  });

  test('twice as many shards move about half of the sessions', () => {
    const [few, many] = [knowing({ EU: 4 }), knowing({ EU: 8 })];
    const sessions = Array.from({ length: 1000 }, (_, i) => `s${i}`);
    const stay = sessions.filter(
      (one) => few.shardsFor(caller(one), 0)[0] === many.shardsFor(caller(one), 0)[0],
    );
    expect(stay.length).toBeGreaterThan(400);
  });

  test('the second one is another one, and there is none where a region has one shard', () => {
    const [first, second] = knowing({ EU: 2 }).shardsFor(caller('a'), 0);
    expect(new Set([first, second])).toEqual(new Set(['k/s/EU/0', 'k/s/EU/1']));
    expect(knowing({ EU: 1 }).shardsFor(caller('a'), 0)).toHaveLength(1);
  });

  test('is the key’s own object in a region without shards, for a key that is not spread, and a minute after the last answer', () => {
    const spreads = knowing({ EU: 2 });
    expect(spreads.shardsFor(caller('a', 'AF'), 0)).toEqual([]);
    expect(spreads.shardsFor({ ...caller('a'), keyId: 'l' }, 0)).toEqual([]);
    expect(spreads.shardsFor(caller('a'), 59_999)).toHaveLength(2);
    expect(spreads.shardsFor(caller('a'), 60_000)).toEqual([]);
    spreads.learn('k', null, 0);
    expect(spreads.shardsFor(caller('a'), 0)).toEqual([]);
  });

  test('no key with 1,000 later ones is remembered', () => {
    const spreads = knowing({ EU: 1 });
    for (let i = 0; i < 1000; i++) spreads.learn(`k${i}`, { EU: 1 }, 0);
    expect(spreads.shardsFor(caller('a'), 0)).toEqual([]);
  });
});

test('L10 a request whose continent is not known has no region; LOCATION_HINT and JURISDICTION leave one region', () => {
  const [free, placed] = [new KnownSpreads(false), new KnownSpreads(true)];
  expect([null, 'EU', 'NA', 'AN', 'T1', 'x'].map((one) => free.regionOf(one))).toEqual([
    ...[null, 'EU', 'NA', 'all', 'all', 'all'],
  ]);
  expect([null, 'EU', 'NA'].map((one) => placed.regionOf(one))).toEqual([null, 'all', 'all']);
});

test('L10 the object of a shard is created near its callers, unless LOCATION_HINT says where', () => {
  expect(['k/s/EU/0', 'k/s/NA/31', 'k/s/all/0', 'k', 'k/u/s/EU/0', '*3'].map(shardHint)).toEqual([
    ...['weur', 'enam', undefined, undefined, undefined, undefined],
  ]);
  const created: unknown[] = [];
  const namespace = {
    getByName: (name: string, options?: { readonly locationHint?: string }) => {
      created.push([name, options?.locationHint]);
      return {};
    },
  };
  const check = { isVerified: true } as unknown as Parameters<typeof placeObjects>[2];
  for (const locationHint of [null, 'apac'])
    placeObjects(namespace, { jurisdiction: null, locationHint }, check, shardHint).getByName('k/s/SA/1');
  expect(created).toEqual([
    ['k/s/SA/1', 'sam'],
    ['k/s/SA/1', 'apac'],
  ]);
});
