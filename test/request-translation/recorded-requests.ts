/**
 * Reads the recorded requests beside this repository: bodies that real providers accepted, and bodies that they
 * refused, with the error.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configuredProvider, tolerant } from '../../src/providers/compatible.ts';
import { PROFILES, PROVIDERS } from '../../src/providers/index.ts';
import type { Provider, Route } from '../../src/providers/provider.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { objectOf } from '../../tools/conformance/contract/json.ts';

export interface RecordedRequest {
  readonly name: string;
  /** From the file's name. A provider without a profile counts as tolerant. */
  readonly provider: Provider;
  /** From the endpoint in INDEX.md. */
  readonly route: Route;
  readonly body: JsonObject;
  /** The provider's error, or null if it accepted the request. */
  readonly refusal: { readonly status: number; readonly body: string } | null;
}

const FOLDER = fileURLToPath(new URL('../../../shared/requests/', import.meta.url).href);

/** The end of a test's name: a run without the recordings reports what it skipped. */
export const requestsNote = existsSync(FOLDER) ? '' : ' (skipped: ../shared/requests is not here)';

export function readRecordedRequests(): RecordedRequest[] {
  if (!existsSync(FOLDER)) return [];
  const index = readFileSync(`${FOLDER}INDEX.md`, 'utf8').split('\n');
  const names = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
  return names.sort().map((name) => {
    const json = objectOf(JSON.parse(readFileSync(FOLDER + name, 'utf8')));
    const endpoint = index.find((line) => line.startsWith(`| ${name} |`))?.split('|')[3] ?? '';
    const isRefused = name.includes('--refused-');
    return {
      name,
      provider: providerOf(name.split('--')[0] ?? ''),
      route: routeOf(endpoint.trim()),
      body: isRefused ? objectOf(json.request) : json,
      refusal: isRefused ? { status: Number(json.status), body: JSON.stringify(json.response) } : null,
    };
  });
}

function providerOf(maker: string): Provider {
  const known = PROVIDERS.find(({ id }) => id === maker);
  if (known !== undefined) return known;
  return configuredProvider(maker, PROFILES.find(({ id }) => id === maker) ?? tolerant, 'PROVIDERS');
}

function routeOf(endpoint: string): Route {
  if (endpoint.includes('/fim/')) return 'fim';
  if (endpoint.includes('/agents/')) return 'agents';
  return endpoint.endsWith('/v1/completions') ? 'completions' : 'chat';
}
