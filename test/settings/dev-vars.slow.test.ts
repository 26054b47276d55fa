/** Secrets with line ends in `.dev.vars`, as wrangler itself reads the file: in each form that people write. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { unstable_getVarsForDev } from 'wrangler';
import { textOf } from '../../tools/simulator/json.ts';
import { SERVICE_ACCOUNT } from '../credentials/fake-google.ts';
import { readSettings } from './read-settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'weir-dev-vars-'));
afterAll(() => rmSync(folder, { recursive: true }));
const config = join(folder, 'wrangler.toml');
writeFileSync(config, 'name = "t"\nmain = "index.js"\ncompatibility_date = "2026-10-30"\n');

function readVars(text: string): Record<string, string> {
  writeFileSync(join(folder, '.dev.vars'), text);
  const vars = unstable_getVarsForDev(config, undefined, {}, undefined, true);
  return Object.fromEntries(
    Object.entries(vars).map(([name, binding]) => [
      name,
      textOf('value' in binding ? `${binding.value}` : ''),
    ]),
  );
}

function providersOf(vars: Record<string, string>): readonly string[] {
  const read = readSettings(vars);
  if (read.kind === 'invalid') throw new Error(JSON.stringify(read.problems));
  return [...read.settings.providers.keys()];
}

const json = JSON.stringify(SERVICE_ACCOUNT);

describe('the key of a service account in .dev.vars', () => {
  test.each([
    ['one line in single quotes', `'${json}'`],
    ['one line without quotes', json],
    ['several lines in single quotes', `'${JSON.stringify(SERVICE_ACCOUNT, null, 2)}'`],
    ['one line in double quotes', JSON.stringify(json)],
  ])('%s', (_, written) => {
    const vars = readVars(`VERTEX_LOCATION=eu\nGOOGLE_SERVICE_ACCOUNT=${written}\n`);
    expect(providersOf(vars)).toContain('vertex');
  });
});

describe('a certificate in .dev.vars', () => {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const pem = `${privateKey}-----BEGIN CERTIFICATE-----\n${btoa('a certificate')}\n-----END CERTIFICATE-----\n`;

  test.each([
    ['several lines in double quotes', `"${pem}"`],
    ['several lines in single quotes', `'${pem}'`],
    ['one line in double quotes', JSON.stringify(pem)],
    ['one line in single quotes', `'${pem.replaceAll('\n', '\\n')}'`],
  ])('%s', (_, written) => {
    const ids =
      'AZURE_TENANT_ID=contoso.example\nAZURE_CLIENT_ID=11111111-1111-1111-1111-111111111111\nAZURE_RESOURCE=acme\n';
    expect(providersOf(readVars(`${ids}AZURE_CLIENT_CERTIFICATE=${written}\n`))).toContain('azure');
  });
});
