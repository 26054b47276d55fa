/**
 * Chooses between chat and Responses for a chat request: by the deployment's settings, by the provider's earlier refusals, and by the
 * provider's table.
 */
import type { ApiError } from '../canonical/error.ts';
import { readProviderTag } from '../canonical/reasoning-details.ts';
import type { ApiFamily, ChatApi, Provider, ResponsesApi } from '../providers/provider.ts';
import { isDefault } from '../request-translation/dropped-fields.ts';
import { requestedEffort } from '../request-translation/effort.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import { hasItems, isObject, type JsonObject, objectOf, readArray } from '../shared/json.ts';
import { MAX_ERROR_MESSAGE_CHARS } from '../shared/limits.ts';

/** For how long a refusal decides the API of later requests. */
const MEMORY_MS = 60 * 60 * 1000;

/** Models that are remembered. The oldest entry is forgotten first. */
const MAX_MODELS = 1000;

/** What a refusal says about the request that was sent. */
export type SecondTry =
  /** The model, or the model with function tools, is served by this API alone. */
  | { readonly kind: 'api'; readonly api: ChatApi; readonly scope: 'model' | 'tools' }
  /** The encrypted reasoning belongs to another organisation, or was altered. */
  | { readonly kind: 'without_reasoning' }
  /** The organisation or the model gets no summaries of reasoning. */
  | { readonly kind: 'without_summary' };

interface Refusal {
  readonly on: ChatApi;
  readonly code?: RegExp;
  readonly message?: RegExp;
  readonly action: SecondTry;
}

const TO_RESPONSES: SecondTry = { kind: 'api', api: 'responses', scope: 'model' };
const TOOLS_TO_RESPONSES: SecondTry = { kind: 'api', api: 'responses', scope: 'tools' };
const TO_CHAT: SecondTry = { kind: 'api', api: 'chat', scope: 'model' };

/** Refusals of 400, 404, 405 and 501 and what they ask for. A row without `code` holds for every code. Read 2026-11-22. */
const REFUSALS: readonly Refusal[] = [
  // "Function tools with reasoning_effort are not supported for gpt-5.6-sol in /v1/chat/completions. To use function tools, use
  // /v1/responses or set reasoning_effort to 'none'." `none` is itself refused by gpt-6-astra and gpt-6.1-sol, so Responses it is:
  // pipecat-ai/pipecat#4043 (2026-03-16), joplin#16451 (2026-09-08); in Azure's, Bedrock's and Workers AI's envelopes, too.
  {
    on: 'chat',
    message: /\bfunction tools with reasoning_effort are not supported\b[\s\S]{0,256}\/v1\/responses\b/i,
    action: TOOLS_TO_RESPONSES,
  },
  // "This model is only supported in v1/responses and not in v1/chat/completions.": openai/codex#1306 (2025-06-11).
  { on: 'chat', message: /\bonly supported in v1\/responses\b/i, action: TO_RESPONSES },
  // "This is not a chat model and thus not supported in the v1/chat/completions endpoint.": chatwise#1256 (2026-02-26).
  { on: 'chat', message: /\bnot a chat model\b[\s\S]{0,64}\bv1\/chat\/completions\b/i, action: TO_RESPONSES },
  // Azure: "The chatCompletion operation does not work with the specified model, gpt-5.1-codex.": langchain-ai/langchain#35050 (2026-02-06).
  {
    on: 'chat',
    message: /\bchatCompletion operation does not work with the specified model\b/i,
    action: TO_RESPONSES,
  },
  // xAI: "Multi Agent requests are not allowed on chat completions": chatwise#1306 (2026-03-18).
  { on: 'chat', message: /\bnot allowed on chat completions\b/i, action: TO_RESPONSES },
  // GitHub Copilot uses one code for both directions: cc-switch#1681 (2026-03-25).
  { on: 'chat', code: /^unsupported_api_for_model$/, action: TO_RESPONSES },
  { on: 'responses', code: /^unsupported_api_for_model$/, action: TO_CHAT },
  // "The requested model 'gpt-4o-search-preview' is not supported with the Responses API.": Laisky/one-api#88 (2025-06-22).
  {
    on: 'responses',
    message: /\bmodel\b[\s\S]{0,256}\bnot supported (?:with|via) (?:the )?Responses API\b/i,
    action: TO_CHAT,
  },
  {
    on: 'responses',
    message: /\bmodel\b[\s\S]{0,256}\bdoes not support (?:the )?Responses API\b/i,
    action: TO_CHAT,
  },
  // Hosts without the route: "Unknown URL /v1/responses", "Unsupported endpoint /openai/responses", "The endpoint /v1/responses is not
  // supported"; "Resource not found" (Azure), "File Not Found" (llama.cpp).
  {
    on: 'responses',
    message: /\b(?:unknown url|unsupported endpoint|endpoint)\b[\s\S]{0,64}\/responses\b/i,
    action: TO_CHAT,
  },
  { on: 'responses', message: /^(?:[^:]{0,64}: )?(?:resource|file) not found\b/i, action: TO_CHAT },
  // Weir's own words for a refusal without any.
  { on: 'responses', message: /^[^:]{0,64} answered (?:404|405|501)$/, action: TO_CHAT },
  // "The encrypted content gAAA...c90= could not be verified.": openai/codex#8119 (2025-12-16), pydantic/pydantic-ai#4608 (2026-03-09).
  // xAI: "Could not decrypt the provided encrypted_content."
  { on: 'responses', code: /^invalid_encrypted_content$/, action: { kind: 'without_reasoning' } },
  {
    on: 'responses',
    message:
      /\bencrypted content\b[\s\S]{0,256}\bcould not be verified\b|\bcould not decrypt the provided encrypted_content\b/i,
    action: { kind: 'without_reasoning' },
  },
  // "Your organization must be verified to generate reasoning summaries."; "Unsupported parameter: 'reasoning.summary' is not supported
  // with the 'gpt-5.3-codex-spark' model."
  {
    on: 'responses',
    message: /\bmust be verified to generate reasoning summaries\b|'reasoning\.summary' is not supported\b/i,
    action: { kind: 'without_summary' },
  },
];

