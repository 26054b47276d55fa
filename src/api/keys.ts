/** `GET /v1/key` shows the caller's own gateway key; `/admin/keys` creates, lists, shows, changes and revokes keys for the admin. */

import { invalidField, readFields, unknownFieldOf } from '../auth/body-fields.ts';
import { type Caller, hasUserLimits, UNREADABLE_KEY } from '../auth/caller.ts';
import { factsOf, type KeyFacts } from '../auth/key-facts.ts';
import {
  type Budget,
  type BudgetUse,
  budgetsOf,
  budgetUses,
  encodeLimits,
  enforcedCurrencies,
  formatAmount,
  isEnforced,
  LIMIT_FIELDS,
  type LimitStatus,
  type Limits,
  limitsOfUser,
  periodName,
  type RateStatus,
  readLimits,
  TOKENS,
  teamOf,
  unusedStatus,
  writeAmount,
  writeLimits,
} from '../auth/key-limits.ts';
import { showState } from '../auth/key-state.ts';
import type { UsageToken } from '../auth/key-views.ts';
import {
  deleteSecrets,
  type GatewayKey,
  type KeyChange,
  keyId,
  listKeys,
  makeKey,
  makeToken,
  type NewKey,
  putKey,
  putSecret,
  readKey,
  revokeKey,
  secretsOf,
  sizeProblem,
  writeKey,
} from '../auth/keys.ts';
import { readTeam, type Team, withTeam } from '../auth/teams.ts';
import { deleteUsageToken, listUsageTokens, readUsageToken } from '../auth/usage-tokens.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isUnreadable, secretUnreadable } from '../canonical/secret.ts';
import { forAdmin, forAdminOrLead } from '../http/admin.ts';
import type { KeptOwner, RequestContext } from '../http/context.ts';
import { identifyCaller, readRequestBody } from '../http/request.ts';
import { type Answer, jsonResponse } from '../http/respond.ts';
import { hasPriceIn } from '../metering/pricing/highest-price.ts';
import { type PriceTable, pricesOf } from '../metering/pricing/price.ts';
import { HOUR_MS, isoTime } from '../metering/time.ts';
import { PROVIDERS } from '../providers/index.ts';
import { findAlias } from '../routing/targets.ts';
import { providerOf } from '../settings/aliases.ts';
import { configuredMaker } from '../settings/bare-models.ts';
import { howToList } from '../settings/feature-settings.ts';
import { placeError } from '../settings/placement.ts';
import type { Settings } from '../settings/settings.ts';
import { globsOverlap, matchesAnyGlob } from '../shared/glob.ts';
import { type JsonObject, objectOf, omit, parseJson } from '../shared/json.ts';
import { nearestName } from '../shared/nearest.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { recordAct, recordRevocation } from './audit.ts';
import { KEY_BODY, ROTATION_BODY } from './bodies.ts';
import type {
  BudgetView,
  ChangedKeyView,
  KeyListView,
  KeyStatusView,
  KeyWarning,
  LimitUse,
  NewKeyView,
  RateView,
  ShownKeyView,
} from './key-views.ts';
import { USE_PARAMS } from './parameters.ts';
import { readTopUp, recordAdded, writeTopUp } from './top-ups.ts';
import { makeUsageToken } from './usage-tokens.ts';

/** `GET /v1/key` */
export async function handleOwnKey(request: Request, context: RequestContext): Promise<Answer> {
  const identified = await identifyCaller(request, context);
  if (identified.kind === 'error') return identified.error;
  const caller = identified.value;
  const { key, keyId, models } = caller;
  const unknown = { name: null, expires_at: null, created_at: null, limits: null };
  const { user: fixedUser } = caller.facts;
  const isNamed = fixedUser !== null || hasUserLimits(caller);
  const user = isNamed ? await context.users.names.ofCaller(request.headers, caller) : undefined;
  if (isUnreadable(user)) return secretUnreadable(user);
  // Cloudflare Access or the host names the user of a caller whose key names none.
  const named = key?.user === undefined && fixedUser !== null && user ? { user } : {};
  const shown = { ...(key ?? unknown), ...named, id: keyId, models, fixedUser };
  const { personOf, limits = null } = caller;
  if (personOf === undefined) return showKey(shown, context, hasUserLimits(caller) ? { ownUser: user } : {});
  const inTeam = { ...shown, models: personOf.models, limits };
  return showKey(inTeam, context, { ownUser: user, personOf });
}

