/**
 * Names of users under USERS=hash and off: requests of every source and route in workerd, and then all that was
 * written, logged and returned.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { AccessTeam } from '../attribution/access-team.ts';
import { chat, jsonOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const GPT = 'openai/gpt-4o-mini';
const CLAUDE = 'anthropic/claude-haiku-4-5';
const SMALL = 'mistral/mistral-small-latest';

/** In the name of each user, and in no other text. */
const MARK = /qx-?zj/i;
/** In the name that a key fixes, which its entry in KV keeps. */
const FIXED = 'Wvyk Fixed';

type Named = { readonly headers?: Readonly<Record<string, string>>; readonly body?: JsonObject };

/** Where a request can have the name of its user. */
const SOURCES: Readonly<Record<string, (name: string, team: AccessTeam) => Named>> = {
  access: (name, team) => ({ headers: team.headers({ email: `${name}@example.com` }) }),
  service: (name, team) => ({ headers: team.headers(team.service(`${name}.access`)) }),
  host: (name) => ({ headers: { 'x-host-user': name } }),
  header: (name) => ({ headers: { 'x-weir-user': name } }),
  long: (name) => ({ headers: { 'x-weir-user': `${name} ${'long '.repeat(30)}${name}` } }),
  odd: (name) => ({ body: { user: `${name}"', =1+1 \u202e\n🌊` } }),
  safety: (name) => ({ body: { safety_identifier: name } }),
  user: (name) => ({ body: { user: name } }),
  metadata: (name) => ({ body: { metadata: { user_id: name } } }),
  account: (name) => ({
    body: { metadata: { user_id: JSON.stringify({ account_uuid: name, device_id: name, session_id: 's' }) } },
  }),
  claude: (name) => ({ body: { metadata: { user_id: `user_${'0'.repeat(64)}_account_${name}_session_s` } } }),
};

const ROUTES: readonly (readonly [path: string, body: JsonObject])[] = [
  ['/v1/chat/completions', chat(GPT)],
  ['/v1/chat/completions', streamedChat(SMALL)],
  ['/v1/chat/completions', streamedChat(`${GPT}:status-500`)],
  ['/v1/chat/completions', chat(`${GPT}:status-403`)],
  ['/v1/chat/completions', chat('nowhere/x')],
  ['/v1/chat/completions', chat(GPT, { max_tokens: 'many' })],
  ['/v1/completions', { model: 'mistral/codestral-latest', prompt: 'Hello', stream: true }],
  ['/v1/messages', chat(CLAUDE, { max_tokens: 9, stream: true })],
  ['/v1/messages', chat(GPT, { max_tokens: 9 })],
  ['/v1/messages/count_tokens', chat(CLAUDE)],
  ['/v1/responses', { model: GPT, input: 'Hello', store: false, stream: true }],
  ['/v1/responses', { model: SMALL, input: 'Hello', store: false }],
  // Kept with RESPONSES=durable.
  ['/v1/responses', { model: SMALL, input: 'Hello' }],
  ['/v1/responses', { model: GPT, input: 'Hello', background: true }],
  ['/v1/embeddings', { model: 'openai/text-embedding-3-small', input: 'Hello' }],
];

const CONFIGURATIONS = [
  ['hash', { USERS: 'hash', USER_HASH_KEY: 'a secret of users' }],
  ['off', { USERS: 'off', USER_HASH_KEY: 'a secret of users' }],
] as const;
const LEDGERS: readonly JsonObject[] = [
  { LEDGER: 'kv' },
  { LEDGER: 'object', RESPONSES: 'durable' },
  { LEDGER: 'object', LEDGER_DOWN: 'yes' },
];

