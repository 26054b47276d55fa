/**
 * Profiles of APIs that are compatible with OpenAI's, the tolerant one for unknown hosts, and the changes that
 * `PROVIDERS` makes to one.
 */

import { EFFORT_FIELDS } from '../facts/efforts.ts';
import { openaiChat, openaiCompletions } from '../protocols/openai-chat/upstream-reader.ts';
import { responsesForm } from '../protocols/openai-responses/request-writer.ts';
import { openaiResponses } from '../protocols/openai-responses/upstream-reader.ts';
import {
  COMPETING_LIMITS,
  type EffortRules,
  FUNCTION_TOOLS,
  type MessageRules,
  OPENAI_TOOL_NAMES,
  type ReasoningForm,
  type RequestRules,
  type SystemRule,
} from '../request-translation/rules.ts';
import { words } from '../shared/words.ts';
import type { Writable } from '../shared/writable.ts';
import type { Endpoint, Profile, Provider, ResponsesApi } from './provider.ts';

/**
 * The profile of an API with Chat Completions and legacy completions at OpenAI's paths.
 * @param chat what its chat completions accept
 * @param completions what its legacy completions accept; a request with `suffix` is fill-in-the-middle
 */
export function compatibleProfile(
  id: string,
  hosts: readonly string[],
  chat: RequestRules,
  completions: RequestRules = LEGACY_COMPLETIONS,
): Profile {
  const text: Endpoint = {
    path: () => '/completions',
    request: { kind: 'chat', rules: completions },
    protocol: openaiCompletions,
  };
  return {
    id,
    hosts,
    endpoints: {
      chat: {
        path: () => '/chat/completions',
        request: { kind: 'chat', rules: chat },
        protocol: openaiChat,
      },
      completions: text,
      fim: text,
      embeddings: OPENAI_EMBEDDINGS,
    },
  };
}

/** Legacy completions are sent unchanged. They have no messages. */
const LEGACY_COMPLETIONS: RequestRules = {
  fields: {},
  messages: { reasoning: [] },
  competingLimits: COMPETING_LIMITS,
  streamUsage: 'on_request',
};

/**
 * Fields of Chat Completions that OpenAI's Responses do not have: "Unknown parameter: 'n'", "'stop'", "'seed'", code `unknown_parameter`,
 * measured at gpt-5.6-terra, 2026-08-30.
 */
export const CHAT_ONLY_FIELDS = words(`
  n stop seed logit_bias presence_penalty frequency_penalty prediction audio modalities
`);

/** Embeddings in OpenAI's form are sent unchanged: https://platform.openai.com/docs/api-reference/embeddings (2026-11-22). */
const OPENAI_EMBEDDINGS: Endpoint = embeddingsEndpoint({});

/**
 * The embeddings of an API at OpenAI's path.
 * @param fields what it does not accept as OpenAI does
 */
export function embeddingsEndpoint(fields: RequestRules['fields']): Endpoint {
  return {
    path: () => '/embeddings',
    request: { kind: 'chat', rules: { fields, messages: { reasoning: [] }, streamUsage: 'always' } },
    // Their usage has the names of chats.
    protocol: openaiChat,
  };
}

/** The passthrough of a provider with the Responses API. */
export const RESPONSES_PASSTHROUGH = {
  responses: { path: '/responses', protocol: openaiResponses },
} as const satisfies Profile['passthrough'];

/** Responses of a server without a table of its own, for entries of `PROVIDERS` with `"api": "responses"`. */
export const RESPONSES_API: ResponsesApi = {
  endpoint: {
    path: () => '/responses',
    request: responsesForm({
      absent: CHAT_ONLY_FIELDS,
      request: {
        fields: {},
        // No families: servers without encrypted reasoning may refuse `include`.
        effort: { takes: ['reasoning_effort'] },
        messages: { reasoning: [] },
        streamUsage: 'always',
      },
    }),
    protocol: openaiResponses,
  },
  chatOnly: [],
  families: [],
};

/**
 * Models whose chat templates refuse a second system message, or turns that do not alternate, at every host: 400 "System message
 * must be at the beginning". Qwen from 3.5 on: QwenLM/Qwen3.8#244, 2026-09-22; Gemma: raullenchai/Rapid-MLX#1543,
 * 2026-08-06; Mistral's: charmbracelet/crush#279, 2026-01-14.
 */
export const STRICT_TEMPLATES: readonly SystemRule[] = [
  { models: ['*qwen*', '*Qwen*', '*gemma*', '*stral*'], place: 'first' },
];