/** `POST /admin/keys`: a key, or with `scope` a token that reads usage. */
export const handleCreateKey = forAdminOrLead(async (request, context) => {
  const read = await readBody(request, context);
  const body = read.kind === 'error' ? read : inOwnTeam(read.value, context);
  if (body.kind === 'error') return body.error;
  if (body.value.scope !== undefined) return makeUsageToken(body.value, context);
  const keyRequest = await readNewKey(body.value, context);
  if (keyRequest.kind === 'error') return keyRequest.error;
  const place = await placeProblem(context);
  if (place !== null) return place;
  const { newKey, prices } = keyRequest.value;
  const { key, token, digest } = await makeKey(newKey, new Date(context.arrivedAt));
  // Before the key exists in KV, so that it is never used without its limits.
  if (key.limits !== null) {
    const set = await context.keyObjects.setLimits(context, key.id, key.limits);
    if (set.kind === 'error') return set.error;
  }
  await putKey(context.ports.store, key, digest);
  await recordAct(context, { action: 'key_created', keyId: key.id, before: null, after: key });
  const namesakes = [...(await namesakeWarnings(key, context)), ...(await teamWarnings(key, context))];
  return jsonResponse(writeSecret(key, token, context, prices, namesakes), 201);
});

/** The body, which for a lead must be of a key in its own team. */
function inOwnTeam(body: JsonObject, { known }: RequestContext): Result<JsonObject, ApiError> {
  const { team } = known;
  if (team === null) return ok(body);
  if (body.scope !== undefined) return invalidField('The token of a team makes no tokens', 'scope');
  if ('team' in body && body.team !== team)
    return invalidField('The token of a team manages the keys of its team, which stay there', 'team');
  return ok({ ...body, team });
}

/** Whether the admin, or the lead of its team, may see a key. */
function isShown({ limits }: Pick<GatewayKey, 'limits'>, { known }: RequestContext): boolean {
  return known.team === null || teamOf(limits) === known.team;
}

/** The names of keys that a warning lists. */
const MAX_SHOWN_NAMESAKES = 5;

/** The warning that other keys have this name, so that only the ids tell them apart; none where KV cannot be read. */
async function namesakeWarnings(
  { id, name }: Pick<GatewayKey, 'id' | 'name'>,
  context: RequestContext,
): Promise<readonly KeyWarning[]> {
  const { keys } = await listKeys(context.ports.store).catch(() => ({ keys: [] }));
  const ids = keys
    .filter((key) => key.name === name && key.id !== id && isShown(key, context))
    .map((key) => key.id);
  if (ids.length === 0) return [];
  const shown = ids.slice(0, MAX_SHOWN_NAMESAKES).join(', ');
  const rest = ids.length > MAX_SHOWN_NAMESAKES ? ` and ${ids.length - MAX_SHOWN_NAMESAKES} more` : '';
  const others = ids.length === 1 ? 'Another key has' : `${ids.length} other keys have`;
  return [{ param: 'name', message: `${others} this name: ${shown}${rest}` }];
}

/** Warnings about limits of a key that its team makes useless. None where KV does not have the team yet. */
async function teamWarnings(
  { limits }: Pick<GatewayKey, 'limits'>,
  { ports }: RequestContext,
): Promise<readonly KeyWarning[]> {
  const id = teamOf(limits);
  const team = id === null ? null : await readTeam(ports.store, id).catch(() => null);
  if (team === null) return [];
  const own = readLimits(limits ?? {});
  const ofTeam = readLimits(team.limits ?? {});
  if (own.kind === 'invalid' || ofTeam.kind === 'invalid') return [];
  const currencies = enforcedCurrencies(withTeam(limits, team));
  const message = `The budgets of this key and of its team are in ${currencies.join(' and ')}: a model has a price in one of them, and is refused`;
  return [
    ...aboveTeam(own.limits, ofTeam.limits),
    ...(currencies.length > 1 ? [{ param: 'budget', message }] : []),
  ];
}

/**
 * Warnings about limits of a key, or of each key or user of a team, that are above those of the team.
 * @param under the field that has them; absent: each is a field of its own
 */
