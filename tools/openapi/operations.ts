/**
 * What `docs/openapi.json` says of each route. A method of a route in `src/routes.ts`, or of a feature, without an operation here fails
 * `test/docs/openapi.test.ts`. After a change: npm run openapi.
 */
import { ROTATION_BODY, TOP_UP_BODY } from '../../src/api/bodies.ts';
import type { KeyListView } from '../../src/api/key-views.ts';
import {
  AUDIT_PARAMS,
  KEY_FILTER,
  RECORD_PARAMS,
  REFUSAL_PARAMS,
  STATUS_PARAMS,
  USAGE_PARAMS,
  USE_PARAMS,
} from '../../src/api/parameters.ts';
import type { RecordPageView, RefusalsView, ReportView } from '../../src/api/usage-views.ts';
import type { RevokedKey } from '../../src/auth/key-views.ts';
import { type ErasurePhase, NOTHING_ERASED } from '../../src/http/erasure.ts';
import { STATUS_TEXTS } from './fields.ts';
import { queryOf } from './parameters.ts';
import {
  anyObject,
  bodySchema,
  count,
  described,
  either,
  explained,
  flag,
  listOf,
  object,
  oneOf,
  optional,
  orNull,
  ref,
  type Schema,
  text,
  time,
  typed,
} from './schemas.ts';

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** As a client calls it, without the base path. */
  readonly path: string;
  /** The path in the table of routes, where it has a pattern that stands for several paths. */
  readonly route?: string;
  readonly summary: string;
  readonly tag:
    | 'Completions'
    | 'Models'
    | 'Usage'
    | 'Keys'
    | 'Teams'
    | 'Administration'
    | 'Responses'
    | 'Other';
  /** Whose credential it needs. */
  readonly auth: 'caller' | 'admin' | 'none';
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Schema;
  /** The status of success. Default: 200. */
  readonly status?: number;
  /** Null: no JSON. */
  readonly returns: Schema | null;
  /** What it returns in place of JSON. Default: HTML. */
  readonly mediaType?: string;
  /** It may also return a stream of server-sent events. */
  readonly streams?: true;
  /** CSV with `format=csv`. */
  readonly csv?: true;
  readonly errors?: 'Error' | 'AnthropicError' | 'GoogleError';
}

/** Paths that are other spellings of a route, and the reason why they are not described. */
export const OTHER_SPELLINGS: readonly string[] = [
  // For Azure's clients.
  '/openai/deployments/:model+/chat/completions',
  '/openai/deployments/:model+/embeddings',
  // Refused.
  '/(fim|agents)/completions',
  // For Google's SDKs in their mode for Vertex AI.
  '/publishers/:publisher/models/:model+',
  '/projects/:project/locations/:location/publishers/:publisher/models/:model+',
  // Refused.
  '/interactions',
  '/interactions/:id+',
  // For browsers.
  '/',
];

const TOP_UP = bodySchema(TOP_UP_BODY, { add: anyObject });

const ERASURE = object({
  ...{ object: { const: 'erasure' }, id: text, started_at: time, erased_at: orNull(time), next_at: time },
  status: oneOf(['waiting', 'erasing', 'erased', 'erasing_late', 'done'] satisfies readonly ErasurePhase[]),
  erased: object(Object.fromEntries(Object.keys(NOTHING_ERASED).map((kind) => [kind, count]))),
  problem: orNull(text),
});

/** A body of another API, of which Weir reads some fields and translates the rest. */
const foreignBody = (required: readonly string[], source: string): Schema => ({
  type: 'object',
  required: [...required],
  additionalProperties: true,
  description: `The body of ${source}`,
});
const CHAT_BODY: Schema = {
  ...foreignBody(['messages'], 'https://platform.openai.com/docs/api-reference/chat/create'),
  properties: { model: text, models: listOf(text), messages: listOf(anyObject), stream: flag },
};
const PROMPT_BODY: Schema = {
  ...foreignBody(
    ['model', 'prompt'],
    "https://platform.openai.com/docs/api-reference/completions/create, and Mistral's FIM",
  ),
  properties: { model: text, suffix: orNull(text), stream: flag },
};
const MESSAGES_BODY: Schema = {
  ...foreignBody(['model', 'messages'], 'https://platform.claude.com/docs/en/api/messages'),
  properties: { model: text, messages: listOf(anyObject), max_tokens: count, stream: flag },
};
const RESPONSES_BODY: Schema = {
  ...foreignBody(['model'], 'https://platform.openai.com/docs/api-reference/responses/create'),
  properties: { model: text, stream: flag, background: orNull(flag), store: orNull(flag) },
};

