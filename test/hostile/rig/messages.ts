/** What the tests' process and the attacker's say to each other. */
import type { Answered } from './ask.ts';

/** Requests of one kind, all sent at once. */
export interface Shot {
  /** The upstream's answer: the model's name at the provider `openai`. */
  readonly answer?: string;
  /** The request's body in place of one that asks for that answer. */
  readonly body?: string;
  readonly stream: boolean;
  readonly times?: number;
  /** Further members of the request's body. */
  readonly more?: string;
  readonly path?: string;
  /** `slow`: a byte every now and then; `stalled`: half the body and no more. */
  readonly send?: 'whole' | 'slow' | 'stalled';
}

/** Before an attack, so that what only the first requests cost is not counted. */
export const WARM_REQUESTS = 40;

export type Command =
  | { readonly kind: 'prepare'; readonly shots: readonly Shot[]; readonly port: number }
  | { readonly kind: 'fire' }
  | { readonly kind: 'warm'; readonly port: number };

/** What became of one request. */
export interface Outcome {
  /** `""` where the answer has none. */
  readonly requestId: string;
  /** The gateway took it for a request that goes to an upstream: from there on it has a record (M1). */
  readonly isSentOn: boolean;
  readonly shot: string;
  readonly status: number;
  readonly end: Answered['end'];
  readonly ms: number;
  readonly bytes: number;
  /** The error's code and message: of the body, or of the stream's error frame; null where there was none. */
  readonly code: string | null;
  readonly message: string | null;
  /** The rules of the contract that the answer breaks. */
  readonly faults: readonly string[];
  /** The beginning of the answer's body. */
  readonly start: string;
}

export type Report =
  | { readonly kind: 'started'; readonly upstreamPort: number }
  | { readonly kind: 'prepared' }
  | { readonly kind: 'broken'; readonly reason: string }
  | {
      readonly kind: 'fired';
      readonly outcomes: readonly Outcome[];
      /** How often the upstream was asked. */
      readonly asked: number;
      /** Bytes of the answers' bodies that the upstream had to send, once each. */
      readonly bytesUp: number;
    };
