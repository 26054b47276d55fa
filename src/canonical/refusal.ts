/**
 * What a provider's refusal is, as `upstream/errors.ts` classifies it once (E1). Routing and records read its kind; second tries read the
 * provider's words and field, too.
 */

/** What a refusal is about, where it is not the request itself. */
export const REFUSAL_KINDS = [
  /** The prompt is too long for the model. */
  'context_length',
  /** The provider's content filter stopped the prompt. */
  'content_filter',
  /** The request refers to something that the provider does not store, such as an earlier response. */
  'missing_state',
  /** The model does not exist. */
  'missing_model',
  'bad_credential',
  /** The account has no money left. */
  'empty_balance',
  /** The account has too little money for this request. */
  'exceeds_balance',
  /** The provider does not serve the region from which it was called. */
  'unsupported_region',
  /** The provider took the request, and what the model wrote was invalid: a call of a tool, or JSON against its schema. */
  'invalid_output',
] as const;
export type RefusalKind = (typeof REFUSAL_KINDS)[number];

/** A classified refusal. It may quote the caller's prompt, so it is never stored, logged or sent. */
export interface UpstreamRefusal {
  /** The HTTP status, or the one that the error's code stands for. */
  readonly status: number;
  /** Null: the request itself is at fault, or it is not known what is. */
  readonly kind: RefusalKind | null;
  /** The provider's code; `""` if it sent none. */
  readonly code: string;
  /** The field that the provider names beside its message. */
  readonly field: string | undefined;
  /** The provider's own sentence, of which the first {@link MAX_REFUSAL_CHARS} are kept; undefined: it sent none. */
  readonly message: string | undefined;
  /** The wait before a retry, as the provider states it in seconds; absent: it states none. */
  readonly retryAfterSeconds?: number;
}

/** The part of a refusal's message that is read. */
export const MAX_REFUSAL_CHARS = 4096;
