/** Writes the request to one target: of the client's body, the target, and the rows that change it. It reads no clock and keeps nothing. */
import type { Caller } from '../auth/caller.ts';
import { sha256 } from '../auth/keys.ts';
import type { CanonicalRequest } from '../canonical/conversation.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { readName } from '../canonical/part.ts';
import type { Policies } from '../canonical/policies.ts';
import { EFFORT_FIELDS } from '../facts/efforts.ts';
import { fieldsWhere } from '../facts/fields.ts';
import type { SecondTry } from '../fitting/api-statements.ts';
import { type FitOptions, fitBody } from '../fitting/fit.ts';
import type { ApiMemory, LearnedScope, LearnedStatement } from '../fitting/learned.ts';
import { limitName, readOutputLimit, readWrittenLimit, withOutputLimit } from '../fitting/output-limit.ts';
import { spelledIn, withValue } from '../fitting/paths.ts';
import { betaOf, betasOf, type Statement } from '../fitting/statements.ts';
import type { RequestContext } from '../http/context.ts';
import type { SentPrompt } from '../metering/prompt-hashes.ts';
import type { AttemptTraits } from '../metering/request-meter.ts';
import { chatBody } from '../protocols/openai-chat/conversation-writer.ts';
import type { Passthrough } from '../protocols/shared/client-protocol.ts';
import { prepareWrite } from '../protocols/shared/request-form.ts';
import { readsReasoning } from '../providers/index.ts';
import type { Endpoint, PassthroughEndpoint, Route } from '../providers/provider.ts';
import {
  MAX_REPORTED_NAMES,
  ReportedFields,
  type TranslationReport,
} from '../request-translation/dropped-fields.ts';
import { COMPETING_LIMITS, type Unsupported } from '../request-translation/rules.ts';
import type { ToolKeys } from '../request-translation/tool-schemas.ts';
import { isForcedTool, type ToolNames } from '../request-translation/tools.ts';
import type { LimitPlace, RequestForm, WriteOptions } from '../request-translation/translate.ts';
import { chooseApi } from '../routing/api-choice.ts';
import { passthroughUrl, type Target, targetUrl } from '../routing/targets.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import { isObject, type JsonObject, objectOf, omit, readArray, readCount } from '../shared/json.ts';
import { MAX_NAME_CHARS } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { Writable } from '../shared/writable.ts';
import { LARGE_BYTES } from '../stream/memory.ts';
import type { Clock } from '../stream/timers.ts';
import type { ClientBody } from './request.ts';
import { maxWrittenBytes, type WrittenBody, writeBody } from './written-body.ts';

/** Traits of the request to one target. They live as long as the response, so they hold nothing of the prompt. */
export interface TargetTraits extends AttemptTraits {
  readonly target: Target;
  /** The client's names of tools, by the names sent upstream; absent: they are the same. */
  readonly toolNames?: ToolNames;
  /** By the name that is sent upstream of a tool: the client's keys of its arguments, by those sent upstream; absent: they are the same. */
  readonly toolKeys?: ToolKeys;
  /** The tools of a request that forces a call, by the names sent upstream, where the model may write it as text. Absent: none. */
  readonly forcedTools?: readonly string[];
  /** That of {@link TranslationReport}. */
  readonly documents?: TranslationReport['documents'];
  /** The endpoint that speaks the client's protocol; null: the request is translated. */
  readonly passthrough: PassthroughEndpoint | null;
  /** The endpoint of a translated request. */
  readonly endpoint: Endpoint;
  /** To which later requests a refusal of this one applies. */
  readonly scope: LearnedScope;
  /** What refusals said, in this request or in earlier ones, for which the request was changed. */
  readonly mends: readonly LearnedStatement[];
}

/** What a refusal asks for, so that the same target is tried once more. */
export type Mending = SecondTry | { readonly kind: 'fields'; readonly statements: readonly Statement[] };

