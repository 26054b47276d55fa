/** Turns an upstream's refusal, its status and any form of body, into the error of the table that a caller gets (E1). */
import { type ApiError, apiError, type ErrorCode, type UpstreamError } from '../canonical/error.ts';
import {
  readUpstreamError,
  sanitize,
  sanitizeCode,
  type Upstream,
  unwrapErrorList,
  upstreamMessage,
} from '../canonical/upstream-error.ts';
import { type RefusalRules, refusalKind } from '../providers/refusals.ts';
import { isObject, type JsonObject, parseJson, readText } from '../shared/json.ts';
import { MAX_ERROR_MESSAGE_CHARS } from '../shared/limits.ts';
import type { StreamFailure } from '../stream/types.ts';

/** An upstream as its refusals are judged. */
export interface UpstreamErrorContext extends Upstream {
  /** Its provider's own words and forms. */
  readonly refusals: RefusalRules | undefined;
  /** The credential was the caller's own (AUTH=passthrough), and so are its refusals. */
  readonly callerPays: boolean;
  /** Where an operator sets its key, and its base URL where that is not the default: what to check after a refusal. */
  readonly keySetting?: string;
  readonly urlSetting?: string | null;
}

export interface UpstreamRefusal {
  readonly status: number;
  /** The body's text, or what of it was read. */
  readonly body: string;
}

/** Statuses that are the caller's own mistake and are kept, with the error type of each. */
const CALLER_ERRORS: ReadonlyMap<number, string> = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'permission_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'invalid_request_error'],
  [422, 'invalid_request_error'],
  [429, 'rate_limit_error'],
]);

/** The code where the upstream sends none. */
const CALLER_CODES: ReadonlyMap<number, ErrorCode> = new Map([
  [401, 'invalid_api_key'],
  [403, 'model_not_allowed'],
  [404, 'not_found'],
  [413, 'request_too_large'],
  [429, 'rate_limited'],
]);

const OVERLOADED: ReadonlySet<number> = new Set([503, 529]);
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const LATE: ReadonlySet<number> = new Set([408, 504, 522, 524]);

export function classifyRefusal(refusal: UpstreamRefusal, upstream: UpstreamErrorContext): ApiError {
  const { status } = refusal;
  const { callerPays } = upstream;
  const reported = readRefusal(refusal.body);
  const kind = kindOf(reported, upstream);
  const message =
    reported.message === undefined
      ? `${upstream.name} answered ${status}`
      : upstreamMessage(upstream, reported.message);
  // Some refuse a prompt that their filter stops as they refuse a credential. It is the caller's own, and takes no target out for others.
  if (status === 403 && kind === CONTENT_FILTER) {
    return { status: 400, type: 'invalid_request_error', code: CONTENT_FILTER, message, param: null };
  }
  if (!callerPays && status === 402 && kind === 'exceeds_balance') {
    const words = `${upstream.name} refused this request: for this deployment's balance its max_tokens is too high`;
    return apiError('upstream_refused', words);
  }
  const isEmpty = [400, 403, 429].includes(status) && kind === 'empty_balance';
  if (!callerPays && (status === 402 || reported.code === 'insufficient_quota' || isEmpty)) {
    return apiError('upstream_balance', `${upstream.name} refused this deployment's balance (${status})`);
  }
  const isForbidden = status === 403 && (kind === 'bad_credential' || kind === 'missing_model');
  if (!callerPays && (status === 401 || isForbidden || isAboutKey(status, reported.message))) {
    const refused = `${upstream.name} refused this deployment's credential (${status})`;
    return apiError('upstream_credential', refused + checkHint(upstream.keySetting));
  }
  // What is forbidden may be what this one request names, such as a file.
  if (!callerPays && status === 403) return apiError('upstream_refused', message);
  // It is not the caller's place, but that of the Worker.
  if (status === 400 && kind === 'unsupported_region') return apiError('upstream_error', message);
  const ownCode = sanitizeCode(reported.code, upstream) ?? '';
  const callerType = CALLER_ERRORS.get(status);
  if (callerType !== undefined) {
    const usual = kind === 'missing_model' ? 'model_not_found' : CALLER_CODES.get(status);
    const code = ownCode || (usual ?? 'invalid_request');
    const param = sanitize(reported.param ?? '', upstream) || null;
    const isNoModel = kind === 'missing_model';
    const hint = !isNoModel && isNoRoute(status, reported) ? checkHint(upstream.urlSetting) : '';
    return { status, type: callerType, code, message: message + hint, param };
  }
  if (REDIRECTS.has(status)) {
    return apiError(
      'upstream_error',
      `${upstream.name} answered with a redirect, which Weir does not follow`,
    );
  }
  const error = apiError(serverCode(status), message);
  return ownCode === '' ? error : { ...error, code: ownCode };
}