export function aboveTeam(own: Limits, team: Limits, under?: string): readonly KeyWarning[] {
  const warning = (field: string, limit: string, ofTeam: string): KeyWarning => ({
    param: under ?? field,
    message: `${field} of ${limit} is above that of the team, ${ofTeam}, which holds first`,
  });
  const budgets = budgetsOf(own).flatMap(({ unit, per, amount }) => {
    const above = budgetsOf(team).find((one) => one.unit === unit && one.per === per);
    if (above === undefined || amount <= above.amount) return [];
    return [warning('budget', formatAmount(amount, unit), formatAmount(above.amount, unit))];
  });
  const counts = (['rpm', 'tpm', 'maxConcurrent'] as const).flatMap((name) => {
    const [limit, above] = [own[name], team[name]];
    const field = name === 'maxConcurrent' ? 'max_concurrent' : name;
    return limit === null || above === null || limit <= above
      ? []
      : [warning(field, String(limit), String(above))];
  });
  return [...budgets, ...counts];
}

/** The jurisdiction of objects is chosen before the first key. */
export async function placeProblem({ deployment: { placeCheck } }: RequestContext): Promise<ApiError | null> {
  try {
    await placeCheck.verify();
    return null;
  } catch (error) {
    const problem = placeError(error);
    if (problem === null) throw error;
    return problem;
  }
}

/** `GET /admin/keys` */
export const handleListKeys = forAdminOrLead(async (_request, context) => {
  const { store } = context.ports;
  const [{ keys, revoked, unreadable }, tokens] = await Promise.all([
    listKeys(store),
    listUsageTokens(store),
  ]);
  const budget_units = budgetUnits(await context.prices.load());
  const isLead = context.known.team !== null;
  // Absent where every key can be read.
  const ids = unreadable.length === 0 ? {} : { unreadable };
  const list: KeyListView = {
    object: 'list',
    data: keys.filter((key) => isShown(key, context)).map((key) => writeKey(key, context.arrivedAt)),
    ...(isLead ? { tokens: [], revoked: [] } : { tokens, revoked }),
    budget_units,
    ...(!isLead && ids),
  };
  return jsonResponse(list);
});

/** `GET /admin/keys/:id`: the same response as the key's own `GET /v1/key`, with the use of the user that `?user=` names. */
export const handleShowKey = forAdminOrLead(async (_request, context, id, { user: name }) => {
  const found = await findKey(context, id);
  if (found === null) return NO_SUCH_KEY;
  if (found === 'unreadable') return UNREADABLE_KEY;
  const user = name === null ? undefined : await context.users.names.user(name);
  if (isUnreadable(user)) return secretUnreadable(user);
  return showKey({ ...found.key, fixedUser: found.key.user ?? null }, context, {
    ownUser: user,
    isAdmin: true,
  });
}, USE_PARAMS);

/** `PATCH /admin/keys/:id`: sets the fields that the body names. Null removes a limit, an expiry or a list of models. */
export const handleChangeKey = forAdminOrLead(async (request, context, id) => {
  const read = await readBody(request, context);
  const body = read.kind === 'error' ? read : inOwnTeam(read.value, context);
  if (body.kind === 'error') return body.error;
  const found = await findKey(context, id);
  if (found === null) return NO_SUCH_KEY;
  if (found === 'unreadable') return UNREADABLE_KEY;
  const keyRequest = await readNewKey({ name: found.key.name, ...body.value }, context);
  if (keyRequest.kind === 'error') return keyRequest.error;
  const { newKey, prices } = keyRequest.value;
  const named = Object.entries(newKey).filter(([field]) => field !== 'limits' && field in body.value);
  const limits = Object.entries(body.value).filter(([field]) => !Object.hasOwn(KEY_BODY, field));
  const change = { key: found.key, fields: Object.fromEntries(named), limits: Object.fromEntries(limits) };
  return changedKey(context, id, change, prices);
});

async function changedKey(
  context: RequestContext,
  id: string,
  change: KeyChange,
  prices?: PriceTable,
): Promise<Answer> {
  const changed = await changeKey(context, id, change);
  if (changed.kind === 'error') return changed.error;
  const { key } = changed.value;
  const table = prices ?? (await context.prices.load());
  const namesakes = 'name' in change.fields ? await namesakeWarnings(key, context) : [];
  const ofTeam = await teamWarnings(key, context);
  const view: ChangedKeyView = {
    ...writeKey(key, context.arrivedAt),
    ...keyWarnings(key, context, table, [...namesakes, ...ofTeam]),
  };
  return jsonResponse(view);
}

