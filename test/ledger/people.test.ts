/** The object that has who falls under which team (Y12): one default, bounded lists, changes in order, and KV that fails. */
import { describe, expect, test } from 'vitest';
import { MAX_ENTRIES_OF_ALL, readRules } from '../../src/auth/people.ts';
import { PeopleRole } from '../../src/ledger/people.ts';
import { MemoryStore } from '../metering/records.ts';
import { MemorySql, transaction } from './limits/memory-sql.ts';

class Store extends MemoryStore {
  fails = 0;
  puts = 0;
  override async put(...args: Parameters<MemoryStore['put']>): Promise<void> {
    this.puts++;
    if (this.fails-- > 0) throw new Error('KV PUT failed: 429 Too Many Requests');
    return super.put(...args);
  }
}

function open(store = new Store(), sql = new MemorySql()) {
  const waits: number[] = [];
  const role = new PeopleRole({
    sql: sql as never,
    transaction: (act) => transaction(sql, act),
    store: store as never,
    startTimer: (ms, onFire) => {
      waits.push(ms);
      setImmediate(onFire);
      return () => {};
    },
  });
  const people = { change: (...args: Parameters<PeopleRole['changePeople']>) => role.changePeople(...args) };
  return { people, store, sql, waits, rules: () => readRules(store as never) };
}

const A = { id: 'a', created_at: '2026-11-01' };
const B = { id: 'b', created_at: '2026-11-02' };
const emails = (count: number) => Array.from({ length: count }, (_, n) => `p${n}@example.com`);

describe('Y12 the people of teams in their object', () => {
  test('changes the fields that are named, and KV has all teams', async () => {
    const { people, rules } = open();
    await people.change(A, { people: ['*@a'], groups: ['a'] });
    await people.change(B, { default: true });
    expect(await people.change(A, { people: ['*@b'] })).toEqual({
      kind: 'changed',
      before: { people: ['*@a'], groups: ['a'] },
      after: { people: ['*@b'], groups: ['a'] },
    });
    expect(await rules()).toEqual([
      { ...A, people: ['*@b'], groups: ['a'] },
      { ...B, default: true },
    ]);
    await people.change(A, { people: null, groups: [], default: null });
    expect(await rules()).toEqual([{ ...B, default: true }]);
  });

  test('lets one team be the default, also of two that ask at once', async () => {
    const { people, rules } = open();
    const asked = await Promise.all(
      [A, B].map((team) => people.change(team, { default: true, groups: [team.id] })),
    );
    expect(asked.map(({ kind }) => kind).sort()).toEqual(['changed', 'invalid']);
    expect(await rules()).toHaveLength(1);
    // The same again is no second default.
    expect(await people.change(A, { default: true })).toMatchObject({ kind: 'changed' });
  });

  test('has a bound over the lists of all teams: what is beyond changes nothing, and less always may', async () => {
    const { people, rules } = open();
    await people.change(A, { people: emails(MAX_ENTRIES_OF_ALL - 1) });
    expect(await people.change(B, { groups: ['x', 'y'] })).toMatchObject({
      kind: 'invalid',
      param: 'groups',
    });
    expect(await people.change(B, { groups: ['x'] })).toMatchObject({ kind: 'changed' });
    expect(await people.change(B, { people: ['b@example.com'] })).toMatchObject({ param: 'people' });
    expect(await people.change(A, { people: emails(5) })).toMatchObject({ kind: 'changed' });
    expect(await rules()).toHaveLength(2);
  });

  test('without a field changes and writes nothing', async () => {
    const { people, store } = open();
    await people.change(A, { groups: ['a'] });
    const { puts } = store;
    expect(await people.change(A, {})).toMatchObject({ before: { groups: ['a'] }, after: { groups: ['a'] } });
    expect(store.puts).toBe(puts);
  });

  test('writes again where KV refuses a second write in one second, and many changes at once need few writes', async () => {
    const { people, store, waits, rules } = open();
    store.fails = 2;
    await Promise.all([1, 2, 3, 4, 5].map((n) => people.change(A, { groups: [`g${n}`] })));
    expect(waits).toEqual([1100, 1100]);
    expect(store.puts).toBeLessThan(6);
    expect(await rules()).toEqual([{ ...A, groups: ['g5'] }]);
  });

  test('fails where KV stays down, and the same change then writes it', async () => {
    const { people, store, rules } = open();
    store.fails = 3;
    await expect(people.change(A, { groups: ['a'] })).rejects.toThrow('429');
    expect(await rules()).toEqual([]);
    await people.change(A, { groups: ['a'] });
    expect(await rules()).toEqual([{ ...A, groups: ['a'] }]);
  });

  test('that is new, as after a restoration, takes what KV has, and changes nothing where that cannot be read', async () => {
    const { store } = open();
    await store.put('team-people', JSON.stringify({ version: 1, teams: [{ ...A, default: true }] }));
    expect(await open(store).people.change(B, { default: true })).toMatchObject({ kind: 'invalid' });
    await store.put('team-people', '{"version":2}');
    await expect(open(store).people.change(B, { groups: ['b'] })).rejects.toThrow('cannot be read');
    expect(await open(store).rules()).toBe('unreadable');
  });

  test('survives the loss of its memory', async () => {
    const { people, store, sql } = open();
    await people.change(A, { default: true });
    expect(await open(store, sql).people.change(B, { default: true })).toMatchObject({ kind: 'invalid' });
  });
});
