/** The one place where a credential is made: a signature, or a token for what the deployment has. Keeps what several requests share. */
import { type AwsAuth, AwsCredential, AwsIdentityState } from './aws.ts';
import type { CredentialMaker } from './credential.ts';
import { type EntraAuth, entraTokens } from './entra.ts';
import { type GoogleAuth, googleTokens } from './google.ts';
import { TokenCredential } from './tokens.ts';

/** How a provider's credential is made, from its settings. */
export type Auth = AwsAuth | GoogleAuth | EntraAuth;

/** The makers of a deployment's credentials. Other settings have other makers. */
export class Credentials {
  readonly #makers = new WeakMap<Auth, CredentialMaker>();
  /** By what of a credential several APIs of a provider share. */
  readonly #aws = new WeakMap<object, AwsIdentityState>();
  readonly #tokens = new WeakMap<object, TokenCredential>();

  /** The maker for a provider; null: it has a plain key, or none. */
  makerOf(auth: Auth | null): CredentialMaker | null {
    if (auth === null) return null;
    const known = this.#makers.get(auth);
    if (known !== undefined) return known;
    const maker = this.#create(auth);
    this.#makers.set(auth, maker);
    return maker;
  }

  #create(auth: Auth): CredentialMaker {
    switch (auth.kind) {
      case 'aws':
        return new AwsCredential(
          shared(this.#aws, auth.identity, () => new AwsIdentityState(auth.identity)),
          auth.scope,
        );
      case 'google':
        return shared(this.#tokens, auth.account, () => new TokenCredential(googleTokens(auth.account)));
      case 'entra':
        return shared(this.#tokens, auth.client, () => new TokenCredential(entraTokens(auth.client)));
    }
  }
}

function shared<Value>(kept: WeakMap<object, Value>, key: object, create: () => Value): Value {
  const value = kept.get(key) ?? create();
  kept.set(key, value);
  return value;
}
