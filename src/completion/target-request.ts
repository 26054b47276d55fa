/** Writes the request to one target: of the client's body, the target, and the rows that change it. It reads no clock and keeps nothing. */
import type { Caller } from '../auth/caller.ts';
import { sha256 } from '../auth/keys.ts';
import type { CanonicalRequest } from '../canonical/conversation.ts';
import type { ApiError } from '../canonical/error.ts';
import { readName } from '../canonical/part.ts';
import type { Policies } from '../canonical/policies.ts';
import { EFFORT_FIELDS } from '../facts/efforts.ts';
import { fieldsWhere } from '../facts/fields.ts';
import type { SecondTry } from '../fitting/api-statements.ts';
import { type FitOptions, fitBody } from '../fitting/fit.ts';
import type { ApiMemory, LearnedScope, LearnedStatement } from '../fitting/learned.ts';
import { limitName, readOutputLimit, withOutputLimit } from '../fitting/output-limit.ts';
import type { FitRow } from '../fitting/rows.ts';
import { betaOf, betasOf, type Statement } from '../fitting/statements.ts';
import type { RequestContext } from '../http/context.ts';
import type { SentPrompt } from '../metering/prompt-hashes.ts';
import type { AttemptTraits } from '../metering/request-meter.ts';
import { chatBody } from '../protocols/openai-chat/conversation-writer.ts';
import type { Passthrough } from '../protocols/shared/client-protocol.ts';
import { prepareWrite } from '../protocols/shared/request-form.ts';
import { readsReasoning } from '../providers/index.ts';
import type { Endpoint, PassthroughEndpoint, Provider, Route } from '../providers/provider.ts';
import { MAX_REPORTED_NAMES, ReportedFields } from '../request-translation/dropped-fields.ts';
import { COMPETING_LIMITS, type Unsupported } from '../request-translation/rules.ts';
import type { ToolKeys } from '../request-translation/tool-schemas.ts';
import type { ToolNames } from '../request-translation/tools.ts';
import { type RequestForm, type WriteOptions, withoutNulls } from '../request-translation/translate.ts';
import { chooseApi } from '../routing/api-choice.ts';
import { passthroughUrl, type Target, targetUrl } from '../routing/targets.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import { isObject, type JsonObject, omit, readArray, readCount } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
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
  /** The form in which it was written. */
  readonly form: RequestForm;
  /** The body in the form of Chat Completions: the one that is sent, or, written when it is first read, the request from which that was written. */
  readonly chatBody: JsonObject;
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
  readonly context: Pick<RequestContext, 'settings' | 'learned'> & {
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
  readonly client: Pick<ClientBody['client'], 'passthrough' | 'fieldNames'>;
};

