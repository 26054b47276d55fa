/** Events of an Anthropic Messages server. */
import type { Json, JsonObject } from '../contract/json.ts';
import { piecesOf, sse } from './sse.ts';

function named(type: string, more: JsonObject = {}): string {
  return sse({ type, ...more }, type);
}

export function start(usage: JsonObject = {}): string {
  return named('message_start', {
    message: {
      id: 'msg_c0f1',
      type: 'message',
      role: 'assistant',
      model: 'conformance-1',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: 11,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 1,
        ...usage,
      },
    },
  });
}

const PING = named('ping');

export function block(index: number, content: JsonObject, deltas: readonly JsonObject[] = []): string[] {
  return [open(index, content), ...deltas.map((delta) => part(index, delta)), close(index)];
}

export function open(index: number, content: JsonObject): string {
  return named('content_block_start', { index, content_block: content });
}

export function part(index: number, delta: JsonObject): string {
  return named('content_block_delta', { index, delta });
}

export function close(index: number): string {
  return named('content_block_stop', { index });
}

export function text(index: number, words: string): string[] {
  const deltas = piecesOf(words).map((piece) => ({ type: 'text_delta', text: piece }));
  return block(index, { type: 'text', text: '' }, deltas);
}

export function thinking(index: number, words: string, signature = 'c2lnbmF0dXJl'): string[] {
  const deltas = piecesOf(words).map((piece) => ({ type: 'thinking_delta', thinking: piece }));
  return block(index, { type: 'thinking', thinking: '', signature: '' }, [
    ...deltas,
    { type: 'signature_delta', signature },
  ]);
}

export function toolUse(index: number, id: string, name: string, fragments: readonly string[]): string[] {
  const deltas = fragments.map((partial_json) => ({ type: 'input_json_delta', partial_json }));
  return block(index, { type: 'tool_use', id, name, input: {} }, deltas);
}

export function stop(reason: Json, usage: JsonObject = { output_tokens: 7 }): string {
  return named('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage });
}

export const END = named('message_stop');

export function error(type: string, message: string): string {
  return named('error', { error: { type, message } });
}

/** A complete stream around these blocks. */
export function stream(events: readonly string[], reason: Json = 'end_turn'): string[] {
  return [start(), PING, ...events, stop(reason), END];
}
