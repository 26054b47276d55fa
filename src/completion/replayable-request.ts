/** Keeps the client's request until no further target can be tried, and writes it as each target's provider expects it. */
import type { Caller } from '../auth/caller.ts';
import { sha256 } from '../auth/keys.ts';
import type { CanonicalRequest } from '../canonical/conversation.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { readName } from '../canonical/part.ts';
import type { Policies } from '../canonical/policies.ts';
import type { UpstreamRefusal } from '../canonical/refusal.ts';
import type { Upstream } from '../canonical/upstream-error.ts';
import { EFFORT_FIELDS } from '../facts/efforts.ts';
import { fieldsWhere } from '../facts/fields.ts';
import {
  type ApiStatement,
  asksForOtherPath,
  readApiStatement,
  type SecondTry,
} from '../fitting/api-statements.ts';
import { applyRow, type FitOptions, fit } from '../fitting/fit.ts';
import {
  LearnedRefusals,
  type LearnedScope,
  type LearnedStatement,
  type ModelOfKey,
} from '../fitting/learned.ts';
import { limitName, readOutputLimit, withOutputLimit } from '../fitting/output-limit.ts';
import type { Finding, FitRow } from '../fitting/rows.ts';
import { betaOf, betasOf, readStatements, type Statement } from '../fitting/statements.ts';
import type { RequestContext } from '../http/context.ts';
import { conversationField, type SentPrompt } from '../metering/prompt-hashes.ts';
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
import { type RequestForm, withoutNulls } from '../request-translation/translate.ts';
import { chooseApi } from '../routing/api-choice.ts';
import { passthroughUrl, type Target, targetUrl } from '../routing/targets.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  omit,
  parseJsonExactly,
  readArray,
  readCount,
  withoutHalfPairs,
  writeJson,
} from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { LARGE_BYTES, SMALL_BYTES } from '../stream/memory.ts';
import type { Clock } from '../stream/timers.ts';
import { compareWithRequest, type MessageComparison } from '../upstream/provider-message.ts';
import type { ClientBody } from './request.ts';

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
export interface TargetRequest {
  readonly traits: TargetTraits;
  readonly url: string;
  /** The body as it is sent, and its JSON text. */
  readonly body: JsonObject;
  readonly json: string;
  /** The texts of the conversation's items, if the prompt of a session may be hashed; null: they are not kept. */
  readonly itemTexts: readonly string[] | null;
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
type HeldBody = Omit<ClientBody, 'client' | 'isPinned' | 'requestedModels'> & {
  readonly client: Pick<ClientBody['client'], 'passthrough' | 'fieldNames'>;
};

/** Fields that the gateway itself reads. Upstreams refuse them, or would route by them again. */
const ROUTING_FIELDS = fieldsWhere(({ routes }) => routes === true);

/** One client's request, held as long as it may be sent again, and written for each target. It holds the request's memory until `release`. */
export class ReplayableRequest {
  readonly #request: ReplayedRequest;
  /** Null once released. */
  #held: HeldBody | null;
  readonly #learned: LearnedRefusals;
  /** The output limit of the caller's key. */
  #outputTokens: number | null = null;
  /** What refusals asked for, by target. */
  readonly #mendings = new Map<Target, readonly Mending[]>();
  /** The last request that was written; null once released. */
  #sent: { readonly body: JsonObject; readonly form: RequestForm } | null = null;
  /** The last refusal that was compared with it: each is, once. */
  #compared: ComparedRefusal | null = null;

  constructor(body: HeldBody, request: ReplayedRequest) {
    this.#request = request;
    this.#held = body;
    // A caller's own credential may have other rights at the provider than those of other callers.
    this.#learned = request.callerPays ? new LearnedRefusals() : request.context.learned;
  }

  /** Sets the output limit for the requests that are written from now on. */
  limitOutput(tokens: number | null): void {
    this.#outputTokens = this.#request.route === 'embeddings' ? null : tokens;
  }

