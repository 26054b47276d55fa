/** `GET /dashboard`: the dashboard's page, one document without further files. It contains no data and needs no credential. */
import type { Route } from '../routes.ts';
import { SCRIPT_HASH, STYLE_HASH } from './built/hashes.ts';

/** Allows only the document's own script and style, and calls to this deployment. `require-trusted-types-for` blocks text as code. */
const POLICY = [
  "default-src 'none'",
  `script-src '${SCRIPT_HASH}'`,
  `style-src '${STYLE_HASH}'`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** The part of a request's context that is used. */
interface DashboardContext {
  readonly settings: { readonly auth: string };
  readonly accessUser: { readonly isAdmin: boolean } | null;
}

/** @param readDocument reads the page */
export function dashboardRoutes(readDocument: () => string | Promise<string>): readonly Route[] {
  const handle = async (_request: Request, context: DashboardContext) =>
    pageResponse(markSignedIn(await readDocument(), context));
  return [{ path: '/dashboard', prefixes: [''], methods: { GET: handle } }];
}

function pageResponse(document: string): Response {
  return new Response(document, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cross-origin-opener-policy': 'same-origin',
    },
  });
}

/** Marks the document for a user of Cloudflare Access, whose calls need no token. The policy's hashes do not cover the mark. */
function markSignedIn(document: string, { settings, accessUser }: DashboardContext): string {
  if (accessUser === null) return document;
  if (accessUser.isAdmin) return document.replace('<html ', '<html data-signed-in="admin" ');
  return settings.auth === 'access' ? document.replace('<html ', '<html data-signed-in="user" ') : document;
}
