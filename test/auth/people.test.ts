/** Which team a caller of Cloudflare Access falls under (Y12): by its address, its groups, or as everybody else. */
import { describe, expect, test } from 'vitest';
import {
  KnownPeople,
  MAX_GROUPS,
  NO_GROUPS,
  type PeopleFields,
  PeopleRules,
  type Person,
  personProblem,
  readGroups,
  readRules,
  type TeamRules,
} from '../../src/auth/people.ts';

/** Teams in the order of their age. */
const rulesOf = (teams: Readonly<Record<string, PeopleFields>>): TeamRules[] =>
  Object.entries(teams).map(([id, fields], n) => ({ id, created_at: `2026-11-${10 + n}`, ...fields }));

const teamOf = (
  teams: Readonly<Record<string, PeopleFields>>,
  groups: readonly string[] = [],
  person: Partial<Person> = {},
) => {
  const known = { kind: 'known', names: groups } as const;
  const found = new PeopleRules(rulesOf(teams)).teamOf({
    ...{ name: 'ada@example.com', isService: false, groups: known },
    ...person,
  });
  return found.kind === 'team' ? found.id : found.kind;
};

describe('Y12 the team of a person', () => {
  test.each<[string, Readonly<Record<string, PeopleFields>>, readonly string[], string]>([
    ['no team', {}, ['eng'], 'none'],
    ['teams that list others', { a: { people: ['bob@example.com'], groups: ['ops'] } }, ['eng'], 'none'],
    ['its address', { a: { people: ['ada@example.com'] } }, [], 'a'],
    ['a glob over its address', { a: { people: ['*@example.com'] } }, [], 'a'],
    ['a glob of another domain', { a: { people: ['*@example.org'] } }, [], 'none'],
    ['a glob that matches a part of its address', { a: { people: ['*@example.co'] } }, [], 'none'],
    ['everybody in people', { a: { people: ['*'] } }, [], 'a'],
    ['a glob that matches it twice', { a: { people: ['*@example.com', 'ada@*'] } }, [], 'a'],
    ['its group', { a: { groups: ['eng'] } }, ['ops', 'eng'], 'a'],
    ['a glob over its group', { a: { groups: ['eng-*'] } }, ['eng-web'], 'a'],
    ['a group in other letters', { a: { groups: ['Eng'] } }, ['eng'], 'none'],
    ['the default', { a: { groups: ['ops'] }, b: { default: true } }, ['eng'], 'b'],
    ['people before groups', { a: { groups: ['eng'] }, b: { people: ['*@example.com'] } }, ['eng'], 'b'],
    ['groups before the default', { a: { default: true }, b: { groups: ['eng'] } }, ['eng'], 'b'],
    ['its address before a glob', { a: { people: ['*@*'] }, b: { people: ['ada@example.com'] } }, [], 'b'],
    ['its group before a glob', { a: { groups: ['*'] }, b: { groups: ['eng'] } }, ['eng'], 'b'],
    ['two groups: the older team', { a: { groups: ['ops'] }, b: { groups: ['eng'] } }, ['eng', 'ops'], 'a'],
    ['two globs: the older team', { a: { groups: ['o*'] }, b: { groups: ['e*'] } }, ['eng', 'ops'], 'a'],
    [
      'one address twice: the older team',
      { a: { people: ['ada@example.com'] }, b: { people: ['ada@example.com'] } },
      [],
      'a',
    ],
  ])('by %s', (_, teams, groups, expected) => {
    expect(teamOf(teams, groups)).toBe(expected);
    // The order in which they are stored says nothing.
    const known = { kind: 'known', names: groups } as const;
    const person = { name: 'ada@example.com', isService: false, groups: known };
    const stored = rulesOf(teams);
    expect(new PeopleRules(stored.reverse()).teamOf(person)).toEqual(
      new PeopleRules(rulesOf(teams)).teamOf(person),
    );
  });

  test('of two teams of the same time is the one with the smaller id', () => {
    const created_at = '2026-11-10';
    const teams = ['b', 'a'].map((id) => ({ id, created_at, groups: ['eng'] }));
    const person = {
      name: 'ada@example.com',
      isService: false,
      groups: { kind: 'known', names: ['eng'] },
    } as const;
    expect(new PeopleRules(teams).teamOf(person)).toEqual({ kind: 'team', id: 'a' });
  });
});

describe('Y12 a service token', () => {
  const service = { name: 'ci.access', isService: true, groups: NO_GROUPS };
  test.each<[string, PeopleFields, string]>([
    ['by its name', { people: ['ci.access'] }, 'a'],
    ['by a glob without an @', { people: ['ci*'] }, 'a'],
    ['by everybody', { people: ['*'] }, 'a'],
    ['not by a glob over addresses', { people: ['*@*', 'ci.access@*'] }, 'none'],
    ['not by a group', { groups: ['*'] }, 'none'],
    ['by the default', { default: true }, 'a'],
  ])('falls under a team %s', (_, fields, expected) => {
    expect(teamOf({ a: fields }, [], service)).toBe(expected);
  });

  test('whose name has an @ is no address', () => {
    const certificate = { ...service, name: 'Service:ada@example.com' };
    expect(teamOf({ a: { people: ['ada@example.com', '*@example.com'] } }, [], certificate)).toBe('none');
  });

  test('and a glob without an @ matches no address', () => {
    expect(teamOf({ a: { people: ['ada*'] } })).toBe('none');
  });
});

