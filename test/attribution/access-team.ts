/** A team of Cloudflare Access on loopback: it signs tokens, and serves its keys over HTTP as `/cdn-cgi/access/certs` does. */
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../../tools/simulator/json.ts';

export const AUDIENCE = '32eafc7626e974616deaf0dc3ce63d7bcbed58a2731e84d06bc3cdf1b53c4228';
export const ACCESS_HEADER = 'cf-access-jwt-assertion';

export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export function makeSigningKey(kid: string): SigningKey {
  return { kid, ...generateKeyPairSync('rsa', { modulusLength: 2048 }) };
}

export function part(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

export class AccessTeam implements AsyncDisposable {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** What the server serves. */
  keys: readonly SigningKey[] = [makeSigningKey('first')];
  /** `hang`: it accepts requests and does not respond. */
  state: 'up' | 'down' | 'hang' = 'up';
  /** How often the keys were requested. */
  reads = 0;
  readonly #close: () => Promise<void>;

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url;
    this.#close = close;
  }

  static async start(): Promise<AccessTeam> {
    const server = createServer((request, response) => {
      team.reads++;
      if (team.state === 'hang') return;
      const isFound = team.state === 'up' && request.url === '/cdn-cgi/access/certs';
      response.writeHead(isFound ? 200 : 503, { 'content-type': 'application/json' });
      const keys = team.keys.map(({ kid, publicKey }) => {
        return { kid, alg: 'RS256', use: 'sig', ...publicKey.export({ format: 'jwk' }) };
      });
      response.end(isFound ? JSON.stringify({ keys, public_cert: {}, public_certs: [] }) : 'down');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const team = new AccessTeam(`http://127.0.0.1:${port}`, async () => {
      server.closeAllConnections();
      server.close();
    });
    return team;
  }

  /** The settings of a deployment behind this team. */
  get settings() {
    return { ACCESS_TEAM_DOMAIN: this.url, ACCESS_AUD: AUDIENCE };
  }

  /** The claims of a user's token, as Cloudflare documents them. */
  claims(more: JsonObject = {}, now = Date.now()): JsonObject {
    const seconds = Math.floor(now / 1000);
    return {
      aud: [AUDIENCE],
      email: 'ada@example.com',
      exp: seconds + 3600,
      iat: seconds - 10,
      nbf: seconds - 10,
      iss: this.url,
      type: 'app',
      identity_nonce: '6ei69kawdKzMIAPF',
      sub: '7335d417-61da-459d-899c-0a01c76a2f94',
      country: 'US',
      ...more,
    };
  }

  /** The claims of a service token. */
  service(common_name = 'e367826f93b8d71185e03fe518aff3b4.access'): JsonObject {
    return { common_name, email: undefined, nbf: undefined, sub: '' };
  }

  /** A token with these claims instead of the usual ones. */
  token(claims: JsonObject = {}, header: JsonObject = {}, key = this.keys[0]): string {
    if (key === undefined) throw new Error('The team has no key');
    const signed = `${part({ alg: 'RS256', kid: key.kid, typ: 'JWT', ...header })}.${part(this.claims(claims))}`;
    return `${signed}.${sign('sha256', Buffer.from(signed), key.privateKey).toString('base64url')}`;
  }

  /** The header with a token, as Access adds it to each request. */
  headers(claims: JsonObject = {}): Readonly<Record<string, string>> {
    return { [ACCESS_HEADER]: this.token(claims) };
  }

  /** Invalid tokens, each with what is wrong. */
  forgeries(): readonly (readonly [what: string, token: string])[] {
    const [key] = this.keys;
    const seconds = Math.floor(Date.now() / 1000);
    const claims: Readonly<Record<string, JsonObject>> = {
      'another audience': { aud: ['other'] },
      'another audience as text': { aud: 'other' },
      'no audience': { aud: undefined },
      'another issuer': { iss: 'https://other.cloudflareaccess.com' },
      'no issuer': { iss: undefined },
      'a time that is over': { exp: seconds - 60 },
      'no end': { exp: undefined },
      'an end that is text': { exp: String(seconds + 3600) },
      'a later start': { nbf: seconds + 3600 },
      'a start that is text': { nbf: 'now' },
      'the type of a token of the whole team': { type: 'org' },
      'no name': { email: undefined },
      'an empty name': { email: '', common_name: '' },
      'a blank name': { email: '  ' },
      'a name that is no text': { email: ['ada@example.com'] },
    };
    const good = this.token();
    const [head = '', payload = '', signature = ''] = good.split('.');
    const forged = part(this.claims({ email: 'eve@example.com' }));
    const withPublicKey = (secret: string | Buffer) => {
      const signed = `${part({ alg: 'HS256', kid: key?.kid })}.${forged}`;
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
    };
    const spki = key?.publicKey.export({ format: 'pem', type: 'spki' }) ?? '';
    const changed = {
      'no algorithm': `${part({ alg: 'none', kid: key?.kid })}.${forged}.`,
      'no algorithm and no signature': `${part({ alg: 'none', kid: key?.kid })}.${forged}`,
      'no algorithm, with a signature': `${part({ alg: 'None', kid: key?.kid })}.${forged}.${signature}`,
      'signed with the public key as a secret': withPublicKey(spki),
      'signed with the public key as a JWK': withPublicKey(
        JSON.stringify(key?.publicKey.export({ format: 'jwk' })),
      ),
      'other claims': `${head}.${forged}.${signature}`,
      'no signature': `${head}.${payload}.`,
      'a shorter signature': `${head}.${payload}.${signature.slice(0, -4)}`,
      'a fourth part': `${good}.x`,
      'two tokens': `${good}, ${good}`,
      'a comma': `${good},`,
      'another key of the same id': this.token({}, {}, { ...makeSigningKey('first') }),
      'a key id that is a number': this.token({}, { kid: 7 }),
      'a key id of the prototype': this.token({}, { kid: '__proto__' }),
      'one part': part({ alg: 'RS256' }),
      'a letter': 'x',
      "no parts' texts": '..',
      'many letters': 'a'.repeat(100_000),
      'many parts': `${'a.'.repeat(50_000)}`,
    };
    return [
      ...Object.entries(claims).map(([what, own]) => [what, this.token(own)] as const),
      ...Object.entries(changed),
    ];
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#close();
  }
}