  /** Writes the request for a target. Fails if its provider does not accept the request, or if the request was released. */
  async writeFor(target: Target): Promise<Result<TargetRequest, ApiError>> {
    const held = this.#held;
    if (held === null) return failure(apiError('internal_error', 'The request was released'));
    const { grant, translationError } = held;
    const { context, route, headers, unsupported, session, policies } = this.#request;
    const { settings } = context;
    const { provider, model, makerModel, aliasTarget } = target;
    // The rules for a model are those of its maker's name. The provider's name takes its place when the body is written.
    const name = route === 'agents' ? { agent_id: model } : { model: makerModel };
    const targetFields: JsonObject = {
      ...omit(held.fields, ...ROUTING_FIELDS),
      ...aliasTarget.set,
      ...name,
    };
    await grant.pause();
    const { body: fields, isLimited } = this.#limit(targetFields);
    // An alias may also set the messages, in the form of chat.
    const turns = aliasTarget.set.messages === undefined ? held.turns : null;
    // An alias that sets an effort replaces the client's own.
    const isEffortSet = EFFORT_FIELDS.some((field) => aliasTarget.set[field] !== undefined);
    const request = { fields, turns, thinking: isEffortSet ? undefined : held.thinking };
    const passthrough = passthroughTo(target, held);
    if (passthrough === null && translationError !== null) return failure(translationError);
    const { api, endpoint } =
      passthrough === null ? this.#endpointFor(target, request) : chatEndpoint(target);
    const form = passthrough === null ? endpoint.request : passthroughForm(passthrough, isLimited);
    const asksFor = (kind: Mending['kind']) => this.#mendingsOf(target).some((one) => one.kind === kind);
    const isWithoutReasoning = asksFor('without_reasoning');
    const sent = isWithoutReasoning ? withoutReasoningDetails(request) : request;
    const prepared = prepareWrite(form, sent, provider.name);
    if (prepared.kind === 'error') return prepared;
    await grant.pause();
    const rewritten = prepared.value({
      model: makerModel,
      provider: provider.name,
      providerId: provider.id,
      unsupported,
      promptCache: settings.promptCache,
      hidesReasoning:
        policies.reasoning === 'strip' ||
        asksFor('without_summary') ||
        (api === 'responses' && this.#learned.apis.refusesSummary(this.#modelOf(target), this.#now)),
      // Chat Completions has no passthrough.
      isFromOtherProtocol: held.client.passthrough !== null,
      ...(held.client.fieldNames === undefined ? {} : { fieldNames: held.client.fieldNames }),
      ...(session !== null && form.kind === 'native' && form.takesPromptCacheKey === true
        ? { promptCacheKey: await promptCacheKey(session) }
        : {}),
    });
    if (rewritten.kind === 'error') return rewritten;
    const { changed, toolNames, toolKeys } = rewritten.value;
    const way = passthrough === null ? api : wayOf(passthrough, headers);
    const scope = { ...this.#modelOf(target), api: way };
    const fitted = this.#fitted(rewritten.value.body, form, target, scope);
    const dropped = [...rewritten.value.dropped, ...fitted.dropped];
    await grant.pause();
    const written = writeBody(withModel(fitted.body, target), {
      maxBytes: maxWrittenBytes(held.clientBodyBytes, settings.maxRequestBytes),
      provider: provider.name,
      // A large body's memory is granted for one text.
      keepsItems: session !== null && held.clientBodyBytes <= LARGE_BYTES,
      isWellFormed: passthrough === null,
    });
    if (written.kind === 'error') return written;
    const { body, json, itemTexts, repaired } = written.value;
    await grant.pause();
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
      showsAll: isTranslated && showsAll(provider, makerModel, body),
      passthrough: passthrough?.endpoint ?? null,
      endpoint,
      api,
      scope,
      mends: fitted.statements,
      ...(toolNames === undefined ? {} : { toolNames }),
      ...(toolKeys === undefined ? {} : { toolKeys }),
    };
    this.#sent = { body, form };
    const sentRequest = {
      traits,
      url: isTranslated
        ? targetUrl(this.#addressOf(target), endpoint, withModel(fields, target))
        : passthroughUrl(this.#addressOf(target), passthrough.endpoint),
      body,
      json,
      itemTexts,
      form,
      prompts,
      writesText: route !== 'embeddings',
      refusedBetas: fitted.betas,
      hasWholePrompt: isTranslated || hasWholePrompt(passthrough.passthrough, held),
    };
    if (form.kind !== 'native') return ok({ ...sentRequest, chatBody: body });
    let chat: JsonObject | undefined;
    return ok({
      ...sentRequest,
      get chatBody() {
        chat ??= chatBody(request);
        return chat;
      },
    });
  }

  /** As {@link writeFor}, after `endWork`. */
  async rewriteFor(target: Target): Promise<Result<TargetRequest, ApiError>> {
    const grant = this.#held?.grant;
    await grant?.startWork();
    // The request may have been released meanwhile.
    if (this.#held === null) grant?.endWork();
    return this.writeFor(target);
  }

  /** The body as the client sent it; null once released. */
  get clientBody(): JsonObject | null {
    return this.#held?.clientBody ?? null;
  }

  /** Whether a refusal is compared with this request: it may change the request, and its message is kept without the prompt. */
  get readsRefusals(): boolean {
    return this.#held !== null && (this.#mends || this.#keepsMessages);
  }

  /** What the provider said, as a record may keep it (E5); null: it said nothing, or nothing is kept. */
  providerMessage(traits: TargetTraits, refusal: UpstreamRefusal, upstream: Upstream): string | null {
    return this.#keepsMessages ? (this.#compare(traits, refusal)?.comparison?.keep(upstream) ?? null) : null;
  }

  /**
   * Reads from a refusal which change of the request it asks for, if it is one that Weir makes (Z1 to Z3).
   * @returns null: the refusal goes to the client
   */
  readRefusal(traits: TargetTraits, refusal: UpstreamRefusal): Mending | null {
    const { unsupported } = this.#request;
    const sent = this.#sent;
    const compared = this.#compare(traits, refusal);
    if (sent === null || compared === null) return null;
    const { api, statements } = compared;
    if (api !== null) {
      return this.#mendingsOf(traits.target).some(({ kind }) => kind === api.kind) ? null : api;
    }
    const options = { form: sent.form, unsupported };
    const made = statements.filter(
      ({ finding }) =>
        (finding.kind === 'beta' && unsupported !== 'refuse') ||
        applyRow(finding, sent.body, options) !== null,
    );
    return made.length === 0 ? null : { kind: 'fields', statements: made };
  }

  /** Reads what a refusal says of the request, without what may be an echo of the prompt. Null: the request was released. */
  #compare(traits: TargetTraits, refusal: UpstreamRefusal): ComparedRefusal | null {
    if (this.#compared?.refusal === refusal) return this.#compared;
    const sent = this.#sent;
    if (sent === null) return null;
    const { message = '' } = refusal;
    const api = this.#mends ? this.#apiStatement(traits, refusal) : null;
    const statements = this.#mends && api === null ? this.#statements(traits, refusal, sent.body) : [];
    const claims = [...statements, ...(api === null ? [] : [api])].flatMap(({ claim }) => claim ?? []);
    const isNeeded = claims.length > 0 || (this.#keepsMessages && message !== '');
    const comparison = isNeeded ? compareWithRequest(message, sent.body, claims) : null;
    const isOwn = ({ claim }: Pick<ApiStatement, 'claim'>) =>
      claim === null || (comparison !== null && !comparison.isEcho(claim));
    this.#compared = {
      refusal,
      comparison,
      api: api !== null && isOwn(api) ? api.change : null,
      statements: statements.filter(isOwn),
    };
    return this.#compared;
  }

  #apiStatement({ target, api, passthrough }: TargetTraits, refusal: UpstreamRefusal): ApiStatement | null {
    if (target.otherBaseUrl !== null && asksForOtherPath(refusal))
      return { change: { kind: 'other_path' }, claim: null };
    const canSwitch =
      this.#request.route === 'chat' && passthrough === null && target.provider.responses !== undefined;
    return canSwitch ? readApiStatement(refusal, api) : null;
  }

  #statements(
    { passthrough }: TargetTraits,
    { status, kind, code, field, message = '' }: UpstreamRefusal,
    body: JsonObject,
  ): readonly Statement[] {
    if (!MENDED_STATUSES.has(status) || kind !== null) return [];
    return readStatements({ message, code, field }, { body, betas: passthrough === null ? [] : this.#betas });
  }

  /** Changes the request to this target as a refusal asks. */
  tryAgain(target: Target, mending: Mending): void {
    this.#mendings.set(target, [...this.#mendingsOf(target), mending]);
  }

  /**
   * The target took the changed request: later requests begin with the change.
   * @returns what is new
   */
  learn({ target, scope }: TargetTraits): readonly Statement[] {
    const now = this.#now;
    return this.#mendingsOf(target).flatMap((mending) => {
      if (mending.kind === 'other_path') {
        const model = this.#modelOf(target);
        if (this.#learned.apis.isAtOtherPath(model, now)) this.#learned.apis.forgetOtherPath(model);
        else this.#learned.apis.note(model, mending, now);
        // From now on the memory says it.
        this.#mendings.set(
          target,
          this.#mendingsOf(target).filter((one) => one !== mending),
        );
        return [];
      }
      if (mending.kind !== 'fields') {
        const isRemembered = mending.kind !== 'api' || mending.isRemembered !== false;
        if (isRemembered) this.#learned.apis.note(this.#modelOf(target), mending, now);
        return [];
      }
      return mending.statements.filter(
        (statement) => statement.isRemembered && this.#learned.note(scope, statement, now),
      );
    });
  }

  /** The target refused a request that these findings of earlier refusals had changed. */
  forget({ scope }: TargetTraits, findings: readonly Finding[]): void {
    this.#learned.forget(scope, findings);
  }

  /** A refusal may change the request (`LEARN`). */
  get #mends(): boolean {
    return this.#request.context.settings.learn === 'on';
  }

  /** Records keep what providers say about failures (`ERROR_TEXTS`). A caller's own account does not concern the deployment. */
  get #keepsMessages(): boolean {
    return this.#request.context.settings.errorTexts === 'on' && !this.#request.callerPays;
  }

