/** Reads every form in which an upstream reports an error, and makes of it what a client may see (E1, E2, E4). */
import {
  EmbeddedJson,
  isObject,
  type JsonObject,
  objectOf,
  readArray,
  readText,
  writeJson,
} from '../shared/json.ts';
import { MAX_ERROR_MESSAGE_CHARS } from '../shared/limits.ts';
import { type ApiError, apiError, ERRORS, type ErrorCode, type UpstreamError } from './error.ts';

/** The provider that answers: its name for messages, and its credential, which no message may contain. */
export interface Upstream {
  readonly name: string;
  readonly secret: string;
}

/** The one error of a list: Google writes it so, too, in answers and in streams. Any other value is itself. */
export function unlistError(value: unknown): unknown {
  const [only, ...others] = readArray(value);
  return others.length === 0 && isObject(only) && isObject(only.error) ? only : value;
}

/** The error in a stream's JSON event, or null where the event is none. */
export function findUpstreamError(event: JsonObject): UpstreamError | null {
  const isError =
    isObject(event.error) ||
    readText(event.error) !== undefined ||
    event.object === 'error' ||
    event.type === 'error' ||
    (event.detail !== undefined && event.detail !== null && event.choices === undefined);
  return isError ? readUpstreamError(event) : null;
}

/**
 * Reads a body that is known to be an error: `{"error":{…}}`, `{"error":"…"}`, `{"object":"error","message"…}`, where the
 * message may be an object or a list, `{"detail":[…]}`, `{"message":…}`.
 */
export function readUpstreamError(body: JsonObject): UpstreamError {
  const error = isObject(body.error) ? body.error : body;
  return {
    message: readMessage(error.message) ?? readText(body.error) ?? readDetail(body.detail),
    type: readText(error.type) ?? readText(body.error_type),
    // Anthropic's word for what to do: https://platform.claude.com/docs/en/build-with-claude/message-threads (2026-11-22).
    code: readCode(error.code) ?? readCode(objectOf(error.details).error_code),
    param: readText(error.param),
    status:
      readStatus(error.status) ??
      readStatus(error.status_code) ??
      readStatus(body.status_code) ??
      readStatus(error.code),
    ...readInner(error),
  };
}

/** Mistral nests its refusals: `"message":{"detail":[…]}`, or the list itself. */
function readMessage(message: unknown): string | undefined {
  if (isObject(message)) return readDetail(message.detail) ?? readText(message.message) ?? writeJson(message);
  return readText(message) ?? readDetail(message);
}

/** OpenRouter's "Provider returned error": what the provider behind it answered is in `metadata.raw`, as text or as JSON. */
function readInner(error: JsonObject): { readonly message?: string } {
  const metadata = objectOf(error.metadata);
  const raw = readText(metadata.raw);
  if (raw === undefined) return {};
  const inner = new EmbeddedJson().object(raw);
  const message = inner === undefined ? raw : readUpstreamError(inner).message;
  const outer = [readText(metadata.provider_name), readMessage(error.message)].filter(Boolean).join(': ');
  return { message: message === undefined ? outer : `${outer} (${message})` };
}

/** FastAPI's `detail`: a text, or a list of problems with their places. */
function readDetail(detail: unknown): string | undefined {
  const lines = readArray(detail)
    .filter(isObject)
    .map((item) => {
      const steps = readArray(item.loc).filter(
        (step) => typeof step === 'string' || typeof step === 'number',
      );
      const place = steps.join('.');
      const what = readText(item.msg) ?? 'invalid';
      return place === '' ? what : `${place}: ${what}`;
    });
  return readText(detail) ?? readText(lines.join('; '));
}

/** A code in words, or a number of the provider's own; an HTTP status in its place is none. */
function readCode(code: unknown): string | undefined {
  if (readStatus(code) !== undefined) return undefined;
  return typeof code === 'number' ? String(code) : readText(code);
}

