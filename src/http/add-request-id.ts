/** Names each answer by its request's id, which its usage record has, too (H1, L2). */
import { clientOfPath } from './paths.ts';

/** Sets the headers in which clients look for the id. */
export function addRequestId(request: Request, { headers }: Response, id: string): void {
  headers.set('x-request-id', id);
  headers.set('x-weir-request-id', id);
  // The name by which Anthropic's SDKs show it.
  if (clientOfPath(request).id === 'messages') headers.set('request-id', id);
}
