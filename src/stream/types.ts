/** The interfaces of the stream: what it reads from (a provider protocol), what it writes to (a client protocol), and its context. */
import type { Chunk, Shape } from '../canonical/chunk.ts';
import type { CitableDocument } from '../canonical/citations.ts';
import type { ApiError, FailureReason, UpstreamError } from '../canonical/error.ts';
import type { ChunkPart, StreamMeter } from '../canonical/part.ts';
import type { Upstream } from '../canonical/upstream-error.ts';
import type { Usage } from '../canonical/usage.ts';
import type { JsonObject } from '../shared/json.ts';
import type { FrameBuffer } from './buffers.ts';
import type { MessageParser } from './event-parser.ts';

/** Protocols other than Chat Completions that both clients and providers use. */
export type PassthroughProtocol = 'messages' | 'responses' | 'generate_content' | 'embed_content';

/** A provider protocol: reads an upstream's events, or its non-streaming response, into canonical parts. */
export interface UpstreamProtocol {
  /** The API's name in the model list. */
  readonly id: 'chat' | 'completions' | 'responses' | 'messages' | 'generate_content' | 'converse';
  /** The framing of its streams. Absent: server-sent events. */
  readonly framing?: Framing;
  /** `[DONE]` finishes choices without a finish, which some servers never send. Absent: `[DONE]` is no end of its own. */
  readonly isFinishedByDone?: true;
  /** @param provider the provider's id, which tags reasoning that only this provider can read (`canonical/reasoning-details.ts`) */
  readonly open: (quirks: ProtocolQuirks, provider: string) => ProtocolReader;
}

/** How events follow each other in a stream. */
export interface Framing {
  /** What a request for a stream accepts. */
  readonly mediaType: string;
  /** @param maxEventBytes bounds what is held of one event */
  readonly open: (maxEventBytes: number) => MessageParser;
}

/** Reads one response and may keep state. Never throws: unknown members are skipped, and a value of the wrong type counts as absent. */
export interface ProtocolReader {
  /**
   * Reads one event of a stream. Returns null if it has nothing for the client, such as a ping. An event with nothing but text must
   * not change the reader's state except counts (`ChoicePart.sent`), because the fast path copies such events
   * (`fast-path/fast-path.ts`).
   * @param name the SSE event's name, or `""`
   */
  readonly event: (event: JsonObject, name: string) => ChunkPart | null;
  /** Reads an event with nothing but text once more, without a change of state. Absent: `event` changes none. */
  readonly trial?: (event: JsonObject) => ChunkPart | null;
  /**
   * Also an event with nothing but arguments of a tool call is read without state, by the protocol's passthrough too, so that the fast
   * path may copy it. Absent: no.
   */
  readonly copiesArguments?: true;
  /** Reads a non-streaming response. */
  readonly response: (response: JsonObject) => ChunkPart;
  /** Returns what is known only at the end of the body or at `[DONE]`, or null. Called once. */
  readonly end?: () => ChunkPart | null;
}

export interface ProtocolQuirks {
  /**
   * Whether a chat client that did not request usage gets what the provider reports after the finish of a stream. Absent: if Weir did not
   * request it either.
   */
  readonly passesLateUsage?: boolean;
  /** Where else chunks and responses have the usage: the path of a field such as `['x_groq', 'usage']`. Absent: at `usage` only. */
  readonly usageField?: readonly string[];
  /**
   * What the provider sends as a tool call's id if it has none, or where the ids begin anew with each response: such a call gets an id of
   * its own.
   */
  readonly absentToolCallId?: RegExp;
  /** The model may write a call that the request forces as text. Absent: it does not. */
  readonly writesCallsAsText?: true;
  /** The names of the tools of a request that forces a call, where the model may write it as text. Absent: no call may be a text. */
  readonly forcedTools?: readonly string[];
  /**
   * The documents of a request that is to cite them, in the provider's order; null: one that no citation can name. Absent: citations of
   * documents reach no client.
   */
  readonly documents?: readonly (CitableDocument | null)[];
  /** Reads the cost from the provider's usage object: an integer of 10^-9 US dollars. */
  readonly costOf?: (usage: JsonObject) => number | undefined;
  /** Counts the billed searches of a Responses `web_search_call` if the usage has no such count. Absent: one for each call. */
  readonly searchesOf?: (action: JsonObject) => number;
  /** In chat the provider's `completion_tokens` exclude reasoning tokens, which only its `total_tokens` includes. */
  readonly countsReasoningApart?: boolean;
}

/**
 * A provider's own name for something that a chunk has under its canonical name, too: `delta.reasoning` for `reasoning_content`,
 * `x_groq.usage` for `usage`, `usage.prompt_cache_hit_tokens` for `prompt_tokens_details.cached_tokens`.
 */
export type OwnName = 'delta.reasoning' | 'x_groq.usage' | 'usage.prompt_cache_hit_tokens';

