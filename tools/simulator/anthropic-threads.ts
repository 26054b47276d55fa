/**
 * Message threads, an Anthropic feature since 2026-11-02: a conversation is stored under the id of its last message, and a request that
 * continues it sends only new messages. https://platform.claude.com/docs/en/build-with-claude/message-threads; the error
 * texts are those in `@anthropic-ai/sdk` 1.12 (2026-11-22).
 */
import { refusal } from './anthropic-check.ts';
import { type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import type { Call, Refusal } from './scene.ts';

const BETA = 'message-threads-2026-08-12';

interface Thread {
  /** `system` and `tools` of the first request. */
  readonly fixed: JsonObject;
  readonly messages: readonly JsonObject[];
}

/** By the id of the message that each continues from. */
const threads = new Map<string, Thread>();
/** The messages that were continued. A second request must not continue them. */
const continued = new Set<string>();

export function threadRefusal(call: Call): Refusal | undefined {
  const { type, previous_message_id: previous } = threadOf(call);
  if (type !== 'continue') return undefined;
  const repeated = ['system', 'tools'].find((field) => call.body[field] !== undefined);
  if (repeated !== undefined)
    return refusal(400, `${repeated}: not permitted with \`thread.type: continue\``);
  if (!threads.has(textOf(previous))) {
    const message = 'No usable Thread state was found for `previous_message_id`.';
    return refusal(404, message, 'thread_not_found');
  }
  const message = 'The response that `previous_message_id` names has already been continued.';
  return continued.has(textOf(previous)) ? refusal(400, message, 'thread_already_continued') : undefined;
}

/** The call with the complete conversation of its thread. Without the beta, `thread` is an unknown field. */
export function wholeCall(call: Call): Call {
  const { type, previous_message_id: previous } = threadOf(call);
  if (type === undefined) return call;
  const { thread: _, ...body } = call.body;
  const kept = type === 'continue' ? threads.get(textOf(previous)) : undefined;
  if (kept === undefined) return { ...call, body };
  return {
    ...call,
    body: { ...body, ...kept.fixed, messages: [...kept.messages, ...objectsOf(body.messages)] },
  };
}

/** Stores the conversation, including this message. */
export function keepThread(call: Call, { id, role, content }: JsonObject): void {
  const { type, previous_message_id: previous } = threadOf(call);
  if (type === undefined) return;
  const { system, tools, messages } = wholeCall(call).body;
  const fixed = {
    ...(system === undefined ? {} : { system }),
    ...(tools === undefined ? {} : { tools }),
  };
  const answer = { role: role ?? '', content: content ?? [] };
  threads.set(textOf(id), { fixed, messages: [...objectsOf(messages), answer] });
  if (type === 'continue') continued.add(textOf(previous));
}

function threadOf({ headers, body }: Call): JsonObject {
  const betas = textOf(headers['anthropic-beta']).split(',');
  return betas.includes(BETA) ? objectOf(body.thread) : {};
}