interface ChangedKey {
  readonly before: GatewayKey;
  readonly key: GatewayKey;
}

/** Changes a key and records the change. */
async function changeKey(
  context: RequestContext,
  id: string,
  change: KeyChange,
): Promise<Result<ChangedKey, ApiError>> {
  const result = await context.keyObjects.changeKey(context, change);
  context.callers.keys.forget(id);
  if (result.kind === 'error') return result;
  const changed = result.value;
  if (changed.kind === 'revoked') return failure(NO_SUCH_KEY);
  if (changed.kind === 'invalid') return invalidField(changed.message, changed.param);
  const { before = change.key, key } = changed;
  // An object that is called a second time has made the change already. What KV had is then what was before.
  const was = JSON.stringify(before) === JSON.stringify(key) ? change.key : before;
  await recordAct(context, { action: 'key_changed', keyId: id, before: was, after: key });
  return ok({ before: was, key });
}

/** `POST /admin/keys/:id/rotate`: a new secret for the key. The one before stays valid for the overlap. */
export const handleRotateKey = forAdminOrLead(async (request, context, id) => {
  const body = await readBody(request, context);
  if (body.kind === 'error') return body.error;
  const rotation = readFields(body.value, ROTATION_BODY, { unknown: unknownFieldOf('A rotation has') });
  if (rotation.kind === 'error') return rotation.error;
  const { overlap_hours } = rotation.value;
  const found = await findKey(context, id);
  if (found === null) return NO_SUCH_KEY;
  if (found === 'unreadable') return UNREADABLE_KEY;
  const { store } = context.ports;
  const { token, digest } = await makeToken();
  const secret = keyId(digest);
  const rotated_at = isoTime(context.arrivedAt);
  const until = overlap_hours === 0 ? null : isoTime(context.arrivedAt + overlap_hours * HOUR_MS);
  // Before the key names it, so that it is valid when the response arrives.
  await putSecret(store, { id, digest, rotated_at });
  const change = { key: found.key, fields: {}, limits: {}, rotation: { secret, rotated_at, until } };
  const changed = await changeKey(context, id, change);
  const isRotated = changed.kind === 'ok' && changed.value.key.secrets?.current === secret;
  if (!isRotated) {
    await deleteSecrets(store, id, [secret]);
    return changed.kind === 'error' ? changed.error : NOT_ROTATED;
  }
  const { before, key } = changed.value;
  const kept = secretsOf(key);
  const ended = secretsOf(before).filter((one) => !kept.includes(one));
  await deleteSecrets(store, id, ended);
  return jsonResponse(writeSecret(key, token, context, await context.prices.load()));
});

const NOT_ROTATED = apiError(
  'ledger_unreachable',
  "This key's ledger object runs an earlier version of Weir, which cannot rotate keys: try again when the deployment has reached it",
);

/** A key with its new secret, which no other response contains. */
function writeSecret(
  key: GatewayKey,
  token: string,
  context: RequestContext,
  prices: PriceTable,
  namesakes: readonly KeyWarning[] = [],
): NewKeyView {
  const { id, name, ...rest } = writeKey(key, context.arrivedAt);
  return { id, name, key: token, ...rest, ...keyWarnings(key, context, prices, namesakes) };
}

/** `POST /admin/keys/:id/budget`: raises one budget of the key for its current period. Responds as `GET /admin/keys/:id`. */
export const handleAddToBudget = forAdminOrLead(async (request, context, id) => {
  const body = await readBody(request, context);
  if (body.kind === 'error') return body.error;
  const topUp = readTopUp(body.value, context);
  if (topUp.kind === 'error') return topUp.error;
  const found = await findKey(context, id);
  if (found === null) return NO_SUCH_KEY;
  if (found === 'unreadable') return UNREADABLE_KEY;
  const { key } = found;
  const added = await context.keyObjects.addToBudget(context, id, topUp.value, key.limits ?? {});
  const problem = await recordAdded(context, { key_id: id }, added);
  if (problem !== null) return problem;
  return showKey({ ...key, fixedUser: key.user ?? null }, context, { isAdmin: true });
});

