/** What of Responses passes as it is where its provider speaks Responses, too (N1, N2). */

import { readProviderTag } from '../../canonical/reasoning-details.ts';
import { isObject, type JsonObject } from '../../shared/json.ts';
import type { Passthrough } from '../shared/client-protocol.ts';
import { isOwnReasoning } from './encrypted-content.ts';
import { writeResponse } from './passthrough-event.ts';
import { ResponsesPassthroughWriter } from './passthrough-writer.ts';

export const responsesPassthrough: Passthrough = {
  protocol: 'responses',
  outputLimitField: 'max_output_tokens',
  // Items and tools of kinds that are not known.
  promptFields: /^(?:input|tools)\./,
  compactsContext: ({ context_management: management }) => Array.isArray(management) && management.length > 0,
  backgroundField: 'background',
  requestHeaders: [],
  responseHeaders: [],
  withoutReasoningStates,
  streamWriter: (options) => new ResponsesPassthroughWriter(options),
  writeJson: (answer, options) => (answer.object === 'response' ? writeResponse(answer, options) : answer),
};

/** A reasoning item is of use to its maker alone: without its token a provider finds nothing in it. */
function withoutReasoningStates(body: JsonObject): JsonObject {
  const { input } = body;
  if (!Array.isArray(input) || !input.some(isOwn)) return body;
  return { ...body, input: input.filter((item) => !isOwn(item)) };
}

function isOwn(item: unknown): boolean {
  if (!isObject(item) || item.type !== 'reasoning') return false;
  if (readProviderTag(item.encrypted_content) !== null) return true;
  return isOwnReasoning(item.id);
}
