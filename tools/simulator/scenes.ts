/** All scenes, and which of them answers a path. */

import { anthropic } from './anthropic.ts';
import { cerebras } from './cerebras.ts';
import { compatible } from './compatible.ts';
import { deepseek } from './deepseek.ts';
import { gemini } from './gemini.ts';
import { geminiCompatible } from './gemini-compatible.ts';
import { groq } from './groq.ts';
import { codestral, mistral } from './mistral.ts';
import { openai } from './openai.ts';
import { openrouter } from './openrouter.ts';
import { opentoken } from './opentoken.ts';
import type { Operation, PathWords, Scene } from './scene.ts';
import { xai } from './xai.ts';
import { xerotier } from './xerotier.ts';

/** Those that a gateway knows by itself, and the tolerant compatible one. */
const ownScenes: readonly Scene[] = [
  deepseek,
  mistral,
  codestral,
  opentoken,
  xerotier,
  openai,
  anthropic,
  compatible,
];

/** Those that a gateway reaches through an entry of `PROVIDERS`, each with the profile of its name. */
export const compatibleScenes: readonly Scene[] = [groq, cerebras, openrouter, geminiCompatible, xai];

export const allScenes: readonly Scene[] = [...ownScenes, ...compatibleScenes];

/** Those with an API of their own, whose requests no OpenAI client could send. */
const nativeScenes: readonly Scene[] = [gemini];

/** The base URL of each provider below the simulator's own: for the settings of a gateway. */
export const basePaths = {
  deepseek: '/deepseek',
  mistral: '/mistral/v1',
  codestral: '/codestral/v1',
  opentoken: '/opentoken/v1',
  xerotier: '/xerotier/proj_ABC123/my-endpoint/v1',
  openai: '/openai/v1',
  anthropic: '/anthropic',
  compatible: '/compatible/v1',
  groq: '/groq/v1',
  cerebras: '/cerebras/v1',
  openrouter: '/openrouter/v1',
  'gemini-compatible': '/gemini-compatible/v1',
  gemini: '/gemini',
  xai: '/xai/v1',
} as const;

export function findScene(
  path: string,
): { scene: Scene; operation: Operation; inPath?: PathWords | undefined } | undefined {
  for (const scene of [...allScenes, ...nativeScenes]) {
    const operation = scene.routes[path];
    if (operation) return { scene, operation };
    const inPath = scene.readPath?.(path);
    if (inPath) return { scene, operation: 'chat', inPath };
  }
  return undefined;
}
