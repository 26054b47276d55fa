/** What broke inside is logged; the client learns that it did, and nothing of it (E4, B5). */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { RequestContext } from './context.ts';

export function internalError({ ports, requestId }: RequestContext, reason: unknown): ApiError {
  ports.log({ event: 'internal_error', request_id: requestId, reason: String(reason) });
  return apiError('internal_error', 'Weir failed on this request; its log has the reason');
}
