/** Tests what makes the page one to keep open: refreshes that fail, addresses, colours of names, numbers, phones (D3, D7, D9). */
import { readFile } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePrefix } from '../../src/metering/prompt-hashes.ts';
import type { UsageRecord } from '../../src/metering/record.ts';
import { fill } from '../../tools/simulator/demo-records.ts';
import { ADMIN_TOKEN } from '../e2e/gateway.ts';
import { record } from '../metering/records.ts';
import { overflows, violationsOf } from './axe.ts';
import { hasChromium, type Look, launch, open, saveTable, settle, signIn, type Watched } from './browser.ts';
import { type Filled, makeKey, startFilled } from './filled.ts';

const HOUR_MS = 3_600_000;

let browser: Browser;
let filled: Filled;

/** The most that a record can show in its row: long names, another target, attempts, a break of the cache, a long code, a large cost. */
function longRecords(keyId: string): UsageRecord[] {
  const time = Date.now() - 2 * HOUR_MS;
  const long = `provider/${'long-name-'.repeat(11)}x`;
  const attempt = { provider: 'p', model: 'm', status: 503, error_code: 'upstream_overloaded', ms: 5 };
  const same = 'a'.repeat(12);
  const prefix = (turns: number, tools: string) =>
    encodePrefix({
      ...{ keyId: 'de', system: same, settings: same, first: same, target: same, tools, turns },
      ends: Array.from({ length: turns }, (_, at) => String(at).padStart(12, '0')),
    });
  const some: readonly Partial<UsageRecord>[] = [
    { asked: long, provider: 'provider', attempts: [attempt, attempt, attempt] },
    { asked: long, status: 'failed', error_code: 'upstream_event_too_large_and_longer' },
    { asked: long, status: 'timed_out', error_code: 'stream_idle_timeout', attempts: [attempt, attempt] },
    { asked: long, cost_nanos: 123_456_789_012_345, currency: 'USD', cost_source: 'upstream' },
    { asked: 'p/\u{1F469}\u200D\u{1F4BB} \u0E01\u0E33\u0E49 \u05E9\u05DC\u05D5\u05DD', status: 'cancelled' },
    { asked: 'm', provider: 'p', model: 'm' },
    { asked: long, prompt_tokens: 9000, cached_tokens: 0, prefix: prefix(1, same), session: 's' },
    {
      asked: long,
      prompt_tokens: 9000,
      cached_tokens: 0,
      prefix: prefix(2, 'b'.repeat(12)),
      session: 's',
      attempts: [attempt, attempt],
    },
  ];
  return some.map((fields, n) =>
    record(
      { time: new Date(time + n * 5000).toISOString(), key_id: keyId, model: 'n'.repeat(110), ...fields },
      n,
    ),
  );
}

