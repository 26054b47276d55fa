/** What making a credential takes and gives. A provider with a plain key needs nothing of it. */
import type { Result } from '../shared/result.ts';
import type { CredentialFailure, ExchangePorts } from './exchange.ts';
import type { TokenPorts } from './token-request.ts';

/** A request without its credential. */
export interface UnsignedRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  /** With lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** The credential of one request. */
export interface MadeCredential {
  /** All headers to send. */
  readonly headers: Readonly<Record<string, string>>;
  /** As it must be sent. */
  readonly body: string | Uint8Array<ArrayBuffer> | null;
  /**
   * Judges a refusal of the request; null: it is not about the credential.
   * @param isLast the request is not sent again, whatever the verdict
   */
  judge(refused: RefusedRequest, isLast: boolean): CredentialVerdict | null;
}

/** A response that refuses, with the beginning of its body. */
export interface RefusedRequest {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/**
 * What a refusal says of a credential that was made.
 * - `again`: another one may be accepted: a clock is corrected, or a token is made anew.
 * - `hint`: what is wrong, with the setting: `check AWS_SECRET_ACCESS_KEY`.
 */
type CredentialVerdict = { readonly kind: 'again' } | { readonly kind: 'hint'; readonly hint: string };

/** What making a credential needs of the request that it is for. */
export interface CredentialPorts extends ExchangePorts, TokenPorts {}

/** Makes the credentials of one provider's requests. */
export interface CredentialMaker {
  make(request: UnsignedRequest, ports: CredentialPorts): Promise<Result<MadeCredential, CredentialFailure>>;
  /** What no text may contain: what the settings have, and what was made of it. */
  readonly secrets: readonly string[];
}
