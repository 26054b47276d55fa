/** How both of Google's APIs refuse. */
import { isObject, type JsonObject, objectOf, readArray } from '../shared/json.ts';
import type { RefusalHabits } from './refusals.ts';

/**
 * 400 "Invalid function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores (_), dots (.),
 * colons (:), or dashes (-), with a maximum length of 64": decolua/9router#369, 2026-03-20.
 */
export const GOOGLE_TOOL_NAMES = /^[a-zA-Z_][\w.:-]{0,63}$/;

export const GOOGLE_REFUSALS: RefusalHabits = {
  // badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22.
  context_length: /\binput token count\b.{0,40}\bexceeds the maximum\b/i,
  // A 429 "Your prepayment credits are depleted. Please go to AI Studio …": JeffOtano/roni#125, 2026-04-14; a 400 "… Please enable
  // billing on your project in Google AI Studio": https://ai.google.dev/gemini-api/docs/troubleshooting, read 2026-11-22.
  empty_balance: /\bprepayment credits are depleted\b|\bplease enable billing on your project\b/i,
  // A 400, of the place where a Worker runs: google-gemini/deprecated-generative-ai-js#151, 2024-05-25, poenl/gemini-api#4, 2025-11-08.
  wrong_place: /\buser location is not supported\b/i,
  // A 404: swuecho/chat#597, 2025-02-06.
  missing_model: /^[^:]*: models\/\S{1,256} is not found for API version\b/i,
  // A 403: continuedev/continue#10902, 2026-02-28. Another one, "You do not have permission to access the File x or it may not exist", is
  // of a file that the request names: googleapis/python-genai#1218, 2025-08-06.
  bad_credential: /^[^:]*: Permission denied: Consumer '/i,
  retryAfter: readRetryInfo,
};

const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo';
/** A protobuf duration. A wait of more than 11 days is none. */
const DURATION = /^(\d{1,6}(?:\.\d{1,9})?)s$/;

/** It sends no `retry-after`, and "retryDelay": "45.837906927s" among the error's details: dcdpr/jp#1061, 2026-09-03. */
function readRetryInfo(body: JsonObject): number | undefined {
  const details = readArray(objectOf(body.error).details).filter(isObject);
  const delay = details.find((detail) => detail['@type'] === RETRY_INFO)?.retryDelay;
  const [, seconds] = DURATION.exec(typeof delay === 'string' ? delay : '') ?? [];
  return seconds === undefined ? undefined : Math.ceil(Number(seconds));
}
