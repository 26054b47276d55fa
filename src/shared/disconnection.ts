/** Disconnects: calls back when a client leaves, and makes the error that breaks off a response body whose headers are sent. */

/**
 * Calls back when the client disconnects.
 *
 * workerd keeps a listener, and every object that the listener refers to, until its next full garbage collection, even if the request has
 * ended. Unremoved listeners kept 5 KB of each request: the heap grew to 105 MB between two full collections, and to 33 MB without them
 * (workerd 1.20261023). Remove the listener when the disconnect no longer matters.
 * @param signal that of the client's request
 * @returns removes the listener
 */
export function onDisconnect(signal: AbortSignal, act: () => void): () => void {
  signal.addEventListener('abort', act);
  return () => signal.removeEventListener('abort', act);
}

/**
 * workerd closes the client's connection for any error of a body, and logs an uncaught exception unless `retryable` marks the error as a
 * lost connection (workerd `jsg/util.c++`; tested with 1.20261023). So the client sees that the body is incomplete.
 */
export function disconnection(message: string): Error {
  return Object.assign(new Error(message), { retryable: true });
}
