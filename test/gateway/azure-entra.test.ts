/** Tokens of Microsoft Entra ID for Azure: a secret or a certificate, both scopes, and each refusal with its setting. */
import { createHash, createVerify, generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, textOf } from '../../tools/simulator/json.ts';
import { readSettings } from '../settings/read-settings.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';
import { passing, settle } from './upstreams.ts';

const TENANT = '00000000-0000-0000-0000-000000000000';
const CLIENT = '11111111-1111-1111-1111-111111111111';
const V1 = 'https://ai.azure.com/.default';
const DEPLOYMENTS = 'https://cognitiveservices.azure.com/.default';

const ENV = {
  ...{ AUTH: 'open', RETRIES: '0', HEARTBEAT_SECONDS: '0' },
  ...{ AZURE_TENANT_ID: TENANT, AZURE_CLIENT_ID: CLIENT, AZURE_CLIENT_SECRET: 's3cret-of-the-application' },
  AZURE_RESOURCE: 'acme',
};

const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
/** Entra compares its bytes alone. */
const DER = Buffer.from('a certificate');
const CERTIFICATE = `${privateKey}-----BEGIN CERTIFICATE-----\n${DER.toString('base64')}\n-----END CERTIFICATE-----\n`;

/** Entra ID and Azure. */
class FakeEntra {
  exchanges = 0;
  readonly scopes: string[] = [];
  readonly urls: string[] = [];
  readonly headers: Headers[] = [];
  secret = ENV.AZURE_CLIENT_SECRET;
  /** The next answers of the token service. */
  readonly tokenAnswers: (() => Response)[] = [];
  readonly tokenUrls: string[] = [];
  readonly #tokens = new Map<string, string>();

  revoke(): void {
    this.#tokens.clear();
  }

  readonly fetch = async (input: Request | string, init: RequestInit = {}): Promise<Response> => {
    const url = String(input);
    if (new URL(url).hostname.startsWith('login.'))
      return this.#token(url, new URLSearchParams(String(init.body)));
    this.urls.push(url);
    const headers = new Headers(init.headers);
    this.headers.push(headers);
    const scope = this.#tokens.get(headers.get('authorization')?.replace('Bearer ', '') ?? '');
    const isTaken = url.includes('/deployments/') ? scope === DEPLOYMENTS : scope !== undefined;
    if (!isTaken && headers.get('api-key') !== 'key-of-azure')
      return Response.json(
        {
          error: {
            code: '401',
            message:
              'Unauthorized. Access token is missing, invalid, audience is incorrect (https://cognitiveservices.azure.com), or have expired.',
          },
        },
        { status: 401 },
      );
    if (url.endsWith('/anthropic/v1/messages')) {
      const content = [{ type: 'text', text: 'Here.' }];
      const shared = { id: 'm', type: 'message', role: 'assistant', model: 'c', stop_reason: 'end_turn' };
      return Response.json({ ...shared, content, usage: { input_tokens: 5, output_tokens: 3 } });
    }
    const message = { role: 'assistant', content: 'Here.' };
    const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
    return Response.json({ id: 'c', choices: [{ index: 0, message, finish_reason: 'stop' }], usage });
  };

