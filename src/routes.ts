/** The table of routes, and the router made from it: methods, preflights, 404s, log names and error forms follow from the table. */
import { type IRequest, IttyRouter } from 'itty-router';
import { handleListAudit } from './api/audit.ts';
import { handleCountTokens } from './api/count-tokens.ts';
import { handleGeminiCall, refuseInteractions } from './api/gemini.ts';
import {
  handleAddToBudget,
  handleChangeKey,
  handleCreateKey,
  handleListKeys,
  handleOwnKey,
  handleRemoveLimits,
  handleReplaceLimits,
  handleRevokeKey,
  handleRotateKey,
  handleShowKey,
  handleShowLimits,
} from './api/keys.ts';
import { handleModel, handleModels } from './api/models.ts';
import { handleStatus, healthResponse } from './api/status.ts';
import {
  handleAddToTeamBudget,
  handleChangeTeam,
  handleCreateTeam,
  handleDeleteTeam,
  handleListTeams,
  handleShowTeam,
} from './api/teams.ts';
import { handleRefusals, handleUsage } from './api/usage.ts';
import { handleFindRecord, handleListRecords } from './api/usage-records.ts';
import { apiError } from './canonical/error.ts';
import type { CompletionContext } from './completion/admission.ts';
import { handleCompletion } from './completion/handler.ts';
import type { ClientRoute } from './completion/request.ts';
import type { ErrorClient, RequestContext } from './http/context.ts';
import { type Answer, pathOf, pathStart, preflight, refused } from './http/respond.ts';
import { messages } from './protocols/anthropic-messages/client.ts';
import { gemini } from './protocols/gemini/client.ts';
import { chat, completions, embeddings, fim } from './protocols/openai-chat/client.ts';
import { responses } from './protocols/openai-responses/client.ts';

/** In the order in which a preflight of an unknown path lists them. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
type Method = (typeof METHODS)[number];

/** The parameters of a path, as the URL has them (percent-encoded). */
type PathParams = Readonly<Record<string, string | undefined>>;

type Handler = (request: Request, context: CompletionContext, params: PathParams) => Answer | Promise<Answer>;

export interface HttpRoute {
  /** Below the base path, in itty-router's syntax: `:name` is one segment, `:name+` one or more. */
  readonly path: string;
  /** What precedes the path; the first one is named in 404s. Default: `/v1`, or nothing. */
  readonly prefixes?: readonly string[];
  /** The prefixes where a site has all other paths: a route that is added later must not take one of its pages. */
  readonly prefixesBesideSite?: readonly string[];
  /** In the order of the header `Allow`. */
  readonly methods: { readonly [M in Method]?: Handler };
  /** A segment of the path, which is the name in the log of every route with that segment. */
  readonly name?: string;
  /** The client protocol of errors on every path with the segment `name`. Default: OpenAI's. */
  readonly client?: ErrorClient;
  /** False: 404s do not name the route. */
  readonly isListed?: false;
  /** A browser that opens the base path is sent to this page, unless a site has that path. */
  readonly isHome?: true;
}

const V1 = ['/v1', ''];
const ROOT = [''];
/** Of Gemini's own API. Its SDKs call the second one in their mode for Vertex AI. */
const V1BETA = ['/v1beta'];
const VERTEX = ['/v1beta1', '/v1'];
const V1_OR_V1BETA = [...V1, ...V1BETA];
/** DeepSeek's clients have `/beta` in their base URL, for fill-in-the-middle and prefixes. */
const V1_OR_BETA = ['/v1', '', '/beta'];

const CHAT = { route: 'chat', client: chat } as const;
const FIM = { route: 'fim', client: fim } as const;
const AGENTS = { route: 'agents', client: chat } as const;
const COMPLETIONS = { route: 'completions', client: completions } as const;
const EMBEDDINGS = { route: 'embeddings', client: embeddings } as const;
const MESSAGES = { route: 'chat', client: messages } as const;
const RESPONSES = { route: 'chat', client: responses } as const;

