/**
 * Calls Durable Objects: each call ends within a limit, and runs a second time after a failure, because every
 * deployment resets each object once.
 */

/** The longest wait for an object, for callers that set no other limit. */
export const MAX_CALL_MS = 120_000;

export interface CallLimit {
  /** The longest wait, for both calls together. */
  readonly ms?: number;
  /** Default: a timer of the runtime. */
  readonly startTimer?: (ms: number, onFire: () => void) => () => void;
}

/**
 * - `overloaded`: more calls arrive than the object takes. It works, and another call at once makes it worse.
 * - `slow`: no answer within the limit: the object is far away, or calls wait in line.
 * - `reset`: the runtime has ended the object, as for a deployment. The next call starts it again.
 * - `failed`: any other exception.
 */
export type ObjectFailure = 'overloaded' | 'slow' | 'reset' | 'failed';

/** The object gave no answer within the limit. The call may have run, or still run. */
export class NoAnswer extends Error {
  constructor(ms: number) {
    super(`No answer within ${ms} ms`);
  }
}

/**
 * @param newStub a new stub for each call, because a stub that has thrown may fail forever
 * @param call runs a second time after a failure, so repeating it must change nothing
 */
export function callTwice<Stub, Value>(
  newStub: () => Stub,
  call: (stub: Stub) => Promise<Value>,
  limit: CallLimit = {},
): Promise<Value> {
  return within(async (isOver) => {
    try {
      return await call(newStub());
    } catch (error) {
      if (isOver() || failureOf(error) === 'overloaded') throw error;
      return await call(newStub());
    }
  }, limit);
}

/** One call, which rejects with {@link NoAnswer} after the limit. */
export function callOnce<Value>(call: () => Promise<Value>, limit: CallLimit = {}): Promise<Value> {
  return within(call, limit);
}

/** Which kind of failure the exception of a call is. It keeps its fields when an object passes it on. */
export function failureOf(error: unknown): ObjectFailure {
  if (error instanceof NoAnswer) return 'slow';
  if (has(error, 'overloaded')) return 'overloaded';
  return has(error, 'durableObjectReset') || has(error, 'retryable') ? 'reset' : 'failed';
}

/**
 * Errors of the runtime have such fields:
 * https://developers.cloudflare.com/durable-objects/best-practices/error-handling (read 2026-11-29)
 */
function has(error: unknown, field: string): boolean {
  return error instanceof Error && Reflect.get(error, field) === true;
}

async function within<Value>(
  act: (isOver: () => boolean) => Promise<Value>,
  { ms = MAX_CALL_MS, startTimer = runtimeTimer }: CallLimit,
): Promise<Value> {
  const late = Promise.withResolvers<never>();
  let isOver = false;
  const cancel = startTimer(ms, () => {
    isOver = true;
    late.reject(new NoAnswer(ms));
  });
  try {
    return await Promise.race([act(() => isOver), late.promise]);
  } finally {
    cancel();
  }
}

function runtimeTimer(ms: number, onFire: () => void): () => void {
  const timer = setTimeout(onFire, ms);
  return () => clearTimeout(timer);
}
