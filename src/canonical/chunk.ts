/** The canonical chunk as a client gets it, in both shapes: key order here is key order on the wire (C1, C3, C4, C7, C10). */

import type { JsonObject } from '../shared/json.ts';
import type { FinishReason } from './finish-reason.ts';
import type { ChatLogprobs, TextLogprobs } from './logprobs.ts';
import type { Usage } from './usage.ts';

/** What a route answers in: chat chunks, or the legacy text completions. */
export type Shape = 'chat' | 'text';

/**
 * The first fragment of a call has `id`, `type` and `function.name`; no later one has (C7). `extra_content` holds a signature
 * that its upstream wants back with the call (A7).
 */
export type ToolCallDelta =
  | {
      readonly index: number;
      readonly id: string;
      readonly type: 'function';
      readonly function: { readonly name: string; readonly arguments: string };
      readonly extra_content?: JsonObject;
    }
  | {
      readonly index: number;
      readonly function: { readonly arguments: string };
      readonly extra_content?: JsonObject;
    };

export interface Delta {
  role?: 'assistant';
  content?: string;
  reasoning_content?: string;
  refusal?: string;
  tool_calls?: readonly ToolCallDelta[];
  /** OpenRouter's form of reasoning that its upstream wants back, signed or encrypted (A7). */
  reasoning_details?: readonly JsonObject[];
}

export interface ChatChoice {
  readonly index: number;
  readonly delta: Delta;
  readonly logprobs: ChatLogprobs | null;
  readonly finish_reason: FinishReason | null;
}

export interface TextChoice {
  readonly index: number;
  readonly text: string;
  readonly logprobs: TextLogprobs | null;
  readonly finish_reason: FinishReason | null;
}

export interface ChatChunk {
  readonly id: string;
  readonly object: 'chat.completion.chunk';
  readonly created: number;
  readonly model: string;
  readonly service_tier?: string | undefined;
  readonly system_fingerprint?: string | undefined;
  readonly choices: readonly ChatChoice[];
  readonly usage?: Usage;
}

export interface TextChunk {
  readonly id: string;
  readonly object: 'text_completion';
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint?: string | undefined;
  readonly choices: readonly TextChoice[];
  readonly usage?: Usage;
}

export type Chunk = ChatChunk | TextChunk;
