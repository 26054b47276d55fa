/** The caller's request, held until no other target may be asked: each target gets it in its provider's words (R10). */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { Passthrough } from '../protocols/shared/client-protocol.ts';
import type { PassthroughEndpoint, Provider, Route } from '../providers/provider.ts';
import { MAX_REPORTED_NAMES, ReportedFields } from '../request-translation/dropped-fields.ts';
import {
  limitName,
  readOutputLimit,
  withOnlyLimit,
  withOutputLimit,
  withWrittenLimit,
} from '../request-translation/output-limit.ts';
import { COMPETING_LIMITS, type PromptCache, type Unsupported } from '../request-translation/rules.ts';
import type { ToolNames } from '../request-translation/tools.ts';
import {
  type LimitedBody,
  type RequestForm,
  type Translation,
  withoutNulls,
  writeRequest,
} from '../request-translation/translate.ts';
import { passthroughUrl, type Target, targetUrl } from '../routing/targets.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import { type JsonObject, omit, readArray, readCount } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { Lease } from '../stream/memory.ts';
import { writeBody } from './written-size.ts';

/** What one target is told of the request: it lives as long as the answer, so it holds nothing of the prompt. */
export interface TargetFacts {
  readonly target: Target;
  /** Names of what the upstream's request lacks of the caller's, or has otherwise (Q5, Q6). */
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
  /** How many choices are asked for. */
  readonly choices: number;
  /** Tools' names, by those that stand for them at the upstream; absent: each stands for itself. */
  readonly toolNames?: ToolNames;
  /** A whole answer shows every token that is billed (G3). */
  readonly showsAll: boolean;
  /** Where requests and events pass as they are, because client and provider speak one dialect (N1); null: nowhere. */
  readonly passthrough: PassthroughEndpoint | null;
}

/** What one target is sent. */
export interface TargetRequest {
  readonly facts: TargetFacts;
  readonly url: string;
  /** As it is sent, and its text. */
  readonly body: JsonObject;
  readonly json: string;
  /** In which it was written. */
  readonly form: RequestForm;
  /** The same in OpenAI's form: what it is sent as, or what that was written from. */
  readonly chat: JsonObject;
  /** Prompts in the body, each of which is answered. */
  readonly prompts: number;
  /** Whether the body tells all of the prompt: on a lane the provider may keep, fetch or search for more of it (G2). */
  readonly hasWholePrompt: boolean;
  /** The field that asks for an answer outside of this request, or null. */
  readonly detachedField: string | null;
}

export interface ReplayableRequestOptions {
  /** The canonical request. */
  readonly body: JsonObject;
  /** The body as the client sent it, and what its dialect has for providers that speak it. */
  readonly sent: JsonObject;
  readonly passthrough: Passthrough | null;
  /** Why no other provider can be asked, or null. */
  readonly translationError: ApiError | null;
  /** Names of what the canonical request lacks of the client's. */
  readonly dropped: readonly string[];
  /** The request's share of the isolate's memory, in whose turn the work on it is. */
  readonly lease: Lease;
  readonly route: Route;
  /** What becomes of fields that a target does not take (Q8). */
  readonly unsupported: Unsupported;
  /** For callers who set no marks for a prompt cache (A9). */
  readonly promptCache: PromptCache;
  /** Nothing of the answer's reasoning is for the client (C6). */
  readonly hidesReasoning: boolean;
  /** The most that a target is sent. */
  readonly maxBytes: number;
}

/** Which models may serve it is Weir's business: upstreams refuse these, or would route by them again (R1). */
const ROUTING_FIELDS = ['models', 'route'];

export class ReplayableRequest {
  #held: ReplayableRequestOptions | null;
  #outputTokens: number | null = null;

  constructor(options: ReplayableRequestOptions) {
    this.#held = options;
  }

  /** From now on each target is told to write no more than that (G2). */
  limitOutput(tokens: number | null): void {
    this.#outputTokens = tokens;
  }

