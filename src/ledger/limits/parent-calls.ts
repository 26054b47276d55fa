/** The calls of a holder to its parents: each ends within a limit, and an overloaded parent gets none for a while. */
import { callOnce, failureOf } from '../../shared/durable-objects.ts';
import type { ParentCalls } from './allowance.ts';

/**
 * The longest wait for a parent. It answers within about 3 s, in which its other children return what they hold. The message of a call that
 * is given up is repeated, as after a lost answer.
 */
const MAX_PARENT_MS = 10_000;
/** An overloaded parent is not called again for so long. */
const OVERLOAD_PAUSE_MS = 1000;

/**
 * @param open a new stub of the parent for each call
 * @returns the parents by the same names
 */
export function boundedParents(
  open: (team: string) => ParentCalls,
  now: () => number,
): (team: string) => ParentCalls {
  const pauses = new Map<string, { readonly error: unknown; readonly until: number }>();
  return (team) => {
    const call = async <Value>(act: (parent: ParentCalls) => Promise<Value>): Promise<Value> => {
      const pause = pauses.get(team);
      if (pause !== undefined && now() < pause.until) throw pause.error;
      pauses.delete(team);
      try {
        return await callOnce(() => act(open(team)), { ms: MAX_PARENT_MS });
      } catch (error) {
        if (failureOf(error) === 'overloaded') pauses.set(team, { error, until: now() + OVERLOAD_PAUSE_MS });
        throw error;
      }
    };
    return {
      openUser: (...args) => call((parent) => parent.openUser(...args)),
      lease: (message) => call((parent) => parent.lease(message)),
      settleUnreserved: (...args) => call((parent) => parent.settleUnreserved(...args)),
    };
  };
}
