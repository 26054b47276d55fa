/** The settings of the feature `origin`: where requests for other paths go. */
import type { SettingsReader } from '../settings/reader.ts';

/** Where a request for another path goes. */
export type Origin =
  /** Nowhere: the response is a 404. */
  | { readonly kind: 'none' }
  /** To the zone's own origin. The request's host must match one of these: `example.com`, `*.example.com`. */
  | { readonly kind: 'zone'; readonly hosts: readonly string[] }
  /** To this origin: scheme, host and port, without a trailing slash. */
  | { readonly kind: 'url'; readonly url: string };

const HOST = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::\d{1,5})?$/;

export function readOrigin(reader: SettingsReader): Origin {
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
