/** What the writers of a Responses answer must know of its request: the fields that it repeats, and which tool each function stands for. */

import { writeEcho } from './request-echo.ts';

/** The tool of a request that a function of the chat request stands for. */
export interface ToolOrigin {
  /** A custom tool's call has one text as its input, and no JSON. */
  readonly kind: 'function' | 'custom';
  readonly name: string;
  readonly namespace: string | undefined;
}

export interface ResponsesSession {
  /** Members of every response object, as JSON text without braces: what of the request is repeated, and its defaults. */
  readonly echo: string;
  /** By the name of the function, where they are no plain functions of that name. */
  readonly tools: ReadonlyMap<string, ToolOrigin>;
  /** It asked for `encrypted_content`: some clients send no reasoning back that has none. */
  readonly wantsEncrypted: boolean;
  /** The request's own tier, where the upstream names none. */
  readonly serviceTier: string;
}

/** Of a request that passes as it is: its provider says what it says of it. */
export const EMPTY_SESSION: ResponsesSession = {
  echo: writeEcho({}, []),
  tools: new Map(),
  wantsEncrypted: false,
  serviceTier: 'default',
};
