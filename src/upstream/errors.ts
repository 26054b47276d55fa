/** Turns an upstream's refusal, with any status and any form of body, into the error that the client receives (E1). */
import { type ApiError, apiError, type ErrorCode, type UpstreamError } from '../canonical/error.ts';
import { MAX_REFUSAL_CHARS, type RefusalKind, type UpstreamRefusal } from '../canonical/refusal.ts';
import {
  readUpstreamError,
  readUpstreamRefusal,
  removeSecrets,
  sanitize,
  sanitizeCode,
  type Upstream,
  unwrapErrorList,
  upstreamMessage,
} from '../canonical/upstream-error.ts';
import { isAboutOutput, type RefusalRules, refusalKind } from '../providers/refusals.ts';
import { isObject, type JsonObject, parseJson, readText } from '../shared/json.ts';
import { MAX_ERROR_MESSAGE_CHARS } from '../shared/limits.ts';
import { words } from '../shared/words.ts';

/** What classifying an upstream's errors depends on. */
export interface UpstreamErrorContext extends Upstream {
  /** The provider's patterns. */
  readonly refusals: RefusalRules | undefined;
  /** The credential is the caller's own (`AUTH=passthrough`), so refusals of it concern the caller. */
  readonly callerPays: boolean;
  /** The settings of the provider's key, and of its base URL if that is not the default. Error messages name them. */
  readonly keySetting?: string;
  readonly urlSetting?: string | null;
}

interface RefusedResponse {
  readonly status: number;
  /** The body's text, or its beginning. */
  readonly body: string;
}

interface StatusRule {
  /** The error type, if the status is the caller's mistake: the client then receives the same status. Null: the code has its own. */
  readonly type: string | null;
  /** The error code, unless the upstream sends one. */
  readonly code: ErrorCode;
  /** Error types and codes that stand for the status in an error without one, such as an error event under a 200. */
  readonly names?: readonly string[];
}

/** Every other status is `upstream_error`. */
const STATUSES: ReadonlyMap<number, StatusRule> = new Map<number, StatusRule>([
  [
    400,
    {
      type: 'invalid_request_error',
      code: 'invalid_request',
      names: [
        'invalid_request_error',
        'context_length_exceeded',
        // The codes of a Responses stream under a 200: openai-node 7.55, ResponseError.
        ...words(`
          invalid_prompt bio_policy cyber_policy misalignment_policy_violation data_residency_mismatch
          invalid_image invalid_image_format invalid_base64_image invalid_image_url invalid_image_mode
          image_too_large image_too_small image_file_too_large empty_image_file image_parse_error
          image_file_not_found image_content_policy_violation unsupported_image_media_type
          failed_to_download_image
        `),
      ],
    },
  ],
  [
    401,
    {
      type: 'authentication_error',
      code: 'invalid_api_key',
      names: ['authentication_error', 'invalid_api_key'],
    },
  ],
  [
    402,
    { type: 'permission_error', code: 'invalid_request', names: ['insufficient_quota', 'billing_error'] },
  ],
  [403, { type: 'permission_error', code: 'model_not_allowed', names: ['permission_error'] }],
  [404, { type: 'not_found_error', code: 'not_found', names: ['not_found_error', 'model_not_found'] }],
  [413, { type: 'invalid_request_error', code: 'request_too_large', names: ['request_too_large'] }],
  [422, { type: 'invalid_request_error', code: 'invalid_request' }],
  [
    429,
    { type: 'rate_limit_error', code: 'rate_limited', names: ['rate_limit_error', 'rate_limit_exceeded'] },
  ],
  [
    503,
    {
      type: null,
      code: 'upstream_overloaded',
      // The last two end a Responses stream: codex-rs, codex-api/src/sse/responses.rs (2026-11).
      names: ['overloaded_error', 'backend_unavailable', 'server_is_overloaded', 'slow_down'],
    },
  ],
  [529, { type: null, code: 'upstream_overloaded' }],
  [408, { type: null, code: 'timeout' }],
  [
    504,
    { type: null, code: 'timeout', names: ['timeout_error', 'stream_idle_timeout', 'vector_store_timeout'] },
  ],
  [522, { type: null, code: 'timeout' }],
  [524, { type: null, code: 'timeout' }],
]);

const STATUS_BY_NAME: ReadonlyMap<string, number> = new Map(
  [...STATUSES].flatMap(([status, { names = [] }]) => names.map((name) => [name, status] as const)),
);

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** The error for the client, with the classified refusal. */
export function classifyRefusal(refused: RefusedResponse, upstream: UpstreamErrorContext): ApiError {
  const { body } = refused;
  const reported = readRefusal(body);
  const status = upstream.refusals?.statusOf?.(reported.code) ?? refused.status;
  // Of a page, the title is its message.
  const upstreamRefusal = isPage(body) ? reported : readUpstreamRefusal(body);
  const kind = kindOf(reported, upstream) ?? outputKind(reported, upstreamRefusal);
  const withoutSecret = (text: string) => removeSecrets(text, upstream).slice(0, MAX_REFUSAL_CHARS);
  const refusal: UpstreamRefusal = {
    status,
    kind,
    code: withoutSecret(reported.code ?? upstreamRefusal.code ?? ''),
    field: upstreamRefusal.param === undefined ? undefined : withoutSecret(upstreamRefusal.param),
    message: upstreamRefusal.message === undefined ? undefined : withoutSecret(upstreamRefusal.message),
  };
  return { ...clientError(status, reported, kind, upstream), refusal };
}

