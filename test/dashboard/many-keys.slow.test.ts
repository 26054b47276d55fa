/** The page, status and the export with 1,000 keys and people, and 20,000 requests within a day: the sums of the records (L9, D7, L7). */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callerId } from '../../src/auth/caller-ids.ts';
import type { UsageRecord } from '../../src/metering/record.ts';
import { fill } from '../../tools/simulator/demo-records.ts';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { jsonOf } from '../e2e/client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from '../e2e/gateway.ts';
import { manyRecords } from '../metering/many-records.ts';
import { hasChromium, launch, open, settle, signIn } from './browser.ts';
import { ADMIN } from './filled.ts';

const KEYS = 1000;
const RECORDS = 20_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const EXPORT = join(import.meta.dirname, '..', '..', 'tools', 'export.ts');

/** As users are hashed. */
const hash = async (name: string) => createHash('sha256').update(name).digest('hex').slice(0, 32);

const ACCESS = {
  AUTH: 'access',
  ACCESS_TEAM_DOMAIN: 'example.cloudflareaccess.com',
  ACCESS_AUD: 'a'.repeat(64),
};

/** One ledger for both: a deployment that has changed from keys to Access has callers of each, and its page shows all of them. */
const now = Date.now();
let gateway: Gateway;
let records: readonly UsageRecord[];
let browser: Browser;

beforeAll(async () => {
  gateway = await startGateway({
    entrypoint: '../../tools/simulator/filled-worker.ts',
    vars: { AUTH: 'keys', LEDGER: 'object' },
  });
  const keyIds = await Promise.all(
    Array.from({ length: KEYS }, async (_, n) =>
      n % 2 === 0
        ? n.toString(16).padStart(16, '0')
        : await callerId('access_user', `p${n}@example.com`, hash),
    ),
  );
  const span = { fromMs: Math.floor(now / HOUR) * HOUR - DAY + HOUR, toMs: now };
  records = manyRecords(RECORDS, keyIds, span, 1965)
    .map((one, n) => ({
      ...one,
      // Of this day's currency alone, so that the page shows one sum.
      ...(one.currency !== null && { currency: 'USD' }),
      user: n % 9 === 0 ? null : `p${n % 700}@example.com`,
      app: `app-${n % 5}`,
      session: `s${n % 2500}`,
      ...(one.status === 'failed' && { fault: 'provider' as const, error: 'upstream_error' }),
    }))
    .sort((a, b) => (a.key_id < b.key_id ? -1 : 1));
  await fill(gateway.url, records);
  if (hasChromium) browser = await launch();
});
afterAll(async () => {
  if (hasChromium) await browser.close();
  await gateway[Symbol.asyncDispose]();
});

