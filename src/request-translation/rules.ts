/** What a provider accepts in a request: the types of the table in each provider's file, and helpers to write its rows (Q9). */
import type { EffortField } from '../facts/efforts.ts';
import { fieldsWhere } from '../facts/fields.ts';
import type { JsonObject } from '../shared/json.ts';

/**
 * How one endpoint of a provider differs from OpenAI's Chat Completions. An empty table sends every request unchanged:
 *
 * ```ts
 * const CHAT: RequestRules = {
 *   fields: { seed: renamed('random_seed'), store: REFUSED },
 *   messages: { reasoning: [{ form: 'reasoning_content' }] },
 *   streamUsage: 'on_request',
 * };
 * ```
 */
export interface RequestRules {
  /**
   * The day on which the table was last compared with its sources: `npm run prices` names tables whose day is long ago.
   * Absent: unknown.
   */
  readonly checked?: string;
  /** Rows for top-level fields of the body, by OpenAI's names. */
  readonly fields: Readonly<Record<string, FieldRule>>;
  readonly adjustments?: readonly Adjustment[];
  readonly effort?: EffortRules;
  /** The provider's words for values of fields: `{ service_tier: { default: 'on_demand' } }`. */
  readonly words?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /**
   * Settings that say nothing are left out, because the provider refuses some of them: `stop: []` and `""`,
   * `logit_bias: {}`, `top_logprobs: 0`, `tools: []` with its `tool_choice` and `parallel_tool_calls`. OpenAI's
   * reasoning models refuse the names of the first three (`UNSUPPORTED` of its API), and OpenAI and DeepSeek an empty
   * list of tools: 400 "[] is too short - 'tools'" (JetBrains/koog#786, 2025-09-12; runebookai/tome#87, 2025-07-01;
   * earendil-works/pi#3649, 2026-04-24). Absent: they are sent.
   */
  readonly refusesEmpty?: true;
  /** `converted`: `functions`, `function_call` and messages of role `function` become tools. Absent: they are sent unchanged. */
  readonly legacyFunctions?: 'converted';
  /** `prompt` must be a string: a list of one string becomes that string, and a longer list is an error. */
  readonly needsTextPrompt?: boolean;
  readonly messages: MessageRules;
  /**
   * Other fields that the provider may read as the output limit or the number of choices, such as {@link COMPETING_LIMITS}. They
   * are dropped when Weir sets the output limit of a gateway key. `'options.num_predict'` names a nested field.
   */
  readonly competingLimits?: readonly string[];
  /**
   * Whether the provider reports usage in streams: `on_request` sends `stream_options.include_usage`, so that metering does not
   * depend on the client; `always` drops `stream_options`, because the provider reports usage without it.
   */
  readonly streamUsage: 'on_request' | 'always';
  /** The provider accepts OpenRouter's `usage: {"include": true}`. For others Weir drops the field and adds the cost itself. */
  readonly takesUsageInclude?: boolean;
}

/** Whether a rule applies to a request with this body. */
type RuleCondition = (body: JsonObject) => boolean;

/**
 * What happens to one top-level field. A field without a row is sent unchanged.
 *
 * | kind | use it when the provider … | example | effect |
 * | --- | --- | --- | --- |
 * | `renamed` | has another name for the field | `seed: renamed('random_seed')` | `{"seed": 7}` is sent as `{"random_seed": 7}` |
 * | `refused` | responds to the field with 4xx | `store: REFUSED` | see below |
 * | `ignored` | accepts the field without effect | `logit_bias: { kind: 'ignored' }` | see below |
 * | `implied` | needs no such field, because the endpoint implies it | `model: { kind: 'implied' }` | dropped, not reported |
 * | `dropped` | (an operator lists the field under `drop` in `PROVIDERS`) | `seed: { kind: 'dropped' }` | dropped and reported in `x-weir-dropped` |
 *
 * `refused` and `ignored` may have a condition: `n: { kind: 'refused', when: (body) => body.n !== 1 }`. Where it does not hold, the
 * field is sent. A refused or ignored field is handled by its meaning (`dropped-fields.ts`):
 * - OpenAI's default value is dropped, because it equals no value.
 * - A field about the request, such as `user`, and sampling are dropped and reported if refused, and sent if ignored.
 * - Any other field changes the output, so it is never lost silently. If refused, it is sent: the client gets the provider's own
 *   error. If ignored, Weir responds with 400 `unsupported_parameter`. With `x-weir-unsupported: drop` both are dropped and reported.
 */
