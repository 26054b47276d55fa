/**
 * Credentials of Google: the signed assertion of a service account is exchanged for an access token.
 * https://developers.google.com/identity/protocols/oauth2/service-account#httprest (2026-11-28).
 */
import { isObject, parseJson, readText } from '../shared/json.ts';
import { readPem, signJwt } from './jwt.ts';
import type { TokenSource } from './tokens.ts';

/** How requests for Google are authorized. */
export interface GoogleAuth {
  readonly kind: 'google';
  readonly account: ServiceAccount;
}

/** A service account's key, as its JSON file has it. */
export interface ServiceAccount {
  readonly email: string;
  readonly keyId: string;
  readonly privateKey: string;
  readonly tokenUri: string;
  readonly projectId: string | null;
  /** The setting with the key. */
  readonly setting: string;
}

const TOKEN_URI = 'https://oauth2.googleapis.com/token';
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const LIFE_SECONDS = 3600;

/** The account in the JSON of a key; null: it is none. */
export function readServiceAccount(json: string, setting: string): ServiceAccount | null {
  const key =
    parseJson(json) ??
    parseJson(withEscapedLineEnds(json)) ??
    // In double quotes a file of variables keeps the backslashes before quotation marks and line ends.
    parseJson(withEscapedLineEnds(json.replace(/\\(["\n])/g, '$1')));
  if (!isObject(key)) return null;
  const email = readText(key.client_email);
  const privateKey = readText(key.private_key);
  const tokenUri = readText(key.token_uri) ?? TOKEN_URI;
  if (email === undefined || privateKey === undefined || !/^https?:\/\//.test(tokenUri)) return null;
  if (!URL.canParse(tokenUri) || readPem(privateKey, 'PRIVATE KEY') === null) return null;
  const [keyId = '', projectId = null] = [readText(key.private_key_id), readText(key.project_id)];
  return { email, keyId, privateKey, tokenUri, projectId, setting };
}

/** A file of variables may have replaced the escapes in the key's text by line ends, which JSON does not allow. */
function withEscapedLineEnds(json: string): string {
  return json.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, (text) => text.replace(/\r?\n/g, '\\n'));
}

/** Google's tokens for a service account. */
export function googleTokens(account: ServiceAccount): TokenSource {
  const { email, keyId, privateKey, tokenUri, setting } = account;
  return {
    name: "Google's token service",
    setting,
    url: tokenUri,
    secrets: [privateKey, ...privateKey.split(/\n|\\n/).filter((line) => line.length > MIN_LINE_CHARS)],
    form: async (now) => {
      const issued = Math.floor(now / 1000);
      const claims = {
        ...{ iss: email, scope: SCOPE, aud: tokenUri },
        ...{ iat: issued, exp: issued + LIFE_SECONDS },
      };
      const key = readPem(privateKey, 'PRIVATE KEY');
      if (key === null) throw new Error('No private key');
      const assertion = await signJwt(keyId === '' ? {} : { kid: keyId }, claims, key);
      return { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion };
    },
    hint: (code, description) => {
      if (/\bdisabled\b|\baccount not found\b|\bInvalid grant: account\b/i.test(description))
        return `the account of ${setting} is not found or not active`;
      if (code === 'invalid_scope') return `its scope ${SCOPE} was refused to ${setting}`;
      if (/\baudience\b/i.test(description)) return `check token_uri in ${setting}`;
      if (code === 'invalid_grant' || code === 'invalid_client') return `check ${setting}`;
      return `check ${setting}${/^[\w.-]{1,64}$/.test(code) ? ` (${code})` : ''}`;
    },
  };
}

/** Lines of a private key that are unique. */
const MIN_LINE_CHARS = 32;
