/** What runs: the version of Weir, and that of the deployed Worker. */
import { readText } from '../shared/json.ts';
import type { SettingInForce, SettingsReader } from './reader.ts';
import type { FeatureName } from './table.ts';

/** The `version` of package.json. */
export const VERSION = '0.3.0';

export interface RunningVersion {
  readonly version: string;
  /** The tag of the deployed version, which `npm run deploy` sets to the commit; null: it has none, or no metadata is bound. */
  readonly commit: string | null;
  /** Cloudflare's id of the deployed version, by which a rollback names it; null: no metadata is bound. */
  readonly version_id: string | null;
  /** When the version was uploaded: ISO 8601. */
  readonly uploaded_at: string | null;
}

/** What a deployment consists of. */
export interface Running extends RunningVersion {
  /** The names of the features. */
  readonly features: readonly FeatureName[];
  readonly settings: readonly SettingInForce[];
}

/** Reads the binding of https://developers.cloudflare.com/workers/runtime-apis/bindings/version-metadata/ (2026-11-23). */
export function readVersion(reader: SettingsReader): RunningVersion {
  const { id, tag, timestamp } = decodeMetadata(reader.binding('CF_VERSION_METADATA'));
  const textOrNull = (value: unknown) => readText(value) ?? null;
  return {
    version: VERSION,
    commit: textOrNull(tag),
    version_id: textOrNull(id),
    uploaded_at: textOrNull(timestamp),
  };
}

function decodeMetadata(binding: object = {}): Readonly<Record<'id' | 'tag' | 'timestamp', unknown>> {
  return { id: undefined, tag: undefined, timestamp: undefined, ...binding };
}
