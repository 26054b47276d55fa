/** Whose credential a call to a provider has, and what makes it. */
import type { Caller } from '../auth/caller.ts';
import type { CredentialMaker } from '../credentials/credential.ts';
import type { ConfiguredProvider } from '../settings/configured-provider.ts';
import type { BoundCredential } from '../upstream/fetch.ts';
import type { RequestContext } from './context.ts';

type CallContext = Pick<RequestContext, 'upstreams' | 'ports' | 'waitUntil'>;

/** What makes the credential of a caller's calls to a provider; null: it is the caller's own, or a plain key. */
export function credentialMaker(
  { auth }: Pick<ConfiguredProvider, 'auth'>,
  { credential }: Pick<Caller, 'credential'>,
  { upstreams: { credentials } }: Pick<CallContext, 'upstreams'>,
): CredentialMaker | null {
  return credential === null ? credentials.makerOf(auth) : null;
}

/** The same, with what it needs of the request. */
export function boundCredential(
  provider: Pick<ConfiguredProvider, 'auth'>,
  caller: Pick<Caller, 'credential'>,
  context: CallContext,
): BoundCredential | null {
  const maker = credentialMaker(provider, caller, context);
  return maker && { maker, ports: { ...context.ports, waitUntil: context.waitUntil } };
}