export type FieldRule =
  | { readonly kind: 'renamed'; readonly to: string }
  | { readonly kind: 'refused' | 'ignored'; readonly when?: RuleCondition }
  | { readonly kind: 'implied' }
  | { readonly kind: 'dropped' };

export const REFUSED: FieldRule = { kind: 'refused' };

/** A rule: the field is sent under another name. */
export function renamed(to: string): FieldRule {
  return { kind: 'renamed', to };
}

/**
 * Fields that Weir sets, although the client did not, because the provider would refuse the request, or lose a part of it. DeepSeek
 * refuses a forced tool call while the model thinks:
 *
 * ```ts
 * {
 *   when: ({ tool_choice }) => isForcedTool(tool_choice),
 *   set: () => ({ thinking: { type: 'disabled' } }),
 *   reports: 'thinking',
 * }
 * ```
 */
export interface Adjustment {
  readonly when: RuleCondition;
  /** The fields that replace those of the body. */
  readonly set: (body: JsonObject) => JsonObject;
  /** The name in `x-weir-changed`; null: the request means the same as before. */
  readonly reports: string | null;
}

/**
 * How the amount of reasoning is sent to the provider.
 *
 * ```ts
 * effort: { takes: ['reasoning_effort'], families: [{ models: ['kimi-k3*'], efforts: ['low', 'high', 'max'] }] }
 * ```
 */
export interface EffortRules {
  /** As for {@link RequestRules}. */
  readonly checked?: string;
  /** The fields that the provider reads. The others are converted to `reasoning_effort`. */
  readonly takes: readonly EffortField[];
  /**
   * What each family of models knows; the first that matches applies. Absent: every effort is sent as it came. A model that no family
   * matches is unknown: an explicit `reasoning_effort` is sent to it, and an effort that a client of another protocol sends to every
   * model is dropped and reported.
   */
  readonly families?: readonly ReasoningFamily[];
  /** `thinking_disabled`: no reasoning is sent as `thinking: {"type": "disabled"}`. Absent: as `reasoning_effort: "none"`. */
  readonly none?: 'thinking_disabled';
  /** An operator's words for efforts, which replace the families. */
  readonly words?: Readonly<Record<string, string>>;
}

/** The reasoning of a family of models at one provider. The table of a provider ends with the models that are not released yet. */
export interface ReasoningFamily {
  /** Globs of the models, in lower case; absent: all others. */
  readonly models?: readonly string[];
  /**
   * The efforts that the models know, the lowest first: `none` if reasoning can be off. Another effort becomes the nearest one, and is
   * reported. With `none` alone, or without any, the models have no levels.
   */
  readonly efforts: readonly string[];
  /** The values of `thinking.type` that the models accept, where the provider reads `thinking`. Absent: all. */
  readonly thinking?: readonly string[];
  /** `never`: the models cannot reason; `on_request`: only where a request asks for it. Absent: unless a request turns it off. */
  readonly reasons?: 'never' | 'on_request';
  /** The provider's own choice for efforts that the models do not know. Absent: {@link nearestEffort}. */
  readonly nearest?: Readonly<Record<string, string>>;
  /** The models refuse a request for a summary of their reasoning. */
  readonly refusesSummary?: true;
}

/** What the provider accepts in `messages` and `tools`. */
export interface MessageRules {
  /** The provider's names for roles: `{ developer: 'system' }`. */
  readonly roles?: Readonly<Record<string, string>>;
  /** Where system messages may stand. The first rule that matches the model applies; absent: anywhere. */
  readonly system?: readonly SystemRule[];
  /** A last message of the assistant gets `prefix: true`. The provider refuses it otherwise, and continues it so. */
  readonly continuesPrefix?: boolean;
  /** How reasoning of earlier turns is sent back. The first rule that matches applies. */
  readonly reasoning: readonly ReasoningRule[];
  /** The provider accepts `reasoning_details`, respectively `tool_calls[].extra_content`. Absent: dropped. */
  readonly takesDetails?: boolean;
  readonly takesExtraContent?: boolean;
  /** These models refuse a tool call without its signature: Google's documented placeholder is added in this field. */
  readonly missingSignature?: {
    readonly models: readonly string[];
    /** Models among them that need none. */
    readonly except: readonly string[];
    readonly at: SignaturePlace;
  };
  /**
   * Globs of models that refuse a step of a tool loop without its signed reasoning while reasoning is on. Such a step is sent with
   * reasoning off.
   */
  readonly signedSteps?: readonly string[];
  /** Keys that an otherwise open schema refuses, in messages, content parts, tool calls and tools: `['cache_control']`. */
  readonly refused?: readonly string[];
  /** The provider refuses unknown keys: only these are sent. */
  readonly closed?: ClosedMessages;
  /** Roles whose content must be a string: a list of text parts is joined. */
  readonly joinsText?: readonly string[];
  /**
   * The types of parts, besides text, that a tool message may have. Others follow in a user message. Absent: not known, so the tool
   * messages of a chat client are sent as they came, and a client of another protocol is served as with `[]`.
   */
  readonly mediaInResults?: readonly string[];
  /** An assistant message without `content` gets `""`. `text`: so does one whose content is null beside calls. */
  readonly needsContent?: boolean | 'text';
  /** The tool names that the provider accepts. Another name is replaced by a short one, and restored in the response. Absent: all. */
  readonly toolNames?: RegExp;
  /** The tool-call ids that the provider accepts. Another id is replaced by a hash of itself. Absent: all. */
  readonly toolCallIds?: RegExp;
  /** Converts a content part to the provider's form; absent: parts are sent unchanged. */
  readonly part?: (part: JsonObject) => JsonObject;
  /** A tool without `parameters` gets an empty schema. */
  readonly needsParameters?: boolean;
}

