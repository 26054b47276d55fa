/** The upstream: the model's name selects the response, so that all rows request it in the same way. */
import {
  converseWire,
  oneFrameText,
  REFUSAL,
  STREAM_NAMES,
  type StreamName,
  streamText,
  wholeAnswer,
} from '../streams.ts';
import { chunkOf, inChunks, LAST_CHUNK, STREAM_HEAD, wholeResponse } from './http1.ts';
import { playPaced } from './pacer.ts';
import { serve } from './serve.ts';

const bodies = new Map<string, { readonly text: string; readonly raw: Buffer; readonly wire: Buffer }>();

/** @returns its port */
export function startUpstream(): Promise<number> {
  return serve(({ path, body, socket }) => {
    const requested: { readonly model?: string; readonly stream?: boolean } = JSON.parse(body);
    // Gemini's and Bedrock's requests have it in their path.
    const model = requested.model ?? /\/models?\/([^/]+)(?::|\/converse)/.exec(path)?.[1] ?? '';
    const [kind = '', ...rest] = model.split('.');
    if (kind === 'bulk') socket.write(bulkBody(model).wire);
    else if (kind === 'paced') playPaced(socket, model, Number(rest[0]), rest[2] ?? '');
    else if (kind === 'refused') socket.write(wholeResponse(400, 'application/json', refusal()));
    else if (requested.stream === true) socket.write(STREAM_HEAD + chunkOf(oneFrameText()) + LAST_CHUNK);
    else socket.write(wholeResponse(200, 'application/json', wholeAnswer()));
  });
}

function refusal(): string {
  const facts = { type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' };
  return JSON.stringify({ error: { message: REFUSAL, ...facts } });
}

export function bulkModel(stream: StreamName, chunkBytes: number, events: number): string {
  return `bulk.${stream}.${chunkBytes}.${events}`;
}

/** The text of a bulk stream and its bytes on the wire. Made once, before the measurement. */
export function bulkBody(model: string): {
  readonly text: string;
  readonly raw: Buffer;
  readonly wire: Buffer;
} {
  const known = bodies.get(model);
  if (known !== undefined) return known;
  const [, streamName, chunkBytes, events] = model.split('.');
  const name = STREAM_NAMES.find((stream) => stream === streamName);
  if (name === undefined) throw new Error(`Unknown stream ${streamName}`);
  const text = streamText(name, Number(events));
  const messages = name === 'converse' ? converseWire(Number(events)) : null;
  const raw = messages === null ? Buffer.from(text) : Buffer.concat(messages);
  const alone = () => Buffer.concat((messages ?? []).map((one) => inChunks(one, one.length)));
  const whole = () => (messages === null ? eventChunks(text) : alone());
  const body = Number(chunkBytes) > 0 ? inChunks(raw, Number(chunkBytes)) : whole();
  const made = { text, raw, wire: Buffer.concat([Buffer.from(STREAM_HEAD), body, Buffer.from(LAST_CHUNK)]) };
  bodies.set(model, made);
  return made;
}

function eventChunks(text: string): Buffer {
  const events = text.split(/(?<=\n\n|\r\n\r\n)/);
  return Buffer.from(events.map(chunkOf).join(''));
}
