/** The list of all scenes, and the lookup by path. */

import { anthropic } from './anthropic.ts';
import { azure } from './azure.ts';
import { bedrock } from './bedrock.ts';
import { cerebras } from './cerebras.ts';
import { ACCOUNT, cloudflare } from './cloudflare.ts';
import { compatible } from './compatible.ts';
import { deepseek } from './deepseek.ts';
import { fireworks } from './fireworks.ts';
import { gemini } from './gemini.ts';
import { geminiCompatible } from './gemini-compatible.ts';
import { groq } from './groq.ts';
import { codestral, mistral } from './mistral.ts';
import { moonshot } from './moonshot.ts';
import { openai } from './openai.ts';
import { openrouter } from './openrouter.ts';
import { opentoken } from './opentoken.ts';
import type { Operation, PathWords, Scene } from './scene.ts';
import { together } from './together.ts';
import { unknown } from './unknown.ts';
import { PLACE, vertex } from './vertex.ts';
import { xai } from './xai.ts';
import { xerotier } from './xerotier.ts';
import { zai } from './zai.ts';

/** The built-in providers, and the lenient compatible one. */
const ownScenes: readonly Scene[] = [
  deepseek,
  mistral,
  codestral,
  opentoken,
  xerotier,
  openai,
  anthropic,
  together,
  fireworks,
  bedrock,
  azure,
  cloudflare,
  compatible,
];

/** Providers that the tests configure by an entry of `PROVIDERS` with the profile of the same name. */
export const compatibleScenes: readonly Scene[] = [
  groq, //
  cerebras,
  openrouter,
  geminiCompatible,
  xai,
  moonshot,
  zai,
  unknown,
];

export const allScenes: readonly Scene[] = [...ownScenes, ...compatibleScenes];

/** Providers with a native API, which OpenAI clients cannot call. */
const nativeScenes: readonly Scene[] = [gemini, vertex];

/** The base path of each provider on the simulator, for the gateway's settings. */
export const basePaths = {
  deepseek: '/deepseek',
  mistral: '/mistral/v1',
  codestral: '/codestral/v1',
  opentoken: '/opentoken/v1',
  xerotier: '/xerotier/proj_ABC123/my-endpoint/v1',
  openai: '/openai/v1',
  anthropic: '/anthropic',
  together: '/together/v1',
  fireworks: '/fireworks/v1',
  bedrock: '/bedrock/mantle/v1',
  azure: '/azure/openai/v1',
  cloudflare: `/cloudflare/client/v4/accounts/${ACCOUNT}/ai/v1`,
  compatible: '/compatible/v1',
  groq: '/groq/v1',
  cerebras: '/cerebras/v1',
  openrouter: '/openrouter/v1',
  'gemini-compatible': '/gemini-compatible/v1',
  gemini: '/gemini',
  vertex: `/vertex/v1/projects/${PLACE.VERTEX_PROJECT}/locations/${PLACE.VERTEX_LOCATION}/endpoints/openapi`,
  xai: '/xai/v1',
  moonshot: '/moonshot/v1',
  zai: '/zai/v1',
  unknown: '/unknown/v1',
} as const;

/** The settings of each cloud, whose addresses are not its id's. The key is not among them. */
export function cloudSettings(simulator: string): Readonly<Record<string, Readonly<Record<string, string>>>> {
  return {
    bedrock: {
      BEDROCK_BASE_URL: `${simulator}/bedrock/runtime`,
      BEDROCK_MANTLE_BASE_URL: `${simulator}/bedrock/mantle`,
    },
    cloudflare: {
      CLOUDFLARE_ACCOUNT_ID: ACCOUNT,
      CLOUDFLARE_AI_BASE_URL: `${simulator}/cloudflare`,
    },
    vertex: { ...PLACE, VERTEX_BASE_URL: `${simulator}/vertex` },
    azure: {
      AZURE_BASE_URL: `${simulator}/azure`,
      AZURE_MODELS: '{"prod-gpt": "openai/gpt-6.1-terra", "prod-claude": "anthropic/claude-opus-5-5"}',
    },
  };
}

export function findScene(
  path: string,
): { scene: Scene; operation: Operation; inPath?: PathWords | undefined } | undefined {
  for (const scene of [...allScenes, ...nativeScenes]) {
    const operation = scene.routes[path];
    if (operation) return { scene, operation };
    const inPath = scene.readPath?.(path);
    if (inPath) return { scene, operation: inPath.operation ?? 'chat', inPath };
  }
  return undefined;
}
