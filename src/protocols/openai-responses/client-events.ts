/** Where the events of a Responses answer go, and how their members are written. */
import type { ChatLogprobs } from '../../canonical/logprobs.ts';

/** Null in its place: the answer is wanted whole, and nothing is written as it comes. */
export interface EventSink {
  /**
   * @param type without `response.`
   * @param members what stands behind its type and number, as JSON text without braces
   */
  event(type: string, members: string): void;
}

/** All of an event's frame before its members. */
export function eventHead(type: string): string {
  return `event: response.${type}\ndata: {"type":"response.${type}",`;
}

/** What stands between an event's members and its number, which is its last. */
export const BEFORE_NUMBER = ',"sequence_number":';

/** A whole event; `type` is all of it. */
export function eventFrame(type: string, members: string, number: number): string {
  return `event: ${type}\ndata: {"type":"${type}",${members}${BEFORE_NUMBER}${number}}\n\n`;
}

/** A comment is no event: clients refuse those that they do not know. */
export const HEARTBEAT_FRAME = ': heartbeat\n\n';
/** OpenAI has none; Open Responses demands it, and every client stops there or before it. */
export const DONE_FRAME = 'data: [DONE]\n\n';

/** What OpenAI writes for a token that is not among the likely ones. */
const UNLIKELY = -9999;

/** Logprobs as Responses has them: `bytes` and numbers are always there. */
export function writeLogprobs(logprobs: ChatLogprobs['content']): string {
  if (logprobs === null) return '[]';
  const entries = logprobs.map(({ token, logprob, bytes, top_logprobs }) => ({
    token,
    logprob: logprob ?? UNLIKELY,
    bytes: bytes ?? [],
    top_logprobs: top_logprobs.map((top) => ({
      token: top.token,
      logprob: top.logprob ?? UNLIKELY,
      bytes: top.bytes ?? [],
    })),
  }));
  return JSON.stringify(entries);
}
