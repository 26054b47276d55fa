/** Runs upstream bytes through the stream pipeline into the Responses writers. */

import { UsageAccumulator } from '../../../src/metering/request-meter.ts';
import { readResponsesRequest } from '../../../src/protocols/openai-responses/client-request.ts';
import { ResponsesWriter } from '../../../src/protocols/openai-responses/client-writer.ts';
import { ResponsesJsonWriter } from '../../../src/protocols/openai-responses/json-writer.ts';
import type { ResponsesSession } from '../../../src/protocols/openai-responses/session.ts';
import type { WriterOptions } from '../../../src/protocols/shared/client-protocol.ts';
import type { JsonObject } from '../../../src/shared/json.ts';
import { EventReader } from '../../../src/stream/event-reader.ts';
import {
  type Conversion,
  type Converted,
  convertStream,
  NOW_SECONDS,
  optionsOf,
  REQUEST_ID,
} from '../../contract/convert.ts';

export const WRITER_OPTIONS: WriterOptions = {
  errorFrames: 'data',
  maxEventBytes: 1024 * 1024,
  requestId: REQUEST_ID,
  promptTokens: 3,
  model: 'p/asked-for',
  now: () => NOW_SECONDS,
};

export const REQUEST: JsonObject = { model: 'openai/gpt-5', input: 'Hello', stream: true };

/** The session of a request. */
export function sessionOf(request: JsonObject = REQUEST): ResponsesSession {
  const read = readResponsesRequest(request);
  if (read.kind === 'error') throw new Error(read.error.message);
  return read.value.session;
}

/** Writes a stream. */
export function runStream(reads: Iterable<Uint8Array>, conversion: Conversion): Converted {
  const openWriter = (options: WriterOptions) => new ResponsesWriter(sessionOf(), options);
  return convertStream(reads, { ...conversion, usageChunk: true, openWriter });
}

/** Collects the same into one JSON object. */
export function runJson(bytes: Uint8Array, conversion: Conversion): string {
  const writer = new ResponsesJsonWriter(sessionOf(), WRITER_OPTIONS);
  const accumulator = new UsageAccumulator(() => NOW_SECONDS * 1000, 0);
  const reader = new EventReader(optionsOf({ ...conversion, usageChunk: true }, accumulator), writer);
  reader.push(bytes);
  reader.end();
  return writer.take();
}
