/** The caller's request, held until no other target may be asked: each target gets it in its provider's words (R10). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { type JsonObject, readArray, readCount } from '../canonical/json.ts';
import type { Route } from '../providers/provider.ts';
import { omit } from '../requests/objects.ts';
import { outputLimitName, readOutputLimit, withOutputLimit } from '../requests/output-limit.ts';
import { rewriteRequest } from '../requests/rewrite.ts';
import type { Unsupported } from '../requests/rules.ts';
import { type Target, targetUrl } from '../routing/target.ts';
import type { Lease } from '../stream/memory.ts';

/** What one target is told of the request: it lives as long as the answer, so it holds nothing of the prompt. */
export interface TargetFacts {
  readonly target: Target;
  /** Names of what the upstream's request lacks of the caller's, or has otherwise (Q5, Q6). */
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
  /** How many choices are asked for. */
  readonly choices: number;
}

/** What one target is sent. */
export interface TargetRequest {
  readonly facts: TargetFacts;
  readonly url: string;
  readonly body: JsonObject;
  /** The body's text. */
  readonly json: string;
  /** Prompts in the body, each of which is answered. */
  readonly prompts: number;
}

export type WriteResult =
  | { readonly kind: 'request'; readonly request: TargetRequest }
  | { readonly kind: 'error'; readonly error: ApiError };

export interface HeldOptions {
  readonly body: JsonObject;
  /** The request's share of the isolate's memory, in whose turn the work on it is. */
  readonly lease: Lease;
  readonly route: Route;
  /** What becomes of fields that a target does not take (Q8). */
  readonly unsupported: Unsupported;
}

/** Which models may serve it is Weir's business: upstreams refuse these, or would route by them again (R1). */
const ROUTING_FIELDS = ['models', 'route'];

export class HeldRequest {
  #held: HeldOptions | null;
  #outputTokens: number | null = null;

  constructor(options: HeldOptions) {
    this.#held = options;
  }

  /** From now on each target is told to write no more than that (G2). */
  limitOutput(tokens: number | null): void {
    this.#outputTokens = tokens;
  }

  /** The same request with that limit. */
  limited(request: TargetRequest): TargetRequest {
    const { body, limited } = this.#limit(request.body, request.facts.target);
    if (body === request.body) return request;
    const changed = [...request.facts.changed, ...limited];
    return { ...request, facts: { ...request.facts, changed }, body, json: JSON.stringify(body) };
  }

  /** The request for a target; an error where its provider can't take it, or nothing is held any more. */
  async write(target: Target): Promise<WriteResult> {
    if (this.#held === null) {
      return { kind: 'error', error: apiError('internal_error', 'The request is held no more') };
    }
    const { lease, route, unsupported } = this.#held;
    const { provider, model, endpoint, step } = target;
    const asked: JsonObject = {
      ...omit(this.#held.body, ...ROUTING_FIELDS),
      ...step.set,
      [route === 'agents' ? 'agent_id' : 'model']: model,
    };
    await lease.pause();
    const { rules } = endpoint;
    const rewritten = rewriteRequest(asked, { rules, model, provider: provider.name, unsupported });
    if (rewritten.kind === 'error') return rewritten;
    const { body, limited } = this.#limit(rewritten.body, target);
    await lease.pause();
    const json = JSON.stringify(body);
    await lease.pause();
    const prompts = promptsIn(asked);
    const changed = [...rewritten.changed, ...limited];
    const facts = {
      target,
      dropped: rewritten.dropped,
      changed,
      choices: prompts * (readCount(asked.n) ?? 1),
    };
    return { kind: 'request', request: { facts, url: targetUrl(target, asked), body, json, prompts } };
  }

  /** As {@link write}, while others may have had their turn since. */
  async writeAgain(target: Target): Promise<WriteResult> {
    const lease = this.#held?.lease;
    await lease?.begin();
    // The request may have ended meanwhile.
    if (this.#held === null) lease?.end();
    return this.write(target);
  }

  /** The work on it is done for now; it is held all the same. */
  endWork(): void {
    this.#held?.lease.end();
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
  #limit(
    body: JsonObject,
    { endpoint }: Target,
  ): { readonly body: JsonObject; readonly limited: readonly string[] } {
    if (this.#outputTokens === null) return { body, limited: [] };
    const asked = readOutputLimit(body) ?? null;
    const tokens = Math.min(asked ?? this.#outputTokens, this.#outputTokens);
    const limited = tokens === asked ? [] : [outputLimitName(endpoint.rules)];
    return { body: withOutputLimit(body, tokens, endpoint.rules), limited };
  }
}

/** A list of prompts is answered with choices for each. */
function promptsIn({ prompt }: JsonObject): number {
  const prompts = readArray(prompt).filter((item) => typeof item === 'string' || Array.isArray(item)).length;
  return Math.max(1, prompts);
}