/** The routes of the core. Of the routes that match a path, the first one is used. */
export const ROUTES: readonly HttpRoute[] = [
  {
    ...{ name: 'v1beta', client: gemini, path: '/interactions', prefixes: V1BETA },
    methods: { GET: refuseInteractions, POST: refuseInteractions, DELETE: refuseInteractions },
    isListed: false,
  },
  {
    path: '/interactions/:id+',
    prefixes: V1BETA,
    methods: { GET: refuseInteractions, POST: refuseInteractions, DELETE: refuseInteractions },
    isListed: false,
  },
  {
    ...{ name: 'publishers', client: gemini, path: '/publishers/:publisher/models/:model+' },
    ...{ prefixes: VERTEX, prefixesBesideSite: ['/v1'] },
    methods: { POST: callVertex },
    isListed: false,
  },
  {
    path: '/projects/:project/locations/:location/publishers/:publisher/models/:model+',
    ...{ prefixes: VERTEX, prefixesBesideSite: ['/v1'] },
    methods: { POST: callVertex },
    isListed: false,
  },
  { name: 'chat', path: '/chat/completions', prefixes: V1_OR_BETA, methods: { POST: complete(CHAT) } },
  // Azure's clients name the model in the path.
  {
    path: '/openai/deployments/:model+/chat/completions',
    prefixes: ROOT,
    methods: { POST: complete(CHAT) },
    isListed: false,
  },
  { name: 'fim', path: '/fim/completions', methods: { POST: complete(FIM) } },
  { name: 'agents', path: '/agents/completions', methods: { POST: complete(AGENTS) } },
  {
    name: 'completions',
    path: '/completions',
    prefixes: V1_OR_BETA,
    methods: { POST: complete(COMPLETIONS) },
  },
  { name: 'embeddings', path: '/embeddings', methods: { POST: complete(EMBEDDINGS) } },
  {
    path: '/openai/deployments/:model+/embeddings',
    prefixes: ROOT,
    methods: { POST: complete(EMBEDDINGS) },
    isListed: false,
  },
  // DeepSeek has no such routes. They are refused here, because with ORIGIN an unknown path would be passed to the origin.
  {
    path: '/(fim|agents)/completions',
    prefixes: ['/beta'],
    methods: { POST: (request, context) => methodNotAllowed(request, context, 'POST') },
    isListed: false,
  },
  { name: 'messages', client: messages, path: '/messages', methods: { POST: complete(MESSAGES) } },
  {
    path: '/messages/count_tokens',
    methods: { POST: countTokens(MESSAGES, (input_tokens) => ({ input_tokens })) },
  },
  { name: 'responses', client: responses, path: '/responses', methods: { POST: complete(RESPONSES) } },
  {
    path: '/responses/input_tokens',
    methods: {
      POST: countTokens(RESPONSES, (input_tokens) => ({ object: 'response.input_tokens', input_tokens })),
    },
  },
  {
    path: '/responses/:id+',
    methods: { GET: refuseStoredResponse, POST: refuseStoredResponse, DELETE: refuseStoredResponse },
    isListed: false,
  },
  { name: 'models', path: '/models', prefixes: V1_OR_V1BETA, methods: { GET: handleModels } },
  {
    path: '/models/:id+',
    prefixes: V1_OR_V1BETA,
    methods: {
      GET: (request, context, { id }) => handleModel(request, context, decodePath(id)),
      POST: (request, context, { id }) => handleGeminiCall(request, context, decodePath(id)),
    },
    isListed: false,
  },
  { name: 'usage', path: '/usage', methods: { GET: handleUsage } },
  { path: '/usage/records', methods: { GET: handleListRecords } },
  { path: '/usage/records/:id', methods: { GET: handleFindRecord } },
  { path: '/usage/refusals', methods: { GET: handleRefusals } },
  { name: 'key', path: '/key', methods: { GET: handleOwnKey } },
  {
    name: 'admin',
    path: '/admin/keys',
    prefixes: ROOT,
    methods: { GET: handleListKeys, POST: handleCreateKey },
    isListed: false,
  },
  {
    path: '/admin/keys/:id',
    prefixes: ROOT,
    methods: { GET: handleShowKey, PATCH: handleChangeKey, DELETE: handleRevokeKey },
    isListed: false,
  },
  {
    path: '/admin/keys/:id/rotate',
    prefixesBesideSite: ['/v1'],
    methods: { POST: handleRotateKey },
    isListed: false,
  },
  {
    path: '/admin/keys/:id/budget',
    prefixesBesideSite: ['/v1'],
    methods: { POST: handleAddToBudget },
    isListed: false,
  },
  {
    path: '/admin/keys/:id/limits',
    prefixes: ROOT,
    methods: { GET: handleShowLimits, PUT: handleReplaceLimits, DELETE: handleRemoveLimits },
    isListed: false,
  },
  {
    path: '/admin/teams',
    prefixesBesideSite: ['/v1'],
    methods: { GET: handleListTeams, POST: handleCreateTeam },
    isListed: false,
  },
  {
    path: '/admin/teams/:id',
    prefixesBesideSite: ['/v1'],
    methods: { GET: handleShowTeam, PATCH: handleChangeTeam, DELETE: handleDeleteTeam },
    isListed: false,
  },
  {
    path: '/admin/teams/:id/budget',
    prefixesBesideSite: ['/v1'],
    methods: { POST: handleAddToTeamBudget },
    isListed: false,
  },
  { path: '/admin/audit', prefixesBesideSite: ['/v1'], methods: { GET: handleListAudit }, isListed: false },
  { path: '/admin/status', prefixesBesideSite: ['/v1'], methods: { GET: handleStatus }, isListed: false },
  {
    path: '/health',
    prefixes: ROOT,
    methods: { GET: (_, { deployment }) => healthResponse(deployment.running) },
  },
];

