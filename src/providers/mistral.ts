/**
 * Mistral, and Codestral as a provider of its own: chat, fill-in-the-middle, agents. The schema is the `openapi.yaml` of
 * mistralai/platform-docs-public of 2026-07-15 (`D` below), which forbids unknown fields everywhere (422 `extra_forbidden`);
 * the recorded requests are those of `shared/requests` (`R`).
 */

import { openaiChat } from '../protocols/openai-chat/upstream-reader.ts';
import {
  type FieldRule,
  FUNCTION_TOOLS,
  OPENAI_TOOL_NAMES,
  REFUSED,
  type RequestRules,
  renamed,
} from '../request-translation/rules.ts';
import { isObject, type JsonObject, readText } from '../shared/json.ts';
import type { Endpoint, Provider } from './provider.ts';

/** Models that take reasoning back and an effort; others answer 400 "Reasoning input is not enabled": D, 2026-08. */
const REASONING_MODELS = [
  'mistral-small-latest',
  'mistral-small-2603',
  'mistral-medium-3-5*',
  'mistral-medium-2604',
  'magistral-*',
];

/** OpenAI's fields that are in none of its schemas (D), and two that are known but off for its models (R refused-logprobs). */
const FOREIGN: Readonly<Record<string, FieldRule>> = {
  max_completion_tokens: renamed('max_tokens'),
  seed: renamed('random_seed'),
  user: REFUSED,
  store: REFUSED,
  service_tier: REFUSED,
  safety_identifier: REFUSED,
  prompt_cache_retention: REFUSED,
  prompt_cache_options: REFUSED,
  verbosity: REFUSED,
  logprobs: REFUSED,
  top_logprobs: REFUSED,
  logit_bias: REFUSED,
  modalities: REFUSED,
};

/** OpenAI's `file` part as Mistral's: a data URL is a `document_url`, an uploaded file keeps its id. */
function documentOfFile(part: JsonObject): JsonObject {
  if (part.type !== 'file' || !isObject(part.file)) return part;
  const { file_data, file_id, filename } = part.file;
  const name = readText(filename);
  if (readText(file_data) !== undefined) {
    const named = name === undefined ? {} : { document_name: name };
    return { type: 'document_url', document_url: file_data, ...named };
  }
  return readText(file_id) === undefined ? part : { type: 'file', file_id };
}

const CHAT: RequestRules = {
  fields: FOREIGN,
  // `high` and `none`: D; other words are refused: anomalyco/models.dev#1986, 2026.
  effort: {
    takes: ['reasoning_effort'],
    values: [{ values: { minimal: 'high', low: 'high', medium: 'high', xhigh: 'high', max: 'high' } }],
    models: REASONING_MODELS,
  },
  legacyFunctions: 'converted',
  messages: {
    // 400 "Function name was … but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64":
    // Kochava-Studios/witsy#164, 2025-04-04; mistral-common's validator of 2026-07-23, for calls and results as well.
    toolNames: OPENAI_TOOL_NAMES,
    roles: { developer: 'system' },
    // 400 "Expected last role User or Tool (or Assistant with prefix True) for serving but got system", and code 3230 behind an
    // assistant's or a tool's message: mistral-common's validator of 2026-07-23; MODSetter/SurfSense#287, 2025-08-24. A user's
    // message is taken behind a tool's: R user-after-tool, 2026-08.
    system: [{ place: 'leading' }],
    // The same 400: D, and QuantumNous/new-api#2858, 2026-02-05.
    continuesPrefix: true,
    // "Always replay": D studio-api/conversations/reasoning; R thinking-chunks-back, 2026-08.
    reasoning: [{ models: REASONING_MODELS, form: 'thinking_parts' }, { form: 'none' }],
    closed: {
      roles: {
        system: ['role', 'content'],
        user: ['role', 'content'],
        assistant: ['role', 'content', 'tool_calls', 'prefix'],
        tool: ['role', 'content', 'tool_call_id', 'name'],
      },
      parts: {
        text: ['type', 'text'],
        image_url: ['type', 'image_url'],
        document_url: ['type', 'document_url', 'document_name'],
        input_audio: ['type', 'input_audio'],
        file: ['type', 'file_id'],
      },
      ...FUNCTION_TOOLS,
      toolCall: [...FUNCTION_TOOLS.toolCall, 'index'],
    },
    // 400 code 3280 "must be a-z, A-Z, 0-9, with a length of 9": nearai/ironclaw#1241, 2026-03.
    toolCallIds: /^[a-zA-Z0-9]{9}$/,
    part: documentOfFile,
    needsParameters: true,
  },
  // Not in the schema, and usage comes unasked: 123 of 124 recorded streams.
  streamUsage: 'always',
};

const chat: Endpoint = {
  path: () => '/chat/completions',
  request: { kind: 'chat', rules: CHAT },
  protocol: openaiChat,
};

const fim: Endpoint = {
  path: () => '/fim/completions',
  request: {
    kind: 'chat',
    rules: {
      fields: {
        ...FOREIGN,
        n: REFUSED,
        best_of: REFUSED,
        echo: REFUSED,
        presence_penalty: REFUSED,
        frequency_penalty: REFUSED,
      },
      needsTextPrompt: true,
      messages: { reasoning: [] },
      streamUsage: 'always',
    },
  },
  protocol: openaiChat,
};

const agents: Endpoint = {
  path: () => '/agents/completions',
  // The agent has its model, and what that model takes of reasoning is not known here.
  request: { kind: 'chat', rules: { ...CHAT, fields: { ...FOREIGN, model: { kind: 'implied' } } } },
  protocol: openaiChat,
};

/** A tool call without an id has the word for it instead. */
const quirks = { absentToolCallId: 'null' };

export const mistral: Provider<'MISTRAL_API_KEY' | 'MISTRAL_BASE_URL'> = {
  id: 'mistral',
  name: 'Mistral',
  hosts: ['api.mistral.ai'],
  apiKeySettings: ['MISTRAL_API_KEY'],
  baseUrlSettings: ['MISTRAL_BASE_URL'],
  defaultBaseUrl: 'https://api.mistral.ai/v1',
  // It has no legacy completions: fill-in-the-middle with an empty suffix is the same.
  endpoints: { chat, completions: fim, fim, agents },
  quirks,
  // 400, code 1500: R refused-unknown-model, 2026-08.
  refusals: { missing_model: /^1500: |\bInvalid model: / },
  vendorTokens: () => null,
};

/**
 * Its own host answers 404 "no Route matched" (apmantza/pi-free#293, 2026-07), and a plain Mistral key serves codestral
 * (continuedev/continue#13049, 2026-07-28): it is served where Mistral is, unless a setting names another base URL.
 */
export const codestral: Provider<
  'CODESTRAL_API_KEY' | 'MISTRAL_API_KEY' | 'CODESTRAL_BASE_URL' | 'MISTRAL_BASE_URL'
> = {
  ...mistral,
  id: 'codestral',
  name: 'Codestral',
  hosts: ['codestral.mistral.ai'],
  apiKeySettings: ['CODESTRAL_API_KEY', 'MISTRAL_API_KEY'],
  baseUrlSettings: ['CODESTRAL_BASE_URL', 'MISTRAL_BASE_URL'],
  endpoints: { chat, completions: fim, fim },
  listedModels: ['codestral*'],
};
