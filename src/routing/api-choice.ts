/**
 * Chooses between chat and Responses for a chat request: by the deployment's settings, by the provider's earlier refusals, and by the
 * provider's table.
 */

import type { CanonicalRequest, ChatApi } from '../canonical/conversation.ts';
import { readProviderTag } from '../canonical/reasoning-details.ts';
import type { ApiMemory } from '../fitting/learned.ts';
import type { ApiFamily, Provider, ResponsesApi } from '../providers/provider.ts';
import { isDefault } from '../request-translation/dropped-fields.ts';
import { requestedEffort } from '../request-translation/effort.ts';
import { hasItems, objectOf, readArray } from '../shared/json.ts';
import { matchesModel } from '../shared/model-name.ts';

export interface ApiRequest {
  readonly provider: Pick<Provider, 'id' | 'responses'>;
  readonly model: string;
  /** The model's name at its maker. */
  readonly makerModel: string;
  readonly request: CanonicalRequest;
  /** `"api"` of the alias target or of the entry of `PROVIDERS`; null: the table decides. */
  readonly forced: ChatApi | null;
  readonly keyId: string;
}

/** The API for a chat request. A provider without Responses is called through chat. */
export function chooseApi(
  { provider, model, makerModel, request, forced, keyId }: ApiRequest,
  memory: ApiMemory,
  now: number,
): ChatApi {
  const { responses } = provider;
  if (responses === undefined) return 'chat';
  if (forced !== null) return forced;
  const { fields } = request;
  const hasTools = hasItems(fields.tools) || hasItems(fields.functions);
  const remembered = memory.recall({ providerId: provider.id, model, keyId }, hasTools, now);
  if (remembered !== undefined) return remembered;
  const family = responses.families.find(({ models }) => matchesModel(models, makerModel));
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
  // Both are values of Responses alone: the effort is measured (BerriAI/litellm-docs#1173, 2026-09-03), the ttl is by
  // openai 7.57.0's types.
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
