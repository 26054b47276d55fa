/** Passes requests that are not for Weir to the site's own server, once, unchanged, and never with a credential of Weir's. */
import { containsCredential, containsOwnCredential, decodeAsciiPercent } from '../auth/own-credentials.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isUnreadable, type Secret, secretUnreadable } from '../canonical/secret.ts';
import type { BeforePorts } from '../feature.ts';
import { normalizedUrl } from '../routes.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import type { Origin } from './settings.ts';

/** Marks requests that were passed on. One that arrives with it was passed to this Worker itself, which would loop. */
const PASSED_HEADER = 'x-weir-origin-pass';

/** Paths that belong to Weir where it shares the root path with the site, besides its routes. */
const API_ROOTS = ['/v1', '/v1beta'];

export interface Mount {
  readonly origin: Origin;
  readonly basePath: string;
  /** A request with it is never passed on. While it cannot be read, no request with a credential is. */
  readonly adminToken: Secret;
}

export class OriginProxy {
  readonly #mount: Mount;
  readonly #ports: BeforePorts;

  constructor(mount: Mount, ports: BeforePorts) {
    this.#mount = mount;
    this.#ports = ports;
  }

  /** The origin's response, or an error if the request must not be passed on; null if the request is for Weir. */
  async pass(
    request: Request,
    context: Pick<ExecutionContext, 'passThroughOnException'>,
  ): Promise<Response | ApiError | null> {
    if (this.#isForWeir(request)) return null;
    const refusal = this.#refusal(request);
    if (refusal !== null) return refusal;
    const { origin } = this.#mount;
    // On an exception from here on the runtime calls the origin of the request's own host, which is right for this kind only.
    if (origin.kind === 'zone') context.passThroughOnException();
    const { pathname, search } = new URL(request.url);
    const passed = new Request(origin.kind === 'url' ? origin.url + pathname + search : request.url, request);
    passed.headers.set(PASSED_HEADER, '1');
    return this.#fetch(passed);
  }

  #isForWeir(request: Request): boolean {
    const { basePath, adminToken } = this.#mount;
    const { pathname } = new URL(normalizedUrl(request) ?? request.url);
    // A mistyped path of the API must not send a provider key and a prompt to the site.
    const bases = basePath === '' ? API_ROOTS : [basePath];
    const isOwnPath = this.#ports.hasRoute(pathname) || bases.some((base) => leadsBelow(pathname, base));
    return isOwnPath || containsOwnCredential(request, isUnreadable(adminToken) ? null : adminToken);
  }

  #refusal(request: Request): ApiError | null {
    const { origin, adminToken } = this.#mount;
    if (isUnreadable(adminToken) && containsCredential(request)) return secretUnreadable(adminToken);
    if (request.headers.has(PASSED_HEADER)) {
      const message = 'ORIGIN leads back to this Worker: no other origin is behind its route';
      return apiError('origin_loop', message);
    }
    if (origin.kind !== 'zone' || matchesAnyGlob(origin.hosts, new URL(request.url).host)) return null;
    const message = 'ORIGIN=pass calls no origin for this host: ORIGIN_HOSTS must name it';
    return apiError('misconfigured', message, 'ORIGIN_HOSTS');
  }

  async #fetch(passed: Request): Promise<Response | ApiError> {
    try {
      return await this.#ports.fetch(passed, { redirect: 'manual' });
    } catch (error) {
      // Caught, because the runtime would call the origin a second time, and the origin may have received the request.
      this.#ports.log({ event: 'origin_unreachable', reason: String(error) });
      return apiError('upstream_unreachable', 'The origin could not be reached');
    }
  }
}

/**
 * Whether a path is below `base`, or passes through it, in any way in which a server may read it: percent-encoded, in another
 * case, or with doubled slashes, dots or path parameters.
 */
function leadsBelow(path: string, base: string): boolean {
  const wanted = segmentsOf(base).join('/');
  const segments: string[] = [];
  for (const segment of segmentsOf(path)) {
    if (segment === '..') segments.pop();
    else segments.push(segment);
    if (segments.join('/') === wanted) return true;
  }
  return false;
}

/** More often than any known server decodes a path. */
const MAX_DECODINGS = 4;

function segmentsOf(path: string): string[] {
  let plain = path;
  for (let decoding = 0; decoding < MAX_DECODINGS; decoding++) plain = decodeAsciiPercent(plain);
  const segments = plain.toLowerCase().split(/[\\/]/);
  return segments
    .map((segment) => segment.replace(/[;?#].*/s, '').trim())
    .filter((segment) => segment !== '' && segment !== '.');
}
