/** Whose fault an error is: for reports and alerts, so that a caller's mistake does not look like an outage (E6). */
import { type ApiError, apiError, ERRORS, type ErrorCode, errorRow } from './error.ts';

/**
 * `caller`: the request itself. `deployment`: this deployment's credentials, balance, aliases and settings. `provider`: limits, failures
 * and broken responses of the provider. `gateway`: Weir, its memory and its ledger. The compact form of a record stores the index in this
 * list, so the order must not change.
 */
export const FAULTS = ['caller', 'deployment', 'provider', 'gateway'] as const;
export type Fault = (typeof FAULTS)[number];

/** Statuses of a provider that are not about the request, although they are 4xx. Bedrock sends 424 when the model failed. */
const PROVIDER_STATUSES: ReadonlySet<number> = new Set([408, 424, 429]);

/** Statuses about a credential and what it may use. */
const CREDENTIAL_STATUSES: ReadonlySet<number> = new Set([401, 402, 403]);

interface FaultContext {
  /** The requested model is an alias, so the deployment named the target. */
  readonly isAlias: boolean;
  /** The credential is the caller's own (`AUTH=passthrough`). */
  readonly callerPays: boolean;
}

/** @param error the error with which the request ended */
export function faultOf(error: ApiError, { isAlias, callerPays }: FaultContext): Fault {
  const { refusal, status, code } = error;
  if (refusal === undefined) {
    return errorRow(error)?.fault ?? (status >= 500 ? 'provider' : 'caller');
  }
  const { kind } = refusal;
  if (kind === 'content_filter' && refusal.status < 500) return 'caller';
  if (code === 'upstream_credential' || code === 'upstream_balance') return 'deployment';
  if (kind === 'missing_model' && refusal.status < 500) return isAlias ? 'deployment' : 'caller';
  if (CREDENTIAL_STATUSES.has(refusal.status)) return callerPays ? 'caller' : 'deployment';
  if (kind === 'unsupported_region') return 'deployment';
  if (PROVIDER_STATUSES.has(refusal.status)) return 'provider';
  return refusal.status >= 400 && refusal.status < 500 ? 'caller' : 'provider';
}

/** Whose fault the failure of one call is, as far as its status and code say it. */
export function faultOfCall(status: number | null, code: string): Fault {
  const error = { ...apiError('upstream_error', ''), code };
  const isRefusal = status !== null && status >= 400;
  const refusal = { kind: null, code, field: undefined, message: undefined };
  return faultOf(isRefusal ? { ...error, refusal: { ...refusal, status } } : error, {
    isAlias: false,
    callerPays: false,
  });
}

/**
 * Weir's codes for errors whose `error_code` may be the provider's own. The compact form of a record stores the index in this list, so the
 * order must not change.
 */
export const ERRORS_OF_PROVIDERS = [
  ...(['invalid_request', 'invalid_api_key', 'model_not_allowed', 'not_found', 'model_not_found'] as const),
  ...(['request_too_large', 'rate_limited', 'upstream_overloaded', 'timeout', 'upstream_error'] as const),
] as const satisfies readonly ErrorCode[];

/** Weir's code of an error, also where the client's code is the provider's own: reports group by it. */
export function weirCode({ code, weirCode: known, status }: ApiError): string {
  if (known !== undefined) return known;
  if (Object.hasOwn(ERRORS, code) || code === 'content_filter') return code;
  return status >= 500 ? 'upstream_error' : 'invalid_request';
}

const CODE = /^[\w.-]{1,64}$/;

/**
 * Whether a provider's word has the form of a code, and is stored: with spaces or signs it is a sentence, which may
 * quote the prompt (E5).
 */
export function isCode(word: string): boolean {
  return CODE.test(word);
}

/** The code of an error for records and logs: the client's, or Weir's where the provider's has not the form of a code (E5). */
export function storedCode(error: ApiError): string {
  return isCode(error.code) ? error.code : weirCode(error);
}
