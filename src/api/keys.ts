/** `GET /v1/key` shows the caller's own gateway key; `/admin/keys` creates, lists, shows, changes and revokes keys for the admin. */
import { type Caller, hasUserLimits, UNREADABLE_KEY } from '../auth/caller.ts';
import {
  type Budget,
  LIMIT_FIELDS,
  type LimitStatus,
  limitsOfUser,
  periodName,
  type RateStatus,
  readLimits,
  TOKENS,
  unusedStatus,
  writeAmount,
  writeLimits,
} from '../auth/key-limits.ts';
import {
  type GatewayKey,
  type KeyChange,
  listKeys,
  makeKey,
  type NewKey,
  putKey,
  readKey,
  revokeKey,
  sizeProblem,
} from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { forAdmin } from '../http/admin.ts';
import type { KeptOwner, RequestContext } from '../http/context.ts';
import { identifyCaller, readRequestBody } from '../http/request.ts';
import { errorResponse, jsonResponse } from '../http/respond.ts';
import type { PriceTable } from '../metering/pricing/price.ts';
import { MAX_TAGS, TAG_NAME } from '../metering/record.ts';
import { isoDay } from '../metering/time.ts';
import { PROVIDERS } from '../providers/index.ts';
import { findAlias } from '../routing/targets.ts';
import { providerOf } from '../settings/aliases.ts';
import { configuredMaker } from '../settings/bare-models.ts';
import { howToList } from '../settings/feature-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { globsOverlap } from '../shared/glob.ts';
import { isObject, type JsonObject, objectOf, omit, parseJson, readArray, readText } from '../shared/json.ts';
import { nearestName } from '../shared/nearest.ts';
import { failure, ok, type Result } from '../shared/result.ts';

/** `GET /v1/key` */
export async function handleOwnKey(request: Request, context: RequestContext): Promise<Response> {
  const identified = await identifyCaller(request, context);
  if (identified.kind === 'error') return errorResponse(identified.error);
  const caller = identified.value;
  const { key, keyId, models } = caller;
  const unknown = { name: null, expires_at: null, created_at: null, limits: null };
  const user = hasUserLimits(caller) ? await context.factNames.ofCaller(request.headers, caller) : undefined;
  const shown = { ...(key ?? unknown), id: keyId, models, fixedUser: caller.facts.user };
  return showKey(shown, context, user);
}

/** `POST /admin/keys` */
export const handleCreateKey = forAdmin(async (request, context) => {
  const body = await readBody(request, context);
  if (body.kind === 'error') return errorResponse(body.error);
  const read = await readNewKey(body.value, context);
  if (read.kind === 'error') return errorResponse(read.error);
  const { newKey, prices } = read.value;
  const { key, token, digest } = await makeKey(newKey, new Date(context.arrivedAt));
  // Before the key exists in KV, so that it is never used without its limits.
  if (key.limits !== null) {
    const set = await context.keyObjects.setLimits(context, key.id, key.limits);
    if (set.kind === 'error') return errorResponse(set.error);
  }
  await putKey(context.ports.store, key, digest);
  const { id, name, ...rest } = writeKey(key);
  return jsonResponse({ id, name, key: token, ...rest, ...keyWarnings(key, context, prices) }, 201);
});

/** `GET /admin/keys` */
export const handleListKeys = forAdmin(async (_request, context) => {
  const { keys, unreadable } = await listKeys(context.ports.store);
  const budget_units = budgetUnits(await context.prices.load());
  // Absent where every key can be read.
  const ids = unreadable.length === 0 ? {} : { unreadable };
  return jsonResponse({ object: 'list', data: keys.map(writeKey), budget_units, ...ids });
});

/** `GET /admin/keys/:id`: the same response as the key's own `GET /v1/key`, with the use of the user that `?user=` names. */
export const handleShowKey = forAdmin(async (request, context, id) => {
  const found = await findKey(context, id);
  if (found === null) return errorResponse(NO_SUCH_KEY);
  if (found === 'unreadable') return errorResponse(UNREADABLE_KEY);
  const name = new URL(request.url).searchParams.get('user');
  const user = name === null ? undefined : await context.factNames.user(name);
  return showKey({ ...found.key, fixedUser: found.key.user ?? null }, context, user);
});

