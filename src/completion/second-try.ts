/**
 * A second try: what a refusal asks to change of a request, so that the same target is tried once more, and what is learned of it
 * (Z1 to Z4).
 */
import type { ApiError } from '../canonical/error.ts';
import type { UpstreamRefusal } from '../canonical/refusal.ts';
import type { Upstream } from '../canonical/upstream-error.ts';
import {
  type ApiStatement,
  CHANGING_STATUSES,
  readApiStatement,
  type SecondTry,
} from '../fitting/api-statements.ts';
import { changeOf } from '../fitting/fit.ts';
import { LearnedRefusals } from '../fitting/learned.ts';
import { hasKnownNames, namesOf, subjectOf } from '../fitting/rows.ts';
import { betasOf, readStatements, type Statement } from '../fitting/statements.ts';
import type { Provider } from '../providers/provider.ts';
import type { Target } from '../routing/targets.ts';
import type { JsonObject } from '../shared/json.ts';
import { compareWithRequest, type MessageComparison } from '../upstream/provider-message.ts';
import type {
  Mending,
  OutputLimit,
  ReplayedRequest,
  TargetRequest,
  TargetRows,
  TargetTraits,
} from './target-request.ts';

/** Requests that are changed as a refusal asks, over all targets of one request. */
const MAX_MENDED_ROUNDS = 3;

/** The second tries of one request: what refusals asked for, of which request each was, and what the first one said. */
export class SecondTries {
  readonly #request: ReplayedRequest;
  readonly #learned: LearnedRefusals;
  /** What refusals asked for, by target. */
  readonly #mendings = new Map<Target, readonly Mending[]>();
  /** The first refusal of each target that was tried again. */
  readonly #refusals = new Map<Target, ApiError>();
  #rounds = 0;
  #hasSwitchedApi = false;
  /** The last request that was sent; null once released. */
  #sent: Pick<TargetRequest, 'body' | 'form'> | null = null;
  /** The last refusal that was compared with it: each is, once. */
  #compared: ComparedRefusal | null = null;

  constructor(request: ReplayedRequest) {
    this.#request = request;
    // A caller's own credential may have other rights at the provider than those of other callers.
    this.#learned = request.callerPays ? new LearnedRefusals() : request.context.upstreams.learned;
  }

  /** What changes the request to a target. */
  rowsFor(target: Target, outputLimit: OutputLimit): TargetRows {
    const now = this.#now;
    return {
      outputLimit,
      tries: this.#mendingsOf(target),
      apis: this.#learned.apis,
      learnedOf: (scope, body) => (this.#mends ? this.#learned.recall(scope, body, now) : []),
      now,
    };
  }

  /** Refusals are about this request from now on. */
  sent({ body, form }: TargetRequest): void {
    this.#sent = { body, form };
  }

  /** No further target is tried. */
  release(): void {
    this.#sent = null;
    this.#compared = null;
  }

  /** Whether a refusal is compared with this request: it may change the request, and its message is kept without the prompt. */
  get readsRefusals(): boolean {
    return this.#mends || this.#keepsMessages;
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
        changeOf(finding, sent.body, options) !== null,
    );
    return made.length === 0 ? null : { kind: 'fields', statements: made };
  }

