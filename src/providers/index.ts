/** All providers that Weir knows by name, and all profiles that an entry of `PROVIDERS` can have: one line each. */
import { anthropic } from './anthropic.ts';
import { azure, azureHost } from './azure.ts';
import { bedrock } from './bedrock.ts';
import { cerebras } from './cerebras.ts';
import { cloudflare } from './cloudflare.ts';
import { tolerant } from './compatible.ts';
import { deepseek } from './deepseek.ts';
import { fireworks } from './fireworks.ts';
import { gemini, geminiCompatible, geminiNative } from './gemini.ts';
import { groq } from './groq.ts';
import { codestral, mistral } from './mistral.ts';
import { moonshot } from './moonshot.ts';
import { openai } from './openai.ts';
import { openrouter } from './openrouter.ts';
import { opentoken } from './opentoken.ts';
import type { AuthSettings, Profile, Provider } from './provider.ts';
import { llamacpp, ollama, sglang, vllm } from './self-hosted.ts';
import { together } from './together.ts';
import { vertex, vertexHost, vertexProfileAt } from './vertex.ts';
import { xai } from './xai.ts';
import { xerotier } from './xerotier.ts';
import { zai } from './zai.ts';

/** No entry of `PROVIDERS` may have the name of one of these. */
const RESERVED = [
  deepseek, //
  mistral,
  codestral,
  opentoken,
  xerotier,
  openai,
  anthropic,
  gemini,
] as const;

/** An entry of `PROVIDERS` with the name of one of these replaces it: deployments had such entries before the names were built in. */
const REPLACEABLE = [
  groq, //
  xai,
  openrouter,
  together,
  fireworks,
  cerebras,
  moonshot,
  zai,
  bedrock,
  azure,
  cloudflare,
  vertex,
] as const;

const KNOWN = [...RESERVED, ...REPLACEABLE] as const;

type KnownSetting = (typeof KNOWN)[number] extends Provider<infer Setting> ? Setting : never;

/** The built-in providers, which their key enables. */
export const PROVIDERS: readonly Provider[] = KNOWN;

/** Whether the name is a built-in provider's that no entry of `PROVIDERS` may have. */
export function isReserved(id: string): boolean {
  return RESERVED.some((provider) => provider.id === id);
}

/** The names of the settings with their keys and base URLs. */
export const PROVIDER_SETTINGS = (KNOWN as readonly Provider<KnownSetting>[]).flatMap(
  ({ apiKeySettings, auth, baseUrlSettings, cloud }) => [
    ...apiKeySettings,
    ...authSettingsOf(auth),
    ...baseUrlSettings,
    ...(cloud?.parameters.map(({ setting }) => setting) ?? []),
    ...(cloud?.modelsSetting === undefined ? [] : [cloud.modelsSetting]),
  ],
);

export type ProviderSetting = KnownSetting;

function authSettingsOf(auth: AuthSettings<KnownSetting> | undefined): readonly KnownSetting[] {
  if (auth === undefined) return [];
  switch (auth.kind) {
    case 'aws':
      return [...authSecrets(auth), auth.role];
    case 'google':
      return authSecrets(auth);
    case 'entra':
      return [...authSecrets(auth), auth.tenantId, auth.clientId, auth.authority];
  }
}

function authSecrets<Setting extends string>(auth: AuthSettings<Setting>): readonly Setting[] {
  if (auth.kind === 'google') return [auth.key];
  if (auth.kind === 'entra') return [auth.secret, auth.certificate];
  return [auth.accessKeyId, auth.secretAccessKey, auth.sessionToken];
}

/** The settings of a provider that are secrets: its keys, and of what else its credential is made. */
export function secretSettings({ apiKeySettings, auth }: Provider): readonly string[] {
  return [...apiKeySettings, ...(auth === undefined ? [] : authSecrets(auth))];
}

/**
 * Whether a provider can read encrypted reasoning, by how this begins. What a provider of the operator's own reads is not known.
 * @param target its profile
 */
export function readsReasoning(target: Pick<Profile, 'reasoningPrefix'>, data: string): boolean {
  const writer = PROVIDERS.find(
    ({ reasoningPrefix: begin }) => begin !== undefined && data.startsWith(begin),
  );
  return target.reasoningPrefix === writer?.reasoningPrefix;
}

/** The profiles that an entry of `PROVIDERS` gets by its host or by `like`. */
export const PROFILES: readonly Profile[] = [
  groq, //
  cerebras,
  xai,
  openrouter,
  together,
  fireworks,
  moonshot,
  zai,
  geminiCompatible,
  geminiNative,
  deepseek,
  mistral,
  openai,
  anthropic,
  azureHost,
  vertexHost,
  bedrock,
  vllm,
  sglang,
  llamacpp,
  ollama,
  tolerant,
];

/** The profile of a host; `tolerant` for an unknown host. */
export function profileOfHost(host: string): Profile {
  return (
    PROFILES.find(({ hosts, hostPattern }) => hosts.includes(host) || hostPattern?.test(host)) ?? tolerant
  );
}

/**
 * The profile of a base URL. Google has two APIs at one host: the compatible one is below `/openai`. Vertex AI has
 * those of several makers, also for an entry that names the native API in `like`.
 * @param url typed by its parts: this file is in the package's declarations, which must compile without the type `URL`
 */
export function profileOfUrl(
  { hostname, pathname }: Readonly<Record<'hostname' | 'pathname', string>>,
  like?: Profile,
): Profile {
  const ofHost = profileOfHost(hostname);
  const found = like ?? ofHost;
  if (found === vertexHost || (found === geminiNative && ofHost === vertexHost))
    return vertexProfileAt(pathname);
  const isNative = like === undefined && found === geminiCompatible && !/\/openai\/?$/.test(pathname);
  return isNative ? geminiNative : found;
}
