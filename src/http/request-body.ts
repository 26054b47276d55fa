/** Reads a request's JSON body within its size limit and the request's deadline. */
import { type ApiError, apiError, type ErrorCode } from '../canonical/error.ts';
import {
  isObject,
  isWithinJsonBounds,
  type JsonObject,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  parseJsonExactly,
} from '../shared/json.ts';
import { jsonFault } from '../shared/json-fault.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { Lease } from '../stream/memory.ts';
import { readBodyText, type TextRead } from '../stream/read-body.ts';
import type { RequestContext } from './context.ts';

/** Fields of a request's body. Providers have some dozens, and each field is copied several times. */
export const MAX_BODY_FIELDS = 1000;

export interface RequestBody {
  readonly body: JsonObject;
  /** The size of the body as it was sent. */
  readonly bytes: number;
  /** The memory that the body takes. The caller must release it. */
  readonly lease: Lease;
}

/** The JSON object in the request's body. Integers beyond 2^53 keep all digits. */
export async function readRequestBody(
  request: Request,
  maxBytes: number,
  context: RequestContext,
): Promise<Result<RequestBody, ApiError>> {
  const read = await readInTime(request, maxBytes, context);
  if (read.kind !== 'text') return failure(apiError(...REFUSALS[read.kind](maxBytes, context)));
  const { text, bytes, lease } = read;
  const isBounded = isWithinJsonBounds(text);
  await lease.pause();
  const body = isBounded ? parseJsonExactly(text) : undefined;
  if (isObject(body) && Object.keys(body).length <= MAX_BODY_FIELDS) {
    return ok({ body, bytes, lease });
  }
  const message = isBounded ? bodyFault(text, body) : TOO_NESTED;
  lease.release();
  return failure(apiError('invalid_json', message));
}

const TOO_NESTED = `The body has more than ${MAX_JSON_DEPTH} levels or ${MAX_JSON_VALUES} values: send less at once`;

function bodyFault(text: string, body: unknown): string {
  return isObject(body)
    ? `The body has more than ${MAX_BODY_FIELDS} fields: send fewer`
    : `The body must be a JSON object, and ${jsonFault(text, body)}`;
}

function readInTime(
  request: Request,
  maxBytes: number,
  { deadline, leaseMemory }: RequestContext,
): Promise<TextRead> {
  const watch = (onLate: () => void) => deadline.watch(onLate);
  return readBodyText({ message: request, maxBytes, watch }, leaseMemory);
}

type Refusal = (maxBytes: number, context: RequestContext) => readonly [code: ErrorCode, message: string];

const REFUSALS: Readonly<Record<Exclude<TextRead['kind'], 'text'>, Refusal>> = {
  too_large: (maxBytes) => ['request_too_large', `The request's body is larger than ${maxBytes} bytes`],
  late: (_maxBytes, { settings }) => [
    'request_timeout',
    `The request's body did not arrive within ${settings.timers.deadlineMs / 1000} seconds`,
  ],
  // The client closed the connection, so nobody reads the response.
  broken: () => ['invalid_request', "The request's body ended before it was complete"],
  memory_exhausted: () => ['overloaded', 'Too many large requests are being read at once: try again'],
};
