/**
 * Credentials of AWS: signs with a key, or with the session of a role that it assumes at STS, and says what a refusal is about.
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html and CommonErrors.html (2026-11-28).
 */
import { type ApiError, apiError } from '../canonical/error.ts';
import { awsDomain } from '../shared/aws-region.ts';
import { encodeUtf8 } from '../shared/encoding.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { type AwsKeys, type AwsScope, AwsSigner } from './aws-signature.ts';
import type {
  CredentialMaker,
  CredentialPorts,
  MadeCredential,
  RefusedRequest,
  UnsignedRequest,
} from './credential.ts';
import {
  again,
  type CredentialFailure,
  type Ending,
  Exchange,
  MAX_EXCHANGE_MS,
  type PassingFailure,
} from './exchange.ts';
import { requestToken } from './token-request.ts';

/** How requests for AWS are signed. */
export interface AwsAuth {
  readonly kind: 'aws';
  /** Several APIs share it. */
  readonly identity: AwsIdentity;
  readonly scope: AwsScope;
}

/** Who signs. */
export interface AwsIdentity {
  readonly keys: AwsKeys;
  /** The ARN of the role that is assumed; null: none. */
  readonly role: string | null;
  readonly settings: AwsSettingNames;
}

/** Where its parts are set, for messages. */
export type AwsSettingNames = Readonly<
  Record<'accessKeyId' | 'secretAccessKey' | 'sessionToken' | 'role' | 'region' | 'service', string>
>;

interface AwsSession extends Ending {
  readonly signer: AwsSigner;
}

/** An identity with what its requests share: the session of its role, keys of the day, and how far the clock is off. */
export class AwsIdentityState {
  readonly identity: AwsIdentity;
  readonly signer: AwsSigner;
  readonly session = new Exchange<AwsSession>();
  /** What is added to the clock to get AWS's. */
  skewMs = 0;

  constructor(identity: AwsIdentity) {
    this.identity = identity;
    this.signer = new AwsSigner(identity.keys);
  }

  get secrets(): readonly string[] {
    const signers = [this.signer, this.session.current?.signer].flatMap((signer) => signer ?? []);
    return signers.flatMap(({ keys: { accessKeyId, secretAccessKey, sessionToken } }) => {
      return [accessKeyId, secretAccessKey, sessionToken ?? []].flat();
    });
  }
}

/** Signs the requests to one API. */
export class AwsCredential implements CredentialMaker {
  readonly #state: AwsIdentityState;
  readonly #scope: AwsScope;

  constructor(state: AwsIdentityState, scope: AwsScope) {
    this.#state = state;
    this.#scope = scope;
  }

  get secrets(): readonly string[] {
    return this.#state.secrets;
  }

