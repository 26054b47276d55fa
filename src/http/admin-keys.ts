/** `/admin/keys`: makes, lists and revokes gateway keys, for the bearer of the admin token (K2). */
import { isAdmin } from '../auth/caller.ts';
import { createKey, listKeys, type NewKey, revokeKey } from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { type JsonObject, readArray, readText } from '../canonical/json.ts';
import type { RequestContext } from './context.ts';
import { readRequestBody } from './request-body.ts';
import { errorResponse, jsonResponse } from './respond.ts';

const MAX_BODY_BYTES = 16 * 1024;
const MAX_NAME_CHARS = 100;
const KEY_FIELDS = ['name', 'models', 'expires_at'];
const KEY_ID = /^[0-9a-f]{16}$/;
const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;
/** The year 2286: a larger number was meant in milliseconds. */
const MAX_EXPIRY_SECONDS = 1e10;
/** KV metadata, in which keys are listed, holds 1,024 bytes; the rest of a key takes 150 of them. */
const MAX_KEY_BYTES = 850;

/** The error for a request that may not use the admin routes, or null. */
async function refusal(request: Request, { settings }: RequestContext): Promise<ApiError | null> {
  if (settings.adminToken === null) {
    return apiError('admin_closed', 'The admin routes are closed: set the secret ADMIN_TOKEN to open them');
  }
  if (await isAdmin(settings.adminToken, request.headers)) return null;
  return apiError('invalid_api_key', 'Send the admin token as "Authorization: Bearer <ADMIN_TOKEN>"');
}

export async function handleCreateKey(request: Request, context: RequestContext): Promise<Response> {
  const refused = await refusal(request, context);
  if (refused !== null) return errorResponse(refused);
  const read = await readRequestBody(request, MAX_BODY_BYTES, context);
  if (read.kind === 'error') return errorResponse(read.error);
  read.lease.release();
  const asked = readNewKey(read.body, context.arrivedAt);
  if ('error' in asked) return errorResponse(asked.error);
  const { key, token } = await createKey(context.ports.store, asked.key, new Date(context.arrivedAt));
  const { id, name, ...rest } = key;
  return jsonResponse({ id, name, key: token, ...rest }, 201);
}

export async function handleListKeys(request: Request, context: RequestContext): Promise<Response> {
  const refused = await refusal(request, context);
  if (refused !== null) return errorResponse(refused);
  return jsonResponse({ object: 'list', data: await listKeys(context.ports.store) });
}

export async function handleRevokeKey(
  request: Request,
  context: RequestContext,
  id: string,
): Promise<Response> {
  const refused = await refusal(request, context);
  if (refused !== null) return errorResponse(refused);
  const revoked = KEY_ID.test(id) && (await revokeKey(context.ports.store, id));
  return revoked
    ? jsonResponse({ id, deleted: true })
    : errorResponse(apiError('not_found', 'There is no such key'));
}

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
  const bytes = new TextEncoder().encode(JSON.stringify([name, models])).length;
  if (bytes > MAX_KEY_BYTES)
    return invalid(`name and models must not take more than ${MAX_KEY_BYTES} bytes`, 'models');
  return { key: { name, models, expires_at } };
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

/** An ISO 8601 time, or seconds since the epoch as OpenAI writes times; null for never, undefined where invalid. */
function readExpiry(value: unknown): string | null | undefined {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number') {
    return value >= 0 && value <= MAX_EXPIRY_SECONDS ? new Date(value * 1000).toISOString() : undefined;
  }
  const text = readText(value) ?? '';
  const ms = ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}