/** `GET /admin/keys/:id/limits`: the limits as the key's object has stored them, also where it cannot read them. */
export const handleShowLimits = forAdmin(async (_request, context, id) => {
  const found = await findKey(context, id);
  if (found === null) return NO_SUCH_KEY;
  const stored = await context.keyObjects.readLimitsRow(context, id);
  if (stored.kind === 'error') return stored.error;
  const { row, problem } = stored.value;
  const limits = row === null || problem !== null ? null : omit(objectOf(parseJson(row)), 'version');
  return jsonResponse({ object: 'key.limits', id, limits, row, problem });
});

/** `PUT /admin/keys/:id/limits`: the key has these limits and no others, whatever it had before. */
export const handleReplaceLimits = forAdmin(async (request, context, id) => {
  const body = await readBody(request, context);
  if (body.kind === 'error') return body.error;
  const other = Object.keys(body.value).find((field) => !LIMIT_FIELDS.some((known) => known === field));
  if (other !== undefined)
    return invalidField(unknownFieldOf('Limits have')(other, LIMIT_FIELDS), other).error;
  const budget = budgetProblem(body.value, await context.prices.load());
  return budget === null ? replaceLimits(context, id, body.value) : budget;
});

/** `DELETE /admin/keys/:id/limits`: the key has no limits from now on. */
export const handleRemoveLimits = forAdmin((_request, context, id) => replaceLimits(context, id, {}));

async function replaceLimits(context: RequestContext, id: string, limits: JsonObject): Promise<Answer> {
  const found = await findKey(context, id);
  if (found === null) return NO_SUCH_KEY;
  if (found === 'unreadable') return UNREADABLE_KEY;
  const change = { key: found.key, fields: {}, limits, replacesLimits: true };
  return changedKey(context, id, change);
}

/** `DELETE /admin/keys/:id` */
export const handleRevokeKey = forAdminOrLead(async (_request, context, id) => {
  const found = await findKey(context, id);
  context.callers.keys.forget(id);
  if (found === null) return context.known.team === null ? revokeUsageToken(context, id) : NO_SUCH_KEY;
  const key = found === 'unreadable' ? null : found.key;
  await revokeKeyOf(context, id, key, key === null ? [] : secretsOf(key));
  return jsonResponse({ id, deleted: true });
});

/**
 * Revokes a key.
 * @param key as it is recorded; null: it cannot be read
 * @param secrets of the key
 */
export async function revokeKeyOf(
  context: RequestContext,
  id: string,
  key: GatewayKey | null,
  secrets: readonly string[],
): Promise<void> {
  context.callers.keys.forget(id);
  await revokeKey(context.ports.store, id, secrets);
  // The key is already revoked, even if its object can't be reached: the object refuses concurrent changes and cleans up.
  await Promise.all([context.keyObjects.revokeKey(context, id), recordRevocation(context, id, key)]);
}

async function revokeUsageToken(context: RequestContext, id: string): Promise<Answer> {
  const { store } = context.ports;
  const token = KEY_ID.test(id) ? await readUsageToken(store, id) : null;
  if (token === null) return NO_SUCH_KEY;
  await revokeToken(context, token);
  return jsonResponse({ id, deleted: true });
}

/** Revokes a token that reads usage. @param token as it is recorded */
export async function revokeToken(context: RequestContext, token: UsageToken): Promise<void> {
  await deleteUsageToken(context.ports.store, token.id);
  await recordRevocation(context, token.id, token);
}

const KEY_ID = /^[0-9a-f]{16}$/;
const NO_SUCH_KEY = apiError('not_found', 'There is no such key');

/** Null: there is none, or it is not of the team of the lead. */
async function findKey(context: RequestContext, id: string) {
  const found = KEY_ID.test(id) ? await readKey(context.ports.store, id) : null;
  if (context.known.team === null || found === null) return found;
  return found !== 'unreadable' && isShown(found.key, context) ? found : null;
}

const MAX_BODY_BYTES = 16 * 1024;

/** The JSON object of a request of the admin. */
export async function readBody(
  request: Request,
  context: RequestContext,
): Promise<Result<JsonObject, ApiError>> {
  const requestBody = await readRequestBody(request, MAX_BODY_BYTES, context);
  if (requestBody.kind === 'error') return requestBody;
  requestBody.value.grant.release();
  return ok(requestBody.value.body);
}