/** The request to one target. */
export interface TargetRequest extends Omit<WrittenBody, 'repaired'> {
  readonly traits: TargetTraits;
  readonly url: string;
  /** Headers of the provider for what other APIs have in the body. */
  readonly headers: Readonly<Record<string, string>>;
  /** The form in which it was written. */
  readonly form: RequestForm;
  /**
   * The body in the form of Chat Completions: the one that is sent, or, written when it is first read, the request from
   * which that was written.
   */
  readonly chatBody: JsonObject;
  /**
   * The client's own output limit of one choice, as the form has it: null without one, undefined if it is no positive integer. What is sent
   * may be lower, by the limit of the key.
   */
  readonly outputTokens: number | null | undefined;
  /** The limit of the key changed the body. */
  readonly isCut: boolean;
  /** How many prompts the body contains. Each has its own choices. */
  readonly prompts: number;
  /** Whether the model writes text. Embeddings have input tokens only. */
  readonly writesText: boolean;
  /** Entries of `anthropic-beta` that are not sent. */
  readonly refusedBetas: readonly string[];
  /** Whether the body contains the whole prompt. With passthrough, the provider may store, fetch or search for more of it (G2). */
  readonly hasWholePrompt: boolean;
}

/** A completion request, as far as the requests to its targets depend on it. */
export interface ReplayedRequest {
  readonly context: Pick<RequestContext, 'settings'> & {
    readonly upstreams: Pick<RequestContext['upstreams'], 'learned'>;
    readonly ports: { readonly clock: Pick<Clock, 'now'> };
  };
  readonly route: Route;
  /** The client's. */
  readonly headers: Headers;
  /** The credential is the caller's own (`AUTH=passthrough`), so refusals of it concern the caller. */
  readonly callerPays: boolean;
  /** The id of the caller's key. */
  readonly caller: Pick<Caller, 'keyId'>;
  /** As the client sent it, never stored; null: it is not known. Its hash is the key of prompt caches that take one. */
  readonly session: string | null;
  readonly policies: Policies;
  /** What happens to fields that a target does not accept. */
  readonly unsupported: Unsupported;
}

/** The body and what depends on it. */
export type ReplayedBody = Omit<ClientBody, 'client' | 'isPinned' | 'requestedModels'> & {
  readonly client: Pick<ClientBody['client'], 'passthrough' | 'fieldNames' | 'optionalFields'>;
};

/** The output limit that the caller's key leaves of the client's own; null: none. */
export type OutputLimit = (own: number | null) => number | null;

/** What changes the request to a target: the limit of the caller's key, and what refusals said. */
export interface TargetRows {
  readonly outputLimit: OutputLimit;
  /** What refusals of this request asked for. */
  readonly tries: readonly Mending[];
  /** What earlier refusals said of the model's APIs. */
  readonly apis: ApiMemory;
  /** What earlier refusals said, where a written body meets its conditions. */
  readonly learnedOf: (scope: LearnedScope, body: JsonObject) => readonly LearnedStatement[];
  /** The time for which all this holds, in ms since the epoch. */
  readonly now: number;
}

/** Fields that the gateway itself reads. Upstreams refuse them, or would route by them again. */
const ROUTING_FIELDS = fieldsWhere(({ routes }) => routes === true);

/**
 * Fails if the target's provider does not accept the request.
 * @param pause lets other requests work, between two steps that may take long
 */
export async function writeTargetRequest(
  held: ReplayedBody,
  target: Target,
  rows: TargetRows,
  request: ReplayedRequest,
  pause: () => Promise<void>,
): Promise<Result<TargetRequest, ApiError>> {
  const targetFields = fieldsFor(held, target, request.route);
  await pause();
  const form = formFor(held, target, withKeyLimit(targetFields, rows), rows, request);
  if (form.kind === 'error') return form;
  const written = await writeFitted(held, form.value, rows, request, pause);
  return written.kind === 'error'
    ? written
    : ok(targetRequestOf(held, form.value, written.value, rows, request));
}

