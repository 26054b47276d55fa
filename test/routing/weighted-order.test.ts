/** Tests the order of an alias's targets: the distribution follows the weights, and one conversation stays with one target (R2). */
import { describe, expect, test } from 'vitest';
import { hashToUnit, orderTargets, stickyKey } from '../../src/routing/targets.ts';
import { targetWithoutAlias } from '../../src/settings/aliases.ts';

const step = (address: string, weight = 0) => ({ ...targetWithoutAlias(address), weight });
const MANY = 5000;

test('R2 without weights the order is the configured one', () => {
  const steps = [step('a'), step('b'), step('c')];
  for (let i = 0; i < 50; i++) expect(orderTargets(steps, `key ${i}`)).toEqual(steps);
});

test('R2 the first target is selected by weight, the others follow from the highest weight down', () => {
  const steps = [step('none'), step('one', 1), step('seven', 7), step('two', 2)];
  const firsts = new Map<string, number>();
  for (let i = 0; i < MANY; i++) {
    const order = orderTargets(steps, `user-${i}`).map(({ address }) => address);
    const others = ['seven', 'two', 'one', 'none'].filter((address) => address !== order[0]);
    if (order.slice(1).join() !== others.join()) expect(order.slice(1)).toEqual(others);
    firsts.set(order[0] ?? '', (firsts.get(order[0] ?? '') ?? 0) + 1);
  }
  expect(firsts.has('none')).toBe(false);
  for (const [address, share] of [
    ['one', 0.1],
    ['seven', 0.7],
    ['two', 0.2],
  ] as const) {
    expect((firsts.get(address) ?? 0) / MANY).toBeCloseTo(share, 1.5);
  }
});

test('R2 one sticky key always selects the same target', () => {
  const steps = [step('a', 1), step('b', 1)];
  const [first] = orderTargets(steps, 'conversation 7');
  for (let i = 0; i < 50; i++) expect(orderTargets(steps, 'conversation 7')[0]).toBe(first);
});

describe('R2 Y7 the sticky key', () => {
  const random = () => 'random';
  const ask = (content: unknown) => ({ role: 'user', content });
  const system = { role: 'system', content: 'You are terse.' };

  test('is the prompt_cache_key, else the session or user', () => {
    expect(stickyKey({ prompt_cache_key: 'k' }, 'session', random)).toBe('k');
    expect(stickyKey({ prompt_cache_key: '' }, 'session', random)).toBe('session');
    expect(stickyKey({ prompt_cache_key: 7 }, null, random)).toBe('random');
  });

  test('is the opening of a conversation that names nothing: the same in every turn, another for another conversation', () => {
    const opening = [system, ask('Hello')];
    const turns = [...opening, { role: 'assistant', content: 'Hi' }, ask('And now?')];
    const key = stickyKey({ messages: turns }, null, random);
    expect(stickyKey({ messages: opening }, null, random)).toBe(key);
    expect(stickyKey({ messages: [system, ask([{ type: 'text', text: 'Hello' }])] }, null, random)).toBe(key);
    expect(stickyKey({ messages: [system, ask('Goodbye')] }, null, random)).not.toBe(key);
    expect(stickyKey({ messages: [ask('Hello')] }, null, random)).not.toBe(key);
    expect(stickyKey({ messages: [ask([{ type: 'image_url' }])] }, null, random)).toBe('random');
  });

  test('does not grow with the prompt', () => {
    const long = 'x'.repeat(1_000_000);
    expect(stickyKey({ messages: [ask(long)], prompt: long }, null, random).length).toBeLessThan(10_000);
  });
});

test('Y7 a changed weight and a further target move only their share of the sessions', () => {
  const before = [step('a', 1), step('b', 1)];
  const firstOf = (steps: readonly ReturnType<typeof step>[], i: number) =>
    orderTargets(steps, `session ${i}`)[0]?.address;
  const moves = (after: readonly ReturnType<typeof step>[]) =>
    Array.from({ length: MANY }, (_, i) => [firstOf(before, i), firstOf(after, i)] as const).filter(
      ([from, to]) => from !== to,
    );
  // From halves to 3:1, a quarter moves, and only from b to a.
  const heavier = moves([step('a', 3), step('b', 1)]);
  expect(new Set(heavier.map(String))).toEqual(new Set(['b,a']));
  expect(heavier.length / MANY).toBeCloseTo(1 / 4, 1.5);
  const further = moves([step('c', 1), step('b', 1), step('a', 1)]);
  expect(new Set(further.map(([, to]) => to))).toEqual(new Set(['c']));
  expect(further.length / MANY).toBeCloseTo(1 / 3, 1.5);
});

test('R2 hashToUnit spreads texts that differ in one character evenly over [0, 1)', () => {
  const tenths = new Array<number>(10).fill(0);
  for (let i = 0; i < MANY; i++) {
    const value = hashToUnit(String(i));
    if (value < 0 || value >= 1) throw new Error(`${value} is not in [0, 1)`);
    tenths[Math.floor(value * 10)] = (tenths[Math.floor(value * 10)] ?? 0) + 1;
  }
  for (const count of tenths) expect(Math.abs(count / MANY - 0.1)).toBeLessThan(0.015);
});
