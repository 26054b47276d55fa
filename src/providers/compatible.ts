/** Makes profiles of APIs that are compatible with OpenAI's, and providers of the `PROVIDERS` setting out of profiles. */
import { openaiChat, openaiCompletions } from '../protocols/openai-chat/upstream-reader.ts';
import { openaiResponses } from '../protocols/openai-responses/upstream-reader.ts';
import {
  COMPETING_LIMITS,
  EFFORT_FIELDS,
  type EffortRules,
  OPENAI_TOOL_NAMES,
  type ReasoningForm,
  type RequestRules,
  type SystemRule,
} from '../request-translation/rules.ts';
import type { Endpoint, Profile, Provider, Route } from './provider.ts';

/** Legacy completions, which take what their server takes: they hold no messages. */
const COMPLETION_RULES: RequestRules = {
  fields: {},
  messages: { reasoning: [] },
  competingLimits: COMPETING_LIMITS,
  streamUsage: 'on_request',
};

/**
 * Models whose templates refuse a second system message, or turns that do not alternate, wherever they are served: 400 "System message
 * must be at the beginning". Qwen from 3.5 on: QwenLM/Qwen3.8#244, 2026-09-22; Gemma: raullenchai/Rapid-MLX#1543,
 * 2026-08-06; Mistral's: charmbracelet/crush#279, 2026-01-14.
 */
export const STRICT_TEMPLATES: readonly SystemRule[] = [
  { models: ['*qwen*', '*Qwen*', '*gemma*', '*stral*'], place: 'first' },
];

/**
 * @param chat what its chat completions take
 * @param completions what its legacy completions take; a `suffix` makes them fill-in-the-middle
 */
export function compatibleProfile(
  id: string,
  hosts: readonly string[],
  chat: RequestRules,
  completions: RequestRules = COMPLETION_RULES,
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
    },
    quirks: {},
    vendorTokens: () => null,
  };
}

/** The lane of a provider that speaks Responses itself (N1). */
export const RESPONSES_PASSTHROUGH = {
  responses: { path: '/responses', protocol: openaiResponses },
} as const satisfies Profile['passthrough'];

/** A provider of the `PROVIDERS` setting: its id is also its name. */
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

/** The same profile for a server that refuses `stream_options` (`"stream_usage": false`). */
export function withoutStreamUsage(profile: Profile): Profile {
  const endpoints: { -readonly [R in Route]?: Endpoint } = { ...profile.endpoints };
  for (const route of ['chat', 'completions', 'fim', 'agents'] as const) {
    const endpoint = profile.endpoints[route];
    if (endpoint?.request.kind !== 'chat') continue;
    const rules: RequestRules = { ...endpoint.request.rules, streamUsage: 'always' };
    endpoints[route] = { ...endpoint, request: { kind: 'chat', rules } };
  }
  return { ...profile, endpoints };
}

/** What a deployment says of its server's chat completions, over the table of its profile. */
export interface ChatChanges {
  readonly fields: RequestRules['fields'];
  readonly roles: Readonly<Record<string, string>>;
  /** The server's word for each of OpenAI's. */
  readonly effort: Readonly<Record<string, string>>;
  /** Absent: as the profile has it. */
  readonly reasoning: ReasoningForm | undefined;
}

/** The same profile with these changes; null where its chat completions are in a form of their own. */
export function withChatChanges(profile: Profile, changes: ChatChanges): Profile | null {
  const { chat } = profile.endpoints;
  if (chat?.request.kind !== 'chat') return null;
  const { rules } = chat.request;
  const { fields, roles, effort, reasoning } = changes;
  const hasWords = Object.keys(effort).length > 0;
  const words: EffortRules = { takes: EFFORT_FIELDS, ...rules.effort, values: [{ values: effort }] };
  const changed: RequestRules = {
    ...rules,
    fields: { ...rules.fields, ...fields },
    ...(hasWords && { effort: words }),
    messages: {
      ...rules.messages,
      roles: { ...rules.messages.roles, ...roles },
      ...(reasoning !== undefined && { reasoning: [{ form: reasoning }] }),
    },
  };
  const endpoint: Endpoint = { ...chat, request: { kind: 'chat', rules: changed } };
  return { ...profile, endpoints: { ...profile.endpoints, chat: endpoint } };
}

/** Nothing is left out; reasoning goes back under both of its names: taken by Ollama's cloud, recorded in 2026-08. */
export const TOLERANT: RequestRules = {
  fields: {},
  messages: {
    // Those of Alibaba's ("The length of the tool name cannot exceed 64": QwenLM/Qwen3-VL#2069, 2026-03-19) and of OpenAI's behind
    // another host; a shorter name is no loss to those that take longer ones.
    toolNames: OPENAI_TOOL_NAMES,
    system: STRICT_TEMPLATES,
    reasoning: [{ form: 'both' }],
    takesDetails: true,
    takesExtraContent: true,
  },
  competingLimits: COMPETING_LIMITS,
  streamUsage: 'on_request',
};

export const tolerant = compatibleProfile('tolerant', [], TOLERANT);
