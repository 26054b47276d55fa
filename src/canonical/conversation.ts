/**
 * A conversation in no provider's form: the parsers of requests make it, and the writers of native providers read it. Turns and blocks
 * begin and end where the client's messages and parts do. Fields without a place of their own are kept unchanged in `extra`.
 */
import type { JsonObject } from '../shared/json.ts';
import type { Media } from './media.ts';

/** The two APIs by which a chat request can reach a model. */
export type ChatApi = 'chat' | 'responses';

/** A request as the parser of a client protocol hands it on. */
export interface CanonicalRequest {
  /** Under the names of Chat Completions. Those of a chat client are its whole body. */
  readonly fields: JsonObject;
  /** Null: a chat client's, whose messages are in the fields as they came. Otherwise these are empty: they keep the field's place. */
  readonly turns: readonly Turn[] | null;
  /** A Messages client's `thinking` where it is on, as it came: for Messages. Others read the effort in the fields. Absent: none. */
  readonly thinking?: JsonObject | undefined;
}

/** A request as the writer of a native provider reads it. */
export interface NativeRequest {
  readonly settings: RequestSettings;
  /** All fields that the writer does not write from the settings, in their order. */
  readonly extra: JsonObject;
  readonly turns: readonly Turn[];
  /** Absent: the client sent no list. */
  readonly tools?: readonly Tool[] | undefined;
  /** Absent: the provider's default, which is `auto` where there are tools. */
  readonly toolChoice?: ToolChoice | undefined;
  /** That of {@link CanonicalRequest}. */
  readonly thinking?: JsonObject | undefined;
  /** By the name of a tool: the keys of its arguments that the provider knows, by the client's. */
  readonly toolKeys: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

/** What a request sets beside its conversation and tools. Absent: the client sent nothing that can be read. */
export interface RequestSettings {
  /** In tokens. Another value is the provider's to refuse. */
  readonly outputLimit?: number | { readonly raw: unknown } | undefined;
  /** Without empty texts, which stop nothing. Empty: none. */
  readonly stop: readonly unknown[];
  readonly format?: ResponseFormat | undefined;
  readonly effort?: Effort | undefined;
  /** The client wants no reasoning in the response (OpenRouter's `reasoning.exclude`). */
  readonly excludesReasoning: boolean;
  /** Anthropic's `thinking` and `output_config`. */
  readonly thinking?: JsonObject | undefined;
  readonly outputConfig: JsonObject;
  /** OpenAI's `web_search_options`. */
  readonly search?: JsonObject | undefined;
  /** The id of the client's user. */
  readonly user?: string | undefined;
  readonly metadata: JsonObject;
  /** All fields, under the names of Chat Completions, without nulls: a writer takes those from here that have the same value there. */
  readonly plain: JsonObject;
}

/** The form of the output, other than text. */
export interface ResponseFormat {
  readonly kind: 'json_schema' | 'json_object' | 'unknown';
  /** Of `json_schema`. */
  readonly schema?: JsonObject | undefined;
  readonly raw: JsonObject;
}

/** How much the model is to reason. */
export interface Effort {
  /** The client's word, or what its budget stands for. */
  readonly level: string;
  /** In `reasoning_effort`. Absent: the client chose in another way. */
  readonly word?: string | undefined;
  /** In tokens. */
  readonly budget?: number | undefined;
}

/** A tool. Definitions are the client's own, with their keys in their order, because prompt caches compare bytes; providers check them. */
export type Tool =
  | { readonly kind: 'function'; readonly definition: JsonObject; readonly extra: JsonObject }
  | { readonly kind: 'custom'; readonly definition: JsonObject; readonly raw: JsonObject }
  /** One that the provider runs, or of a shape that is not known. */
  | { readonly kind: 'unknown'; readonly raw: unknown };

interface NamedTool {
  readonly type: 'function' | 'custom';
  readonly name: string;
}

/** Which tools the model may or must call. */
export type ToolChoice =
  | { readonly kind: 'auto' | 'none' | 'required' }
  | (NamedTool & { readonly kind: 'tool' })
  | {
      readonly kind: 'allowed';
      readonly mode: 'auto' | 'required';
      readonly tools: readonly NamedTool[];
    }
  | { readonly kind: 'unknown'; readonly raw: unknown };

export interface Turn {
  readonly role: 'system' | 'developer' | 'user' | 'assistant';
  /** Reasoning first, then content, then calls. */
  readonly blocks: readonly Block[];
  /** The text with which the model refused, beside its content. */
  readonly refusal?: string | undefined;
  /** The other fields of the client's message. Its role is here if it is none of the above: the turn then counts as the user's. */
  readonly extra: JsonObject;
}

export type Block = TextBlock | MediaBlock | ReasoningBlock | ToolCallBlock | ToolResultBlock | UnknownBlock;

interface BlockBase {
  /** The other fields of the client's block, such as cache marks; absent: none. */
  readonly extra?: JsonObject;
}

/** A document whose parts the client wants cited in the answer. */
export interface CitedDocument {
  readonly name?: string | undefined;
  /** What the client says about the document. It is not cited. */
  readonly context?: string | undefined;
  /** The text of the document. Absent: the block is a file. */
  readonly text?: string;
  /** The same text in the parts in which the client sent it, and in which its citations count. Absent: in one. */
  readonly chunks?: readonly string[];
  /** Its place among the client's documents. Absent: no citation of it can reach the client. */
  readonly index?: number | undefined;
}

export interface TextBlock extends BlockBase {
  readonly kind: 'text';
  /** For a document that is to be cited: its name, its context and its text. */
  readonly text: string;
  readonly cited?: CitedDocument;
  /** The model refused with this text; absent: false. */
  readonly isRefusal?: boolean;
}

interface MediaBlock extends BlockBase {
  readonly kind: 'media';
  readonly media: Media;
  readonly cited?: CitedDocument;
}

export interface ReasoningBlock extends BlockBase {
  readonly kind: 'reasoning';
  /** Empty where the provider hid it. */
  readonly text: string;
  readonly signature?: Signature | undefined;
  /** The entry of `reasoning_details` that this was, with the pieces of a stream joined; absent: it came in another field. */
  readonly detail?: JsonObject;
}

/** With what a provider recognizes its own reasoning. Only that provider can read it. */
interface Signature {
  /** The signature of the text, or the encrypted reasoning itself. */
  readonly value: string;
  readonly isEncrypted: boolean;
  /** OpenRouter's name of the form; null: not known. */
  readonly format: string | null;
  /** The id of the provider that made it; null: Weir did not tag it. */
  readonly provider: string | null;
  /** What Weir noted in its tag, or the id that another gateway gave it. Empty: none. */
  readonly id: string;
}

export interface ToolCallBlock extends BlockBase {
  readonly kind: 'tool_call';
  /** Empty: the client sent none. */
  readonly id: string;
  readonly name: string;
  /** As the model wrote it: JSON, or the free text of a custom tool. */
  readonly input: string;
  /** A call of a custom tool; absent: of a function. */
  readonly isCustom?: boolean;
  readonly signature?: Pick<Signature, 'value' | 'provider'> | undefined;
}

export interface ToolResultBlock extends BlockBase {
  readonly kind: 'tool_result';
  /** The id of its call. */
  readonly id: string;
  /** A client sends a text, or blocks: providers get the same. */
  readonly content: string | readonly Block[];
  /** The client marks it as failed. Its text says so, too; absent: it does not. */
  readonly isError?: true;
}

/** A part of a type or a shape that is not known. */
interface UnknownBlock {
  readonly kind: 'unknown';
  readonly raw: JsonObject;
}

/** Whether the client wants a document cited. The document may be in a tool result. */
export function citesDocuments(turns: readonly Turn[]): boolean {
  return turns.some(({ blocks }) => blocks.some(isCited));
}

function isCited(block: Block): boolean {
  if (block.kind === 'tool_result') return typeof block.content !== 'string' && block.content.some(isCited);
  return (block.kind === 'text' || block.kind === 'media') && block.cited !== undefined;
}

/** The system turns at the start, for which native APIs have a field, and the turns behind them. */
export function splitLeadingSystem(turns: readonly Turn[]): readonly [readonly Turn[], readonly Turn[]] {
  const first = turns.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const end = first < 0 ? turns.length : first;
  return [turns.slice(0, end), turns.slice(end)];
}