/**
 * `leading`: system messages are accepted before all other messages. `first`: one system message is accepted, as the first message,
 * so several leading ones are joined. Later system messages become user messages.
 */
export interface SystemRule {
  /** Globs of the models for which the rule applies; absent: all. */
  readonly models?: readonly string[];
  readonly place: 'leading' | 'first';
}

/**
 * The form in which reasoning of earlier turns is sent back. `thinking_parts` are Mistral's typed content parts. `both` sends
 * `reasoning` and `reasoning_content`, for servers that ignore the one that they do not know. `none` drops the reasoning.
 */
export const REASONING_FORMS = ['reasoning_content', 'reasoning', 'both', 'thinking_parts', 'none'] as const;
export type ReasoningForm = (typeof REASONING_FORMS)[number];

interface ReasoningRule {
  /** Globs of the models for which the rule applies; absent: all. */
  readonly models?: readonly string[];
  readonly when?: RuleCondition;
  readonly form: ReasoningForm;
  /** The provider requires the field on every assistant message: messages without reasoning get this text. */
  readonly required?: { readonly text: string; readonly when: RuleCondition };
}

/** Where a signature is stored: on a tool call, or in the details of the message's reasoning. */
export type SignaturePlace = 'extra_content' | 'reasoning_details';

/** The keys of a closed message schema. Other keys are dropped; those that may matter to the client are reported. */
interface ClosedMessages {
  /** By role, as the provider names it. A role without a row keeps all of its keys. */
  readonly roles: Readonly<Record<string, readonly string[]>>;
  /** By the type of a content part. A type without a row keeps all of its keys. */
  readonly parts: Readonly<Record<string, readonly string[]>>;
  readonly toolCall: readonly string[];
  readonly tool: readonly string[];
  readonly function: readonly string[];
}

/** The keys of OpenAI's function tools and their calls, for closed schemas with the same ones. */
export const FUNCTION_TOOLS = {
  toolCall: ['id', 'type', 'function'],
  tool: ['type', 'function'],
  function: ['name', 'description', 'parameters', 'strict'],
} as const;

/** The tool names that OpenAI accepts, and APIs that copied its rule. */
export const OPENAI_TOOL_NAMES = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * Fields that a server without a closed schema may read as the output limit, or as the number of choices, besides OpenAI's. llama.cpp's
 * `n_predict` takes precedence over `max_tokens`, and `n_cmpl` over `n` (its server's source, read 2026-11-22). The others are fields of
 * the native APIs of Ollama, Hugging Face, SGLang, vLLM, Anthropic and Google, which a proxy in front of them may forward.
 */
export const COMPETING_LIMITS = fieldsWhere(({ competesWithLimit }) => competesWithLimit === true);

/** What a deployment (`UNSUPPORTED`) or a request (`x-weir-unsupported`) wants done with fields that a provider does not support (Q8). */
export const UNSUPPORTED = ['auto', 'drop', 'refuse'] as const;
export type Unsupported = (typeof UNSUPPORTED)[number];

/** Whether a provider that caches only marked prompts gets a mark when the client set none (`PROMPT_CACHE`, A9). */
export const PROMPT_CACHE = ['auto', 'off'] as const;
export type PromptCache = (typeof PROMPT_CACHE)[number];
