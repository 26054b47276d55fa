/** The schemas of `docs/openapi.json`. Those of Weir's own types fail to compile if a field of the type is missing. */
import { KEY_BODY, TEAM_BODY, TEAM_TOKEN_BODY, TOKEN_BODY } from '../../src/api/bodies.ts';
import type {
  BudgetView,
  KeyStatusView,
  KeyWarning,
  LimitUse,
  RateView,
  TeamStatusView,
  TopUpView,
} from '../../src/api/key-views.ts';
import type { RecordView } from '../../src/api/record-view.ts';
import type { BodyField } from '../../src/auth/body-fields.ts';
import { KEY_FACTS, type KeyFacts } from '../../src/auth/key-facts.ts';
import type { WrittenLimits } from '../../src/auth/key-limits.ts';
import type { ShownState } from '../../src/auth/key-state.ts';
import { type KeyView, type TeamView, TOKEN_FILTERS, type UsageToken } from '../../src/auth/key-views.ts';
import { ERRORS } from '../../src/canonical/error.ts';
import { FAULTS } from '../../src/canonical/fault.ts';
import { CLIENTS, COST_SOURCES, type RecordedAttempt, STATUSES } from '../../src/metering/record.ts';
import { COUNTS, type NamedGroups, type Sums } from '../../src/metering/report.ts';
import type { Distribution, Spread } from '../../src/metering/speeds.ts';
import type { JsonObject } from '../simulator/json.ts';
import { BUDGET_TEXTS, KEY_TEXTS, MODEL_TEXTS, RECORD_TEXTS, SUMS_TEXTS } from './fields.ts';

export type Schema = JsonObject;
type Optional = readonly ['optional', Schema];

export const text: Schema = { type: 'string' };
export const count: Schema = { type: 'integer', minimum: 0 };
const amount: Schema = { type: 'number' };
export const flag: Schema = { type: 'boolean' };
export const time: Schema = { type: 'string', description: 'ISO 8601, UTC' };
export const anyObject: Schema = { type: 'object' };

export function orNull(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] };
}

export function oneOf(values: readonly string[]): Schema {
  return { enum: [...values] };
}

export function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

function mapOf(values: Schema): Schema {
  return { type: 'object', additionalProperties: values };
}

export function optional(schema: Schema): Optional {
  return ['optional', schema];
}

export function described(schema: Schema, description: string): Schema {
  return { ...schema, description };
}

export function ref(name: keyof typeof COMPONENTS): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

export function either(schemas: readonly Schema[]): Schema {
  return { anyOf: [...schemas] };
}

/** An object with exactly these fields. */
export function object(fields: Readonly<Record<string, Schema | Optional>>): Schema {
  const entries = Object.entries(fields).map(([name, field]) =>
    isOptional(field)
      ? { name, schema: field[1], isRequired: false }
      : { name, schema: field, isRequired: true },
  );
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(({ name, schema }) => [name, schema])),
    required: entries.filter(({ isRequired }) => isRequired).map(({ name }) => name),
    additionalProperties: false,
  };
}

function isOptional(field: Schema | Optional): field is Optional {
  return Array.isArray(field);
}

/** The fields of a type: each one must be there, and optional as in the type. */
type FieldsOf<T> = { readonly [K in keyof T]-?: Record<never, never> extends Pick<T, K> ? Optional : Schema };

/** A schema whose fields have these descriptions. */
export function explained(schema: Schema, texts: Readonly<Record<string, string>>): Schema {
  const properties = Object.entries(schema.properties as JsonObject).map(([name, field]) => {
    const text = texts[name];
    return [name, text === undefined ? field : { ...(field as JsonObject), description: text }];
  });
  return { ...schema, properties: Object.fromEntries(properties) };
}

export function typed<T>(
  fields: FieldsOf<T>,
  more: Readonly<Record<string, Schema | Optional>> = {},
): Schema {
  return object({ ...(fields as Readonly<Record<string, Schema | Optional>>), ...more });
}

const counts = Object.fromEntries(COUNTS.map((name) => [name, count])) as Record<
  (typeof COUNTS)[number],
  Schema
>;

