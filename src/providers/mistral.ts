/**
 * Mistral, and Codestral as a separate provider: chat, fill-in-the-middle, agents. The schema is the `openapi.yaml` of
 * mistralai/platform-docs-public of 2026-07-15 (`D` below), which forbids unknown fields everywhere (422 `extra_forbidden`).
 * `R` are the recorded requests (CONTRIBUTING.md has their place).
 */

import { openaiChat } from '../protocols/openai-chat/upstream-reader.ts';
import {
  type FieldRule,
  OPENAI_TOOL_NAMES,
  REFUSED,
  type ReasoningFamily,
  type RequestRules,
  renamed,
} from '../request-translation/rules.ts';
import { isObject, type JsonObject, readText } from '../shared/json.ts';
import { words } from '../shared/words.ts';
import { closedMessages, embeddingsEndpoint } from './compatible.ts';
import type { Endpoint, Provider } from './provider.ts';

/**
 * Ids of calls, at every host of Mistral's models. 400 code 3280 "must be a-z, A-Z, 0-9, with a length of 9":
 * nearai/ironclaw#1241, 2026-03; mistral-common's validator of 2026-07-23, which other servers use.
 */
export const MISTRAL_CALL_IDS = /^[a-zA-Z0-9]{9}$/;

/** Medium 3.5 since 2026-06-16: BerriAI/litellm#30979; probed on 2026-07-15: withceleste/celeste-python#311. */
const MEDIUM = ['mistral-medium', 'mistral-medium-latest', 'mistral-medium-3-5*', 'mistral-medium-2604*'];
const OLDER_MEDIUM = [
  'mistral-medium-2312*',
  'mistral-medium-25*',
  'mistral-medium-3',
  'mistral-medium-3-1*',
];
const SMALL = ['mistral-small-latest', 'mistral-small-2603*', 'mistral-small-4*', 'magistral-small*'];
const OLDER_SMALL = ['mistral-small', 'mistral-small-2402*', 'mistral-small-2409*', 'mistral-small-25*'];
const LARGE_4 = ['mistral-large-4*'];
/** The alias is Large 3: pricing/mistral.ts. */
const OLDER_LARGE = ['mistral-large', 'mistral-large-latest', 'mistral-large-2*', 'mistral-large-3*'];

/**
 * What each family knows, as of 2026-11-23. Other efforts are refused: anomalyco/models.dev#1986, 2026-06-03. A name of Small, Medium or
 * Large that is not listed is newer than the listed ones.
 */
const FAMILIES: readonly ReasoningFamily[] = [
  // "reasoning_effort not enabled": withceleste/celeste-python#311, 2026-07-15; 422: NousResearch/hermes-agent#11243. Retired on
  // 2026-07-31, its names are redirected to Medium 3.5 (UKGovernmentBEIS/inspect_ai#4711); whether the effort is accepted since then was
  // not found, so none is sent.
  { models: ['magistral-medium*'], efforts: [] },
  { models: [...OLDER_SMALL, ...OLDER_MEDIUM, ...OLDER_LARGE], efforts: [], reasons: 'never' },
  // "Mistral Large 4 (mistral-large-4-0): Supports low, medium …": https://docs.mistral.ai/inference/conversations/reasoning (2026-11-23,
  // an excerpt). It names no way to turn reasoning off, which other hosts of the model offer.
  { models: ['mistral-large-*'], efforts: ['low', 'medium', 'high'] },
  // `high` and `none`: D.
  { models: [...SMALL, ...MEDIUM, 'mistral-small-*', 'mistral-medium-*'], efforts: ['none', 'high'] },
  { models: ['*'], efforts: [], reasons: 'never' },
];

/** Models that accept reasoning of earlier turns. Others respond 400 "Reasoning input is not enabled": D, 2026-08. */
const REASONING_MODELS = [...SMALL, ...MEDIUM, ...LARGE_4, 'magistral-*'];

