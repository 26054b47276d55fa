/** What a provider takes in a request: the form of the table in each provider's file, which the engine of this folder reads (Q9). */
import { isObject, type JsonObject } from '../shared/json.ts';

/** Whether a rule holds for a request's body. */
type Condition = (body: JsonObject) => boolean;

/**
 * What becomes of a top-level field; one without a rule is sent as it is (Q7).
 * - `renamed`: the provider has another name for it (Q1).
 * - `refused`: the provider answers 4xx to it, or to it under the condition.
 * - `ignored`: the provider takes it, and it changes nothing.
 * - `dropped`: the provider does without being asked what the field asks for.
 * - `left_out`: the deployment says so (`drop` in an entry of `PROVIDERS`), whatever the field is about; the caller is informed (Q5).
 */
export type FieldRule =
  | { readonly kind: 'renamed'; readonly to: string }
  | { readonly kind: 'refused' | 'ignored'; readonly when?: Condition }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'left_out' };

export const REFUSED: FieldRule = { kind: 'refused' };

export function renamed(to: string): FieldRule {
  return { kind: 'renamed', to };
}

/** A value that the caller did not choose, and without which the provider would refuse what the caller did choose. */
interface Adjustment {
  readonly field: string;
  readonly value: unknown;
  readonly when: Condition;
}

/** The three ways in which clients ask for more, less or no thinking. */
export type EffortField = (typeof EFFORT_FIELDS)[number];
export const EFFORT_FIELDS = ['reasoning_effort', 'thinking', 'reasoning'] as const;

/** A provider's nearest word for each of OpenAI's; a word without a row is sent as it is. */
interface EffortValues {
  /** Globs of the models that have these; absent: all. */
  readonly models?: readonly string[];
  readonly values: Readonly<Record<string, string>>;
}

export interface EffortRules {
  /** The fields that are taken as they are; what the others ask for becomes `reasoning_effort`. */
  readonly takes: readonly EffortField[];
  /** The first that names the model. */
  readonly values?: readonly EffortValues[];
  /** Where given, no thinking is `thinking: {"type":"disabled"}` and not the word `none`. */
  readonly none?: 'thinking_disabled';
  /** Globs of the models that take an effort at all: for any other, no thinking, and a wish in another API's words, are left out. Absent: all. */
  readonly models?: readonly string[];
}

/**
 * How the reasoning of earlier answers is sent back (Q2). `thinking_parts` are Mistral's typed content; `both` is
 * `reasoning` and `reasoning_content`, for servers that ignore the one that they don't know.
 */
export type ReasoningForm = (typeof REASONING_FORMS)[number];
export const REASONING_FORMS = ['reasoning_content', 'reasoning', 'both', 'thinking_parts', 'none'] as const;

interface ReasoningRule {
  /** Globs of the models for which the rule holds; absent: all. */
  readonly models?: readonly string[];
  readonly when?: Condition;
  readonly form: ReasoningForm;
  /** The provider demands the field on every assistant message: those without one get this text. */
  readonly required?: { readonly text: string; readonly when: Condition };
}

/**
 * Where system messages may stand: as many as there are before all others (`leading`), or one alone, the first (`first`). Any other
 * becomes the user's.
 */
export interface SystemRule {
  /** Globs of the models for which the rule holds; absent: all. */
  readonly models?: readonly string[];
  readonly place: 'leading' | 'first';
}

/** The keys of a closed message schema: everything else is left out (Q4). */
interface ClosedMessages {
  /** By role, as the provider names it; a role without a row keeps all of its keys. */
  readonly roles: Readonly<Record<string, readonly string[]>>;
  /** Of a content part, by its type; a type without a row keeps all of its keys. */
  readonly parts: Readonly<Record<string, readonly string[]>>;
  readonly toolCall: readonly string[];
  readonly tool: readonly string[];
  readonly function: readonly string[];
}