/** In which form a target gets a request, and what is written in it. */
interface TargetForm extends Way {
  readonly target: Target;
  /** Null: the request is translated. */
  readonly passthrough: OpenPassthrough | null;
  readonly form: RequestForm;
  readonly limited: LimitedFields;
  readonly canonical: CanonicalRequest;
}

/** Fails if the request cannot be translated, and has to be. */
function formFor(
  held: ReplayedBody,
  target: Target,
  limited: LimitedFields,
  rows: TargetRows,
  request: ReplayedRequest,
): Result<TargetForm, ApiError> {
  const canonical = canonicalFor(held, target, limited.fields);
  const passthrough = passthroughTo(target, held);
  if (passthrough === null && held.translationError !== null) return failure(held.translationError);
  const way = wayTo(target, canonical, passthrough, rows, request);
  const { clientLimit, keyLimit } = limited;
  // In another spelling, a limit is not where the form has it.
  const readsLimit = clientLimit !== null || rows.outputLimit(null) !== null;
  const form =
    passthrough === null
      ? way.endpoint.request
      : passthroughForm(passthrough, { isLimited: keyLimit !== null, readsLimit });
  const refusal = guardrailRefusal(target, form, limited.fields);
  if (refusal !== null) return failure(refusal);
  const { api, endpoint, scope } = way;
  return ok({ api, endpoint, scope, target, passthrough, form, limited, canonical });
}

/** What was written for a target, and what was changed of it. */
interface FittedText extends Pick<WrittenBody, 'body' | 'json' | 'itemTexts'> {
  readonly report: TranslationReport;
  readonly replaced: Pick<TargetTraits, 'toolNames' | 'toolKeys'>;
  readonly fitted: FittedBody;
  readonly headers: TargetRequest['headers'];
}

/** Writes the body in its form, fits it to the model, and makes its text. */
async function writeFitted(
  held: ReplayedBody,
  targetForm: TargetForm,
  rows: TargetRows,
  request: ReplayedRequest,
  pause: () => Promise<void>,
): Promise<Result<FittedText, ApiError>> {
  const { target, form, passthrough, canonical } = targetForm;
  const { name: provider } = target.provider;
  const sent = asksFor(rows, 'without_reasoning') ? withoutReasoningDetails(canonical) : canonical;
  const prepared = prepareWrite(form, sent, provider);
  if (prepared.kind === 'error') return prepared;
  await pause();
  const translated = prepared.value(await writeOptions(held, targetForm, rows, request));
  if (translated.kind === 'error') return translated;
  const { body, report, ...replaced } = translated.value;
  const fitted = fitWritten(body, targetForm, rows, request, report);
  await pause();
  const { sentBody, sentHeaders } = target.provider;
  const whole = withModel(fitted.body, target);
  const text = writeBody(sentBody?.(whole) ?? whole, {
    maxBytes: maxWrittenBytes(held.clientBodyBytes, request.context.settings.maxRequestBytes),
    provider,
    // A large body's memory is granted for one text.
    keepsItems: request.session !== null && held.clientBodyBytes <= LARGE_BYTES,
    isWellFormed: passthrough === null,
  });
  if (text.kind === 'error') return text;
  await pause();
  const { repaired, json, itemTexts } = text.value;
  for (const field of repaired) report.change(field);
  if (asksFor(rows, 'without_reasoning')) report.change('reasoning');
  if (fitted.isLowered) report.change(limitName(form));
  return ok({
    body: text.value.body,
    json,
    itemTexts,
    headers: sentHeaders?.(whole) ?? {},
    report,
    replaced,
    fitted,
  });
}