const attempt = typed<RecordedAttempt>({
  provider: text,
  model: text,
  status: orNull(count),
  error_code: orNull(text),
  ms: orNull(described(count, 'null: the target was skipped')),
  api: optional(oneOf(['responses'])),
  run_id: optional(described(text, 'the provider’s id of the run')),
  cause: optional(described(text, 'for the admin')),
  message: optional(described(text, 'what the provider said, without the prompt')),
  message_shown: optional({ const: true }),
});

/** Parts of a cost by kinds of tokens. */
const partsOf = (part: Schema): Schema => object({ input: part, cached: part, output: part });

const record = explained(
  typed<RecordView>({
    request_id: text,
    time,
    ended: time,
    key_id: text,
    asked: text,
    provider: text,
    model: text,
    route: text,
    client: oneOf(CLIENTS),
    status: oneOf(STATUSES),
    error_code: orNull(text),
    error: orNull(text),
    fault: orNull(oneOf(FAULTS)),
    finish_reason: orNull(text),
    team: optional(text),
    ended_by: optional(oneOf(['budget'])),
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    cached_tokens: orNull(count),
    cache_write_tokens: orNull(count),
    cache_write_long_tokens: optional(count),
    searches: optional(count),
    reasoning_tokens: orNull(count),
    vendor_events: count,
    vendor_tokens: count,
    first_token_ms: orNull(count),
    total_ms: count,
    bytes_out: count,
    estimated: flag,
    cost: orNull(amount),
    cost_parts: optional(partsOf(amount)),
    currency: orNull(text),
    cost_source: oneOf(COST_SOURCES),
    price_since: orNull(time),
    cost_estimated: flag,
    user: orNull(text),
    session: orNull(text),
    app: orNull(text),
    tags: optional(mapOf(text)),
    attempts: optional(listOf(attempt)),
    dropped: optional(listOf(text)),
    changed: optional(listOf(text)),
    cache: optional(anyObject),
  }),
  RECORD_TEXTS,
);

const sums: FieldsOf<Sums> = {
  ...counts,
  cached_share: orNull(amount),
  median_first_token_ms: orNull(amount),
  median_tokens_per_second: orNull(amount),
  p95_first_token_ms: orNull(amount),
  p99_first_token_ms: orNull(amount),
  p5_tokens_per_second: orNull(amount),
  p1_tokens_per_second: orNull(amount),
  cost: mapOf(amount),
  estimated_cost: mapOf(amount),
  cost_parts: optional(partsOf(mapOf(amount))),
  lost_tokens: optional(count),
  lost_cost: optional(mapOf(amount)),
};

const spreads = listOf(
  typed<Spread>({
    from: amount,
    to: orNull(described(amount, 'exclusive; null: no bound')),
    requests: count,
  }),
);

const budget = explained(
  typed<BudgetView>({
    unit: text,
    period: text,
    limit: amount,
    added: optional(amount),
    spent: amount,
    reserved: amount,
    remaining: amount,
    estimated: amount,
    unreported: amount,
    resets_at: orNull(time),
  }),
  BUDGET_TEXTS,
);
const rate = typed<RateView>({ limit: count, remaining: count, resets_in_ms: count });
const used: FieldsOf<Partial<LimitUse>> = {
  budget: optional(orNull(budget)),
  budgets: optional(listOf(budget)),
  requests: optional(orNull(rate)),
  tokens: optional(orNull(rate)),
  concurrent: optional(orNull(object({ limit: count, running: orNull(count) }))),
};