/** Says where to look for the fault; nothing where no setting is its cause. */
export function checkHint(setting: string | null | undefined): string {
  return setting === null || setting === undefined ? '' : `: check ${setting}`;
}

/** A 404 that does not speak of the model is the path's, which begins with the base URL's. */
function isNoRoute(status: number, { code, message = '' }: UpstreamError): boolean {
  const text = `${code} ${message.slice(0, MAX_ERROR_MESSAGE_CHARS)}`;
  return status === 404 && !/model|deployment|agent/i.test(text);
}

/** Some refuse an invalid key with a 400, xAI and Gemini among them: recorded in 2026-08 (Q10). */
function isAboutKey(status: number, message: string | undefined): boolean {
  return (
    status === 400 && message !== undefined && INVALID_KEY.test(message.slice(0, MAX_ERROR_MESSAGE_CHARS))
  );
}

const INVALID_KEY =
  /\b(?:incorrect|invalid|expired|missing|wrong)\s+api[ _-]?key\b|\bapi[ _-]?key\s+(?:is\s+|was\s+)?(?:not\s+(?:valid|found)|invalid|incorrect|expired|missing)\b/i;

/** By its beginning, so that no pattern runs over more than the bound. */
function kindOf({ code = '', message = '' }: UpstreamError, { refusals }: UpstreamErrorContext) {
  return refusalKind({ code, message: message.slice(0, MAX_ERROR_MESSAGE_CHARS) }, refusals);
}

const CONTENT_FILTER = 'content_filter';

function serverCode(status: number): ErrorCode {
  if (OVERLOADED.has(status)) return 'upstream_overloaded';
  return LATE.has(status) ? 'timeout' : 'upstream_error';
}

function readRefusal(body: string): UpstreamError {
  const error = readObject(body);
  if (error !== null) return readUpstreamError(error);
  const isPage = body.trimStart().startsWith('<');
  const text = isPage ? (/<title[^<>]*>([^<]*)/i.exec(body)?.[1] ?? '') : body;
  const message = readText(text.trim());
  return { message, type: undefined, code: undefined, param: undefined, status: undefined };
}

/** The seconds after which the upstream wants to be asked again, as its provider says so in the body; undefined: it does not. */
export function readRetryDelay(body: string, { refusals }: UpstreamErrorContext): number | undefined {
  const error = refusals?.retryAfter === undefined ? null : readObject(body);
  return error === null ? undefined : refusals?.retryAfter?.(error);
}

function readObject(body: string): JsonObject | null {
  const error = unwrapErrorList(parseJson(body));
  return isObject(error) ? error : null;
}

/** The status that an error's type or code stands for, where its body names none. */
const STATUS_WORDS: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['context_length_exceeded', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['insufficient_quota', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['model_not_found', 404],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['billing_error', 402],
  ['request_too_large', 413],
  ['overloaded_error', 503],
  ['backend_unavailable', 503],
  ['timeout_error', 504],
  ['stream_idle_timeout', 504],
  // What a Responses stream ends with under a 200: codex-rs, codex-api/src/sse/responses.rs (2026-11); openai-node 7.55 ResponseError.
  ['server_is_overloaded', 503],
  ['slow_down', 503],
  ['vector_store_timeout', 504],
  ...[
    ...[
      'invalid_prompt',
      'bio_policy',
      'cyber_policy',
      'misalignment_policy_violation',
      'data_residency_mismatch',
    ],
    ...[
      'invalid_image',
      'invalid_image_format',
      'invalid_base64_image',
      'invalid_image_url',
      'invalid_image_mode',
    ],
    ...[
      'image_too_large',
      'image_too_small',
      'image_file_too_large',
      'empty_image_file',
      'image_parse_error',
    ],
    ...['image_content_policy_violation', 'unsupported_image_media_type', 'image_file_not_found'],
    'failed_to_download_image',
  ].map((code) => [code, 400] as const),
]);

/** The error with which a request is answered whose answer failed before its head (E1). */
export function errorBeforeHead(failure: StreamFailure, upstream: UpstreamErrorContext): ApiError {
  const { error, upstreamError } = failure;
  return upstreamError === null ? error : classifyError(upstreamError, upstream);
}

/** The error that a 200 contained: its own status, or the one of its code or type, else it is the upstream's fault. */
export function classifyError(error: UpstreamError, upstream: UpstreamErrorContext): ApiError {
  const { message, type, code, param } = error;
  const status = error.status ?? STATUS_WORDS.get(code ?? '') ?? STATUS_WORDS.get(type ?? '') ?? 502;
  const body = JSON.stringify({ error: { message, type, code, param } });
  return classifyRefusal({ status, body }, upstream);
}
