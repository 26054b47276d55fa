/** What a provider protocol reads from one upstream event: the common form between all wire formats and the canonical chunk. */

import { type JsonObject, readText } from '../shared/json.ts';
import { MAX_NAME_CHARS } from '../shared/limits.ts';
import type { DocumentCitation, Source } from './citations.ts';
import type { UpstreamError } from './error.ts';
import type { FinishMeaning } from './finish-reason.ts';
import type { Logprobs } from './logprobs.ts';
import type { CountedUsage, UsageReport } from './usage.ts';

/** A fragment of a tool call as the upstream sent it. Absent members are undefined, and the normalizer adds them. */
export interface ToolCallPart {
  readonly index: number | undefined;
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** A piece of JSON text, or of a custom tool's input. */
  readonly arguments: string;
  /** The call is of a custom tool, whose input is free text. */
  readonly isCustom?: true;
  /** The arguments end with this piece. Absent: more may follow. */
  readonly isWhole?: true;
  /** What the upstream wants back with the call, such as Gemini's signature. */
  readonly extraContent: JsonObject | undefined;
}

export const MAX_PLACEHOLDER_CHARS = 16;
const PLACEHOLDER = /^\s*(?:\{\s*\}|null)\s*$/;

/**
 * Some servers send this before a call's arguments (translators of Anthropic's `input: {}`). It is also how a call
 * without arguments looks.
 */
export function mayBePlaceholder(text: string): boolean {
  return text.length <= MAX_PLACEHOLDER_CHARS && PLACEHOLDER.test(text);
}

/** How much was sent of a text, in UTF-16 units. The fast path adds what it copies. */
export interface TextCount {
  units: number;
}

/** An update of one choice. An absent string is `""`. */
export interface ChoicePart {
  readonly index: number;
  /** The upstream sent a role. */
  readonly hasRole: boolean;
  /** The upstream sent content, even `""`, which the client gets together with a role (C4). */
  readonly hasContent: boolean;
  readonly content: string;
  readonly reasoning: string;
  readonly refusal: string;
  readonly toolCalls: readonly ToolCallPart[];
  /** Reasoning in the form that the upstream wants back, signed or encrypted. */
  readonly reasoningDetails: readonly JsonObject[];
  /** What the choice cites, in the form of chat. */
  readonly annotations?: readonly JsonObject[];
  /** Pages that the choice cites as a whole. */
  readonly sources?: readonly Source[];
  /** The content, or what follows where there is none, begins a text block. Only where {@link citations} are for blocks. */
  readonly beginsBlock?: true;
  /** What the text block cites of the request's documents: of the block that the part begins, if it does. */
  readonly citations?: readonly DocumentCitation[];
  /** There was an image, which no client gets. */
  readonly hasImage?: true;
  readonly logprobs: Logprobs | null;
  /** The upstream's own finish word, or null if there is none. */
  readonly finishWord: string | null;
  /** The word's meaning, if this provider uses it differently from others. */
  readonly finishMeaning?: FinishMeaning | undefined;
  /** The client's stop sequence that ended the output. */
  readonly stopSequence?: string;
  /** The count of the text that the update continues, if the reader compares it with a final form. It includes this update. */
  readonly sent?: TextCount;
  /** The choice's output so far, which the server repeats with its finish. It counts if nothing came before. */
  readonly whole?: ChoicePart;
  /** The finish word is announced: it is judged now, and takes effect with a later part. */
  readonly isAnnounced?: true;
  /** The upstream hints that the output reached its limit, whatever its finish word says. */
  readonly isLimited?: true;
}

/** An update with nothing new. */
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

/** Whether the update has text of content, reasoning, a refusal or a tool call. */
export function hasText(choice: ChoicePart): boolean {
  return beginsOutput(choice) || choice.toolCalls.some((call) => call.arguments !== '');
}

/** The same but for arguments, which wait for the name of their tool. */
export function beginsOutput({ content, reasoning, refusal, toolCalls }: ChoicePart): boolean {
  if (content !== '' || reasoning !== '' || refusal !== '') return true;
  return toolCalls.some((call) => (call.name ?? '') !== '');
}

/** The contents of one event, or of one non-streaming response. */
export interface ChunkPart {
  readonly id: string | undefined;
  /** Seconds. */
  readonly created: number | undefined;
  readonly model: string | undefined;
  readonly serviceTier: string | undefined;
  readonly systemFingerprint: string | undefined;
  readonly choices: readonly ChoicePart[];
  readonly usage: UsageReport | null;
  /** Pages that all choices cite. */
  readonly sources?: readonly Source[];
  /** Why the provider removed reasoning from the conversation that it was sent. */
  readonly removedReasoning?: readonly string[];
  /** Web searches that the provider has begun so far, if there is a new one. */
  readonly searches?: number;
  /** An error. It ends the stream after the choices of the same part are sent. */
  readonly error: UpstreamError | null;
  /** The protocol reader keeps state from the event that the part does not contain, so the fast path must not learn from it. */
  readonly isRemembered?: true;
  /** The upstream marked the event as its last. */
  readonly ends?: true;
  /** Events that the upstream left out. On the passthrough they precede this one. In its protocol, without numbers. */
  readonly omitted?: readonly JsonObject[];
  /** The event continues something that did not begin. On the passthrough it is left out: what it has comes with the whole. */
  readonly isOrphan?: true;
}

/** A part with nothing in it. */
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

/** The tokens that a vendor event reports. `add`: of one task, to be summed. `total`: of everything so far. */
export interface VendorTokens {
  readonly kind: 'add' | 'total';
  readonly tokens: number;
}

/**
 * Counts an output for the usage record and the usage chunk. It counts before any policy applies: stripped reasoning and stripped vendor
 * events are metered too (C6, V3).
 */
export interface StreamMeter {
  /** An update of a choice, which a policy may strip. */
  delta(choice: ChoicePart): void;
  /** A text that the fast path copied: the bytes of a JSON string between `from` and `to`, not decoded. */
  rawText(bytes: Uint8Array, from: number, to: number): void;
  usage(report: UsageReport): void;
  /** The service tier that the upstream reports, which may have another price. */
  serviceTier(name: string): void;
  /** Web searches that the provider has begun so far, before it reports how many it bills. */
  searches(begun: number): void;
  /** A vendor event, with the tokens that it reports, or null. */
  vendor(tokens: VendorTokens | null): void;
  /** The upstream's finish word for a choice. */
  finish(word: string, meaning: FinishMeaning): void;
  /** More output follows a finish that was counted, or another finish word replaces it. */
  resumed(): void;
  /** The provider removed reasoning from the conversation, for these reasons. May be called several times with the same ones. */
  removedReasoning(reasons: readonly string[]): void;
  /** The upstream generated a complete response, which has an id. A second attempt would be billed again. */
  generated(): void;
  /** The usage of the output. Called when it has ended. */
  countUsage(): CountedUsage;
}
