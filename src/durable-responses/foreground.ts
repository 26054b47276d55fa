/** Stores a foreground response at its end, before its client receives the terminal event. */
import { onDisconnect } from '../shared/disconnection.ts';
import { isObject, type JsonObject, objectOf, parseJsonExactly } from '../shared/json.ts';
import {
  DONE,
  type Frame,
  FrameSplitter,
  isEvent,
  isTerminal,
  joinBytes,
  readFrame,
  statusOf,
  writeFrame,
} from './frames.ts';

/** A longer stream is not stored, because the Worker holds it in memory until its end. */
const MAX_STORED_BYTES = 8 * 1024 * 1024;

/** The bound on the events that all streams of an isolate hold. A stream without room is not stored. */
const MAX_HELD_BYTES = 24 * 1024 * 1024;

/** The room for the events of all streams that one isolate holds until their end. */
export class EventRoom {
  #held = 0;

  /** @returns whether there is room */
  take(bytes: number): boolean {
    if (this.#held + bytes > MAX_HELD_BYTES) return false;
    this.#held += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }

  /** What is held, in bytes. */
  get held(): number {
    return this.#held;
  }
}

interface Storing {
  readonly isStreamed: boolean;
  /**
   * Stores the frames of a response.
   * @param events null: there was no room to hold them
   * @returns whether it is stored
   */
  readonly store: (events: Uint8Array | null) => Promise<boolean>;
  readonly room: EventRoom;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** @param response the stream or the object of a response that began */
export function storeForeground(response: Response, storing: Storing): Promise<Response> {
  return storing.isStreamed
    ? Promise.resolve(storeStream(response, storing))
    : storeObject(response, storing.store);
}

function storeStream(response: Response, { store, room, signal }: Storing): Response {
  const splitter = new FrameSplitter();
  const held = new HeldEvents(room);
  let hasEnded = false;
  const transform = new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      const ready: Uint8Array[] = [];
      for (const frame of splitter.add(chunk)) {
        if (hasEnded) break;
        if (isEvent(frame)) held.add(frame.bytes);
        if (!isTerminal(frame)) {
          ready.push(frame.bytes);
          continue;
        }
        if (ready.length > 0) controller.enqueue(joinBytes(ready.splice(0)));
        const isStored = await store(held.events);
        held.drop();
        // Every replay ends with `[DONE]`, and providers' own streams do not.
        ready.push(isStored ? frame.bytes : withoutStore(frame), DONE);
        hasEnded = true;
      }
      if (ready.length > 0) controller.enqueue(joinBytes(ready));
    },
  });
  if (response.body === null) return response;
  const stopWaiting = onDisconnect(signal, () => held.drop());
  // Also at the end of the stream: a client may cancel it, and without the flag `enable_request_signal` the signal is not aborted.
  const onEnd = () => {
    stopWaiting();
    held.drop();
  };
  response.body.pipeTo(transform.writable).then(onEnd, onEnd);
  return new Response(transform.readable, response);
}

/** The events of one stream so far. */
class HeldEvents {
  readonly #room: EventRoom;
  #frames: Uint8Array[] = [];
  #bytes = 0;
  #isDropped = false;

  constructor(room: EventRoom) {
    this.#room = room;
  }

  add(frame: Uint8Array): void {
    if (this.#isDropped) return;
    if (this.#bytes + frame.length > MAX_STORED_BYTES || !this.#room.take(frame.length)) return this.drop();
    this.#frames.push(frame);
    this.#bytes += frame.length;
  }

  /** All of them; null: there was no room. */
  get events(): Uint8Array | null {
    return this.#isDropped ? null : joinBytes(this.#frames);
  }

  drop(): void {
    this.#isDropped = true;
    this.#frames = [];
    this.#room.release(this.#bytes);
    this.#bytes = 0;
  }
}

function withoutStore({ type, bytes }: Frame): Uint8Array {
  const { type: _, sequence_number, response, ...members } = readFrame(bytes);
  const unstored = { ...members, response: { ...objectOf(response), store: false } };
  return writeFrame(type, unstored, Number(sequence_number)).bytes;
}

async function storeObject(response: Response, store: Storing['store']): Promise<Response> {
  const json = await response.text();
  const object = parseJsonExactly(json);
  const isStored = isObject(object) && (await store(eventsOf(object)));
  const unstored = () => JSON.stringify({ ...objectOf(object), store: false });
  return new Response(isStored ? json : unstored(), response);
}

/** The shortest stream of a response that was not streamed. */
function eventsOf(response: JsonObject): Uint8Array {
  const begun = { ...objectOf(response), status: 'in_progress', completed_at: null, output: [], usage: null };
  const status = statusOf(response);
  const type = status === 'completed' || status === 'incomplete' ? status : 'failed';
  return joinBytes([
    writeFrame('created', { response: begun }, 0).bytes,
    writeFrame(type, { response }, 1).bytes,
  ]);
}