function readStatus(status: unknown): number | undefined {
  const number = typeof status === 'string' ? Number(status) : status;
  return typeof number === 'number' && Number.isInteger(number) && number >= 400 && number <= 599
    ? number
    : undefined;
}

/** The types that a client may see after the head; whatever else an upstream calls its error is a `server_error` (E2). */
const STREAM_CODES: ReadonlyMap<string, ErrorCode> = new Map([
  ['timeout_error', 'timeout'],
  ['stream_idle_timeout', 'stream_idle_timeout'],
]);

/** The error with which a stream ends after its head, from the error that the upstream reported. */
export function streamError(upstream: Upstream, error: UpstreamError): ApiError {
  const timeout = STREAM_CODES.get(error.type ?? '');
  const kind = ERRORS[timeout ?? 'upstream_error'];
  const ownType = error.type === 'server_error' ? undefined : error.type;
  return {
    ...kind,
    code: cleanCode(error.code ?? timeout ?? ownType, upstream) ?? 'upstream_error',
    message: upstreamMessage(upstream, error.message),
    param: error.param === undefined ? null : clean(error.param, upstream),
  };
}

/** The error for a finish word that means failure (C8). */
export function failedFinish(upstream: Upstream, word: string): ApiError {
  const error = apiError('upstream_error', `${upstream.name} stopped: ${word}`);
  return word === 'error' ? error : { ...error, code: word };
}

/** The connection broke before the answer was whole. */
export function brokenConnection(upstream: Upstream): ApiError {
  return apiError('upstream_truncated', `${upstream.name} broke the connection`);
}

/** The request took longer than its deadline, in ms (T3). */
export function deadlineExceeded(upstream: Upstream, ms: number): ApiError {
  return apiError('timeout', `${upstream.name} did not finish within ${ms / 1000} seconds`);
}

/** `<Provider>: <its own message>`, cleaned; or that it reported an error without one. */
export function upstreamMessage(upstream: Upstream, message: string | undefined): string {
  const text = clean(message ?? '', upstream);
  return text === '' ? `${upstream.name} reported an error without a message` : `${upstream.name}: ${text}`;
}

/** Where a stack begins, on lines of its own or in one line: of JavaScript and Java, Python, Go, Rust. */
const STACK =
  /\n\s*at\s|\sat \S+ \(?\S+:\d+:\d+\)?|\sat [\w.$<>]+\(\w+\.java:\d+\)|\bFile "[^"]+", line \d+|Traceback \(most recent call last\)|\bgoroutine \d+ \[|\bpanicked at |\bstack backtrace:|\S+\.(?:go|rs|py):\d+\b/;

