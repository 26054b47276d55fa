/** The documents name the hosts that make credentials (W11): where data goes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { googleTokens, readServiceAccount } from '../../src/credentials/google.ts';
import { readSettings } from '../settings/read-settings.ts';
import { SERVICE_ACCOUNT } from './fake-google.ts';

const privacy = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'privacy.md'), 'utf8');

test('W11 docs/privacy.md names the hosts of token services, as the code has them without a setting', () => {
  const { token_uri: _, ...key } = SERVICE_ACCOUNT;
  const account = readServiceAccount(JSON.stringify(key), 'GOOGLE_SERVICE_ACCOUNT');
  const google = account === null ? '' : new URL(googleTokens(account).url).host;
  const ids = { AZURE_TENANT_ID: 'contoso.example', AZURE_CLIENT_ID: 'id', AZURE_RESOURCE: 'acme' };
  const read = readSettings({ ...ids, AZURE_CLIENT_SECRET: 's' });
  const auth = read.kind === 'valid' ? read.settings.providers.get('azure')?.auth : undefined;
  const entra = auth?.kind === 'entra' ? new URL(auth.client.authority).host : '';
  expect([google, entra]).toEqual(['oauth2.googleapis.com', 'login.microsoftonline.com']);
  for (const host of [google, entra]) expect(privacy).toContain(`\`${host}\``);
  expect(privacy).toContain('`sts.<region>.');
});
