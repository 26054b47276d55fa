/** `/admin/keys`: makes, lists, shows, changes and revokes gateway keys, for the bearer of the admin token (K2, G8). */
import { isAdmin } from '../auth/caller.ts';
import { LIMIT_FIELDS, readLimits, writeLimits } from '../auth/key-limits.ts';
import {
  type GatewayKey,
  listKeys,
  makeKey,
  type NewKey,
  putKey,
  readKey,
  revokeKey,
  sizeProblem,
} from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { ADMIN } from '../http/identify.ts';
import { readRequestBody } from '../http/request-body.ts';
import { errorResponse, jsonResponse } from '../http/respond.ts';
import { isoDay } from '../metering/time.ts';
import { type JsonObject, readArray, readText } from '../shared/json.ts';
import { showKey } from './key.ts';
import { budgetProblem, budgetUnits, keyWarnings } from './key-check.ts';

const MAX_BODY_BYTES = 16 * 1024;
const MAX_NAME_CHARS = 100;
const OWN_FIELDS = ['name', 'models', 'expires_at'];
const KEY_FIELDS = [...OWN_FIELDS, ...LIMIT_FIELDS];
const KEY_ID = /^[0-9a-f]{16}$/;
const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;
/** The year 2286: a larger number was meant in milliseconds. */
const MAX_EXPIRY_SECONDS = 1e10;
type AdminHandler = (request: Request, context: RequestContext, id: string) => Promise<Response>;

/** A route that answers the bearer of the admin token alone; `id` is the path's, where it has one. */
function forAdmin(handle: AdminHandler) {
  return async (request: Request, context: RequestContext, id = ''): Promise<Response> => {
    const refused = await refusal(request, context);
    if (refused !== null) return errorResponse(refused);
    context.known.keyId = ADMIN;
    return handle(request, context, id);
  };
}

/** The error for a request that may not use the admin routes, or null. */
async function refusal(request: Request, { settings }: RequestContext): Promise<ApiError | null> {
  if (settings.adminToken === null) {
    return apiError('admin_closed', 'The admin routes are closed: set the secret ADMIN_TOKEN to open them');
  }
  if (await isAdmin(settings.adminToken, request.headers)) return null;
  return apiError('invalid_api_key', 'Send the admin token as "Authorization: Bearer <ADMIN_TOKEN>"');
}

export const handleCreateKey = forAdmin(async (request, context) => {
  const read = await readRequestBody(request, MAX_BODY_BYTES, context);
  if (read.kind === 'error') return errorResponse(read.error);
  read.value.lease.release();
  const asked = readNewKey(read.value.body, context.arrivedAt);
  if ('error' in asked) return errorResponse(asked.error);
  const prices = await context.prices.load();
  const unpriced = budgetProblem(asked.key.limits, prices);
  if (unpriced !== null) return errorResponse(unpriced);
  const { key, token, digest } = await makeKey(asked.key, new Date(context.arrivedAt));
  if (key.limits !== null) {
    const changed = await context.keyObjects.setLimits(context, key.id, key.limits);
    if (changed.kind === 'error') return errorResponse(changed.error);
  }
  await putKey(context.ports.store, key, digest);
  const { id, name, ...rest } = writeKey(key);
  return jsonResponse({ id, name, key: token, ...rest, ...keyWarnings(key, context, prices) }, 201);
});

/** A key as answers have it: its limits stand beside its other fields, as in the request that set them. */
function writeKey({ limits, ...key }: GatewayKey): Omit<GatewayKey, 'limits'> & JsonObject {
  return { ...key, ...limits };
}

export const handleListKeys = forAdmin(async (_request, context) => {
  const keys = await listKeys(context.ports.store);
  const budget_units = budgetUnits(await context.prices.load());
  return jsonResponse({ object: 'list', data: keys.map(writeKey), budget_units });
});

/** `GET /admin/keys/:id`: one key, its limits and how it stands against them, as its bearer sees it (G8). */
export const handleShowKey = forAdmin(async (_request, context, id) => {
  const found = await findKey(context, id);
  return found === null ? errorResponse(NO_SUCH_KEY) : showKey(found.key, context);
});

/**
 * `PATCH /admin/keys/:id`: what its body names is set; null takes a limit, an expiry or a list of models away; the rest
 * stays (G8).
 */
