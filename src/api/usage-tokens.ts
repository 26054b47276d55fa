/** `POST /admin/keys` with a `scope`: creates a token that reads usage, or that of the lead of a team. */
import { invalidField, readFields } from '../auth/body-fields.ts';
import { TOKEN_FILTERS, type TokenFilter, type UsageToken } from '../auth/key-views.ts';
import { readTeam } from '../auth/teams.ts';
import { createUsageToken } from '../auth/usage-tokens.ts';
import type { ApiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { readParams } from '../http/query.ts';
import { type Answer, jsonResponse } from '../http/respond.ts';
import { isoTime } from '../metering/time.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { ok, type Result } from '../shared/result.ts';
import type { Writable } from '../shared/writable.ts';
import { recordAct } from './audit.ts';
import { TEAM_TOKEN_BODY, TOKEN_BODY } from './bodies.ts';
import type { NewTokenView } from './key-views.ts';
import { FACT_FILTERS, KEY_FILTER } from './parameters.ts';
import { readFactFilter } from './usage.ts';

const MAX_TEXT_CHARS = 100;

/** Creates a token. The response is the only place that has the token itself. */
export async function makeUsageToken(body: JsonObject, context: RequestContext): Promise<Answer> {
  const fields = await readToken(body, context);
  if (fields.kind === 'error') return fields.error;
  const created_at = isoTime(context.arrivedAt);
  const { usageToken, token } = await createUsageToken(context.ports.store, fields.value, created_at);
  const { id, name, ...rest } = usageToken;
  await recordAct(context, { action: 'key_created', keyId: id, before: null, after: usageToken });
  const view: NewTokenView = { id, name, key: token, ...rest };
  return jsonResponse(view, 201);
}

interface Fields {
  readonly name: string;
  readonly scope: UsageToken['scope'];
  readonly team?: string;
  readonly filter: TokenFilter | null;
  readonly expires_at: string | null;
}

async function readToken(body: JsonObject, context: RequestContext): Promise<Result<Fields, ApiError>> {
  if (body.scope === 'team') return readTeamToken(body, context);
  const fields = readFields(body, TOKEN_BODY, {
    unknown: (_, names) => `A token that reads usage has ${names.join(', ')}, and nothing else`,
    nowMs: context.arrivedAt,
  });
  if (fields.kind === 'error') return fields;
  const { name, expires_at } = fields.value;
  const filter = await readFilter(fields.value.filter, context);
  return filter.kind === 'error' ? filter : ok({ name, scope: 'usage', filter: filter.value, expires_at });
}

async function readTeamToken(body: JsonObject, context: RequestContext): Promise<Result<Fields, ApiError>> {
  const fields = readFields(body, TEAM_TOKEN_BODY, {
    unknown: (_, names) => `A token of a team has ${names.join(', ')}, and nothing else`,
    nowMs: context.arrivedAt,
  });
  if (fields.kind === 'error') return fields;
  const { name, expires_at, team } = fields.value;
  return (await readTeam(context.ports.store, team)) === null
    ? invalidField('team must be the id of a team', 'team')
    : ok({ name, scope: 'team', team, filter: { team }, expires_at });
}

/** Each field is read as the parameter of that name, so that every request of the token can be answered. */
async function readFilter(
  value: unknown,
  context: RequestContext,
): Promise<Result<TokenFilter | null, ApiError>> {
  if (value === null) return ok(null);
  const form = `filter must be an object of texts, as {"tag": "team:search"}, with one or more of ${TOKEN_FILTERS.join(', ')}`;
  if (!isObject(value) || Object.keys(value).length === 0) return invalidField(form, 'filter');
  const filter: Writable<TokenFilter> = {};
  for (const [field, text] of Object.entries(value)) {
    const name = TOKEN_FILTERS.find((known) => known === field);
    const isName = typeof text === 'string' && text.trim() !== '' && text.length <= MAX_TEXT_CHARS;
    if (name === undefined || !isName) return invalidField(form, 'filter');
    filter[name] = text;
  }
  const known = { ...KEY_FILTER, ...FACT_FILTERS };
  const values = readParams(new URLSearchParams(filter), known, context.arrivedAt);
  const facts = values.kind === 'error' ? values : await readFactFilter(values.value, context);
  return facts.kind === 'error' ? invalidField(`filter: ${facts.error.message}`, 'filter') : ok(filter);
}
