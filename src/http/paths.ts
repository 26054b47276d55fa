/** The paths by which clients reach Weir: forgiven slips, and what is Weir's own namespace (Q12). */
import { apiError } from '../canonical/error.ts';
import { errorResponse } from './respond.ts';

/** Doubled slashes, `/v1/v1` of a base URL that was completed twice, and the `/openai/v1` of Groq's clients. */
const SLIP = /\/\/|\/v1\/v1(?=\/)|\/openai\/v1(?=\/)/;

/** The request under the path that its client meant: itself, but for a slip. */
export function forgivePath(request: Request): Request {
  const start = request.url.indexOf('/', 'https://'.length);
  const path = request.url.slice(start).split('?', 1)[0] ?? '';
  if (start < 0 || !SLIP.test(path)) return request;
  const meant = path.replace(/\/{2,}/g, '/').replace(/(\/openai)?\/v1(\/v1)?(?=\/)/, '/v1');
  const url = request.url.slice(0, start) + meant + request.url.slice(start + path.length);
  const { method, headers } = request;
  // A GET with a body, which HTTP allows, can't be copied: its body has no meaning here.
  return method === 'GET' || method === 'HEAD'
    ? new Request(url, { method, headers })
    : new Request(url, request);
}

/** Whether a path that no route has is still Weir's: a mistyped one must not carry a key to the zone's origin. */
export function isOwnPath(request: Request, basePath: string): boolean {
  return new URL(request.url).pathname.startsWith(`${basePath}/v1/`);
}

const ROUTES = [
  'POST /v1/chat/completions',
  'POST /v1/completions',
  'POST /v1/fim/completions',
  'POST /v1/agents/completions',
  'GET /v1/models',
  'GET /v1/usage',
  'GET /v1/usage/records',
  'GET /v1/usage/records/:id',
  'GET /v1/key',
  'GET /health',
].join(', ');

export function noSuchRoute(request: Request): Response {
  const { pathname } = new URL(request.url);
  const asked = `${request.method} ${pathname.slice(0, MAX_PATH_CHARS)}`;
  return errorResponse(apiError('not_found', `There is no ${asked} here. Routes: ${ROUTES}`));
}

const MAX_PATH_CHARS = 200;
