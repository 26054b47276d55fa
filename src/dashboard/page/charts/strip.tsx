/** A chart of the arrival times and sizes of frames. Frames within one pixel share a mark. */

import type { FrameKind, SeenFrame } from '../views/live/run.ts';
import { useWidth } from './use-width.ts';

interface StripProps {
  readonly frames: readonly SeenFrame[];
  /** The duration of the whole width in ms, the same for all compared streams. */
  readonly spanMs: number;
  readonly firstAt: number | null;
}

const HEIGHT = 36;
const KINDS: readonly FrameKind[] = [
  'other',
  'usage',
  'done',
  'reasoning',
  'text',
  'tool',
  'refusal',
  'error',
];
const LARGEST = Math.log(4096);
const SMALLEST = Math.log(64);

export function Strip({ frames, spanMs, firstAt }: StripProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const x = (at: number) => Math.round((at / Math.max(spanMs, 1)) * Math.max(0, width - 2)) + 0.5;
  const marks = new Map<FrameKind, Map<number, number>>();
  for (const { kind, at, bytes } of frames) {
    const columns = marks.get(kind) ?? new Map<number, number>();
    marks.set(kind, columns);
    columns.set(x(at), Math.max(columns.get(x(at)) ?? 0, bytes));
  }
  const path = (columns: ReadonlyMap<number, number>) =>
    [...columns].map(([at, bytes]) => `M${at} ${HEIGHT}V${HEIGHT - heightOf(bytes)}`).join('');
  return (
    <div
      ref={box}
      class="strip"
      role="img"
      aria-label={`${frames.length} frames over ${Math.round(spanMs)} ms`}
    >
      <svg width={width} height={HEIGHT} aria-hidden="true">
        <path d={`M0 ${HEIGHT - 0.5}H${width}`} />
        {firstAt !== null && <rect class="first" width={x(firstAt)} height={HEIGHT} />}
        {KINDS.map((kind) => {
          const columns = marks.get(kind);
          return columns === undefined ? null : <path key={kind} class={`mark ${kind}`} d={path(columns)} />;
        })}
      </svg>
    </div>
  );
}

function heightOf(bytes: number): number {
  const part = (Math.log(Math.max(bytes, 1)) - SMALLEST) / (LARGEST - SMALLEST);
  return Math.round(6 + Math.min(1, Math.max(0, part)) * (HEIGHT - 8));
}
