/** Who sent a request and for what: what unmodified clients say, the order of the sources, bounds, and what is stored of users. */
import { describe, expect, test } from 'vitest';
import { createAttribution } from '../../src/attribution/attribution.ts';
import type { AttributionSettings } from '../../src/attribution/settings.ts';
import { type CallerFacts, NO_CALLER_FACTS } from '../../src/auth/caller.ts';
import type { JsonObject } from '../../src/shared/json.ts';

Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

type Sent = Readonly<Record<string, string>>;
type Options = Partial<Pick<AttributionSettings, 'users' | 'userHashKey' | 'tags'>>;

const PLAIN = { users: 'plain', userHashKey: null, ownerKey: null, tags: [] } as const;
const HASH = { users: 'hash', userHashKey: 'a secret of users' } as const;

function attribute(
  headers: Sent,
  body: JsonObject = {},
  options: Options = {},
  facts: Partial<CallerFacts> = {},
) {
  const caller = {
    keyId: 'k',
    models: null,
    key: null,
    credential: null,
    facts: { ...NO_CALLER_FACTS, ...facts },
  };
  const { attribute } = createAttribution({ ...PLAIN, ...options });
  return attribute({ headers: new Headers(headers), body, caller });
}

async function factsOf(...given: Parameters<typeof attribute>) {
  const result = await attribute(...given);
  if (result.kind === 'error') throw new Error(result.error.message);
  return result.value.attribution;
}

const userOf = async (...given: Parameters<typeof attribute>) => (await factsOf(...given)).user;

// Recorded from the programs on 2026-11-22, with the ids replaced.
const SESSION = 'd5954b13-5cdf-48d4-863a-d52907ae1161';
const DEVICE = 'd30ecf25d9659e0d5c5659d885d3d22e8cc30fac73dfed38e4172760f114e394';
const ACCOUNT = '0f6b8a52-6a43-4f0f-9d5e-1d2c3b4a5968';
const CLAUDE_CODE = {
  'user-agent': 'claude-cli/2.1.330 (external, sdk-cli)',
  'x-claude-code-session-id': SESSION,
  'x-app': 'cli',
  'anthropic-version': '2023-06-01',
};
const CODEX = {
  'user-agent': 'codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.169.0)',
  originator: 'codex_exec',
  'x-client-request-id': '01a204ee-0535-7dd0-95f9-59912f59fd44',
  'session-id': '01a204ee-0535-7dd0-95f9-59912f59fd44',
  'thread-id': '01a204ee-0535-7dd0-95f9-59912f59fd44',
};
const OPENCODE = {
  'user-agent': 'opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14',
  'x-session-affinity': 'ses_dfb11c1feffeu3e4jDBYyq2TDy',
  'x-session-id': 'ses_dfb11c1feffeu3e4jDBYyq2TDy',
};
const claudeIds = (account_uuid: string) =>
  JSON.stringify({ device_id: DEVICE, account_uuid, session_id: SESSION });

describe('Y1 what unmodified clients send', () => {
  test('Claude Code: its session, and its account or else its device as the user', async () => {
    const facts = { session: SESSION, app: 'claude-cli', tags: {} };
    const body = (user_id: string) => ({ metadata: { user_id } });
    expect(await factsOf(CLAUDE_CODE, body(claudeIds('')))).toEqual({ ...facts, user: DEVICE });
    expect(await factsOf(CLAUDE_CODE, body(claudeIds(ACCOUNT)))).toEqual({ ...facts, user: ACCOUNT });
    // Without the header, the body names the session, in either form.
    const { 'x-claude-code-session-id': _, ...older } = CLAUDE_CODE;
    expect(await factsOf(older, body(claudeIds(ACCOUNT)))).toEqual({ ...facts, user: ACCOUNT });
    const text = (account: string) => body(`user_${DEVICE}_account_${account}_session_${SESSION}`);
    expect(await factsOf(older, text(ACCOUNT))).toEqual({ ...facts, user: ACCOUNT });
    expect(await factsOf(older, text(''))).toEqual({ ...facts, user: DEVICE });
  });

  test('Codex: its session and originator', async () => {
    expect(await factsOf(CODEX, { prompt_cache_key: CODEX['session-id'] })).toEqual({
      user: null,
      session: CODEX['session-id'],
      app: 'codex_exec',
      tags: {},
    });
  });

  test('opencode: its session and the product of its user agent', async () => {
    expect(await factsOf(OPENCODE)).toEqual({
      user: null,
      session: OPENCODE['x-session-id'],
      app: 'opencode',
      tags: {},
    });
  });

  test('a request without any fact: nulls and no tags', async () => {
    expect(await factsOf({}, { model: 'm', messages: [] })).toEqual({
      user: null,
      session: null,
      app: null,
      tags: {},
    });
  });
});

