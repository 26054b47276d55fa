/** Reads errors of upstreams in all their forms, and turns them into errors that a client may see: without secrets, bounded (E4). */
import {
  EmbeddedJson,
  hasItems,
  isObject,
  type JsonObject,
  objectOf,
  parseJson,
  readArray,
  readText,
  writeJson,
} from '../shared/json.ts';
import { MAX_ERROR_MESSAGE_CHARS } from '../shared/limits.ts';
import { type ApiError, apiError, ERRORS, type ErrorCode, type UpstreamError } from './error.ts';
import { statusOfCode } from './error-codes.ts';
import { MAX_REFUSAL_CHARS } from './refusal.ts';

/** The called provider: its name for messages, and its credential, which no message may contain. */
export interface Upstream {
  readonly name: string;
  readonly secret: string;
  /** What no text may contain, either, where the credential is made; absent: it is not. */
  readonly madeSecrets?: readonly string[];
}

/** Unwraps a list with a single error, which Google sends in responses and in streams. Returns any other value unchanged. */
export function unwrapErrorList(value: unknown): unknown {
  const [only, ...others] = readArray(value);
  return others.length === 0 && isObject(only) && isObject(only.error) ? only : value;
}

/** The error in a stream's event or in a complete response, in whichever form, or null if there is none. */
export function findUpstreamError(event: JsonObject): UpstreamError | null {
  return isOwnError(event) || isOtherError(event) ? readUpstreamError(event) : null;
}

/** Whether an object is an error in a form of the providers' own APIs. Other forms may come from something in front of a provider. */
export function isOwnError({ error, object, type, detail, choices }: JsonObject): boolean {
  return (
    isObject(error) ||
    readText(error) !== undefined ||
    object === 'error' ||
    type === 'error' ||
    (detail !== undefined && detail !== null && choices === undefined)
  );
}

/**
 * Forms of other hosts: Groq's `x_groq.error`, an error of a choice, MiniMax's `base_resp`; and, where there is no
 * output, `error` as a list, a number or true, `errors`, a code with its message, `success: false`, a status that says
 * so, or nothing but a message.
 */
function isOtherError(event: JsonObject): boolean {
  if (event.x_groq !== undefined && readGroqError(event) !== undefined) return true;
  if (event.base_resp !== undefined && isFailureCode(objectOf(event.base_resp).status_code)) return true;
  if (hasItems(event.choices)) return choiceError(event) !== undefined;
  if (OUTPUTS.some((name) => hasItems(event[name]))) return false;
  const { error, errors, code, error_code, error_msg, success, status, message, msg } = event;
  if (isReported(error) || isReported(errors) || success === false) return true;
  if (status === 'error' || readStatus(status) !== undefined) return true;
  if (isFailureCode(code) && (isReported(message) || isReported(msg))) return true;
  if (readText(error_msg) !== undefined || isFailureCode(error_code)) return true;
  return readText(message) !== undefined && Object.keys(event).every((name) => BESIDE_MESSAGE.test(name));
}

/** Lists with output, of all other protocols and of embeddings. */
const OUTPUTS = ['candidates', 'content', 'output', 'data', 'embeddings'];

/** What may stand beside a message that is an error by itself. Anything else, such as a type or a status, may say what it is. */
const BESIDE_MESSAGE = /^(?:message|choices|name|path|(?:request|trace|correlation)_?id|timestamp|time)$/i;

function isReported(value: unknown): boolean {
  if (isObject(value)) return Object.keys(value).length > 0;
  if (Array.isArray(value)) return value.length > 0;
  return value === true || (typeof value === 'number' && value !== 0) || readText(value) !== undefined;
}

/** A code other than those with which wrappers of responses say that all is well. */
function isFailureCode(code: unknown): boolean {
  if (typeof code !== 'number' && readText(code) === undefined) return false;
  return !SUCCESS_CODES.includes(String(code).toLowerCase());
}

const SUCCESS_CODES: readonly string[] = ['0', '200', 'success', 'ok'];

/** "An error string indicating why a stream was stopped early": `XGroq` of groq-python (2026-08-18). */
function readGroqError({ x_groq }: JsonObject): string | undefined {
  return readText(objectOf(x_groq).error);
}

