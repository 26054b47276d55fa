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
  readonly usage?: Usage | null;
  readonly error?: { readonly message?: string; readonly code?: string | null };
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
  /** Its last frame. Null: the finish reason is in it. */
  readonly done: string | null;
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

export const PROTOCOLS = {
  chat: {
    title: 'Chat Completions',
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
    done: '[DONE]',
  },
  gemini: {
    title: 'Gemini',
    request: (model, prompt, fields) => ({
      path: `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
      body: {
        contents: [{ role: 'user', parts: [{ text: prompt }] }],
        generationConfig: { thinkingConfig: { includeThoughts: true } },
        ...fields,
      },
    }),
    read: readElement,
    done: null,
  },
} as const satisfies Readonly<Record<string, Protocol>>;

export type ProtocolName = keyof typeof PROTOCOLS;
