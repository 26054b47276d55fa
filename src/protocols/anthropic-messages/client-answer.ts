/** What a whole message and a streamed one share: why it stopped, what it used, how its reasoning's tokens are tagged. */
import type { FinishReason } from '../../canonical/finish-reason.ts';
import type { Usage } from '../../canonical/usage.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import { encodeReasoningState, type ReasoningState } from '../shared/reasoning-state.ts';
import { toToolUseId } from './tool-id.ts';

export type StopReason = 'end_turn' | 'max_tokens' | 'tool_use' | 'refusal';

/** Clients wait for a tool's result, or do not, by this word alone: a call that was sent must be named by it (I3). */
export function stopReason(finish: FinishReason | null, hasCalls: boolean): StopReason {
  if (finish === 'length') return 'max_tokens';
  if (finish === 'content_filter') return 'refusal';
  return hasCalls ? 'tool_use' : 'end_turn';
}

/**
 * Here the prompt's tokens are told apart: what was read from a cache and written to one is no part of `input_tokens`. Anthropic's
 * schema has a null for what is not known: clients that are generated from it refuse an absent key (@anthropic-ai/sdk 1.12.0, 2026-11-22).
 */
export interface MessageUsage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number | null;
  readonly cache_read_input_tokens: number | null;
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly thinking_tokens: number } | null;
  readonly server_tool_use: null;
}

export function messageUsage(usage: Usage): MessageUsage {
  const { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details } = usage;
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

/** A message, whole or as it begins, with every key that Anthropic's has. */
export function messageObject(
  { requestId, model }: Pick<WriterOptions, 'requestId' | 'model'>,
  content: readonly JsonObject[],
  stop_reason: StopReason | null,
  usage: MessageUsage,
): JsonObject {
  return {
    id: `msg_${requestId.replaceAll('-', '')}`,
    type: 'message',
    role: 'assistant',
    model,
    content,
    stop_reason,
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: { ...usage, cache_creation: null, inference_geo: null, service_tier: null, speed: null },
  };
}

export function textBlock(text: string): JsonObject {
  // Both are in Anthropic's schema; @ai-sdk/anthropic 3.0.138 refuses the null of a whole message.
  return { type: 'text', text, citations: [] };
}

/** Called by the model itself, and not from a program that runs at Anthropic's. */
export function callBlock(
  { id, name }: { readonly id: string; readonly name: string },
  input: JsonObject,
): JsonObject {
  return { type: 'tool_use', id: toToolUseId(id), name, input, caller: { type: 'direct' } };
}

/** @param model the canonical one, which begins with its provider's id */
export function reasoningEncoder(model: string, token: ReasoningState): string {
  return encodeReasoningState(model.slice(0, Math.max(0, model.indexOf('/'))), token);
}

/**
 * The signature of a reasoning block, whose text the block itself holds. One that its upstream did not sign gets one all the same:
 * clients send no thinking back that has none, and some upstreams want it.
 */
export function encodeSignature(model: string, detail: JsonObject = {}): string {
  const { text: _, ...rest } = detail;
  return reasoningEncoder(model, { detail: rest });
}
