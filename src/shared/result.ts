/** The result of an operation that can fail: a value, or an error. Expected failures are values, never exceptions. */
export type Result<Value, Failure> =
  | { readonly kind: 'ok'; readonly value: Value }
  | { readonly kind: 'error'; readonly error: Failure };

/** A result with a value. */
export function ok<Value>(value: Value): { readonly kind: 'ok'; readonly value: Value } {
  return { kind: 'ok', value };
}

/** A result with an error. */
export function failure<Failure>(error: Failure): { readonly kind: 'error'; readonly error: Failure } {
  return { kind: 'error', error };
}
