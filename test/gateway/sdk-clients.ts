/** What the official SDKs make of an upstream's answer, through the whole gateway: in each client protocol, streamed and not. */
import Anthropic from '@anthropic-ai/sdk';
import { type GenerateContentResponse, GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { type Behavior, RoutedGateway } from './upstreams.ts';

/** One entry for each provider protocol. The model is `m`. */
const ENV = {
  ANTHROPIC_API_KEY: 'key-of-anthropic',
  ANTHROPIC_BASE_URL: 'https://anthropic',
  GEMINI_API_KEY: 'key-of-gemini',
  UP_KEY: 'key-of-up',
  GEMINI_BASE_URL: 'https://gemini',
  PROVIDERS: JSON.stringify({
    tolerant: { base_url: 'https://tolerant', api_key: 'UP_KEY' },
    items: { base_url: 'https://items', api_key: 'UP_KEY', responses: true, api: 'responses' },
  }),
};

/** The provider protocols, by the model that is requested. */
export const UPSTREAMS = {
  chat: 'tolerant/m',
  messages: 'anthropic/m',
  gemini: 'gemini/m',
  responses: 'items/m',
} as const;

export type UpstreamName = keyof typeof UPSTREAMS;

/** A complete response as a client's SDK sees it. */
interface Seen {
  readonly text: string;
  readonly reasoning: string;
  readonly refusal: string;
  /** Names, and arguments as JSON text. */
  readonly calls: readonly (readonly [name: string, json: string])[];
  /** In the client protocol's words. */
  readonly finish: string;
}

/** The response, or the error that the SDK throws. */
export type Outcome = Seen | { readonly error: string };

type Fetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>;
type Read = (fetch: Fetch, model: string) => Promise<Seen>;

const MESSAGES = [{ role: 'user' as const, content: 'Hello' }];

function openai(fetch: Fetch): OpenAI {
  return new OpenAI({ apiKey: 'x', baseURL: 'https://weir.example/v1', maxRetries: 0, fetch });
}

function anthropic(fetch: Fetch): Anthropic {
  return new Anthropic({ apiKey: 'x', baseURL: 'https://weir.example', maxRetries: 0, fetch });
}

function ofChat({ choices: [choice] }: OpenAI.ChatCompletion): Seen {
  const message = choice?.message as OpenAI.ChatCompletionMessage & { reasoning_content?: string };
  return {
    text: message.content ?? '',
    reasoning: message.reasoning_content ?? '',
    refusal: message.refusal ?? '',
    calls: (message.tool_calls ?? []).flatMap((call) =>
      call.type === 'function'
        ? [[call.function.name, call.function.arguments] as const]
        : [[call.custom.name, call.custom.input] as const],
    ),
    finish: choice?.finish_reason ?? '',
  };
}

function ofMessage({ content, stop_reason }: Anthropic.Message): Seen {
  const of = (read: (block: Anthropic.ContentBlock) => string) => content.map(read).join('');
  return {
    text: of((block) => (block.type === 'text' ? block.text : '')),
    reasoning: of((block) => (block.type === 'thinking' ? block.thinking : '')),
    refusal: '',
    calls: content.flatMap((block) =>
      block.type === 'tool_use' ? [[block.name, JSON.stringify(block.input)] as const] : [],
    ),
    finish: stop_reason ?? '',
  };
}

function ofResponse({ output, status, incomplete_details }: OpenAI.Responses.Response): Seen {
  const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []));
  const thoughts = output.flatMap((item) =>
    item.type === 'reasoning' ? [...item.summary, ...(item.content ?? [])] : [],
  );
  return {
    text: parts.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
    reasoning: thoughts.map(({ text }) => text).join(''),
    refusal: parts.map((part) => (part.type === 'refusal' ? part.refusal : '')).join(''),
    calls: output.flatMap((item) =>
      item.type === 'function_call' && item.status !== 'incomplete'
        ? [[item.name, item.arguments] as const]
        : [],
    ),
    finish: incomplete_details?.reason ?? status ?? '',
  };
}

