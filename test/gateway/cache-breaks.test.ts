/** Why a prompt was not read from the cache: sessions in the forms of real clients, with one change each, on both ledgers. */
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import {
  compareRecords,
  compareSent,
  createCacheSessions,
  MAX_CACHE_SESSIONS,
} from '../../src/ledger/records/cache-sessions.ts';
import { writeChange } from '../../src/metering/cache-breaks.ts';
import { boundRecord, type UsageRecord } from '../../src/metering/record.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { AGENTS, CachedUpstream, type Client, type Edit } from './cached-upstream.ts';

const ALIASES = {
  pair: ['deepseek/deepseek-flash', 'openai/gpt-5-mini'],
};

/** A step of a session, or something that happens before the next one. */
type Event = readonly [steps: number, edit?: Edit] | ((upstream: CachedUpstream) => unknown);

async function run(client: Client, events: readonly Event[], env: JsonObject = {}): Promise<CachedUpstream> {
  const upstream = new CachedUpstream({ ALIASES, ...env });
  for (const event of events) {
    if (typeof event === 'function') await event(upstream);
    else expect((await upstream.send(client(...event))).status).toBe(200);
  }
  return upstream;
}

/** The causes by both ledgers. */
async function causes(upstream: CachedUpstream): Promise<readonly string[]> {
  const inKv = (await upstream.reported('s')).map((cache) => writeChange(cache as never));
  const inSession = upstream.records.filter(({ session }) => session === 's');
  const inObject = compareInObject(inSession).map(({ cache }) => writeChange(cache as never));
  expect(inObject).toEqual(inKv);
  return inKv;
}

/** The ledger object's tables in memory. */
class ObjectSql {
  readonly #database = new DatabaseSync(':memory:');

  exec(query: string, ...bindings: readonly (string | number)[]) {
    const rows = this.#database.prepare(query).all(...bindings);
    return { [Symbol.iterator]: () => rows[Symbol.iterator](), one: () => rows[0] };
  }
}

function objectSql(): SqlStorage {
  return new ObjectSql() as unknown as SqlStorage;
}

function compareInObject(records: readonly UsageRecord[], sql = objectSql()): readonly UsageRecord[] {
  createCacheSessions(sql);
  return records.flatMap((record) => compareRecords(sql, [record]));
}

const pause = (minutes: number) => (upstream: CachedUpstream) => upstream.clock.advance(minutes * 60_000);

describe.each(AGENTS)('M8, M9 %s', (name, client) => {
  const STEPS: readonly Event[] = [[0], [1], [2]];

  test.each<readonly [string, readonly Event[], readonly string[]]>([
    ['without a change', [[3], [4]], ['none', 'none']],
    ['a tool is added', [[3, { tools: ['read', 'write', 'run', 'search'] }]], ['tools']],
    ['the order of tools changes', [[3, { tools: ['write', 'read', 'run'] }]], ['tools']],
    ['the date in the system text changes', [[3, { system: 'It is Tuesday.' }]], ['system']],
    ['an earlier result changes', [[3, { editedStep: 1 }]], ['history;at=0']],
    ['a still earlier result changes', [[3, { editedStep: 0 }]], ['history;at=1']],
    ['a compaction', [[0, { prompt: 'This session is continued' }]], ['first']],
    ['the thinking changes', [[3, { effort: 'low' }]], ['settings']],
    ['another model', [[3, { model: 'mistral/mistral-small-latest' }]], ['model']],
    ['the client goes back by a step', [[1]], ['none']],
    ['more than eight turns at once', [[12]], ['unknown']],
  ])('%s', async (_, events, expected) => {
    const upstream = await run(client, [...STEPS, ...events], { MISTRAL_API_KEY: 'k' });
    expect(await causes(upstream)).toEqual(['first', 'none', 'none', ...expected]);
  });

  test('a pause of six minutes', async () => {
    const upstream = await run(client, [...STEPS, pause(name === 'opencode' ? 150 : 6), [3]]);
    expect(await causes(upstream)).toEqual(['first', 'none', 'none', 'expired']);
  });

  test('a provider that reads nothing, and one that reports nothing', async () => {
    const empty = (upstream: CachedUpstream) => {
      upstream.isCacheEmpty = true;
    };
    const silent = (upstream: CachedUpstream) => {
      upstream.isSilent = true;
    };
    const upstream = await run(client, [...STEPS, empty, [3], silent, [4]]);
    expect(await causes(upstream)).toEqual(['first', 'none', 'none', 'provider', 'unknown']);
  });

  test('interleaved sub-agents and a request for a title', async () => {
    const sub = { prompt: 'Look at the file', tools: ['read'], system: 'You are a sub-agent.' };
    const other = { ...sub, prompt: 'Look at the other file' };
    const title = { prompt: 'Generate a title', tools: [], system: 'You write titles.' };
    const order: readonly Event[] = [
      ...([[0], [0, title], [1], [0, sub], [0, other], [1, sub], [2], [1, other], [2, sub]] as const),
      ...([[3], [3, sub], [4, sub], [5, sub], [6, sub], [7, sub], [8, sub], [4]] as const),
    ];
    const found = await causes(await run(client, order));
    const first = order.map((event) => typeof event !== 'function' && event[0] === 0);
    expect(found).toEqual(first.map((isFirst) => (isFirst ? 'first' : 'none')));
  });

  test('a fallback in the middle, and the way back', async () => {
    const model = 'pair';
    const breaks = (upstream: CachedUpstream) => upstream.broken.add('deepseek-flash');
    const mends = (upstream: CachedUpstream) => upstream.broken.clear();
    const upstream = await run(client, [
      ...[[0, { model }] as const, [1, { model }] as const],
      ...[breaks, [2, { model }] as const, mends, [3, { model }] as const],
    ]);
    expect(await causes(upstream)).toEqual(['first', 'none', 'model;by=fallback', 'none']);
  });
});