describe('Y12 groups that are not known', () => {
  const groups = { kind: 'unknown', reason: 'r' } as const;
  const teams = { a: { groups: ['*'] } };
  test('are no membership, and no permission where groups decide', () => {
    expect(teamOf(teams, [], { groups })).toBe('unknown');
    expect(teamOf({ ...teams, b: { default: true } }, [], { groups })).toBe('b');
    expect(teamOf({ ...teams, b: { people: ['*@example.com'] } }, [], { groups })).toBe('b');
  });
  test('do not matter where no team lists groups, or to a service token', () => {
    expect(teamOf({ a: { people: ['bob@example.com'] } }, [], { groups })).toBe('none');
    expect(teamOf(teams, [], { groups, isService: true, name: 'ci.access' })).toBe('none');
  });

  test.each([
    ['absent', {}],
    ['null', { groups: null }],
    ['a text', { groups: 'eng' }],
    ['an object', { groups: { 0: 'eng' } }],
    ['not of texts only', { groups: ['eng', 7] }],
    ['of lists', { groups: [['eng']] }],
    ['too large', { groups: Array.from({ length: MAX_GROUPS + 1 }, (_, n) => `g${n}`) }],
    ['of the prototype', JSON.parse('{"__proto__":{"groups":["eng"]}}')],
    ['in a text of custom claims', { custom: '{"groups":["eng"]}' }],
  ])('are those of a claim that is %s', (_, claims) => {
    expect(readGroups(claims, 'groups')).toMatchObject({ kind: 'unknown' });
  });

  test('are those of a deployment that reads no claim', () => {
    expect(readGroups({ groups: ['eng'] }, null)).toMatchObject({ kind: 'unknown' });
  });
});

describe('Y12 the groups of a token', () => {
  test.each([
    ['in a claim', { groups: ['eng', 'ops'] }, ['eng', 'ops']],
    ['in a custom claim', { custom: { groups: ['eng'] } }, ['eng']],
    ['in both: the claim of the token itself', { groups: [], custom: { groups: ['eng'] } }, []],
    ['none', { groups: [] }, []],
    ['with empty names, which no team lists', { groups: [''] }, ['']],
  ])('are %s', (_, claims, names) => {
    expect(readGroups(claims, 'groups')).toEqual({ kind: 'known', names });
  });
  test('are read by a name with dots', () => {
    const claim = 'https://example.com/claims.groups';
    expect(readGroups({ [claim]: ['eng'] }, claim)).toEqual({ kind: 'known', names: ['eng'] });
  });
});

describe('Y12 the rules of all teams', () => {
  const storeOf = (get: () => unknown) => ({ get: async () => get() }) as never;
  const good = { version: 1, teams: [{ id: 'a', created_at: 'c', people: ['*@example.com'] }] };

  test.each<[string, unknown]>([
    ['a text', 'x'],
    ['a list', []],
    ['of a later version', { ...good, version: 2 }],
    ['without teams', { version: 1 }],
    ['with a team without an id', { version: 1, teams: [{ created_at: 'c', people: ['*'] }] }],
    ['with people that are no list', { version: 1, teams: [{ id: 'a', created_at: 'c', people: '*' }] }],
    ['with a default that is no flag', { version: 1, teams: [{ id: 'a', created_at: 'c', default: 'no' }] }],
  ])('that are %s are unreadable, and not none', async (_, stored) => {
    expect(await readRules(storeOf(() => stored))).toBe('unreadable');
    expect(await new KnownPeople(storeOf(() => stored)).find(0)).toBe('unreadable');
  });

  test('that cannot be read are unreadable, and are read again', async () => {
    let isDown = true;
    const known = new KnownPeople(
      storeOf(() => {
        if (isDown) throw new Error('down');
        return good;
      }),
    );
    expect(await known.find(0)).toBe('unreadable');
    isDown = false;
    expect(await known.find(0)).toBeInstanceOf(PeopleRules);
    isDown = true;
    expect(await known.find(29_999)).toBeInstanceOf(PeopleRules);
    expect(await known.find(30_000)).toBe('unreadable');
  });

  test('are read once for many requests', async () => {
    let reads = 0;
    const known = new KnownPeople(
      storeOf(() => {
        reads++;
        return good;
      }),
    );
    for (let n = 0; n < 50; n++) await known.find(n);
    expect(reads).toBe(1);
  });

  test.each([
    ['ada@example.com', null],
    ['*@*.example.com', null],
    ['ci-*', null],
    ['*', null],
    ['ada@', 'must be'],
    ['@example.com', 'must be'],
    ['a@b@c', 'must be'],
    ['ada @example.com', 'must be'],
  ])('may have the entry %s of people: %s', (entry, problem) => {
    expect(personProblem(entry)).toEqual(problem === null ? null : expect.stringContaining(problem));
  });
});
