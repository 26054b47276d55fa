/** The client protocols in which the live view sends its prompt, and how it reads the frames of each. */

type Fields = Readonly<Record<string, unknown>>;

export interface Usage {
  readonly prompt_tokens?: number | undefined;
  readonly completion_tokens?: number | undefined;
  readonly total_tokens?: number | undefined;
  readonly prompt_tokens_details?: {
    readonly cached_tokens?: number | undefined;
    readonly cache_write_tokens?: number | undefined;
  };
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number | undefined };
  /** In US dollars. */
  readonly cost?: number;
}

/** A frame in the form of chat. */
interface Chunk {
  readonly choices?: readonly Choice[];
  /** What this frame knows of it. */
  readonly usage?: Usage | null;
  readonly error?: { readonly message?: string; readonly code?: string | null };
  /** The stream may end after it. */
  readonly isLast?: boolean;
}

export interface Choice {
  readonly index?: number;
  readonly finish_reason?: string | null;
  readonly delta?: {
    readonly content?: string | null;
    readonly reasoning_content?: string | null;
    readonly refusal?: string | null;
    readonly tool_calls?: readonly ToolCall[];
  };
}

interface ToolCall {
  readonly index?: number;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

export interface Protocol {
  readonly title: string;
  /** The address of a request, and its body. */
  readonly request: (
    model: string,
    prompt: string,
    fields: Fields,
  ) => { readonly path: string; readonly body: Fields };
  readonly read: (json: object) => Chunk;
  /** What a whole stream has at its end: a text without JSON, or the name of what {@link read} takes for it. */
  readonly last: string;
}

interface GeminiElement {
  readonly candidates?: readonly {
    readonly index?: number;
    readonly finishReason?: string;
    readonly content?: {
      readonly parts?: readonly {
        readonly text?: string;
        readonly thought?: boolean;
        readonly functionCall?: { readonly name?: string; readonly args?: unknown };
      }[];
    };
  }[];
  readonly usageMetadata?: Readonly<Record<string, number | undefined>>;
  readonly error?: { readonly message?: string; readonly status?: string };
}

function readElement({ candidates = [], usageMetadata: usage, error }: GeminiElement): Chunk {
  const choices = candidates.map(({ index = 0, finishReason = null, content }): Choice => {
    const parts = content?.parts ?? [];
    const text = (isThought: boolean) =>
      parts.map((part) => ((part.thought ?? false) === isThought ? (part.text ?? '') : '')).join('');
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? []);
    const tool_calls = calls.map(({ name = '', args }, at) => ({
      index: at,
      function: { name, arguments: JSON.stringify(args ?? {}) },
    }));
    return {
      index,
      finish_reason: finishReason,
      delta: { content: text(false), reasoning_content: text(true), tool_calls },
    };
  });
  return {
    choices,
    isLast: error !== undefined || choices.some(({ finish_reason }) => finish_reason),
    ...(usage && {
      usage: {
        prompt_tokens: usage.promptTokenCount,
        completion_tokens: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0),
        total_tokens: usage.totalTokenCount,
        prompt_tokens_details: { cached_tokens: usage.cachedContentTokenCount },
        completion_tokens_details: { reasoning_tokens: usage.thoughtsTokenCount },
      },
    }),
    ...(error && { error: { message: error.message ?? '', code: error.status ?? null } }),
  };
}

/** The usage of a message, whose fields are absent where an event does not repeat them. */
type MessageUsage = Readonly<
  Partial<
    Record<
      'input_tokens' | 'output_tokens' | 'cache_read_input_tokens' | 'cache_creation_input_tokens',
      number
    >
  >
>;

interface MessagesEvent {
  readonly type?: string;
  readonly index?: number;
  readonly message?: { readonly usage?: MessageUsage };
  readonly content_block?: { readonly type?: string; readonly name?: string };
  readonly delta?: {
    readonly text?: string;
    readonly thinking?: string;
    readonly partial_json?: string;
    readonly stop_reason?: string | null;
  };
  readonly usage?: MessageUsage;
  readonly error?: { readonly type?: string; readonly message?: string };
}

function readMessagesEvent(event: MessagesEvent): Chunk {
  const { type, index = 0, message, content_block: block, delta = {}, error } = event;
  const { text = null, thinking = null, partial_json, stop_reason = null } = delta;
  const call =
    block?.type === 'tool_use'
      ? { name: block.name ?? '', arguments: '' }
      : partial_json !== undefined && { arguments: partial_json };
  const tool_calls = call ? [{ index, function: call }] : [];
  const usage = event.usage ?? message?.usage;
  return {
    choices: [
      { finish_reason: stop_reason, delta: { content: text, reasoning_content: thinking, tool_calls } },
    ],
    isLast: type === 'message_stop' || type === 'error',
    ...(usage && { usage: usageOfMessage(usage) }),
    ...(error && { error: { message: error.message ?? '', code: error.type ?? null } }),
  };
}

