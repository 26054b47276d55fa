/** Reads and checks a completion request's body: an invalid one is refused with what to do, before any upstream is asked. */
import { apiError } from '../canonical/error.ts';
import { isObject, type JsonObject, readText } from '../canonical/json.ts';
import type { Route } from '../providers/provider.ts';
import type { RequestContext } from './context.ts';
import { type BodyResult, readRequestBody } from './request-body.ts';

/** Longer names are no model's: they would only swell headers and records. */
const MAX_MODEL_CHARS = 256;

/** @param pathModel the model, where the path names it */
export async function readCompletionRequest(
  request: Request,
  route: Route,
  context: RequestContext,
  pathModel?: string,
): Promise<BodyResult> {
  const read = await readRequestBody(request, context.settings.maxRequestBytes, context);
  if (read.kind === 'error') return read;
  const body = pathModel === undefined ? read.body : { ...read.body, model: pathModel };
  const problem = PROBLEMS.find(({ routes, isInvalid }) => routes.includes(route) && isInvalid(body));
  if (problem === undefined) return { kind: 'body', body, lease: read.lease };
  read.lease.release();
  return { kind: 'error', error: apiError('invalid_request', problem.message, problem.param) };
}

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
    param: 'model',
    message: 'model must be a name such as "deepseek/deepseek-flash" (GET /v1/models lists them)',
    routes: ['chat', 'completions', 'fim'],
    isInvalid: (body) => !isName(body.model),
  },
  {
    param: 'agent_id',
    message: 'agent_id must name the agent',
    routes: ['agents'],
    isInvalid: (body) => !isName(body.agent_id),
  },
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

function isName(value: unknown): boolean {
  const text = readText(value);
  return text !== undefined && text.length <= MAX_MODEL_CHARS && !/\p{Cc}/u.test(text);
}