function targetRequestOf(
  held: ReplayedBody,
  { target, passthrough, api, endpoint, scope, form, limited, canonical }: TargetForm,
  { body, json, itemTexts, headers, fitted, replaced, report: { dropped, changed, documents } }: FittedText,
  rows: TargetRows,
  { route }: ReplayedRequest,
): TargetRequest {
  const { fields } = limited;
  const isTranslated = passthrough === null;
  const prompts = countPrompts(fields);
  const address = addressOf(target, scope, rows);
  const traits: Writable<TargetTraits> = {
    target,
    dropped: isTranslated ? joinNames(held.dropped, dropped) : dropped,
    changed,
    requestedTier: dropped.includes('service_tier') ? undefined : readName(fields.service_tier),
    choices: prompts * (readCount(fields.n) ?? 1),
    showsAll: isTranslated && showsAll(target, body),
    passthrough: passthrough?.endpoint ?? null,
    endpoint,
    api,
    scope,
    mends: fitted.statements,
  };
  const { toolNames, toolKeys } = replaced;
  if (toolNames !== undefined) traits.toolNames = toolNames;
  if (toolKeys !== undefined) traits.toolKeys = toolKeys;
  if (documents !== undefined) traits.documents = documents;
  if (target.provider.quirks?.writesCallsAsText === true) traits.forcedTools = forcedTools(body);
  const targetRequest = {
    body,
    json,
    itemTexts,
    headers,
    chatBody: body,
    traits,
    url: isTranslated
      ? targetUrl(address, endpoint, withModel(fields, target))
      : passthroughUrl(address, passthrough.endpoint, withModel(fields, target)),
    form,
    outputTokens: fitted.outputTokens,
    isCut: fitted.isCut,
    prompts,
    writesText: route !== 'embeddings',
    refusedBetas: fitted.betas,
    hasWholePrompt: isTranslated || hasWholePrompt(passthrough.passthrough, held),
  };
  if (form.kind !== 'native') return targetRequest;
  let chat: JsonObject | undefined;
  return {
    ...targetRequest,
    get chatBody() {
      chat ??= chatBody(canonical);
      return chat;
    },
  };
}

/** The client's fields with those of the alias and the name of the model. */
function fieldsFor(held: ReplayedBody, { model, makerModel, aliasTarget }: Target, route: Route): JsonObject {
  // The rules for a model are those of its maker's name. The provider's name takes its place when the body is written.
  const name = route === 'agents' ? { agent_id: model } : { model: makerModel };
  return { ...omit(held.fields, ...ROUTING_FIELDS), ...aliasTarget.set, ...name };
}

function canonicalFor(
  held: ReplayedBody,
  { aliasTarget: { set } }: Target,
  fields: JsonObject,
): CanonicalRequest {
  // An alias may also set the messages, in the form of chat.
  const turns = set.messages === undefined ? held.turns : null;
  // An alias that sets an effort replaces the client's own.
  const isEffortSet = EFFORT_FIELDS.some((field) => set[field] !== undefined);
  return { fields, turns, thinking: isEffortSet ? undefined : held.thinking };
}

/** The names of the tools, if the body forces a call of one. */
function forcedTools({ tool_choice, tools }: JsonObject): readonly string[] {
  if (!isForcedTool(tool_choice)) return [];
  return readArray(tools).flatMap((tool) => readName(objectOf(objectOf(tool).function).name) ?? []);
}

function asksFor({ tries }: TargetRows, kind: Mending['kind']): boolean {
  return tries.some((one) => one.kind === kind);
}

/** By which API and endpoint a target gets a request, and to which later requests its refusals apply. */
type Way = Pick<TargetTraits, 'api' | 'endpoint' | 'scope'>;

/** The API is that of the alias target, else of an earlier refusal, else of the provider's table. */
function wayTo(
  target: Target,
  canonical: CanonicalRequest,
  passthrough: OpenPassthrough | null,
  { tries, apis, now }: TargetRows,
  { route, headers, caller: { keyId } }: ReplayedRequest,
): Way {
  const { provider, model, makerModel, aliasTarget, endpoint } = target;
  const ofModel = { providerId: provider.id, model, keyId };
  if (passthrough !== null) {
    return { api: 'chat', endpoint, scope: { ...ofModel, api: wayOf(passthrough, headers) } };
  }
  const switched = tries.findLast((mending) => mending.kind === 'api');
  const forced = switched?.api ?? aliasTarget.api;
  const api =
    route === 'chat'
      ? chooseApi({ provider, model, makerModel, request: canonical, forced, keyId }, apis, now)
      : 'chat';
  const served = api === 'responses' ? (provider.responses?.endpoint ?? endpoint) : endpoint;
  return { api, endpoint: served, scope: { ...ofModel, api } };
}

