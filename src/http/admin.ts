/** Handlers of the admin routes: they refuse every request that is not an admin's. */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { RequestContext } from './context.ts';
import { ADMIN, identifyAdmin } from './request.ts';
import { errorResponse } from './respond.ts';

type AdminHandler = (request: Request, context: RequestContext, id: string) => Promise<Response>;

/** A handler that refuses every request that is not an admin's. */
export function forAdmin(handle: AdminHandler) {
  return async (
    request: Request,
    context: RequestContext,
    { id = '' }: { readonly id?: string | undefined },
  ): Promise<Response> => {
    const refused = await adminRefusal(request, context);
    if (refused !== null) return errorResponse(refused);
    context.known.keyId = ADMIN;
    return handle(request, context, id);
  };
}

async function adminRefusal(request: Request, context: RequestContext): Promise<ApiError | null> {
  const { settings, hasAccessAdmins } = context;
  const { adminToken } = settings;
  if (adminToken === null && !hasAccessAdmins) {
    return apiError('admin_closed', 'The admin routes are closed: set the secret ADMIN_TOKEN to open them');
  }
  const admin = await identifyAdmin(request, context);
  if (admin.kind === 'error') return admin.error;
  if (admin.value) return null;
  const orSignIn = hasAccessAdmins ? ', or sign in through Cloudflare Access as one of ACCESS_ADMINS' : '';
  return apiError(
    'invalid_api_key',
    `Send the admin token as "Authorization: Bearer <ADMIN_TOKEN>"${orSignIn}`,
  );
}
