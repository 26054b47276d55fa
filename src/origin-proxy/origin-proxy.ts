/** The site beside Weir: what is not Weir's goes to the origin as it came, never twice, and never with a key of Weir's (W1). */
import { containsOwnCredential } from '../auth/own-credentials.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { Ports } from '../http/context.ts';
import { leadsBelow, normalizedUrl } from '../http/paths.ts';
import { errorResponse } from '../http/respond.ts';
import type { MountConfig } from '../settings/mount-config.ts';
import { matchesAnyGlob } from '../shared/glob.ts';

/** On every request that is passed on: one that comes back was passed to the Worker itself, and would be without end. */
const PASSED_HEADER = 'x-weir-origin-pass';

/** What is Weir's of a root that it shares with the site, besides its routes. */
const API_ROOTS = ['/v1', '/v1beta'];

export type OriginProxyPorts = Pick<Ports, 'fetch' | 'log'>;

export class OriginProxy {
  readonly #mount: MountConfig;
  readonly #isRoute: (pathname: string) => boolean;
  readonly #ports: OriginProxyPorts;

  /** @param isRoute whether a path is a route of Weir's, whatever the method */
  constructor(mount: MountConfig, isRoute: (pathname: string) => boolean, ports: OriginProxyPorts) {
    this.#mount = mount;
    this.#isRoute = isRoute;
    this.#ports = ports;
  }

  /** The origin's own answer, or the error for which it was not asked; null where the request is Weir's to answer. */
  async pass(
    request: Request,
    context: Pick<ExecutionContext, 'passThroughOnException'>,
  ): Promise<Response | null> {
    if (this.#isWeirs(request)) return null;
    const refusal = this.#refusal(request);
    if (refusal !== null) return errorResponse(refusal);
    const { origin } = this.#mount;
    // If anything breaks before the origin is asked, the runtime asks it: always the one of the request's own host.
    if (origin.kind === 'zone') context.passThroughOnException();
    const { pathname, search } = new URL(request.url);
    const passed = new Request(origin.kind === 'url' ? origin.url + pathname + search : request.url, request);
    passed.headers.set(PASSED_HEADER, '1');
    return this.#ask(passed);
  }

  #isWeirs(request: Request): boolean {
    const { basePath, adminToken } = this.#mount;
    const { pathname } = new URL(normalizedUrl(request) ?? request.url);
    // A mistyped path of the API must not carry a provider's key and a prompt to the site.
    const own = basePath === '' ? API_ROOTS : [basePath];
    const isOwnPath = this.#isRoute(pathname) || own.some((base) => leadsBelow(pathname, base));
    return isOwnPath || containsOwnCredential(request, adminToken);
  }

  #refusal(request: Request): ApiError | null {
    const { origin } = this.#mount;
    if (request.headers.has(PASSED_HEADER)) {
      const message = 'ORIGIN leads back to this Worker: its route has no origin of its own behind it';
      return apiError('origin_loop', message);
    }
    if (origin.kind !== 'zone' || matchesAnyGlob(origin.hosts, new URL(request.url).host)) return null;
    const message = 'ORIGIN=pass asks no origin for this host: ORIGIN_HOSTS must name it';
    return apiError('misconfigured', message, 'ORIGIN_HOSTS');
  }

  async #ask(passed: Request): Promise<Response> {
    try {
      return await this.#ports.fetch(passed, { redirect: 'manual' });
    } catch (error) {
      // Not left to the runtime, which would ask again: the origin may have taken the request.
      this.#ports.log({ event: 'origin_unreachable', reason: String(error) });
      return errorResponse(apiError('upstream_unreachable', 'The origin could not be reached'));
    }
  }
}
