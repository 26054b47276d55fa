/** Finds the provider of a model name without `<provider>/`, such as `claude-haiku-4-5`. */
import { PROFILES, PROVIDERS } from '../providers/index.ts';
import type { Profile } from '../providers/provider.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import type { ConfiguredProvider } from './configured-provider.ts';

type Providers = ReadonlyMap<string, Pick<ConfiguredProvider, 'baseUrl' | 'yields'>>;

/** The settings that decide where bare names go. */
export interface BareNameSettings {
  readonly providers: Providers;
  readonly defaultProvider: string | null;
  /** Whether a bare name goes to its maker. */
  readonly bareModels: boolean;
}

/** The id of the provider that serves a bare name: `DEFAULT_PROVIDER`, or else the model's maker. Null: none. */
export function providerOfBareName(
  name: string,
  { providers, defaultProvider, bareModels }: BareNameSettings,
): string | null {
  return defaultProvider ?? (bareModels ? configuredMaker(name, providers) : null);
}

/**
 * The id of the configured provider that makes the model. An entry of `PROVIDERS` is the maker if it has the maker's id or host; it
 * comes before a built-in provider that yields to it.
 */
export function configuredMaker(name: string, providers: Providers): string | null {
  const makers = makersOf(name);
  const named = makers.find(({ id }) => providers.has(id))?.id;
  if (named !== undefined && providers.get(named)?.yields !== true) return named;
  const hosts = makers.flatMap((maker) => maker.hosts);
  for (const [id, { baseUrl, yields }] of providers)
    if (!yields && hosts.includes(new URL(baseUrl).hostname)) return id;
  return named ?? null;
}

/** The profiles whose API has a model with this name because they make it, the built-in providers first. */
export function makersOf(name: string): readonly Pick<Profile, 'id' | 'hosts'>[] {
  if (name.includes('/')) return [];
  return [...PROVIDERS, ...PROFILES].filter(({ ownModels = [] }) => matchesAnyGlob(ownModels, name));
}