function complete<Session>(clientRoute: ClientRoute<Session>): Handler {
  return (request, context, { model }) =>
    handleCompletion(request, clientRoute, context, model === undefined ? {} : { model: decodePath(model) });
}

function callVertex(request: Request, context: CompletionContext, { publisher, model }: PathParams) {
  return handleGeminiCall(request, context, decodePath(model), decodePath(publisher));
}

/** @param view the response's body in the client protocol */
function countTokens<Session>(clientRoute: ClientRoute<Session>, view: (tokens: number) => object): Handler {
  return (request, context) => handleCountTokens(request, clientRoute, context, view);
}

/** OpenAI's route that shortens a conversation: https://platform.openai.com/docs/api-reference/responses/compact (2026-11-22). */
const COMPACT = /^compact\/*$/;

function refuseStoredResponse(request: Request, _: RequestContext, { id = '' }: PathParams): Answer {
  const message =
    request.method === 'POST' && COMPACT.test(id)
      ? 'This gateway does not compact conversations, as few providers do: ask a model for a summary with POST /v1/responses, and send that in input'
      : 'This gateway keeps no responses: a response is complete when its stream has ended, and the next request sends the items of the conversation in input (store: false)';
  return refused(responses, apiError('not_found', message));
}

/** Decodes `%2F` and the like. Text with a malformed escape stays as it is. */
export function decodePath(text = ''): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The routes below one base path. */
export class Router {
  readonly #basePath: string;
  readonly #routes: readonly HttpRoute[];
  /** The path of the page for browsers; null: there is none. */
  readonly #home: string | null;
  /** The handlers of POST routes without parameters, by path: nearly every request is found here without a regular expression. */
  readonly #posts: ReadonlyMap<string, Handler>;
  /** What the paths of those say, once they were requested. */
  readonly #paths = new Map<string, RequestedPath>();
  #router: ReturnType<typeof createRouter> | undefined;

