/** What a dialect reads out of one upstream event: the hub between every provider's wire form and the canonical chunk. */

import { type JsonObject, readText } from '../shared/json.ts';
import { MAX_NAME_CHARS } from '../shared/limits.ts';
import type { UpstreamError } from './error.ts';
import type { FinishMeaning } from './finish-reason.ts';
import type { Logprobs } from './logprobs.ts';
import type { CountedUsage, UsageReport } from './usage.ts';

/** A fragment of a tool call as the upstream sent it; what it left out is undefined and repaired later (C7). */
export interface ToolCallPart {
  readonly index: number | undefined;
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** JSON text, or a piece of it. */
  readonly arguments: string;
  /** What the upstream wants back with the call, such as Gemini's signature (A7). */
  readonly extraContent: JsonObject | undefined;
}

/** An update of one choice. An absent string is `""`. */
export interface ChoicePart {
  readonly index: number;
  /** The upstream sent a role here. */
  readonly hasRole: boolean;
  /** The upstream sent a content here, be it `""` (C4 keeps that beside a role). */
  readonly hasContent: boolean;
  readonly content: string;
  readonly reasoning: string;
  readonly refusal: string;
  readonly toolCalls: readonly ToolCallPart[];
  /** Reasoning in the form that the upstream wants back, signed or encrypted: opaque here (A7). */
  readonly reasoningDetails: readonly JsonObject[];
  readonly logprobs: Logprobs | null;
  /** The upstream's own finish word, or null while there is none. */
  readonly finishWord: string | null;
  /** What that word means here, where it means something else elsewhere. */
  readonly finishMeaning?: FinishMeaning | undefined;
}

/** A choice of which nothing is reported. */
export const EMPTY_CHOICE: ChoicePart = {
  index: 0,
  hasRole: false,
  hasContent: false,
  content: '',
  reasoning: '',
  refusal: '',
  toolCalls: [],
  reasoningDetails: [],
  logprobs: null,
  finishWord: null,
};

/** What one event, or one whole plain answer, contains. */
export interface ChunkPart {
  readonly id: string | undefined;
  /** Seconds. */
  readonly created: number | undefined;
  readonly model: string | undefined;
  readonly serviceTier: string | undefined;
  readonly systemFingerprint: string | undefined;
  readonly choices: readonly ChoicePart[];
  readonly usage: UsageReport | null;
  /** An error that came with the choices: they are sent on first, then it ends the stream. */
  readonly error: UpstreamError | null;
  /** Its dialect remembers more of the event than this part says: it is no frame that another could stand for (A8). */
  readonly isRemembered?: true;
  /** The upstream said that nothing follows. */
  readonly ends?: true;
}

/** A part that contains nothing. */
export const EMPTY_PART: ChunkPart = {
  id: undefined,
  created: undefined,
  model: undefined,
  serviceTier: undefined,
  systemFingerprint: undefined,
  choices: [],
  usage: null,
  error: null,
};

/**
 * An id, a model or another name that every chunk repeats. One that is too long or has control characters counts as absent, because
 * it would multiply the size of the stream.
 */
export function readName(value: unknown): string | undefined {
  const name = readText(value);
  return name !== undefined && name.length <= MAX_NAME_CHARS && isPrintable(name) ? name : undefined;
}

/** JSON writes a control character or half of a surrogate pair as six bytes. */
function isPrintable(name: string): boolean {
  if (!name.isWellFormed()) return false;
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return false;
  }
  return true;
}

/** The tokens that a vendor event reports (V3). `add`: of a task of its own, to be summed; `total`: of everything so far. */
export interface VendorTokens {
  readonly kind: 'add' | 'total';
  readonly tokens: number;
}

/**
 * Counts what passes; the stream reports everything to it and asks it for the final usage.
 * It counts before any policy applies: stripped reasoning and stripped vendor events are metered all the same (C6, V3).
 */
export interface StreamMeter {
  /** An update of a choice that a client gets or, by policy, does not get. */
  delta(choice: ChoicePart): void;
  /** A text that passed as the bytes of a JSON string between `from` and `to`, not decoded. */
  rawText(bytes: Uint8Array, from: number, to: number): void;
  usage(report: UsageReport): void;
  /** The service tier that the upstream names: its price may be another. */
  serviceTier(name: string): void;
  /** A vendor event, with the tokens that it reports or null. */
  vendor(tokens: VendorTokens | null): void;
  /** The upstream's own word for the end of a choice. */
  finish(word: string, meaning: FinishMeaning): void;
  /** The upstream has made a whole answer, which has an id. */
  made(): void;
  /** The usage of the whole answer, asked for when it has ended. */
  countUsage(): CountedUsage;
}
