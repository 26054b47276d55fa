/** `GET /dashboard`: the dashboard's page, one document without further files. It contains no data and needs no credential. */
import { DOCUMENT, SCRIPT_HASH, STYLE_HASH } from './page/document.ts';

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

export function handleDashboard(): Response {
  return new Response(DOCUMENT, {
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
