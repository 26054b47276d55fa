/** Cross-origin access for the origins of `CORS_ORIGINS`; itty-router's own would clone, and so tee, every stream. */

const ALLOWED_METHODS = 'GET, POST, DELETE, OPTIONS';
const EXPOSED_HEADERS = 'x-weir-request-id, x-weir-provider, x-weir-model, retry-after';
const PREFLIGHT_SECONDS = '86400';

/** The answer to a preflight, or undefined where the request is none. */
export function preflight(request: Request, origins: readonly string[]): Response | undefined {
  if (request.method !== 'OPTIONS') return undefined;
  const response = new Response(null, { status: 204 });
  if (!addCors(request, response, origins)) return response;
  response.headers.set('access-control-allow-methods', ALLOWED_METHODS);
  const asked = request.headers.get('access-control-request-headers');
  if (asked !== null) response.headers.set('access-control-allow-headers', asked);
  response.headers.set('access-control-max-age', PREFLIGHT_SECONDS);
  return response;
}

/** @returns false where the origin may not call, or there is none: nothing was added but `vary` */
export function addCors(request: Request, response: Response, origins: readonly string[]): boolean {
  if (origins.length === 0) return false;
  response.headers.append('vary', 'Origin');
  const origin = request.headers.get('origin');
  if (origin === null || !(origins.includes('*') || origins.includes(origin))) return false;
  response.headers.set('access-control-allow-origin', origin);
  response.headers.set('access-control-expose-headers', EXPOSED_HEADERS);
  return true;
}
