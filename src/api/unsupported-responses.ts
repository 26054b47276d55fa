/** The routes of responses that are kept: this gateway keeps none, and says so (I5). */
import { apiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { clientError } from '../http/respond.ts';
import { responses } from '../protocols/openai-responses/client.ts';

const MESSAGE =
  'This gateway keeps no responses: an answer is whole when its stream has ended, and the next request sends the items of the conversation in input (store: false)';

export function noResponses(_request: Request, context: RequestContext): Response {
  return clientError(responses, context, apiError('not_found', MESSAGE));
}

const NO_COMPACTION =
  'This gateway compacts no conversations, as few providers do: ask a model for a summary with POST /v1/responses, and go on with that in input';

/** OpenAI's route that shortens a conversation: https://platform.openai.com/docs/api-reference/responses/compact (2026-11-22). */
export function noCompaction(_request: Request, context: RequestContext): Response {
  return clientError(responses, context, apiError('not_found', NO_COMPACTION));
}
