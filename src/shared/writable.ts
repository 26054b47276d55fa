/** The type of an object that is made in steps. */

/** An object whose fields are still set. V8 defines each field after a spread by a call of its runtime, and assigns it without one. */
export type Writable<T> = { -readonly [Field in keyof T]: T[Field] };
