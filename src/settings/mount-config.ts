/** Reads where Weir is mounted: its base path, and where requests for other paths go. */
import type { JsonObject } from '../shared/json.ts';
import { trimEnd } from '../shared/trim.ts';
import { SettingsReader } from './reader.ts';

/** Where a request for another path goes. */
type Origin =
  /** Nowhere: the response is a 404. */
  | { readonly kind: 'none' }
  /** To the zone's own origin. The request's host must match one of these: `example.com`, `*.example.com`. */
  | { readonly kind: 'zone'; readonly hosts: readonly string[] }
  /** To this origin: scheme, host and port, without a trailing slash. */
  | { readonly kind: 'url'; readonly url: string };

export interface MountConfig {
  /** `""`, or a path with a leading and no trailing slash. */
  readonly basePath: string;
  readonly origin: Origin;
  /** Part of this configuration because a request that contains it must not be forwarded to the origin. */
  readonly adminToken: string | null;
}

const HOST = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::\d{1,5})?$/;

/** Reads the mount alone, so that it works while other settings are invalid. Null if it is invalid itself. */
export function mountConfigOf(env: JsonObject): MountConfig | null {
  const reader = new SettingsReader(env);
  const mount = readMountConfig(reader);
  return reader.problems.length === 0 ? mount : null;
}

export function readMountConfig(reader: SettingsReader): MountConfig {
  return {
    basePath: readBasePath(reader),
    origin: readOrigin(reader),
    adminToken: reader.text('ADMIN_TOKEN') ?? null,
  };
}

function readBasePath(reader: SettingsReader): string {
  const path = reader.text('BASE_PATH') ?? '/';
  if (!/^\/[\w./~-]*$/.test(path)) reader.invalid('BASE_PATH', 'must be a path that begins with /');
  return trimEnd(path, '/');
}

function readOrigin(reader: SettingsReader): Origin {
  const text = reader.text('ORIGIN') ?? '404';
  const hosts = reader.text('ORIGIN_HOSTS') ?? '';
  if (text === '404') return { kind: 'none' };
  if (text === 'pass') return { kind: 'zone', hosts: readHosts(reader, hosts) };
  const url = text.replace(/\/$/, '');
  if (/^https?:/.test(url) && URL.canParse(url) && new URL(url).origin === url) return { kind: 'url', url };
  reader.invalid('ORIGIN', 'must be 404, pass, or an origin such as https://www.example.com, without a path');
  return { kind: 'none' };
}

/**
 * The hosts must be listed. At Cloudflare's edge a zone's routes decide which hosts arrive, but other runtimes accept any `Host`, and
 * a request does not show where it runs: wrangler dev adds `request.cf` and the edge's headers, or takes them from the client.
 */
function readHosts(reader: SettingsReader, text: string): readonly string[] {
  const entries = text.toLowerCase().split(',');
  const hosts = entries.map((host) => host.trim()).filter((host) => host !== '');
  if (hosts.length === 0 || !hosts.every((host) => HOST.test(host)))
    reader.invalid(
      'ORIGIN_HOSTS',
      'must list the hosts that are forwarded to their own origin, separated by commas: example.com, *.example.com',
    );
  return hosts;
}
