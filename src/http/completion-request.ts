/** Reads and checks a completion request's body: an invalid one is refused with what to do, before any upstream is asked. */
import { apiError } from '../canonical/error.ts';
import { isObject, type JsonObject } from '../canonical/json.ts';
import type { Route } from '../providers/provider.ts';
import { type Names, readNames } from '../routing/names.ts';
import type { RequestContext } from './context.ts';
import { type BodyResult, readRequestBody } from './request-body.ts';

/** @param pathModel the model, where the path names it */
export async function readCompletionRequest(
  request: Request,
  route: Route,
  context: RequestContext,
  pathModel?: string,
): Promise<CompletionRequestResult> {
  const read = await readRequestBody(request, context.settings.maxRequestBytes, context);
  if (read.kind === 'error') return read;
  const body = pathModel === undefined ? read.body : { ...read.body, model: pathModel };
  const named = readNames(body, route);
  const problem = PROBLEMS.find(({ routes, isInvalid }) => routes.includes(route) && isInvalid(body));
  if (named.kind === 'names' && problem === undefined) {
    return { kind: 'body', body, names: named.names, lease: read.lease };
  }
  read.lease.release();
  if (named.kind === 'error') return named;
  return { kind: 'error', error: apiError('invalid_request', problem?.message ?? '', problem?.param) };
}

export type CompletionRequestResult =
  | (Extract<BodyResult, { kind: 'body' }> & { readonly names: Names })
  | Extract<BodyResult, { kind: 'error' }>;

interface Problem {
  readonly param: string;
  readonly message: string;
  readonly routes: readonly Route[];
  readonly isInvalid: (body: JsonObject) => boolean;
}

const ALL_ROUTES: readonly Route[] = ['chat', 'completions', 'fim', 'agents'];

/** The first that fits is answered. What only a provider can judge is left to the provider. */
const PROBLEMS: readonly Problem[] = [
  {
    param: 'messages',
    message: 'messages must be a list with at least one message',
    routes: ['chat', 'agents'],
    isInvalid: (body) =>
      !Array.isArray(body.messages) || body.messages.length === 0 || !body.messages.every(isObject),
  },
  {
    param: 'prompt',
    message: 'prompt must be a text or a list',
    routes: ['completions', 'fim'],
    isInvalid: (body) => typeof body.prompt !== 'string' && !Array.isArray(body.prompt),
  },
  {
    param: 'stream',
    message: 'stream must be true or false',
    routes: ALL_ROUTES,
    isInvalid: (body) =>
      body.stream !== undefined && body.stream !== null && typeof body.stream !== 'boolean',
  },
  {
    param: 'stream_options',
    message: 'stream_options must be an object',
    routes: ALL_ROUTES,
    isInvalid: ({ stream_options }) =>
      stream_options !== undefined && stream_options !== null && !isObject(stream_options),
  },
];