async function writeOptions(
  held: ReplayedBody,
  { target: { provider, makerModel }, form, api, scope }: TargetForm,
  rows: TargetRows,
  { policies, session, unsupported, context: { settings } }: ReplayedRequest,
): Promise<WriteOptions> {
  const { passthrough, fieldNames, optionalFields } = held.client;
  const takesKey = form.kind === 'native' && form.takesPromptCacheKey === true;
  return {
    model: makerModel,
    provider: provider.name,
    providerId: provider.id,
    unsupported,
    promptCache: settings.promptCache,
    hidesReasoning:
      policies.reasoning === 'strip' ||
      asksFor(rows, 'without_summary') ||
      (api === 'responses' && rows.apis.refusesSummary(scope, rows.now)),
    // Chat Completions has no passthrough.
    isFromOtherProtocol: passthrough !== null,
    ...(fieldNames === undefined ? {} : { fieldNames }),
    ...(optionalFields === undefined ? {} : { optionalFields }),
    ...(session !== null && takesKey ? { promptCacheKey: await promptCacheKey(session) } : {}),
  };
}

/** The target with the base URL that earlier refusals, and those of this request, leave: each names the other one. */
function addressOf(target: Target, scope: LearnedScope, rows: TargetRows): Target {
  if (target.otherBaseUrl === null) return target;
  const isKnown = rows.apis.isAtOtherPath(scope, rows.now);
  return isKnown === asksFor(rows, 'other_path') ? target : { ...target, baseUrl: target.otherBaseUrl };
}

/** The fields of a request with the output limit of the caller's key. */
interface LimitedFields {
  readonly fields: JsonObject;
  /** The client's own limit: null without one, undefined if it is no positive integer. */
  readonly clientLimit: number | null | undefined;
  /** The key's limit, which took the place of a higher one of the client, or of none; null: it did not. */
  readonly keyLimit: number | null;
}

/** Sets the key's limit before translation, because a thinking budget follows from it. */
function withKeyLimit(fields: JsonObject, { outputLimit }: TargetRows): LimitedFields {
  const clientLimit = readOutputLimit(fields);
  // Of a limit that is not readable, the form may have another one.
  const keyLimit = clientLimit === undefined ? null : outputLimit(clientLimit);
  const isLimited = keyLimit !== null && keyLimit < (clientLimit ?? Number.POSITIVE_INFINITY);
  return isLimited
    ? { fields: withOutputLimit(fields, keyLimit), clientLimit, keyLimit }
    : { fields, clientLimit, keyLimit: null };
}

/**
 * A guardrail that is lost would look like one that found nothing. A server that is not known gets it as it came. Null: it can be sent, or
 * there is none.
 */
function guardrailRefusal(
  { provider, model, isKnownHost }: Target,
  form: RequestForm,
  { guardrailConfig }: JsonObject,
): ApiError | null {
  if (guardrailConfig === undefined || guardrailConfig === null) return null;
  if (form.kind === 'native' ? form.takesGuardrails === true : !isKnownHost) return null;
  const message = `${provider.name} takes no guardrailConfig for ${model.slice(0, MAX_NAME_CHARS)}: only Converse does`;
  return apiError('unsupported_parameter', message, 'guardrailConfig');
}

interface FittedBody extends Pick<TargetRequest, 'outputTokens' | 'isCut'> {
  readonly body: JsonObject;
  /** The key's limit is in the body. */
  readonly isLowered: boolean;
  readonly statements: readonly LearnedStatement[];
  readonly betas: readonly string[];
}

