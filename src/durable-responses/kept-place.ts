/** The place of one response among those that its owner keeps: claimed before it is stored, and given back if it is not. */
import type { Caller } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { CompletionContext } from '../completion/admission.ts';
import { internalError } from '../http/respond.ts';
import { responseIdOf } from '../protocols/openai-responses/response-object.ts';
import type { JsonObject } from '../shared/json.ts';
import { indexName, type KeptSums, type ResponseNamespace } from './response-calls.ts';

/** What a background response counts besides its input until it ends: 4,000 events or so. Then its real size counts. */
const RUN_BYTES = 1024 * 1024;
/** How long a run takes at most, where `DEADLINE_SECONDS` is 0. */
const LONGEST_RUN_MS = 24 * 60 * 60 * 1000;

interface PlaceOptions {
  readonly objects: ResponseNamespace;
  readonly context: CompletionContext;
  readonly owner: string;
  /** The most that the owner may keep. */
  readonly limits: KeptSums;
}

export class KeptPlace {
  readonly #options: PlaceOptions;
  readonly #id: string;
  #isClaimed = false;

  constructor(options: PlaceOptions) {
    this.#options = options;
    this.#id = responseIdOf(options.context.requestId);
  }

  get isClaimed(): boolean {
    return this.#isClaimed;
  }

  /**
   * @param inputBytes about the size of its input
   * @param keptMs how long it is kept after its end
   * @returns why it cannot be kept; null: it can
   */
  claimForRun(request: ClaimedRequest, inputBytes: number, keptMs: number): Promise<ApiError | null> {
    const { deadlineMs } = this.#options.context.settings.timers;
    return this.claim(request, inputBytes + RUN_BYTES, (deadlineMs || LONGEST_RUN_MS) + keptMs);
  }

  /** @param keptMs from now on */
  async claim(request: ClaimedRequest, bytes: number, keptMs: number): Promise<ApiError | null> {
    const { objects, context, owner, limits } = this.#options;
    const attributed = await context.attribute(request);
    const user = attributed.kind === 'ok' ? attributed.value.attribution.user : null;
    const expiresAt = context.ports.clock.now() + keptMs;
    this.#isClaimed = true;
    const claim = { id: this.#id, owner, user, bytes, expiresAt, limits };
    const result = await objects.getByName(indexName(owner)).claimKept(claim);
    if (result.kind === 'claimed') return null;
    this.#isClaimed = false;
    return keptFull(result.sums, bytes, limits);
  }

  /** Gives the place back, also if the call that claimed it has failed: it may have claimed it. */
  release(): void {
    if (!this.#isClaimed) return;
    this.#isClaimed = false;
    const { objects, context, owner } = this.#options;
    releaseKept({ objects, context, owner, id: this.#id });
  }
}

interface ClaimedRequest {
  readonly headers: Headers;
  /** As the client sent it. */
  readonly body: JsonObject;
  readonly caller: Caller;
}

/** Gives the place of a deleted response back. A failure is logged; the place is then taken until the response would have expired. */
export function releaseKept({
  objects,
  context,
  owner,
  id,
}: Pick<PlaceOptions, 'objects' | 'context' | 'owner'> & { readonly id: string }): void {
  const releasing = objects.getByName(indexName(owner)).releaseKept(id);
  context.waitUntil(releasing.catch((error: unknown) => internalError(context, error)));
}

function keptFull(sums: KeptSums, bytes: number, limits: KeptSums): ApiError {
  const isCount = sums.responses + 1 > limits.responses;
  const limit = isCount
    ? `${limits.responses} responses (KEPT_RESPONSES)`
    : `${limits.bytes} bytes (KEPT_BYTES)`;
  const kept = isCount ? `${sums.responses}` : `${sums.bytes}, and this response needs ${bytes}`;
  return apiError(
    'kept_limit_reached',
    `This key keeps at most ${limit}, and it keeps ${kept}: delete responses, wait until some expire, or send store: false without background`,
  );
}