/** What chunks are made from besides the upstream's events. Time and randomness come in as functions. */
export interface ChunkContext {
  readonly shape: Shape;
  readonly upstream: Upstream;
  /** The provider's id: the first half of every chunk's `model`. */
  readonly provider: string;
  /** The requested model, for upstreams that report none. */
  readonly model: string;
  readonly reasoning: 'pass' | 'strip';
  /**
   * Which chunk has the usage: a separate one at the `end`, the one with the last `finish` if the upstream reported it with that or
   * before, or none. `wait`: also if it was reported while the finish waited; `wait_or_end`: if it came later, a separate one.
   */
  readonly usageAt: 'end' | 'finish' | 'wait' | 'wait_or_end' | 'nowhere';
  /** The cost so far in US dollars, or null if it is unknown. Absent if the request did not ask for a cost. */
  readonly cost?: () => number | null;
  /** The provider's own names that its clients read. Absent: only the canonical ones are written. */
  readonly ownNames?: readonly OwnName[];
  /** The number of requested choices. */
  readonly choices: number;
  /** The client's tool names by the names that the upstream knows. Absent: they are the same. */
  readonly toolNames?: ReadonlyMap<string, string>;
  /**
   * By the name that the upstream knows of a tool: the client's keys of its arguments, by those that the upstream
   * knows. Absent: none differs.
   */
  readonly toolKeys?: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** The current time in seconds. */
  readonly now: () => number;
  /** A new random text, for ids that the upstream does not send. */
  readonly random: () => string;
  readonly meter: StreamMeter;
}

/** Why a stream failed. */
export interface StreamFailure {
  /** The error as a client sees it in a frame. */
  readonly error: ApiError;
  /** The error that the upstream reported, or null if Weir found the failure. */
  readonly upstreamError: UpstreamError | null;
  /** The error as an HTTP response has it, with the provider's refusal classified. Absent: `error`. */
  readonly httpError?: ApiError;
}

export interface Failed {
  readonly kind: 'failed';
  readonly failure: StreamFailure;
  readonly reason: FailureReason;
}

/**
 * What a step made of an output. `more`: it goes on. `done`: it is complete. `cancelled`: the request is over, so that nothing of the
 * output counts any more.
 */
export type Outcome =
  | { readonly kind: 'more' }
  | { readonly kind: 'done' }
  | { readonly kind: 'cancelled' }
  | Failed;

/** These are compared by identity; a step of an event makes no object. */
export const MORE: Outcome = { kind: 'more' };
export const DONE: Outcome = { kind: 'done' };
export const CANCELLED: Outcome = { kind: 'cancelled' };

/** An output that failed. */
export function failed(failure: StreamFailure, reason: FailureReason = 'body'): Failed {
  return { kind: 'failed', failure, reason };
}

/** A failure that no upstream reported. */
export function failedWith(error: ApiError, reason: FailureReason = 'body'): Failed {
  return failed({ error, upstreamError: null }, reason);
}

/** Writes an output in a client protocol, as it is read. */
export interface ChunkWriter {
  /** @returns false if the chunk exceeds what the writer accepts: the output then fails */
  chunk(chunk: Chunk): boolean;
  /** A vendor event that passes: its JSON as received, and its SSE event name or `""`. */
  vendor(json: string, name: string): void;
  /**
   * Passthrough: writes each event as the upstream sent it, instead of chunks. Absent: the writer takes chunks.
   * @param event the parsed data
   * @param part what the reader made of it, or null
   * @returns false if it exceeds what the writer accepts
   */
  readonly event?: (name: string, data: string, event: JsonObject, part: ChunkPart | null) => boolean;
  /** Passthrough: writes the events that end the output as one that has reached its limit. */
  readonly limit?: (usage: Usage) => void;
  /** Passthrough: gets an event that fails the output. It is not passed on: the failure that follows replaces it. */
  failedEvent?(data: string, event: JsonObject): void;
  /**
   * The same for a non-streaming response.
   * @param text the response as it came; null: it came in another form
   */
  readonly response?: (response: JsonObject, text: string | null) => void;
}

/** Writes the frames of one stream. All attempts of the stream use the same writer, except a passthrough attempt. */
export interface StreamWriter extends ChunkWriter {
  readonly output: FrameBuffer;
  /** Writes the last frames. Called once, last: null if the output is complete. */
  end(failure: StreamFailure | null): void;
  /**
   * Writes a frame that keeps the connection open.
   * @param isHeld the output written so far was not sent
   */
  heartbeat(isHeld: boolean): void;
  /** Forgets what was written: it was discarded, and the next attempt starts from the beginning. */
  restart(): void;
  /** Changes with all state except the chunk that decides the frame of a text or of a piece of arguments, such as the open block. */
  readonly revision: number;
  /**
   * Returns the frame of a chunk with only one text, `''` if the client gets none, or null if the chunk needs more than that frame.
   * Changes nothing, and excludes what `splice` adds itself.
   */
  textFrame(chunk: Chunk): string | null;
  /** Fast path: writes a frame from its literals, with the bytes of a JSON string from `source` between each two of them. */
  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void;
}

/** Collects an output into one JSON object. */
export interface JsonWriter extends ChunkWriter {
  /** An estimate of what is held, in UTF-16 units. */
  readonly heldChars: number;
  /** The object's JSON. Only of a complete output. */
  take(): string;
}
