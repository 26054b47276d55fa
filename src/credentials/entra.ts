/**
 * Credentials of Microsoft Entra ID: a client's secret, or the assertion that its certificate signs, is exchanged for
 * an access token. https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow and
 * certificate-credentials (from memory, 2026-11-28).
 */
import { encodeBase64UrlBytes } from '../shared/encoding.ts';
import { readPem, signJwt } from './jwt.ts';
import type { TokenSource } from './tokens.ts';

/** How requests for Azure are authorized. */
export interface EntraAuth {
  readonly kind: 'entra';
  /** Several APIs share it. */
  readonly client: EntraClient;
}

/** An application of a tenant. */
export interface EntraClient {
  readonly tenantId: string;
  readonly clientId: string;
  /** Null: it has a certificate. */
  readonly secret: string | null;
  /** PEM of key and certificate; null: it has a secret. */
  readonly certificate: string | null;
  /** Without a trailing slash: `https://login.microsoftonline.com`. */
  readonly authority: string;
  readonly scope: string;
  readonly settings: EntraSettingNames;
}

/** Where its parts are set, for messages. */
export type EntraSettingNames = Readonly<Record<'tenantId' | 'clientId' | 'credential', string>>;

const LIFE_SECONDS = 600;

/** Entra's tokens for an application. */
export function entraTokens(client: EntraClient): TokenSource {
  const { tenantId, clientId, secret, certificate, authority, scope, settings } = client;
  const url = `${authority}/${tenantId}/oauth2/v2.0/token`;
  const shared = { grant_type: 'client_credentials', client_id: clientId, scope };
  return {
    name: 'Microsoft Entra ID',
    setting: settings.credential,
    url,
    secrets: [secret ?? certificate ?? ''],
    form: async (now) => {
      if (secret !== null) return { ...shared, client_secret: secret };
      const key = readPem(certificate ?? '', 'PRIVATE KEY');
      const der = readPem(certificate ?? '', 'CERTIFICATE');
      if (key === null || der === null) throw new Error('No key and certificate');
      const issued = Math.floor(now / 1000);
      const claims = {
        ...{ iss: clientId, sub: clientId, aud: url, jti: crypto.randomUUID() },
        ...{ iat: issued, nbf: issued, exp: issued + LIFE_SECONDS },
      };
      const thumbprint = new Uint8Array(await crypto.subtle.digest('SHA-256', der));
      return {
        ...shared,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: await signJwt({ 'x5t#S256': encodeBase64UrlBytes(thumbprint) }, claims, key),
      };
    },
    // The codes: https://learn.microsoft.com/entra/identity-platform/reference-error-codes (from memory, 2026-11-28).
    hint: (code, description) => {
      if (/\bAADSTS(?:90002|900021|900023|900382|90013|50059)\b/.test(description))
        return `check ${settings.tenantId}`;
      if (/\bAADSTS(?:700016|90009)\b/.test(description) || code === 'unauthorized_client')
        return `check ${settings.clientId}`;
      if (/\bAADSTS7000222\b/.test(description)) return `${settings.credential} has expired`;
      if (/\bAADSTS(?:500011|1002012|70011)\b/.test(description) || code === 'invalid_scope')
        return `its scope ${scope} was refused to ${settings.clientId}`;
      if (/\bAADSTS7000112\b|\bdisabled\b/i.test(description))
        return `the application of ${settings.clientId} is disabled`;
      return `check ${settings.credential}`;
    },
  };
}
