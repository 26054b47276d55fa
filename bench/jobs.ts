/** The messages between the bench and its load generator: jobs and their results. */
import type { Treatment } from './load/check.ts';
import type { PacedStream, StreamName } from './streams.ts';

/** A running workerd, and how the row's requests look. */
export interface Target {
  readonly row: string;
  readonly pid: number;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The prefix of the model's name: Weir's provider. */
  readonly modelPrefix: string;
  readonly treatment: Treatment;
}

export interface BulkJob {
  readonly kind: 'bulk';
  readonly target: Target;
  readonly stream: StreamName;
  /** Bytes of each upstream chunk; 0: one event per chunk. */
  readonly chunkBytes: number;
  readonly events: number;
  /** How long to repeat the request. */
  readonly ms: number;
}

export interface PacedJob {
  readonly kind: 'paced';
  readonly target: Target;
  readonly stream: PacedStream;
  readonly streams: number;
  /** Frames per second of each stream. */
  readonly rate: number;
  readonly ms: number;
}

/** The first stream of a fresh process. */
export interface ColdJob {
  readonly kind: 'cold';
  readonly target: Target;
  readonly rate: number;
  /** Frame numbers after which the CPU time is read; the last is the stream's length. */
  readonly marks: readonly number[];
}

export interface RequestsJob {
  readonly kind: 'requests';
  readonly target: Target;
  readonly isStreamed: boolean;
  /** Absent: one short message. */
  readonly promptBytes?: number;
  /** The upstream answers with an error. */
  readonly isRefused?: boolean;
  readonly ms: number;
}

export type Job = BulkJob | PacedJob | ColdJob | RequestsJob;

/** Named figures; null if a figure could not be measured. */
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