/** Two accounts with the same models, at two addresses. */
const ACCOUNTS = {
  PROVIDERS: { one: { base_url: 'https://one.test/v1' }, two: { base_url: 'https://two.test/v1' } },
  ALIASES: { same: ['one/m', 'two/m'] },
};

describe('M9 another account with the same model', () => {
  const [, , [, client] = expect.fail()] = AGENTS;
  const breaks = (upstream: CachedUpstream) => upstream.broken.add('one.test');
  const mends = (upstream: CachedUpstream) => upstream.broken.clear();

  test('that the client asks for: target, without a reason', async () => {
    const upstream = await run(
      client,
      [
        [0, { model: 'one/m' }],
        [1, { model: 'two/m' }],
      ],
      ACCOUNTS,
    );
    expect(await causes(upstream)).toEqual(['first', 'target']);
  });

  test('after a fallback: target;by=fallback, and the way back has the earlier cache', async () => {
    const model = 'same';
    const events = [[0, { model }], [1, { model }], breaks, [2, { model }], mends, [3, { model }]] as const;
    expect(await causes(await run(client, events, ACCOUNTS))).toEqual([
      ...['first', 'none', 'target;by=fallback', 'none'],
    ]);
  });

  test('because the circuit of the first is open: target;by=circuit', async () => {
    const model = 'same';
    const others = Array.from({ length: 5 }, (_, i): Event => [0, { model, session: `other ${i}` }]);
    const upstream = await run(client, [[0, { model }], breaks, ...others, [1, { model }]], ACCOUNTS);
    expect(upstream.records.at(-1)?.attempts.map(({ error_code }) => error_code)).toEqual([
      'circuit_open',
      null,
    ]);
    expect(await causes(upstream)).toEqual(['first', 'target;by=circuit']);
  });

  test('because an alias has another one, with a weight: target;by=weight', async () => {
    const alias = (target: string) => ({ ...ACCOUNTS, ALIASES: { same: [{ model: target, weight: 1 }] } });
    const before = await run(client, [[0, { model: 'same' }]], alias('one/m'));
    const after = await run(client, [pause(1), [1, { model: 'same' }]], alias('two/m'));
    const compared = compareInObject([...before.records, ...after.records]);
    expect(compared.map(({ cache }) => writeChange(cache as never))).toEqual(['first', 'target;by=weight']);
  });
});

