/** `GET /dashboard`: the dashboard's page, one document without further files. It contains no data and needs no credential. */
import type { HttpRoute } from '../routes.ts';
import { DOCS_STYLE_HASH, SCRIPT_HASH, STYLE_HASH } from './built/hashes.ts';

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

const DOCS_POLICY = `default-src 'none'; style-src '${DOCS_STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'`;

/** The part of a request's context that is used. */
interface DashboardContext {
  readonly settings: { readonly auth: string };
  readonly accessUser: { readonly isAdmin: boolean; readonly name: string } | null;
}

/** @param readDocument reads the page */
export function dashboardRoutes(readDocument: () => string | Promise<string>): readonly HttpRoute[] {
  const handle = async (_request: Request, context: DashboardContext) =>
    pageResponse(markSignedIn(await readDocument(), context), POLICY);
  return [{ path: '/dashboard', prefixes: [''], methods: { GET: handle }, isHome: true }];
}

/** `GET /dashboard/docs`: the documents of this version on one page, to which the views link. */
export function docsRoutes(readDocs: () => Promise<string>): readonly HttpRoute[] {
  const handle = async () => pageResponse(await readDocs(), DOCS_POLICY);
  return [{ path: '/dashboard/docs', prefixes: [''], methods: { GET: handle }, isListed: false }];
}

function pageResponse(document: string, policy: string): Response {
  return new Response(document, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cross-origin-opener-policy': 'same-origin',
    },
  });
}

/**
 * Marks the document for a user of Cloudflare Access, whose calls need no token, with the user's name. The policy's hashes do not cover
 * the mark.
 */
function markSignedIn(document: string, { settings, accessUser }: DashboardContext): string {
  if (accessUser === null || (!accessUser.isAdmin && settings.auth !== 'access')) return document;
  const role = accessUser.isAdmin ? 'admin' : 'user';
  const mark = `data-signed-in="${role}" data-user="${escapeAttribute(accessUser.name)}"`;
  return document.replace('<html ', () => `<html ${mark} `);
}

function escapeAttribute(text: string): string {
  return text.replace(/[&"<>]/g, (char) => `&#${char.charCodeAt(0)};`);
}
