/** Runs upstream bytes through the stream core into a Responses client. */
import type { JsonObject } from '../../../src/canonical/json.ts';
import type { WriterOptions } from '../../../src/clients/client.ts';
import { readResponsesRequest } from '../../../src/clients/responses/read-request.ts';
import { ResponsesBuilder } from '../../../src/clients/responses/responses-builder.ts';
import { ResponsesWriter } from '../../../src/clients/responses/responses-writer.ts';
import type { ResponsesSession } from '../../../src/clients/responses/session.ts';
import { Tally } from '../../../src/metering/tally.ts';
import { AnswerReader } from '../../../src/stream/answer-reader.ts';
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

/** What a request's writers know of it. */
export function sessionOf(request: JsonObject = REQUEST): ResponsesSession {
  return readResponsesRequest(request).session;
}

/** A stream, in the given reads. */
export function runStream(reads: Iterable<Uint8Array>, conversion: Conversion): Converted {
  const openWriter = (options: WriterOptions) => new ResponsesWriter(sessionOf(), options);
  return convertStream(reads, { ...conversion, usageChunk: true, openWriter });
}

/** The same, put together into one object's JSON. */
export function runWhole(bytes: Uint8Array, conversion: Conversion): string {
  const builder = new ResponsesBuilder(sessionOf(), WRITER_OPTIONS);
  const tally = new Tally(() => NOW_SECONDS * 1000, 0);
  const reader = new AnswerReader(optionsOf({ ...conversion, usageChunk: true }, tally), builder);
  reader.push(bytes);
  reader.end();
  return builder.take();
}
