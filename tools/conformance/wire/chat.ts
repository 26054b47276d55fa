/** Events of a Chat Completions server. */
import type { Json, JsonObject } from '../contract/json.ts';
import { piecesOf, sse } from './sse.ts';

const HEAD = {
  id: 'chatcmpl-c0f1',
  object: 'chat.completion.chunk',
  created: 1_795_000_000,
  model: 'conformance-1',
};

export const DONE = 'data: [DONE]\n\n';

export function chunk(choice: JsonObject, more: JsonObject = {}): string {
  return sse({ ...HEAD, choices: [{ index: 0, delta: {}, finish_reason: null, ...choice }], ...more });
}

export function delta(value: JsonObject, more: JsonObject = {}): string {
  return chunk({ delta: value }, more);
}

export const ROLE = delta({ role: 'assistant', content: '' });

export function words(text: string): string[] {
  return piecesOf(text).map((content) => delta({ content }));
}

export function thoughts(text: string, field = 'reasoning_content'): string[] {
  return piecesOf(text).map((piece) => delta({ [field]: piece }));
}

export function finish(reason: Json, more: JsonObject = {}): string {
  return chunk({ finish_reason: reason }, more);
}

export function usage(prompt: number, completion: number, more: JsonObject = {}): JsonObject {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...more,
  };
}

export function usageChunk(value: Json): string {
  return sse({ ...HEAD, choices: [], usage: value });
}

/** The first fragment of a call. */
export function call(index: Json, id: Json, name: string, json: Json = ''): string {
  return delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: json } }] });
}

/** A later fragment. */
export function fragment(index: number, json: string): string {
  return delta({ tool_calls: [{ index, function: { arguments: json } }] });
}

/** A complete stream around these events. */
export function stream(events: readonly string[], reason: Json = 'stop'): string[] {
  return [ROLE, ...events, finish(reason), usageChunk(usage(11, 7)), DONE];
}

/** A response that is not streamed. */
export function completion(message: JsonObject, reason = 'stop', more: JsonObject = {}): string {
  return JSON.stringify({
    ...HEAD,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: reason, ...more }],
    usage: usage(11, 7),
  });
}
