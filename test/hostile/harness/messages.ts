/** The messages between the test process and the attacker's process. */
import type { RawResponse } from './request.ts';

/** Requests of one kind, all sent at once. */
export interface HostileRequest {
  /** The upstream's response: the model's name of the provider. */
  readonly answer?: string;
  /** Default: `openai`. */
  readonly provider?: 'openai' | 'converse';
  /** A request body that replaces the default one. */
  readonly body?: string;
  readonly stream: boolean;
  readonly times?: number;
  /** Further members of the request's body. */
  readonly more?: string;
  readonly path?: string;
  /** `slow`: a byte every now and then; `stalled`: half the body and no more. */
  readonly send?: 'whole' | 'slow' | 'stalled';
}

/** Requests before an attack, so that the costs of first requests don't count. */
export const WARM_REQUESTS = 40;

export type Command =
  | { readonly kind: 'prepare'; readonly hostileRequests: readonly HostileRequest[]; readonly port: number }
  | { readonly kind: 'fire' }
  | { readonly kind: 'warm'; readonly port: number };

/** The outcome of one request. */
export interface Outcome {
  /** `""` if the response has none. */
  readonly requestId: string;
  /** The gateway accepted the request for an upstream call, so it must have a record (M1). */
  readonly isSentOn: boolean;
  readonly hostileRequest: string;
  readonly status: number;
  readonly end: RawResponse['end'];
  readonly ms: number;
  readonly bytes: number;
  /** The error's code and message: of the body, or of the stream's error frame; null where there was none. */
  readonly code: string | null;
  readonly message: string | null;
  /** The rules of the contract that the response breaks. */
  readonly faults: readonly string[];
  /** The beginning of the response's body. */
  readonly start: string;
}

export type Report =
  | { readonly kind: 'started'; readonly upstreamPort: number }
  | { readonly kind: 'prepared' }
  | { readonly kind: 'broken'; readonly reason: string }
  | {
      readonly kind: 'fired';
      readonly outcomes: readonly Outcome[];
      /** The number of upstream requests. */
      readonly requestCount: number;
      /** Bytes of the answers' bodies that the upstream had to send, once each. */
      readonly bytesUp: number;
    };