/** The response in another API's form: the fields that are always there. */
const foreign = (properties: Readonly<Record<string, Schema>>): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
});
const usage = anyObject;
const COMPLETION = (name: string) =>
  foreign({
    id: text,
    object: { const: name },
    created: count,
    model: text,
    choices: listOf(anyObject),
    usage,
  });
const RESPONSE = foreign({
  id: text,
  object: { const: 'response' },
  status: text,
  model: text,
  output: listOf(anyObject),
});

const list = (items: Schema) => ({ object: { const: 'list' }, data: listOf(items) });
const paged = { has_more: flag, next_cursor: orNull(text) };
const span = { from: text, to: text, group_by: listOf(text) };
const GEMINI_BODY: Schema = {
  ...foreignBody(['contents'], 'https://ai.google.dev/api/generate-content'),
  properties: { contents: listOf(anyObject), systemInstruction: anyObject, tools: listOf(anyObject) },
};
const GEMINI_RESPONSE = foreign({
  candidates: listOf(anyObject),
  usageMetadata: anyObject,
  modelVersion: text,
  responseId: text,
});
const geminiOperation = (
  method: string,
): Pick<Operation, 'method' | 'path' | 'route' | 'tag' | 'auth' | 'errors'> => ({
  ...{ method: 'POST', path: `/v1beta/models/{model}:${method}`, route: '/models/:id+' },
  ...{ tag: 'Completions', auth: 'caller', errors: 'GoogleError' },
});
const GEMINI_OPERATIONS: readonly Operation[] = [
  {
    ...geminiOperation('generateContent'),
    summary: "Gemini's generateContent, at every provider",
    ...{ body: GEMINI_BODY, returns: GEMINI_RESPONSE },
  },
  {
    ...geminiOperation('streamGenerateContent'),
    summary: 'The same as a stream: a JSON array, or with alt=sse server-sent events',
    query: { alt: 'sse: server-sent events' },
    ...{ body: GEMINI_BODY, returns: listOf(GEMINI_RESPONSE), streams: true },
  },
  {
    ...geminiOperation('countTokens'),
    summary: 'Counts the tokens of a body of generateContent',
    ...{ body: GEMINI_BODY, returns: object({ totalTokens: count }) },
  },
  {
    ...geminiOperation('embedContent'),
    summary: "Gemini's embedding of one content, at every provider",
    body: foreignBody(['content'], 'https://ai.google.dev/api/embeddings'),
    returns: foreign({ embedding: anyObject }),
  },
  {
    ...geminiOperation('batchEmbedContents'),
    summary: "Gemini's embeddings of several contents, at every provider",
    body: foreignBody(['requests'], 'https://ai.google.dev/api/embeddings'),
    returns: foreign({ embeddings: listOf(anyObject) }),
  },
];
export const OPERATIONS: readonly Operation[] = [
  {
    ...{ method: 'POST', path: '/v1/chat/completions', tag: 'Completions', auth: 'caller' },
    summary: "OpenAI's Chat Completions, at every provider",
    ...{ body: CHAT_BODY, returns: COMPLETION('chat.completion'), streams: true },
  },
  {
    ...{ method: 'POST', path: '/v1/completions', tag: 'Completions', auth: 'caller' },
    summary: "OpenAI's legacy completions; suffix makes it fill-in-the-middle",
    ...{ body: PROMPT_BODY, returns: COMPLETION('text_completion'), streams: true },
  },
  {
    ...{ method: 'POST', path: '/v1/fim/completions', tag: 'Completions', auth: 'caller' },
    summary: "Mistral's fill-in-the-middle",
    ...{ body: PROMPT_BODY, returns: COMPLETION('chat.completion'), streams: true },
  },
  {
    ...{ method: 'POST', path: '/v1/agents/completions', tag: 'Completions', auth: 'caller' },
    summary: "Mistral's agents",
    body: foreignBody(['agent_id', 'messages'], 'https://docs.mistral.ai/api/endpoint/agents'),
    ...{ returns: COMPLETION('chat.completion'), streams: true },
  },
  {
    ...{ method: 'POST', path: '/v1/embeddings', tag: 'Completions', auth: 'caller' },
    summary: "OpenAI's embeddings",
    body: foreignBody(['model', 'input'], 'https://platform.openai.com/docs/api-reference/embeddings/create'),
    returns: foreign({ ...list(anyObject), model: text, usage }),
  },
  {
    ...{ method: 'POST', path: '/v1/messages', tag: 'Completions', auth: 'caller', errors: 'AnthropicError' },
    summary: "Anthropic's Messages, at every provider",
    ...{ body: MESSAGES_BODY, streams: true },
    returns: foreign({
      id: text,
      type: { const: 'message' },
      role: text,
      model: text,
      content: listOf(anyObject),
      usage,
    }),
  },
  {
    ...{
      method: 'POST',
      path: '/v1/messages/count_tokens',
      tag: 'Completions',
      auth: 'caller',
      errors: 'AnthropicError',
    },
    summary: 'Counts the tokens of a Messages body',
    ...{ body: MESSAGES_BODY, returns: object({ input_tokens: count }) },
  },
  ...GEMINI_OPERATIONS,
  {
    ...{ method: 'POST', path: '/v1/responses', tag: 'Responses', auth: 'caller' },
    summary: "OpenAI's Responses, at every provider",
    ...{ body: RESPONSES_BODY, returns: RESPONSE, streams: true },
  },
  {
    ...{ method: 'POST', path: '/v1/responses/input_tokens', tag: 'Responses', auth: 'caller' },
    summary: 'Counts the tokens of a Responses body',
    ...{
      body: RESPONSES_BODY,
      returns: object({ object: { const: 'response.input_tokens' }, input_tokens: count }),
    },
  },
  {
    ...{
      method: 'GET',
      path: '/v1/responses/{id}',
      route: '/responses/:id+',
      tag: 'Responses',
      auth: 'caller',
    },
    summary: 'A kept response, with RESPONSES=durable; 404 otherwise',
    query: { stream: 'true: its events', starting_after: 'the number of the last event that the client has' },
    ...{ returns: RESPONSE, streams: true },
  },
  {
    ...{
      method: 'GET',
      path: '/v1/responses/{id}/input_items',
      route: '/responses/:id+',
      tag: 'Responses',
      auth: 'caller',
    },
    summary: 'The input of a kept response',
    query: { limit: '1 to 100', after: 'an id', order: 'asc or desc' },
    returns: foreign(list(anyObject)),
  },
  {
    ...{
      method: 'POST',
      path: '/v1/responses/{id}/cancel',
      route: '/responses/:id+',
      tag: 'Responses',
      auth: 'caller',
    },
    summary: 'Cancels a background response',
    returns: RESPONSE,
  },
  {
    ...{
      method: 'DELETE',
      path: '/v1/responses/{id}',
      route: '/responses/:id+',
      tag: 'Responses',
      auth: 'caller',
    },
    summary: 'Deletes a kept response',
    returns: foreign({ id: text, deleted: { const: true } }),
  },
  {
    ...{ method: 'GET', path: '/v1/models', tag: 'Models', auth: 'caller' },
    summary: 'The models and aliases that the caller can use',
    query: { details: 'true: prices, APIs and sources' },
    returns: object({
      ...list(ref('Model')),
      ...{
        has_more: { const: false },
        first_id: orNull(text),
        last_id: orNull(text),
        notice: optional(text),
      },
    }),
  },
  {
    ...{ method: 'GET', path: '/v1/models/{id}', route: '/models/:id+', tag: 'Models', auth: 'caller' },
    summary: 'A model, by any name that a request may have',
    ...{ query: { details: 'as in the list' }, returns: ref('Model') },
  },
  {
    ...{ method: 'GET', path: '/v1/usage', tag: 'Usage', auth: 'caller', csv: true },
    summary: 'A report of the usage of the calling key, or of all keys for the admin',
    query: queryOf({ USAGE_PARAMS }),
    returns: typed<ReportView>({
      ...list(ref('ReportRow')),
      ...{
        ...span,
        total: ref('Sums'),
        distribution: described(
          ref('Distribution'),
          'how many requests had their first token, and a rate, from `from` to below `to`',
        ),
      },
      named: described(
        ref('NamedGroups'),
        'the groups before the limit, without requests that lack a fact of the groups',
      ),
    }),
  },
  {
    ...{ method: 'GET', path: '/v1/usage/records', tag: 'Usage', auth: 'caller' },
    summary: 'Usage records, the latest first',
    query: queryOf({ RECORD_PARAMS }),
    returns: typed<RecordPageView>({ ...list(ref('Record')), ...paged }),
  },
  {
    ...{ method: 'GET', path: '/v1/usage/records/{id}', tag: 'Usage', auth: 'caller' },
    summary: 'The record of a request, by x-weir-request-id',
    query: queryOf({ KEY_FILTER }),
    returns: ref('Record'),
  },
  {
    ...{ method: 'GET', path: '/v1/usage/refusals', tag: 'Usage', auth: 'caller', csv: true },
    summary: 'Counts of requests that Weir refused',
    query: queryOf({ REFUSAL_PARAMS }),
    returns: typed<RefusalsView>({
      ...list({ type: 'object', properties: { refused_requests: count }, required: ['refused_requests'] }),
      ...{ ...span, total: object({ refused_requests: count }) },
    }),
  },
  {
    ...{ method: 'GET', path: '/v1/key', tag: 'Keys', auth: 'caller' },
    summary: "The caller's own key: limits, spent and left",
    returns: ref('KeyStatus'),
  },
  {
    ...{ method: 'GET', path: '/admin/keys', tag: 'Keys', auth: 'admin' },
    summary: 'All keys, and the tokens that only read usage',
    returns: typed<KeyListView>({
      ...list(ref('Key')),
      tokens: listOf(ref('UsageToken')),
      revoked: listOf(typed<RevokedKey>({ id: text, name: text, created_at: text, revoked_at: time })),
      ...{ budget_units: listOf(text), unreadable: optional(listOf(text)) },
    }),
  },
  {
    ...{ method: 'POST', path: '/admin/keys', tag: 'Keys', auth: 'admin', status: 201 },
    summary: 'Creates a key, or a token that only reads usage',
    body: either([ref('NewKey'), ref('NewUsageToken'), ref('NewTeamToken')]),
    returns: either([ref('CreatedKey'), ref('CreatedUsageToken')]),
  },
  {
    ...{ method: 'GET', path: '/admin/keys/{id}', tag: 'Keys', auth: 'admin' },
    summary: 'A key and what it has used of its limits',
    ...{ query: queryOf({ USE_PARAMS }), returns: ref('KeyStatus') },
  },
  {
    ...{ method: 'PATCH', path: '/admin/keys/{id}', tag: 'Keys', auth: 'admin' },
    summary: 'Changes the fields that the body names; null removes a limit, an expiry or the list of models',
    ...{ body: ref('KeyChange'), returns: ref('ChangedKey') },
  },
  {
    ...{ method: 'DELETE', path: '/admin/keys/{id}', tag: 'Keys', auth: 'admin' },
    summary: 'Revokes a key or a token permanently',
    returns: object({ id: text, deleted: { const: true } }),
  },
  {
    ...{ method: 'POST', path: '/v1/admin/keys/{id}/rotate', tag: 'Keys', auth: 'admin' },
    summary: 'Gives a key a new secret; the old one stays valid for an overlap',
    body: bodySchema(ROTATION_BODY),
    returns: ref('CreatedKey'),
  },
  {
    ...{ method: 'POST', path: '/v1/admin/keys/{id}/budget', tag: 'Keys', auth: 'admin' },
    summary: 'Raises one budget of a key for its current period',
    body: TOP_UP,
    returns: ref('KeyStatus'),
  },
  {
    ...{ method: 'GET', path: '/admin/keys/{id}/limits', tag: 'Keys', auth: 'admin' },
    summary: "The limits as the key's object has stored them",
    returns: object({
      object: { const: 'key.limits' },
      id: text,
      limits: orNull(anyObject),
      row: orNull(text),
      problem: orNull(text),
    }),
  },
  {
    ...{ method: 'PUT', path: '/admin/keys/{id}/limits', tag: 'Keys', auth: 'admin' },
    summary: 'The key has these limits and no others',
    ...{ body: ref('Limits'), returns: ref('ChangedKey') },
  },
  {
    ...{ method: 'DELETE', path: '/admin/keys/{id}/limits', tag: 'Keys', auth: 'admin' },
    summary: 'Removes all limits of a key',
    returns: ref('ChangedKey'),
  },
  {
    ...{ method: 'GET', path: '/v1/admin/teams', tag: 'Teams', auth: 'admin' },
    summary: 'All teams',
    returns: object(list(ref('Team'))),
  },
  {
    ...{ method: 'POST', path: '/v1/admin/teams', tag: 'Teams', auth: 'admin', status: 201 },
    summary: 'Creates a team',
    ...{ body: ref('NewTeam'), returns: ref('ChangedTeam') },
  },
  {
    ...{ method: 'GET', path: '/v1/admin/teams/{id}', tag: 'Teams', auth: 'admin' },
    summary: 'A team, the number of its keys, and what is used of its limits',
    ...{ query: queryOf({ USE_PARAMS }), returns: ref('TeamStatus') },
  },
  {
    ...{ method: 'PATCH', path: '/v1/admin/teams/{id}', tag: 'Teams', auth: 'admin' },
    summary: 'Changes the fields that the body names; null removes a limit or a list',
    ...{ body: ref('TeamChange'), returns: ref('ChangedTeam') },
  },
  {
    ...{ method: 'DELETE', path: '/v1/admin/teams/{id}', tag: 'Teams', auth: 'admin' },
    summary: 'Deletes a team without keys',
    returns: object({ id: text, deleted: { const: true } }),
  },
  {
    ...{ method: 'POST', path: '/v1/admin/teams/{id}/budget', tag: 'Teams', auth: 'admin' },
    summary: 'Raises one budget of a team for its current period',
    ...{ body: TOP_UP, returns: ref('TeamStatus') },
  },
  {
    ...{ method: 'DELETE', path: '/v1/admin/users/{name}', tag: 'Administration', auth: 'admin' },
    summary: 'Starts the erasure of one user, or continues the one that runs',
    ...{ status: 202, returns: ERASURE },
  },
  {
    ...{ method: 'GET', path: '/v1/admin/erasures/{id}', tag: 'Administration', auth: 'admin' },
    summary: 'How far an erasure is',
    returns: ERASURE,
  },
  {
    ...{ method: 'GET', path: '/v1/admin/users/{name}/export', tag: 'Administration', auth: 'admin' },
    summary: 'Everything that is stored about one user, as lines of JSON',
    ...{ returns: null, mediaType: 'application/x-ndjson' },
  },
  {
    ...{ method: 'GET', path: '/v1/admin/audit', tag: 'Administration', auth: 'admin' },
    summary: 'Who created, changed or revoked which key or team',
    query: queryOf({ AUDIT_PARAMS }),
    returns: object({
      ...list(
        object({
          ...{ id: text, time, actor: text, key_id: optional(text), team: optional(text) },
          action: oneOf([
            ...['key_created', 'key_changed', 'key_revoked', 'budget_added'],
            ...['team_created', 'team_changed', 'team_deleted'],
          ]),
          ...{ before: orNull(anyObject), after: orNull(anyObject) },
        }),
      ),
      ...paged,
    }),
  },
  {
    ...{ method: 'GET', path: '/v1/admin/status', tag: 'Administration', auth: 'admin' },
    summary: 'What runs, and how its providers do',
    query: queryOf({ STATUS_PARAMS }),
    returns: explained(
      object({
        ...{ object: { const: 'status' }, time, in_flight: anyObject, circuits: anyObject },
        version: optional(text),
        commit: optional(orNull(text)),
        version_id: optional(orNull(text)),
        uploaded_at: optional(orNull(time)),
        features: optional(listOf(text)),
        settings: optional(listOf(anyObject)),
        providers: optional(listOf(anyObject)),
        aliases: optional(listOf(anyObject)),
        errors: optional(listOf(anyObject)),
        ledger: optional(anyObject),
      }),
      STATUS_TEXTS,
    ),
  },
  {
    ...{ method: 'GET', path: '/health', tag: 'Other', auth: 'none' },
    summary: 'Says that the Worker runs, and its version',
    returns: object({
      status: { const: 'ok' },
      version: text,
      commit: optional(text),
      version_id: optional(text),
    }),
  },
  {
    ...{ method: 'GET', path: '/dashboard', tag: 'Other', auth: 'none' },
    ...{ summary: 'The dashboard, a page', returns: null },
  },
  {
    ...{ method: 'GET', path: '/dashboard/docs', tag: 'Other', auth: 'none' },
    ...{ summary: 'The documents of this version, a page', returns: null },
  },
];