describe('Y1 the order of the sources', () => {
  test('user: each source counts where the ones before it are absent', async () => {
    const sources: readonly [Sent, JsonObject][] = [
      [{ 'x-weir-user': 'header' }, {}],
      [{}, { safety_identifier: 'safety' }],
      [{}, { user: 'user' }],
      [{}, { metadata: { user_id: 'metadata' } }],
    ];
    const names = ['header', 'safety', 'user', 'metadata'];
    for (let from = 0; from < sources.length; from++) {
      const left = sources.slice(from);
      const headers: Sent = Object.assign({}, ...left.map(([some]) => some));
      const body: JsonObject = Object.assign({}, ...left.map(([, some]) => some));
      expect(await userOf(headers, body)).toBe(names[from]);
    }
  });

  test('Y2 user: what the key or the host fixes comes before everything in the request', async () => {
    const forged = [{ 'x-weir-user': 'forged' }, { user: 'forged', safety_identifier: 'forged' }] as const;
    expect(await userOf(...forged, {}, { user: 'fixed' })).toBe('fixed');
  });

  test('session and app', async () => {
    const body = { metadata: { session_id: 'in metadata' } };
    expect((await factsOf({ ...CODEX, 'x-weir-session': 'mine' }, body)).session).toBe('mine');
    expect((await factsOf({}, body)).session).toBe('in metadata');
    const app = async (headers: Sent) => (await factsOf(headers)).app;
    const all = {
      'x-weir-app': 'a',
      'x-title': 'b',
      'http-referer': 'https://c.example:8080/x?y',
      originator: 'd',
    };
    expect(await app({ ...CODEX, ...all })).toBe('a');
    const { 'x-weir-app': _a, ...noApp } = all;
    expect(await app({ ...CODEX, ...noApp })).toBe('b');
    const { 'x-title': _t, ...noTitle } = noApp;
    expect(await app({ ...CODEX, ...noTitle })).toBe('c.example:8080');
    expect(await app({ ...CODEX, 'http-referer': 'no url' })).toBe('codex_exec');
    expect(await app({ 'user-agent': 'OpenAI/JS 7.57.0' })).toBe('OpenAI');
    expect(await app({ 'user-agent': '(weird)' })).toBe(null);
  });

  test('tags: of each name the key, then the header, then the metadata that TAGS lists', async () => {
    const headers = { 'x-weir-tags': 'team=forged, env=prod,env=late, BAD=x, =y, z, empty=' };
    const body = { metadata: { env: 'forged', team: 'forged', cost_centre: '7', other: 'unlisted', n: 1 } };
    const tags = ['cost_centre', 'env', 'n', 'constructor'];
    const facts = await factsOf(headers, body, { tags }, { tags: { team: 'search' } });
    expect(facts.tags).toEqual({ team: 'search', env: 'prod', cost_centre: '7' });
  });

  test('tags: 8 at most', async () => {
    const header = Array.from({ length: 100 }, (_, i) => `t${i}=v`).join();
    const names = Object.keys((await factsOf({ 'x-weir-tags': header })).tags);
    expect(names).toEqual(Array.from({ length: 8 }, (_, i) => `t${i}`));
  });
});

describe('Y1 bounds of values', () => {
  test('a value of more than 64 bytes is its beginning and a hash, so that long names stay apart', async () => {
    const long = (end: string) => userOf({}, { user: 'n'.repeat(10_000) + end });
    const [one, other] = [await long('1'), await long('2')];
    expect(one).toMatch(/^n{47}~[0-9a-f]{16}$/);
    expect(one).not.toBe(other);
    expect(await long('1')).toBe(one);
    expect(await userOf({}, { user: String(one) })).toBe(one);
  });

  test.each([
    ['a newline', 'a\nb'],
    ['a control character', 'a\u0000b'],
    ['emoji', '🌊'.repeat(50)],
    ['quotes', '"'.repeat(64)],
    ['a lone surrogate', '\ud800'],
  ])('%s: at most 64 bytes of JSON, without control characters', async (_, name) => {
    const user = String(await userOf({}, { user: name }));
    expect(new TextEncoder().encode(JSON.stringify(user)).length - 2).toBeLessThanOrEqual(64);
    expect(user).toMatch(/^[^\p{Cc}]*~[0-9a-f]{16}$/u);
  });

  test('invalid values are skipped, and the next source counts', async () => {
    for (const invalid of ['', '  ', 7, null, {}, ['a'], '(other)', 'x'.repeat(20_000)])
      expect(await userOf({}, { safety_identifier: invalid, user: 'next' })).toBe('next');
    for (const user_id of ['{}', '{"device_id":7}', '[]'])
      expect((await factsOf({}, { metadata: { user_id } })).session).toBe(null);
    expect(await userOf({}, { metadata: 'text' })).toBe(null);
    expect(await userOf({}, { metadata: { user_id: '{"device_id":""}' } })).toBe(null);
  });
});

