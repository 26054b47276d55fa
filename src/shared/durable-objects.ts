/** Calls Durable Objects a second time after a failure, because every deployment resets each object once. */

/**
 * @param newStub a new stub for each call, because a stub that has thrown may fail forever
 * @param call runs a second time after a failure, so repeating it must change nothing
 */
export async function callTwice<Stub, Value>(
  newStub: () => Stub,
  call: (stub: Stub) => Promise<Value>,
): Promise<Value> {
  try {
    return await call(newStub());
  } catch (error) {
    // A second call would make the overload worse.
    if (isOverloaded(error)) throw error;
    return await call(newStub());
  }
}

/** Errors of the runtime have this field: https://developers.cloudflare.com/durable-objects/best-practices/error-handling (read 2026-11-22) */
function isOverloaded(error: unknown): boolean {
  return error instanceof Error && 'overloaded' in error && error.overloaded === true;
}