/** What changes the request to a target: the limit of the caller's key, and what refusals said. */
export interface TargetRows {
  /** The output limit of the caller's key; null: it has none. */
  readonly outputTokens: number | null;
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
  const { route, session, context } = request;
  const { provider, makerModel } = target;
  const targetFields = fieldsFor(held, target, route);
  await pause();
  const { body: fields, isLimited } = withKeyLimit(targetFields, rows.outputTokens);
  const canonical = canonicalFor(held, target, fields);
  const passthrough = passthroughTo(target, held);
  if (passthrough === null && held.translationError !== null) return failure(held.translationError);
  const way = wayTo(target, canonical, passthrough, rows, request);
  const { api, endpoint, scope } = way;
  const form = passthrough === null ? endpoint.request : passthroughForm(passthrough, isLimited);
  const isWithoutReasoning = asksFor(rows, 'without_reasoning');
  const sent = isWithoutReasoning ? withoutReasoningDetails(canonical) : canonical;
  const prepared = prepareWrite(form, sent, provider.name);
  if (prepared.kind === 'error') return prepared;
  await pause();
  const rewritten = prepared.value(await writeOptions(held, target, form, way, rows, request));
  if (rewritten.kind === 'error') return rewritten;
  const { changed, toolNames, toolKeys } = rewritten.value;
  const fitted = fitWritten(rewritten.value.body, form, scope, rows, request);
  const dropped = [...rewritten.value.dropped, ...fitted.dropped];
  await pause();
  const written = writeBody(withModel(fitted.body, target), {
    maxBytes: maxWrittenBytes(held.clientBodyBytes, context.settings.maxRequestBytes),
    provider: provider.name,
    // A large body's memory is granted for one text.
    keepsItems: session !== null && held.clientBodyBytes <= LARGE_BYTES,
    isWellFormed: passthrough === null,
  });
  if (written.kind === 'error') return written;
  const { repaired, ...texts } = written.value;
  await pause();
  const prompts = countPrompts(fields);
  const isTranslated = passthrough === null;
  const traits = {
    target,
    dropped: isTranslated ? joinNames(held.dropped, dropped) : dropped,
    changed: [
      ...changed,
      ...fitted.changed,
      ...repaired,
      ...(isLimited ? [limitName(form)] : []),
      ...(isWithoutReasoning && !changed.includes('reasoning') ? ['reasoning'] : []),
    ],
    requestedTier: dropped.includes('service_tier') ? undefined : readName(fields.service_tier),
    choices: prompts * (readCount(fields.n) ?? 1),
    showsAll: isTranslated && showsAll(provider, makerModel, texts.body),
    passthrough: passthrough?.endpoint ?? null,
    endpoint,
    api,
    scope,
    mends: fitted.statements,
    ...(toolNames === undefined ? {} : { toolNames }),
    ...(toolKeys === undefined ? {} : { toolKeys }),
  };
  const address = addressOf(target, scope, rows);
  const targetRequest = {
    ...texts,
    traits,
    url: isTranslated
      ? targetUrl(address, endpoint, withModel(fields, target))
      : passthroughUrl(address, passthrough.endpoint),
    form,
    prompts,
    writesText: route !== 'embeddings',
    refusedBetas: fitted.betas,
    hasWholePrompt: isTranslated || hasWholePrompt(passthrough.passthrough, held),
  };
  if (form.kind !== 'native') return ok({ ...targetRequest, chatBody: texts.body });
  let chat: JsonObject | undefined;
  return ok({
    ...targetRequest,
    get chatBody() {
      chat ??= chatBody(canonical);
      return chat;
    },
  });
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
  { provider, makerModel }: Target,
  form: RequestForm,
  { api, scope }: Way,
  rows: TargetRows,
  { policies, session, unsupported, context: { settings } }: ReplayedRequest,
): Promise<WriteOptions> {
  const { passthrough, fieldNames } = held.client;
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
    ...(session !== null && takesKey ? { promptCacheKey: await promptCacheKey(session) } : {}),
  };
}

/** The target with the base URL that earlier refusals, and those of this request, leave: each names the other one. */
function addressOf(target: Target, scope: LearnedScope, rows: TargetRows): Target {
  if (target.otherBaseUrl === null) return target;
  const isKnown = rows.apis.isAtOtherPath(scope, rows.now);
  return isKnown === asksFor(rows, 'other_path') ? target : { ...target, baseUrl: target.otherBaseUrl };
}

/** The fields with the key's output limit, if that is lower than the client's own: a thinking budget follows from it. */
function withKeyLimit(
  body: JsonObject,
  outputTokens: number | null,
): { readonly body: JsonObject; readonly isLimited: boolean } {
  if (outputTokens === null) return { body, isLimited: false };
  const clientLimit = readOutputLimit(withoutNulls(body)) ?? null;
  const isLimited = clientLimit === null || clientLimit > outputTokens;
  return isLimited ? { body: withOutputLimit(body, outputTokens), isLimited } : { body, isLimited };
}

interface FittedBody {
  readonly body: JsonObject;
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
  readonly statements: readonly LearnedStatement[];
  readonly betas: readonly string[];
}

