/** Judges one response of the gateway: its error, and the rules of the contract that it breaks. */

import { check, type Expectation } from '../../../tools/conformance/contract/check.ts';
import {
  decodeObject,
  isObject,
  type JsonObject,
  objectOf,
  objectsOf,
  textOf,
} from '../../../tools/simulator/json.ts';
import type { RawResponse } from './request.ts';

export interface Verdict {
  readonly code: string | null;
  readonly message: string | null;
  readonly faults: readonly string[];
}

/** Checking longer streams would take longer than the gateway's own work. */
const MAX_CHECKED_BYTES = 32 * 1024 * 1024;
const MAX_FAULTS = 1000;
const ERROR_KEYS = 'message,type,param,code';
const FINISHES = ['stop', 'length', 'content_filter', 'tool_calls'];

/** @param isWhole whether to check every frame, not only the last ones */
export function judge(answered: RawResponse, isWhole: boolean, expectation: Expectation): Verdict {
  const { status, headers, kept, end, ms } = answered;
  if (status === 0 || (end !== 'whole' && end !== 'left')) {
    return { ...NONE, faults: [`the answer is ${end} after ${Math.round(ms)} ms with the status ${status}`] };
  }
  const isStream = (headers.get('content-type') ?? '').startsWith('text/event-stream');
  if (isStream) return judgeStream(answered, isWhole, expectation);
  if (end === 'left') return NONE;
  const text = kept.toString();
  return status === 200 ? judgeWhole(text) : judgeError(text);
}

const NONE: Verdict = { code: null, message: null, faults: [] };

function judgeStream(
  { status, kept, bytes, end }: RawResponse,
  isWhole: boolean,
  expectation: Expectation,
): Verdict {
  const faults = status === 200 ? [] : [`H1: a stream with the status ${status}`];
  if (bytes > MAX_CHECKED_BYTES) return { ...NONE, faults: [...faults, `B1: a stream of ${bytes} bytes`] };
  const broken = !isWhole ? [] : check(kept, { ...expectation, clientLeft: end === 'left' });
  faults.push(...broken.slice(0, MAX_FAULTS));
  const last = kept.subarray(-8192).toString();
  const frame = /(?:^|\n)data: (\{"error":.*)\n\ndata: \[DONE\]\n\n$/.exec(last)?.[1];
  const error = frame === undefined ? {} : objectOf(decodeObject(frame)?.error);
  return { ...errorOf(error), faults };
}

function errorOf(error: JsonObject): Pick<Verdict, 'code' | 'message'> {
  return { code: textOf(error.code) || null, message: textOf(error.message) || null };
}

function judgeError(text: string): Verdict {
  const body = decodeObject(text);
  if (body === undefined) return { ...NONE, faults: [`E1: the body of an error is ${text.slice(0, 200)}`] };
  const error = objectOf(body.error);
  const faults = Object.keys(error).join() === ERROR_KEYS ? [] : [`E1: an error with ${Object.keys(error)}`];
  return { ...errorOf(error), faults };
}

/** Checks the parts of a non-streaming response that a client's schema requires. */
function judgeWhole(text: string): Verdict {
  const body = decodeObject(text);
  if (body === undefined)
    return { ...NONE, faults: [`C1: a non-streaming response is ${text.slice(0, 200)}`] };
  const faults: string[] = [];
  if (!/^(chat|text_completion|list)/.test(textOf(body.object)))
    faults.push(`C1: object is ${String(body.object)}`);
  for (const choice of objectsOf(body.choices)) {
    const isText = textOf(choice.text) !== '' || body.object === 'text_completion';
    if (!isText && !isObject(choice.message)) faults.push('C3: a choice without a message');
    if (!FINISHES.includes(textOf(choice.finish_reason)))
      faults.push(`C8: finish_reason is ${String(choice.finish_reason)}`);
  }
  return { ...NONE, faults };
}
