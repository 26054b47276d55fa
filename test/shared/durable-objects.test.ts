/** Calls of Durable Objects: which failures are repeated, and how long a call waits. */
import { setImmediate } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { callOnce, callTwice, failureOf, MAX_CALL_MS, NoAnswer } from '../../src/shared/durable-objects.ts';

const OVERLOADED = Object.assign(new Error('Durable Object is overloaded.'), { overloaded: true });
const RESET = Object.assign(new Error('Durable Object reset because its code was updated.'), {
  durableObjectReset: true,
  retryable: true,
});

/** Calls an object whose answers are these, one after the other. */
async function outcomeOf(...answers: readonly unknown[]) {
  let [calls, stubs] = [0, 0];
  const call = callTwice(
    () => ++stubs,
    async () => {
      const answer = answers[calls++];
      if (answer instanceof Error) throw answer;
      return answer;
    },
  );
  return { answer: await call.catch((error: unknown) => error), calls, stubs };
}

test('a call that fails runs a second time, with a new stub', async () => {
  expect(await outcomeOf(RESET, 1)).toEqual({ answer: 1, calls: 2, stubs: 2 });
  expect(await outcomeOf(new Error('Network connection lost.'), 1)).toEqual({
    answer: 1,
    calls: 2,
    stubs: 2,
  });
});

test('an overloaded object is not called a second time at once', async () => {
  expect(await outcomeOf(OVERLOADED, 1)).toEqual({ answer: OVERLOADED, calls: 1, stubs: 1 });
});

test('a call without an answer ends at the limit, and is not repeated when it fails after that', async () => {
  let calls = 0;
  const first = Promise.withResolvers<never>();
  const call = () => {
    calls++;
    return first.promise;
  };
  // No fake timers: test files share a process, and another one's work may set timers.
  const cancel = vi.fn();
  const startTimer = vi.fn((_ms: number, _onFire: () => void) => cancel);
  const outcome = callTwice(() => null, call, { startTimer }).catch((error: unknown) => error);
  expect(startTimer.mock.calls).toEqual([[MAX_CALL_MS, expect.any(Function)]]);
  startTimer.mock.calls[0]?.[1]();
  expect(await outcome).toBeInstanceOf(NoAnswer);
  expect(cancel).toHaveBeenCalledOnce();
  first.reject(RESET);
  await setImmediate();
  expect(calls).toBe(1);
});

test.each([
  ['overloaded', OVERLOADED, 'overloaded'],
  [
    'overloaded, in words of another version',
    Object.assign(new Error('x'), { overloaded: true, retryable: true }),
    'overloaded',
  ],
  ['reset', RESET, 'reset'],
  ['lost on its way', Object.assign(new Error('Network connection lost.'), { retryable: true }), 'reset'],
  ['without an answer', new NoAnswer(5), 'slow'],
  [
    'an exception in its code',
    Object.assign(new TypeError('x is not a function'), { remote: true }),
    'failed',
  ],
  [
    'fields that are not true',
    Object.assign(new Error('x'), { overloaded: false, retryable: 'no' }),
    'failed',
  ],
  ['no error at all', 'overloaded', 'failed'],
])('the failure of a call: %s', (_, error, kind) => {
  expect(failureOf(error)).toBe(kind);
});

test('a call that is never repeated has the same limit', async () => {
  const timers: number[] = [];
  const startTimer = (ms: number, onFire: () => void) => {
    timers.push(ms);
    queueMicrotask(onFire);
    return () => {};
  };
  const call = callOnce(() => new Promise(() => {}), { ms: 7, startTimer });
  expect(failureOf(await call.catch((error: unknown) => error))).toBe('slow');
  expect(timers).toEqual([7]);
});
