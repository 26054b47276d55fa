/** What refusals taught: whose requests it changes, and how much of it is kept. */
import { describe, expect, test } from 'vitest';
import { LearnedRefusals, type LearnedStatement } from '../../src/fitting/learned.ts';
import { TaughtMemory } from '../../src/fitting/taught-memory.ts';

const HOUR_MS = 3_600_000;
const BODY = { temperature: 1 };

function scope(keyId: string, api = 'chat') {
  return { providerId: 'acme', model: 'm', api, keyId };
}

function unsupported(field: string): LearnedStatement {
  return { finding: { kind: 'unsupported', field, isUnknown: false }, conditions: [] };
}

function range(max: number): LearnedStatement {
  return { finding: { kind: 'range', field: 'max_tokens', min: null, max }, conditions: [] };
}

function findings(learned: LearnedRefusals, keyId: string, now = 0) {
  return learned.recall(scope(keyId), BODY, now).map(({ finding }) => finding);
}

describe('Z4 what one key was taught', () => {
  test('applies to it alone, and to all once a second key met the same', () => {
    const learned = new LearnedRefusals();
    expect(learned.note(scope('a'), range(5), 0)).toBe(true);
    expect(learned.note(scope('a'), range(5), 0)).toBe(false);
    expect([findings(learned, 'a').length, findings(learned, 'b').length]).toEqual([1, 0]);
    expect(learned.note(scope('b'), range(5), 0)).toBe(false);
    expect(findings(learned, 'c')).toEqual([range(5).finding]);
  });

  test('is not what another key was taught of the same field', () => {
    const learned = new LearnedRefusals();
    learned.note(scope('a'), range(1), 0);
    learned.note(scope('b'), range(5), 0);
    expect(findings(learned, 'a')).toEqual([range(1).finding]);
    expect(findings(learned, 'b')).toEqual([range(5).finding]);
    expect(findings(learned, 'c')).toEqual([]);
  });

  test('goes before what all were taught, and is forgotten with it', () => {
    const learned = new LearnedRefusals();
    for (const key of ['a', 'b']) learned.note(scope(key), range(5), 0);
    learned.note(scope('c'), range(9), 0);
    expect(findings(learned, 'c')).toEqual([range(9).finding]);
    learned.forget(scope('c'), [range(9).finding]);
    expect([findings(learned, 'a'), findings(learned, 'c')]).toEqual([[], []]);
  });

  test('ends after an hour, and does not count then', () => {
    const learned = new LearnedRefusals();
    learned.note(scope('a'), range(5), 0);
    expect(findings(learned, 'a', HOUR_MS - 1)).toHaveLength(1);
    expect(findings(learned, 'a', HOUR_MS)).toEqual([]);
    learned.note(scope('b'), range(5), HOUR_MS);
    expect(findings(learned, 'c', HOUR_MS)).toEqual([]);
  });
});

describe('Z4 a memory', () => {
  test('keeps its newest thousand, however they arrive', () => {
    const memory = new TaughtMemory<number>();
    const count = () => {
      let entries = 0;
      for (let subject = 0; subject < 40; subject++)
        for (let key = 0; key < 7; key++) entries += memory.recall(`s${subject}`, `k${key}`, 0).size;
      return entries;
    };
    for (let i = 0; i < 20_000; i++) {
      memory.note(`s${i % 40}`, `n${i}`, i, `k${i % 7}`, 0);
      if (i % 3 === 0) memory.forget(`s${i % 40}`, `n${i}`, `k${i % 7}`);
      if (i % 11 === 0) memory.forget('s0', `n${i - 40}`, `k${i % 5}`);
    }
    expect(count()).toBeLessThanOrEqual(1000);
    expect(count()).toBeGreaterThan(500);
  });

  test('has a bound of characters, whatever its names and values', () => {
    const memory = new TaughtMemory<string>();
    for (let i = 0; i < 40; i++) memory.note('s', `n${i}`, 'x'.repeat(100_000), 'a', 0);
    expect([...memory.recall('s', 'a', 0).keys()].length).toBeLessThanOrEqual(10);
    memory.note('s', 'last', 'y', 'a', 0);
    expect(memory.recall('s', 'a', 0).get('last')).toBe('y');
  });

  test('of refusals has no value of a caller: neither a header nor a name', () => {
    const learned = new LearnedRefusals();
    const api = `/v1/messages user-${'lemur'.repeat(10_000)}`;
    for (let i = 0; i < 100; i++) learned.note(scope('a', `${api}${i}`), unsupported('seed'), 0);
    expect(learned.recall(scope('a', `${api}0`), BODY, 0)).toHaveLength(1);
  });
});
