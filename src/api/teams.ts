/** `/v1/admin/teams` creates, lists, shows, changes and deletes teams, and adds to their budgets. */
import { invalidField, readFields, unknownFieldOf } from '../auth/body-fields.ts';
import { UNREADABLE_PEOPLE } from '../auth/caller.ts';
import { ACCESS_PREFIX, lowerCase } from '../auth/caller-ids.ts';
import {
  encodeLimits,
  LIMIT_FIELDS,
  type LimitStatus,
  type Limits,
  limitsOfUser,
  NO_LIMITS,
  readLimits,
  unusedStatus,
  writeLimits,
} from '../auth/key-limits.ts';
import { type GatewayKey, type KeyChange, randomSecret } from '../auth/keys.ts';
import {
  NOBODY,
  type PeopleChange,
  type PeopleFields,
  peopleFields,
  readRules,
  type TeamRules,
} from '../auth/people.ts';
import { listTeams, readTeam, type Team, teamSizeProblem, writeTeam } from '../auth/teams.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isUnreadable, secretUnreadable } from '../canonical/secret.ts';
import { forAdmin, forAdminOrLead } from '../http/admin.ts';
import type { PeopleResult, RequestContext } from '../http/context.ts';
import { type Answer, jsonResponse } from '../http/respond.ts';
import type { PriceTable } from '../metering/pricing/price.ts';
import { isoTime } from '../metering/time.ts';
import { howToList } from '../settings/feature-settings.ts';
import type { Settings } from '../settings/settings.ts';
import type { JsonObject } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { recordAct } from './audit.ts';
import { TEAM_BODY } from './bodies.ts';
import type { ChangedTeamView, KeyWarning, TeamStatusView, UserUse } from './key-views.ts';
import { aboveTeam, budgetProblem, keyWarnings, placeProblem, readBody, writeStatus } from './keys.ts';
import { USE_PARAMS } from './parameters.ts';
import { readTopUp, recordAdded, writeTopUp } from './top-ups.ts';

const LIMITS_OF_TEAMS = [...LIMIT_FIELDS.filter((field) => field !== 'max_output_tokens'), 'per_key'];
const NO_SUCH_TEAM = apiError('not_found', 'There is no such team');

/** `POST /v1/admin/teams` */
export const handleCreateTeam = forAdmin(async (request, context) => {
  const body = await readBody(request, context);
  if (body.kind === 'error') return body.error;
  const fields = await readTeamFields(body.value, context);
  if (fields.kind === 'error') return fields.error;
  const place = await placeProblem(context);
  if (place !== null) return place;
  const id = randomSecret().slice(0, ID_DIGITS);
  const { people, ...own } = fields.value;
  const key: GatewayKey = { id, ...own, created_at: isoTime(context.arrivedAt), expires_at: null };
  const changed = await change(context, { key, fields: {}, limits: key.limits ?? {} });
  if (changed.kind === 'error') return changed.error;
  const set = await changePeople(context, key, peopleFields(people));
  if (set.kind === 'error') {
    // Nobody knows its id.
    await context.keyObjects.deleteTeam(context, key);
    context.callers.teams.forget(id);
    return set.error;
  }
  const after = { ...changed.value, ...set.value.after };
  await recordAct(context, { action: 'team_created', teamId: id, before: null, after });
  return teamResponse(after, context, 201);
});

const ID_DIGITS = 16;

/** `GET /v1/admin/teams` */
export const handleListTeams = forAdmin(async (_request, context) => {
  const rules = await rulesOfAll(context);
  if (rules.kind === 'error') return rules.error;
  const teams = await listTeams(context.ports.store);
  const shown = teams.map((team) => writeTeam({ ...team, ...peopleOf(rules.value, team.id) }));
  return jsonResponse({ object: 'list', data: shown });
});

/** `GET /v1/admin/teams/:id`: a team with the number of its keys and what is used of its limits. */
export const handleShowTeam = forAdminOrLead(async (_request, context, id, { user }) => {
  if (context.known.team !== null && context.known.team !== id) return NO_SUCH_TEAM;
  const team = await readTeam(context.ports.store, id);
  return team === null ? NO_SUCH_TEAM : showTeam(team, context, user);
}, USE_PARAMS);