function clientError(
  status: number,
  reported: UpstreamError,
  kind: RefusalKind | null,
  upstream: UpstreamErrorContext,
): ApiError {
  const { callerPays } = upstream;
  const message =
    reported.message === undefined
      ? `${upstream.name} answered ${status}`
      : upstreamMessage(upstream, reported.message);
  // Some providers send 403 for a prompt that their filter stopped. A 400 keeps the circuit breaker closed for other callers.
  if (status === 403 && kind === CONTENT_FILTER) {
    return { status: 400, type: 'invalid_request_error', code: CONTENT_FILTER, message, param: null };
  }
  if (!callerPays && status === 402 && kind === 'exceeds_balance') {
    const reason = `${upstream.name} refused this request: for this deployment's balance its max_tokens is too high`;
    return apiError('upstream_refused', reason);
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
  // Something that this request names may be forbidden, such as a file.
  if (!callerPays && status === 403) return apiError('upstream_refused', message);
  // The provider refuses the region of the Worker, not that of the caller.
  if (status === 400 && kind === 'unsupported_region') return apiError('upstream_error', message);
  const ownCode = sanitizeCode(reported.code, upstream) ?? '';
  const rule = STATUSES.get(status) ?? { type: null, code: 'upstream_error' };
  if (rule.type !== null) {
    const isMissingModel = kind === 'missing_model';
    const weirCode = isMissingModel ? 'model_not_found' : rule.code;
    const code = ownCode || weirCode;
    const param = sanitize(reported.param ?? '', upstream) || null;
    const hint = !isMissingModel && isMissingPath(status, reported) ? checkHint(upstream.urlSetting) : '';
    return { status, type: rule.type, code, weirCode, message: message + hint, param };
  }
  if (REDIRECTS.has(status)) {
    return apiError(
      'upstream_error',
      `${upstream.name} answered with a redirect, which Weir does not follow`,
    );
  }
  const error = apiError(rule.code, message);
  return ownCode === '' ? error : { ...error, code: ownCode, weirCode: rule.code };
}

/** The end of a message that names the setting to check; empty if no setting can be the cause. */
export function checkHint(setting: string | null | undefined): string {
  return setting === null || setting === undefined ? '' : `: check ${setting}`;
}

/** A 404 that does not mention a model is about the path, so the base URL may be wrong. */
function isMissingPath(status: number, { code, message = '' }: UpstreamError): boolean {
  const text = `${code} ${message.slice(0, MAX_ERROR_MESSAGE_CHARS)}`;
  return status === 404 && !/model|deployment|agent/i.test(text);
}

/** Some providers, such as xAI and Gemini, refuse an invalid key with a 400: recorded in 2026-08. */
function isAboutKey(status: number, message: string | undefined): boolean {
  return (
    status === 400 && message !== undefined && INVALID_KEY.test(message.slice(0, MAX_ERROR_MESSAGE_CHARS))
  );
}

const INVALID_KEY =
  /\b(?:incorrect|invalid|expired|missing|wrong)\s+api[ _-]?key\b|\bapi[ _-]?key\s+(?:is\s+|was\s+)?(?:not\s+(?:valid|found)|invalid|incorrect|expired|missing)\b/i;

function kindOf({ code = '', message = '' }: UpstreamError, { refusals }: UpstreamErrorContext) {
  return refusalKind({ code, message }, refusals);
}

function outputKind(...errors: readonly UpstreamError[]): RefusalKind | null {
  const isOutput = errors.some(({ code = '', message = '' }) =>
    isAboutOutput(code, message.slice(0, MAX_REFUSAL_CHARS)),
  );
  return isOutput ? 'invalid_output' : null;
}

const CONTENT_FILTER = 'content_filter';

/** The title of a page is near its beginning. */
const MAX_PAGE_CHARS = 4096;
const TITLE = /<title[^<>]*>([^<]*)/i;

function readRefusal(body: string): UpstreamError {
  const error = readObject(body);
  if (error !== null) return readUpstreamError(error);
  const text = isPage(body) ? (TITLE.exec(body.slice(0, MAX_PAGE_CHARS))?.[1] ?? '') : body;
  const message = readText(text.trim());
  return { message, type: undefined, code: undefined, param: undefined, status: undefined };
}

function isPage(body: string): boolean {
  return body.trimStart().startsWith('<');
}

/** The seconds to wait that the body of a refusal states; undefined: it states none. */
export function readRetryDelay(body: string, { refusals }: UpstreamErrorContext): number | undefined {
  const error = refusals?.retryAfter === undefined ? null : readObject(body);
  return error === null ? undefined : refusals?.retryAfter?.(error);
}

function readObject(body: string): JsonObject | null {
  const error = unwrapErrorList(parseJson(body));
  return isObject(error) ? error : null;
}

/** Classifies an error within a 200 by its own status, or by that of its code or type. */
export function classifyError(error: UpstreamError, upstream: UpstreamErrorContext): ApiError {
  const { message, type, code, param } = error;
  const status = error.status ?? STATUS_BY_NAME.get(code ?? '') ?? STATUS_BY_NAME.get(type ?? '') ?? 502;
  const body = JSON.stringify({ error: { message, type, code, param } });
  return classifyRefusal({ status, body }, upstream);
}