/** An error that a choice has in place of its end, or beside it. */
function choiceError({ choices }: JsonObject): unknown {
  const failed = readArray(choices).find((choice) => isObject(choice) && isReported(choice.error));
  return isObject(failed) ? failed.error : undefined;
}

/**
 * Reads a body that is known to be an error, in any of the forms that `findUpstreamError` knows. The message may be an object or a list.
 */
export function readUpstreamError(body: JsonObject): UpstreamError {
  const inChoice = choiceError(body);
  if (inChoice !== undefined && !isReported(body.error)) return readUpstreamError({ error: inChoice });
  const [listed] = [body.error, body.errors].flatMap((list) => readArray(list)).filter(isObject);
  const error = isObject(body.error) ? body.error : (listed ?? body);
  const base = objectOf(body.base_resp);
  const baseCode = isFailureCode(base.status_code) ? readCode(base.status_code) : undefined;
  const groqError = readGroqError(body);
  const messages = [
    ...[readMessage(error.message), readText(body.error), readText(base.status_msg)],
    ...[readText(error.msg), readText(error.error_msg), readText(error.reason), readDetail(body.detail)],
    ...[
      readProblems(readArray(body.error)),
      readProblems(body.errors),
      readMessage(body.message),
      readText(body.msg),
    ],
    ...[readText(body.title), groqError],
    // Workers AI's binding, `_parseError` of workerd: `{"internalCode": 3040, "description": "…"}`.
    body.internalCode === undefined ? undefined : readText(body.description),
  ];
  const codes = [
    readCode(error.code),
    // Anthropic's `error_code`: https://platform.claude.com/docs/en/build-with-claude/message-threads (2026-11-22).
    readCode(objectOf(error.details).error_code),
    ...[codeOfOutput(error), readCode(error.error_code), baseCode],
    isObject(body.error) ? undefined : readCode(body.code),
    readCode(body.internalCode),
    groqError !== undefined && WORD.test(groqError) ? groqError : undefined,
  ];
  const statuses = [error.status, error.status_code, body.status_code, error.code, body.error, body.status];
  return {
    message: messages.find((message) => message !== undefined),
    type: readText(error.type) ?? readText(body.error_type),
    code: codes.find((code) => code !== undefined),
    param: readText(error.param),
    status:
      [...statuses, body.code].map(readStatus).find((status) => status !== undefined) ??
      statusOfCode('base_resp', baseCode) ??
      (listed === undefined ? undefined : statusOfCode('errors', readCode(listed.code))),
    ...readInner(error),
  };
}

const WORD = /^[\w.-]{1,64}$/;

/** Errors in a list, or by the names of fields: `["…"]`, `[{"message":"…"}]`, `{"model":["is unknown"]}`. */
function readProblems(errors: unknown): string | undefined {
  const lines = isObject(errors)
    ? Object.entries(errors).map(([name, problems]) => {
        const text = readText(problems) ?? readProblems(readArray(problems));
        return text === undefined ? undefined : `${name}: ${text}`;
      })
    : readArray(errors).map((one) => {
        if (!isObject(one)) return readText(one);
        return readMessage(one.message) ?? readText(one.msg);
      });
  return readText(lines.filter((line) => line !== undefined).join('; '));
}

/** Groq's `failed_generation` is what the model wrote, so the request is not at fault. */
function codeOfOutput({ failed_generation }: JsonObject): string | undefined {
  return failed_generation === undefined ? undefined : 'failed_generation';
}

/** Errors that hosts put into one another, as text of JSON: at most this many. */
const MAX_NESTED_ERRORS = 4;

/** The part of a body that is read. */
const MAX_REFUSAL_BODY_CHARS = 64 * 1024;

/**
 * Reads the body of a refusal with the error of the provider that refused, however many hosts passed it on: JSON in a text (Mistral, Vertex
 * AI), in `metadata.raw` (OpenRouter), behind a prefix, or a list of problems (zod, FastAPI).
 */
