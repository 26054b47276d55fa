/** Splits a Responses stream into the frames of its numbered events, and reads what the log needs of a frame. */
import { type JsonObject, objectOf, parseJsonExactly, readText } from '../shared/json.ts';
import { DONE_FRAME, frame, HEARTBEAT_FRAME } from '../stream/sse-frame.ts';

/** Ends a stream. It has no number, so it is not stored: every complete replay ends with it. */
export const DONE = new TextEncoder().encode(DONE_FRAME);
/** A comment, because clients fail on events that they do not know. */
export const HEARTBEAT = new TextEncoder().encode(HEARTBEAT_FRAME);

/** A frame with its event's type: without `response.`, `error`, or `other` for further names. Comments and `[DONE]` have the type ''. */
export interface Frame {
  readonly type: string;
  readonly bytes: Uint8Array;
}

const LF = 10;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** The first bytes of every frame of a numbered event. Comments and `[DONE]` begin differently. */
const EVENT = encoder.encode('event: ');
const RESPONSE = 'response.';

/** Cuts the gateway's own stream, whose lines end with a line feed, into frames. */
export class FrameSplitter {
  /** The bytes of the open frame. */
  #open: Uint8Array[] = [];
  #endsWithLf = false;

  /** The frames that this chunk completes. */
  *add(chunk: Uint8Array): Generator<Frame> {
    let from = 0;
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, at + 1)) {
      const isEnd = at === 0 ? this.#endsWithLf : chunk[at - 1] === LF;
      if (!isEnd) continue;
      const bytes = this.#take(chunk.subarray(from, at + 1));
      from = at + 1;
      this.#endsWithLf = false;
      yield { type: typeOf(bytes), bytes };
    }
    if (from === chunk.length) return;
    this.#open.push(chunk.slice(from));
    this.#endsWithLf = chunk.at(-1) === LF;
  }

  #take(last: Uint8Array): Uint8Array {
    const bytes = joinBytes([...this.#open, last]);
    this.#open = [];
    return bytes;
  }
}

function typeOf(frame: Uint8Array): string {
  if (!EVENT.every((byte, index) => frame[index] === byte)) return '';
  const name = decoder.decode(frame.subarray(EVENT.length, frame.indexOf(LF)));
  if (name.startsWith(RESPONSE)) return name.slice(RESPONSE.length);
  return name === 'error' ? name : 'other';
}

/** An event in the form in which the gateway's writers send it. */
export function writeFrame(type: string, members: JsonObject, number: number): Frame {
  const name = type === 'error' ? type : `${RESPONSE}${type}`;
  const data = JSON.stringify({ type: name, ...members, sequence_number: number });
  return { type, bytes: encoder.encode(frame(name, data)) };
}

/** The data of a frame. Integers beyond 2^53 keep all digits. */
export function readFrame(bytes: Uint8Array): JsonObject {
  const text = decoder.decode(bytes);
  const data = parseJsonExactly(text.slice(text.indexOf('\ndata: ') + '\ndata: '.length));
  return objectOf(data);
}

/** Whether it is an event, which has a number and belongs to the log. */
export function isEvent({ type }: Frame): boolean {
  return type !== '';
}

/** The events that end a response. */
const TERMINAL: readonly string[] = ['completed', 'incomplete', 'failed'];

export function isTerminal({ type }: Frame): boolean {
  return TERMINAL.includes(type);
}

/** The status of a response object; an unknown one counts as failed. */
export function statusOf(response: JsonObject): string {
  return readText(response.status) ?? 'failed';
}

/** The frames of a block of the log. */
export function splitFrames(block: Uint8Array): readonly Uint8Array[] {
  return [...new FrameSplitter().add(block)].map(({ bytes }) => bytes);
}

export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts;
  if (parts.length === 1 && first !== undefined) return first;
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
