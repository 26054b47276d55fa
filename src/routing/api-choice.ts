/**
 * Chooses between chat and Responses for a chat request: by the deployment's settings, by the provider's earlier refusals, and by the
 * provider's table.
 */

import type { CanonicalRequest } from '../canonical/conversation.ts';
import { readProviderTag } from '../canonical/reasoning-details.ts';
import type { SecondTry } from '../providers/api-refusals.ts';
import type { ApiFamily, ChatApi, Provider, ResponsesApi } from '../providers/provider.ts';
import { isDefault } from '../request-translation/dropped-fields.ts';
import { requestedEffort } from '../request-translation/effort.ts';
import { hasItems, objectOf, readArray } from '../shared/json.ts';
import { matchesModel } from '../shared/model-name.ts';

/** For how long a refusal decides the API of later requests. */
const MEMORY_MS = 60 * 60 * 1000;

/** Models that are remembered. The oldest entry is forgotten first. */
const MAX_MODELS = 1000;

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
      const knownApi = this.#known(keyOf(providerId, model, scope), now);
      if (knownApi === 'chat' || knownApi === 'responses') return knownApi;
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
  readonly request: CanonicalRequest;
  /** `"api"` of the alias target or of the entry of `PROVIDERS`; null: the table decides. */
  readonly forced: ChatApi | null;
}

/** The API for a chat request. A provider without Responses is called through chat. */
export function chooseApi(
  { provider, model, request, forced }: ApiRequest,
  memory: ApiMemory,
  now: number,
): ChatApi {
  const { responses } = provider;
  if (responses === undefined) return 'chat';
  if (forced !== null) return forced;
  const { fields } = request;
  const hasTools = hasItems(fields.tools) || hasItems(fields.functions);
  const remembered = memory.recall(provider.id, model, hasTools, now);
  if (remembered !== undefined) return remembered;
  const family = responses.families.find(({ models }) => matchesModel(models, model));
  if (family === undefined || family.api === 'chat') return 'chat';
  if (family.api === 'responses_only') return 'responses';
  return prefersResponses(request, provider.id, responses, family, hasTools) ? 'responses' : 'chat';
}

function prefersResponses(
  request: CanonicalRequest,
  providerId: string,
  { chatOnly }: ResponsesApi,
  { toolsOnChat }: ApiFamily,
  hasTools: boolean,
): boolean {
  const { fields: body } = request;
  const effort = requestedEffort(body)?.level;
  if (hasTools && toolsOnChat !== undefined && !toolsOnChat.includes(effort ?? 'absent')) return true;
  // Both are values of Responses alone: the effort is measured (BerriAI/litellm-docs#1173, 2026-09-03), the ttl is by openai 7.57.0's types.
  if (effort === 'max' || objectOf(body.prompt_cache_options).ttl === '12h') return true;
  const isChatOnly = chatOnly.some(
    (field) => body[field] !== undefined && body[field] !== null && !isDefault(field, body[field], body),
  );
  if (isChatOnly) return false;
  return hasTools || (effort !== undefined && effort !== 'none') || carriesReasoning(request, providerId);
}

/** Whether a step of the conversation has this provider's encrypted reasoning. */
function carriesReasoning({ fields, turns }: CanonicalRequest, providerId: string): boolean {
  const isOwn = (detail: unknown) => readProviderTag(objectOf(detail).id)?.provider === providerId;
  if (turns === null) {
    const messages = readArray(fields.messages).map((message) => objectOf(message));
    return messages.some(({ reasoning_details }) => readArray(reasoning_details).some(isOwn));
  }
  return turns.some(({ blocks }) =>
    blocks.some((block) => block.kind === 'reasoning' && isOwn(block.detail)),
  );
}