test.each<readonly [string, JsonObject, string]>([
  ['drops the tool choice', { drop: ['tool_choice'] }, 'settings'],
  ['writes the system text as the first message of the user', { roles: { system: 'user' } }, 'system'],
  ['uses another API', { api: 'responses' }, 'target'],
  ['drops a field that is not a part of the prompt', { drop: ['seed'] }, 'none'],
])('M9 a release that %s', async (_, table, expected) => {
  const [, , [, client] = expect.fail()] = AGENTS;
  const release = (rules: JsonObject) => ({ PROVIDERS: { p: { base_url: 'https://p.test/v1', ...rules } } });
  const before = await run(
    client,
    [
      [0, { model: 'p/m' }],
      [1, { model: 'p/m' }],
    ],
    release({}),
  );
  const after = await run(client, [pause(1), [2, { model: 'p/m' }]], release(table));
  const sql = objectSql();
  expect(compareInObject(before.records, sql).map(({ cache }) => cache?.cause)).toEqual(['first', 'none']);
  const [{ prefix = '', provider, model, asked } = expect.fail()] = after.records;
  const sent = { prefix, provider, model, asked, reason: null, at: after.clock.now() };
  expect(compareSent(sql, 's', sent)).toBe(expected);
});

test.each([
  ['documents no time', 'gemini', 'gemini-3.5-flash'],
  ['documents nothing', 'together', 'any-model'],
])(
  'M9 a provider that %s, and reads nothing although nothing changed: unknown',
  async (_, provider, model) => {
    const [, [, client] = expect.fail()] = AGENTS;
    const { records } = await run(client, [[0], [1], [2, { tools: ['read'] }]]);
    const compared = compareInObject(records.map((one) => ({ ...one, provider, model, cached_tokens: 0 })));
    const tools = provider === 'gemini' ? (records[1]?.prompt_tokens ?? 0) : 0;
    expect(compared.map(({ cache }) => [cache?.cause, cache?.lost_tokens])).toEqual([
      ['first', 0],
      ['unknown', 0],
      ['tools', Math.min(tools, records[2]?.prompt_tokens ?? 0)],
    ]);
  },
);

test('M9 lost tokens and their cost at the difference of the two prices', async () => {
  const [, [, codex] = expect.fail()] = AGENTS;
  const PRICES = [
    {
      provider: 'openai',
      models: ['*'],
      since: '1970-01-01',
      currency: 'USD',
      input: 3,
      cached_input: 0.3,
      output: 10,
    },
  ];
  const upstream = await run(codex, [[0], [1], [2, { tools: ['read'] }]], { PRICES });
  const [first, next, changed] = await upstream.reported('s');
  expect(first).toEqual({ cause: 'first', lost_tokens: 0, lost_cost: null });
  expect(next).toMatchObject({ cause: 'none', lost_tokens: 0 });
  const [, earlier, record] = upstream.records;
  const lost = (earlier?.prompt_tokens ?? 0) - (record?.cached_tokens ?? 0);
  expect(lost).toBeGreaterThan(5000);
  expect(changed).toEqual({ cause: 'tools', lost_tokens: lost, lost_cost: Math.round(lost * 2700) / 1e9 });
});

test('M10 a page and a filter of a session have the comparisons of the whole session', async () => {
  const [[, client] = expect.fail()] = AGENTS;
  const upstream = await run(client, [[0], [1], [2, { tools: [] }], [3, { tools: [] }]]);
  expect((await upstream.reported('s', '&limit=2')).map(({ cause }) => cause)).toEqual(['tools', 'none']);
  expect((await upstream.reported('s', '&limit=1&client=messages')).map(({ cause }) => cause)).toEqual([
    'none',
  ]);
});

test.each([
  '/v1/usage?group_by=cache_cause',
  '/v1/usage?cache_cause=tools',
  '/v1/usage/records?cache_cause=tools',
])('M10 with LEDGER=kv, %s is a 400 that names LEDGER=object', async (path) => {
  const response = await new CachedUpstream().gateway.fetch(path, 'admin');
  expect(response.status).toBe(400);
  expect(await response.text()).toContain('LEDGER=object');
});

test.each([
  ['CACHE_REPORT=off', { CACHE_REPORT: 'off' }, {}],
  ['USERS=off', { USERS: 'off' }, {}],
  ['a request without a session', {}, { session: '' }],
  ['a deployment without a secret', { ADMIN_TOKEN: '' }, {}],
])('M7 %s: nothing is hashed', async (_, env, edit) => {
  const [, [, client] = expect.fail()] = AGENTS;
  const { records } = await run(client, [[0, edit]], env);
  expect(records).toHaveLength(1);
  expect(records[0]?.prefix).toBeUndefined();
});