  /**
   * @param features the routes of features, which the core does not know; one with a core route's path replaces it
   * @param hasSite a site has all paths without a route
   */
  constructor(basePath: string, features: readonly HttpRoute[], hasSite = false) {
    this.#basePath = basePath;
    const replaced = new Map(features.map((route) => [route.path, route]));
    const coreRoutes = ROUTES.map((route) => replaced.get(route.path) ?? route);
    const all = [...coreRoutes, ...features.filter((route) => !coreRoutes.includes(route))];
    const isBesideSite = hasSite && basePath === '';
    const home = isBesideSite ? undefined : all.find(({ isHome }) => isHome === true);
    this.#home = home === undefined ? null : basePath + home.path;
    this.#routes = all.map((route) =>
      isBesideSite && route.prefixesBesideSite !== undefined
        ? { ...route, prefixes: route.prefixesBesideSite }
        : route,
    );
    this.#posts = postHandlers(basePath, this.#routes);
  }

  /** The response of the route that fits the request, or a 404 or 405. */
  handle(request: Request, context: CompletionContext): Promise<Answer> | Answer {
    const normalized = normalizePath(request);
    const post = normalized.method === 'POST' ? this.#posts.get(pathOf(normalized.url)) : undefined;
    return post === undefined ? this.#route(normalized, context) : post(normalized, context, {});
  }

  async #route(normalized: Request, context: CompletionContext): Promise<Answer> {
    const isHead = normalized.method === 'HEAD';
    const routed = isHead ? new Request(normalized.url, { headers: normalized.headers }) : normalized;
    return (await this.#itty.fetch(routed, context)) ?? this.#notFound(normalized, context);
  }

  /** Whether a route, with any method, has this path. */
  hasRoute(pathname: string): boolean {
    return this.#itty.routes.some(([, pattern]) => pattern.test(pathname));
  }

  /** The name in the log of a path's route; `none` for a path without one, so that the log has no text that a client made up. */
  nameOf({ url }: Request): string {
    return this.#pathOf(url).name;
  }

  /** The client protocol of a request, by the routes of features, too. */
  clientOf({ url, headers }: Request): ErrorClient {
    return clientOfPath(this.#pathOf(url), headers);
  }

  #pathOf(url: string): RequestedPath {
    const path = pathOf(url);
    const known = this.#paths.get(path);
    if (known !== undefined) return known;
    const read = readPath(path, this.#routes, this.#basePath);
    if (this.#posts.has(path)) this.#paths.set(path, read);
    return read;
  }

  /** Created at first use. Completions do not need it, and compiling its patterns would delay an isolate's first response. */
  get #itty() {
    this.#router ??= createRouter(this.#basePath, this.#routes);
    return this.#router;
  }

  #notFound(request: Request, context: RequestContext): Answer {
    // A preflight must succeed, or the browser hides the 404 of the request that follows behind a network error.
    if (request.method === 'OPTIONS')
      return preflight(request, METHODS.join(', '), context.settings.corsOrigins);
    const { pathname } = new URL(request.url);
    const base = this.#basePath;
    if (this.#home !== null && pathname.replace(/\/$/, '') === base && opensPage(request))
      return new Response(null, { status: 302, headers: { location: this.#home } });
    // A router in front of Weir that strips the base path is a common cause.
    const where = pathname.startsWith(`${base}/`)
      ? 'here'
      : `here: every path begins with the base path ${base}, which a router before Weir must leave in place`;
    const listed = this.#routes.flatMap(({ path, prefixes: [prefix] = V1, methods, isListed }) =>
      isListed === false ? [] : Object.keys(methods).map((method) => `${method} ${base}${prefix}${path}`),
    );
    const requested = `${request.method} ${pathname.slice(0, MAX_PATH_CHARS)}`;
    const message = `There is no ${requested} ${where}. Routes: ${listed.join(', ')}`;
    return refused(context.client, apiError('not_found', message));
  }
}

const MAX_PATH_CHARS = 200;

/** Whether a browser opens an address: no other client asks for HTML. */
function opensPage({ method, headers }: Request): boolean {
  return (method === 'GET' || method === 'HEAD') && (headers.get('accept') ?? '').includes('text/html');
}

function postHandlers(basePath: string, routes: readonly HttpRoute[]): ReadonlyMap<string, Handler> {
  const posts = new Map<string, Handler>();
  for (const { path, prefixes = V1, methods } of routes) {
    if (methods.POST === undefined || /[:(]/.test(path)) continue;
    for (const prefix of prefixes) posts.set(basePath + prefix + path, methods.POST);
  }
  return posts;
}

function createRouter(basePath: string, routes: readonly HttpRoute[]) {
  const router = IttyRouter<IRequest, [CompletionContext], Answer>({ base: basePath });
  for (const { path, prefixes = V1, methods } of routes) {
    const pattern = `(${prefixes.join('|')})${path}`;
    for (const method of METHODS) {
      const handler = methods[method];
      const verb = ITTY_VERBS[method];
      if (handler !== undefined)
        router[verb](pattern, (request, context) => handler(request, context, request.params));
    }
    const allowed = Object.keys(methods).join(', ');
    router.all(pattern, (request, context) => methodNotAllowed(request, context, allowed));
  }
  return router;
}

const ITTY_VERBS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const;

/** The response to a method that the route does not take: a preflight, a 426 for a WebSocket, or a 405. */
function methodNotAllowed(request: Request, context: RequestContext, allowed: string): Answer {
  if (request.method === 'OPTIONS') return preflight(request, allowed, context.settings.corsOrigins);
  if (request.headers.get('upgrade')?.trim().toLowerCase() === 'websocket') {
    // With this status Codex uses HTTP for the rest of its session (openai/codex#43353, 2026-09-07); after any other it first tries
    // again. The header `upgrade` that belongs to a 426 is missing because workerd removes it.
    const message = `This gateway has no WebSocket: send ${allowed} requests over HTTP to this route`;
    return refused(context.client, apiError('websocket_unsupported', message));
  }
  const error = apiError('method_not_allowed', `This route takes ${allowed}`);
  return refused(context.client, error, new Headers({ allow: allowed }));
}

/** The client protocol of errors where a path names no other. */
export const DEFAULT_CLIENT: ErrorClient = chat;

/** What a path says, with or without a route. */
interface RequestedPath {
  readonly segments: readonly string[];
  /** The routes that a segment names. */
  readonly named: readonly HttpRoute[];
  /** The name in the log. */
  readonly name: string;
}

function readPath(path: string, routes: readonly HttpRoute[], basePath: string): RequestedPath {
  const segments = path.split('/');
  const named = routes.filter(({ name }) => name !== undefined && segments.includes(name));
  const own = basePath === '' ? segments : path.slice(basePath.length).split('/');
  const name = named.find((route) => own.includes(route.name ?? ''))?.name ?? 'none';
  return { segments, named, name };
}

/**
 * The client protocol of a request, also on an unknown path: a segment such as `messages` decides, and else the header that Anthropic's or
 * Google's clients send with each request.
 */
export function clientOf({ url, headers }: Request): ErrorClient {
  return clientOfPath(readPath(pathOf(url), ROUTES, ''), headers);
}

function clientOfPath({ segments, named }: RequestedPath, headers: Headers): ErrorClient {
  const client = named.findLast((route) => route.client !== undefined)?.client;
  if (client !== undefined) return client;
  if (headers.has('anthropic-version')) return messages;
  // Routes of OpenAI's form stay so, except the list of models, which both have.
  const isOfBoth = named.every(({ name }) => name === 'models');
  const isGoogles = METHOD.test(segments.at(-1) ?? '') || (isOfBoth && headers.has('x-goog-api-key'));
  return isGoogles ? gemini : DEFAULT_CLIENT;
}

/** A method of Google's behind the last `:`. */
const METHOD = /:(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$/;

/** A model with a slash, for which `@ai-sdk/google` (4.0.121) leaves out `models/`. */
const WITHOUT_MODELS = /^(.*?\/v1(?:beta)?)\/(?!models\/|projects\/|publishers\/)/;

/** The paths of the list of models, and of Google's APIs, whose clients may send their key in the query. */
const KEY_PATH = /\/v1beta1?\/|\/models(?:\/|$)|\/publishers\//;

/** The request with a key from its query in the header that Google's clients have for it, so that no URL has a key from here on. */
export function withoutQueryKey(request: Request): Request {
  const { url } = request;
  const path = pathOf(url);
  if (!/[?&]key=/.test(url) || !(KEY_PATH.test(path) || METHOD.test(path))) return request;
  const stripped = new URL(url);
  const key = stripped.searchParams.get('key') ?? '';
  stripped.searchParams.delete('key');
  const { method } = request;
  const headers = new Headers(request.headers);
  if (/^[\x21-\x7e]+$/.test(key) && !headers.get('x-goog-api-key')) headers.set('x-goog-api-key', key);
  return method === 'GET' || method === 'HEAD'
    ? new Request(stripped, { method, headers })
    : new Request(new Request(stripped, request), { headers });
}

/** Common mistakes: doubled slashes, a base URL that was completed with `/v1` twice, and the `/openai/v1` of Groq's clients. */
const MISTAKE = /\/\/|\/v1\/v1(?=\/)|\/openai\/v1(?=\/)/;

/** The request with the path that its client meant. A request without a mistake is returned as it is. */
function normalizePath(request: Request): Request {
  const url = normalizedUrl(request);
  if (url === null) return request;
  const { method, headers } = request;
  // HTTP allows a GET with a body, but it cannot be copied. The body has no meaning here.
  return method === 'GET' || method === 'HEAD'
    ? new Request(url, { method, headers })
    : new Request(url, request);
}

/** The URL that the client meant, if the path has a common mistake; otherwise null. */
export function normalizedUrl({ url }: Request): string | null {
  const path = pathOf(url);
  const lacksModels = METHOD.test(path) && WITHOUT_MODELS.test(path);
  if (!lacksModels && !MISTAKE.test(path)) return null;
  const start = pathStart(url);
  const cleaned = path.replace(/\/{2,}/g, '/').replace(/(\/openai)?\/v1(\/v1)?(?=\/)/, '/v1');
  const meant = lacksModels ? cleaned.replace(WITHOUT_MODELS, '$1/models/') : cleaned;
  return url.slice(0, start) + meant + url.slice(start + path.length);
}
