/** Builds what clients of Messages receive: the message object, its content blocks, stream events and tool-use ids. */

import type { DocumentCitation } from '../../canonical/citations.ts';
import type { FinishReason } from '../../canonical/finish-reason.ts';
import type { Usage } from '../../canonical/usage.ts';
import { decodeBase64Url, encodeBase64Url } from '../../shared/encoding.ts';
import type { JsonObject } from '../../shared/json.ts';
import { frame, frameHead } from '../../stream/sse-frame.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import { encodeReasoningState, type ReasoningState } from '../shared/reasoning-state.ts';
import type { OpenBlock } from './client-blocks.ts';

/** What a message has of its request. */
export type MessageOptions = Pick<WriterOptions, 'requestId' | 'model'>;

/** How a message ended, with the stop sequence that ended it. */
export interface MessageStop {
  readonly stop_reason: 'end_turn' | 'max_tokens' | 'tool_use' | 'refusal' | 'stop_sequence' | null;
  readonly stop_sequence: string | null;
}

/** The message has not ended. */
const NO_STOP: MessageStop = { stop_reason: null, stop_sequence: null };

/**
 * `tool_use` follows from the calls that were sent, because clients run tools only for this stop reason.
 * @param sequence the stop sequence that the provider named, or null
 */
export function messageStop(
  finish: FinishReason | null,
  hasCalls: boolean,
  sequence: string | null,
): MessageStop {
  const stop = (stop_reason: MessageStop['stop_reason']) => ({ stop_reason, stop_sequence: null });
  if (finish === 'length') return stop('max_tokens');
  if (finish === 'content_filter') return stop('refusal');
  if (hasCalls) return stop('tool_use');
  return sequence === null ? stop('end_turn') : { stop_reason: 'stop_sequence', stop_sequence: sequence };
}

/** Whether the output ends before its end. */
export function isTruncated(finish: FinishReason | null): boolean {
  return finish === 'length' || finish === 'content_filter';
}

/**
 * `input_tokens` excludes tokens read from and written to a cache. Unknown values are null, as Anthropic's schema requires: generated
 * clients refuse an absent key (@anthropic-ai/sdk 1.12.0, 2026-11-22).
 */
export interface MessageUsage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number | null;
  readonly cache_read_input_tokens: number | null;
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly thinking_tokens: number } | null;
  readonly server_tool_use: null;
}

const NO_USAGE: Usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

/** @param usage null if the upstream reported none */
export function messageUsage(usage: Usage | null): MessageUsage {
  const { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details } =
    usage ?? NO_USAGE;
  const { cached_tokens, cache_write_tokens } = prompt_tokens_details ?? {};
  const reasoning = completion_tokens_details?.reasoning_tokens;
  return {
    input_tokens: Math.max(0, prompt_tokens - (cached_tokens ?? 0) - (cache_write_tokens ?? 0)),
    cache_creation_input_tokens: cache_write_tokens ?? null,
    cache_read_input_tokens: cached_tokens ?? null,
    output_tokens: completion_tokens,
    output_tokens_details: reasoning === undefined ? null : { thinking_tokens: reasoning },
    server_tool_use: null,
  };
}

/** The usage in `message_start`. */
function initialUsage(estimatedPromptTokens: number): MessageUsage {
  return {
    input_tokens: estimatedPromptTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 1,
    output_tokens_details: null,
    server_tool_use: null,
  };
}

/** A content block of a message. */
export type MessageBlock =
  | { readonly type: 'text'; readonly text: string; readonly citations: readonly DocumentCitation[] }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | {
      readonly type: 'tool_use';
      readonly id: string;
      readonly name: string;
      readonly input: JsonObject;
      readonly caller: { readonly type: 'direct' };
    };

/** The JSON of a message with all keys of Anthropic's schema. */
export function messageJson(
  { requestId, model }: MessageOptions,
  content: readonly MessageBlock[],
  stop: MessageStop,
  usage: MessageUsage,
): string {
  return JSON.stringify({
    id: `msg_${requestId.replaceAll('-', '')}`,
    type: 'message',
    role: 'assistant',
    model,
    content,
    ...stop,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: { ...usage, cache_creation: null, inference_geo: null, service_tier: null, speed: null },
  });
}

