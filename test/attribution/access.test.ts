/** Tokens of Cloudflare Access: which are accepted, and what happens while the team's keys cannot be read. */
import { beforeAll, describe, expect, test } from 'vitest';
import { AccessTokens } from '../../src/attribution/access.ts';

const ISSUER = 'https://team.cloudflareaccess.com';
const NOW = Date.UTC(2026, 10, 22);
const SECONDS = NOW / 1000;
const RSA = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  modulusLength: 2048,
  publicExponent: new Uint8Array([1, 0, 1]),
};

let own: CryptoKeyPair;
let foreign: CryptoKeyPair;

beforeAll(async () => {
  [own, foreign] = await Promise.all([
    crypto.subtle.generateKey(RSA, true, ['sign', 'verify']) as Promise<CryptoKeyPair>,
    crypto.subtle.generateKey(RSA, true, ['sign', 'verify']) as Promise<CryptoKeyPair>,
  ]);
});

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

async function tokenOf(claims: object = {}, head: object = {}, pair = own): Promise<string> {
  const times = { iat: SECONDS - 10, nbf: SECONDS - 10, exp: SECONDS + 3600 };
  const payload = { iss: ISSUER, aud: ['app'], email: 'ada@example.com', ...times, ...claims };
  const signed = `${part({ alg: 'RS256', kid: 'one', typ: 'JWT', ...head })}.${part(payload)}`;
  const signature = await crypto.subtle.sign(RSA.name, pair.privateKey, Buffer.from(signed));
  return `${signed}.${Buffer.from(signature).toString('base64url')}`;
}

class Team {
  now = NOW;
  reads = 0;
  isDown = false;
  readonly tokens = new AccessTokens(
    { issuer: ISSUER, audience: 'app' },
    {
      now: () => this.now,
      startTimer: () => () => {},
      fetch: async (url) => {
        this.reads++;
        if (this.isDown) throw new Error('connect ECONNREFUSED');
        expect(url).toBe(`${ISSUER}/cdn-cgi/access/certs`);
        const jwk = await crypto.subtle.exportKey('jwk', own.publicKey);
        return Response.json({ keys: [{ ...jwk, kid: 'one' }] });
      },
    },
  );

  async verify(token: string): Promise<string | number> {
    const result = await this.tokens.verify(token);
    return result.kind === 'ok' ? result.value : result.error.status;
  }
}

describe('Y3 a token of Cloudflare Access', () => {
  test('names its user, or the service', async () => {
    const team = new Team();
    expect(await team.verify(await tokenOf())).toBe('ada@example.com');
    const service = { email: undefined, sub: '', common_name: 'ci.access' };
    expect(await team.verify(await tokenOf(service))).toBe('ci.access');
    expect(team.reads).toBe(1);
  });

  test('is a 401 for another audience or issuer, expired, not yet valid, or without a name', async () => {
    const wrong = [
      { aud: ['other'] },
      { aud: 'other' },
      { aud: undefined },
      { iss: 'https://other.cloudflareaccess.com' },
      { exp: SECONDS - 60 },
      { exp: undefined },
      { nbf: SECONDS + 60 },
      { email: '' },
    ];
    const team = new Team();
    for (const claims of wrong) expect(await team.verify(await tokenOf(claims))).toBe(401);
  });

  test('is a 401 unsigned, signed by another key or with another algorithm, or changed', async () => {
    const team = new Team();
    const good = await tokenOf();
    const [head = '', payload = '', signature = ''] = good.split('.');
    const forged = part({ iss: ISSUER, aud: ['app'], email: 'eve@example.com', exp: SECONDS + 3600 });
    for (const token of [
      `${part({ alg: 'none', kid: 'one' })}.${payload}.`,
      `${part({ alg: 'HS256', kid: 'one' })}.${payload}.${signature}`,
      `${head}.${forged}.${signature}`,
      `${head}.${payload}.`,
      `${good}.x`,
      await tokenOf({}, {}, foreign),
      await tokenOf({}, { kid: 'unknown' }),
      '',
      'x',
      'a'.repeat(100_000),
    ])
      expect(await team.verify(token)).toBe(401);
  });

  test('is a 503 while the keys cannot be read; known keys go on', async () => {
    const team = new Team();
    team.isDown = true;
    const token = await tokenOf({ exp: SECONDS + 1e6 });
    expect(await team.verify(token)).toBe(503);
    team.isDown = false;
    expect(await team.verify(token)).toBe('ada@example.com');
    team.isDown = true;
    team.now += 2 * 60 * 60 * 1000;
    expect(await team.verify(token)).toBe('ada@example.com');
  });

  test('with a made-up key id reads the keys once a minute', async () => {
    const team = new Team();
    for (let i = 0; i < 20; i++) await team.verify(await tokenOf({}, { kid: `k${i}` }));
    expect(team.reads).toBe(1);
  });
});