function usageOfMessage(usage: MessageUsage): Usage {
  const { input_tokens, output_tokens, cache_read_input_tokens = 0, cache_creation_input_tokens = 0 } = usage;
  return {
    completion_tokens: output_tokens,
    ...(input_tokens !== undefined && {
      prompt_tokens: input_tokens + cache_read_input_tokens + cache_creation_input_tokens,
      prompt_tokens_details: {
        cached_tokens: cache_read_input_tokens,
        cache_write_tokens: cache_creation_input_tokens,
      },
    }),
  };
}

/** An `error` has its fields in the event itself, or below `error`. */
interface ResponsesEvent extends ResponsesError {
  readonly type?: string;
  readonly output_index?: number;
  readonly delta?: string;
  readonly item?: { readonly type?: string; readonly name?: string };
  readonly response?: {
    readonly status?: string;
    readonly incomplete_details?: { readonly reason?: string } | null;
    readonly error?: ResponsesError | null;
    readonly usage?: {
      readonly input_tokens?: number;
      readonly output_tokens?: number;
      readonly total_tokens?: number;
      readonly input_tokens_details?: { readonly cached_tokens?: number };
      readonly output_tokens_details?: { readonly reasoning_tokens?: number };
    } | null;
  };
  readonly error?: ResponsesError;
}

interface ResponsesError {
  readonly code?: string | null;
  readonly message?: string;
}

/** The fields of a delta by the type of its event. */
const RESPONSES_DELTAS: Readonly<Record<string, 'content' | 'reasoning_content' | 'refusal'>> = {
  'response.output_text.delta': 'content',
  'response.reasoning_text.delta': 'reasoning_content',
  'response.reasoning_summary_text.delta': 'reasoning_content',
  'response.refusal.delta': 'refusal',
};

function readResponsesEvent(event: ResponsesEvent): Chunk {
  const { type = '', output_index: index = 0, delta = '', item, response } = event;
  const field = RESPONSES_DELTAS[type];
  const call =
    type === 'response.output_item.added' && item?.type === 'function_call'
      ? { name: item.name ?? '', arguments: '' }
      : type === 'response.function_call_arguments.delta' && { arguments: delta };
  const isWhole = type === 'response.completed' || type === 'response.incomplete';
  const error = event.error ?? (type === 'error' ? event : response?.error);
  const usage = response?.usage;
  return {
    choices: [
      {
        finish_reason: isWhole ? (response?.incomplete_details?.reason ?? response?.status ?? null) : null,
        delta: {
          ...(field !== undefined && { [field]: delta }),
          ...(call && { tool_calls: [{ index, function: call }] }),
        },
      },
    ],
    isLast: isWhole || Boolean(error),
    ...(usage && {
      usage: {
        prompt_tokens: usage.input_tokens,
        completion_tokens: usage.output_tokens,
        total_tokens: usage.total_tokens,
        prompt_tokens_details: { cached_tokens: usage.input_tokens_details?.cached_tokens },
        completion_tokens_details: { reasoning_tokens: usage.output_tokens_details?.reasoning_tokens },
      },
    }),
    ...(error && { error: { message: error.message ?? '', code: error.code ?? null } }),
  };
}

/** The output that a message must have a limit for. */
const MAX_TOKENS = 4096;

export const PROTOCOLS = {
  chat: {
    title: 'Chat Completions (OpenAI)',
    request: (model, prompt, { model: _, ...fields }) => ({
      path: '/v1/chat/completions',
      body: {
        model,
        messages: [{ role: 'user', content: prompt }],
        stream: true,
        stream_options: { include_usage: true },
        usage: { include: true },
        ...fields,
      },
    }),
    read: (json) => json,
    last: '[DONE]',
  },
  messages: {
    title: 'Messages (Anthropic)',
    request: (model, prompt, { model: _, ...fields }) => ({
      path: '/v1/messages',
      body: {
        model,
        max_tokens: MAX_TOKENS,
        messages: [{ role: 'user', content: prompt }],
        stream: true,
        ...fields,
      },
    }),
    read: readMessagesEvent,
    last: 'message_stop',
  },
  responses: {
    title: 'Responses (OpenAI)',
    request: (model, prompt, { model: _, ...fields }) => ({
      path: '/v1/responses',
      body: { model, input: prompt, stream: true, store: false, ...fields },
    }),
    read: readResponsesEvent,
    last: 'response.completed',
  },
  gemini: {
    title: 'Gemini (Google)',
    request: (model, prompt, fields) => ({
      path: `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
      body: {
        contents: [{ role: 'user', parts: [{ text: prompt }] }],
        generationConfig: { thinkingConfig: { includeThoughts: true } },
        ...fields,
      },
    }),
    read: readElement,
    last: 'finishReason',
  },
} as const satisfies Readonly<Record<string, Protocol>>;

export type ProtocolName = keyof typeof PROTOCOLS;

export function isProtocol(name: string): name is ProtocolName {
  return name in PROTOCOLS;
}
