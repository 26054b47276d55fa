/** Tests that the page appears as soon with many keys and records as with few, and stays within its size and memory (D1, D7). */
import { gzipSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fill } from '../../tools/simulator/demo-records.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from '../e2e/gateway.ts';
import { manyRecords } from '../metering/many-records.ts';
import { hasChromium, launch, open, settle, signIn } from './browser.ts';
import { ADMIN, makeKey } from './filled.ts';

const KEYS = 1000;
const RECORDS = 10_000;
const FEW_RECORDS = 100;
const DAY = 86_400_000;
const RUNS = 5;
/** The most that first paints may differ: the shortest of several runs, with much and with few data in turn. */
const MOST_RATIO = 1.5;
const MAX_KIB = 70;
/** Rows of requests that the page keeps. */
const MAX_ROWS = 2000;
const VIEWS = ['#/overview?range=30d', '#/requests?range=30d', '#/keys'] as const;

describe.runIf(hasChromium)('the page with much data', () => {
  let browser: Browser;
  let many: Gateway;
  let few: Gateway;

  beforeAll(async () => {
    const options = {
      entrypoint: '../../tools/simulator/filled-worker.ts',
      vars: { AUTH: 'keys', LEDGER: 'object' },
    };
    [browser, many, few] = await Promise.all([launch(), startGateway(options), startGateway(options)]);
    const now = Date.now();
    const span = { fromMs: now - 29 * DAY, toMs: now };
    for (const [gateway, keys, records] of [
      [many, KEYS, RECORDS],
      [few, 3, FEW_RECORDS],
    ] as const) {
      const ids: string[] = [];
      while (ids.length < keys) {
        const some = Array.from({ length: Math.min(50, keys - ids.length) }, (_, n) =>
          makeKey(gateway, { name: `key ${ids.length + n}` }),
        );
        ids.push(...(await Promise.all(some)).map(({ id }) => id));
      }
      const sorted = manyRecords(records, ids, span, 79).sort((a, b) => (a.key_id < b.key_id ? -1 : 1));
      await fill(gateway.url, sorted);
    }
  });
  afterAll(async () => {
    await browser.close();
    await Promise.all([many[Symbol.asyncDispose](), few[Symbol.asyncDispose]()]);
  });

  /** The first contentful paint of a tab that is signed in, in ms. */
  async function firstPaint(gateway: Gateway, hash: string): Promise<number> {
    const { page, context } = await open(browser, `${gateway.url}/dashboard`);
    await signIn(page, ADMIN_TOKEN);
    await page.goto(`${gateway.url}/dashboard${hash}`);
    await page.reload();
    await page.getByRole('navigation').waitFor();
    const ms = await page.evaluate<number>(
      "new Promise((done) => new PerformanceObserver((list) => done(list.getEntriesByName('first-contentful-paint')[0].startTime)).observe({ type: 'paint', buffered: true }))",
    );
    await context.close();
    return ms;
  }

  test.each(VIEWS)(
    'D7 %s: the first paint takes at most 1.5 times as long as with few data',
    async (hash) => {
      const paints: { many: number; few: number } = { many: Infinity, few: Infinity };
      for (let run = 0; run < RUNS; run++) {
        paints.few = Math.min(paints.few, await firstPaint(few, hash));
        paints.many = Math.min(paints.many, await firstPaint(many, hash));
        if (run > 0 && paints.many / paints.few <= MOST_RATIO) break;
      }
      expect(paints.many / paints.few, JSON.stringify(paints)).toBeLessThanOrEqual(MOST_RATIO);
    },
  );

  test('D5 a thousand keys: a page of rows, the next on a click, and a search over all', async () => {
    const { page, context, complaints } = await open(browser, `${many.url}/dashboard#/keys`);
    await signIn(page, ADMIN_TOKEN);
    const rows = page.getByRole('region', { name: 'Keys', exact: true }).locator('tbody tr');
    await expect.poll(() => rows.count()).toBe(50);
    await page.getByRole('button', { name: 'Show 50 more of 950' }).click();
    await expect.poll(() => rows.count()).toBe(100);
    await page.getByRole('searchbox', { name: 'Search in Keys' }).fill('key 777');
    await expect.poll(() => rows.count()).toBe(1);
    await rows.getByText('key 777').click();
    await page.getByRole('heading', { name: 'key 777' }).waitFor();
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D4 the list of requests ends at 2,000 rows and says how to find the others', async () => {
    const { page, context, complaints } = await open(browser, `${many.url}/dashboard#/requests?range=30d`);
    await signIn(page, ADMIN_TOKEN);
    const rows = page.getByRole('region', { name: 'Requests' }).locator('tbody tr');
    await rows.first().waitFor();
    const end = page.getByText(/^The latest 2,000: a shorter range/);
    await expect
      .poll(
        async () => {
          await page.evaluate('scrollTo(0, document.body.scrollHeight)');
          return end.count();
        },
        { timeout: 300_000, interval: 100 },
      )
      .toBe(1);
    expect(await rows.count()).toBe(MAX_ROWS);
    await settle(page);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D1 the document takes at most 70 KiB gzip', async () => {
    const document = await (await few.fetch('/dashboard', { headers: ADMIN })).arrayBuffer();
    expect(gzipSync(document).length / 1024).toBeLessThanOrEqual(MAX_KIB);
  });
});