export function readUpstreamRefusal(text: string, depth = 0): UpstreamError {
  const start = text.slice(0, MAX_REFUSAL_BODY_CHARS).trim();
  const upstreamError: UpstreamError = {
    message: readText(start),
    type: undefined,
    code: undefined,
    param: undefined,
    status: undefined,
  };
  if (depth === MAX_NESTED_ERRORS) return upstreamError;
  const value = unwrapErrorList(parseJson(start));
  if (typeof value === 'string') return readUpstreamRefusal(value, depth + 1);
  if (Array.isArray(value)) return { ...upstreamError, message: readDetail(value) ?? upstreamError.message };
  if (!isObject(value)) {
    const problems = [...start.matchAll(PYTHON_PROBLEM)].map(
      ([, loc = '', what = '']) => `${loc.replace(/['"\s]/g, '').replaceAll(',', '.')}: ${what}`,
    );
    if (problems.length > 0) return { ...upstreamError, message: problems.join('; ') };
    const brace = start.indexOf('{"');
    // LiteLLM: "litellm.BadRequestError: OpenAIException - {…}. Received Model Group=…".
    const json = brace > 0 ? start.slice(brace, start.lastIndexOf('}') + 1) : '';
    return isObject(parseJson(json)) ? readUpstreamRefusal(json, depth + 1) : upstreamError;
  }
  const error = isObject(value.error) ? value.error : value;
  const read = readUpstreamError(value);
  const outer = { ...read, message: withDetails(read, error, value) };
  const metadata = readText(objectOf(error.metadata).raw);
  const raw = metadata ?? readText(error.message);
  if (raw === undefined || !/[{[]/.test(raw))
    return metadata === undefined ? outer : { ...outer, message: metadata };
  const { message = raw, code = outer.code, param = outer.param } = readUpstreamRefusal(raw, depth + 1);
  return { ...outer, message, code, param };
}

/** The message with the sentences that some hosts put beside it: in `param`, `details` or `errors`. */
function withDetails(
  { message, param }: UpstreamError,
  error: JsonObject,
  body: JsonObject,
): string | undefined {
  const lists = [error.details, error.errors, body.details, body.errors];
  const sentences = [param, ...lists.flatMap(sentencesIn)].filter(
    (text) => text !== undefined && /\S\s+\S/.test(text) && message?.includes(text) !== true,
  );
  const said = [message, ...new Set(sentences)].filter((text) => text !== undefined);
  return said.length === 0 ? undefined : said.join('. ').slice(0, MAX_REFUSAL_CHARS);
}

/** Entries of a list that are read. */
const MAX_DETAILS = 16;

function sentencesIn(details: unknown): readonly (string | undefined)[] {
  if (isObject(details)) return [readText(details.message) ?? readText(details.reason)];
  if (!Array.isArray(details)) return [readText(details)];
  return details
    .slice(0, MAX_DETAILS)
    .map((item) => readText(item) ?? readText(objectOf(item).message) ?? readDetail([item]));
}

/** pydantic's problems as Python prints them, by vLLM. */
const PYTHON_PROBLEM = /'loc': [([]([^)\]\n]{1,256})[)\]], 'msg': '([^'\n]{1,256})'/g;

/** Mistral nests its errors: `"message":{"detail":[…]}`, or the list itself. */
function readMessage(message: unknown): string | undefined {
  if (isObject(message)) return readDetail(message.detail) ?? readText(message.message) ?? writeJson(message);
  return readText(message) ?? readDetail(message);
}

/** OpenRouter's "Provider returned error": the inner provider's error is in `metadata.raw`, as text or as JSON. */
function readInner(error: JsonObject): { readonly message?: string } {
  const metadata = objectOf(error.metadata);
  const raw = readText(metadata.raw);
  if (raw === undefined) return {};
  const inner = new EmbeddedJson().object(raw);
  const message = inner === undefined ? raw : readUpstreamError(inner).message;
  const outer = [readText(metadata.provider_name), readMessage(error.message)].filter(Boolean).join(': ');
  return { message: message === undefined ? outer : `${outer} (${message})` };
}

/** FastAPI's `detail`: a text, or a list of problems with their locations; zod's have other names. */
function readDetail(detail: unknown): string | undefined {
  const lines = readArray(detail)
    .filter(isObject)
    .map((item) => {
      const steps = readArray(item.loc ?? item.path).filter(
        (step) => typeof step === 'string' || typeof step === 'number',
      );
      const place = steps.join('.');
      const what = readText(item.msg) ?? readText(item.message) ?? 'invalid';
      return place === '' ? what : `${place}: ${what}`;
    });
  return readText(detail) ?? readText(lines.join('; '));
}

/** A code: a word, or a number that is not an HTTP status. */
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