function google(fetch: Fetch): GoogleGenAI {
  const httpOptions = { baseUrl: 'https://weir.example', fetch };
  return new GoogleGenAI({ apiKey: 'x', httpOptions });
}

function ofGemini(responses: readonly GenerateContentResponse[]): Seen {
  const candidates = responses.flatMap((response) => response.candidates ?? []);
  const parts = candidates.flatMap(({ content }) => content?.parts ?? []);
  const texts = (isThought: boolean) =>
    parts.map(({ text = '', thought = false }) => (thought === isThought ? text : '')).join('');
  return {
    text: texts(false),
    reasoning: texts(true),
    refusal: '',
    calls: parts.flatMap(({ functionCall }) =>
      functionCall === undefined
        ? []
        : [[functionCall.name ?? '', JSON.stringify(functionCall.args)] as const],
    ),
    finish: candidates.flatMap(({ finishReason }) => finishReason ?? []).join(),
  };
}

const THOUGHTS = { thinkingConfig: { includeThoughts: true } };

/** The eight ways to read an answer. */
export const CLIENTS: Readonly<Record<string, Read>> = {
  'chat, streamed': async (fetch, model) => {
    const stream = openai(fetch).chat.completions.stream({ model, messages: MESSAGES });
    let reasoning = '';
    // The helper keeps the last piece of a field that it does not know.
    stream.on('chunk', ({ choices: [choice] }) => {
      reasoning += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? '';
    });
    return { ...ofChat(await stream.finalChatCompletion()), reasoning };
  },
  chat: async (fetch, model) =>
    ofChat(await openai(fetch).chat.completions.create({ model, messages: MESSAGES })),
  'Messages, streamed': async (fetch, model) =>
    ofMessage(
      await anthropic(fetch).messages.stream({ model, max_tokens: 99, messages: MESSAGES }).finalMessage(),
    ),
  Messages: async (fetch, model) =>
    ofMessage(await anthropic(fetch).messages.create({ model, max_tokens: 99, messages: MESSAGES })),
  'Responses, streamed': async (fetch, model) =>
    ofResponse(await openai(fetch).responses.stream({ model, input: 'Hello' }).finalResponse()),
  Responses: async (fetch, model) => {
    const response = await openai(fetch).responses.create({ model, input: 'Hello' });
    if (response.status === 'failed') throw new Error(response.error?.message);
    return ofResponse(response);
  },
  'Gemini, streamed': async (fetch, model) => {
    const responses: GenerateContentResponse[] = [];
    const request = { model, contents: 'Hello', config: THOUGHTS };
    for await (const response of await google(fetch).models.generateContentStream(request)) {
      responses.push(response);
    }
    return ofGemini(responses);
  },
  Gemini: async (fetch, model) => {
    const request = { model, contents: 'Hello', config: THOUGHTS };
    return ofGemini([await google(fetch).models.generateContent(request)]);
  },
};

/**
 * A `fetch` whose server is the gateway.
 * @param behavior what the upstream answers, streamed or not as it likes
 * @param own settings, and the upstream's name of the model
 */
export function gatewayFetch(
  behavior: Behavior,
  own: { env?: JsonObject; model?: string; onSent?: (body: JsonObject) => void } = {},
): Fetch {
  const { env = ENV, model = 'm', onSent } = own;
  // Gemini has the model in its path.
  const gateway = new RoutedGateway({ [model]: [behavior], '': [behavior] }, env);
  gateway.onRequest = () => onSent?.(gateway.requests.at(-1)?.body ?? {});
  return (url, init) => {
    const { pathname, search } = new URL(url instanceof Request ? url.url : url);
    return gateway.gateway.fetch(pathname + search, '', { ...init, signal: null });
  };
}

/** A named event of a provider. */
export function frame(type: string, members: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
}

/**
 * @param behavior what the upstream answers, streamed or not as it likes
 * @returns what the client's SDK makes of it
 */
export async function see(client: string, upstream: UpstreamName, behavior: Behavior): Promise<Outcome> {
  const read = CLIENTS[client];
  if (read === undefined) throw new Error(`There is no client ${client}`);
  try {
    return await read(gatewayFetch(behavior), UPSTREAMS[upstream]);
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