/** `PATCH /admin/keys/:id`: sets the fields that the body names. Null removes a limit, an expiry or a list of models. */
export const handleChangeKey = forAdmin(async (request, context, id) => {
  const body = await readBody(request, context);
  if (body.kind === 'error') return errorResponse(body.error);
  const found = await findKey(context, id);
  if (found === null) return errorResponse(NO_SUCH_KEY);
  if (found === 'unreadable') return errorResponse(UNREADABLE_KEY);
  const read = await readNewKey({ name: found.key.name, ...body.value }, context);
  if (read.kind === 'error') return errorResponse(read.error);
  const { newKey, prices } = read.value;
  const named = Object.entries(newKey).filter(([field]) => field !== 'limits' && field in body.value);
  const limits = Object.entries(body.value).filter(([field]) => !OWN_FIELDS.includes(field));
  const change = { key: found.key, fields: Object.fromEntries(named), limits: Object.fromEntries(limits) };
  return changedKey(context, id, change, prices);
});

async function changedKey(
  context: RequestContext,
  id: string,
  change: KeyChange,
  prices?: PriceTable,
): Promise<Response> {
  const result = await context.keyObjects.changeKey(context, change);
  context.knownKeys.forget(id);
  if (result.kind === 'error') return errorResponse(result.error);
  const changed = result.value;
  if (changed.kind === 'revoked') return errorResponse(NO_SUCH_KEY);
  if (changed.kind === 'invalid') return errorResponse(invalid(changed.message, changed.param).error);
  const table = prices ?? (await context.prices.load());
  return jsonResponse({ ...writeKey(changed.key), ...keyWarnings(changed.key, context, table) });
}

/** `GET /admin/keys/:id/limits`: the limits as the key's object has stored them, also where it cannot read them. */
export const handleShowLimits = forAdmin(async (_request, context, id) => {
  const found = await findKey(context, id);
  if (found === null) return errorResponse(NO_SUCH_KEY);
  const stored = await context.keyObjects.readLimitsRow(context, id);
  if (stored.kind === 'error') return errorResponse(stored.error);
  const { row, problem } = stored.value;
  const limits = row === null || problem !== null ? null : omit(objectOf(parseJson(row)), 'version');
  return jsonResponse({ object: 'key.limits', id, limits, row, problem });
});

/** `PUT /admin/keys/:id/limits`: the key has these limits and no others, whatever it had before. */
export const handleReplaceLimits = forAdmin(async (request, context, id) => {
  const body = await readBody(request, context);
  if (body.kind === 'error') return errorResponse(body.error);
  const other = Object.keys(body.value).find((field) => !LIMIT_FIELDS.some((known) => known === field));
  if (other !== undefined)
    return errorResponse(
      invalid(`Limits are ${LIMIT_FIELDS.join(', ')}, and nothing else`, other.slice(0, MAX_NAME_CHARS))
        .error,
    );
  const budget = budgetProblem(body.value, await context.prices.load());
  return budget === null ? replaceLimits(context, id, body.value) : errorResponse(budget);
});

/** `DELETE /admin/keys/:id/limits`: the key has no limits from now on. */
export const handleRemoveLimits = forAdmin((_request, context, id) => replaceLimits(context, id, {}));

async function replaceLimits(context: RequestContext, id: string, limits: JsonObject): Promise<Response> {
  const found = await findKey(context, id);
  if (found === null) return errorResponse(NO_SUCH_KEY);
  if (found === 'unreadable') return errorResponse(UNREADABLE_KEY);
  const change = { key: found.key, fields: {}, limits, replacesLimits: true };
  return changedKey(context, id, change);
}

/** `DELETE /admin/keys/:id` */
export const handleRevokeKey = forAdmin(async (_request, context, id) => {
  const revoked = KEY_ID.test(id) && (await revokeKey(context.ports.store, id));
  context.knownKeys.forget(id);
  if (!revoked) return errorResponse(NO_SUCH_KEY);
  // The key is already revoked, even if its object can't be reached: the object refuses concurrent changes and cleans up.
  await context.keyObjects.revokeKey(context, id);
  return jsonResponse({ id, deleted: true });
});

const KEY_ID = /^[0-9a-f]{16}$/;
const NO_SUCH_KEY = apiError('not_found', 'There is no such key');

async function findKey({ ports }: RequestContext, id: string) {
  return KEY_ID.test(id) ? await readKey(ports.store, id) : null;
}

const MAX_BODY_BYTES = 16 * 1024;

