/** What the official SDKs' own helpers show of a response, streamed and not, with a gateway in memory instead of the network. */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { JsonObject } from '../../tools/simulator/json.ts';
import type { RoutedGateway } from './upstreams.ts';

type Protocol = 'chat' | 'messages' | 'responses';

/** What each protocol's client reads of a response, under one name. */
export interface View {
  readonly text: string;
  /** The protocol's own word for the end. */
  readonly finish: string | null;
  readonly prompt: number | undefined;
  readonly cached: number | undefined;
  readonly written: number | undefined;
  readonly created: number | undefined;
}

/** The response to one question, by the helper of the protocol's SDK: `.stream()` and its final object, or `.create()`. */
export function viewOf(
  gateway: RoutedGateway,
  protocol: Protocol,
  isStreamed: boolean,
  fields: JsonObject,
): Promise<View> {
  return { chat: viewChat, messages: viewMessage, responses: viewResponse }[protocol](
    gateway,
    isStreamed,
    fields,
  );
}

const MESSAGES = [{ role: 'user' as const, content: 'Hello' }];

/** The transport of an SDK. */
export function fetchOf({ gateway }: RoutedGateway): typeof fetch {
  return async (input, init) => {
    const { pathname } = new URL(String(input));
    return gateway.fetch(pathname, 'x', init as RequestInit);
  };
}

function openai(gateway: RoutedGateway): OpenAI {
  return new OpenAI({ apiKey: 'x', baseURL: 'http://weir/v1', maxRetries: 0, fetch: fetchOf(gateway) });
}

function anthropic(gateway: RoutedGateway): Anthropic {
  return new Anthropic({ apiKey: 'x', baseURL: 'http://weir', maxRetries: 0, fetch: fetchOf(gateway) });
}

async function viewChat(gateway: RoutedGateway, isStreamed: boolean, fields: JsonObject): Promise<View> {
  const { completions } = openai(gateway).chat;
  const body = { messages: MESSAGES, ...fields } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming;
  const completion = isStreamed
    ? await completions
        .stream({ ...body, stream: true, stream_options: { include_usage: true } })
        .finalChatCompletion()
    : await completions.create(body);
  const [choice] = completion.choices;
  const details: (OpenAI.CompletionUsage.PromptTokensDetails & { cache_write_tokens?: number }) | undefined =
    completion.usage?.prompt_tokens_details;
  return {
    text: choice?.message.content ?? '',
    finish: choice?.finish_reason ?? null,
    prompt: completion.usage?.prompt_tokens,
    cached: details?.cached_tokens,
    written: details?.cache_write_tokens,
    created: completion.created,
  };
}

async function viewMessage(gateway: RoutedGateway, isStreamed: boolean, fields: JsonObject): Promise<View> {
  const { messages } = anthropic(gateway);
  const body = {
    messages: MESSAGES,
    max_tokens: 99,
    ...fields,
  } as unknown as Anthropic.MessageCreateParamsNonStreaming;
  const message = isStreamed ? await messages.stream(body).finalMessage() : await messages.create(body);
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens } = message.usage;
  return {
    text: message.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    finish: message.stop_reason,
    // All of the prompt: the protocol's own count excludes the cache.
    prompt: input_tokens + (cache_read_input_tokens ?? 0) + (cache_creation_input_tokens ?? 0),
    cached: cache_read_input_tokens ?? undefined,
    written: cache_creation_input_tokens ?? undefined,
    created: undefined,
  };
}

async function viewResponse(gateway: RoutedGateway, isStreamed: boolean, fields: JsonObject): Promise<View> {
  const { responses } = openai(gateway);
  const body = { input: 'Hello', ...fields } as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming;
  const response = isStreamed
    ? await responses.stream({ ...body, stream: true }).finalResponse()
    : await responses.create(body);
  const details:
    | (OpenAI.Responses.ResponseUsage.InputTokensDetails & { cache_write_tokens?: number })
    | undefined = response.usage?.input_tokens_details;
  return {
    text: response.output_text,
    finish: response.incomplete_details?.reason ?? response.status ?? null,
    prompt: response.usage?.input_tokens,
    cached: details?.cached_tokens,
    written: details?.cache_write_tokens,
    created: response.created_at,
  };
}