/** Applies the key's limit, and what refusals said: of earlier requests where their conditions hold, and of this one. */
function fitWritten(
  body: JsonObject,
  form: RequestForm,
  scope: LearnedScope,
  { outputTokens, tries, learnedOf }: TargetRows,
  { headers, unsupported }: ReplayedRequest,
): FittedBody {
  const options: FitOptions = { form, unsupported };
  const limits: { finding: FitRow }[] =
    outputTokens === null ? [] : [{ finding: { kind: 'key_limit', tokens: outputTokens } }];
  const limited = fitBody(body, limits, options);
  const own = tries.flatMap((one) => (one.kind === 'fields' ? one.statements : []));
  const statements = [...learnedOf(scope, limited.body), ...own];
  const fitted = fitBody(limited.body, statements, options);
  const sentBetas = betasOf(headers.get('anthropic-beta'));
  const betaIn = ({ finding }: LearnedStatement) =>
    finding.kind === 'beta' ? betaOf(finding, sentBetas) : undefined;
  const betas = statements.flatMap((one) => betaIn(one) ?? []);
  return {
    body: fitted.body,
    dropped: [...limited.dropped, ...betas.map(() => 'anthropic-beta'), ...fitted.dropped],
    changed: fitted.changed,
    statements: statements.filter((one) => fitted.applied.includes(one) || betaIn(one) !== undefined),
    betas,
  };
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
  const way = passthrough === null ? api : passthrough.path;
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
  const encryptsReasoning = endpoint.encryptsReasoning?.(makerModel) ?? false;
  const body = passthrough.upstreamBody(clientBody, {
    provider: provider.id,
    encryptsReasoning,
    ...(isKnownHost && { readsReasoning: (data) => readsReasoning(provider, data) }),
  });
  return body === null ? null : { passthrough, endpoint, body };
}

/** The API with the client's headers that go with it: a refusal may depend on them, such as on a version. */
function wayOf({ passthrough, endpoint }: OpenPassthrough, headers: Headers): string {
  const passed = passthrough.requestHeaders.map((name) => headers.get(name) ?? '');
  return `${endpoint.path} ${passed.join('\n')}`;
}

/** Changes only the model, the output limit, what the model would refuse of it, and the fields about reasoning and the client itself. */
function passthroughForm(
  { passthrough, endpoint, body: passed }: OpenPassthrough,
  isLimited: boolean,
): RequestForm {
  const { outputLimitField, clientFields = [] } = passthrough;
  const dropped = clientFields.filter((name) => passed[name] !== undefined);
  return {
    kind: 'native',
    fromSettings: [],
    write: ({ settings: { outputLimit } }, { model, hidesReasoning }, report) => {
      const limit = isLimited ? { [outputLimitField]: outputLimit } : {};
      for (const name of dropped) report.dropAllowed(name);
      const named = { ...passed, model };
      const fitted = endpoint.fit?.(named, report) ?? named;
      const shown = hidesReasoning ? (endpoint.hideReasoning?.(fitted, model) ?? fitted) : fitted;
      return { ...omit(shown, ...ROUTING_FIELDS, ...dropped), ...limit };
    },
    limit: { path: outputLimitField, competing: [...COMPETING_LIMITS, 'n', 'best_of'] },
  };
}

/** False if a field that only passthrough sends may add to the prompt. The list of dropped names is bounded, so a full one may lack some. */
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

function showsAll(provider: Provider, model: string, body: JsonObject): boolean {
  const isHiding = HIDING_FIELDS.some((field) => body[field] !== undefined);
  return !isHiding && matchesAnyGlob(provider.visibleOutputModels ?? [], model);
}

function countPrompts({ prompt }: JsonObject): number {
  const prompts = readArray(prompt).filter((item) => typeof item === 'string' || Array.isArray(item)).length;
  return Math.max(1, prompts);
}
