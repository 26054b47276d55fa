/** Recognizes the keys of providers, which clients send to Weir by mistake. */
import { PROFILES, PROVIDERS } from '../providers/index.ts';

/** The name of the provider whose keys begin as this token does, or `a provider`; null: nothing is recognized. */
export function ownerOfKey(token: string): string | null {
  const begins = (prefix: string) => token.startsWith(prefix);
  const provider = PROVIDERS.find(({ keyPrefixes = [] }) => keyPrefixes.some(begins));
  const profile = PROFILES.find(({ keyPrefixes = [] }) => keyPrefixes.some(begins));
  // DeepSeek, Moonshot and others begin their keys so, as OpenAI did.
  return provider?.name ?? profile?.id ?? (token.startsWith('sk-') ? 'a provider' : null);
}