/** `PATCH /v1/admin/teams/:id`: sets the fields that the body names. Null removes a limit or a list of models. */
export const handleChangeTeam = forAdmin(async (request, context, id) => {
  const body = await readBody(request, context);
  if (body.kind === 'error') return body.error;
  const team = await readTeam(context.ports.store, id);
  if (team === null) return NO_SUCH_TEAM;
  const read = await readTeamFields({ name: team.name, ...body.value }, context);
  if (read.kind === 'error') return read.error;
  const { name, models, people } = read.value;
  const named = Object.entries({ name, models }).filter(([field]) => field in body.value);
  const limits = Object.entries(body.value).filter(([field]) => LIMITS_OF_TEAMS.includes(field));
  const namedPeople = Object.entries(people).filter(([field]) => field in body.value);
  // First, as it may be refused: nothing is changed then.
  const set = await changePeople(context, team, Object.fromEntries(namedPeople));
  if (set.kind === 'error') return set.error;
  const fields = Object.fromEntries(named);
  const changed = await change(context, { key: team, fields, limits: Object.fromEntries(limits) });
  if (changed.kind === 'error') {
    if (namedPeople.length > 0) await changePeople(context, team, { ...NOBODY, ...set.value.before });
    return changed.error;
  }
  const before = { ...team, ...set.value.before };
  const after = { ...changed.value, ...set.value.after };
  await recordAct(context, { action: 'team_changed', teamId: id, before, after });
  return teamResponse(after, context);
});

/** `DELETE /v1/admin/teams/:id`: a 409 while keys name the team. */
export const handleDeleteTeam = forAdmin(async (_request, context, id) => {
  const team = await readTeam(context.ports.store, id);
  if (team === null) return NO_SUCH_TEAM;
  const people = await changePeople(context, team, {});
  if (people.kind === 'error') return people.error;
  const keys = await context.keyObjects.deleteTeam(context, team);
  context.callers.teams.forget(id);
  context.callers.people.forget();
  if (keys.kind === 'error') return keys.error;
  if (keys.value > 0) {
    const count = keys.value === 1 ? '1 key' : `${keys.value} keys`;
    return apiError(
      'team_has_keys',
      `This team has ${count}: give them another team or none, or revoke them`,
    );
  }
  const before = { ...team, ...people.value.before };
  await recordAct(context, { action: 'team_deleted', teamId: id, before, after: null });
  return jsonResponse({ id, deleted: true });
});

/** `POST /v1/admin/teams/:id/budget`: raises one budget of the team for its current period. Responds as `GET /v1/admin/teams/:id`. */
export const handleAddToTeamBudget = forAdmin(async (request, context, id) => {
  const body = await readBody(request, context);
  if (body.kind === 'error') return body.error;
  const topUp = readTopUp(body.value, context);
  if (topUp.kind === 'error') return topUp.error;
  const team = await readTeam(context.ports.store, id);
  if (team === null) return NO_SUCH_TEAM;
  const added = await context.keyObjects.addToTeamBudget(context, id, topUp.value, team.limits ?? {});
  return (await recordAdded(context, { team: id }, added)) ?? showTeam(team, context);
});

async function change(context: RequestContext, one: KeyChange): Promise<Result<GatewayKey, ApiError>> {
  const result = await context.keyObjects.changeTeam(context, one);
  context.callers.teams.forget(one.key.id);
  if (result.kind === 'error') return result;
  const changed = result.value;
  if (changed.kind === 'revoked') return failure(NO_SUCH_TEAM);
  return changed.kind === 'invalid' ? invalidField(changed.message, changed.param) : ok(changed.key);
}

/** Changes who falls under a team; without a field, nothing. */
async function changePeople(
  context: RequestContext,
  { id, created_at }: Pick<Team, 'id' | 'created_at'>,
  fields: PeopleChange,
): Promise<Result<Extract<PeopleResult, { kind: 'changed' }>, ApiError>> {
  const changed = await context.keyObjects.changePeople(context, { id, created_at }, fields);
  context.callers.people.forget();
  if (changed.kind === 'error') return changed;
  const { value } = changed;
  return value.kind === 'invalid' ? invalidField(value.message, value.param) : ok(value);
}

/** Who falls under which team, as KV has it. */
async function rulesOfAll({ ports }: RequestContext): Promise<Result<readonly TeamRules[], ApiError>> {
  const rules = await readRules(ports.store);
  return rules === 'unreadable' ? failure(UNREADABLE_PEOPLE) : ok(rules);
}

function peopleOf(all: readonly TeamRules[], team: string): PeopleFields {
  return peopleFields(all.find(({ id }) => id === team) ?? {});
}

interface NewTeam extends Pick<Team, 'name' | 'models' | 'limits'> {
  readonly people: PeopleChange;
}

async function readTeamFields(body: JsonObject, context: RequestContext): Promise<Result<NewTeam, ApiError>> {
  const team = readTeamBody(body);
  if (team.kind === 'error') return team;
  if ((body.per_user ?? null) !== null && !context.deployment.enforces.users)
    return invalidField(`per_user needs attribution(): ${howToList('attribution')}`, 'per_user');
  const problem = budgetProblem(team.value.limits, await context.prices.load());
  return problem === null ? team : failure(problem);
}

