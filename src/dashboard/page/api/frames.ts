/** Cuts a canonical stream into its frames as they arrive: each ends with a blank line (F1). */

export interface Frame {
  /** ms since the request was sent. */
  readonly at: number;
  /** With its two line feeds. */
  readonly bytes: number;
  /** What follows `data: `; a comment as it is. */
  readonly text: string;
  /** Absent where it is a comment or `[DONE]`. */
  readonly json: unknown;
}

const LF = 10;
const MAX_TURN_MS = 20;

/** @param now the clock that the frames' times are told by */
export async function readFrames(
  body: ReadableStream<Uint8Array>,
  now: () => number,
  onFrame: (frame: Frame) => void,
): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let held: Uint8Array[] = [];
  let rested = now();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const at = now();
    // Whoever sends faster than this page reads must not keep it from drawing, or from its stop button.
    if (at - rested > MAX_TURN_MS) {
      await new Promise((resolve) => setTimeout(resolve, MAX_TURN_MS));
      rested = now();
    }
    let start = 0;
    for (let i = 0; i < value.length; i++) {
      const last = i > 0 ? value[i - 1] : held.at(-1)?.at(-1);
      if (value[i] !== LF || last !== LF) continue;
      const parts = [...held, value.subarray(start, i + 1)];
      held = [];
      start = i + 1;
      onFrame(frameOf(parts, at, decoder));
    }
    if (start < value.length) held.push(value.subarray(start));
  }
}

function frameOf(parts: readonly Uint8Array[], at: number, decoder: TextDecoder): Frame {
  const whole = parts.map((part) => decoder.decode(part, { stream: true })).join('') + decoder.decode();
  const lines = whole.trimEnd().split('\n');
  const data = lines.find((line) => line.startsWith('data: '));
  const text = data === undefined ? lines.join(' ') : data.slice('data: '.length);
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  return { at, bytes, text, json: parse(text) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
