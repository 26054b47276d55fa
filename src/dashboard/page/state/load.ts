/** Loads data for a view. The previous data stays on screen while the next is loading, and after a refresh that failed. */
import { useEffect, useState } from 'preact/hooks';
import type { Answer, Problem } from '../api/problem.ts';
import type { Range } from './range.ts';

export interface Loaded<Value> {
  readonly value: Value | null;
  /** When the value arrived, in ms since the epoch; null without one. */
  readonly loadedAt: number | null;
  /** Why the last call failed. The value beside it is of an earlier call with the same inputs. */
  readonly problem: Problem | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** Loads data of a range. Returns the problem of an invalid range without a call. */
export function within<Value, Inputs extends readonly unknown[]>(
  { problem }: Range,
  load: (...inputs: Inputs) => Promise<Answer<Value>>,
): (...inputs: Inputs) => Promise<Answer<Value>> {
  return problem === null ? load : async () => ({ kind: 'problem', problem });
}

interface State<Value> extends Omit<Loaded<Value>, 'reload'> {
  /** Those of the value. */
  readonly inputs: readonly unknown[];
}

/**
 * @param inputs loads again when one of them changes. A value of other inputs is removed when the call fails.
 * @param refreshes incremented by the caller to load again
 */
export function useLoad<Value>(
  load: (signal: AbortSignal) => Promise<Answer<Value>>,
  inputs: readonly unknown[],
  refreshes = 0,
): Loaded<Value> {
  const [{ inputs: _, ...state }, setState] = useState<State<Value>>({
    value: null,
    loadedAt: null,
    problem: null,
    isLoading: true,
    inputs,
  });
  const [reloads, setReloads] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    void load(controller.signal).then((answer) => {
      if (controller.signal.aborted) return;
      setState((before) => {
        if (answer.kind === 'answer')
          return { value: answer.value, loadedAt: Date.now(), problem: null, isLoading: false, inputs };
        const isRefresh = inputs.every((input, i) => Object.is(input, before.inputs[i]));
        const kept = isRefresh ? before : { value: null, loadedAt: null, inputs };
        return { ...kept, problem: answer.problem, isLoading: false };
      });
    });
    return () => controller.abort();
  }, [...inputs, refreshes, reloads]);
  return { ...state, reload: () => setReloads((before) => before + 1) };
}