/** Fields that need the users of requests. */
const USER_FIELDS = ['require_user', 'per_user'];

/**
 * What `POST /admin/keys` would say about a body, for the set-up, which asks before there is a deployment.
 * @param table the prices that are known
 * @returns the warnings of a valid key
 */
export function checkNewKey(
  body: JsonObject,
  settings: Settings,
  table: PriceTable,
  nowMs: number,
): Result<readonly KeyWarning[], ApiError> {
  const fields = readKeyBody(body, nowMs);
  if (fields.kind === 'error') return fields;
  const problem = budgetProblem(fields.value.limits, table);
  if (problem !== null) return failure(problem);
  return ok(keyWarnings(fields.value, { settings, arrivedAt: nowMs }, table).warnings ?? []);
}

/** Reads the fields of a new or changed key. Loads the prices, because its budget must have a currency of one. */
async function readNewKey(
  body: JsonObject,
  context: RequestContext,
): Promise<Result<{ readonly newKey: NewKey; readonly prices: PriceTable }, ApiError>> {
  const fields = readKeyBody(body, context.arrivedAt);
  if (fields.kind === 'error') return fields;
  const needsUsers = USER_FIELDS.find((field) => (body[field] ?? false) !== false);
  if (needsUsers !== undefined && !context.deployment.enforces.users)
    return invalidField(`${needsUsers} needs attribution(): ${howToList('attribution')}`, needsUsers);
  const { user } = fields.value;
  // The audit has the user as records have it.
  const stored = user === undefined ? null : await context.users.names.user(user);
  if (isUnreadable(stored)) return failure(secretUnreadable(stored));
  const prices = await context.prices.load();
  const problem = budgetProblem(fields.value.limits, prices);
  return problem === null ? ok({ newKey: fields.value, prices }) : failure(problem);
}

function readKeyBody(body: JsonObject, nowMs: number): Result<NewKey, ApiError> {
  const unknown = unknownFieldOf('A key has');
  const own = readFields(body, KEY_BODY, { unknown, nowMs, others: ['team', ...LIMIT_FIELDS] });
  if (own.kind === 'error') return own;
  const limits = readLimits(body);
  if (limits.kind === 'invalid') return invalidField(limits.message, limits.param);
  const fields = { ...own.value, limits: encodeLimits(limits.limits) };
  const tooLarge = sizeProblem(fields);
  return tooLarge === null ? ok(fields) : invalidField(tooLarge, 'models');
}

/** The units that a budget may have: the currencies of the prices, those with the most prices first, and tokens. */
function budgetUnits(table: PriceTable): string[] {
  const byCurrency = Map.groupBy(
    table.flatMap((layer) => layer.all()),
    ({ currency }) => currency,
  );
  const currencies = [...byCurrency]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([currency]) => currency);
  return [...currencies, TOKENS];
}

/** The error for a budget in a currency without any price. No request could be charged to it. */
export function budgetProblem(limits: JsonObject | null, table: PriceTable): ApiError | null {
  const units = budgetUnits(table);
  for (const { budget, param } of namedBudgets(limits)) {
    if (units.includes(budget.unit)) continue;
    const message = `No model has a price in ${budget.unit}, so nothing could be counted in it: a budget is in ${units.join(', ')}, or in the currency of prices that PRICES adds`;
    return apiError('invalid_request', message, param);
  }
  return null;
}

/** The budgets of a key and that of each of its users, with the fields that set them. */
function namedBudgets(limits: JsonObject | null): { readonly budget: Budget; readonly param: string }[] {
  const parsedLimits = readLimits(limits ?? {});
  if (parsedLimits.kind !== 'limits') return [];
  const keyBudgets = budgetsOf(parsedLimits.limits).map((budget) => ({ budget, param: 'budget' }));
  const ofUsers = parsedLimits.limits.perUser?.budget ?? null;
  return ofUsers === null ? keyBudgets : [...keyBudgets, { budget: ofUsers, param: 'per_user' }];
}

/**
 * Reasons why the key can't be used now, and those that are known already. They are no errors, because settings may
 * change: a provider may be set up later.
 */
