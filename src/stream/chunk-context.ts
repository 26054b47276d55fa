/** What the making of canonical chunks takes from outside: where an answer comes from, what was asked, time and randomness. */
import type { Shape } from '../canonical/chunk.ts';
import type { StreamMeter } from '../canonical/part.ts';
import type { Upstream } from '../canonical/upstream-error.ts';

/** Where an answer comes from and what it may take from outside: time and randomness come in as functions. */
export interface ChunkContext {
  readonly shape: Shape;
  readonly upstream: Upstream;
  /** The first half of every chunk's `model` (C2). */
  readonly provider: string;
  /** The model asked for, named where the upstream names none. */
  readonly model: string;
  readonly reasoning: 'pass' | 'strip';
  /** Where usage goes: on a chunk of its own at the end, on the chunk of the last finish, or nowhere (U1, U2). */
  readonly usageAt: 'end' | 'finish' | 'nowhere';
  /** What the answer costs so far, in US dollars, or null where that is not known: absent where the request did not ask (P5). */
  readonly cost?: () => number | null;
  /** How many choices were asked for. */
  readonly choices: number;
  /** Tools' names as the client has them, by those that stand for them at the upstream; absent: each stands for itself. */
  readonly toolNames?: ReadonlyMap<string, string>;
  /** The current time in seconds. */
  readonly now: () => number;
  /** A fresh random text, for ids that the upstream left out. */
  readonly random: () => string;
  readonly meter: StreamMeter;
}
