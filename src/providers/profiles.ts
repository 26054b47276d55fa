/** The profiles that an entry of `PROVIDERS` can have: one line each. */
import { anthropic } from './anthropic.ts';
import { cerebras } from './cerebras.ts';
import { deepseek } from './deepseek.ts';
import { fireworks } from './fireworks.ts';
import { geminiNative } from './gemini.ts';
import { geminiCompatible } from './gemini-compatible.ts';
import { groq } from './groq.ts';
import { mistral } from './mistral.ts';
import { moonshot } from './moonshot.ts';
import { openai } from './openai.ts';
import { openrouter } from './openrouter.ts';
import type { Profile } from './provider.ts';
import { llamacpp, ollama, sglang, vllm } from './self-hosted.ts';
import { together } from './together.ts';
import { tolerant } from './tolerant.ts';
import { xai } from './xai.ts';
import { zai } from './zai.ts';

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
  vllm,
  sglang,
  llamacpp,
  ollama,
  tolerant,
];

/** The profile of the host that a base URL names; a host that none names is tolerant. */
export function profileOfHost(host: string): Profile {
  return PROFILES.find(({ hosts }) => hosts.includes(host)) ?? tolerant;
}

/** The profile of the API at a base URL. Google serves two at one host: the compatible one is below `/openai`. */
export function profileOfUrl({ hostname, pathname }: URL): Profile {
  const found = profileOfHost(hostname);
  return found === geminiCompatible && !/\/openai\/?$/.test(pathname) ? geminiNative : found;
}
