/** Disconnects: calls back when a client leaves, and makes the error that breaks off a response body whose headers are sent. */

/**
 * Calls back when the client disconnects.
 *
 * The runtime keeps a listener, and everything that it refers to, until the next full garbage collection, also when the request has ended
 * long before (workerd 1.20261023: 5 KB for each request, and a heap that grew to 105 instead of 33 MB between two of them). So whoever
 * waits for a disconnect says when it no longer does.
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