function readTeamBody(body: JsonObject): Result<NewTeam, ApiError> {
  if ('team' in body) return invalidField('A team is in no other team', 'team');
  const own = readFields(body, TEAM_BODY, { unknown: unknownFieldOf('A team has'), others: LIMITS_OF_TEAMS });
  if (own.kind === 'error') return own;
  const { name, models, people = null, groups = null, default: isDefault = null } = own.value;
  const limits = readLimits(body);
  if (limits.kind === 'invalid') return invalidField(limits.message, limits.param);
  const tooLarge = teamSizeProblem({ name, models });
  if (tooLarge !== null) return invalidField(tooLarge, 'models');
  const ofPeople = { people, groups, default: isDefault };
  return ok({ name, models, limits: encodeLimits(limits.limits), people: ofPeople });
}

/**
 * What `POST /v1/admin/teams` would say about a body, for the set-up, which asks before there is a deployment.
 * @param table the prices that are known
 * @returns the warnings of a valid team
 */
export function checkNewTeam(
  body: JsonObject,
  settings: Settings,
  table: PriceTable,
  nowMs: number,
): Result<readonly KeyWarning[], ApiError> {
  const team = readTeamBody(body);
  if (team.kind === 'error') return team;
  const problem = budgetProblem(team.value.limits, table);
  if (problem !== null) return failure(problem);
  return ok(teamWarnings(team.value, { settings, arrivedAt: nowMs }, table).warnings ?? []);
}

function teamWarnings(
  { models, limits: stored }: Pick<Team, 'models' | 'limits'>,
  context: Pick<RequestContext, 'settings' | 'arrivedAt'>,
  table: PriceTable,
  others: readonly KeyWarning[] = [],
) {
  const limits = readLimits(stored ?? {});
  const above =
    limits.kind === 'invalid'
      ? []
      : [
          ...aboveTeam({ ...NO_LIMITS, ...limits.limits.perKey }, limits.limits, 'per_key'),
          ...aboveTeam(limitsOfUser(limits.limits), limits.limits, 'per_user'),
        ];
  return keyWarnings({ models, limits: stored, expires_at: null }, context, table, [...above, ...others]);
}

const NO_CLAIM = { param: 'groups', message: 'No groups are read: set ACCESS_GROUPS_CLAIM' };

async function teamResponse(
  team: Team & PeopleFields,
  context: RequestContext,
  status = 200,
): Promise<Answer> {
  const isUnread = team.groups !== undefined && !context.deployment.enforces.groups;
  const warnings = teamWarnings(team, context, await context.prices.load(), isUnread ? [NO_CLAIM] : []);
  const view: ChangedTeamView = { ...writeTeam(team), ...warnings };
  return jsonResponse(view, status);
}

/** @param person whose use of its own limits is shown, too */
async function showTeam(team: Team, context: RequestContext, person: string | null = null): Promise<Answer> {
  const { id, name, models, created_at } = team;
  const rules = await rulesOfAll(context);
  if (rules.kind === 'error') return rules.error;
  const status = await context.keyObjects.readTeamStatus(context, id, team.limits ?? {});
  if (status.kind === 'error') return status.error;
  const { limits, topUps = [], keys = 0 } = status.value;
  const used = person === null ? ok(null) : await useOfPerson(id, person, limits, context);
  if (used.kind === 'error') return used.error;
  const view: TeamStatusView = {
    ...{ object: 'team', id, name, models, created_at, keys, ...peopleOf(rules.value, id) },
    limits: writeLimits(limits),
    ...writeStatus(status.value, context.arrivedAt),
    ...(topUps.length > 0 && { top_ups: topUps.map(writeTopUp) }),
    ...(used.value !== null && { per_user: used.value }),
  };
  return jsonResponse(view);
}

/** Null: the team sets no limits of people. */
async function useOfPerson(
  team: string,
  person: string,
  limits: Limits,
  context: RequestContext,
): Promise<Result<UserUse | null, ApiError>> {
  if (limits.perUser === null) return ok(null);
  const { keyObjects, users, arrivedAt } = context;
  const { names } = users;
  const address = lowerCase(person);
  const [user, forms] = [await names.user(address), await names.forms(address)];
  if (isUnreadable(user)) return failure(secretUnreadable(user));
  if (isUnreadable(forms)) return failure(secretUnreadable(forms));
  let used: LimitStatus | null = null;
  // Its id of today, and the one of before `USER_HASH_KEY` was set.
  for (const id of forms.filter((form) => form.startsWith(ACCESS_PREFIX))) {
    const status = await keyObjects.readPersonStatus(context, team, id, limits);
    if (status.kind === 'error') return status;
    used ??= status.value;
  }
  used ??= unusedStatus(limitsOfUser(limits), arrivedAt);
  return ok({ user, ...writeStatus(used, arrivedAt) });
}