/** The fields of a key's limits, as requests set them and lists show them. */
const limits: FieldsOf<Omit<WrittenLimits, 'per_key'>> = {
  budget: optional(
    orNull(
      either([
        described(anyObject, 'an amount by its unit, such as {"USD": 5, "per": "month", "mode": "hard"}'),
        described(listOf(anyObject), 'up to four budgets of other units or periods, which all hold'),
      ]),
    ),
  ),
  rpm: optional(orNull(count)),
  tpm: optional(orNull(count)),
  max_concurrent: optional(orNull(count)),
  max_output_tokens: optional(orNull(count)),
  per_user: optional(orNull(described(anyObject, 'limits of each user of the key'))),
};
const ofTeam = {
  ...{ budget: limits.budget, rpm: limits.rpm, tpm: limits.tpm, max_concurrent: limits.max_concurrent },
  per_key: optional(
    orNull(described(anyObject, 'limits of each key of the team that sets none of that kind')),
  ),
  per_user: optional(orNull(described(anyObject, 'limits of each user of a key of the team that has none'))),
};
/** Absent: nobody falls under the team by it. */
const peopleOfTeam: FieldsOf<Pick<TeamView, 'people' | 'groups' | 'default'>> = {
  people: optional(listOf(text)),
  groups: optional(listOf(text)),
  default: optional({ const: true }),
};
const team = typed<Omit<TeamView, keyof WrittenLimits>>(
  { ...{ id: text, name: text, models: orNull(listOf(text)), created_at: time }, ...peopleOfTeam },
  ofTeam,
);
/** The field of a body by its declaration. */
function bodyField({ kind, range, words, maxItems }: BodyField<unknown>): Schema | Optional {
  switch (kind) {
    case 'name':
      return text;
    case 'text':
      return optional(orNull(text));
    case 'note':
    case 'own':
      return optional(text);
    case 'globs':
      return optional(orNull(listOf(text)));
    case 'list':
      return optional(orNull({ ...listOf(text), maxItems }));
    case 'time':
      return optional(orNull({ type: ['string', 'number'] }));
    case 'tags':
      return optional(orNull(mapOf(text)));
    case 'flag':
      return optional(orNull(flag));
    case 'number':
      return optional({ type: 'number', minimum: range?.[0], maximum: range?.[1] });
    case 'word':
      return optional(oneOf(words ?? []));
  }
}

/** A body. @param own the schemas of fields with a form of their own */
export function bodySchema(
  fields: Readonly<Record<string, BodyField<unknown>>>,
  own: Readonly<Record<string, Schema | Optional>> = {},
): Schema {
  return object({ ...mapFields(fields), ...own });
}

function mapFields(fields: Readonly<Record<string, BodyField<unknown>>>) {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, bodyField(field)]));
}

const { name, models, expires_at, disabled, ...otherFields } = KEY_BODY;
const keyBody = {
  ...mapFields({ name, models, expires_at }),
  team: optional(orNull(described(text, 'the id of a team'))),
  ...mapFields({ ...otherFields, disabled }),
  ...limits,
};
const teamBody = { ...mapFields(TEAM_BODY), ...ofTeam };

/** Whether the key may be used, and by which secrets. */
const state: FieldsOf<ShownState> = {
  disabled: optional(flag),
  rotated_at: optional(time),
  old_key_expires_at: optional(orNull(time)),
};

/** What a key fixes; absent where it fixes nothing. */
const SHOWN: Readonly<Partial<Record<BodyField<unknown>['kind'], Schema>>> = {
  text,
  tags: mapOf(text),
  flag,
};
const factFields = Object.fromEntries(
  Object.entries(KEY_FACTS).map(([name, { kind }]) => [name, optional(SHOWN[kind] ?? {})]),
);

const key = typed<Omit<KeyView, keyof (KeyFacts & WrittenLimits)>>(
  {
    id: text,
    name: text,
    models: orNull(listOf(described(text, 'a glob over addresses'))),
    expires_at: orNull(time),
    created_at: time,
    team: optional(text),
    ...state,
  },
  { ...factFields, ...limits },
);
const tokenFilter = object(
  Object.fromEntries([...TOKEN_FILTERS, 'team'].map((name) => [name, optional(text)])),
);
const usageToken = typed<UsageToken>({
  ...{ id: text, name: text, scope: oneOf(['usage', 'team']), team: optional(text) },
  ...{ filter: orNull(tokenFilter), expires_at: orNull(time), created_at: time },
});
const warnings = optional(listOf(typed<KeyWarning>({ param: orNull(text), message: text })));

/** Of one user's own limits. */
const useOfUser = optional(object({ user: orNull(text), ...used }));

const topUps = optional(
  listOf(
    typed<TopUpView>({
      ...{ id: text, time, actor: text, add: mapOf(amount), per: text, period: text, note: text },
    }),
  ),
);

