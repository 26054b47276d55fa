/** Writes a client's request for a provider, and asks the simulator whether that provider would refuse it. */
import type { CanonicalRequest } from '../../src/canonical/conversation.ts';
import type { ApiError } from '../../src/canonical/error.ts';
import { messages } from '../../src/protocols/anthropic-messages/client.ts';
import { readResponsesRequest } from '../../src/protocols/openai-responses/client-request.ts';
import type { ToolNames } from '../../src/request-translation/tools.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { decodeObject } from '../../tools/simulator/json.ts';
import { findScene } from '../../tools/simulator/scenes.ts';
import { providerNamed } from './send.ts';
import { writeRequest } from './write-request.ts';

export const CLIENTS = ['chat', 'messages', 'responses'] as const;
export type Client = (typeof CLIENTS)[number];

interface StrictTarget {
  /** As `providerNamed` has it. */
  readonly provider: string;
  readonly model: string;
  /** The provider's path on the simulator. */
  readonly path: string;
  /** The request goes through the provider's Responses API. Absent: false. */
  readonly isResponses?: boolean;
}

/** The simulated providers that refuse what they do not know. */
const STRICT = {
  'OpenAI chat': { provider: 'openai', model: 'gpt-4o-mini', path: '/openai/v1/chat/completions' },
  'OpenAI Responses': {
    provider: 'openai',
    model: 'gpt-6.1-terra',
    path: '/openai/v1/responses',
    isResponses: true,
  },
  Anthropic: { provider: 'anthropic', model: 'claude-sonnet-5', path: '/anthropic/v1/messages' },
  Gemini: {
    provider: 'gemini',
    model: 'gemini-3.8-flash',
    path: '/gemini/v1beta/models/gemini-3.8-flash:generateContent',
  },
  Mistral: { provider: 'mistral', model: 'mistral-small-latest', path: '/mistral/v1/chat/completions' },
  Groq: { provider: 'like groq', model: 'openai/gpt-oss-120b', path: '/groq/v1/chat/completions' },
  xAI: { provider: 'like xai', model: 'grok-4.3', path: '/xai/v1/chat/completions' },
  DeepSeek: { provider: 'deepseek', model: 'deepseek-flash', path: '/deepseek/chat/completions' },
  Cerebras: { provider: 'like cerebras', model: 'gpt-oss-120b', path: '/cerebras/v1/chat/completions' },
} as const satisfies Readonly<Record<string, StrictTarget>>;
export type StrictName = keyof typeof STRICT;
export const STRICT_NAMES = Object.keys(STRICT) as readonly StrictName[];

export interface Sent {
  readonly body: JsonObject;
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
  readonly toolNames: ToolNames;
  /** What the provider says against it; null: it takes it. */
  readonly refusal: string | null;
}

/** @returns the request as the provider gets it, or Weir's own error */
export function sendTo(name: StrictName, client: Client, given: JsonObject): Sent | ApiError {
  const target: StrictTarget = STRICT[name];
  const { model, path } = target;
  const provider = providerNamed(target.provider);
  const endpoint = target.isResponses ? provider.responses?.endpoint : provider.endpoints.chat;
  if (endpoint === undefined) throw new Error(`${name} has no such endpoint`);
  const read = readClient(client, { ...given, model });
  if ('code' in read) return read;
  const written = writeRequest(endpoint.request, read.request, {
    model,
    provider: provider.name,
    providerId: provider.id,
    unsupported: 'auto',
    promptCache: 'off',
    isFromOtherProtocol: client !== 'chat',
  });
  if (written.kind === 'error') return written.error;
  const { body, dropped, changed, toolNames = new Map() } = written.value;
  return {
    body,
    dropped: [...new Set([...read.dropped, ...dropped])],
    changed,
    toolNames,
    refusal: refusalOf(path, model, body),
  };
}

/** As {@link sendTo}, of a request that is sent. */
export function sentTo(name: StrictName, client: Client, given: JsonObject): Sent {
  const sent = sendTo(name, client, given);
  if ('code' in sent) throw new Error(sent.message);
  return sent;
}

function readClient(
  client: Client,
  body: JsonObject,
): { readonly request: CanonicalRequest; readonly dropped: readonly string[] } | ApiError {
  if (client === 'chat') return { request: { fields: body, turns: null }, dropped: [] };
  const read = client === 'messages' ? messages.readRequest(body) : readResponsesRequest(body);
  if (read.kind === 'error') return read.error;
  const { fields, turns, dropped, translationError } = read.value;
  return translationError ?? { request: { fields, turns }, dropped };
}

/** What the simulated provider says against a body; null: it takes it. */
function refusalOf(path: string, model: string, sent: JsonObject): string | null {
  const found = findScene(path);
  const body = decodeObject(JSON.stringify(sent));
  if (found === undefined || body === undefined) throw new Error(`The simulator has no ${path}`);
  const { scene, operation } = found;
  const refusal = scene.check({ operation, path, model, headers: {}, body, serial: 1 });
  return refusal?.body ?? null;
}
