/**
 * Tokens of Cloudflare Access, with a team's keys over HTTP: which are accepted, who is an admin, and what happens
 * while the keys cannot be read.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createVerifyAccess } from '../../src/attribution/access.ts';
import type { AttributionSettings } from '../../src/attribution/settings.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { ACCESS_HEADER, AccessTeam, AUDIENCE, makeSigningKey } from './access-team.ts';

Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

let team: AccessTeam;
let clock: number;
let logged: Readonly<Record<string, unknown>>[];
/** Timers that did not fire: the limit of a read. */
let timers: { readonly ms: number; readonly onFire: () => void }[];
let verifier: (options?: Options) => (token: string) => Promise<string | number>;

beforeAll(async () => {
  team = await AccessTeam.start();
});
afterAll(() => team[Symbol.asyncDispose]());

type Options = Partial<Pick<AttributionSettings, 'users' | 'userHashKey'>> & {
  readonly admins?: readonly string[];
};

function verifyWith({ admins = [], ...options }: Options = {}) {
  const access = { issuer: team.url, audience: AUDIENCE, admins, groupsClaim: null };
  const settings = { users: 'plain', userHashKey: null, access, ...options } as const;
  const verify = createVerifyAccess(settings, {
    fetch: (url, init) => fetch(url, init),
    now: () => clock,
    // Waits for another request's read are real, and short; the limit of a read fires when the test says so.
    startTimer: (ms, onFire) => {
      if (ms < 1000) {
        const timer = setTimeout(onFire, 1);
        return () => clearTimeout(timer);
      }
      const timer = { ms, onFire };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    log: (entry) => logged.push(entry),
  });
  if (verify === null) throw new Error('The settings are incomplete');
  return async (token: string) => verify(new Headers({ [ACCESS_HEADER]: token }), 'header');
}

beforeEach(() => {
  clock = Date.now();
  logged = [];
  timers = [];
  team.state = 'up';
  team.reads = 0;
  verifier = (options) => {
    const verify = verifyWith(options);
    return async (token) => {
      const result = await verify(token);
      return result.kind === 'ok' ? (result.value?.name ?? '') : result.error.status;
    };
  };
});

const SECONDS = Math.floor(Date.now() / 1000);

describe('Y3 a token of Cloudflare Access', () => {
  test('names its user, or the service, in lower case', async () => {
    const verify = verifier();
    expect(await verify(team.token())).toBe('ada@example.com');
    expect(await verify(team.token({ email: 'Ada@EXAMPLE.com' }))).toBe('ada@example.com');
    expect(await verify(team.token({ aud: AUDIENCE }))).toBe('ada@example.com');
    expect(await verify(team.token(team.service('CI.access')))).toBe('ci.access');
    expect(team.reads).toBe(1);
  });

  test('is a 401 with wrong claims, unsigned, signed by another key or with another algorithm, or changed', async () => {
    const verify = verifier();
    for (const [what, token] of team.forgeries()) expect([what, await verify(token)]).toEqual([what, 401]);
    expect(await verify(team.token())).toBe('ada@example.com');
  });

  test('that another key of a rotation signed is accepted after one more read, and made-up key ids cause no flood', async () => {
    const verify = verifier();
    const [old] = team.keys;
    expect(await verify(team.token())).toBe('ada@example.com');
    const next = makeSigningKey('next');
    if (old !== undefined) team.keys = [next, old];
    clock += 61_000;
    // Of several requests at once, one reads and all are served.
    const both = await Promise.all([1, 2, 3].map(() => verify(team.token({}, {}, next))));
    expect(both).toEqual(Array(3).fill('ada@example.com'));
    expect(await verify(team.token({}, {}, old))).toBe('ada@example.com');
    expect(team.reads).toBe(2);
    clock += 61_000;
    const made = Array.from({ length: 50 }, (_, n) => verify(team.token({}, { kid: `made-up-${n}` })));
    expect(new Set(await Promise.all(made))).toEqual(new Set([401]));
    expect(team.reads).toBe(3);
    // Withdrawn from the team's list, a key ends with the next read.
    team.keys = [next];
    clock += 3_600_000;
    expect(await verify(team.token({ exp: SECONDS + 1e6 }, {}, next))).toBe('ada@example.com');
    expect(await verify(team.token({ exp: SECONDS + 1e6 }, {}, old))).toBe(401);
    expect(team.reads).toBe(4);
  });

  test('of the first requests at once causes one read', async () => {
    const verify = verifier();
    const all = await Promise.all(Array.from({ length: 20 }, () => verify(team.token())));
    expect(new Set(all)).toEqual(new Set(['ada@example.com']));
    expect(team.reads).toBe(1);
  });

  test('is a 503 while the keys cannot be read, with one read in five seconds; known keys stay in use', async () => {
    const verify = verifier();
    const token = team.token({ exp: SECONDS + 1e6 });
    team.state = 'down';
    expect([await verify(token), await verify(token)]).toEqual([503, 503]);
    expect(team.reads).toBe(1);
    expect(logged).toEqual([
      { event: 'access_unreachable', reason: expect.stringContaining('/cdn-cgi/access/certs') },
    ]);
    team.state = 'up';
    clock += 5000;
    expect(await verify(token)).toBe('ada@example.com');
    team.state = 'down';
    clock += 2 * 60 * 60 * 1000;
    expect([await verify(token), await verify(token)]).toEqual(['ada@example.com', 'ada@example.com']);
    expect(team.reads).toBe(3);
  });

  test('whose keys hang is a 503 after five seconds, for all that wait', async () => {
    const verify = verifier();
    team.state = 'hang';
    const waiting = [verify(team.token()), verify(team.token())];
    while (team.reads === 0) await new Promise(setImmediate);
    expect(timers.map(({ ms }) => ms)).toEqual([5000]);
    clock += 5000;
    for (const { onFire } of timers) onFire();
    expect(await Promise.all(waiting)).toEqual([503, 503]);
    expect(team.reads).toBe(1);
  });

  test('that waits for a read whose request has ended is a 503 after five seconds, and the next one reads', async () => {
    const verify = verifier();
    team.state = 'hang';
    // The runtime drops the promises of a request that has ended.
    void verify(team.token());
    while (team.reads === 0) await new Promise(setImmediate);
    const waiting = verify(team.token());
    clock += 5000;
    expect(await waiting).toBe(503);
    expect(team.reads).toBe(1);
    team.state = 'up';
    expect(await verify(team.token())).toBe('ada@example.com');
  });

  test('is a 503 if the keys are too many bytes, no JSON, or a redirect', async () => {
    for (const response of [
      new Response('x'.repeat(70_000)),
      new Response('<html>'),
      Response.json({
        keys: [
          { kid: 'a', kty: 'RSA', n: 7, e: 'AQAB' },
          { kid: 'b', kty: 'oct', k: 'AA' },
        ],
      }),
      new Response(null, { status: 302, headers: { location: team.url } }),
    ]) {
      const ports = {
        fetch: async () => response,
        now: () => clock,
        startTimer: () => () => {},
        log: () => {},
      };
      const access = { issuer: team.url, audience: AUDIENCE, admins: [], groupsClaim: null };
      const verify = createVerifyAccess({ users: 'plain', userHashKey: null, access }, ports);
      const result = await verify?.(new Headers(team.headers()), 'header');
      expect(result).toMatchObject({ kind: 'error', error: { code: 'access_unreachable', status: 503 } });
    }
  });
});

describe('Y3 ACCESS_ADMINS', () => {
  async function isAdmin(admins: readonly string[], claims: JsonObject): Promise<boolean> {
    const result = await verifyWith({ admins })(team.token(claims));
    if (result.kind === 'error' || result.value === null) throw new Error('The token is invalid');
    return result.value.isAdmin;
  }

  test.each([
    [['ada@corp.com'], 'ada@corp.com'],
    [['ada@corp.com'], 'ADA@Corp.COM'],
    [['*@corp.com'], 'ada+test@corp.com'],
    [['eve@corp.com', '*@*.corp.com'], 'ada@ops.corp.com'],
    [['*-ops@*'], 'ada-ops@example.com'],
  ])('%j has %s', async (admins, email) => {
    expect(await isAdmin(admins, { email })).toBe(true);
  });

  test.each([
    [[], 'ada@corp.com'],
    [['ada@corp.com'], 'ada+test@corp.com'],
    [['ada@corp.com'], 'ada@corp.com.evil.com'],
    [['ada@corp.com'], 'xada@corp.com'],
    [['ada@corp.com'], 'ada@corp.com '],
    [['ada@corp.com'], 'ada@corp.com\n'],
    [['ada@corp.com'], 'ada@corp\uff0ecom'],
    [['kate@corp.com'], '\u212aate@corp.com'],
    [['*@corp.com'], 'a@evil.com@corp.com'],
    [['*@corp.com'], '"a@evil.com"@corp.com'],
    [['*@corp.com'], '@corp.com'],
    [['*@corp.com'], 'corp.com'],
    [['*@corp.com'], 'a@evilcorp.com'],
    [['*@corp.com'], 'a@corp.com@evil.com'],
    [['*@corp.com'], 'a@ops.corp.com'],
    [['*@*.corp.com'], 'a@corp.com'],
    [['*@*.corp.com'], 'a@evil.com/.corp.com@x.org'],
    [['ci.access'], 'ci.access@evil.com'],
    [['ci.access'], 'ci.access'],
  ])('%j does not have %s', async (admins, email) => {
    expect(await isAdmin(admins, { email })).toBe(false);
  });

  test('a service token is an admin only under its exact name', async () => {
    expect(await isAdmin(['ci.access'], team.service('ci.access'))).toBe(true);
    expect(await isAdmin(['CI.access'.toLowerCase()], team.service('CI.access'))).toBe(true);
    expect(await isAdmin(['*@*', 'other.access'], team.service('ci.access'))).toBe(false);
    // A certificate may have any name, also an address.
    expect(await isAdmin(['ada@corp.com', '*@*'], team.service('ada@corp.com'))).toBe(false);
    expect(await isAdmin(['ci.access'], { email: 'eve@corp.com', common_name: 'ci.access' })).toBe(false);
  });
});

describe('Y2 the id of a caller of Access', () => {
  async function idOf(options: Options, email = 'ada@example.com'): Promise<unknown> {
    const result = await verifyWith(options)(team.token({ email }));
    return result.kind === 'ok' ? result.value?.keyId : undefined;
  }

  test('is the same for each spelling of the address, and has nothing of it; its hash has the key of USER_HASH_KEY under hash and off', async () => {
    const secret = { userHashKey: 'a secret of users' };
    const plain = await idOf({});
    expect(plain).toMatch(/^access_[0-9a-f]{24}$/);
    expect(await idOf({}, 'ADA@example.com')).toBe(plain);
    expect(await idOf({}, 'bob@example.com')).not.toBe(plain);
    const hash = await idOf({ users: 'hash', ...secret });
    expect(hash).not.toBe(plain);
    expect(await idOf({ users: 'off', ...secret })).toBe(hash);
    expect(await idOf({ users: 'hash', userHashKey: 'another secret of users' })).not.toBe(hash);
  });
});