export function keyWarnings(
  key: Pick<GatewayKey, 'models' | 'expires_at' | 'limits'>,
  { settings, arrivedAt }: Pick<RequestContext, 'settings' | 'arrivedAt'>,
  table: PriceTable,
  known: readonly KeyWarning[] = [],
): { readonly warnings?: readonly KeyWarning[] } {
  const { models, expires_at, limits } = key;
  const warnings: KeyWarning[] = [...known];
  const warn = (param: string | null, message: string) => warnings.push({ param, message });
  if (settings.auth !== 'keys' && settings.auth !== 'access')
    warn(null, `AUTH=${settings.auth} takes no gateway keys: this one is not used`);
  if (expires_at !== null && Date.parse(expires_at) <= arrivedAt)
    warn('expires_at', `This key expired at ${expires_at}`);
  const globProblems = (models ?? []).map((glob) => globProblem(glob, settings));
  for (const problem of globProblems) if (problem !== null) warn('models', problem);
  const matchesModels = models === null || globProblems.includes(null);
  for (const { budget, param } of namedBudgets(limits)) {
    if (!isEnforced(budget)) continue;
    if (budget.amount === 0) warn(param, `A ${budget.mode} budget of 0 refuses every request`);
    else if (matchesModels && budget.unit !== TOKENS && !isPriced(models, budget.unit, settings, table))
      warn(
        param,
        `No model that this key may use has a price in ${budget.unit}: a ${budget.mode} budget in it refuses every request`,
      );
  }
  for (const message of unpricedSteps(models, limits, settings, table, arrivedAt)) warn('budget', message);
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
    const pattern = maker === null ? '<provider>/<model>, or <provider>/*' : `${maker}/${glob}`;
    return `${glob} matches no model: write ${pattern}`;
  }
  if (PROVIDERS.some((provider) => provider.id === id))
    return `${glob} matches no model: the provider ${id} is not set up in this deployment`;
  const knownProviders = [...providers.keys(), ...PROVIDERS.map((provider) => provider.id)];
  const nearest = nearestName(id, knownProviders);
  const hint =
    nearest === undefined
      ? `Providers here: ${[...providers.keys()].join(', ') || 'none yet'}`
      : `Did you mean ${nearest}${glob.slice(id.length)}?`;
  return `${glob} matches no model: there is no provider ${id}. ${hint}`;
}

/** Warnings of a key. */
const MAX_STEP_WARNINGS = 10;

/** The steps of aliases that a hard budget skips because they have no price in its currency. */
function unpricedSteps(
  models: readonly string[] | null,
  limits: JsonObject | null,
  { aliases, providers }: Settings,
  table: PriceTable,
  nowMs: number,
): readonly string[] {
  const isUnpriced = (address: string, currency: string) => {
    const { priceIds = [] } = providers.get(providerOf(address)) ?? {};
    const model = address.slice(providerOf(address).length + 1);
    return priceIds.length > 0 && !hasPriceIn(table, currency, { priceIds, model }, nowMs);
  };
  const warnings = enforcedCurrencies(limits).flatMap((currency) =>
    aliases.flatMap(({ name, steps }) => {
      const used = steps.map(({ address }) => address).filter((address) => isUsable(address, models));
      const unpriced = [...new Set(used)].filter((address) => isUnpriced(address, currency));
      if (unpriced.length === 0) return [];
      const effect = unpriced.length === new Set(used).size ? 'refuses it' : 'skips these steps of it';
      return [
        `The alias ${name}: ${unpriced.join(', ')} without a price in ${currency}, so this key ${effect}`,
      ];
    }),
  );
  return warnings.slice(0, MAX_STEP_WARNINGS);
}

/** Whether a key may use the address of an alias's step, which is not known before the request where it has a star. */
function isUsable(address: string, models: readonly string[] | null): boolean {
  return !address.includes('*') && (models === null || matchesAnyGlob(models, address));
}

function isPriced(
  models: readonly string[] | null,
  currency: string,
  { providers }: Settings,
  table: PriceTable,
): boolean {
  return [...providers].some(([id, { priceIds }]) =>
    pricesOf(table, priceIds).some(
      (price) =>
        price.currency === currency &&
        price.models.some((name) => (models ?? ['*']).some((glob) => globsOverlap(glob, `${id}/${name}`))),
    ),
  );
}

