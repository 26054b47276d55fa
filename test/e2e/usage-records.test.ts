/** Tests `GET /v1/usage/records`, single records and CSV in both stores, for a key and for the admin (L2, L7). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { chat, errorOf, jsonOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';
const RECORDS = '/v1/usage/records';
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const DAY_MS = 86_400_000;
const day = (fromNow: number) => new Date(Date.now() + fromNow * DAY_MS).toISOString().slice(0, 10);
const AROUND = `from=${day(-1)}&to=${day(2)}`;
/** A record is readable soon after its log line. After this many reads it counts as lost. */
const MAX_READS = 500;

/** Names that are short and have no control characters. */
const PLAIN_NAMES = [
  ...['=HYPERLINK("http://x.example","y")', '+1+1', '-2+3', '@SUM(A1)', '\uff1d1+1'],
  ...[
    '"quoted"',
    "it's",
    'a,b;c|d',
    '\\',
    '🌊 wave',
    'Jürgen',
    'e\u0301',
    '\u202eright to left',
    'two\u2028lines',
  ],
  ...[
    '__proto__',
    'constructor',
    '../../key/x',
    "'; DROP TABLE records",
    '<script>alert(1)</script>',
    '%00%0a',
  ],
  ...['usage/2026-11-22/x', 'a&user=b#c', 'tag:env', '*', '~', 'null'],
];
/** Of these the beginning is kept, and a hash. */
const LONG_NAMES = [
  'line\nbreak',
  'carriage\r\nreturn',
  'nul\u0000',
  '\ud800 lone',
  'n'.repeat(10_000),
  '🌊'.repeat(2500),
];
const NAMES = [...PLAIN_NAMES, ...LONG_NAMES, '(other)'];

/** The text for `fetch` that puts the name's UTF-8 into a header; null where no header can have it. */
function headerBytes(name: string): string | null {
  return /[\0\r\n]/.test(name) || !name.isWellFormed() || name.length > 1000
    ? null
    : Buffer.from(name).toString('latin1');
}

/** The cells of a CSV text (RFC 4180). */
function readCsv(text: string): string[][] {
  const lines: string[][] = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    const last = lines.at(-1);
    const cell = quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"');
    if (last === undefined) lines.push([cell]);
    else last.push(cell);
    if (end === '\r\n') lines.push([]);
  }
  return lines.slice(0, -1);
}

interface Owner {
  readonly id: string;
  readonly headers: { readonly authorization: string };
}

