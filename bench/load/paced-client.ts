/** The client of one paced stream: finds each frame's mark in the received bytes and compares it with the previous one. */

import { converseEnd } from '../converse-stream.ts';
import type { Target } from '../jobs.ts';
import { type PacedStream, pacedEnd } from '../streams.ts';
import { requestBody } from './bulk.ts';
import { problemOf } from './check.ts';
import { Connection } from './client.ts';
import { framesSent, MARK, pacedBytes, pacedText } from './pacer.ts';

/** Longer than a mark and than the end, so that neither is missed if it is split between two reads. */
const CARRIED_CHARACTERS = 40;
const DONE = 'data: [DONE]\n\n';
const MESSAGE_STOP = 'data: {"type":"message_stop"}\n\n';
/** The event at which Responses streams begin to repeat their text. */
const REPETITION = 'response.output_text.done';

export interface PacedClientOptions {
  readonly target: Target;
  readonly stream: PacedStream;
  readonly model: string;
  /** Called for each frame with the ms since the upstream wrote it. */
  readonly onFrame: (latencyMs: number, number: number) => void;
  /** Whether to keep the complete response and check it like bulk responses. */
  readonly isKept: boolean;
  /** Cancels the response, which then rejects. */
  readonly signal?: AbortSignal;
}

export interface PacedAnswer {
  readonly firstByteMs: number;
  readonly problem: string | null;
}

/** Sends the request and reads the response to its end. */
export async function readPaced(options: PacedClientOptions): Promise<PacedAnswer> {
  const { target, stream, model, onFrame, isKept, signal } = options;
  const connection = await Connection.open(target.port);
  signal?.addEventListener('abort', () => connection.close());
  const askedAt = performance.now();
  let firstByteMs = -1;
  let frames = 0;
  let isInOrder = true;
  let carried = '';
  let kept = '';
  let isRepeating = false;
  const status = await connection.request(
    { path: target.path, headers: target.headers, body: requestBody(target, model, true) },
    (bytes) => {
      const now = performance.now();
      if (firstByteMs < 0) firstByteMs = now - askedAt;
      const text = carried + bytes.toString('latin1');
      if (isKept) kept += bytes.toString('latin1');
      let read = 0;
      const end = isRepeating ? 0 : text.indexOf(REPETITION);
      isRepeating ||= end >= 0;
      for (const mark of (isRepeating ? text.slice(0, end) : text).matchAll(MARK)) {
        const number = Number(mark[1]);
        isInOrder &&= number === frames;
        frames++;
        onFrame(now - Number(mark[2]) / 1000, number);
        read = mark.index + mark[0].length;
      }
      carried = text.slice(Math.max(read, text.length - CARRIED_CHARACTERS));
    },
  );
  connection.close();
  const sent = framesSent(model);
  let problem: string | null = null;
  if (status !== 200) problem = `status ${status}`;
  else if (!isInOrder) problem = 'frames are out of order, duplicated or lost';
  else if (frames !== sent) problem = `${frames} frames instead of ${sent}`;
  else if (!carried.endsWith(endOf(target, stream))) problem = `ends with ${JSON.stringify(carried)}`;
  else if (isKept) {
    // After them, the frames may be repeated.
    const marks = [...kept.matchAll(MARK)].slice(0, frames).map(([mark]) => mark);
    const sentText = target.treatment === 'bytes' ? pacedBytes : pacedText;
    problem = problemOf(target.treatment, sentText(stream, marks), kept);
  }
  return { firstByteMs, problem };
}

/** The last characters of a complete response. */
function endOf({ treatment }: Target, stream: PacedStream): string {
  const isOwn = treatment === 'bytes' || stream === 'responses';
  const end = treatment === 'messages' ? MESSAGE_STOP : DONE;
  if (treatment === 'bytes' && stream === 'converse')
    return converseEnd().toString('latin1').slice(-DONE.length);
  return (isOwn ? pacedEnd(stream) : end).slice(-DONE.length);
}