const STATUSES = [400, 404, 405, 501];

/** The change that a refusal by this API asks for, or null if there is none that Weir can make. */
export function secondTry(error: ApiError, on: ChatApi): SecondTry | null {
  if (!STATUSES.includes(error.status)) return null;
  const message = error.message.slice(0, MAX_ERROR_MESSAGE_CHARS);
  const row = REFUSALS.find(
    (refusal) =>
      refusal.on === on &&
      (refusal.code === undefined || refusal.code.test(error.code)) &&
      (refusal.message === undefined || refusal.message.test(message)),
  );
  return row?.action ?? null;
}

/** Remembers for an hour which API the refusals of a model named, so that later requests need no second try. The isolate has one. */
export class ApiMemory {
  readonly #entries = new Map<
    string,
    { readonly api: ChatApi | 'without_summary'; readonly until: number }
  >();

  /** Remembers what a refusal asked for. Refused reasoning says nothing about later requests. */
  note(providerId: string, model: string, change: SecondTry, now: number): void {
    if (change.kind === 'without_reasoning') return;
    const key = keyOf(providerId, model, change.kind === 'api' ? change.scope : 'summary');
    this.#entries.delete(key);
    this.#entries.set(key, { api: change.kind === 'api' ? change.api : change.kind, until: now + MEMORY_MS });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > MAX_MODELS && oldest !== undefined) this.#entries.delete(oldest);
  }

  /** Both APIs refused the model, so neither refusal says which one serves it. */
  forget(providerId: string, model: string, change: SecondTry): void {
    if (change.kind === 'api') this.#entries.delete(keyOf(providerId, model, change.scope));
  }

  /** The API that a refusal named; undefined if there was none. */
  recall(providerId: string, model: string, hasTools: boolean, now: number): ChatApi | undefined {
    const scopes: Scope[] = hasTools ? ['model', 'tools'] : ['model'];
    for (const scope of scopes) {
      const known = this.#known(keyOf(providerId, model, scope), now);
      if (known === 'chat' || known === 'responses') return known;
    }
    return undefined;
  }

  /** Whether the provider refused to summarize the model's reasoning. */
  refusesSummary(providerId: string, model: string, now: number): boolean {
    return this.#known(keyOf(providerId, model, 'summary'), now) !== undefined;
  }

  #known(key: string, now: number): ChatApi | 'without_summary' | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.until > now ? entry.api : undefined;
  }
}

type Scope = 'model' | 'tools' | 'summary';

function keyOf(providerId: string, model: string, scope: Scope): string {
  return `${scope} ${providerId}/${model}`;
}

export interface ApiRequest {
  readonly provider: Pick<Provider, 'id' | 'responses'>;
  readonly model: string;
  /** The chat request. */
  readonly body: JsonObject;
  /** `"api"` of the alias target or of the entry of `PROVIDERS`; null: the table decides. */
  readonly forced: ChatApi | null;
}

/** The API for a chat request. A provider without Responses is called through chat. */
export function chooseApi(
  { provider, model, body, forced }: ApiRequest,
  memory: ApiMemory,
  now: number,
): ChatApi {
  const { responses } = provider;
  if (responses === undefined) return 'chat';
  if (forced !== null) return forced;
  const hasTools = hasItems(body.tools) || hasItems(body.functions);
  const remembered = memory.recall(provider.id, model, hasTools, now);
  if (remembered !== undefined) return remembered;
  const family = responses.families.find(({ models }) => matchesAnyGlob(models, model));
  if (family === undefined || family.api === 'chat') return 'chat';
  if (family.api === 'responses_only') return 'responses';
  return prefersResponses(body, provider.id, responses, family, hasTools) ? 'responses' : 'chat';
}

function prefersResponses(
  body: JsonObject,
  providerId: string,
  { chatOnly }: ResponsesApi,
  { toolsOnChat }: ApiFamily,
  hasTools: boolean,
): boolean {
  const effort = requestedEffort(body)?.effort;
  if (hasTools && toolsOnChat !== undefined && !toolsOnChat.includes(effort ?? 'absent')) return true;
  // Both are values of Responses alone: the effort is measured (BerriAI/litellm-docs#1173, 2026-09-03), the ttl is by openai 7.57.0's types.
  if (effort === 'max' || objectOf(body.prompt_cache_options).ttl === '12h') return true;
  const isChatOnly = chatOnly.some(
    (field) => body[field] !== undefined && body[field] !== null && !isDefault(field, body[field], body),
  );
  if (isChatOnly) return false;
  return hasTools || (effort !== undefined && effort !== 'none') || carriesReasoning(body, providerId);
}

/** Whether a step of the conversation has this provider's encrypted reasoning. */
function carriesReasoning({ messages }: JsonObject, providerId: string): boolean {
  return readArray(messages).some(
    (message) =>
      isObject(message) &&
      readArray(message.reasoning_details).some(
        (detail) => isObject(detail) && readProviderTag(detail.id)?.provider === providerId,
      ),
  );
}
