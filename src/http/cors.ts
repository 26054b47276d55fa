/** Cross-origin access for the origins of `CORS_ORIGINS`; itty-router's own would clone, and so tee, every stream. */
import { RESPONSE_HEADERS } from '../upstream/fetch.ts';

/** What a page may read of an answer: every header that Weir sets or passes (H1). */
const EXPOSED_HEADERS = [
  'x-request-id',
  'request-id',
  'x-weir-request-id',
  'x-weir-provider',
  'x-weir-model',
  'x-weir-alias',
  'x-weir-attempts',
  'x-weir-dropped',
  'x-weir-changed',
  'x-weir-budget-remaining',
  'x-should-retry',
  ...RESPONSE_HEADERS,
].join(', ');
const PREFLIGHT_SECONDS = '86400';

/** The answer to a preflight for a route that takes these methods. */
export function preflight(request: Request, methods: string, origins: readonly string[]): Response {
  const response = new Response(null, { status: 204 });
  if (allowedOrigin(request, origins) === null) return response;
  response.headers.set('access-control-allow-methods', methods);
  const asked = request.headers.get('access-control-request-headers');
  if (asked !== null) response.headers.set('access-control-allow-headers', asked);
  response.headers.set('access-control-max-age', PREFLIGHT_SECONDS);
  return response;
}

/** Lets the pages of an allowed origin read the answer; for any other origin nothing but `vary` is added. */
export function addCors(request: Request, response: Response, origins: readonly string[]): void {
  if (origins.length === 0) return;
  response.headers.append('vary', 'Origin');
  const origin = allowedOrigin(request, origins);
  if (origin === null) return;
  response.headers.set('access-control-allow-origin', origin);
  response.headers.set('access-control-expose-headers', EXPOSED_HEADERS);
}

function allowedOrigin(request: Request, origins: readonly string[]): string | null {
  const origin = request.headers.get('origin');
  return origin !== null && (origins.includes('*') || origins.includes(origin)) ? origin : null;
}