  /** The user as the client's header names it. */
  get #names(): readonly string[] {
    const name = this.#request.headers.get('x-weir-user');
    return name === null ? [] : [name];
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
    const comparison = isNeeded ? compareWithRequest(message, sent.body, claims, this.#names) : null;
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
    if (target.otherBaseUrl !== null && asksForOtherPath(refusal, target.provider))
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
    if (!CHANGING_STATUSES.has(status) || kind !== null) return [];
    return readStatements({ message, code, field }, { body, betas: passthrough === null ? [] : this.#betas });
  }

  /**
   * Changes the next request to the target as a refusal asks.
   * @param error with the refusal
   * @returns false: the request has had all of its second tries
   */
  tryAgain(target: Target, mending: Mending, error: ApiError): boolean {
    if (mending.kind === 'api') {
      if (this.#hasSwitchedApi) return false;
      this.#hasSwitchedApi = true;
    } else if (this.#rounds++ >= MAX_MENDED_ROUNDS) return false;
    this.#mendings.set(target, [...this.#mendingsOf(target), mending]);
    if (!this.#refusals.has(target)) this.#refusals.set(target, error);
    return true;
  }

  /**
   * The refusal for the client after a request was changed: the last one, if it is about something else, such as a prompt that is too
   * long; otherwise the first, which is about what the client sent.
   */
  shownError(traits: TargetTraits, error: ApiError): ApiError {
    const first = this.#refusals.get(traits.target);
    const { refusal } = error;
    if (first === undefined || refusal === undefined) return error;
    return namesChange(refusal, traits) ? first : error;
  }

  /**
   * The target took the changed request: later requests begin with the change.
   * @returns what is new
   */
  learn({ target, scope }: TargetTraits): readonly Statement[] {
    if (!this.#refusals.has(target) || this.#request.callerPays) return [];
    const now = this.#now;
    const mendings = this.#mendingsOf(target);
    // From now on the memory says where the model is.
    const kept = mendings.filter(({ kind }) => kind !== 'other_path');
    if (kept.length < mendings.length) this.#mendings.set(target, kept);
    return mendings.flatMap((mending) => {
      if (mending.kind === 'fields')
        return mending.statements.filter((one) => one.isRemembered && this.#learned.note(scope, one, now));
      this.#learned.apis.note(scope, mending, now);
      return [];
    });
  }

  /** A request that was changed as earlier refusals said was refused all the same: what the refusal names of it is forgotten. */
  forget({ mends, scope }: TargetTraits, refusal: UpstreamRefusal): void {
    if (refusal.kind !== null || mends.length === 0) return;
    const words = wordsOf(refusal);
    const findings = mends.map(({ finding }) => finding);
    const refused = findings.filter((finding) => namesOf(finding).some((name) => words.has(name)));
    this.#learned.forget(scope, refused);
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

  #mendingsOf(target: Target): readonly Mending[] {
    return this.#mendings.get(target) ?? [];
  }
}

/** Whether a refusal says that the model is below another path of the cloud. */
function asksForOtherPath({ status, message }: UpstreamRefusal, { cloud }: Provider): boolean {
  return (
    CHANGING_STATUSES.has(status) && message !== undefined && cloud?.otherPathRefusal?.test(message) === true
  );
}

/** What a refusal says of the request. */
interface ComparedRefusal {
  readonly refusal: UpstreamRefusal;
  /** Null: there was nothing to compare, or the request is too large for it. */
  readonly comparison: MessageComparison | null;
  readonly api: SecondTry | null;
  readonly statements: readonly Statement[];
}

/** For what the request is changed, in words of Weir. */
export function causeOf(mending: Mending): string {
  if (mending.kind !== 'fields') return `refused: ${mending.kind}`;
  const subjects = mending.statements.map(({ finding }) => {
    if (finding.kind === 'beta') return 'anthropic-beta';
    return hasKnownNames(finding) ? subjectOf(finding) : 'a field that Weir does not know';
  });
  return `refused: ${subjects.join(', ')}`;
}

/** Whether a refusal of a changed request is about the change: it names what Weir set, or asks for the API that refused first. */
export function namesChange(refusal: UpstreamRefusal, { mends, api }: TargetTraits): boolean {
  const words = wordsOf(refusal);
  const names = mends.flatMap(({ finding }) => namesOf(finding));
  return readApiStatement(refusal, api)?.change.kind === 'api' || names.some((name) => words.has(name));
}

function wordsOf({ message = '', field = '' }: UpstreamRefusal): ReadonlySet<string> {
  return new Set(`${message} ${field}`.toLowerCase().match(/[a-z$][\w$]{0,127}/g) ?? []);
}