type ShownKey = Pick<Caller, 'models'> &
  KeyFacts &
  Pick<GatewayKey, 'disabled' | 'secrets'> &
  Readonly<Record<'name' | 'expires_at' | 'created_at', string | null>> & {
    readonly id: string;
    readonly limits: JsonObject | null;
  } & Pick<KeptOwner, 'fixedUser'>;

interface KeyReader {
  /** Whose use of its own limits is shown, as it is stored; null: requests without a user; undefined: it is not shown. */
  readonly ownUser?: string | null | undefined;
  /** Only the admin sees who added to a budget. */
  readonly isAdmin?: boolean;
  /** The team of a caller without a key: the limits are those of the team. */
  readonly personOf?: Team;
}

/** A key with its limits and what it has used of them. */
async function showKey(
  shown: ShownKey,
  context: RequestContext,
  { ownUser, isAdmin = false, personOf }: KeyReader,
): Promise<Answer> {
  const { id, name, models, expires_at, created_at, fixedUser } = shown;
  const { keyObjects, arrivedAt } = context;
  const team = personOf?.id ?? teamOf(shown.limits);
  const kept = await context.showKept?.({ keyId: id, fixedUser }, context);
  if (kept?.kind === 'error') return kept.error;
  // Absent where no responses are kept.
  const state = showState(shown, arrivedAt);
  const key: ShownKeyView = {
    ...{ object: 'key', id, name, models, expires_at, created_at },
    // Absent where it has none.
    ...(team !== null && { team }),
    ...(personOf !== undefined && { team_name: personOf.name }),
    ...{ ...state, ...factsOf(shown), kept: kept?.value },
  };
  if (shown.limits === null) return jsonResponse({ ...key, limits: null } satisfies KeyStatusView);
  const status = await (personOf === undefined
    ? keyObjects.readLimitStatus(context, id, shown.limits)
    : keyObjects.readTeamStatus(context, personOf.id, personOf.limits ?? {}));
  if (status.kind === 'error') return status.error;
  const { limits, topUps = [], shards } = status.value;
  const { per_key: _, ...written } = writeLimits(limits) ?? {};
  const shownKey: KeyStatusView = {
    ...{
      ...key,
      limits: Object.keys(written).length === 0 ? null : written,
      ...writeStatus(status.value, arrivedAt),
    },
    // Absent where the key is not spread.
    ...(shards !== undefined && { shards }),
    // Absent where nothing was added in this period.
    ...(isAdmin && topUps.length > 0 && { top_ups: topUps.map(writeTopUp) }),
  };
  if (limits.perUser === null || ownUser === undefined) return jsonResponse(shownKey);
  const userStatus = await (personOf === undefined
    ? keyObjects.readUserStatus(context, id, ownUser, limits)
    : keyObjects.readPersonStatus(context, personOf.id, id, limits));
  if (userStatus.kind === 'error') return userStatus.error;
  const used = userStatus.value ?? unusedStatus(limitsOfUser(limits), arrivedAt);
  const per_user = { user: ownUser, ...writeStatus(used, arrivedAt) };
  return jsonResponse({ ...shownKey, per_user } satisfies KeyStatusView);
}

/** A field is null where the key has no such limit. */
export function writeStatus(status: LimitStatus, now: number): LimitUse {
  const { limits, requests, tokens, running } = status;
  const budgets = budgetUses(status).map((one) => writeBudget(one, now));
  return {
    budget: budgets[0] ?? null,
    // Absent where there is one at most.
    ...(budgets.length > 1 && { budgets }),
    requests: writeRate(limits.rpm, requests),
    tokens: writeRate(limits.tpm, tokens),
    concurrent:
      limits.maxConcurrent === null || running === null ? null : { limit: limits.maxConcurrent, running },
  };
}

/** Amounts are in the unit of the budget. */
function writeBudget({ budget, use }: BudgetUse, now: number): BudgetView {
  const { unit, amount, per } = budget;
  const { spent, reserved, estimated, unreported, resetsAt, added } = use;
  return {
    unit,
    period: periodName(per, now),
    limit: writeAmount(amount, unit),
    // The part of the limit that was added for this period alone.
    ...(added !== undefined && { added: writeAmount(added, unit) }),
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

function writeRate(limit: number | null, rate: RateStatus | null): RateView | null {
  if (limit === null || rate === null) return null;
  return { limit, remaining: Math.max(0, limit - rate.used), resets_in_ms: rate.resetMs };
}