async function readBody(request: Request, context: RequestContext): Promise<Result<JsonObject, ApiError>> {
  const read = await readRequestBody(request, MAX_BODY_BYTES, context);
  if (read.kind === 'error') return read;
  read.value.lease.release();
  return ok(read.value.body);
}

const MAX_NAME_CHARS = 100;
/** The fields besides limits. */
const OWN_FIELDS = ['name', 'models', 'expires_at', 'user', 'tags', 'require_user'];
const KEY_FIELDS = [...OWN_FIELDS, ...LIMIT_FIELDS];

/** Fields that need the users of requests. */
const USER_FIELDS = ['require_user', 'per_user'];

/** Reads the fields of a new or changed key. Loads the prices, because its budget must have a currency of one. */
async function readNewKey(
  body: JsonObject,
  context: RequestContext,
): Promise<Result<{ readonly newKey: NewKey; readonly prices: PriceTable }, ApiError>> {
  const fields = readFields(body, context.arrivedAt);
  if (fields.kind === 'error') return fields;
  const needsUsers = USER_FIELDS.find((field) => (body[field] ?? false) !== false);
  if (needsUsers !== undefined && !context.enforces.users)
    return invalid(`${needsUsers} needs attribution(): ${howToList('attribution')}`, needsUsers);
  const prices = await context.prices.load();
  const problem = budgetProblem(fields.value.limits, prices);
  return problem === null ? ok({ newKey: fields.value, prices }) : failure(problem);
}

function readFields(body: JsonObject, nowMs: number): Result<NewKey, ApiError> {
  const unknown = Object.keys(body).find((field) => !KEY_FIELDS.includes(field));
  if (unknown !== undefined)
    return invalid(`A key has ${KEY_FIELDS.join(', ')}, and nothing else`, unknown.slice(0, MAX_NAME_CHARS));
  const name = readText(body.name);
  if (name === undefined || name.length > MAX_NAME_CHARS)
    return invalid(`name must be a text of at most ${MAX_NAME_CHARS} characters`, 'name');
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
  const limits = readLimits(body);
  if (limits.kind === 'invalid') return invalid(limits.message, limits.param);
  const facts = readFacts(body);
  if (facts.kind === 'error') return facts;
  const fields = { name, models, expires_at, limits: writeLimits(limits.limits), ...facts.value };
  const tooLarge = sizeProblem(fields);
  return tooLarge === null ? ok(fields) : invalid(tooLarge, 'models');
}

function invalid(message: string, param: string) {
  return failure(apiError('invalid_request', message, param));
}

/** Reads what the key fixes about its requests. All three fields are set, so that a change can remove them. */
function readFacts(body: JsonObject): Result<Pick<NewKey, 'user' | 'tags' | 'require_user'>, ApiError> {
  const { user = null, tags = null, require_user = null } = body;
  if (user !== null && !(typeof user === 'string' && user.trim() !== '' && user.length <= MAX_NAME_CHARS))
    return invalid(`user must be a text of at most ${MAX_NAME_CHARS} characters, or null`, 'user');
  const entries = isObject(tags) ? Object.entries(tags) : [];
  const areTags = entries.every(
    ([name, value]) =>
      TAG_NAME.test(name) &&
      typeof value === 'string' &&
      value.trim() !== '' &&
      value.length <= MAX_NAME_CHARS,
  );
  if ((tags !== null && !isObject(tags)) || entries.length > MAX_TAGS || !areTags)
    return invalid(
      `tags must be an object as {"team": "search"}, of at most ${MAX_TAGS} names of a-z, 0-9, _ . - and at most 32 characters`,
      'tags',
    );
  if (require_user !== null && typeof require_user !== 'boolean')
    return invalid('require_user must be true or false', 'require_user');
  return ok({
    user: user?.trim(),
    tags:
      entries.length === 0
        ? undefined
        : Object.fromEntries(entries.map(([name, value]) => [name, String(value)])),
    require_user: require_user === true ? true : undefined,
  });
}