/** A content block; without what follows its kind, as it begins. */
export function contentBlock(
  block: OpenBlock,
  text = '',
  signature = '',
  input: JsonObject = {},
  citations: readonly DocumentCitation[] = [],
): MessageBlock {
  // The schema also allows null, but @ai-sdk/anthropic 3.0.138 refuses it in a non-streaming response.
  if (block.kind === 'text') return { type: 'text', text, citations };
  if (block.kind === 'reasoning') return { type: 'thinking', thinking: text, signature };
  // `direct`: the model made the call, not a program that runs at Anthropic.
  return { type: 'tool_use', id: toToolUseId(block.id), name: block.name, input, caller: { type: 'direct' } };
}

/** A block for a reasoning state that belongs to no thinking text. */
export function redactedThinkingBlock(model: string, state: ReasoningState): MessageBlock {
  return { type: 'redacted_thinking', data: encodeState(model, state) };
}

/**
 * The signature of a thinking block. The block has the text, so it is not repeated. Unsigned thinking gets a signature too: clients
 * send only signed thinking back, and some upstreams need it.
 */
export function encodeSignature(model: string, detail: JsonObject = {}): string {
  const { text: _, ...rest } = detail;
  return encodeState(model, { detail: rest });
}

/** @param model the canonical model, which begins with the provider's id */
function encodeState(model: string, state: ReasoningState): string {
  return encodeReasoningState(model.slice(0, Math.max(0, model.indexOf('/'))), state);
}

const TOOL_USE_ID = /^toolu_[\w-]+$/;
/** Anthropic refuses ids with other characters. */
const VALID_ID = /^[\w-]+$/;
const PREFIX = 'toolu_weir_';
const ENCODED_PREFIX = 'toolu_weirb_';

/** An id that clients of Messages accept, from which `fromToolUseId` restores the upstream's id. */
function toToolUseId(id: string): string {
  if (TOOL_USE_ID.test(id)) return id;
  return VALID_ID.test(id) ? PREFIX + id : ENCODED_PREFIX + encodeBase64Url(id);
}

/** The provider's id of a tool call, from the id that the client got for it. Other ids stay as they are. */
export function fromToolUseId(id: string): string {
  if (id.startsWith(PREFIX)) return id.slice(PREFIX.length);
  return (id.startsWith(ENCODED_PREFIX) && decodeBase64Url(id.slice(ENCODED_PREFIX.length))) || id;
}

export const MESSAGE_START = frameHead('message_start');
export const BLOCK_START = frameHead('content_block_start');
export const BLOCK_DELTA = frameHead('content_block_delta');
export const BLOCK_STOP = frameHead('content_block_stop');

export const PING_FRAME = frame('ping', '{"type":"ping"}');

/** The JSON of `message_start`. */
export function messageStart(options: MessageOptions, promptTokens: number): string {
  return `{"type":"message_start","message":${messageJson(options, [], NO_STOP, initialUsage(promptTokens))}}`;
}

/**
 * The JSON of `content_block_start`.
 * @param index the block's index in the message
 */
export function blockStart(index: number, content_block: MessageBlock): string {
  return JSON.stringify({ type: 'content_block_start', index, content_block });
}

/** The type of each delta, and the key of its text. */
const DELTAS = {
  text: ['text_delta', 'text'],
  reasoning: ['thinking_delta', 'thinking'],
  signature: ['signature_delta', 'signature'],
  call: ['input_json_delta', 'partial_json'],
} as const;

/** The JSON of `content_block_delta` with a text of this kind. Written by hand, because it is the event of each token. */
export function blockDelta(index: number, kind: keyof typeof DELTAS, text: string): string {
  const [type, key] = DELTAS[kind];
  return `{"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${key}":${JSON.stringify(text)}}}`;
}

/** The JSON of `content_block_delta` with a citation of the text block. */
export function citationDelta(index: number, citation: DocumentCitation): string {
  return JSON.stringify({ type: 'content_block_delta', index, delta: { type: 'citations_delta', citation } });
}

/** The JSON of `content_block_stop`. */
export function blockStop(index: number): string {
  return `{"type":"content_block_stop","index":${index}}`;
}

/** The last two frames. */
export function messageEnd(stop: MessageStop, usage: MessageUsage): string {
  const delta = { ...stop, stop_details: null, container: null };
  const json = JSON.stringify({ type: 'message_delta', delta, usage });
  return frame('message_delta', json) + frame('message_stop', '{"type":"message_stop"}');
}