const error = object({ message: text, type: text, param: orNull(text), code: text });

export const COMPONENTS = {
  Error: described(
    object({ error }),
    `An error in OpenAI's form. Codes of Weir: ${Object.keys(ERRORS).join(', ')}`,
  ),
  GoogleError: object({ error: anyObject }),
  AnthropicError: object({ type: { const: 'error' }, error: anyObject, request_id: optional(text) }),
  Model: {
    ...explained(
      object({
        id: text,
        object: { const: 'model' },
        created: count,
        owned_by: text,
        type: { const: 'model' },
        display_name: text,
        created_at: time,
        context_length: optional(count),
        max_output_tokens: optional(count),
        max_input_tokens: optional(count),
        max_tokens: optional(count),
        supports: optional(mapOf(flag)),
        apis: optional(listOf(text)),
        pricing: optional(anyObject),
        facts_source: optional(text),
        facts_checked: optional(text),
      }),
      MODEL_TEXTS,
    ),
    // Details may have more of a price list.
    additionalProperties: true,
  },
  Record: record,
  NamedGroups: typed<NamedGroups>({
    count,
    is_exact: described(flag, 'false: there are more'),
    cost: mapOf(amount),
    steps: optional(described(mapOf(count), 'where the report is grouped by day or hour: how many each has')),
  }),
  Distribution: typed<Distribution>({ first_token_ms: spreads, tokens_per_second: spreads }),
  Sums: explained(object(sums as Readonly<Record<string, Schema | Optional>>), SUMS_TEXTS),
  ReportRow: {
    ...explained(object(sums as Readonly<Record<string, Schema | Optional>>), SUMS_TEXTS),
    additionalProperties: {
      type: 'string',
      description: 'the values of group_by; with team, also team_name',
    },
  },
  NewKey: explained(object(keyBody), KEY_TEXTS),
  KeyChange: explained(object({ ...keyBody, name: optional(text) }), KEY_TEXTS),
  Limits: explained(object(limits), KEY_TEXTS),
  Key: key,
  ChangedKey: withFields(key, { warnings }),
  CreatedKey: withFields(key, { key: described(text, 'the key itself, which is not shown again'), warnings }),
  UsageToken: usageToken,
  NewUsageToken: bodySchema(TOKEN_BODY, {
    scope: { const: 'usage' },
    filter: optional(orNull(tokenFilter)),
  }),
  NewTeamToken: bodySchema(TEAM_TOKEN_BODY, { scope: { const: 'team' }, team: text }),
  CreatedUsageToken: withFields(usageToken, {
    key: described(text, 'the token itself, which is not shown again'),
  }),
  NewTeam: object(teamBody),
  TeamChange: object({ ...teamBody, name: optional(text) }),
  Team: team,
  ChangedTeam: withFields(team, { warnings }),
  TeamStatus: typed<Omit<TeamStatusView, keyof LimitUse>>(
    {
      object: { const: 'team' },
      ...{ id: text, name: text, models: orNull(listOf(text)), created_at: time, keys: count },
      ...peopleOfTeam,
      ...{ limits: orNull(anyObject), top_ups: topUps, per_user: useOfUser },
    },
    used,
  ),
  KeyStatus: typed<Omit<KeyStatusView, keyof KeyFacts>>({
    object: { const: 'key' },
    id: text,
    name: orNull(text),
    models: orNull(listOf(text)),
    expires_at: orNull(time),
    created_at: orNull(time),
    ...factFields,
    team: optional(text),
    team_name: optional(described(text, 'of a person without a key, whose limits are those of the team')),
    ...state,
    kept: optional(anyObject),
    limits: orNull(anyObject),
    ...used,
    shards: optional(mapOf(count)),
    top_ups: topUps,
    per_user: useOfUser,
  }),
} as const satisfies Readonly<Record<string, Schema>>;

/** The schema of an object with further fields. */
function withFields(base: Schema, fields: Readonly<Record<string, Schema | Optional>>): Schema {
  const added = object(fields);
  return {
    ...base,
    properties: { ...(base.properties as JsonObject), ...(added.properties as JsonObject) },
    required: [...(base.required as string[]), ...(added.required as string[])],
  };
}