describe('Y2 what is stored of users', () => {
  const body = { user: 'ada@example.com' };

  test('USERS=hash: the same hash for one name, another for another name or another secret', async () => {
    const hashed = await userOf({}, body, HASH);
    expect(hashed).toMatch(/^h_[0-9a-f]{24}$/);
    expect(await userOf({}, {}, HASH, { user: 'ada@example.com' })).toBe(hashed);
    expect(await userOf({}, { user: 'bob@example.com' }, HASH)).not.toBe(hashed);
    expect(await userOf({}, body, { ...HASH, userHashKey: 'another secret of users' })).not.toBe(hashed);
  });

  test('USERS=off: no user and no session, but app and tags', async () => {
    const facts = await factsOf({ ...CODEX, 'x-weir-tags': 'a=b' }, body, { users: 'off' });
    expect(facts).toEqual({ user: null, session: null, app: 'codex_exec', tags: { a: 'b' } });
  });

  test('queries take the plain name, and the name as reports show it', async () => {
    const hashed = String(await userOf({}, body, HASH));
    const { names } = createAttribution({ ...PLAIN, ...HASH });
    expect(await names.user('ada@example.com')).toBe(hashed);
    expect(await names.user(hashed)).toBe(hashed);
    expect(await createAttribution({ ...PLAIN, users: 'off' }).names.user('ada@example.com')).toBe(null);
    const plain = createAttribution(PLAIN).names;
    const long = 'n'.repeat(100);
    expect(await plain.user(long)).toBe(await userOf({}, { user: long }));
    expect(await plain.fact(String(await plain.fact(long)))).toBe(await plain.fact(long));
  });

  test.each(['hash', 'off', 'plain'] as const)(
    'W5 USERS=%s while its secret cannot be read: no name is hashed in another way, and none is taken for unknown',
    async (users) => {
      const unread = { unreadable: 'USER_HASH_KEY' };
      const own = { users, userHashKey: unread, hashKey: unread, tags: [] };
      const { names, attribute: read } = createAttribution(own);
      expect(await names.forms('ada')).toEqual(unread);
      expect(await names.user('ada')).toEqual(users === 'hash' ? unread : users === 'off' ? null : 'ada');
      expect(await names.owner('ada')).toEqual(users === 'plain' ? 'ada' : unread);
      const facts = { user: null, tags: {}, requiresUser: false };
      const caller = { keyId: 'k', models: null, key: null, credential: null, facts };
      expect(await names.ofCaller(new Headers({ 'x-weir-user': 'ada' }), caller)).toEqual(
        users === 'hash' ? unread : users === 'off' ? null : 'ada',
      );
      const request = { headers: new Headers(CODEX), body: { user: 'ada' }, caller };
      const read1 = await read(request);
      if (users === 'hash')
        expect(read1).toMatchObject({ error: { status: 503, code: 'secret_unreadable' } });
      else expect(read1).toMatchObject({ kind: 'ok', value: { hashPrompt: null } });
    },
  );

  test('a key that requires a user refuses a request without one, also under USERS=off', async () => {
    const required = { requiresUser: true };
    for (const users of ['plain', 'off'] as const) {
      expect((await attribute({}, body, { users }, required)).kind).toBe('ok');
      expect(await attribute(OPENCODE, {}, { users }, required)).toMatchObject({
        kind: 'error',
        error: { status: 400, code: 'user_required' },
      });
    }
    expect((await attribute({}, {}, {}, { ...required, user: 'fixed' })).kind).toBe('ok');
  });
});

describe('Y7 affinity', () => {
  const affinityOf = async (...given: Parameters<typeof attribute>) => {
    const result = await attribute(...given);
    return result.kind === 'ok' ? result.value.affinity : 'refused';
  };

  test('is the session, else the user whom the request names, never one that the key fixes', async () => {
    expect(await affinityOf(OPENCODE, { user: 'u' })).toBe(OPENCODE['x-session-id']);
    expect(await affinityOf({}, { user: 'u' }, {}, { user: 'fixed' })).toBe('u');
    expect(await affinityOf({}, {}, {}, { user: 'fixed' })).toBe(null);
    expect(await affinityOf(OPENCODE, {}, { users: 'off' })).toBe(OPENCODE['x-session-id']);
  });
});
