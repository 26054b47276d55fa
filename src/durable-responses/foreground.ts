/** Stores a foreground response at its end, before its client receives the terminal event. */
import { isObject, type JsonObject, objectOf, parseJsonExactly } from '../shared/json.ts';
import {
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

function withoutStore({ type, bytes }: Frame): Uint8Array {
  const { type: _, sequence_number, response, ...members } = readFrame(bytes);
  const unstored = { ...members, response: { ...objectOf(response), store: false } };
  return writeFrame(type, unstored, Number(sequence_number)).bytes;
}

async function storeObject(response: Response, store: Store): Promise<Response> {
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
