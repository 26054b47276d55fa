/** The type of an object whose fields are assigned one after the other. */

/**
 * The same type without `readonly`. In a literal, V8 calls its runtime for each field that follows a spread; an
 * assignment needs no call.
 */
export type Writable<T> = { -readonly [Field in keyof T]: T[Field] };
