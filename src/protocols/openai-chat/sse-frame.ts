/** Writes the frames a client reads: `data: `, one line of compact JSON, two LFs (F1). */
import type { Chunk } from '../../canonical/chunk.ts';
import { type ApiError, errorBody } from '../../canonical/error.ts';

/** The last frame of every stream that began (F2). */
export const DONE_FRAME = 'data: [DONE]\n\n';

/** The one comment that a client sees (F3). */
export const HEARTBEAT_FRAME = ': heartbeat\n\n';

/** What stands before a frame's JSON. */
export const DATA = 'data: ';

/** A canonical chunk's key order is the order in which its object was made, and JSON.stringify keeps it. */
export function chunkFrame(chunk: Chunk): string {
  return `${DATA}${JSON.stringify(chunk)}\n\n`;
}

/** The types that an error has after the head, beside `server_error`: before it, the HTTP status conveys the rest (E2). */
const STREAM_ERROR_TYPES = ['timeout_error', 'stream_idle_timeout'];

/** An error after the head (E2); as `event: error` for clients that listen for it (E3). */
export function errorFrame(error: ApiError, form: 'data' | 'event'): string {
  const framed = STREAM_ERROR_TYPES.includes(error.type) ? error : { ...error, type: 'server_error' };
  return `${form === 'event' ? 'event: error\n' : ''}data: ${errorBody(framed)}\n\n`;
}

/** The upstream's own JSON, untouched; where it came in several data lines, an LF between them is only white space (V2). */
export function vendorFrame(json: string, name: string): string {
  return `${name === '' ? '' : `event: ${name}\n`}data: ${json.replaceAll('\n', '')}\n\n`;
}