/** The globs; null for every model; undefined if invalid. An empty list is invalid: its key could use no model. */
function readModels(value: unknown): readonly string[] | null | undefined {
  if (value === undefined || value === null) return null;
  const globs = readArray(value).filter((glob) => typeof glob === 'string' && glob !== '');
  const isValid = globs.length > 0 && globs.length === readArray(value).length;
  return isValid ? globs.map(String) : undefined;
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;
/** The year 2286. A larger number is a time in milliseconds by mistake. */
const MAX_EXPIRY_SECONDS = 1e10;

/** Reads an ISO 8601 time, or seconds since the epoch as in OpenAI's API. Null: never; undefined: invalid, such as February 30. */
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

/** The units that a budget may have: the currencies of the prices, those with the most prices first, and tokens. */
function budgetUnits(table: PriceTable): string[] {
  const byCurrency = Map.groupBy(table.flat(), ({ currency }) => currency);
  const currencies = [...byCurrency]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([currency]) => currency);
  return [...currencies, TOKENS];
}

/** The error for a budget in a currency without any price. No request could be charged to it. */
function budgetProblem(limits: JsonObject | null, table: PriceTable): ApiError | null {
  const units = budgetUnits(table);
  for (const { budget, param } of budgetsOf(limits)) {
    if (units.includes(budget.unit)) continue;
    const message = `No model has a price in ${budget.unit}, so nothing could be counted in it: a budget is in ${units.join(', ')}, or in the currency of prices that PRICES adds`;
    return apiError('invalid_request', message, param);
  }
  return null;
}

/** The budget of a key and that of each of its users, with the fields that set them. */
function budgetsOf(limits: JsonObject | null): { readonly budget: Budget; readonly param: string }[] {
  const read = readLimits(limits ?? {});
  if (read.kind !== 'limits') return [];
  const { budget, perUser } = read.limits;
  const own = budget === null ? [] : [{ budget, param: 'budget' }];
  const ofUsers = perUser?.budget ?? null;
  return ofUsers === null ? own : [...own, { budget: ofUsers, param: 'per_user' }];
}

interface KeyWarning {
  /** The field that the warning is about; null: the whole key. */
  readonly param: string | null;
  readonly message: string;
}

/** Reasons why the key can't be used now. They are no errors, because settings may change: a provider may be set up later. */
function keyWarnings(
  key: GatewayKey,
  { settings, arrivedAt }: Pick<RequestContext, 'settings' | 'arrivedAt'>,
  table: PriceTable,
): { readonly warnings?: readonly KeyWarning[] } {
  const { models, expires_at, limits } = key;
  const warnings: KeyWarning[] = [];
  const warn = (param: string | null, message: string) => warnings.push({ param, message });
  if (settings.auth !== 'keys' && settings.auth !== 'access')
    warn(null, `AUTH=${settings.auth} takes no gateway keys: this one is not used`);
  if (expires_at !== null && Date.parse(expires_at) <= arrivedAt)
    warn('expires_at', `This key expired at ${expires_at}`);
  const globProblems = (models ?? []).map((glob) => globProblem(glob, settings));
  for (const problem of globProblems) if (problem !== null) warn('models', problem);
  const matchesModels = models === null || globProblems.includes(null);
  for (const { budget, param } of budgetsOf(limits)) {
    if (budget.mode !== 'hard') continue;
    if (budget.amount === 0) warn(param, 'A hard budget of 0 refuses every request');
    else if (matchesModels && budget.unit !== TOKENS && !isPriced(models, budget.unit, settings, table))
      warn(
        param,
        `No model that this key may use has a price in ${budget.unit}: a hard budget in it refuses every request`,
      );
  }
  return warnings.length === 0 ? {} : { warnings };
}

/** Why a glob matches no model address of this deployment; null if it may match one. */
function globProblem(glob: string, { providers, aliases }: Settings): string | null {
  if ([...providers.keys()].some((id) => globsOverlap(glob, `${id}/*`))) return null;
  const alias = findAlias(aliases, glob, providers);
  if (alias !== undefined) {
    const addresses = alias.steps.map(({ address }) => address).join(', ');
    return `${glob} is an alias, and a glob is compared with the addresses that it stands for: name ${addresses}`;
  }
  const id = providerOf(glob);
  if (id === '') {
    const maker = configuredMaker(glob, providers);
    const known = maker === null ? '<provider>/<model>, or <provider>/*' : `${maker}/${glob}`;
    return `${glob} matches no model: write ${known}`;
  }
  if (PROVIDERS.some((provider) => provider.id === id))
    return `${glob} matches no model: the provider ${id} is not set up in this deployment`;
  const known = [...providers.keys(), ...PROVIDERS.map((provider) => provider.id)];
  const nearest = nearestName(id, known);
  const hint =
    nearest === undefined
      ? `Providers here: ${[...providers.keys()].join(', ') || 'none yet'}`
      : `Did you mean ${nearest}${glob.slice(id.length)}?`;
  return `${glob} matches no model: there is no provider ${id}. ${hint}`;
}

