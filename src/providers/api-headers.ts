/** The headers that every request to a provider has: its API's own, its credential, and those of the deployment, which win. */
import type { Profile } from './provider.ts';

/** @param secret `""` for no credential */
export function apiHeaders(
  { headers = {}, credential = bearer }: Pick<Profile, 'headers' | 'credential'>,
  secret: string,
  ofDeployment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return { ...headers, ...(secret === '' ? {} : credential(secret)), ...ofDeployment };
}

function bearer(secret: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${secret}` };
}