describe.each(CONFIGURATIONS)('Y2 USERS=%s', (users, settings) => {
  let gateway: Gateway;
  let team: AccessTeam;
  let folder: string;
  /** Everything that the gateway returned, except the fields that a provider echoes. */
  const returned: string[] = [];
  let records = 0;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'weir-privacy-'));
    team = await AccessTeam.start();
    gateway = await startGateway({
      entrypoint: 'privacy-worker.ts',
      persist: folder,
      vars: varsOf({ LEDGER: 'kv' }),
    });
  });
  let stopped: Promise<void> | null = null;
  /** The last test stops it before it reads its files. */
  const stop = () => {
    stopped ??= Promise.resolve(gateway[Symbol.asyncDispose]());
    return stopped;
  };
  afterAll(async () => {
    await stop();
    await team[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const varsOf = (ledger: JsonObject): Record<string, string> => ({
    ...settings,
    ...team.settings,
    AUTH: 'access',
    RETRIES: '1',
    TAGS: 'team',
    ...Object.fromEntries(Object.entries(ledger).map(([name, value]) => [name, textOf(value)])),
  });

  async function keep(response: Response): Promise<JsonObject> {
    const text = await response.text();
    returned.push(JSON.stringify([...response.headers]), text);
    return response.headers.get('content-type')?.startsWith('application/json')
      ? (JSON.parse(text) as JsonObject)
      : {};
  }

  async function makeKey(fields: JsonObject): Promise<Readonly<Record<string, string>>> {
    const response = await gateway.post('/admin/keys', { name: 'x', ...fields }, { headers: ADMIN });
    return { authorization: `Bearer ${textOf((await jsonOf(response)).key)}` };
  }

  test.each(LEDGERS)('requests of every source and route with %j', async (ledger) => {
    await gateway.set(varsOf(ledger));
    const [own, limited, fixed] = [
      await makeKey({}),
      await makeKey({ rpm: 10_000, budget: { USD: 100, per: 'day' } }),
      await makeKey({ user: FIXED }),
    ];
    const count = () => gateway.logs().filter((line) => line.includes('"on_record"')).length;
    const before = count();
    for (const [source, nameWith] of Object.entries(SOURCES)) {
      const { headers = {}, body = {} } = nameWith(
        source === 'claude' ? 'qx-zj-claude' : `Qxzj-${source}`,
        team,
      );
      const others =
        source === 'access' || source === 'service' ? [{}] : source === 'header' ? [limited, fixed] : [];
      for (const credential of [own, ...others]) {
        for (const [path, fields] of ROUTES) {
          const sent = { headers: { ...credential, ...headers } };
          const response = await gateway.post(path, { ...fields, ...body }, sent);
          const text = await response.text();
          // A response of Responses has the fields of its request.
          const isEcho = path.startsWith('/v1/responses') && response.ok;
          returned.push(JSON.stringify([...response.headers]), isEcho ? '' : text);
        }
        const paths = ['/v1/usage?group_by=user,session', '/v1/usage/records', '/v1/usage/refusals'];
        if (credential !== fixed) paths.push('/v1/key');
        for (const path of paths)
          await keep(await gateway.fetch(path, { headers: { ...credential, ...headers } }));
      }
    }
    // The last record is that of the last completion.
    await gateway.logged((lines) => lines.filter(({ event }) => event === 'on_record').length > before + 100);
    for (const query of ['group_by=user', 'group_by=app', 'group_by=session', 'group_by=user&format=csv'])
      await keep(await gateway.fetch(`/v1/usage?${query}`, { headers: own }));
    const { data } = await keep(await gateway.fetch('/v1/usage/records?limit=1000', { headers: own }));
    const { total } = await keep(await gateway.fetch('/v1/usage?user=Qxzj-header', { headers: own }));
    if (ledger.LEDGER_DOWN !== undefined) {
      await expect.poll(async () => (await gateway.entries('stranded/')).length).toBeGreaterThan(10);
    } else {
      const stored = objectsOf(data).map(({ user }) => user);
      const isHash = (user: unknown) => /^h_[0-9a-f]{24}$/.test(String(user));
      expect(stored.length).toBeGreaterThan(50);
      expect(stored.filter((user) => (users === 'hash' ? !isHash(user) : user !== null))).toEqual([]);
      expect(Number(objectOf(total).requests) > 0).toBe(users === 'hash');
    }
    records += count() - before;
  });

  test('left no name in responses, headers, reports, logs and hooks', () => {
    expect(records).toBeGreaterThan(300);
    expect(returned.filter((text) => MARK.test(text) || text.includes('Wvyk'))).toEqual([]);
    expect(gateway.logs().filter((line) => MARK.test(line) || line.includes('Wvyk'))).toEqual([]);
  });

  test('left no name in KV and in Durable Objects, in keys, values and metadata, nor any token', async () => {
    const entries = await gateway.entries('');
    expect(entries.some(({ name }) => name.startsWith('usage/'))).toBe(true);
    const isKey = (name: string) => /^key(-change)?\//.test(name);
    expect(entries.filter((entry) => !isKey(entry.name) && /wvyk/i.test(JSON.stringify(entry)))).toEqual([]);
    expect(entries.filter((entry) => MARK.test(JSON.stringify(entry)))).toEqual([]);
    await stop();
    // The runtime's own traces are beside them.
    const files = ['kv', 'do'].flatMap((kind) =>
      readdirSync(join(folder, kind), { recursive: true, withFileTypes: true }).filter((file) =>
        file.isFile(),
      ),
    );
    const found = files.flatMap(({ parentPath, name }) => {
      const path = join(parentPath, name);
      const text = path + readFileSync(path, 'latin1');
      const at = text.search(/qx-?zj|eyJhbG/i);
      return at < 0 ? [] : [[path, text.slice(Math.max(0, at - 100), at + 100)]];
    });
    expect(files.length).toBeGreaterThan(10);
    expect(found).toEqual([]);
  });
});