describe.runIf(hasChromium)('the page that stays open', () => {
  beforeAll(async () => {
    [browser, filled] = await Promise.all([launch(), startFilled({ vars: { LEDGER: 'object' } })]);
  });
  afterAll(async () => {
    await browser.close();
    await filled[Symbol.asyncDispose]();
  });

  async function signedIn(hash: string, look: Look = {}, token = ADMIN_TOKEN): Promise<Watched> {
    const watched = await open(browser, filled.page + hash, look);
    await signIn(watched.page, token);
    await settle(watched.page);
    return watched;
  }
  const rows = (page: Page) => page.locator('tbody tr').count();

  test.each([
    ['overview', '/v1/usage'],
    ['requests', '/v1/usage/records'],
    ['keys', '/admin/keys'],
    ['health', '/admin/status'],
  ])(
    'D7 %s: a refresh that fails keeps what was shown, and says since when; the next one removes the strip',
    async (view, path) => {
      const { page, context, complaints } = await signedIn(`#/${view}?range=30d`);
      await page.locator('tbody tr').first().waitFor();
      // Each table has a report of its own.
      await settle(page);
      const before = await rows(page);
      await page.route(`**${path}**`, (route) => route.fulfill({ status: 500, body: 'down' }));
      await page.getByRole('button', { name: 'Refresh' }).click();
      const strip = page.locator('.stale').first();
      await strip.getByText(/You see the data of \d\d:\d\d:\d\d/).waitFor();
      expect(await rows(page)).toBe(before);
      expect(await violationsOf(page)).toEqual([]);
      await page.unroute(`**${path}**`);
      await strip.getByRole('button', { name: 'Try again' }).click();
      await strip.waitFor({ state: 'detached' });
      expect(await rows(page)).toBe(before);
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  test('D7 another range that cannot be loaded shows no data of the range before', async () => {
    const { page, context } = await signedIn('#/overview?range=30d');
    await page.locator('tbody tr').first().waitFor();
    await page.route('**/v1/usage**', (route) => route.fulfill({ status: 500, body: 'down' }));
    await page.getByRole('link', { name: '90 d', exact: true }).click();
    await page.getByRole('alert').first().waitFor();
    expect(await rows(page)).toBe(0);
    await context.close();
  });

  test.each([
    ['#/nonsense', 'There is no such view'],
    ['#/requests/abc', 'There is no such view'],
    ['#/overview?q=x', 'does not know q in its address'],
  ])('D7 the address %s: the page says that it does not know it', async (hash, words) => {
    const { page, context } = await signedIn(hash);
    await page.getByText(words).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await context.close();
  });

  test('D7 a view of the admin: a key is told so, and its navigation has no such view', async () => {
    const { page, context } = await signedIn('#/health', {}, filled.keys[0].token);
    await page.getByText('Only the admin has this view').waitFor();
    await context.close();
  });

  test('D3 a model has the same colour in each range and for each metric', async () => {
    const { page, context } = await signedIn('#/overview?range=30d&metric=spend');
    const colours = async () => {
      await page.locator('tbody .swatch').first().waitFor();
      const found = await page.evaluate<[string, string][]>(
        "[...document.querySelectorAll('tbody tr')].map((row) => [row.querySelector('bdi')?.title ?? '', row.querySelector('.swatch')?.className ?? ''])",
      );
      return new Map(found.filter(([, look]) => !look.includes('other')));
    };
    const first = await colours();
    expect(first.size).toBeGreaterThan(3);
    expect(new Set(first.values()).size).toBe(first.size);
    for (const query of ['range=24h', 'range=7d&metric=requests', 'range=90d&metric=tokens']) {
      await page.goto(`${filled.page}#/overview?${query}`);
      await settle(page);
      for (const [name, colour] of await colours())
        if (first.has(name)) expect(colour, `${query} ${name}`).toBe(first.get(name));
    }
    await context.close();
  });

  test('D3 amounts below 1 have two significant digits, shares below 0.1 % are “< 0.1%”', async () => {
    const { page, context } = await signedIn('#/overview?range=30d', { locale: 'en-US' });
    await page.locator('tbody tr').first().waitFor();
    const cells = await page.locator('tbody').first().locator('td.num').allInnerTexts();
    const small = cells.filter((text) => /^\$0\.\d/.test(text));
    expect(small.length).toBeGreaterThan(2);
    for (const text of small) expect(text).toMatch(/^\$0\.(?:\d\d|0+[1-9]\d?)$/);
    for (const text of cells.filter((cell) => cell.endsWith('%') && !cell.startsWith('<')))
      expect(Number.parseFloat(text) === 0 || Number.parseFloat(text) >= 0.1, text).toBe(true);
    await context.close();
  });

  /** The heights of the shown rows, in whole pixels. */
  const heightsOf = async (page: Page) =>
    new Set(
      await page.evaluate<number[]>(
        "[...document.querySelectorAll('tr.folds')].map((row) => Math.round(row.getBoundingClientRect().height))",
      ),
    );
  /** The height of a font's pixels differs between machines: two lines of text in one more. */
  const MAX_ROW_LINES = 3;
  const lineOf = (page: Page) =>
    page.evaluate<number>(
      "Number.parseFloat(getComputedStyle(document.querySelector('tbody td')).lineHeight)",
    );

  test.each([320, 360, 390])(
    'D9 at %i pixels every model and every request has a row of two lines, whatever its record has, which opens',
    async (width) => {
      const key = await makeKey(filled.gateway, { name: `long ${width}` });
      await fill(filled.gateway.url, longRecords(key.id));
      const { page, context, complaints } = await signedIn('', { width });
      const row = page.locator('tr.folds').first();
      const heights = new Set<number>();
      for (const query of ['', `&key=${key.id}`]) {
        await page.goto(`${filled.page}#/requests?range=7d${query}`);
        await row.waitFor();
        await settle(page);
        expect(await overflows(page)).toBe(false);
        for (const height of await heightsOf(page)) heights.add(height);
      }
      expect(await page.locator('tr.folds').count()).toBe(longRecords('').length);
      const words = await page.locator('tbody').innerText();
      for (const word of [
        '→ provider',
        '3 attempts',
        'cache: tools',
        'upstream_event_too_large',
        '$123,456.79',
      ])
        expect(words).toContain(word);
      await row.click();
      await page.locator('dialog .facts').waitFor();
      expect(await overflows(page)).toBe(false);
      for (const query of ['', `&key=${key.id}`]) {
        await page.goto(`${filled.page}#/overview?range=7d${query}`);
        await page.locator('.figures').waitFor();
        await row.waitFor();
        await settle(page);
        expect(await overflows(page)).toBe(false);
        for (const height of await heightsOf(page)) heights.add(height);
      }
      expect([...heights]).toHaveLength(1);
      const [closed = 0] = heights;
      expect(closed).toBeLessThan(MAX_ROW_LINES * (await lineOf(page)));
      await row.getByRole('button', { name: /^All of / }).click();
      await row.locator('td[data-head="Cached"]').waitFor();
      expect((await row.boundingBox())?.height ?? 0).toBeGreaterThan(closed + 100);
      expect(await overflows(page)).toBe(false);
      expect(await violationsOf(page)).toEqual([]);
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  test('D5 the only copy of a new key stays through Escape, twice', async () => {
    const { page, context } = await signedIn('#/keys');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('kept open');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const token = await page.locator('output').innerText();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    // The browser may close it at the second Escape before the page opens it again.
    await page.getByRole('button', { name: 'I have copied it' }).waitFor();
    expect(await page.locator('output').innerText()).toBe(token);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    await context.close();
  });

  test('D6 a request that is refused before a provider is called links to no record', async () => {
    const { page, context } = await signedIn('#/live?a=nowhere/none', {}, filled.keys[0].token);
    await page.getByLabel('Prompt').fill('Hello');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.stream-view .problem').waitFor();
    expect(await page.getByRole('link', { name: 'Open its record' }).count()).toBe(0);
    await context.close();
  });

  test('D7 the switch to the reader’s time: fields, bars, tables and CSV obey it, also after a reload', async () => {
    const { page, context, complaints } = await signedIn('#/overview?range=7d&metric=requests', {
      timezone: 'America/Los_Angeles',
    });
    // The page's clock, so that no day ends in the middle of the test.
    const now = Date.now();
    await page.clock.setFixedTime(now);
    await page.reload();
    await settle(page);
    const day = (zone: string) =>
      new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' }).format(now);
    expect(await page.getByLabel('To day (UTC)').inputValue()).toBe(day('UTC'));
    const reports: URL[] = [];
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.pathname === '/v1/usage') reports.push(url);
    });
    await page.getByLabel('Times in').selectOption('My time');
    await page.getByLabel(/^To day \((?:P[SD]T|GMT-[78])\)/).waitFor();
    await settle(page);
    expect(await page.getByLabel(/^To day/).inputValue()).toBe(day('America/Los_Angeles'));
    const bars = reports.find(({ searchParams }) => searchParams.get('group_by') === 'hour,model');
    expect(bars?.searchParams.get('from')).toMatch(/T0[78]:00Z$/);
    // The bars have what the tile counts.
    const total = Number((await page.locator('.figures .chosen .value').innerText()).replace(/\D/g, ''));
    await page.locator('.plot').focus();
    let sum = 0;
    for (let bar = 0; bar < 7; bar++) {
      await page.keyboard.press('ArrowRight');
      const tip = await page.locator('.tip').innerText();
      expect(tip).toMatch(/P[SD]T|GMT-[78]/);
      sum += Number(/– ([\d,]+)/.exec(tip)?.[1]?.replace(',', '') ?? 0);
    }
    expect(sum).toBe(total);
    expect(await page.locator('svg .bar').count()).toBe(7);
    await page.goto(`${filled.page}#/requests?range=7d`);
    await page.locator('tbody tr').first().waitFor();
    expect(await page.locator('thead').innerText()).toMatch(/Time \((?:P[SD]T|GMT-[78])\)/);
    const download = await saveTable(page, 'Requests');
    expect(await readFile(await download.path(), 'utf8')).toMatch(/T\d\d:\d\d:\d\d\.\d{3}-0[78]:00/);
    await page.reload();
    expect(await page.getByLabel('Times in').inputValue()).toBe('local');
    expect(await violationsOf(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D2 the sign-in has the focus in its field; the page has an icon and its version', async () => {
    const { page, context } = await open(browser, filled.page);
    expect(await page.evaluate<string>('document.activeElement.id')).toBe('token');
    expect(await page.locator('link[rel=icon]').getAttribute('href')).toContain('image/svg+xml');
    await page.keyboard.type(ADMIN_TOKEN);
    await page.keyboard.press('Enter');
    await page.getByText(/^Weir \d+\.\d+\.\d+/).waitFor();
    await context.close();
  });
});