export interface MessageRules {
  /** The provider's names of roles that it does not know. */
  readonly roles?: Readonly<Record<string, string>>;
  /** The first that names the model; absent: they may stand anywhere. */
  readonly system?: readonly SystemRule[];
  /** A conversation that ends in an assistant's message is taken with `prefix: true` alone, and the model goes on with that message. */
  readonly continuesPrefix?: boolean;
  /** The first rule that holds. */
  readonly reasoning: readonly ReasoningRule[];
  /** `reasoning_details` and `tool_calls[].extra_content` go back only where the provider has them itself. */
  readonly takesDetails?: boolean;
  readonly takesExtraContent?: boolean;
  /** Gemini 3 refuses a call without its signature: the documented stand-in, and where it stands. */
  readonly missingSignature?: {
    readonly models: readonly string[];
    readonly at: 'extra_content' | 'reasoning_details';
  };
  /**
   * Globs of models that think where they are asked to, and then refuse a step of a tool loop without its signed reasoning: such a step
   * is answered without.
   */
  readonly signedSteps?: readonly string[];
  /** Keys that an otherwise open schema refuses, on messages, their content parts, tool calls and tools. */
  readonly refused?: readonly string[];
  readonly closed?: ClosedMessages;
  /** Roles whose content must be one text: a list of text parts is joined. */
  readonly joinsText?: readonly string[];
  /** An assistant message without `content` is refused: it gets `""`. */
  readonly needsContent?: boolean;
  /** The form of tools' names; any other gets a short one, which is given back in the answer. Absent: any is taken. */
  readonly toolNames?: RegExp;
  /** The form of tool-call ids; any other becomes a hash of itself (Q3). */
  readonly toolCallIds?: RegExp;
  /** A content part as the provider has it; absent: as it is. */
  readonly part?: (part: JsonObject) => JsonObject;
  /** A tool without `parameters` is refused: it gets an empty schema. */
  readonly needsParameters?: boolean;
}

/** All that one endpoint of a provider takes otherwise than OpenAI's chat completions do. */
export interface RequestRules {
  readonly fields: Readonly<Record<string, FieldRule>>;
  readonly adjustments?: readonly Adjustment[];
  readonly effort?: EffortRules;
  /** `converted`: `functions`, `function_call` and their messages, the forms before tools, become tools. */
  readonly legacyFunctions?: 'converted';
  /** `prompt` must be one text. */
  readonly needsTextPrompt?: boolean;
  readonly messages: MessageRules;
  /**
   * Fields, with dots between nested names, that the provider may read as the limit of an answer or as the number of answers in the
   * place of OpenAI's: under a key's limits they are left out (G2).
   */
  readonly rivalLimits?: readonly string[];
  /** Usage in streams is `asked` for with `stream_options`, or comes `unasked` and the field is left out (U4). */
  readonly streamUsage: 'asked' | 'unasked';
  /** `usage: {"include": true}` is the provider's own word, too: for any other it is left out, as Weir answers it (P5). */
  readonly takesUsageInclude?: boolean;
}

/** What a deployment or a request wants done with fields that a provider does not take (Q8). */
export type Unsupported = 'auto' | 'drop' | 'refuse';
export const UNSUPPORTED: readonly [Unsupported, ...Unsupported[]] = ['auto', 'drop', 'refuse'];

/** What a deployment wants done for callers who set no marks for a prompt cache (A9). */
export type PromptCache = 'auto' | 'off';
export const PROMPT_CACHE: readonly [PromptCache, ...PromptCache[]] = ['auto', 'off'];

/** Names of OpenAI's tools, and of those of APIs that took them over. */
export const OPENAI_TOOL_NAMES = /^[a-zA-Z0-9_-]{1,64}$/;

/** The keys of OpenAI's function tools and of their calls, for closed schemas that have the same. */
export const FUNCTION_TOOLS = {
  toolCall: ['id', 'type', 'function'],
  tool: ['type', 'function'],
  function: ['name', 'description', 'parameters', 'strict'],
} as const;

export function hasItems(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

/** The caller demands a tool call, of any tool or of a named one. */
export function isForcedTool(toolChoice: unknown): boolean {
  return toolChoice === 'required' || toolChoice === 'any' || isObject(toolChoice);
}

/**
 * Names that a server without a closed schema may read as a limit, or as a number of answers, beside OpenAI's. llama.cpp's
 * `n_predict` wins over `max_tokens`, and `n_cmpl` over `n` (its server's source, read 2026-11-22); the others are the words of the
 * own APIs of Ollama, Hugging Face, SGLang, vLLM, Anthropic and Google, which a proxy before them may hand on.
 */
export const RIVAL_LIMITS: readonly string[] = [
  ...['max_output_tokens', 'maxOutputTokens', 'n_predict', 'num_predict', 'options', 'n_cmpl'],
  ...['max_new_tokens', 'max_gen_len', 'max_length', 'max_tokens_to_sample', 'num_return_sequences'],
  ...['generation_config', 'generationConfig', 'candidate_count', 'candidateCount'],
  ...['parameters', 'sampling_params', 'extra_body', 'use_beam_search', 'min_tokens'],
];