describe.each(['kv', 'object'])('LEDGER=%s', (ledger) => {
  let gateway: Gateway;
  let ann: Owner;
  let bob: Owner;
  /** Request ids, the latest first. */
  const ids: { ann: string[]; bob: string[] } = { ann: [], bob: [] };

  beforeAll(async () => {
    const vars = {
      AUTH: 'keys',
      LEDGER: ledger,
      TAGS: 'env',
      ALIASES: '{"fast":"mistral/mistral-small-latest"}',
    };
    gateway = await startGateway({ vars, entrypoint: 'ledger/calm-ledger-worker.ts' });
    ann = await makeOwner('ann');
    bob = await makeOwner('bob');
    for (const model of [
      'deepseek/deepseek-chat',
      'fast',
      'deepseek/deepseek-chat:cut',
      'fast',
      'openai/o4-mini',
    ])
      ids.ann.unshift(await send(ann, streamedChat(model)));
    for (const model of ['openai/o4-mini', 'openai/o4-mini:status-500'])
      ids.bob.unshift(await send(bob, chat(model)));
    for (const { id } of [ann, bob]) await gateway.fetch(`/fire?name=${id}`);
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  async function makeOwner(name: string): Promise<Owner> {
    const { id, key } = await jsonOf(await gateway.post('/admin/keys', { name }, { headers: ADMIN }));
    return { id: textOf(id), headers: { authorization: `Bearer ${textOf(key)}` } };
  }

  /** Sends a request, and returns its id when its record is readable. */
  async function send(owner: Owner, body: JsonObject): Promise<string> {
    const response = await gateway.post(CHAT, body, { headers: owner.headers });
    await response.text();
    const id = textOf(response.headers.get('x-weir-request-id'));
    await readRecord(id, owner);
    return id;
  }

  async function readRecord(id: string, owner: Owner): Promise<JsonObject> {
    for (let reads = 0; reads < MAX_READS; reads++) {
      const read = await gateway.fetch(`${RECORDS}/${id}`, { headers: owner.headers });
      const record = await jsonOf(read);
      if (read.status === 200) return record;
    }
    throw new Error(`No record of ${id}`);
  }

  async function list(query: string, headers: Record<string, string>): Promise<JsonObject> {
    const response = await gateway.fetch(`${RECORDS}?${AROUND}&${query}`, { headers });
    expect(response.status).toBe(200);
    const { data, ...rest }: JsonObject = await jsonOf(response);
    return { ...rest, ids: objectsOf(data).map(({ request_id }) => textOf(request_id)) };
  }

  test('L1 L2 one record by its id has all fields', async () => {
    const response = await gateway.fetch(`${RECORDS}/${ids.ann[1]}`, { headers: ann.headers });
    const record = await jsonOf(response);
    expect(record).toMatchObject({
      request_id: ids.ann[1],
      key_id: ann.id,
      asked: 'fast',
      provider: 'mistral',
      model: 'mistral-small-latest',
      status: 'finished',
      prompt_tokens: 2,
      completion_tokens: 12,
      // At 0.15 and 0.6 dollars per million tokens.
      cost: 0.0000075,
      currency: 'USD',
      cost_source: 'table',
      cost_estimated: false,
      attempts: [{ provider: 'mistral', model: 'mistral-small-latest', error_code: null }],
    });
    expect(record).not.toHaveProperty('cost_nanos');
    expect(Date.parse(textOf(record.ended)) - Date.parse(textOf(record.time))).toBe(record.total_ms);
  });

  test('L2 a key lists its own records, the latest first, also without /v1', async () => {
    const all = { ids: ids.ann, object: 'list', has_more: false, next_cursor: null };
    expect(await list('', ann.headers)).toEqual(all);
    const response = await gateway.fetch(`/usage/records?${AROUND}`, { headers: ann.headers });
    expect(objectsOf((await jsonOf(response)).data)).toHaveLength(5);
  });

  test('L2 pages have each record once, until there is no cursor', async () => {
    const first = await list('limit=2', ann.headers);
    expect(first).toMatchObject({ ids: ids.ann.slice(0, 2), has_more: true });
    const second = await list(`limit=2&cursor=${textOf(first.next_cursor)}`, ann.headers);
    expect(second).toMatchObject({ ids: ids.ann.slice(2, 4), has_more: true });
    const third = await list(`limit=2&cursor=${textOf(second.next_cursor)}`, ann.headers);
    expect(third).toMatchObject({ ids: ids.ann.slice(4), has_more: false, next_cursor: null });
  });

  test.each([
    ['model=fast', [1, 3]],
    ['model=mistral/mistral-small-latest', [1, 3]],
    ['model=openai/o4-mini', [0]],
    ['status=failed', [2]],
    ['status=failed,finished&model=fast', [1, 3]],
    ['status=finished&model=fast', [1, 3]],
    ['status=cancelled', []],
    ['model=nothing', []],
  ])('L2 %s: only matching records', async (query, places) => {
    expect((await list(query, ann.headers)).ids).toEqual(places.map((place) => ids.ann[place]));
  });

  test('L2 a range without records is empty', async () => {
    const response = await gateway.fetch(`${RECORDS}?from=2026-01-01&to=2026-02-01`, {
      headers: ann.headers,
    });
    expect(await jsonOf(response)).toEqual({ object: 'list', data: [], has_more: false, next_cursor: null });
  });

  test('L2 the admin lists all keys in one order, or one key, and finds any record', async () => {
    expect((await list('', ADMIN)).ids).toEqual([...ids.bob, ...ids.ann]);
    expect((await list(`key=${bob.id}`, ADMIN)).ids).toEqual(ids.bob);
    expect((await list('key=nobody', ADMIN)).ids).toEqual([]);
    for (const path of [`${RECORDS}/${ids.bob[0]}`, `${RECORDS}/${ids.bob[0]}?key=${bob.id}`]) {
      const response = await gateway.fetch(path, { headers: ADMIN });
      expect(await jsonOf(response)).toMatchObject({ request_id: ids.bob[0], key_id: bob.id });
    }
    const elsewhere = await gateway.fetch(`${RECORDS}/${ids.bob[0]}?key=${ann.id}`, { headers: ADMIN });
    expect(elsewhere.status).toBe(404);
  });

  test('M5 L4 the admin gets a report over all keys, or over one', async () => {
    for (const [query, requests] of [
      ['', 7],
      [`&key=${bob.id}`, 2],
    ]) {
      const response = await gateway.fetch(`/v1/usage?${AROUND}&group_by=key${query}`, { headers: ADMIN });
      expect(objectOf((await jsonOf(response)).total)).toMatchObject({ requests });
    }
  });

  test('L2 a key cannot read records of another key with any parameter', async () => {
    const [foreign] = ids.bob;
    const { headers } = ann;
    const paths = [
      `${RECORDS}/${foreign}`,
      `${RECORDS}/${foreign}?key=${bob.id}`,
      `${RECORDS}/${bob.id}%2F${foreign}`,
      `${RECORDS}/../${bob.id}/${foreign}`,
      `${RECORDS}/${foreign}?key_id=${bob.id}&keyId=${bob.id}&prefix=usage/`,
      ...[
        'key',
        'key_id',
        'keyId',
        'prefix',
        'cursor',
        'model',
        'status',
        'limit',
        'from',
        'group_by',
      ].flatMap((name) =>
        [bob.id, `usage/${day(0)}/${bob.id}/`, '*', foreign].map(
          (value) => `${RECORDS}?${name}=${encodeURIComponent(String(value))}`,
        ),
      ),
      `${RECORDS}?${AROUND}&cursor=ffffffff-ffff-7fff-bfff-ffffffffffff`,
      `/v1/usage?group_by=key`,
      `/v1/usage?key=${bob.id}`,
      `/v1/usage?key=*`,
    ];
    for (const path of paths) {
      const response = await gateway.fetch(path, { headers });
      const body = await jsonOf(response);
      expect([path, JSON.stringify(body).includes(`"${foreign}"`)]).toEqual([path, false]);
      if (response.status !== 200) expect([400, 404]).toContain(response.status);
      for (const { key_id, requests } of objectsOf(body.data)) {
        expect(key_id ?? ann.id).toBe(ann.id);
        expect(Number(requests ?? 0)).toBeLessThanOrEqual(ids.ann.length);
      }
    }
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=ten', 'limit'],
    ['status=done', 'status'],
    ['status=failed,done', 'status'],
    ['cursor=1', 'cursor'],
    ['from=today', 'from'],
    ['from=2026-02-02&to=2026-02-01', 'to'],
  ])('L2 %s: refused, with the expected values', async (query, param) => {
    const { status, error } = await errorOf(
      await gateway.fetch(`${RECORDS}?${query}`, { headers: ann.headers }),
    );
    expect(status).toBe(400);
    expect(error).toMatchObject({ code: 'invalid_request', param });
  });

  test.each(['*', 'a/b', '', 'x'.repeat(65)])('L2 the admin passes the key %j: refused', async (key) => {
    const path = `${RECORDS}?key=${encodeURIComponent(key)}`;
    const { status, error } = await errorOf(await gateway.fetch(path, { headers: ADMIN }));
    expect([status, error.param]).toEqual([400, 'key']);
  });

  test.each([RECORDS, `${RECORDS}/01a1f878-d378-7b7e-9c55-0d6a1f2b3c4d`])(
    'K3 %s without a key: 401; by POST: 405',
    async (path) => {
      expect((await gateway.fetch(path)).status).toBe(401);
      expect((await gateway.post(path, {}, { headers: ann.headers })).status).toBe(405);
    },
  );

  test.each(['nothing', '3f2c9d0e-8a41-4b7e-9c55-0d6a1f2b3c4d', '01a1f878-d378-7b7e-9c55-0d6a1f2b3c4d'])(
    'L2 the record of %s, which is none: 404',
    async (id) => {
      for (const { headers } of [ann, { headers: ADMIN }])
        expect((await gateway.fetch(`${RECORDS}/${id}`, { headers })).status).toBe(404);
    },
  );

  test('L7 a report as CSV has a header and one line for each row', async () => {
    const response = await gateway.fetch(`/v1/usage?${AROUND}&group_by=model,status&format=csv`, {
      headers: bob.headers,
    });
    expect(response.headers.get('content-type')).toMatch(/^text\/csv/);
    expect(response.headers.get('content-disposition')).toBe(
      `attachment; filename="usage-${day(-1)}-${day(2)}.csv"`,
    );
    expect((await response.text()).split('\r\n')).toEqual([
      'model,status,requests,prompt_tokens,completion_tokens,total_tokens,cached_tokens,cache_write_tokens,reasoning_tokens,estimated_requests,failed_requests,unpriced_requests,cancelled_requests,cut_requests,cached_share,median_first_token_ms,median_tokens_per_second,p95_first_token_ms,p99_first_token_ms,p5_tokens_per_second,p1_tokens_per_second,cost_USD,estimated_cost_USD,input_cost_USD,cached_cost_USD,output_cost_USD',
      expect.stringMatching(
        /^openai\/o4-mini,finished,1,2,37,39,0,0,32,0,0,0,0,0,0,\d+,[\d.]*,\d+,\d+,[\d.]*,[\d.]*,0\.000165,,0\.0000022,,0\.0001628$/,
      ),
      'openai/o4-mini:status-500,failed,1,0,0,0,0,0,0,0,1,0,0,0,,,,,,,,,,,,',
      '',
    ]);
  });

  describe('Y4 Y5 names with any characters', () => {
    const made = new Map<string, JsonObject>();
    let eve: Owner;

    beforeAll(async () => {
      eve = await makeOwner('eve');
      const sent = NAMES.map(async (name) => {
        const value = headerBytes(name);
        const response = await gateway.post(
          CHAT,
          chat('mistral/mistral-small-latest', { user: name, metadata: { env: name } }),
          {
            headers: {
              ...eve.headers,
              ...(value !== null && { 'x-weir-session': value, 'x-weir-app': value }),
            },
          },
        );
        expect([name, response.status]).toEqual([name, 200]);
        const headers = JSON.stringify([...response.headers]);
        const stem = name.trim().slice(0, 40);
        if (stem.length > 3) expect(headers).not.toContain(JSON.stringify(stem).slice(1, -1));
        await response.text();
        const id = textOf(response.headers.get('x-weir-request-id'));
        made.set(name, await readRecord(id, eve));
      });
      await Promise.all(sent);
    });

    test('are stored as they were sent if they are short and plain, also from UTF-8 in a header', () => {
      for (const name of PLAIN_NAMES) {
        const { user, session, app } = made.get(name) ?? {};
        const others = headerBytes(name) === null ? [null, 'node'] : [name, name];
        expect([user, session, app]).toEqual([name, ...others]);
      }
      expect(made.get('(other)')?.user).toBe(null);
      const lone = textOf(made.get('\ud800 lone')?.user);
      expect(lone).toMatch(/^\ufffd lone~[0-9a-f]{16}$/);
      const users = [...made.values()].map(({ user }) => user);
      expect(new Set(users).size).toBe(NAMES.length);
    });

    test.each(['user', 'session', 'app', 'tag:env'])(
      'each name that a report by %s shows selects its requests, and no others',
      async (fact) => {
        if (ledger === 'kv' && fact === 'tag:env') return;
        const query = `${AROUND}&group_by=${fact}`;
        const rows = objectsOf((await usageOf(query)).data);
        const nameIn = ({ tags, ...record }: JsonObject) =>
          fact === 'tag:env' ? (objectOf(tags).env ?? '') : (record[fact] ?? '');
        const expected = Map.groupBy(made.values(), nameIn);
        expect(new Set(rows.map((row) => row[fact]))).toEqual(new Set(expected.keys()));
        for (const [name, records] of expected) {
          const param =
            fact === 'tag:env'
              ? `tag=${encodeURIComponent(`env:${name}`)}`
              : `${fact}=${encodeURIComponent(String(name))}`;
          const { data, total } = await usageOf(`${query}&${param}`);
          expect(objectsOf(data)).toMatchObject([{ [fact]: name, requests: records.length }]);
          expect(total).toMatchObject({ requests: records.length });
          const listed = await list(`${param}`, eve.headers);
          expect(new Set(Array.isArray(listed.ids) ? listed.ids : [])).toEqual(
            new Set(records.map(({ request_id }) => request_id)),
          );
        }
      },
    );

    test('a name as it was sent selects its request, however long it is', async () => {
      for (const name of NAMES.filter((one) => one !== '(other)')) {
        const { data } = await usageOf(
          `${AROUND}&group_by=user&user=${encodeURIComponent(name.toWellFormed())}`,
        );
        // A query string has no lone surrogates.
        const isSame = name.isWellFormed();
        expect(objectsOf(data)).toMatchObject(isSame ? [{ user: made.get(name)?.user, requests: 1 }] : []);
      }
    });

    test('are one cell of CSV each, and none is a formula', async () => {
      const response = await gateway.fetch(`/v1/usage?${AROUND}&group_by=user,app&format=csv`, {
        headers: eve.headers,
      });
      const [header = [], ...lines] = readCsv(await response.text());
      expect(lines).toHaveLength(NAMES.length);
      expect(lines.filter((cells) => cells.length !== header.length)).toEqual([]);
      const cells = lines.map(([user = '']) => user);
      expect(cells.filter((cell) => /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(cell))).toEqual([]);
      const users = new Set([...made.values()].map(({ user }) => textOf(user)));
      for (const cell of cells) expect(users).toContain(users.has(cell) ? cell : cell.replace(/^'/, ''));
    });

    test.each([
      ['bytes that are no UTF-8', '\xff\xfe\x80ada'],
      ['6,000 bytes', 'n'.repeat(6000)],
    ])('%s in a header: a name that selects its request', async (_, value) => {
      const headers = { ...eve.headers, 'x-weir-user': value, 'x-weir-session': value };
      const body = chat('mistral/mistral-small-latest');
      const response = await gateway.post(CHAT, body, { headers });
      expect(response.status).toBe(200);
      await response.text();
      const { user, session, request_id } = await readRecord(
        textOf(response.headers.get('x-weir-request-id')),
        eve,
      );
      expect(textOf(user)).toMatch(/^[^\p{Cc}\p{Cs}]{1,64}$/u);
      expect(session).toBe(user);
      const listed = await list(`user=${encodeURIComponent(textOf(user))}`, eve.headers);
      expect(listed.ids).toEqual([request_id]);
    });

    test('that a key fixes leave the key’s entry readable', async () => {
      for (const name of ['=1+1', '"q", \\', '🌊'.repeat(16), 'n'.repeat(64)]) {
        const tags = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`t${i}`, name]));
        const fields = { name: 'fixed', user: name, tags };
        const created = await gateway.post('/admin/keys', fields, { headers: ADMIN });
        expect([name, created.status]).toEqual([name, 201]);
        const { key } = await jsonOf(created);
        const own = await gateway.fetch('/v1/key', { headers: { authorization: `Bearer ${textOf(key)}` } });
        expect(await jsonOf(own)).toMatchObject({ user: name, tags });
      }
    });

    async function usageOf(query: string): Promise<JsonObject> {
      const response = await gateway.fetch(`/v1/usage?${query}`, { headers: eve.headers });
      expect(response.status).toBe(200);
      return jsonOf(response);
    }
  });
});
