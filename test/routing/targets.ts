/** Targets for tests, from a deployment's settings. */

import { findTargets, type Target, type TargetsRequest } from '../../src/routing/targets.ts';
import type { Settings } from '../../src/settings/settings.ts';
import { readSettings } from '../settings/read-settings.ts';

const ENV = {
  DEEPSEEK_API_KEY: 'd',
  MISTRAL_API_KEY: 'm',
  OPENAI_API_KEY: 'o',
  ANTHROPIC_API_KEY: 'a',
  PROVIDERS: JSON.stringify({ router: { base_url: 'http://router/v1', like: 'openrouter' } }),
};

export function settingsWith(env: Record<string, unknown> = {}): Settings {
  const read = readSettings({ ...ENV, ...env });
  if (read.kind === 'invalid') throw new Error(JSON.stringify(read.problems));
  return read.settings;
}

export function find(names: readonly string[], fields: Partial<TargetsRequest> = {}) {
  const settings = settingsWith();
  const byDefault = {
    route: 'chat',
    body: {},
    stickyKey: () => '',
    mayUse: () => true,
    unpricedIn: () => null,
    callerPays: false,
  } as const;
  return findTargets({ settings, names, ...byDefault, ...fields });
}

/** The targets of these names; throws if there are none. */
export function targetsOf(
  names: readonly string[],
  fields: Partial<TargetsRequest> = {},
): [Target, ...Target[]] {
  const found = find(names, fields);
  if (found.kind === 'error') throw new Error(found.error.message);
  return [...found.value.targets];
}
