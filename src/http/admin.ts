/** Handlers of the admin routes: they refuse every request that is not an admin's. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { RequestContext } from './context.ts';
import { type Params, type ParamValues, readQuery } from './query.ts';
import { ADMIN, identifyAdmin, identifyUsageToken } from './request.ts';
import type { Answer } from './respond.ts';

/** Handles a request with the parameters of its query. */
type AdminHandler<P extends Params> = (
  request: Request,
  context: RequestContext,
  id: string,
  query: ParamValues<P>,
) => Promise<Answer>;

type RouteHandler = (
  request: Request,
  context: RequestContext,
  ids: { readonly id?: string | undefined },
) => Promise<Answer>;

/** A handler that refuses every request that is not an admin's, and every parameter that the route does not have. */
export function forAdmin<P extends Params>(handle: AdminHandler<P>, params?: P): RouteHandler {
  return async (request, context, { id = '' }) => {
    const admin = await requireAdmin(request, context);
    if (admin.kind === 'error') return admin.error;
    context.known.keyId = ADMIN;
    context.known.actor = admin.value;
    const query = readQuery(new URL(request.url).searchParams, params, context.arrivedAt);
    return query.kind === 'error' ? query.error : handle(request, context, id, query.value);
  };
}

/** As {@link forAdmin}, also for the lead of a team: the handler must then show and change only what belongs to `known.team`. */
export function forAdminOrLead<P extends Params>(handle: AdminHandler<P>, params?: P): RouteHandler {
  const handleAsAdmin = forAdmin(handle, params);
  return async (request, context, ids) => {
    const found = await identifyUsageToken(request, context);
    if (found.kind === 'error') return found.error;
    const token = found.value;
    if (token?.team === undefined) return handleAsAdmin(request, context, ids);
    context.known.team = token.team;
    context.known.actor = `team token ${token.id}`;
    const query = readQuery(new URL(request.url).searchParams, params, context.arrivedAt);
    return query.kind === 'error' ? query.error : handle(request, context, ids.id ?? '', query.value);
  };
}

/** The name of the admin, or the error to respond with. */
async function requireAdmin(request: Request, context: RequestContext): Promise<Result<string, ApiError>> {
  const { settings, deployment } = context;
  const { hasAccessAdmins } = deployment;
  const { adminToken } = settings;
  if (adminToken === null && !hasAccessAdmins) {
    const message = 'The admin routes are closed: set the secret ADMIN_TOKEN to open them';
    return failure(apiError('admin_closed', message));
  }
  const admin = await identifyAdmin(request, context);
  if (admin.kind === 'error') return admin;
  if (admin.value !== null) return ok(admin.value);
  const orSignIn = hasAccessAdmins ? ', or sign in through Cloudflare Access as one of ACCESS_ADMINS' : '';
  const message = `Send the admin token as "Authorization: Bearer <ADMIN_TOKEN>"${orSignIn}`;
  return failure(apiError('invalid_api_key', message));
}
