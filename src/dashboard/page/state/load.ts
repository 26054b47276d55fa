/** Loads data for a view. The previous data stays on screen while the next is loading. */
import { useEffect, useState } from 'preact/hooks';
import type { Answer, Problem } from '../api/fetch-api.ts';
import type { Range } from './range.ts';

export interface Loaded<Value> {
  readonly value: Value | null;
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

/** @param inputs loads again when one of them changes */
export function useLoad<Value>(
  load: (signal: AbortSignal) => Promise<Answer<Value>>,
  inputs: readonly unknown[],
): Loaded<Value> {
  const [state, setState] = useState<Omit<Loaded<Value>, 'reload'>>({
    value: null,
    problem: null,
    isLoading: true,
  });
  const [reloads, setReloads] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    void load(controller.signal).then((answer) => {
      if (controller.signal.aborted) return;
      const isAnswer = answer.kind === 'answer';
      setState({
        value: isAnswer ? answer.value : null,
        problem: isAnswer ? null : answer.problem,
        isLoading: false,
      });
    });
    return () => controller.abort();
  }, [...inputs, reloads]);
  return { ...state, reload: () => setReloads((before) => before + 1) };
}
