/** The error that breaks off a response body whose headers are sent. */

/**
 * workerd closes the client's connection for any error of a body, and logs an uncaught exception unless `retryable` marks the error as a
 * lost connection (workerd `jsg/util.c++`; tested with 1.20261023). So the client sees that the body is incomplete.
 */
export function disconnection(message: string): Error {
  return Object.assign(new Error(message), { retryable: true });
}