/** If an upstream reports an error of one of their types in a stream, the client sees that type. All others become `server_error` (E2). */
const TIMEOUT_CODES = ['timeout', 'stream_idle_timeout'] as const satisfies readonly ErrorCode[];

/** The error that ends a stream after its headers, from the error that the upstream reported. */
export function streamError(upstream: Upstream, error: UpstreamError): ApiError {
  const timeout = TIMEOUT_CODES.find((code) => ERRORS[code].type === error.type);
  const weirCode = timeout ?? 'upstream_error';
  const ownType = error.type === 'server_error' ? undefined : error.type;
  const code = sanitizeCode(error.code ?? timeout ?? ownType, upstream) ?? weirCode;
  const param = error.param === undefined ? null : sanitize(error.param, upstream);
  const own = apiError(weirCode, upstreamMessage(upstream, error.message), param);
  // The upstream's word may be one of Weir's, which means something else.
  return code === weirCode ? own : { ...own, code, weirCode };
}

/** The error for a finish word that means failure. */
export function failedFinish(upstream: Upstream, word: string): ApiError {
  const error = apiError('upstream_error', `${upstream.name} stopped: ${word}`);
  return word === 'error' ? error : { ...error, code: word, weirCode: 'upstream_error' };
}

/** Why a whole response is truncated: what it says of its end, in a clause that follows "the answer ended". */
export function unfinished(how: string): UpstreamError {
  const message = `the answer ended ${how}`;
  return { message, type: undefined, code: 'upstream_truncated', param: undefined, status: undefined };
}

/** The output ends within a tool call, whatever its finish word says. */
export function cutToolCall({ name }: Upstream): ApiError {
  return apiError('upstream_truncated', `${name} ended a tool call before its arguments were complete`);
}

/** More output came when the finish of its choice was sent. */
export function outputAfterFinish({ name }: Upstream): ApiError {
  return apiError('upstream_invalid', `${name} sent more output after the end of a choice`);
}

/** The pieces of a tool call's arguments are no JSON together. */
export function brokenToolCall({ name }: Upstream): ApiError {
  return apiError(
    'upstream_invalid',
    `${name} sent the arguments of a tool call in pieces that do not form JSON`,
  );
}

/** A tool call has arguments or an id, and its name never came. */
export function namelessToolCall({ name }: Upstream): ApiError {
  return apiError('upstream_invalid', `${name} sent a tool call without the name of its tool`);
}

/** The output has images, and nothing that a client gets. */
export function imagesAlone({ name }: Upstream): ApiError {
  return apiError(
    'upstream_invalid',
    `${name} answered with images alone, which are not passed on: request a text`,
  );
}

/** The connection broke before the response was complete. */
export function brokenConnection(upstream: Upstream): ApiError {
  return apiError('upstream_truncated', `${upstream.name} broke the connection`);
}

/** The request took longer than its deadline, in ms. */
export function deadlineExceeded(upstream: Upstream, ms: number): ApiError {
  return apiError('timeout', `${upstream.name} did not finish within ${ms / 1000} seconds`);
}

/** `<Provider>: <its message>`, sanitized, or that there is no message. */
export function upstreamMessage(upstream: Upstream, message: string | undefined): string {
  const text = sanitize(message ?? '', upstream);
  return text === '' ? `${upstream.name} reported an error without a message` : `${upstream.name}: ${text}`;
}

/** The start of a stack trace, on separate lines or in one: of JavaScript and Java, Python, Go, Rust. */
const STACK =
  /\n\s*at\s|\sat \S+ \(?\S+:\d+:\d+\)?|\sat [\w.$<>]+\(\w+\.java:\d+\)|\bFile "[^"]+", line \d+|Traceback \(most recent call last\)|\bgoroutine \d+ \[|\bpanicked at |\bstack backtrace:|\S+\.(?:go|rs|py):\d+\b/;