/** Applies the key's limit, and what refusals said: of earlier requests where their conditions hold, and of this one. */
function fitWritten(
  body: JsonObject,
  { target, form, scope, limited: fields }: TargetForm,
  { outputLimit, tries, learnedOf }: TargetRows,
  { headers }: ReplayedRequest,
  report: TranslationReport,
): FittedBody {
  const options: FitOptions = { form, report, model: target.makerModel };
  const own = ownLimit(form, body, fields);
  const tokens = outputLimit(own ?? null);
  const limited = fitBody(body, tokens === null ? [] : [{ kind: 'key_limit', tokens }], options);
  const written = readWrittenLimit(form, body) ?? Number.POSITIVE_INFINITY;
  const isLowered = tokens !== null && (written === fields.keyLimit || written > tokens);
  const statements = [
    ...learnedOf(scope, limited.body),
    ...tries.flatMap((one) => (one.kind === 'fields' ? one.statements : [])),
  ];
  const sentBetas = betasOf(headers.get('anthropic-beta'));
  const betaIn = ({ finding }: LearnedStatement) =>
    finding.kind === 'beta' ? betaOf(finding, sentBetas) : undefined;
  const betas = statements.flatMap((one) => betaIn(one) ?? []);
  if (betas.length > 0) report.dropAllowed('anthropic-beta');
  const findings = statements.map(({ finding }) => finding);
  const fitted = fitBody(limited.body, findings, options);
  const lowered = readWrittenLimit(form, fitted.body) ?? Number.POSITIVE_INFINITY;
  return {
    body: fitted.body,
    isLowered,
    statements: statements.filter((one) => fitted.applied.includes(one.finding) || betaIn(one) !== undefined),
    betas,
    outputTokens: typeof own === 'number' && lowered < Math.min(own, tokens ?? own) ? lowered : own,
    isCut: isLowered || limited.applied.length > 0,
  };
}

/** The client's limit as a form has it, which may lower it. A limit that only the form demands, as Messages does, is not the client's. */
function ownLimit(
  form: RequestForm,
  body: JsonObject,
  { clientLimit, keyLimit }: LimitedFields,
): number | null | undefined {
  if (form.kind === 'native' && clientLimit === null) return null;
  const written = readWrittenLimit(form, body);
  return keyLimit !== null && written === keyLimit ? clientLimit : written;
}

/** OpenAI takes 64 characters: "maximum length 64", its refusal of a longer key. */
const PROMPT_CACHE_KEY_CHARS = 32;

async function promptCacheKey(session: string): Promise<string> {
  return (await sha256(session)).slice(0, PROMPT_CACHE_KEY_CHARS);
}

function withoutReasoningDetails(request: CanonicalRequest): CanonicalRequest {
  const body = chatBody(request);
  const messages = readArray(body.messages).map((message) =>
    isObject(message) ? omit(message, 'reasoning_details') : message,
  );
  return { fields: { ...body, messages }, turns: null, thinking: request.thinking };
}

/** Targets are distinguished by what has a prompt cache of its own: the provider's address and the API. */
export function sentPrompt({ body, itemTexts, traits }: TargetRequest): SentPrompt {
  const { target, passthrough, api } = traits;
  const way = passthrough === null ? api : wayName(passthrough);
  return { body, itemTexts, target: JSON.stringify([target.provider.id, target.baseUrl, way]) };
}

/** The body with the provider's name of the model, where it has one. */
function withModel(body: JsonObject, { model, makerModel }: Target): JsonObject {
  return model === makerModel || body.model !== makerModel ? body : { ...body, model };
}

interface OpenPassthrough {
  readonly passthrough: Passthrough;
  readonly endpoint: PassthroughEndpoint;
  /** The part of the client's body that passes. */
  readonly body: JsonObject;
}

