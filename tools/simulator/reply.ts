/** A reply of the server: a head, and steps that write, wait or abort. */
import type { Refusal, WireEvent } from './scene.ts';

export type Step =
  | { readonly write: string | Uint8Array; readonly paced: boolean }
  | { readonly wait: number }
  /** `end` closes the body, `reset` destroys the socket, `hang` leaves it open until the client or the simulator closes it. */
  | { readonly stop: 'end' | 'reset' | 'hang' };

export interface Reply {
  /** Undefined: the server never responds. */
  readonly head: Head | undefined;
  readonly steps: Iterable<Step> | AsyncIterable<Step>;
}

export interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

export const STREAM_HEAD: Head = {
  status: 200,
  headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
};
export const EVENT_STREAM_HEAD: Head = {
  status: 200,
  headers: { 'content-type': 'application/vnd.amazon.eventstream' },
};
export const JSON_HEAD: Head = { status: 200, headers: { 'content-type': 'application/json' } };

/** The rest of a longer stream comes without waits. */
const MAX_PACED_EVENTS = 100;

/** Waits for the pace after each of the first events. */
export function* paced(events: Iterable<WireEvent>): Generator<Step> {
  let sent = 0;
  for (const { text, bytes = text } of events) yield { write: bytes, paced: sent++ < MAX_PACED_EVENTS };
}

export function replyOf(refusal: Refusal): Reply {
  const headers = { 'content-type': refusal.contentType ?? 'application/json', ...refusal.headers };
  return { head: { status: refusal.status, headers }, steps: [{ write: refusal.body, paced: false }] };
}