  async make(
    request: UnsignedRequest,
    ports: CredentialPorts,
  ): Promise<Result<MadeCredential, CredentialFailure>> {
    const { identity } = this.#state;
    if (identity.role === null) return ok(await this.#sign(request, this.#state.signer, null, ports));
    const { role } = identity;
    const session = await this.#state.session.get(
      () => this.#assumeRole(role, ports),
      ports,
      () => this.#noSession('upstream_unreachable', 'did not answer in time'),
    );
    if (session.kind === 'error') return session;
    return ok(await this.#sign(request, session.value.signer, session.value, ports));
  }

  async #sign(
    { method, url, headers, body }: UnsignedRequest,
    signer: AwsSigner,
    session: AwsSession | null,
    { clock, log }: CredentialPorts,
  ): Promise<MadeCredential> {
    // Hashed and sent, so that the text is encoded once.
    const bytes = encodeUtf8(body ?? '');
    const unsigned = { method, url, headers, body: bytes };
    const signed = await signer.sign(unsigned, this.#scope, clock.now() + this.#state.skewMs);
    return {
      headers: { ...headers, ...signed },
      body: body === null ? null : bytes,
      judge: (refused, isLast) => {
        const fault = faultOf(refused, clock.now() + this.#state.skewMs);
        const mayRepeat = !isLast && fault !== null;
        if (mayRepeat && fault.kind === 'clock' && this.#correctClock(fault.serverTime, clock.now(), log))
          return { kind: 'again' };
        const isEnded = fault?.kind === 'expired' || fault?.kind === 'unknown_key';
        if (mayRepeat && isEnded && session !== null && this.#state.session.drop(session, clock.now()))
          return { kind: 'again' };
        return fault === null
          ? null
          : { kind: 'hint', hint: this.#hint(fault, session !== null, clock.now()) };
      },
    };
  }

  /** @returns whether the correction is another one than before */
  #correctClock(serverTime: number | null, now: number, log: CredentialPorts['log']): boolean {
    if (serverTime === null) return false;
    const skewMs = serverTime - now;
    if (Math.abs(skewMs - this.#state.skewMs) < MIN_CORRECTION_MS) return false;
    this.#state.skewMs = skewMs;
    log({ event: 'clock_corrected', server: 'AWS', seconds: Math.round(skewMs / 1000) });
    return true;
  }

  /** What is wrong, with the name of the setting. */
  #hint(fault: AwsFault, isSession: boolean, now: number): string {
    const { settings, keys } = this.#state.identity;
    switch (fault.kind) {
      case 'clock': {
        const minutes = fault.serverTime === null ? 0 : Math.round((fault.serverTime - now) / 60_000);
        const side = minutes > 0 ? 'behind' : 'ahead of';
        if (minutes === 0) return "the clock of this Worker and AWS's differ, or the request was late";
        return `the clock of this Worker is ${Math.abs(minutes)} minutes ${side} AWS's`;
      }
      case 'region':
        return `check ${settings.region}`;
      case 'service':
        return `check ${settings.service}`;
      case 'no_model':
        return `the account of ${isSession ? settings.role : settings.accessKeyId} has no access to this model`;
      case 'forbidden':
        return `the policies of ${isSession ? settings.role : settings.accessKeyId} do not allow this request`;
      case 'signature':
        return `check ${isSession ? settings.role : settings.secretAccessKey}`;
      case 'expired':
        if (isSession) return `the session of ${settings.role} has expired`;
        return keys.sessionToken === null
          ? `check ${settings.accessKeyId}`
          : `${settings.sessionToken} has expired`;
      case 'unknown_key': {
        if (isSession) return `check ${settings.role}`;
        const token = keys.sessionToken === null ? '' : ` and ${settings.sessionToken}`;
        return `check ${settings.accessKeyId}${token}`;
      }
    }
  }

  /** A session of the role. A second try follows a failure that may pass, and a corrected clock. */
  async #assumeRole(role: string, ports: CredentialPorts): Promise<Result<AwsSession, CredentialFailure>> {
    const { clock, log } = ports;
    const until = clock.now() + MAX_EXCHANGE_MS;
    let assumed = await this.#tryAssumeRole(role, ports, until, false);
    if (assumed.kind === 'again' && clock.now() < until)
      assumed = await this.#tryAssumeRole(role, ports, until, true);
    if (assumed.kind === 'ok') return assumed;
    const failed = assumed.kind === 'again' ? assumed.failure : assumed.error;
    log({
      event: 'credential_failed',
      setting: this.#state.identity.settings.role,
      reason: failed.error.message,
    });
    return failure(failed);
  }

  async #tryAssumeRole(
    role: string,
    ports: CredentialPorts,
    until: number,
    isLast: boolean,
  ): Promise<Result<AwsSession, CredentialFailure> | PassingFailure> {
    const { settings } = this.#state.identity;
    const { clock } = ports;
    const query = { Action: 'AssumeRole', Version: '2011-06-15', RoleArn: role, RoleSessionName: 'weir' };
    const { region } = this.#scope;
    const request = { method: 'GET', url: `${stsUrl(region)}?${new URLSearchParams(query)}` } as const;
    const now = clock.now() + this.#state.skewMs;
    const headers = await this.#state.signer.sign(
      { ...request, headers: {}, body: NO_BYTES },
      { region, service: 'sts' },
      now,
    );
    const response = await requestToken({ ...request, headers, body: null, until }, ports);
    if (response.kind === 'error') {
      const what = `could not be reached at ${new URL(request.url).host}: check ${settings.region}`;
      return again(this.#noSession('upstream_unreachable', what, response.error));
    }
    const { status, text } = response.value;
    if (status === 200) {
      const session = readSession(text, this.#state.skewMs);
      return session === null ? failure(this.#noSession('upstream_error', 'sent no session')) : ok(session);
    }
    const fault = faultOf(response.value, now);
    if (fault?.kind === 'clock' && !isLast && this.#correctClock(fault.serverTime, clock.now(), ports.log))
      return again(this.#noSession('upstream_credential', 'refused the time of the signature'));
    if (fault === null && (status >= 500 || status === 429 || THROTTLED.test(text)))
      return again(this.#noSession('upstream_error', `answered ${status}`));
    return failure(this.#refusedRole(fault, status, text, clock.now()));
  }

  #refusedRole(fault: AwsFault | null, status: number, text: string, now: number): CredentialFailure {
    const { settings } = this.#state.identity;
    const isOfRegion = /\bRegionDisabled/.test(text);
    const ofRole = `check ${isOfRegion ? settings.region : settings.role}`;
    const hint =
      fault?.kind === 'forbidden'
        ? `the trust policy of ${settings.role}, or the policies of ${settings.accessKeyId}, do not allow it`
        : fault === null
          ? ofRole
          : this.#hint(fault, false, now);
    return this.#noSession(
      'upstream_credential',
      `refused this deployment's credential (${status}): ${hint}`,
    );
  }

  #noSession(
    code: 'upstream_credential' | 'upstream_error' | 'upstream_unreachable',
    what: string,
    details = what,
  ): CredentialFailure {
    const error: ApiError = apiError(code, `AWS STS ${what}`);
    return { error, cause: `${stsUrl(this.#scope.region)}: ${details}` };
  }
}

const NO_BYTES = new Uint8Array(0);

function stsUrl(region: string): string {
  return `https://sts.${region}.${awsDomain(region)}/`;
}

/** AWS refuses a signature whose time differs from its own by five minutes. */
const MAX_SKEW_MS = 4 * 60_000;
/** A smaller correction of the clock changes nothing. */
const MIN_CORRECTION_MS = 60_000;

type AwsFault =
  | {
      readonly kind:
        | 'region'
        | 'service'
        | 'no_model'
        | 'forbidden'
        | 'signature'
        | 'expired'
        | 'unknown_key';
    }
  | { readonly kind: 'clock'; readonly serverTime: number | null };

/** Statuses with which AWS refuses a credential. */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403]);
/** The reason is at the beginning; a canonical request may follow. */
const MAX_REASON_CHARS = 2000;

const CLOCK =
  /\bSignature (?:expired|not yet current)\b|\bRequestTimeTooSkewed|\bRequestExpired|\bdifference between the request time and the current time\b/i;
/** The first that matches. The words are AWS's: the codes of its common errors, and what it writes under each. */
const FAULTS: readonly (readonly [RegExp, Exclude<AwsFault['kind'], 'clock'>])[] = [
  [/\bscoped to (?:a|the) (?:valid|correct) region\b|\bscoped to correct region\b/i, 'region'],
  [/\bscoped to (?:a |the )?(?:valid|correct) service\b/i, 'service'],
  [/\bExpiredToken|\btoken (?:included in the request )?(?:is|has) expired\b/i, 'expired'],
  [
    /\bUnrecognizedClient|\bInvalidClientTokenId|\bInvalidAccessKeyId|\btoken included in the request is invalid\b/i,
    'unknown_key',
  ],
  [
    /\bInvalidSignature|\bSignatureDoesNotMatch|\bsignature we calculated does not match\b|\bIncompleteSignature/i,
    'signature',
  ],
  [/\bdon['\u2019]t have access to the model\b/i, 'no_model'],
  [/\bnot authorized to perform\b|\bwith an explicit deny\b|\bAccessDeniedException\b/i, 'forbidden'],
];
const THROTTLED = /\bThrottl|\bRequestLimitExceeded\b/;

/** @param signedAt about when the request was signed, by AWS's clock as far as it is known */
function faultOf({ status, headers, text }: RefusedRequest, signedAt: number): AwsFault | null {
  if (!REFUSALS.has(status)) return null;
  const said = `${headers.get('x-amzn-errortype') ?? ''} ${text}`.slice(0, MAX_REASON_CHARS);
  const date = Date.parse(headers.get('date') ?? '');
  const serverTime = timeIn(said) ?? (Number.isNaN(date) ? null : date);
  if (CLOCK.test(said)) return { kind: 'clock', serverTime };
  const kind = FAULTS.find(([pattern]) => pattern.test(said))?.[1];
  const isLate = serverTime !== null && Math.abs(serverTime - signedAt) > MAX_SKEW_MS;
  if (kind === 'signature' && isLate) return { kind: 'clock', serverTime };
  return kind === undefined ? null : { kind };
}

/**
 * AWS's time in its refusal of a signature: `Signature expired: 20261128T185700Z is now earlier than 20261128T190200Z
 * (20261128T190700Z - 5 min.)`.
 */
function timeIn(said: string): number | null {
  const [, year, month, day, hour, minute, second] =
    /\((\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z [+-] \d{1,3} min/.exec(said) ?? [];
  const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(time) ? null : time;
}

/**
 * The session in STS's XML; null: there is none.
 * @param skewMs what is added to the clock to get AWS's
 */
function readSession(xml: string, skewMs: number): AwsSession | null {
  const read = (tag: string) => {
    const from = xml.indexOf(`<${tag}>`);
    const to = xml.indexOf(`</${tag}>`, from);
    const value = from < 0 || to < 0 ? '' : xml.slice(from + tag.length + 2, to).trim();
    return /^[^<\s]{1,8192}$/.test(value) ? value : undefined;
  };
  const accessKeyId = read('AccessKeyId');
  const secretAccessKey = read('SecretAccessKey');
  const sessionToken = read('SessionToken');
  const endsAt = Date.parse(read('Expiration') ?? '') - skewMs;
  if (accessKeyId === undefined || secretAccessKey === undefined || sessionToken === undefined) return null;
  if (Number.isNaN(endsAt)) return null;
  return { signer: new AwsSigner({ accessKeyId, secretAccessKey, sessionToken }), endsAt };
}
