/** Calls of a holder to its parents: how long they wait, and what follows an overload. */
import { expect, test, vi } from 'vitest';
import type { LeaseMessage, ParentCalls } from '../../../src/ledger/limits/allowance.ts';
import { boundedParents } from '../../../src/ledger/limits/parent-calls.ts';
import { failureOf } from '../../../src/shared/durable-objects.ts';

const MESSAGE: LeaseMessage = {
  ...{ user: 'u', seq: 1, charges: [], running: [], minute: null, needs: [], extra: 0, isLast: false },
};

/** Parents that answer with what `answer` returns. */
function parentsOf(answer: (team: string) => Promise<never>) {
  const calls: string[] = [];
  let now = 0;
  const act = (team: string) => () => {
    calls.push(team);
    return answer(team);
  };
  const parents = boundedParents(
    (team): ParentCalls => ({ openUser: act(team), lease: act(team), settleUnreserved: act(team) }),
    () => now,
  );
  return {
    calls,
    wait: (ms: number) => {
      now += ms;
    },
    lease: (team: string) => parents(team).lease(MESSAGE).catch(failureOf),
    open: (team: string) => parents(team).openUser('u').catch(failureOf),
  };
}

test('an overloaded parent is not called again for a second, whatever waits, and others are', async () => {
  const overloaded = Object.assign(new Error('Durable Object is overloaded.'), { overloaded: true });
  const tested = parentsOf(async (team) => {
    throw team === 'busy' ? overloaded : new Error('gone');
  });
  expect(await tested.lease('busy')).toBe('overloaded');
  tested.wait(999);
  expect([await tested.lease('busy'), await tested.open('busy')]).toEqual(['overloaded', 'overloaded']);
  expect([await tested.lease('other'), await tested.lease('other')]).toEqual(['failed', 'failed']);
  expect(tested.calls).toEqual(['busy', 'other', 'other']);
  tested.wait(1);
  expect(await tested.open('busy')).toBe('overloaded');
  expect(tested.calls).toHaveLength(4);
});

test('a parent that gives no answer is given up after 10 seconds', async () => {
  vi.useFakeTimers();
  try {
    const tested = parentsOf(() => new Promise(() => {}));
    const leased = tested.lease('far');
    let isOver = false;
    void leased.then(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(9999);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await leased).toBe('slow');
  } finally {
    vi.useRealTimers();
  }
});
