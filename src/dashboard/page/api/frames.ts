/** Splits a stream into frames as they arrive. Each frame ends with a blank line, whose line end may have a carriage return. */

export interface Frame {
  /** ms since the request was sent. */
  readonly at: number;
  /** Including the line ends at its end. */
  readonly bytes: number;
  /** The text after `data: `, or a whole comment; of a frame above {@link MAX_FRAME_BYTES} its beginning. */
  readonly text: string;
  /** Undefined for a comment, `[DONE]` or a frame above {@link MAX_FRAME_BYTES}. */
  readonly json: unknown;
}

/** How much of one frame is read. The rest is only counted. */
const MAX_FRAME_BYTES = 4 * 1024 * 1024;

const LF = 10;
const CR = 13;
const MAX_BLOCK_MS = 20;

/** @param now returns ms since the request was sent */
export async function readFrames(
  body: ReadableStream<Uint8Array>,
  now: () => number,
  onFrame: (frame: Frame) => void,
): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let pending: Uint8Array[] = [];
  /** Bytes of the current frame: all of them, and those in `pending`. */
  let bytes = 0;
  let kept = 0;
  const keep = (part: Uint8Array) => {
    bytes += part.length;
    const some = part.subarray(0, MAX_FRAME_BYTES - kept);
    if (some.length > 0) pending.push(some);
    kept += some.length;
  };
  let lastYield = now();
  /** Of the current line, without its end; and whether a line precedes it in the frame. */
  let length = 0;
  let hasLine = false;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const at = now();
    // A fast stream must not block rendering and the stop button.
    if (at - lastYield > MAX_BLOCK_MS) {
      await new Promise((resolve) => setTimeout(resolve, MAX_BLOCK_MS));
      lastYield = now();
    }
    let start = 0;
    for (let i = 0; i < value.length; i++) {
      if (value[i] === CR) continue;
      if (value[i] !== LF) {
        length++;
        continue;
      }
      const isBlank = length === 0;
      length = 0;
      hasLine ||= !isBlank;
      if (!isBlank || !hasLine) continue;
      hasLine = false;
      keep(value.subarray(start, i + 1));
      const parts = pending;
      const size = bytes;
      pending = [];
      bytes = 0;
      kept = 0;
      start = i + 1;
      onFrame(frameOf(parts, size, at, decoder));
    }
    if (start < value.length) keep(value.subarray(start));
  }
}

function frameOf(parts: readonly Uint8Array[], bytes: number, at: number, decoder: TextDecoder): Frame {
  const frame = parts.map((part) => decoder.decode(part, { stream: true })).join('') + decoder.decode();
  const lines = frame.trimEnd().split('\n');
  const data = lines.find((line) => line.startsWith('data: '));
  const text = data === undefined ? lines.join(' ') : data.slice('data: '.length);
  return { at, bytes, text, json: parse(text) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
