/** Tests the order of an alias's targets: the distribution follows the weights, and one conversation stays with one target (R2). */
import { expect, test } from 'vitest';
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

test('R2 the sticky key is the prompt_cache_key, else the user, else random', () => {
  const random = () => 'random';
  expect(stickyKey({ prompt_cache_key: 'k', user: 'u' }, random)).toBe('k');
  expect(stickyKey({ prompt_cache_key: '', user: 'u' }, random)).toBe('u');
  expect(stickyKey({ prompt_cache_key: 7, user: null }, random)).toBe('random');
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
