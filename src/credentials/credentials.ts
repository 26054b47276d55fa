/** The one place where a credential is made: a signature, or a token for what the deployment has. Keeps what several requests share. */
import { type AwsAuth, AwsCredential, AwsIdentityState } from './aws.ts';
import type { CredentialMaker } from './credential.ts';

/** How a provider's credential is made, from its settings. */
export type Auth = AwsAuth;

/** The makers of a deployment's credentials. Other settings have other makers. */
export class Credentials {
  readonly #makers = new WeakMap<Auth, CredentialMaker>();
  /** Several APIs of one provider share an identity. */
  readonly #identities = new WeakMap<AwsAuth['identity'], AwsIdentityState>();

  /** The maker for a provider; null: it has a plain key, or none. */
  makerOf(auth: Auth | null): CredentialMaker | null {
    if (auth === null) return null;
    const known = this.#makers.get(auth);
    if (known !== undefined) return known;
    const state = this.#identities.get(auth.identity) ?? new AwsIdentityState(auth.identity);
    this.#identities.set(auth.identity, state);
    const maker = new AwsCredential(state, auth.scope);
    this.#makers.set(auth, maker);
    return maker;
  }
}
