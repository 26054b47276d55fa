/** Credentials that are access tokens: each is exchanged once for all requests of an isolate, and anew after a 401. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject, parseJson, readText } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { CredentialMaker, CredentialPorts, MadeCredential, UnsignedRequest } from './credential.ts';
import {
  again,
  type CredentialFailure,
  type Ending,
  Exchange,
  MAX_EXCHANGE_MS,
  type PassingFailure,
} from './exchange.ts';
import { requestToken } from './token-request.ts';

/** Where a token comes from. */
export interface TokenSource {
  /** The name of the service in messages. */
  readonly name: string;
  /** The setting that stands for the credential in messages. */
  readonly setting: string;
  readonly url: string;
  /** What no text may contain. */
  readonly secrets: readonly string[];
  /**
   * The form fields of the exchange. Rejects if the key in the settings cannot be used.
   * @param now of the service's clock, in ms since the epoch
   */
  form(now: number): Promise<Readonly<Record<string, string>>>;
  /** What is wrong, with the setting, by the code and the description of an OAuth error. */
  hint(code: string, description: string): string;
}

interface Token extends Ending {
  readonly text: string;
}

/**
 * OAuth's errors about the time of an assertion. Google: "Invalid JWT: Token must be a short-lived token (60 minutes)
 * and in a reasonable timeframe. Check your iat and exp values"; Entra: AADSTS700024, "Client assertion is not within
 * its valid time range".
 */
const CLOCK =
  /\breasonable timeframe\b|\biat and exp\b|\bAADSTS700024\b|\bnot within its valid time range\b/i;
const MIN_CORRECTION_MS = 60_000;
/** The reason is at the beginning of a description. */
const MAX_REASON_CHARS = 2000;
/** A lifetime that a response lacks. */
const DEFAULT_LIFE_SECONDS = 3600;
/** Larger than any token, and than what a header may have. */
const MAX_TOKEN_CHARS = 16_384;

/** A source with its token, which requests share. */
export class TokenCredential implements CredentialMaker {
  readonly #source: TokenSource;
  readonly #exchange = new Exchange<Token>();
  /** What is added to the clock to get the service's. */
  #skewMs = 0;

  constructor(source: TokenSource) {
    this.#source = source;
  }

  get secrets(): readonly string[] {
    const { current } = this.#exchange;
    return current === null ? this.#source.secrets : [...this.#source.secrets, current.text];
  }

  async make(
    { headers, body }: UnsignedRequest,
    ports: CredentialPorts,
  ): Promise<Result<MadeCredential, CredentialFailure>> {
    const token = await this.#exchange.get(
      () => this.#fetch(ports),
      ports,
      () => this.#failed('upstream_unreachable', 'did not answer in time'),
    );
    if (token.kind === 'error') return token;
    return ok({
      headers: { ...headers, authorization: `Bearer ${token.value.text}` },
      body,
      judge: ({ status }, isLast) => {
        if (status !== 401) return null;
        if (!isLast && this.#exchange.drop(token.value, ports.clock.now())) return { kind: 'again' };
        return { kind: 'hint', hint: `its token of ${this.#source.setting} was refused` };
      },
    });
  }

  /** A second try follows a failure that may pass, and a corrected clock. */
  async #fetch(ports: CredentialPorts): Promise<Result<Token, CredentialFailure>> {
    const until = ports.clock.now() + MAX_EXCHANGE_MS;
    let fetched = await this.#tryFetch(ports, until, false);
    if (fetched.kind === 'again' && ports.clock.now() < until)
      fetched = await this.#tryFetch(ports, until, true);
    if (fetched.kind === 'ok') return fetched;
    const failed = fetched.kind === 'again' ? fetched.failure : fetched.error;
    const { setting } = this.#source;
    ports.log({ event: 'credential_failed', setting, reason: failed.error.message });
    return failure(failed);
  }

  async #tryFetch(
    ports: CredentialPorts,
    until: number,
    isLast: boolean,
  ): Promise<Result<Token, CredentialFailure> | PassingFailure> {
    const { url, setting } = this.#source;
    const { clock, log } = ports;
    let form: Readonly<Record<string, string>>;
    try {
      form = await this.#source.form(clock.now() + this.#skewMs);
    } catch {
      return failure(
        this.#failed('upstream_credential', `cannot be asked: the private key of ${setting} is none`),
      );
    }
    const request = {
      method: 'POST',
      url,
      until,
      body: String(new URLSearchParams(form)),
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    } as const;
    const response = await requestToken(request, ports);
    if (response.kind === 'error') {
      const what = `could not be reached at ${new URL(url).host}`;
      return again(this.#failed('upstream_unreachable', what, response.error));
    }
    const { status, text, headers } = response.value;
    const answer = parseJson(text);
    const fields = isObject(answer) ? answer : {};
    if (status === 200) {
      const token = readText(fields.access_token);
      if (token === undefined || token.length > MAX_TOKEN_CHARS || !/^[\x21-\x7e]+$/.test(token))
        return failure(this.#failed('upstream_error', 'sent no token'));
      const seconds = Number(fields.expires_in ?? DEFAULT_LIFE_SECONDS);
      const lifeMs = (Number.isFinite(seconds) && seconds > 0 ? seconds : DEFAULT_LIFE_SECONDS) * 1000;
      return ok({ text: token, endsAt: clock.now() + lifeMs });
    }
    if (status >= 500 || status === 429) return again(this.#failed('upstream_error', `answered ${status}`));
    const code = readText(fields.error) ?? '';
    const description = (readText(fields.error_description) ?? '').slice(0, MAX_REASON_CHARS);
    if (CLOCK.test(description)) {
      const off = Date.parse(headers.get('date') ?? '') - clock.now();
      if (!isLast && Math.abs(off - this.#skewMs) >= MIN_CORRECTION_MS) {
        this.#skewMs = off;
        log({ event: 'clock_corrected', server: this.#source.name, seconds: Math.round(off / 1000) });
        return again(this.#failed('upstream_credential', 'refused the time of the assertion'));
      }
      const minutes = Math.round(Math.abs(off) / 60_000);
      const how =
        minutes > 0 ? `is ${minutes} minutes ${off > 0 ? 'behind' : 'ahead of'} its` : 'and its differ';
      return failure(this.#refused(status, `the clock of this Worker ${how}`));
    }
    return failure(this.#refused(status, this.#source.hint(code, description)));
  }

  #refused(status: number, hint: string): CredentialFailure {
    return this.#failed('upstream_credential', `refused this deployment's credential (${status}): ${hint}`);
  }

  #failed(
    code: 'upstream_credential' | 'upstream_error' | 'upstream_unreachable',
    what: string,
    details = what,
  ): CredentialFailure {
    const error: ApiError = apiError(code, `${this.#source.name} ${what}`);
    const [address = ''] = this.#source.url.split('?');
    return { error, cause: `${address}: ${details}` };
  }
}