describe.each([
  ['keys', { AUTH: 'keys' }],
  ['people of AUTH=access', ACCESS],
] as const)('L9 %s', (_, auth) => {
  let page: Page;
  let context: BrowserContext;
  let complaints: string[];

  beforeAll(async () => {
    await gateway.set({ ...auth, LEDGER: 'object' });
    if (!hasChromium) return;
    ({ page, context, complaints } = await open(browser, `${gateway.url}/dashboard`, { timezone: 'UTC' }));
    await signIn(page, ADMIN_TOKEN);
  });
  afterAll(async () => {
    if (hasChromium) await context.close();
  });

  async function get(path: string): Promise<JsonObject> {
    const response = await gateway.fetch(path, { headers: ADMIN });
    expect([path, response.status]).toEqual([path, 200]);
    return jsonOf(response);
  }

  test('status: rates of at least the newest 1,000 records of the last hour, and no problem', async () => {
    const status = await get('/v1/admin/status');
    const ledger = objectOf(status.ledger);
    const from = Date.parse(textOf(status.time)) - HOUR;
    const lastHour = records.filter(({ time }) => Date.parse(time) >= from).length;
    expect(ledger.problem).toBeNull();
    expect(Number(ledger.sampled_records)).toBe(Math.min(lastHour, 1000));
    const newest = records
      .map(({ request_id }) => request_id)
      .sort()
      .at(-1);
    expect(ledger.newest_record).toBe(records.find(({ request_id }) => request_id === newest)?.time);
  });

  test('records by error and fault over all keys: as a report counts them', async () => {
    const from = new Date(now - DAY).toISOString();
    const failed = records.filter(({ error }) => error !== null && error !== undefined);
    const ids = new Set<string>();
    let query = `from=${from}&error=upstream_error&fault=provider&limit=1000`;
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: JsonObject = await get(
        `/v1/usage/records?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`,
      );
      for (const { request_id } of objectsOf(page.data)) ids.add(textOf(request_id));
      cursor = page.has_more === true ? textOf(page.next_cursor) : null;
    }
    const matching = failed.filter(({ error, fault }) => error === 'upstream_error' && fault === 'provider');
    expect(ids.size).toBe(matching.length);
    query = `from=${from}&error=upstream_error&fault=provider&group_by=provider`;
    expect(objectOf((await get(`/v1/usage?${query}`)).total).requests).toBe(matching.length);
  });

  test('npm run export writes each record once, and shows how far it is', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'weir-export-'));
    const out = join(folder, 'records.ndjson');
    const [from, to] = [now - 400 * DAY, now + DAY].map((ms) => new Date(ms).toISOString().slice(0, 10));
    const args = [EXPORT, '--url', gateway.url, '--from', String(from), '--to', String(to), '--out', out];
    const child = spawn(process.execPath, args, { env: { ...process.env, ADMIN_TOKEN } });
    const [shown] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    expect(shown).toContain(`${RECORDS} records are in`);
    expect(shown).toMatch(/\d+% \d+ of 20000 records/);
    const lines = (await readFile(out, 'utf8')).trim().split('\n');
    const ids = lines.map((line) => textOf(objectOf(JSON.parse(line)).request_id));
    expect(ids.toSorted()).toEqual(records.map(({ request_id }) => request_id).sort());
    await rm(folder, { recursive: true });
  });

  describe.runIf(hasChromium)('in the browser', () => {
    test.each([
      ['overview of 24 hours', '#/overview?range=24h', '.bar rect'],
      ['overview by key', '#/overview?range=24h&by=key', '.bar rect'],
      ['overview by user', '#/overview?range=24h&by=user', '.bar rect'],
      ['overview by app', '#/overview?range=7d&by=app', '.bar rect'],
      ['overview by session', '#/overview?range=7d&by=session', '.bar rect'],
      ['overview of failures', '#/overview?range=24h&by=status&metric=failures', '.bar rect'],
      ['now', '#/now', '.now dl'],
      ['requests', '#/requests?range=24h', 'tbody tr'],
      ['failed requests', '#/requests?range=24h&status=failed', 'tbody tr'],
      ['keys', '#/keys', 'main'],
      ['health', '#/health', 'tbody tr'],
    ])('%s: data, and no refusal', async (_, hash, shown) => {
      const refused: string[] = [];
      page.on('response', (response) => {
        // More keys and hours than a report has rows: the page then asks for models.
        const isExpected = response.url().includes('group_by=hour%2Ckey');
        if (response.status() >= 400 && !isExpected) refused.push(`${response.status()} ${response.url()}`);
      });
      await page.goto(`${gateway.url}/dashboard${hash}`);
      await page.locator(shown).first().waitFor();
      await settle(page);
      expect(refused).toEqual([]);
      expect(await page.locator('main').innerText()).not.toMatch(/too large|The request failed|Try again/);
      expect(complaints).toEqual([]);
    });

    test('the heading of the last 24 hours has all requests', async () => {
      // The page's clock, so that the hours are those of the records however long the tests before took.
      await page.clock.setFixedTime(now);
      await page.goto(`${gateway.url}/dashboard#/overview?range=24h`);
      await settle(page);
      const link = page.getByRole('link', { name: 'Requests', exact: true });
      const value = page.locator('.figures > div', { has: link }).locator('.value');
      await expect.poll(() => value.innerText(), { timeout: 300_000 }).toBe('20k');
    });
  });
});