/** OpenAI's fields that are not in its schemas (D), and two that are known but disabled for its models (R refused-logprobs). */
const FOREIGN: Readonly<Record<string, FieldRule>> = {
  max_completion_tokens: renamed('max_tokens'),
  seed: renamed('random_seed'),
  // Not in the schema, which is closed (D).
  top_k: REFUSED,
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

/** Converts OpenAI's `file` part: a data URL becomes a `document_url`, an uploaded file keeps its id. */
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

const CLOSED = closedMessages({ assistant: ['prefix'], tool: ['name'] });

const CHAT: RequestRules = {
  checked: '2026-11-23',
  fields: FOREIGN,
  refusesEmpty: true,
  effort: { checked: '2026-11-23', takes: ['reasoning_effort'], families: FAMILIES },
  legacyFunctions: 'converted',
  messages: {
    // 400 "Function name was … but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64":
    // Kochava-Studios/witsy#164, 2025-04-04; mistral-common's validator of 2026-07-23 checks calls and results as well.
    toolNames: OPENAI_TOOL_NAMES,
    roles: { developer: 'system' },
    // 400 "Expected last role User or Tool (or Assistant with prefix True) for serving but got system", and code 3230 after an
    // assistant's or a tool's message: mistral-common's validator of 2026-07-23; MODSetter/SurfSense#287, 2025-08-24. A user's
    // message is accepted after a tool's: R user-after-tool, 2026-08.
    system: [{ place: 'leading' }],
    // The same 400 as above: D, and QuantumNous/new-api#2858, 2026-02-05.
    continuesPrefix: true,
    // "Always replay": D studio-api/conversations/reasoning; R thinking-chunks-back, 2026-08.
    reasoning: [{ models: REASONING_MODELS, form: 'thinking_parts' }, { form: 'none' }],
    closed: {
      ...CLOSED,
      parts: {
        ...CLOSED.parts,
        document_url: ['type', 'document_url', 'document_name'],
        input_audio: ['type', 'input_audio'],
        file: ['type', 'file_id'],
      },
      toolCall: [...CLOSED.toolCall, 'index'],
    },
    toolCallIds: MISTRAL_CALL_IDS,
    part: documentOfFile,
    needsParameters: true,
  },
  // `stream_options` is not in the schema, and usage is sent without it: 123 of 124 recorded streams.
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
  // The agent determines the model, so Weir does not know which reasoning it accepts.
  request: { kind: 'chat', rules: { ...CHAT, fields: { ...FOREIGN, model: { kind: 'implied' } } } },
  protocol: openaiChat,
};

/**
 * `output_dimension` and `encoding_format`, float or base64: https://docs.mistral.ai/api/endpoint/embeddings (read 2026-11-22). `user` is
 * not in the schema, which is closed (D).
 */
const embeddings: Endpoint = embeddingsEndpoint({ dimensions: renamed('output_dimension'), user: REFUSED });

/** A tool call without an id has the string `null` as its id. */
const quirks = { absentToolCallId: /^null$/ };

export const mistral: Provider<'MISTRAL_API_KEY' | 'MISTRAL_BASE_URL'> = {
  id: 'mistral',
  name: 'Mistral',
  hosts: ['api.mistral.ai'],
  apiKeySettings: ['MISTRAL_API_KEY'],
  baseUrlSettings: ['MISTRAL_BASE_URL'],
  defaultBaseUrl: 'https://api.mistral.ai/v1',
  // It has no legacy completions. Fill-in-the-middle without a suffix is equivalent.
  endpoints: { chat, completions: fim, fim, agents, embeddings },
  // https://docs.mistral.ai/getting-started/models (2026-11-22).
  ownModels: words(`
    mistral-* ministral-* magistral-* devstral-* codestral-* pixtral-* voxtral-* open-mistral-*
    open-mixtral-* open-codestral-* labs-devstral-*
  `),
  embeddingModels: ['mistral-embed*', 'codestral-embed*'],
  quirks,
  // 400, code 1500: R refused-unknown-model, 2026-08.
  refusals: { missing_model: /^1500: |\bInvalid model: / },
};

/**
 * Its own host responds 404 "no Route matched" (apmantza/pi-free#293, 2026-07), and a Mistral key is valid for codestral
 * (continuedev/continue#13049, 2026-07-28). So it is called at Mistral's base URL, unless a setting names another one.
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
  ownModels: ['codestral-*'],
};