  #token(url: string, form: URLSearchParams): Response {
    this.exchanges++;
    this.tokenUrls.push(url);
    const own = this.tokenAnswers.shift();
    if (own !== undefined) return own();
    const denied = (error: string, error_description: string) =>
      Response.json({ error, error_description }, { status: 400 });
    if (!url.endsWith(`/${TENANT}/oauth2/v2.0/token`))
      return denied(
        'invalid_request',
        "AADSTS90002: Tenant 'x' not found. Check to make sure you have the correct tenant ID.",
      );
    if (form.get('client_id') !== CLIENT)
      return denied(
        'unauthorized_client',
        "AADSTS700016: Application with identifier 'x' was not found in the directory",
      );
    const scope = form.get('scope') ?? '';
    if (![V1, DEPLOYMENTS].includes(scope))
      return denied('invalid_scope', 'AADSTS1002012: The provided value for scope is not valid.');
    if (form.has('client_assertion')) {
      const [header = '', claims = '', signature = ''] = textOf(form.get('client_assertion')).split('.');
      const head = decodeObject(Buffer.from(header, 'base64url').toString()) ?? {};
      const given = decodeObject(Buffer.from(claims, 'base64url').toString()) ?? {};
      const isSigned = createVerify('RSA-SHA256')
        .update(`${header}.${claims}`)
        .verify(publicKey, signature, 'base64url');
      const isKnown = head['x5t#S256'] === createHash('sha256').update(DER).digest('base64url');
      if (!isSigned || !isKnown || given.aud !== url || given.iss !== CLIENT || given.sub !== CLIENT)
        return denied('invalid_client', 'AADSTS700027: Client assertion failed signature validation.');
    } else if (form.get('client_secret') !== this.secret) {
      return denied('invalid_client', 'AADSTS7000215: Invalid client secret provided.');
    }
    this.scopes.push(scope);
    const token = `eyJ0${this.exchanges}.${'t'.repeat(100)}`;
    this.#tokens.set(token, scope);
    return Response.json({ token_type: 'Bearer', expires_in: 3599, access_token: token });
  }
}

function gatewayOf(env: JsonObject = {}, fetch?: FakeEntra['fetch']) {
  const clock = new FakeClock();
  const entra = new FakeEntra();
  const gateway = new LimitedGateway({ ...ENV, ...env }, { fetch: fetch ?? entra.fetch, clock });
  const ask = async (model = 'gpt-4o-mini', provider = 'azure') => {
    const messages = [{ role: 'user', content: 'Hello' }];
    const response = await gateway.post('/v1/chat/completions', 'x', {
      model: `${provider}/${model}`,
      messages,
    });
    const text = await response.text();
    const error = decodeObject(text)?.error as JsonObject | undefined;
    await settle();
    return { status: response.status, code: error?.code, message: textOf(error?.message) };
  };
  const record = () => gateway.logged.findLast(({ event }) => event === 'request') ?? {};
  return { entra, clock, gateway, ask, record };
}