export const handleChangeKey = forAdmin(async (request, context, id) => {
  const read = await readRequestBody(request, MAX_BODY_BYTES, context);
  if (read.kind === 'error') return errorResponse(read.error);
  read.value.lease.release();
  const { body } = read.value;
  const found = await findKey(context, id);
  if (found === null) return errorResponse(NO_SUCH_KEY);
  const asked = readNewKey({ name: found.key.name, ...body }, context.arrivedAt);
  if ('error' in asked) return errorResponse(asked.error);
  const prices = await context.prices.load();
  const unpriced = budgetProblem(asked.key.limits, prices);
  if (unpriced !== null) return errorResponse(unpriced);
  const named = Object.entries(asked.key).filter(([field]) => field !== 'limits' && field in body);
  const limits = Object.fromEntries(Object.entries(body).filter(([field]) => !OWN_FIELDS.includes(field)));
  const change = { key: found.key, fields: Object.fromEntries(named), limits };
  const result = await context.keyObjects.changeKey(context, change);
  context.knownKeys.forget(id);
  if (result.kind === 'error') return errorResponse(result.error);
  const changed = result.value;
  if (changed.kind === 'revoked') return errorResponse(NO_SUCH_KEY);
  if (changed.kind === 'invalid') return errorResponse(invalid(changed.message, changed.param).error);
  return jsonResponse({ ...writeKey(changed.key), ...keyWarnings(changed.key, context, prices) });
});

export const handleRevokeKey = forAdmin(async (_request, context, id) => {
  const revoked = KEY_ID.test(id) && (await revokeKey(context.ports.store, id));
  context.knownKeys.forget(id);
  if (!revoked) return errorResponse(NO_SUCH_KEY);
  // The key is already revoked, even if its object can't be reached: the object refuses concurrent changes and cleans up.
  await context.keyObjects.revokeKey(context, id);
  return jsonResponse({ id, deleted: true });
});

async function findKey({ ports }: RequestContext, id: string) {
  return KEY_ID.test(id) ? await readKey(ports.store, id) : null;
}

const NO_SUCH_KEY = apiError('not_found', 'There is no such key');

function readNewKey(
  body: JsonObject,
  nowMs: number,
): { readonly key: NewKey } | { readonly error: ApiError } {
  const unknown = Object.keys(body).find((field) => !KEY_FIELDS.includes(field));
  if (unknown !== undefined)
    return invalid(`A key has ${KEY_FIELDS.join(', ')}, and nothing else`, unknown.slice(0, MAX_NAME_CHARS));
  const name = readText(body.name);
  if (name === undefined || name.length > MAX_NAME_CHARS) {
    return invalid(`name must be a text of at most ${MAX_NAME_CHARS} characters`, 'name');
  }
  const models = readModels(body.models);
  if (models === undefined) return invalid('models must be a list of globs, as ["deepseek/*"]', 'models');
  const expires_at = readExpiry(body.expires_at);
  if (expires_at === undefined)
    return invalid(
      'expires_at must be a time, as "2027-01-01T00:00:00Z", or seconds since 1970',
      'expires_at',
    );
  if (expires_at !== null && Date.parse(expires_at) <= nowMs)
    return invalid('expires_at must be in the future', 'expires_at');
  const read = readLimits(body);
  if (read.kind === 'invalid') return invalid(read.message, read.param);
  const limits = writeLimits(read.limits);
  const key = { name, models, expires_at, limits };
  const tooLarge = sizeProblem(key);
  return tooLarge === null ? { key } : invalid(tooLarge, 'models');
}

function invalid(message: string, param: string): { readonly error: ApiError } {
  return { error: apiError('invalid_request', message, param) };
}

/** The globs, null for every model, undefined where invalid. An empty list would lock its key out of everything. */
function readModels(value: unknown): readonly string[] | null | undefined {
  if (value === undefined || value === null) return null;
  const globs = readArray(value).filter((glob) => typeof glob === 'string' && glob !== '');
  const isSound = globs.length > 0 && globs.length === readArray(value).length;
  return isSound ? globs.map(String) : undefined;
}

/** An ISO 8601 time of a day that its month has, or seconds since the epoch as OpenAI writes times; null for never, undefined where invalid. */
function readExpiry(value: unknown): string | null | undefined {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number') {
    return value >= 0 && value <= MAX_EXPIRY_SECONDS ? new Date(value * 1000).toISOString() : undefined;
  }
  const text = readText(value) ?? '';
  const ms = ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
  const day = text.slice(0, 10);
  return Number.isNaN(ms) || isoDay(Date.parse(day)) !== day ? undefined : new Date(ms).toISOString();
}