  /** The entries of the client's header `anthropic-beta`. */
  get #betas(): readonly string[] {
    return betasOf(this.#request.headers.get('anthropic-beta'));
  }

  /** In ms since the epoch. */
  get #now(): number {
    return this.#request.context.ports.clock.now();
  }

  /** The target with the base URL that earlier refusals, and those of this request, leave: each names the other one. */
  #addressOf(target: Target): Target {
    if (target.otherBaseUrl === null) return target;
    const isKnown = this.#learned.apis.isAtOtherPath(this.#modelOf(target), this.#now);
    const isAsked = this.#mendingsOf(target).some(({ kind }) => kind === 'other_path');
    return isKnown === isAsked ? target : { ...target, baseUrl: target.otherBaseUrl };
  }

  #modelOf({ provider, model }: Target): ModelOfKey {
    return { providerId: provider.id, model, keyId: this.#request.caller.keyId };
  }

  #mendingsOf(target: Target): readonly Mending[] {
    return this.#mendings.get(target) ?? [];
  }

  /** Applies the key's limit, and what refusals said: of earlier requests where their conditions hold, and of this one. */
  #fitted(body: JsonObject, form: RequestForm, target: Target, scope: LearnedScope): FittedBody {
    const limits = this.#outputTokens === null ? [] : [keyLimit(this.#outputTokens)];
    const options: FitOptions = { form, unsupported: this.#request.unsupported };
    const limited = fit(body, limits, options);
    const own = this.#mendingsOf(target).flatMap((one) => (one.kind === 'fields' ? one.statements : []));
    const learned = this.#mends ? this.#learned.recall(scope, limited.body, this.#now) : [];
    const statements = [...learned, ...own];
    const fitted = fit(limited.body, statements, options);
    const betas = statements.flatMap(({ finding }) =>
      finding.kind === 'beta' ? (betaOf(finding, this.#betas) ?? []) : [],
    );
    const isApplied = (one: LearnedStatement) =>
      fitted.applied.includes(one) ||
      (one.finding.kind === 'beta' && betaOf(one.finding, this.#betas) !== undefined);
    return {
      body: fitted.body,
      dropped: [...limited.dropped, ...betas.map(() => 'anthropic-beta'), ...fitted.dropped],
      changed: fitted.changed,
      statements: statements.filter(isApplied),
      betas,
    };
  }

  /** The API of the alias target, else of an earlier refusal, else of the provider's table. */
  #endpointFor(target: Target, request: CanonicalRequest): Pick<TargetTraits, 'api' | 'endpoint'> {
    const { provider, model, makerModel, aliasTarget } = target;
    if (this.#request.route !== 'chat' || provider.responses === undefined) return chatEndpoint(target);
    const switched = this.#mendingsOf(target).findLast((mending) => mending.kind === 'api');
    const forced = switched?.api ?? aliasTarget.api;
    const { keyId } = this.#request.caller;
    const api = chooseApi(
      { provider, model, makerModel, request, forced, keyId },
      this.#learned.apis,
      this.#now,
    );
    return api === 'responses' ? { api, endpoint: provider.responses.endpoint } : chatEndpoint(target);
  }

  /** Lets other requests work. The request stays in memory. */
  endWork(): void {
    this.#held?.grant.endWork();
  }

  /**
   * Releases the request: no further target is tried.
   * @param sent resolves when the last body was sent, which stays in memory until then
   */
  release(sent?: Promise<unknown>): void {
    const grant = this.#held?.grant;
    this.#held = null;
    this.#sent = null;
    this.#compared = null;
    if (sent === undefined) grant?.release();
    else void sent.then(grant?.release);
  }

  /** The body with the key's output limit, if that is lower than the client's own. */
  #limit(body: JsonObject): { readonly body: JsonObject; readonly isLimited: boolean } {
    if (this.#outputTokens === null) return { body, isLimited: false };
    const clientLimit = readOutputLimit(withoutNulls(body)) ?? null;
    const isLimited = clientLimit === null || clientLimit > this.#outputTokens;
    return isLimited ? { body: withOutputLimit(body, this.#outputTokens), isLimited } : { body, isLimited };
  }
}

function keyLimit(tokens: number): { readonly finding: FitRow } {
  return { finding: { kind: 'key_limit', tokens } };
}

/** What a refusal says of the request. */
interface ComparedRefusal {
  readonly refusal: UpstreamRefusal;
  /** Null: there was nothing to compare, or the request is too large for it. */
  readonly comparison: MessageComparison | null;
  readonly api: SecondTry | null;
  readonly statements: readonly Statement[];
}

/** Statuses with which a provider refuses a field (Z1). */
const MENDED_STATUSES: ReadonlySet<number> = new Set([400, 404, 405, 422, 501]);

interface FittedBody {
  readonly body: JsonObject;
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
  readonly statements: readonly LearnedStatement[];
  readonly betas: readonly string[];
}

/** OpenAI takes 64 characters: "maximum length 64", its refusal of a longer key. */
const PROMPT_CACHE_KEY_CHARS = 32;

async function promptCacheKey(session: string): Promise<string> {
  return (await sha256(session)).slice(0, PROMPT_CACHE_KEY_CHARS);
}

function chatEndpoint({ endpoint }: Target): Pick<TargetTraits, 'api' | 'endpoint'> {
  return { api: 'chat', endpoint };
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
  { client: { passthrough }, clientBody }: HeldBody,
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
  { translationError, dropped, clientBody }: HeldBody,
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

/** The body of a target has at most this many times the bytes of the client's body, plus {@link SMALL_BYTES} that Weir adds. */
const MAX_WRITTEN_FACTOR = 4;

/**
 * The bound on the body of a target. Translation may enlarge a request, but not without a bound.
 * @param maxRequestBytes the bound on the client's body
 */
export function maxWrittenBytes(clientBodyBytes: number, maxRequestBytes: number): number {
  return Math.min(clientBodyBytes * MAX_WRITTEN_FACTOR, maxRequestBytes) + SMALL_BYTES;
}

interface BodyOptions {
  readonly maxBytes: number;
  /** Its name, for the error's message. */
  readonly provider: string;
  readonly keepsItems: boolean;
  /** Half a surrogate pair becomes U+FFFD. */
  readonly isWellFormed: boolean;
}

interface WrittenParts extends Pick<TargetRequest, 'itemTexts'> {
  /** Undefined: the engine cannot write it. */
  readonly json: string | undefined;
}

interface WrittenBody extends Pick<TargetRequest, 'body' | 'json' | 'itemTexts'> {
  /** The fields with half a surrogate pair, which strict providers refuse: elizaOS/eliza#18079, 2026-08-08. */
  readonly repaired: readonly string[];
}

function writeBody(
  body: JsonObject,
  { maxBytes, provider, keepsItems, isWellFormed }: BodyOptions,
): Result<WrittenBody, ApiError> {
  const list = keepsItems ? conversationField(body) : null;
  const { json: written, itemTexts }: WrittenParts =
    list === null ? { json: writeJson(body), itemTexts: null } : writeInParts(body, list);
  const json = isWellFormed && written !== undefined ? withoutHalfPairs(written) : written;
  if (json !== undefined && isWithin(json, maxBytes)) {
    if (json === written) return ok({ body, json, itemTexts, repaired: [] });
    return ok({
      body: objectOf(parseJsonExactly(json)),
      json,
      itemTexts: itemTexts?.map(withoutHalfPairs) ?? null,
      repaired: fieldsWithHalfPairs(body),
    });
  }
  const field = largestField(body);
  const message = `Translated for ${provider}, the request is larger than its bound of ${maxBytes} bytes. Its largest field is ${field}: send less at once`;
  return failure(apiError('request_too_large', message, field));
}

/** The list of turns is named as in Chat Completions. */
function fieldsWithHalfPairs(body: JsonObject): readonly string[] {
  const conversation = conversationField(body);
  return Object.entries(body).flatMap(([field, value]) => {
    const json = writeJson(value) ?? '';
    return withoutHalfPairs(json) === json ? [] : [field === conversation ? 'messages' : field];
  });
}

/** The text of the whole body, and those of the items of one of its lists. */
function writeInParts(body: JsonObject, list: string): WrittenParts {
  try {
    const itemTexts = readArray(body[list]).map((item) => JSON.stringify(item) ?? 'null');
    const items = itemTexts.flatMap((text, i) => (i === 0 ? [text] : [',', text]));
    const [first = '', ...others] = Object.entries(body).flatMap(([field, value]) => {
      const name = `,${JSON.stringify(field)}:`;
      if (field === list) return [name, '[', ...items, ']'];
      const text = JSON.stringify(value);
      return text === undefined ? [] : [name, text];
    });
    // Joined once: a long text is copied each time that it becomes part of another.
    const json = ['{', first.slice(1), ...others, '}'].join('');
    return { json, itemTexts };
  } catch {
    // Nested too deep for the engine.
    return { json: undefined, itemTexts: null };
  }
}

const MAX_BYTES_PER_UTF16_UNIT = 3;

function isWithin(json: string, maxBytes: number): boolean {
  if (json.length > maxBytes) return false;
  return (
    json.length * MAX_BYTES_PER_UTF16_UNIT <= maxBytes || new TextEncoder().encode(json).length <= maxBytes
  );
}

const MAX_FIELD_CHARS = 64;

function largestField(body: JsonObject): string {
  const sizes = Object.entries(body).map(([field, value]) => [writeJson(value)?.length, field] as const);
  const [, largest = ''] = sizes.reduce((a, b) => ((b[0] ?? Infinity) > (a[0] ?? Infinity) ? b : a), [0, '']);
  return largest.slice(0, MAX_FIELD_CHARS);
}
