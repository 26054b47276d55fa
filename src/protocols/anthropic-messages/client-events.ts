/** The events of a message's stream, each as the head and the JSON of its frame (5.7). */
import type { JsonObject } from '../../shared/json.ts';
import type { MessageUsage, StopReason } from './client-answer.ts';

/** A frame's `event:` line, and what stands before its JSON. */
function head(event: string): string {
  return `event: ${event}\ndata: `;
}

export const MESSAGE_START = head('message_start');
export const BLOCK_START = head('content_block_start');
export const BLOCK_DELTA = head('content_block_delta');
export const BLOCK_STOP = head('content_block_stop');
export const ERROR = head('error');

export const PING_FRAME = `${head('ping')}{"type":"ping"}\n\n`;
/** Before a message has begun, no event may come. */
export const COMMENT_FRAME = ': heartbeat\n\n';

/** What a message that has just begun has used: the prompt is an estimate. */
export function firstUsage(promptTokens: number): MessageUsage {
  return {
    input_tokens: promptTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 1,
    output_tokens_details: null,
    server_tool_use: null,
  };
}

export function messageStart(message: JsonObject): string {
  return JSON.stringify({ type: 'message_start', message });
}

export function blockStart(index: number, content_block: unknown): string {
  return JSON.stringify({ type: 'content_block_start', index, content_block });
}

/** The names under which a delta's type has its text. */
const DELTAS = {
  text: ['text_delta', 'text'],
  reasoning: ['thinking_delta', 'thinking'],
  signature: ['signature_delta', 'signature'],
  call: ['input_json_delta', 'partial_json'],
} as const;

export function blockDelta(index: number, kind: keyof typeof DELTAS, text: string): string {
  const [type, key] = DELTAS[kind];
  return `{"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${key}":${JSON.stringify(text)}}}`;
}

export function blockStop(index: number): string {
  return `{"type":"content_block_stop","index":${index}}`;
}

/** The last two frames. */
export function messageEnd(stop_reason: StopReason, usage: MessageUsage): string {
  const delta = { stop_reason, stop_sequence: null, stop_details: null, container: null };
  const json = JSON.stringify({ type: 'message_delta', delta, usage });
  return `${head('message_delta')}${json}\n\n${head('message_stop')}{"type":"message_stop"}\n\n`;
}
