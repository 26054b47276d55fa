/** Finds and reads the fixtures: `test/fixtures/<provider>/<case>/`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Policies, parseVendorEvents } from '../../src/canonical/policies.ts';
import type { Route } from '../../src/providers/provider.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';

/** `case.json`: what the case shows, what was requested, and the expected record. */
interface Case {
  readonly about: string;
  readonly rules: readonly string[];
  readonly route: Route;
  readonly model: string;
  readonly stream: boolean;
  readonly include_usage: boolean;
  /** The number of requested choices. Absent: one. */
  readonly n?: number;
  /** Settings that differ from their defaults. */
  readonly policies: {
    readonly VENDOR_EVENTS?: string;
    readonly REASONING?: Policies['reasoning'];
    readonly USAGE_CHUNK?: Policies['usageChunk'];
    readonly ERROR_FRAMES?: Policies['errorFrames'];
  };
  readonly outcome: {
    readonly status: 'finished' | 'failed';
    readonly native_finish_reason: string | null;
    /** Null if no usage was reported. The same holds for each count. */
    readonly usage: Readonly<Record<UsageField, number | null>> | null;
    readonly error: { readonly type: string; readonly code: string } | null;
    readonly vendor_events: number;
    readonly vendor_tokens: number;
  };
}

export type UsageField =
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'total_tokens'
  | 'cached_tokens'
  | 'reasoning_tokens';

export interface Fixture extends Case {
  /** `<provider>/<case>` */
  readonly name: string;
  readonly provider: string;
  /** What the upstream sends: an event stream, or one JSON object. */
  readonly upstream: Uint8Array;
  readonly upstreamIsStream: boolean;
  /** What the client receives, byte for byte. */
  readonly expected: string;
}

const ROOT = join(import.meta.dirname, '..', 'fixtures');

export const fixtureProviders: readonly string[] = readdirSync(ROOT).sort();

export const fixtures: readonly Fixture[] = fixtureProviders.flatMap((provider) =>
  readdirSync(join(ROOT, provider))
    .sort()
    .map((name) => readFixture(provider, name)),
);

function readFixture(provider: string, name: string): Fixture {
  const folder = join(ROOT, provider, name);
  const upstreamIsStream = existsSync(join(folder, 'upstream.sse'));
  const described: Case = JSON.parse(readFileSync(join(folder, 'case.json'), 'utf8'));
  return {
    ...described,
    name: `${provider}/${name}`,
    provider,
    upstreamIsStream,
    upstream: readFileSync(join(folder, upstreamIsStream ? 'upstream.sse' : 'upstream.json')),
    expected: readFileSync(join(folder, described.stream ? 'expected.sse' : 'expected.json'), 'utf8'),
  };
}

export function policiesOf({ policies }: Case): Policies {
  return {
    vendorEvents: parseVendorEvents(policies.VENDOR_EVENTS ?? 'strip') ?? [],
    reasoning: policies.REASONING ?? DEFAULT_POLICIES.reasoning,
    usageChunk: policies.USAGE_CHUNK ?? DEFAULT_POLICIES.usageChunk,
    errorFrames: policies.ERROR_FRAMES ?? DEFAULT_POLICIES.errorFrames,
  };
}
