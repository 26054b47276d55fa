/** What is not Weir's goes to the zone's own origin (`ORIGIN=pass`): never twice, and never with a key of Weir's. */
import { callerToken, isAdmin } from '../auth/caller.ts';
import { TOKEN_PREFIX } from '../auth/keys.ts';
import { apiError } from '../canonical/error.ts';
import type { Settings } from '../settings/settings.ts';
import { isOwnPath, noSuchRoute } from './paths.ts';
import type { Ports } from './ports.ts';
import { errorResponse } from './respond.ts';

/** On every request that is passed on: one that comes back was passed to the Worker itself, and would be without end. */
const PASSED_HEADER = 'x-weir-origin-pass';

/** An answer, and whether it is the origin's own, which is not Weir's to change. */
export interface Served {
  readonly response: Response;
  readonly isOrigins: boolean;
}

/** The origin's own answer, which is not Weir's to change; or Weir's, where the request may not go there. */
export async function askOrigin(request: Request, settings: Settings, ports: Ports): Promise<Served> {
  if (request.headers.has(PASSED_HEADER)) {
    const message = 'ORIGIN=pass leads back to this Worker: its route has no origin of its own behind it';
    return { response: errorResponse(apiError('origin_loop', message)), isOrigins: false };
  }
  if (isOwnPath(request, settings.basePath) || (await bearsOwnKey(request, settings))) {
    return { response: noSuchRoute(request), isOrigins: false };
  }
  try {
    const passed = new Request(request);
    passed.headers.set(PASSED_HEADER, '1');
    return { response: await ports.fetch(passed), isOrigins: true };
  } catch (error) {
    ports.log({ event: 'origin_unreachable', reason: String(error) });
    const response = errorResponse(apiError('upstream_unreachable', 'The origin could not be reached'));
    return { response, isOrigins: false };
  }
}

async function bearsOwnKey({ headers }: Request, { adminToken }: Settings): Promise<boolean> {
  return (callerToken(headers)?.startsWith(TOKEN_PREFIX) ?? false) || isAdmin(adminToken, headers);
}
