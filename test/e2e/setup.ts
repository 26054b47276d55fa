/** Vitest's global setup: builds the page and bundles the deployed Worker once for all test files. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { buildDeployed } from './workers.ts';

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'weir-bundles-'));
  await buildDeployed(directory);
  project.onTestsRerun(() => buildDeployed(directory));
  return () => rm(directory, { recursive: true });
}
