/** Errors within a stream of Converse: exceptions of the event stream, and events with the name of an exception. */

import type { UpstreamError } from '../../canonical/error.ts';
import { type JsonObject, readCount, readText } from '../../shared/json.ts';
import { FAILURE_PREFIX } from '../../stream/eventstream-parser.ts';

/**
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html#API_runtime_ConverseStream_Errors
 * (2026-11-28)
 */
const STATUSES: Readonly<Record<string, number>> = {
  accessdeniedexception: 403,
  internalserverexception: 500,
  modelerrorexception: 424,
  modelnotreadyexception: 429,
  modelstreamerrorexception: 424,
  modeltimeoutexception: 408,
  resourcenotfoundexception: 404,
  servicequotaexceededexception: 400,
  serviceunavailableexception: 503,
  throttlingexception: 429,
  validationexception: 400,
};

/** Names of events that are exceptions: anthropic-sdk-typescript's tests have them in the place of an event's type. */
const EXCEPTION = /(?:Exception|Error)$/i;

/** The failure that an event is, whatever its payload has; null: it is none. */
export function readFailure(name: string, event: JsonObject): UpstreamError | null {
  const isException = name.startsWith(FAILURE_PREFIX);
  const type = isException ? name.slice(FAILURE_PREFIX.length) : name;
  if (!isException && !EXCEPTION.test(name)) return null;
  const messages = [event.message, event.Message, event.originalMessage];
  // Of the model's own failure the status is that of its host.
  const original = readCount(event.originalStatusCode) ?? 0;
  return {
    message: messages.map(readText).find((text) => text !== undefined),
    type: undefined,
    code: type === '' ? undefined : type,
    param: undefined,
    status: original >= 400 && original <= 599 ? original : STATUSES[type.toLowerCase()],
  };
}