test('M9 another key of the hashes: nothing can be compared', async () => {
  const [[, client] = expect.fail()] = AGENTS;
  const before = await run(client, [[0]], { USER_HASH_KEY: 'one secret of the hashes' });
  const after = await run(client, [pause(1), [1]], { USER_HASH_KEY: 'another secret of the hashes' });
  const compared = compareInObject([...before.records, ...after.records]);
  expect(compared.map(({ cache }) => cache?.cause)).toEqual(['first', 'unknown']);
});

test('M8 a request that is settled twice, and requests that run at once', async () => {
  const [[, client] = expect.fail()] = AGENTS;
  const { records } = await run(client, [[0], [1], [2]]);
  const [a, b, c] = records;
  if (a === undefined || b === undefined || c === undefined) throw new Error('There are three records');
  // The second and the third are sent together: only the first can be read.
  const together = { ...c, time: b.time, ended: b.ended };
  const compared = compareInObject([a, b, together, together]);
  expect(compared.map(({ cache }) => cache?.cause)).toEqual(['first', 'none', 'none', 'none']);
});

test('M7 no text of a prompt is in what is stored', async () => {
  for (const [, client] of AGENTS) {
    const upstream = await run(client, [[0], [1], [2]]);
    const sql = objectSql();
    const compared = compareInObject(upstream.records, sql);
    const rows = [...sql.exec('SELECT * FROM cache_sessions')];
    expect(rows).toHaveLength(1);
    const stored = JSON.stringify([compared, rows, upstream.gateway.logged, await upstream.reported('s')]);
    expect(stored).toContain(compared[0]?.prefix);
    for (const word of ['locks', 'canal', 'river', 'Correct', 'upper gate', 'call_0', 'toolu', 'environment'])
      expect(stored).not.toContain(word);
    expect(compared.every(({ prefix = '' }) => /^[\w-]{44,112}$/.test(prefix))).toBe(true);
  }
});

test('M10 the row of a session with the largest records has at most 16 KiB, and a damaged one begins anew', async () => {
  const [[, client] = expect.fail()] = AGENTS;
  const { records } = await run(
    client,
    Array.from({ length: 10 }, (_, i): Event => [i]),
  );
  const sql = objectSql();
  const name = '\u0001'.repeat(500);
  compareInObject(
    records.map((one) => boundRecord({ ...one, asked: name, model: name })),
    sql,
  );
  const [row] = sql.exec('SELECT requests FROM cache_sessions');
  const text = String(row?.requests);
  expect(JSON.parse(text)).toHaveLength(8);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16 * 1024);
  for (const damaged of ['{', '[1,{"prefix":2}]', 'null']) {
    sql.exec('UPDATE cache_sessions SET requests = ?', damaged);
    expect(compareInObject(records.slice(0, 2), sql).map(({ cache }) => cache?.cause)).toEqual([
      'first',
      'none',
    ]);
  }
});

test('M10 an object keeps 10,000 sessions, and each for 30 days', async () => {
  const [[, client] = expect.fail()] = AGENTS;
  const { records } = await run(client, [[0], [1]]);
  const [first, second] = records;
  if (first === undefined || second === undefined) throw new Error('There are two records');
  const sql = objectSql();
  createCacheSessions(sql);
  const at = (record: UsageRecord, ms: number) => ({ ...record, ended: new Date(ms).toISOString() });
  const start = Date.parse(first.ended);
  for (let i = 0; i <= MAX_CACHE_SESSIONS; i++)
    compareRecords(sql, [at({ ...first, session: `s${i}` }, start + i)]);
  const sessions = () => Number(sql.exec('SELECT COUNT(*) AS sessions FROM cache_sessions').one().sessions);
  expect(sessions()).toBe(MAX_CACHE_SESSIONS);
  const causeOf = (session: string) => compareRecords(sql, [{ ...second, session }])[0]?.cache?.cause;
  expect([causeOf('s0'), causeOf(`s${MAX_CACHE_SESSIONS}`)]).toEqual(['first', 'none']);
  compareRecords(sql, [at({ ...first, session: 'later' }, start + 31 * 24 * 3_600_000)]);
  expect(sessions()).toBeLessThan(MAX_CACHE_SESSIONS);
});
