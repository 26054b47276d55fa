/** All scenes, and which of them answers a path. */

import { compatible } from './compatible.ts';
import { deepseek } from './deepseek.ts';
import { codestral, mistral } from './mistral.ts';
import { openai } from './openai.ts';
import { opentoken } from './opentoken.ts';
import type { Operation, Scene } from './scene.ts';
import { xerotier } from './xerotier.ts';

export const scenes: readonly Scene[] = [
  deepseek,
  mistral,
  codestral,
  opentoken,
  xerotier,
  openai,
  compatible,
];

/** The base URL of each provider below the simulator's own: for the settings of a gateway. */
export const basePaths = {
  deepseek: '/deepseek',
  mistral: '/mistral/v1',
  codestral: '/codestral/v1',
  opentoken: '/opentoken/v1',
  xerotier: '/xerotier/proj_ABC123/my-endpoint/v1',
  openai: '/openai/v1',
  compatible: '/compatible/v1',
} as const;

export function findScene(path: string): { scene: Scene; operation: Operation } | undefined {
  for (const scene of scenes) {
    const operation = scene.routes[path];
    if (operation) return { scene, operation };
  }
  return undefined;
}
