/** Reads where Weir lives: its base path, and what a request gets that is not Weir's. */
import type { JsonObject } from '../shared/json.ts';
import { SettingsReader } from './reader.ts';

/** Who answers what is not Weir's. */
type Origin =
  /** Nobody: it gets a 404. */
  | { readonly kind: 'none' }
  /** The zone's own origin, by the request's own host, which must be one of these: `example.com`, `*.example.com`. */
  | { readonly kind: 'zone'; readonly hosts: readonly string[] }
  /** This one: scheme, host and port, without a slash at its end. */
  | { readonly kind: 'url'; readonly url: string };

export interface MountConfig {
  /** `""`, or a path that begins with a slash and has none at its end. */
  readonly basePath: string;
  readonly origin: Origin;
  /** Here because nothing that bears it goes to the origin. */
  readonly adminToken: string | null;
}

const HOST = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::\d{1,5})?$/;

/** A deployment's placement, which holds whatever else is wrong with its settings; null where it is invalid itself (W1). */
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
  return path.replace(/\/+$/, '');
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
 * Nothing in a request tells the edge, where a zone's routes decide which hosts arrive, from a runtime that takes any
 * `Host`: wrangler dev invents `request.cf` and the edge's headers, or takes the client's. So the hosts are named.
 */
function readHosts(reader: SettingsReader, text: string): readonly string[] {
  const entries = text.toLowerCase().split(',');
  const hosts = entries.map((host) => host.trim()).filter((host) => host !== '');
  if (hosts.length === 0 || !hosts.every((host) => HOST.test(host)))
    reader.invalid(
      'ORIGIN_HOSTS',
      'must name the hosts whose own origin may be asked, such as example.com, *.example.com, with commas between',
    );
  return hosts;
}