  /** The request for a target; an error where its provider can't take it, or nothing is held any more. */
  async writeFor(target: Target): Promise<Result<TargetRequest, ApiError>> {
    if (this.#held === null) {
      return failure(apiError('internal_error', 'The request was released'));
    }
    const { lease, route, unsupported, promptCache, hidesReasoning, dropped, translationError, maxBytes } =
      this.#held;
    const { provider, model, endpoint, aliasTarget } = target;
    const name = route === 'agents' ? { agent_id: model } : { model };
    const asked: JsonObject = { ...omit(this.#held.body, ...ROUTING_FIELDS), ...aliasTarget.set, ...name };
    await lease.pause();
    const { body: limited, isLimited } = this.#limit(asked);
    const passthrough = laneTo(target, this.#held);
    if (passthrough === null && translationError !== null) return failure(translationError);
    const form = passthrough === null ? endpoint.request : passing(passthrough, isLimited);
    const rewritten = writeRequest(form, limited, {
      model,
      provider: provider.name,
      providerId: provider.id,
      unsupported,
      promptCache,
      hidesReasoning,
      // A chat is translated for nobody, and has no lane.
      isFromOtherProtocol: this.#held.passthrough !== null,
    });
    if (rewritten.kind === 'error') return rewritten;
    const { changed: rewrittenFields, toolNames } = rewritten.value;
    const { body, dropped: lost } = this.#limitWritten(form, rewritten.value);
    await lease.pause();
    const json = writeBody(body, maxBytes, provider.name);
    if (typeof json !== 'string') return failure(json);
    await lease.pause();
    const prompts = promptsIn(asked);
    const changed = isLimited ? [...rewrittenFields, limitName(form)] : rewrittenFields;
    const chat = form.kind === 'native' ? limited : body;
    const facts = {
      target,
      dropped: passthrough === null ? allNames(dropped, lost) : lost,
      changed,
      choices: prompts * (readCount(asked.n) ?? 1),
      ...(toolNames === undefined ? {} : { toolNames }),
      showsAll: passthrough === null && showsAll(provider, model, body),
      passthrough: passthrough?.endpoint ?? null,
    };
    const url =
      passthrough === null ? targetUrl(target, asked) : passthroughUrl(target, passthrough.endpoint);
    const hasWholePrompt = passthrough === null || tellsPrompt(passthrough.of, this.#held);
    const detachedField = passthrough === null ? null : detachedIn(passthrough);
    return ok({ facts, url, body, json, form, chat, prompts, hasWholePrompt, detachedField });
  }

  /** Applies the key's limit as the last change of the body, so that no other name for it is left (G2). */
  #limitWritten(form: RequestForm, { body, dropped }: Translation): LimitedBody {
    if (this.#outputTokens === null) return { body, dropped };
    const limited = withWrittenLimit(form, body, this.#outputTokens);
    return { body: limited.body, dropped: [...dropped, ...limited.dropped] };
  }

  /** As {@link writeFor}, while others may have had their turn since. */
  async rewriteFor(target: Target): Promise<Result<TargetRequest, ApiError>> {
    const lease = this.#held?.lease;
    await lease?.startWork();
    // The request may have ended meanwhile.
    if (this.#held === null) lease?.endWork();
    return this.writeFor(target);
  }

  /** The work on it is done for now; it is held all the same. */
  endWork(): void {
    this.#held?.lease.endWork();
  }

  /**
   * No other target is asked: nothing of it is held any more.
   * @param sent its last text is held until then
   */
  release(sent?: Promise<unknown>): void {
    const lease = this.#held?.lease;
    this.#held = null;
    if (sent === undefined) lease?.release();
    else void sent.then(lease?.release);
  }

  /** The body with the output limit of the caller's key, where that is lower than the caller's own. */
  #limit(body: JsonObject): { readonly body: JsonObject; readonly isLimited: boolean } {
    if (this.#outputTokens === null) return { body, isLimited: false };
    const asked = readOutputLimit(withoutNulls(body)) ?? null;
    const isLimited = asked === null || asked > this.#outputTokens;
    return isLimited ? { body: withOutputLimit(body, this.#outputTokens), isLimited } : { body, isLimited };
  }
}

interface OpenLane {
  readonly of: Passthrough;
  readonly endpoint: PassthroughEndpoint;
  /** What passes of the body. */
  readonly body: JsonObject;
}

/** The lane to a target: a step with fields of its own has none, as those are a chat's (R2). */
function laneTo(
  { provider, aliasTarget }: Target,
  { passthrough, sent }: ReplayableRequestOptions,
): OpenLane | null {
  const endpoint = passthrough === null ? undefined : provider.passthrough?.[passthrough.protocol];
  if (passthrough === null || endpoint === undefined || Object.keys(aliasTarget.set).length > 0) return null;
  const body = passthrough.withoutReasoningStates(sent);
  return body === null ? null : { of: passthrough, endpoint, body };
}

function allNames(read: readonly string[], written: readonly string[]): readonly string[] {
  const names = new ReportedFields();
  names.addAll(read);
  names.addAll(written);
  return names.list;
}

/** What a chat has no words for, and a lane passes all the same, may be a prompt of any length; of so many names some are missing. */
function tellsPrompt(
  passthrough: Passthrough,
  { translationError, dropped, sent }: ReplayableRequestOptions,
): boolean {
  if (dropped.length >= MAX_REPORTED_NAMES) return false;
  return (
    translationError === null &&
    !passthrough.compactsContext(sent) &&
    !dropped.some((name) => passthrough.promptFields.test(name))
  );
}

function detachedIn({ of, body }: OpenLane): string | null {
  const { backgroundField } = of;
  const isAsked = backgroundField !== undefined && (body[backgroundField] ?? false) !== false;
  return isAsked ? backgroundField : null;
}

/** Fields that cut or hide a part of the answer, or make more than is sent. */
const HIDING_FIELDS = [
  ...['stop', 'stop_sequences', 'prediction', 'best_of', 'audio', 'modalities'],
  ...['include_reasoning', 'separate_reasoning', 'reasoning_format', 'grammar'],
];

function showsAll(provider: Provider, model: string, body: JsonObject): boolean {
  const isHiding = HIDING_FIELDS.some((field) => body[field] !== undefined);
  return !isHiding && matchesAnyGlob(provider.visibleOutputModels ?? [], model);
}

/** The form of a body that passes as it is, but for its model, the limit of its key and what hides its reasoning (N1, C6). */
function passing({ of, endpoint, body: sent }: OpenLane, isLimited: boolean): RequestForm {
  return {
    kind: 'native',
    write: ({ max_tokens }, { model, hidesReasoning }) => {
      const limit = isLimited ? { [of.outputLimitField]: max_tokens } : {};
      const passed = hidesReasoning ? (endpoint.hideReasoning?.(sent, model) ?? sent) : sent;
      const body = { ...omit(passed, ...ROUTING_FIELDS), model, ...limit };
      return ok({ body, dropped: [], changed: [] });
    },
    // 0 is no limit of an answer that is reserved for.
    outputLimit: (body) => readCount(body[of.outputLimitField]) || null,
    withLimit: (body, tokens) =>
      withOnlyLimit(body, of.outputLimitField, tokens, [...COMPETING_LIMITS, 'n', 'best_of']),
    limitName: of.outputLimitField,
  };
}

/** A list of prompts is answered with choices for each. */
function promptsIn({ prompt }: JsonObject): number {
  const prompts = readArray(prompt).filter((item) => typeof item === 'string' || Array.isArray(item)).length;
  return Math.max(1, prompts);
}
