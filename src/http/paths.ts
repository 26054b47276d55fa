/** The paths by which clients reach Weir: forgiven slips, and the answer to a path that there is not (Q12). */
import { decodeAsciiPercent } from '../auth/own-credentials.ts';
import { apiError } from '../canonical/error.ts';
import { messages } from '../protocols/anthropic-messages/client.ts';
import { chat } from '../protocols/openai-chat/client-writer.ts';
import { responses } from '../protocols/openai-responses/client.ts';
import type { ClientProtocol } from '../protocols/shared/client-protocol.ts';
import type { RequestContext } from './context.ts';
import { clientError } from './respond.ts';

/** Doubled slashes, `/v1/v1` of a base URL that was completed twice, and the `/openai/v1` of Groq's clients. */
const SLIP = /\/\/|\/v1\/v1(?=\/)|\/openai\/v1(?=\/)/;

/** The path of a request's URL, which the runtime has normalised. */
export function pathOf(url: string): string {
  const query = url.indexOf('?');
  return url.slice(pathStart(url), query < 0 ? url.length : query);
}

function pathStart(url: string): number {
  return url.indexOf('/', 'https://'.length);
}

/** The URL that a request's client meant, where its own has a slip in the path; null: it has none. */
export function normalizedUrl({ url }: Request): string | null {
  const path = pathOf(url);
  if (!SLIP.test(path)) return null;
  const start = pathStart(url);
  const meant = path.replace(/\/{2,}/g, '/').replace(/(\/openai)?\/v1(\/v1)?(?=\/)/, '/v1');
  return url.slice(0, start) + meant + url.slice(start + path.length);
}

/**
 * Whether a path is below another, or leads through it, as any server may read it: percent-encoded, in another case, with doubled
 * slashes, dots or parameters.
 */
export function leadsBelow(path: string, base: string): boolean {
  const wanted = segmentsOf(base).join('/');
  const segments: string[] = [];
  for (const segment of segmentsOf(path)) {
    if (segment === '..') segments.pop();
    else segments.push(segment);
    if (segments.join('/') === wanted) return true;
  }
  return false;
}

function segmentsOf(path: string): string[] {
  let plain = path;
  for (let decoding = 0; decoding < MAX_DECODINGS; decoding++) plain = decodeAsciiPercent(plain);
  const segments = plain.toLowerCase().split(/[\\/]/);
  return segments
    .map((segment) => segment.replace(/[;?#].*/s, '').trim())
    .filter((segment) => segment !== '' && segment !== '.');
}

/** No server decodes a path more often. */
const MAX_DECODINGS = 4;

/** The request under the path that its client meant: itself, but for a slip. It takes the body with it. */
export function normalizePath(request: Request): Request {
  const url = normalizedUrl(request);
  if (url === null) return request;
  const { method, headers } = request;
  // A GET with a body, which HTTP allows, can't be copied: its body has no meaning here.
  return method === 'GET' || method === 'HEAD'
    ? new Request(url, { method, headers })
    : new Request(url, request);
}

/** Whose a path is, known route or not: its errors are in its client's form (I1). */
export function clientOfPath(request: Request): Pick<ClientProtocol<unknown>, 'id' | 'errorResponse'> {
  const path = pathOf(request.url);
  if (/\/responses(\/|$)/.test(path)) return responses;
  return /\/messages(\/|$)/.test(path) ? messages : chat;
}

/** The words in paths by which lines of the log name a route. */
const ROUTE_WORDS = [
  'chat',
  'fim',
  'agents',
  'completions',
  'messages',
  'responses',
  'models',
  'usage',
  'key',
  'admin',
];

/** A path's route in one word, `none` where it leads to none: nothing that a client made up. */
export function routeWord(request: Request, basePath: string): string {
  const segments = pathOf(request.url).slice(basePath.length).split('/');
  return ROUTE_WORDS.find((word) => segments.includes(word)) ?? 'none';
}

const ROUTES = [
  'POST /v1/chat/completions',
  'POST /v1/completions',
  'POST /v1/fim/completions',
  'POST /v1/agents/completions',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
  'POST /v1/responses',
  'POST /v1/responses/input_tokens',
  'GET /v1/models',
  'GET /v1/usage',
  'GET /v1/usage/records',
  'GET /v1/usage/records/:id',
  'GET /v1/usage/refusals',
  'GET /v1/key',
  'GET /health',
  'GET /dashboard',
];

/** The 404 of a path that is no route. A router that takes the base path away is a common cause. */
export function routeNotFound(
  request: Request,
  context: Pick<RequestContext, 'requestId' | 'settings'>,
): Response {
  const { pathname } = new URL(request.url);
  const { basePath } = context.settings;
  const asked = `${request.method} ${pathname.slice(0, MAX_PATH_CHARS)}`;
  const place = pathname.startsWith(`${basePath}/`)
    ? 'here'
    : `here: every path begins with the base path ${basePath}, which a router before Weir must leave in place`;
  const routes = ROUTES.map((route) => route.replace(' ', ` ${basePath}`)).join(', ');
  const error = apiError('not_found', `There is no ${asked} ${place}. Routes: ${routes}`);
  return clientError(clientOfPath(request), context, error);
}

const MAX_PATH_CHARS = 200;