const CREDENTIALS: readonly RegExp[] = [
  // A header of any scheme with its value: `Authorization: Basic dXNlcg==`.
  /\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:[a-z]+\s+)?[^\s"',;]+/gi,
  /\bBearer\s+\S+/gi,
  /\bBasic\s+[\w+/=]{8,}/gi,
  // A header or a setting with its value.
  /\b(?:x-)?(?:api[-_]?key|secret|password|passwd|pwd|token)["']?\s*[:=]\s*["']?[\w+/.=-]{6,}/gi,
  // The prefixes of providers' keys, of code hosts', of Weir's own and of JSON web tokens.
  /\b(?:sk|pk|rk|gsk|csk|xai|xero|weir|nvapi|pplx|fw|hf|r8|ghp|gho|ghs|ghu|glpat|github_pat|tgp_v1|xox[abp])[-_][\w*.-]{6,}/gi,
  /\b(?:AKIA|ASIA)[0-9A-Z]{12,}/g,
  /\bAIza[\w-]{20,}/g,
  /\b(?:api|key|token)[-_](?=[\w-]*\d)[\w-]{8,}/gi,
  /\beyJ[\w-]+\.[\w.-]+/g,
];

const ADDRESSES: readonly RegExp[] = [
  // Connection strings and sockets: `postgres://user:password@host/x`, `grpc://inner:50051`, `unix:/var/run/x.sock`.
  /\b(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^\s"'<>]+/gi,
  /\bunix:[^\s"'<>]+/gi,
  // A URL with a user, a port, or a host that is a number or has no dot: nothing that a provider's documents are at.
  /\bhttps?:\/\/(?:[^\s"'<>/]*[@:\d][^\s"'<>]*|[^\s"'<>/.]+(?=[\s"'<>/]|$)[^\s"'<>]*)/gi,
  /\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?/g,
  /\[?(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])\]?(?::\d+)?/gi,
  /\blocalhost(?::\d+)?/gi,
  /\b[\w-]+(?:\.[\w-]+)*\.(?:internal|local|svc|lan|corp)(?::\d+)?\b/gi,
  // A host and its port: `backend-7:8443`, `api-int.prod.example.com:9090`.
  /\b(?=[a-z0-9.-]*[a-z])[a-z0-9]+(?:[.-][a-z0-9]+)+:\d{2,5}(?![\w-])/gi,
];

/**
 * Upstream text that a client may see: bounded, without a stack, a credential or an internal address (E4).
 * The text is cut first, so that no pattern runs over more than the bound.
 */
export function clean(text: string, upstream: Upstream): string {
  const bounded = withoutSecret(text, upstream.secret).slice(0, MAX_ERROR_MESSAGE_CHARS);
  const stack = bounded.search(STACK);
  let cleaned = stack < 0 ? bounded : bounded.slice(0, stack);
  for (const pattern of CREDENTIALS) cleaned = cleaned.replace(pattern, '[redacted]');
  for (const pattern of ADDRESSES) cleaned = cleaned.replace(pattern, '[address]');
  return cleaned.trim();
}

/** A code is a word that programs compare: nothing is cut out of it, and one with anything that a message may not contain is none. */
export function cleanCode(code: string | undefined, upstream: Upstream): string | undefined {
  if (code === undefined || !CODE.test(code) || holdsSecret(code, upstream.secret)) return undefined;
  return UNSPOKEN.some((pattern) => code.search(pattern) >= 0) ? undefined : code;
}

const CODE = /^[\w.:/ -]{1,128}$/;
const UNSPOKEN: readonly RegExp[] = [STACK, ...CREDENTIALS, ...ADDRESSES];

function holdsSecret(code: string, secret: string): boolean {
  return secret !== '' && (code === secret || (secret.length >= MIN_UNIQUE_CHARS && code.includes(secret)));
}

/** The text without the credential, also as a URL would hold it: a short one only where it is a whole word, as it must not cut other words to pieces. */
export function withoutSecret(text: string, secret: string): string {
  const start = text.slice(0, MAX_SEARCHED_CHARS);
  if (secret === '') return start;
  const encoded = encodeURIComponent(secret.toWellFormed());
  let cleaned = start;
  for (const form of new Set([encoded, secret])) cleaned = withoutWord(cleaned, form);
  // The cut may have left the beginning of one.
  return start.length < text.length ? cleaned.slice(0, -encoded.length) : cleaned;
}

function withoutWord(text: string, word: string): string {
  return text.replaceAll(word, (found, at: number) => {
    const isWord = !isWordChar(text[at - 1]) && !isWordChar(text[at + found.length]);
    return isWord || word.length >= MIN_UNIQUE_CHARS ? '[redacted]' : found;
  });
}

/** A credential of so many characters is no part of any other word. */
const MIN_UNIQUE_CHARS = 8;

/** Beyond it a message is cut anyway: no search runs over a megabyte. */
const MAX_SEARCHED_CHARS = 8 * MAX_ERROR_MESSAGE_CHARS;

function isWordChar(character: string | undefined): boolean {
  return character !== undefined && /[\w-]/.test(character);
}