function isPriced(
  models: readonly string[] | null,
  currency: string,
  { providers }: Settings,
  table: PriceTable,
): boolean {
  const prices = table.flat().filter((price) => price.currency === currency);
  return [...providers].some(([id, { priceIds }]) =>
    prices.some(
      (price) =>
        priceIds.includes(price.provider) &&
        price.models.some((name) => (models ?? ['*']).some((glob) => globsOverlap(glob, `${id}/${name}`))),
    ),
  );
}

/** A key in a response: its limits stand beside its other fields, as in the request that set them. */
function writeKey({ limits, ...key }: GatewayKey): Omit<GatewayKey, 'limits'> & JsonObject {
  return { ...key, ...limits };
}

type ShownKey = Pick<Caller, 'models'> &
  Pick<GatewayKey, 'user' | 'tags' | 'require_user'> &
  Readonly<Record<'name' | 'expires_at' | 'created_at', string | null>> & {
    readonly id: string;
    readonly limits: JsonObject | null;
  } & Pick<KeptOwner, 'fixedUser'>;

/**
 * A key with its limits and what it has used of them.
 * @param ownUser whose use of its own limits is shown, as it is stored; null: requests without a user; undefined: it is not shown
 */
async function showKey(shown: ShownKey, context: RequestContext, ownUser?: string | null): Promise<Response> {
  const { id, name, models, expires_at, created_at, user, tags, require_user, fixedUser } = shown;
  // Absent where the key fixes nothing.
  const facts = { user, tags, require_user };
  const kept = await context.showKept?.({ keyId: id, fixedUser }, context);
  if (kept?.kind === 'error') return errorResponse(kept.error);
  // Absent where no responses are kept.
  const key = { object: 'key', id, name, models, expires_at, created_at, ...facts, kept: kept?.value };
  if (shown.limits === null) return jsonResponse({ ...key, limits: null });
  const status = await context.keyObjects.readLimitStatus(context, id, shown.limits);
  if (status.kind === 'error') return errorResponse(status.error);
  const { limits } = status.value;
  const written = { ...key, limits: writeLimits(limits), ...writeStatus(status.value, context.arrivedAt) };
  if (limits.perUser === null || ownUser === undefined) return jsonResponse(written);
  const own = await context.keyObjects.readUserStatus(context, id, ownUser, limits);
  if (own.kind === 'error') return errorResponse(own.error);
  const used = own.value ?? unusedStatus(limitsOfUser(limits), context.arrivedAt);
  return jsonResponse({ ...written, per_user: { user: ownUser, ...writeStatus(used, context.arrivedAt) } });
}

/** A field is null where the key has no such limit. */
function writeStatus(status: LimitStatus, now: number): JsonObject {
  const { limits, requests, tokens, running } = status;
  return {
    budget: writeBudget(status, now),
    requests: writeRate(limits.rpm, requests),
    tokens: writeRate(limits.tpm, tokens),
    concurrent: limits.maxConcurrent === null ? null : { limit: limits.maxConcurrent, running },
  };
}

/** Amounts are in the unit of the budget. */
function writeBudget({ limits, budget: status }: LimitStatus, now: number): JsonObject | null {
  const { budget } = limits;
  if (budget === null || status === null) return null;
  const { unit, amount, per } = budget;
  const { spent, reserved, estimated, unreported, resetsAt } = status;
  return {
    unit,
    period: periodName(per, now),
    limit: writeAmount(amount, unit),
    spent: writeAmount(spent, unit),
    reserved: writeAmount(reserved, unit),
    remaining: writeAmount(amount - spent - reserved, unit),
    // The part of `spent` for requests that were never settled.
    estimated: writeAmount(estimated, unit),
    // The part of `spent` that was charged at its upper bound, because the provider did not report it.
    unreported: writeAmount(unreported, unit),
    resets_at: resetsAt === null ? null : new Date(resetsAt).toISOString(),
  };
}

function writeRate(limit: number | null, rate: RateStatus | null): JsonObject | null {
  if (limit === null || rate === null) return null;
  return { limit, remaining: Math.max(0, limit - rate.used), resets_in_ms: rate.resetMs };
}
