/** Keeps the client's request, and its memory, until no further target can be tried. */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { Target } from '../routing/targets.ts';
import type { JsonObject } from '../shared/json.ts';
import { failure, type Result } from '../shared/result.ts';
import { SecondTries } from './second-try.ts';
import {
  type OutputLimit,
  type ReplayedBody,
  type ReplayedRequest,
  type TargetRequest,
  writeTargetRequest,
} from './target-request.ts';

/**
 * One client's request, held as long as it may be sent again, and written for each target. It holds the request's
 * memory until `release`.
 */
export class ReplayableRequest {
  /** What refusals of this request asked for. */
  readonly secondTries: SecondTries;
  readonly #request: ReplayedRequest;
  /** Null once released. */
  #held: ReplayedBody | null;
  #outputLimit: OutputLimit = () => null;

  constructor(body: ReplayedBody, request: ReplayedRequest) {
    this.#request = request;
    this.#held = body;
    this.secondTries = new SecondTries(request);
  }

  /** Sets the output limit for the requests that are written from now on. */
  limitOutput(limit: OutputLimit): void {
    if (this.#request.route !== 'embeddings') this.#outputLimit = limit;
  }

  /** Writes the request for a target. Fails if its provider does not accept the request, or if the request was released. */
  async writeFor(target: Target): Promise<Result<TargetRequest, ApiError>> {
    const held = this.#held;
    if (held === null) return failure(apiError('internal_error', 'The request was released'));
    const rows = this.secondTries.rowsFor(target, this.#outputLimit);
    return writeTargetRequest(held, target, rows, this.#request, () => held.grant.pause());
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
    return this.#held !== null && this.secondTries.readsRefusals;
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
    this.secondTries.release();
    if (sent === undefined) grant?.release();
    else void sent.then(grant?.release);
  }
}