describe('W11 tokens of Entra ID', () => {
  test('a secret: one exchange for all requests, as bearer; a token that was revoked is exchanged anew', async () => {
    const { entra, clock, ask } = gatewayOf();
    const asked = await passing(clock, Promise.all(Array.from({ length: 200 }, () => ask())));
    expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([200]));
    expect([entra.exchanges, entra.scopes]).toEqual([1, [V1]]);
    expect(entra.headers[0]?.get('authorization')).toMatch(/^Bearer eyJ0/);
    expect(entra.headers[0]?.get('api-key')).toBeNull();
    entra.revoke();
    expect(await ask()).toMatchObject({ status: 200 });
    expect(entra.exchanges).toBe(2);
  });

  test.each(['AZURE_CLIENT_CERTIFICATE'])('%s: an assertion that it signs, with x5t#S256', async (name) => {
    for (const pem of [CERTIFICATE, CERTIFICATE.replaceAll('\n', '\\n')]) {
      const { ask } = gatewayOf({ AZURE_CLIENT_SECRET: undefined, [name]: pem });
      expect(await ask()).toMatchObject({ status: 200 });
    }
  });

  test.each([
    [
      'as openssl writes it from a PKCS #12 file',
      (pem: string) => `Bag Attributes\r\n    localKeyID: 01\r\n${pem.replaceAll('\n', '\r\n')}`,
    ],
    [
      'the certificate first, and that of its issuer last',
      (pem: string) => {
        const [key = '', certificate = ''] = pem.split(/(?=-----BEGIN CERTIFICATE)/);
        return `${certificate}${key}-----BEGIN CERTIFICATE-----\n${btoa('the issuer')}\n-----END CERTIFICATE-----\n`;
      },
    ],
  ])('a certificate %s', async (_, written) => {
    const { ask } = gatewayOf({
      AZURE_CLIENT_SECRET: undefined,
      AZURE_CLIENT_CERTIFICATE: written(CERTIFICATE),
    });
    expect(await ask()).toMatchObject({ status: 200 });
  });

  test('a certificate is in no error and no log', async () => {
    const { entra, ask, gateway } = gatewayOf({
      AZURE_CLIENT_SECRET: undefined,
      AZURE_CLIENT_CERTIFICATE: CERTIFICATE,
    });
    expect(await ask()).toMatchObject({ status: 200 });
    const [, line = ''] = CERTIFICATE.split('\n');
    entra.revoke();
    entra.tokenAnswers.push(() =>
      Response.json(
        { error: 'invalid_client', error_description: `AADSTS700027: ${CERTIFICATE}` },
        { status: 401 },
      ),
    );
    const { message } = await ask();
    expect(message).toContain('check AZURE_CLIENT_CERTIFICATE');
    expect(message + JSON.stringify(gateway.logged)).not.toContain(line);
  });

  test('Claude on Foundry gets the token as bearer, and no key', async () => {
    const { entra, ask } = gatewayOf();
    expect(await ask('claude-haiku-4-5')).toMatchObject({ status: 200 });
    expect(entra.urls).toEqual(['https://acme.services.ai.azure.com/anthropic/v1/messages']);
    expect(entra.headers[0]?.get('authorization')).toMatch(/^Bearer eyJ0/);
    expect(entra.headers[0]?.get('x-api-key')).toBeNull();
    expect(entra.scopes).toEqual([V1]);
  });

  test('AZURE_AUTHORITY: the tokens of a sovereign cloud', async () => {
    const { entra, ask } = gatewayOf({ AZURE_AUTHORITY: 'https://login.microsoftonline.us/' });
    expect(await ask()).toMatchObject({ status: 200 });
    expect(entra.tokenUrls).toEqual([`https://login.microsoftonline.us/${TENANT}/oauth2/v2.0/token`]);
  });

  test('an entry with a certificate', async () => {
    const entra = { tenant_id: TENANT, client_id: CLIENT, client_certificate: 'PROD_CERTIFICATE' };
    const PROVIDERS = {
      prod: { base_url: 'https://acme.openai.azure.com/openai/v1', auth: { entra } },
    };
    const { ask } = gatewayOf({ PROD_CERTIFICATE: CERTIFICATE, PROVIDERS });
    expect(await ask('gpt', 'prod')).toMatchObject({ status: 200 });
  });

  test('an entry at the path of a deployment: the scope of Cognitive Services', async () => {
    const entry = {
      base_url: 'https://acme.openai.azure.com/openai/deployments/prod',
      query: { 'api-version': '2024-10-21' },
      auth: { entra: { tenant_id: TENANT, client_id: CLIENT, client_secret: 'PROD_SECRET' } },
    };
    const { entra, ask } = gatewayOf({ PROD_SECRET: ENV.AZURE_CLIENT_SECRET, PROVIDERS: { prod: entry } });
    expect(await ask('gpt', 'prod')).toMatchObject({ status: 200 });
    expect(entra.scopes).toEqual([DEPLOYMENTS]);
  });

  test('AZURE_API_KEY wins, with one log line', async () => {
    const { entra, ask } = gatewayOf({ AZURE_API_KEY: 'key-of-azure' });
    expect(await ask()).toMatchObject({ status: 200 });
    expect(entra.exchanges).toBe(0);
    const read = readSettings({ ...ENV, AZURE_API_KEY: 'k' });
    expect('overridden' in read && read.overridden).toEqual([
      { setting: 'AZURE_CLIENT_SECRET', message: 'is not used, because AZURE_API_KEY is set' },
    ]);
  });

  const refused = (hint: string) => `Microsoft Entra ID refused this deployment's credential (400): ${hint}`;
  test.each([
    ['another tenant', { AZURE_TENANT_ID: 'other.example' }, 'check AZURE_TENANT_ID'],
    ['another application', { AZURE_CLIENT_ID: 'other' }, 'check AZURE_CLIENT_ID'],
    ['a wrong secret', { AZURE_CLIENT_SECRET: 'wrong-secret' }, 'check AZURE_CLIENT_SECRET'],
  ] as const)('%s: the error names the setting', async (_, env, hint) => {
    const { ask, record, gateway } = gatewayOf(env);
    expect(await ask()).toMatchObject({ status: 502, code: 'upstream_credential', message: refused(hint) });
    expect(record()).toMatchObject({ fault: 'deployment' });
    expect(JSON.stringify(gateway.logged)).not.toMatch(/s3cret|wrong-secret|eyJ0/);
  });

  test.each([
    [
      'AADSTS7000222: The provided client secret keys for app are expired.',
      'AZURE_CLIENT_SECRET has expired',
    ],
    [
      'AADSTS500011: The resource principal named https://ai.azure.com was not found in the tenant.',
      `its scope ${V1} was refused to AZURE_CLIENT_ID`,
    ],
    [
      'AADSTS1002012: The provided value for scope is not valid.',
      `its scope ${V1} was refused to AZURE_CLIENT_ID`,
    ],
    ['AADSTS7000112: Application is disabled.', 'the application of AZURE_CLIENT_ID is disabled'],
    [
      'AADSTS700027: The certificate with identifier used to sign the client assertion is not registered.',
      'check AZURE_CLIENT_SECRET',
    ],
    [
      'AADSTS900023: Specified tenant identifier is neither a valid DNS name, nor a valid external domain.',
      'check AZURE_TENANT_ID',
    ],
    ['AADSTS500113: Something new.', 'check AZURE_CLIENT_SECRET'],
  ])('%s', async (error_description, hint) => {
    const { entra, ask } = gatewayOf();
    entra.tokenAnswers.push(() =>
      Response.json({ error: 'invalid_client', error_description }, { status: 400 }),
    );
    expect(await ask()).toMatchObject({ status: 502, code: 'upstream_credential', message: refused(hint) });
  });

  test('an expired assertion: the clock is corrected once, else the error says how far it is off', async () => {
    const { entra, ask } = gatewayOf({
      AZURE_CLIENT_SECRET: undefined,
      AZURE_CLIENT_CERTIFICATE: CERTIFICATE,
    });
    const error_description = 'AADSTS700024: Client assertion is not within its valid time range.';
    const date = new Date(1_800_000_000_000 + 45 * 60_000).toUTCString();
    const expired = () =>
      Response.json({ error: 'invalid_client', error_description }, { status: 401, headers: { date } });
    entra.tokenAnswers.push(expired);
    expect(await ask()).toMatchObject({ status: 200 });
    const other = gatewayOf();
    other.entra.tokenAnswers.push(expired, expired);
    expect((await other.ask()).message).toContain('the clock of this Worker is 45 minutes behind its');
  });

  test('an application without a role at the resource: the refusal names the setting', async () => {
    const { fetch } = new FakeEntra();
    const refusal = {
      error: {
        code: 'PermissionDenied',
        message: 'The principal lacks the required data action to perform this operation.',
      },
    };
    const { ask } = gatewayOf({}, (url, init) =>
      String(url).includes('/openai/')
        ? Promise.resolve(Response.json(refusal, { status: 401 }))
        : fetch(url, init),
    );
    expect(await ask()).toMatchObject({
      code: 'upstream_credential',
      message: expect.stringContaining('AZURE_CLIENT_SECRET'),
    });
  });

  test.each([
    [{ AZURE_TENANT_ID: undefined }, 'AZURE_TENANT_ID', 'must be set, because AZURE_CLIENT_SECRET is'],
    [{ AZURE_CLIENT_ID: undefined }, 'AZURE_CLIENT_ID', 'must be set, because AZURE_CLIENT_SECRET is'],
    [{ AZURE_TENANT_ID: 'a/b' }, 'AZURE_TENANT_ID', 'must be the id or the domain of a tenant'],
    [
      { AZURE_CLIENT_SECRET: undefined, AZURE_CLIENT_CERTIFICATE: 'hunter2' },
      'AZURE_CLIENT_CERTIFICATE',
      'must be the PEM text of a private key (PKCS #8) and of its certificate',
    ],
  ])('%j is misconfigured by its name', (env, setting, message) => {
    const read = readSettings({ ...ENV, ...env });
    expect('problems' in read && read.problems).toEqual([{ setting, message }]);
  });
});