const CREDENTIALS: readonly RegExp[] = [
  // A header of any scheme with its value: `Authorization: Basic dXNlcg==`.
  /\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:[a-z]+\s+)?[^\s"',;]+/gi,
  /\bBearer\s+\S+/gi,
  // A signature of AWS's, and what it is of.
  /\bAWS4-HMAC-SHA256\b[^"'\n]{0,512}/g,
  /\bx-amz-security-token["']?\s*[:=]\s*["']?[^\s"',;]+/gi,
  /\bBasic\s+[\w+/=]{8,}/gi,
  // A key or password with its value, as in a header or a setting.
  /\b(?:x-)?(?:api[-_]?key|secret|password|passwd|pwd|token)["']?\s*[:=]\s*["']?[\w+/.=-]{6,}/gi,
  // Key prefixes of providers, code hosts and Weir itself.
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
  // A URL with a user, a port, or a host that is a number or has no dot. The URLs of public documentation have none of these.
  /\bhttps?:\/\/(?:[^\s"'<>/]*[@:\d][^\s"'<>]*|[^\s"'<>/.]+(?=[\s"'<>/]|$)[^\s"'<>]*)/gi,
  /\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?/g,
  /\[?(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])\]?(?::\d+)?/gi,
  /\blocalhost(?::\d+)?/gi,
  /\b[\w-]+(?:\.[\w-]+)*\.(?:internal|local|svc|lan|corp)(?::\d+)?\b/gi,
  // A host and its port: `backend-7:8443`, `api-int.prod.example.com:9090`.
  /\b(?=[a-z0-9.-]*[a-z])[a-z0-9]+(?:[.-][a-z0-9]+)+:\d{2,5}(?![\w-])/gi,
];

/**
 * Bounds an upstream's text and removes stack traces, credentials and internal addresses (E4). The text is truncated first, so that no
 * pattern runs over more than the bound.
 */
export function sanitize(text: string, upstream: Upstream): string {
  const bounded = removeSecrets(text, upstream).slice(0, MAX_ERROR_MESSAGE_CHARS);
  const stack = bounded.search(STACK);
  let sanitized = stack < 0 ? bounded : bounded.slice(0, stack);
  for (const pattern of CREDENTIALS) sanitized = sanitized.replace(pattern, '[redacted]');
  for (const pattern of ADDRESSES) sanitized = sanitized.replace(pattern, '[address]');
  return sanitized.trim();
}

/** A code is compared by programs, so it is not changed: undefined if it contains anything that a message may not contain. */
export function sanitizeCode(code: string | undefined, upstream: Upstream): string | undefined {
  if (
    code === undefined ||
    !CODE.test(code) ||
    secretsOf(upstream).some((secret) => containsSecret(code, secret))
  )
    return undefined;
  return FORBIDDEN.some((pattern) => code.search(pattern) >= 0) ? undefined : code;
}

const CODE = /^[\w.:/ -]{1,128}$/;
const FORBIDDEN: readonly RegExp[] = [STACK, ...CREDENTIALS, ...ADDRESSES];

function containsSecret(code: string, secret: string): boolean {
  return secret !== '' && (code === secret || (secret.length >= MIN_UNIQUE_CHARS && code.includes(secret)));
}

function secretsOf({
  secret,
  madeSecrets = [],
}: Pick<Upstream, 'secret' | 'madeSecrets'>): readonly string[] {
  return [secret, ...madeSecrets];
}

/** Removes the credential, also in its URL-encoded form. A short credential is removed only where it is a separate word. */
export function removeSecrets(text: string, upstream: Pick<Upstream, 'secret' | 'madeSecrets'>): string {
  let sanitized = text.slice(0, MAX_SEARCHED_CHARS);
  const isTruncated = sanitized.length < text.length;
  let longest = 0;
  for (const secret of secretsOf(upstream)) {
    if (secret === '') continue;
    const encoded = encodeURIComponent(secret.toWellFormed());
    for (const form of new Set([encoded, secret])) sanitized = removeWord(sanitized, form);
    longest = Math.max(longest, encoded.length);
  }
  // The truncated text may end with the start of a credential.
  return isTruncated && longest > 0 ? sanitized.slice(0, -longest) : sanitized;
}

function removeWord(text: string, word: string): string {
  return text.replaceAll(word, (found, at: number) => {
    const isWord = !isWordChar(text[at - 1]) && !isWordChar(text[at + found.length]);
    return isWord || word.length >= MIN_UNIQUE_CHARS ? '[redacted]' : found;
  });
}

/** A credential of this length does not occur within other words by chance. */
const MIN_UNIQUE_CHARS = 8;

/** The rest would be truncated anyway, so no search runs over it. */
const MAX_SEARCHED_CHARS = 8 * MAX_ERROR_MESSAGE_CHARS;

function isWordChar(character: string | undefined): boolean {
  return character !== undefined && /[\w-]/.test(character);
}
