/** Loads an answer and keeps the last one on screen while the next is on its way. */
import { useEffect, useState } from 'preact/hooks';
import type { Answer, Problem } from '../api/fetch-api.ts';
import type { Range } from './range.ts';

export interface Loaded<Value> {
  readonly value: Value | null;
  readonly problem: Problem | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** Loads what is in a range, or says at once why nothing can be. */
export function within<Value, Inputs extends readonly unknown[]>(
  { problem }: Range,
  load: (...inputs: Inputs) => Promise<Answer<Value>>,
): (...inputs: Inputs) => Promise<Answer<Value>> {
  return problem === null ? load : async () => ({ kind: 'problem', problem });
}

/** @param inputs what the load depends on: it is loaded anew when one of them changes */
export function useLoad<Value>(
  load: (signal: AbortSignal) => Promise<Answer<Value>>,
  inputs: readonly unknown[],
): Loaded<Value> {
  const [state, setState] = useState<Omit<Loaded<Value>, 'reload'>>({
    value: null,
    problem: null,
    isLoading: true,
  });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const aborting = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    void load(aborting.signal).then((answer) => {
      if (aborting.signal.aborted) return;
      const isAnswer = answer.kind === 'answer';
      setState({
        value: isAnswer ? answer.value : null,
        problem: isAnswer ? null : answer.problem,
        isLoading: false,
      });
    });
    return () => aborting.abort();
  }, [...inputs, turn]);
  return { ...state, reload: () => setTurn((before) => before + 1) };
}
