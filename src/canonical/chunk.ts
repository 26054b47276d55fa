/** The chunks of the canonical stream, for chat and for legacy completions. The order of keys here is their order on the wire. */

import type { JsonObject } from '../shared/json.ts';
import type { DocumentCitation } from './citations.ts';
import type { FinishReason } from './finish-reason.ts';
import type { ChatLogprobs, TextLogprobs } from './logprobs.ts';
import type { Usage } from './usage.ts';

/** The kind of chunk that a route sends: chat, or legacy text completions. */
export type Shape = 'chat' | 'text';

/** A custom tool's call as a chat client gets it. In `function` the input is the only argument. */
interface CustomCall {
  /** Only in the first fragment. */
  readonly name?: string;
  /** A piece of free text. */
  readonly input: string;
}

/**
 * Only the first fragment of a call has `id`, `type` and `function.name` (C7). `extra_content` holds a signature that the upstream wants
 * back with the call.
 */
export type ToolCallDelta =
  | {
      readonly index: number;
      readonly id: string;
      readonly type: 'function';
      readonly function: { readonly name: string; readonly arguments: string };
      readonly custom?: CustomCall;
      readonly extra_content?: JsonObject;
    }
  | {
      readonly index: number;
      readonly function: { readonly arguments: string };
      readonly custom?: CustomCall;
      readonly extra_content?: JsonObject;
    };

export interface Delta {
  role?: 'assistant';
  content?: string;
  reasoning_content?: string;
  /** The same text, for clients of providers with this name. */
  reasoning?: string;
  refusal?: string;
  /** What the choice cites. Only beside its finish. */
  annotations?: readonly JsonObject[];
  /** A text block begins, and what it cites of the request's documents. Only for clients whose texts are blocks. */
  begins_block?: true;
  citations?: readonly DocumentCitation[];
  tool_calls?: readonly ToolCallDelta[];
  /** Reasoning that the upstream wants back, signed or encrypted, in OpenRouter's form. */
  reasoning_details?: readonly JsonObject[];
}

export interface ChatChoice {
  readonly index: number;
  readonly delta: Delta;
  readonly logprobs: ChatLogprobs | null;
  readonly finish_reason: FinishReason | null;
  /** The stop sequence that ended the output, for the protocols that have it. Chat has none. */
  readonly stop_sequence?: string;
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
  /** The same usage, for clients of Groq. */
  readonly x_groq?: { readonly usage: Usage };
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