/** Null if the request is translated. An alias that sets fields needs translation, because its fields are those of Chat Completions. */
function passthroughTo(
  { provider, makerModel, isKnownHost, aliasTarget }: Target,
  { client: { passthrough }, clientBody }: ReplayedBody,
): OpenPassthrough | null {
  const endpoint = passthrough === null ? undefined : provider.passthrough?.[passthrough.protocol];
  if (passthrough === null || endpoint === undefined || Object.keys(aliasTarget.set).length > 0) return null;
  const body = passthrough.upstreamBody(clientBody, {
    provider: provider.id,
    encryptsReasoning: endpoint.encryptsReasoning?.(makerModel) ?? false,
    needsSignatures: endpoint.needsSignatures?.(makerModel) ?? false,
    ...(isKnownHost && { readsReasoning: (data) => readsReasoning(provider, data) }),
  });
  return body === null ? null : { passthrough, endpoint, body };
}

/** The API with the client's headers that go with it: a refusal may depend on them, such as on a version. */
function wayOf({ passthrough, endpoint }: OpenPassthrough, headers: Headers): string {
  const passed = passthrough.requestHeaders.map((name) => headers.get(name) ?? '');
  return `${wayName(endpoint)} ${passed.join('\n')}`;
}

/** A path that depends on the model or on streaming stands for one API. */
function wayName({ path, protocol }: PassthroughEndpoint): string {
  return typeof path === 'string' ? path : protocol.id;
}

/** Changes only the model, the output limit, what the model would refuse of it, and the fields about reasoning and the client itself. */
function passthroughForm(
  { passthrough, endpoint, body }: OpenPassthrough,
  { isLimited, readsLimit }: { readonly isLimited: boolean; readonly readsLimit: boolean },
): RequestForm {
  const passed = (readsLimit && passthrough.limitable?.(body)) || body;
  const { outputLimitField, clientFields = [] } = passthrough;
  const limit = outputLimitField === null ? null : limitPlace(outputLimitField, passed);
  const dropped = clientFields.filter((name) => passed[name] !== undefined);
  const form: RequestForm = {
    kind: 'native',
    fromSettings: [],
    write: ({ settings: { outputLimit } }, { model, hidesReasoning }, report) => {
      for (const name of dropped) report.dropAllowed(name);
      const named = passthrough.withModel?.(passed, model) ?? { ...passed, model };
      const { body: fitted } = fitBody(named, endpoint.rows ?? [], { form, report, model });
      const shown = hidesReasoning ? (endpoint.hideReasoning?.(fitted, model) ?? fitted) : fitted;
      const kept = omit(shown, ...ROUTING_FIELDS, ...dropped);
      return isLimited && limit !== null ? withValue(kept, limit.path.split('.'), outputLimit) : kept;
    },
    limit,
  };
  return form;
}

/** @param name with dots; the body may spell it in another way */
function limitPlace(name: string, body: JsonObject): LimitPlace {
  const path = spelledIn(body, name.split('.')).join('.');
  const others = [...COMPETING_LIMITS, 'n', 'best_of'].filter((other) => !path.startsWith(`${other}.`));
  return { path, name, competing: others };
}

/**
 * False if a field that only passthrough sends may add to the prompt. The list of dropped names is bounded, so a full
 * one may lack some.
 */
function hasWholePrompt(
  passthrough: Passthrough,
  { translationError, dropped, clientBody }: ReplayedBody,
): boolean {
  if (dropped.length >= MAX_REPORTED_NAMES) return false;
  return (
    translationError === null &&
    !passthrough.compactsContext(clientBody) &&
    !dropped.some((name) => passthrough.promptFields.test(name))
  );
}

function joinNames(read: readonly string[], written: readonly string[]): readonly string[] {
  const names = new ReportedFields();
  names.addAll(read);
  names.addAll(written);
  return names.list;
}

const HIDING_FIELDS = fieldsWhere(({ hidesOutput }) => hidesOutput === true);

function showsAll({ provider, makerModel }: Target, body: JsonObject): boolean {
  const isHiding = HIDING_FIELDS.some((field) => body[field] !== undefined);
  return !isHiding && matchesAnyGlob(provider.visibleOutputModels ?? [], makerModel);
}

function countPrompts({ prompt }: JsonObject): number {
  const prompts = readArray(prompt).filter((item) => typeof item === 'string' || Array.isArray(item)).length;
  return Math.max(1, prompts);
}