/** Text and images, and OpenAI's keys of function tools: the closed message schema that several providers share. */
const CLOSED_MESSAGES = {
  roles: {
    system: ['role', 'content'],
    user: ['role', 'content'],
    assistant: ['role', 'content', 'tool_calls'],
    tool: ['role', 'content', 'tool_call_id'],
  },
  parts: { text: ['type', 'text'], image_url: ['type', 'image_url'] },
  ...FUNCTION_TOOLS,
} as const;

/**
 * The shared closed message schema with a provider's further keys.
 * @param more keys to add, by role: `{ assistant: ['reasoning_content'] }`
 */
export function closedMessages(
  more: { readonly [Role in keyof typeof CLOSED_MESSAGES.roles]?: readonly string[] },
): NonNullable<MessageRules['closed']> {
  const { system, user, assistant, tool } = CLOSED_MESSAGES.roles;
  return {
    ...CLOSED_MESSAGES,
    roles: {
      system: [...system, ...(more.system ?? [])],
      user: [...user, ...(more.user ?? [])],
      assistant: [...assistant, ...(more.assistant ?? [])],
      tool: [...tool, ...(more.tool ?? [])],
    },
  };
}

/**
 * A server that ignores unknown fields: nothing is dropped, and reasoning is sent under both names, which Ollama's
 * cloud accepted (recorded 2026-08).
 */
export const TOLERANT: RequestRules = {
  checked: '2026-11-22',
  fields: {},
  messages: {
    // The limit of Alibaba ("The length of the tool name cannot exceed 64": QwenLM/Qwen3-VL#2069, 2026-03-19) and of OpenAI behind
    // another host. Servers that accept longer names accept the short ones as well.
    toolNames: OPENAI_TOOL_NAMES,
    system: STRICT_TEMPLATES,
    reasoning: [{ form: 'both' }],
    takesDetails: true,
    takesExtraContent: true,
  },
  competingLimits: COMPETING_LIMITS,
  streamUsage: 'on_request',
};

/** Where Groq's chunks have the usage, as its SDKs read it: groq-python of 2026-08-18, `x_groq.usage`. */
export const GROQ_USAGE = ['x_groq', 'usage'];

/** The profile of every host without its own profile. */
export const tolerant: Profile = {
  ...compatibleProfile('tolerant', [], TOLERANT),
  // A gateway before Groq may pass its events on.
  quirks: { usageField: GROQ_USAGE },
};

/** The provider of an entry of `PROVIDERS`. Its id is also its name. */
export function configuredProvider(id: string, profile: Profile, apiKeySetting: string): Provider {
  return {
    ...profile,
    id,
    name: id,
    apiKeySettings: [apiKeySetting],
    baseUrlSettings: ['PROVIDERS'],
    defaultBaseUrl: null,
  };
}

/** The profile for a server that refuses `stream_options` (`"stream_usage": false`). */
export function withoutStreamUsage(profile: Profile): Profile {
  const endpoints: Writable<Profile['endpoints']> = { ...profile.endpoints };
  for (const route of ['chat', 'completions', 'fim', 'agents'] as const) {
    const endpoint = profile.endpoints[route];
    if (endpoint?.request.kind !== 'chat') continue;
    const rules: RequestRules = { ...endpoint.request.rules, streamUsage: 'always' };
    endpoints[route] = { ...endpoint, request: { kind: 'chat', rules } };
  }
  return { ...profile, endpoints };
}

/** Rows that an entry of `PROVIDERS` adds to the chat table of its profile. */
export interface ChatChanges {
  readonly fields: RequestRules['fields'];
  readonly roles: Readonly<Record<string, string>>;
  /** The server's value for each of OpenAI's. */
  readonly effort: Readonly<Record<string, string>>;
  /** Undefined: the profile's own. */
  readonly reasoning: ReasoningForm | undefined;
}

/** The profile with these changes; null if its chat endpoint has a native API. */
export function withChatChanges(profile: Profile, changes: ChatChanges): Profile | null {
  const { chat } = profile.endpoints;
  if (chat?.request.kind !== 'chat') return null;
  const { rules } = chat.request;
  const { fields, roles, effort, reasoning } = changes;
  const hasEffort = Object.keys(effort).length > 0;
  const { families: _, ...own } = rules.effort ?? { takes: EFFORT_FIELDS };
  const effortRules: EffortRules = { ...own, words: effort };
  const changed: RequestRules = {
    ...rules,
    fields: { ...rules.fields, ...fields },
    ...(hasEffort && { effort: effortRules }),
    messages: {
      ...rules.messages,
      roles: { ...rules.messages.roles, ...roles },
      ...(reasoning !== undefined && { reasoning: [{ form: reasoning }] }),
    },
  };
  const endpoint: Endpoint = { ...chat, request: { kind: 'chat', rules: changed } };
  return { ...profile, endpoints: { ...profile.endpoints, chat: endpoint } };
}
