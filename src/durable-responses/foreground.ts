/** Stores a foreground response at its end, before its client receives the terminal event. */
import { isObject, type JsonObject, objectOf, parseJsonExactly } from '../shared/json.ts';
import { type Frame, FrameSplitter, isEvent, isTerminal, joinBytes, statusOf, writeFrame } from './frames.ts';

/** A longer stream is not stored, because the Worker holds it in memory until its end. */
const MAX_STORED_BYTES = 8 * 1024 * 1024;

/** Stores the frames of a response. @returns whether it is stored */
export type Store = (events: Uint8Array) => Promise<boolean>;

/** @param response the stream or the object of a response that began */
export function storeForeground(response: Response, isStreamed: boolean, store: Store): Promise<Response> {
  return isStreamed ? Promise.resolve(storeStream(response, store)) : storeObject(response, store);
}

function storeStream(response: Response, store: Store): Response {
  const splitter = new FrameSplitter();
  let kept: Uint8Array[] = [];
  let bytes = 0;
  const transform = new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      const ready: Uint8Array[] = [];
      for (const frame of splitter.add(chunk)) {
        bytes += frame.bytes.length;
        if (isEvent(frame) && bytes <= MAX_STORED_BYTES) kept.push(frame.bytes);
        if (!isTerminal(frame)) {
          ready.push(frame.bytes);
          continue;
        }
        if (ready.length > 0) controller.enqueue(joinBytes(ready.splice(0)));
        const isStored = bytes <= MAX_STORED_BYTES && (await store(joinBytes(kept)));
        kept = [];
        ready.push(isStored ? frame.bytes : withoutStore(frame));
      }
      if (ready.length > 0) controller.enqueue(joinBytes(ready));
    },
  });
  return new Response(response.body?.pipeThrough(transform) ?? null, response);
}

const STORED = '"store":true,"background":';
const NOT_STORED = '"store":false,"background":';

/** The last occurrence is the response's own field: behind it are only texts. */
function notStored(json: string): string {
  const at = json.lastIndexOf(STORED);
  return at < 0 ? json : json.slice(0, at) + NOT_STORED + json.slice(at + STORED.length);
}

function withoutStore({ bytes }: Frame): Uint8Array {
  return new TextEncoder().encode(notStored(new TextDecoder().decode(bytes)));
}

async function storeObject(response: Response, store: Store): Promise<Response> {
  const json = await response.text();
  const object = parseJsonExactly(json);
  const isStored = isObject(object) && (await store(eventsOf(object)));
  return new Response(isStored ? json : notStored(json), response);
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
