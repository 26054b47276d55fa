/** The jobs of the bench's load generator, and their results: the messages between the two processes. */
import type { Treatment } from './load/check.ts';
import type { PacedStream, StreamName } from './streams.ts';

/** A running workerd, and how a row is asked. */
export interface Target {
  readonly row: string;
  readonly pid: number;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Stands before the model's name: Weir's provider. */
  readonly modelPrefix: string;
  readonly treatment: Treatment;
}

export interface BulkJob {
  readonly kind: 'bulk';
  readonly target: Target;
  readonly stream: StreamName;
  /** Bytes of each of the upstream's chunks; 0 for an event in each. */
  readonly chunkBytes: number;
  readonly events: number;
  /** Asks again and again for so long. */
  readonly ms: number;
}

export interface PacedJob {
  readonly kind: 'paced';
  readonly target: Target;
  readonly stream: PacedStream;
  readonly streams: number;
  /** Frames a second of each stream. */
  readonly rate: number;
  readonly ms: number;
}

/** One stream for a process that has seen none. */
export interface ColdJob {
  readonly kind: 'cold';
  readonly target: Target;
  readonly rate: number;
  /** Numbers of frames after which the CPU is read; the last is the stream's length. */
  readonly marks: readonly number[];
}

export interface RequestsJob {
  readonly kind: 'requests';
  readonly target: Target;
  readonly isStreamed: boolean;
  readonly ms: number;
}

export type Job = BulkJob | PacedJob | ColdJob | RequestsJob;

/** Named figures; null where a job could not measure one. */
type Figures = Readonly<Record<string, number>>;

export interface JobResult {
  readonly figures: Figures;
  /** The error in the output, or null. */
  readonly problem: string | null;
}

/** The load generator's first message. */
export interface Ports {
  readonly upstream: number;
  readonly kv: number;
}
