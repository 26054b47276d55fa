/** Addresses that no Worker reaches: those of a private network, and of the machine itself. */

/** Top-level names that the public DNS does not have, or keeps for private use (RFC 6761, 6762, 8375, ICANN's `internal`). */
const PRIVATE_NAMES =
  /(?:^|\.)(?:localhost|local|internal|intranet|private|corp|home|lan|test|home\.arpa|svc)$/;
/** RFC 1918, loopback, link-local and carrier-grade NAT. */
const PRIVATE_IPV4 =
  /^(?:0|10|127|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\./;
/** Loopback, unique local and link-local. */
const PRIVATE_IPV6 = /^\[(?:::1?\]|f[cd]|fe[89ab])/;

/** The host of a URL that only its own network reaches; null: a Worker may reach it, or it is no URL. */
export function privateHost(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { hostname } = new URL(url);
  const name = hostname.replace(/\.$/, '');
  const isPrivate =
    (!name.includes('.') && !name.startsWith('[')) ||
    PRIVATE_NAMES.test(name) ||
    PRIVATE_IPV4.test(name) ||
    PRIVATE_IPV6.test(name);
  return isPrivate ? hostname : null;
}

/** What to do about a private host. @param entry the entry of `PROVIDERS` */
export function wayToPrivateHost(host: string, entry: string): string {
  return `no Worker reaches ${host}: name a service binding in "binding" of ${entry}, to a VPC service (Workers VPC) or another Worker, or give the server a public name with a Cloudflare Tunnel and put that into base_url: docs/providers.md#a-server-in-a-network-of-your-own`;
}
