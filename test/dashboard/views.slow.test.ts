/** Tests each view of the page in Chromium, in both schemes, at four widths and with both ledgers (D3, D4, D5, D9). */
import { readFile } from 'node:fs/promises';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DEMO_SESSION } from '../../tools/simulator/demo-records.ts';
import { decodeObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { jsonOf } from '../e2e/client.ts';
import { ADMIN_TOKEN } from '../e2e/gateway.ts';
import { overflows, tabTo, violationsOf } from './axe.ts';
import {
  chooseAction,
  hasChromium,
  type Look,
  launch,
  open,
  saveTable,
  settle,
  signIn,
  type Watched,
} from './browser.ts';
import { ADMIN, type Filled, makeKey, RECORDS, startFilled } from './filled.ts';

const HOUR_MS = 3_600_000;

/** Below 640 pixels the layout is another. Colours are no matter of the width. */
const LOOKS = [
  { theme: 'light', width: 320 },
  { theme: 'dark', width: 390 },
  { theme: 'light', width: 768 },
  { theme: 'dark', width: 1280 },
] as const;
/** What the ledger changes is no matter of the width. */
const LOOKS_OF: Readonly<Record<string, readonly Look[]>> = {
  object: LOOKS,
  kv: [{ theme: 'dark', width: 768 }],
};

/** The number of requests in the heading. */
function requestsOf(page: Page): Locator {
  const link = page.getByRole('link', { name: 'Requests', exact: true });
  return page.locator('.figures > div', { has: link }).locator('.value');
}

let browser: Browser;
let filled: Filled;

describe.runIf(hasChromium).each(['kv', 'object'] as const)('the page with LEDGER=%s', (store) => {
  beforeAll(async () => {
    [browser, filled] = await Promise.all([launch(), startFilled({ vars: { LEDGER: store } })]);
  });
  afterAll(async () => {
    await browser.close();
    await filled[Symbol.asyncDispose]();
  });

  /** For what the page does by itself, whatever the ledger. */
  const testOnce = test.runIf(store === 'object');

  async function signedIn(look: Look = {}, hash = '', token = ADMIN_TOKEN): Promise<Watched> {
    const watched = await open(browser, `${filled.page}${hash}`, look);
    await signIn(watched.page, token);
    return watched;
  }

  describe.each(LOOKS_OF[store] ?? [])('$theme, $width pixels', (look) => {
    const views: readonly (readonly [name: string, hash: string, shown: string])[] = [
      ['overview', '#/overview?range=30d', '.bar rect'],
      // The range before has records, too: each tile has a change with a text for screen readers.
      ['overview with changes', '#/overview?range=7d', '.trend'],
      ['overview by status, of failures', '#/overview?range=30d&by=status&metric=failures', '.bar rect'],
      ['overview by user', '#/overview?range=30d&by=user', '.bar rect'],
      [
        'overview of one user by session',
        '#/overview?range=30d&user=ada@example.com&by=session',
        '.bar rect',
      ],
      ['now', '#/now', '.now dl'],
      ['requests', '#/requests?range=30d', 'tbody tr'],
      ['a session', `#/requests?range=30d&session=${DEMO_SESSION}`, '.line'],
      ['keys', '#/keys', '.meter'],
      ['live', '#/live', '.empty'],
      ['health', '#/health', 'tbody tr'],
      ['audit', '#/audit', 'tbody tr'],
    ];

    test('D2 D9 the sign-in and every view: no console message, no violation, no overflow', async () => {
      const { page, context, complaints } = await open(browser, filled.page, look);
      expect(await violationsOf(page)).toEqual([]);
      await signIn(page, ADMIN_TOKEN);
      for (const [name, hash, shown] of views) {
        await page.goto(filled.page + hash);
        await page.locator(shown).first().waitFor({ state: 'attached' });
        await settle(page);
        expect(await violationsOf(page), name).toEqual([]);
        expect(await overflows(page), name).toBe(false);
      }
      expect(complaints).toEqual([]);
      await context.close();
    });

    test('D4 D5 D9 dialogs: a record, the form of a new key, the confirmation of a revocation', async () => {
      const { page, context, complaints } = await signedIn(look, '#/requests?range=30d&status=failed');
      await page.locator('tbody tr a').first().click();
      await page.locator('dialog .facts').waitFor();
      expect(await violationsOf(page)).toEqual([]);
      expect(await overflows(page)).toBe(false);
      await page.keyboard.press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
      expect(new URL(page.url()).hash).not.toContain('id=');
      await page.goto(`${filled.page}#/keys`);
      await page.getByRole('button', { name: 'Create key' }).click();
      expect(await violationsOf(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await chooseAction(page, 'Revoke', 'web app');
      expect(await violationsOf(page)).toEqual([]);
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.locator('dialog').waitFor({ state: 'detached' });
      expect(complaints).toEqual([]);
      await context.close();
    });
  });

  test('D3 the figures are the API’s, and the table has every model with its share, the most expensive first', async () => {
    const { page, context } = await signedIn({}, '#/overview?range=30d');
    await settle(page);
    expect(await requestsOf(page).innerText()).toBe(String(RECORDS));
    const shares = await page.locator('tbody').first().locator('td:nth-child(3)').allInnerTexts();
    const parts = shares.map((text) => Number.parseFloat(text));
    expect(parts.length).toBeGreaterThan(4);
    expect(parts).toEqual([...parts].sort((a, b) => b - a));
    const rounded = parts.reduce((sum, part) => sum + (part < 10 ? 0.05 : 0.5), 0);
    expect(Math.abs(parts.reduce((sum, part) => sum + part, 0) - 100)).toBeLessThanOrEqual(rounded);
    await context.close();
  });

  test('D3 the last hours, for all keys and for one: the same requests as in the list', async () => {
    const { page, context, complaints } = await signedIn({}, '#/overview?range=24h&by=key');
    // The page's clock, so that no hour ends in the middle of the test.
    const now = Date.now();
    await page.clock.setFixedTime(now);
    const from = new Date(Math.floor(now / HOUR_MS - 23) * HOUR_MS).toISOString();
    const [{ id }] = filled.keys;
    const counts: number[] = [];
    for (const key of ['', id]) {
      await page.goto(`${filled.page}#/overview?${new URLSearchParams({ range: '24h', by: 'model', key })}`);
      const requests = requestsOf(page);
      const difference = async () => {
        const query = new URLSearchParams({ from, limit: '1000', ...(key !== '' && { key }) });
        const response = await filled.gateway.fetch(`/v1/usage/records?${query}`, { headers: ADMIN });
        const { length } = objectsOf((await jsonOf(response)).data);
        counts.push(length);
        return Number(await requests.innerText()) - length;
      };
      await expect.poll(difference).toBe(0);
    }
    expect(counts.at(-1)).toBeGreaterThan(0);
    expect(counts.at(-1)).toBeLessThan(counts[0] ?? 0);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D3 D4 the number of a model’s failures links to a list with that many requests', async () => {
    const { page, context } = await signedIn({}, '#/overview?range=30d&by=model');
    const row = page.locator('tr', { hasText: 'deepseek/deepseek-flash' });
    const failed = row.locator('a[href*="timed_out"]');
    const count = Number(await failed.innerText());
    expect(count).toBeGreaterThan(1);
    await failed.click();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(count);
    expect(await page.getByLabel('Status').inputValue()).toBe('failed,timed_out');
    await context.close();
  });

  testOnce(
    'D3 each tile charts its metric, and a part of a bar has a tooltip and opens the requests of its day and cause',
    async () => {
      const { page, context, complaints } = await signedIn({}, '#/overview?range=30d');
      await settle(page);
      const labels = await page.locator('.figures a').allInnerTexts();
      expect(labels).toHaveLength(13);
      for (const label of labels) {
        await page.locator('.figures').getByRole('link', { name: label, exact: true }).click();
        await page.locator('.chart figcaption', { hasText: `${label} by day` }).waitFor();
      }
      await page.locator('.figures').getByRole('link', { name: 'First token' }).click();
      await page.locator('.line').nth(1).waitFor();
      expect(await page.locator('.chart figcaption').first().innerText()).toMatch(
        /median \(p50\)\s+slowest 5% \(p95\)\s+slowest 1% \(p99\)/,
      );
      await page.locator('.figures').getByRole('link', { name: 'Failures' }).click();
      await page.locator('.chart figcaption', { hasText: 'Failures by day' }).waitFor();
      await settle(page);
      const bar = page
        .locator('.bar', { has: page.locator('rect') })
        .first()
        .locator('rect')
        .first();
      await bar.hover();
      const tip = page.locator('.tip');
      const told = await tip.innerText();
      expect(told).toMatch(/UTC – \d+/);
      await bar.click();
      await page.waitForURL(/#\/requests\?.*from=.*status=failed%2Ctimed_out/);
      // A part of the bar is one cause: its list has that cause's requests alone.
      const cause = new URLSearchParams(new URL(page.url()).hash.split('?')[1]).get('error');
      const failed = Number(new RegExp(`^${cause} (\\d+)$`, 'm').exec(told)?.[1]);
      await expect.poll(() => page.locator('tbody tr').count()).toBe(failed);
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  testOnce('D3 D9 by keyboard alone: a tile, a bar, the order of a table and its CSV', async () => {
    const { page, context } = await signedIn({}, '#/overview?range=30d');
    await settle(page);
    await page.locator('.figures').getByRole('link', { name: 'Requests' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/metric=requests/);
    const head = page.getByRole('button', { name: 'Cost', exact: true });
    await head.focus();
    await page.keyboard.press('Enter');
    const costs = async () =>
      (await page.locator('td[data-head="Cost"]').allInnerTexts()).flatMap((text) =>
        /\d/.test(text) ? [Number(text.replace(/[^\d.]/g, ''))] : [],
      );
    const falling = await costs();
    expect(falling).toEqual([...falling].sort((a, b) => b - a));
    await page.keyboard.press('Enter');
    expect(await costs()).toEqual([...falling].reverse());
    expect(await page.locator('th[aria-sort=ascending]').innerText()).toContain('Cost');
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Tables as CSV' }).focus();
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('button', { name: 'Use by model as CSV' }));
    await page.keyboard.press('Enter');
    expect(await page.locator(':focus').innerText()).toBe('CSV');
    expect((await download).suggestedFilename()).toBe('use-by-model.csv');
    const lines = (await readFile(await (await download).path(), 'utf8')).trim().split('\r\n');
    expect(lines[0]).toMatch(/^Model,Cost,Share of requests,Requests,/);
    expect(lines).toHaveLength(1 + (await page.locator('tbody').first().locator('tr').count()));
    await page
      .getByRole('group', { name: /arrow keys/ })
      .first()
      .focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/requests\?.*from=\d/);
    await context.close();
  });

  test('D4 search by part of a name, filters for truncated, client and refused', async () => {
    const { page, context } = await signedIn({}, '#/requests?range=30d');
    await page.locator('tbody tr').first().waitFor();
    await page.getByLabel('Search').fill('V4-pro');
    await page.keyboard.press('Enter');
    await page.waitForURL(/search=V4-pro/);
    const cells = (head: string) => page.locator(`td[data-head="${head}"]`).allInnerTexts();
    const fits = async (head: string, pattern: RegExp) => {
      const texts = await cells(head);
      return texts.length > 3 && texts.every((text) => pattern.test(text));
    };
    await expect.poll(() => fits('Model', /v4-pro/)).toBe(true);
    await page.goto(`${filled.page}#/requests?range=30d`);
    await page.getByLabel('Status').selectOption('truncated');
    await page.waitForURL(/truncated=true/);
    await expect.poll(() => fits('Status', /truncated|timeout/)).toBe(true);
    await page.getByLabel('Client').selectOption('chat');
    await page.waitForURL(/client=chat/);
    await page.getByLabel('Status').selectOption('refused');
    await page.getByText('A refused request has no record').waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await context.close();
  });

  test('Y8 spend by user, session and app: the figures are the API’s, and a group’s number leads to its requests', async () => {
    const { page, context, complaints } = await signedIn({}, '#/overview?range=30d');
    for (const by of ['User', 'Session', 'App'] as const) {
      await page.getByRole('combobox', { name: 'By', exact: true }).selectOption(by);
      const table = page.getByRole('region', { name: `Use by ${by.toLowerCase()}` });
      await table.locator('tbody tr').first().waitFor();
      await page.locator('.chart figcaption', { hasText: `Spend by day and ${by.toLowerCase()}` }).waitFor();
      const requests = await table.locator('td[data-head="Requests"]').allInnerTexts();
      const shown = requests.reduce((sum, text) => sum + Number(text), 0);
      const rows = await table.locator('tbody tr').count();
      if (rows < 50) expect(shown, by).toBe(RECORDS);
      expect(await violationsOf(page), by).toEqual([]);
    }
    await page.goto(`${filled.page}#/overview?range=30d&by=user`);
    const ada = page.locator('tbody tr', { hasText: 'ada@example.com' });
    const count = Number(await ada.locator('td[data-head="Requests"]').innerText());
    expect(count).toBeGreaterThan(20);
    await ada.locator('td[data-head="Requests"] a').click();
    await page.waitForURL(/#\/requests\?.*user=ada%40example.com/);
    await expect.poll(() => page.locator('tbody tr').count()).toBe(Math.min(count, 50));
    // Requests without a user have a row of their own, and a filter.
    await page.goto(`${filled.page}#/overview?range=30d&by=user`);
    await page.locator('tbody tr').getByRole('link', { name: 'none', exact: true }).click();
    await page.waitForURL(/user=(&|$)/);
    await page.getByRole('link', { name: 'Remove filter user none' }).click();
    await page.waitForURL((url) => !url.hash.includes('user='));
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('Y8 spend by tag: LEDGER=object groups and filters by it, LEDGER=kv names the ledger that it needs', async () => {
    const { page, context, complaints } = await signedIn({}, '#/overview?range=30d');
    await page.getByRole('combobox', { name: 'By', exact: true }).selectOption('Tag');
    // The tags of the latest requests are offered, and the first is taken.
    await page.waitForURL(/by=tag%3Aenv/);
    if (store === 'kv') {
      await page.getByText('This view needs LEDGER=object').waitFor();
      expect(await page.getByRole('alert').innerText()).toContain(
        'with LEDGER=kv, tags are in single records only',
      );
    } else {
      const name = page.getByLabel('Name of the tag');
      await name.fill('Not A Tag');
      await page.keyboard.press('Enter');
      expect(await page.locator('input:invalid').count()).toBe(1);
      await name.fill('team');
      await page.keyboard.press('Enter');
      const table = page.getByRole('region', { name: 'Use by tag team' });
      await table.locator('tr', { hasText: 'search' }).waitFor();
      await table.getByRole('link', { name: 'search', exact: true }).click();
      await page.waitForURL(/tag=team%3Asearch/);
      const chip = page.getByRole('list', { name: 'Filters' });
      expect(await chip.innerText()).toContain('team:search');
      await page.getByRole('navigation').getByText('Requests').click();
      await page.locator('tbody tr').first().waitFor();
      expect(page.url()).toContain('tag=team%3Asearch');
    }
    expect(await violationsOf(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('Y8 a session: its requests in their order, with cost, cached share and targets; each opens to its record', async () => {
    const { page, context, complaints } = await signedIn({}, '#/overview?range=30d&by=session');
    await page.getByRole('searchbox', { name: 'Search in Use by session' }).fill('d5954b13');
    const rows = page.getByRole('region', { name: 'Use by session' }).locator('tbody tr');
    expect(await rows.count()).toBe(1);
    await rows.getByRole('link', { name: DEMO_SESSION }).click();
    await page.waitForURL(/#\/requests\?.*session=/);
    await page.locator('.line').waitFor();
    expect(await page.locator('.chart figcaption').allInnerTexts()).toEqual([
      expect.stringMatching(/^Cost by request\s+deepseek\/deepseek-flash\s+mistral\/mistral-small-latest$/),
      expect.stringContaining('Cached share'),
    ]);
    const cells = (head: string) => page.locator(`td[data-head="${head}"]`).allInnerTexts();
    expect(await page.locator('tbody tr').count()).toBe(20);
    const tokens = (await cells('Tokens in')).map((text) => Number(text.replace(',', '')));
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect((await cells('Cached'))[0]).toBe('0%');
    expect((await cells('Cached')).at(-1)).toMatch(/^9\d%$/);
    expect(await page.locator('.figures').innerText()).toMatch(
      /Requests\s+20\s+Cost\s+\$0\.0\d{1,2}\s.*Targets\s+2/s,
    );
    // The request that fell back.
    const fallback = page.locator('tbody tr', { hasText: 'mistral' });
    expect(await fallback.innerText()).toContain('2 attempts');
    await page.getByRole('group', { name: /Cost by request/ }).focus();
    for (let at = 0; at < 12; at++) await page.keyboard.press('ArrowRight');
    expect(await page.locator('.tip').first().innerText()).toMatch(
      /^12\. .*mistral\/mistral-small-latest \$0/s,
    );
    await page.keyboard.press('Enter');
    const sheet = page.locator('dialog');
    await sheet.locator('.facts').waitFor();
    expect(await sheet.innerText()).toMatch(/Served by\s+mistral\/mistral-small-latest/);
    expect(await sheet.innerText()).toMatch(
      /User\s+ada@example.com\s+Session\s+d5954b13.*App\s+claude-cli\s+Tags\s+team: search\s+env: prod/s,
    );
    expect(await violationsOf(page)).toEqual([]);
    await sheet.getByRole('link', { name: 'ada@example.com' }).click();
    await page.waitForURL(/#\/requests\?range=30d&user=ada%40example.com$/);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('Y8 filters by user, session and app are added by their name in Overview and Requests, and search finds a part', async () => {
    const { page, context } = await signedIn({}, '#/overview?range=30d');
    await page.getByRole('combobox', { name: 'Filter', exact: true }).selectOption('App');
    await page.getByLabel('Filter by app').fill('claude-cli');
    await page.keyboard.press('Enter');
    await page.waitForURL(/app=claude-cli/);
    await expect.poll(() => requestsOf(page).innerText()).toBe('20');
    await page.getByRole('navigation').getByText('Requests').click();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(20);
    await page.getByRole('link', { name: 'Remove filter app claude-cli' }).click();
    await page.waitForURL((url) => !url.hash.includes('app='));
    await page.getByLabel('Filter by user').fill('u-1841');
    await page.keyboard.press('Enter');
    await page.waitForURL(/user=u-1841/);
    const users = () => page.locator('td[data-head="User"]').allInnerTexts();
    await expect.poll(async () => [...new Set(await users())]).toEqual(['u-1841']);
    await page.getByRole('link', { name: 'Remove filter user u-1841' }).click();
    await page.waitForURL((url) => !url.hash.includes('user='));
    await page.getByLabel('Search').fill('GRACE@');
    await page.keyboard.press('Enter');
    await page.waitForURL(/search=GRACE/);
    await expect.poll(async () => [...new Set(await users())]).toEqual(['grace@example.com']);
    await page.getByLabel('Search').fill('deepseek/*');
    await page.keyboard.press('Enter');
    await page.waitForURL(/search=deepseek%2F&|search=deepseek%2F$/);
    await context.close();
  });

  testOnce(
    'Y8 names with any characters: text on the page, no formula in CSV, and their filters find them',
    async () => {
      const { page, context, complaints } = await signedIn({}, '#/overview?range=24h');
      const { id, token } = await makeKey(filled.gateway, { name: 'odd' });
      const names = [
        '=HYPERLINK("http://evil.example","click")',
        '"quoted", \'twice\'\nsecond line',
        '👩‍💻 \u202Etxet',
        '+SUM(1;2)',
        '<img src=x onerror=alert(1)>',
        'x'.repeat(200),
        '\u2063',
      ];
      const headers = { authorization: `Bearer ${token}` };
      for (const user of names) {
        const body = { model: 'deepseek/deepseek-flash', user, messages: [{ role: 'user', content: 'Hi' }] };
        const response = await filled.gateway.post('/v1/chat/completions', body, { headers });
        await response.text();
        expect(response.status, user).toBe(200);
      }
      await page.goto(`${filled.page}#/overview?range=24h&by=user&key=${id}`);
      const table = page.getByRole('region', { name: 'Use by user' });
      const loaded = async () => {
        await page.getByRole('button', { name: 'Refresh' }).click();
        await settle(page);
        return table.locator('tbody tr').count();
      };
      await expect.poll(loaded).toBe(names.length);
      expect(await page.locator('main img').count()).toBe(0);
      expect(await overflows(page)).toBe(false);
      expect(await violationsOf(page)).toEqual([]);
      await table.getByText('U+2063').waitFor();
      // 64 bytes: the beginning, ~ and a hash.
      await table.getByText(/^x{47}~[0-9a-f]{16}$/).waitFor();
      const csv = await readFile(await (await saveTable(page, 'Use by user')).path(), 'utf8');
      expect(csv).toContain('"\'=HYPERLINK(""http://evil.example"",""click"")"');
      expect(csv).toContain("\r\n'+SUM(1;2),");
      expect(csv.trim().split('\r\n')).toHaveLength(1 + names.length);
      const links = await table.locator('td[data-head="Requests"] a').all();
      const hrefs = await Promise.all(links.map((link) => link.getAttribute('href')));
      for (const href of hrefs) {
        await page.goto(`${filled.page}${href}`);
        await expect.poll(() => page.locator('tbody tr').count(), { message: href ?? '' }).toBe(1);
      }
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  testOnce(
    'D3 D4 while another grouping or filter loads, the earlier data is not drawn as if it were of it',
    async () => {
      const { page, context } = await signedIn({}, '#/overview?range=30d');
      await page.locator('.bar rect').first().waitFor({ state: 'attached' });
      const held = Promise.withResolvers<void>();
      await page.route(/group_by=day%2Cuser|session=/, async (route) => {
        await held.promise;
        await route.continue();
      });
      await page.getByRole('combobox', { name: 'By', exact: true }).selectOption('User');
      await page.getByRole('region', { name: 'Use by user' }).waitFor();
      expect(await page.locator('.bar rect').count()).toBe(0);
      await page.getByRole('navigation').getByText('Requests').click();
      await page.locator('tbody tr').first().waitFor();
      await page.evaluate(
        "globalThis.drawn = 0; new MutationObserver(() => { drawn += document.querySelectorAll('.line').length }).observe(document.body, { childList: true, subtree: true })",
      );
      await page.getByRole('combobox', { name: 'Filter', exact: true }).selectOption('Session');
      await page.getByLabel('Filter by session').fill(DEMO_SESSION);
      await page.keyboard.press('Enter');
      await page.getByRole('link', { name: /Remove filter session/ }).waitFor();
      expect(await page.locator('.line, tbody tr').count()).toBe(0);
      expect(await page.evaluate<number>('drawn')).toBe(0);
      held.resolve();
      await page.locator('.line').waitFor();
      expect(await page.locator('tbody tr').count()).toBe(20);
      await context.close();
    },
  );

  test('D5 keys show what they spent, what is left and when they were last used; keys of Live are hidden', async () => {
    const live = await makeKey(filled.gateway, {
      name: 'Live view of the dashboard',
      expires_at: '2999-01-01',
    });
    const { page, context } = await signedIn({}, '#/keys');
    const line = page.locator('tr', { hasText: 'web app' });
    await expect.poll(() => line.locator('td').nth(1).innerText()).toMatch(/\$0\.[1-9]/);
    // The sample's newest record may be of yesterday (UTC).
    const records = await filled.gateway.fetch(`/v1/usage/records?key=${filled.keys[0].id}&limit=1`, {
      headers: ADMIN,
    });
    const day = textOf(objectsOf(decodeObject(await records.text())?.data)[0]?.time).slice(0, 10);
    const label = await page.evaluate<string>(
      `new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' }).format(new Date('${day}'))`,
    );
    const isToday = day === new Date().toISOString().slice(0, 10);
    await expect.poll(() => line.locator('td').nth(2).innerText()).toBe(isToday ? 'today' : label);
    await line.getByText(/\$0\.\d+ of \$0\.20 in total/).waitFor();
    expect(await page.locator('tr', { hasText: 'Live view' }).count()).toBe(0);
    await page.getByLabel('1 temporary key of Live').check();
    await page.locator('tr', { hasText: 'Live view' }).waitFor();
    await filled.gateway.fetch(`/admin/keys/${live.id}`, { method: 'DELETE', headers: ADMIN });
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Add a model').selectOption('deepseek/*');
    expect(await page.getByRole('textbox', { name: 'Models' }).inputValue()).toBe('deepseek/*');
    await page.getByRole('textbox', { name: 'Models' }).fill('deepsek/*');
    await page.getByText('No known model matches deepsek/*').waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await context.close();
  });

  testOnce('D9 at 390 pixels spend and the chart come first, and no table scrolls sideways', async () => {
    const { page, context } = await signedIn({ width: 390 }, '#/overview?range=30d');
    await page.locator('.bar rect').first().waitFor({ state: 'attached' });
    const top = async (selector: string) => (await page.locator(selector).first().boundingBox())?.y ?? 0;
    expect(await top('.figures > div:first-child')).toBeLessThan(await top('.chart'));
    expect(await top('.chart')).toBeLessThan(await top('.figures > div:nth-child(2)'));
    // The filters are folded.
    const filter = page.getByLabel('Filter by user');
    expect(await filter.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Filters' }).click();
    await filter.waitFor();
    expect(await overflows(page)).toBe(false);
    expect(await violationsOf(page)).toEqual([]);
    for (const hash of ['#/overview?range=30d', '#/requests?range=30d', '#/keys']) {
      await page.goto(filled.page + hash);
      await page.locator('tbody tr').first().waitFor();
      const wide =
        "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth).length";
      expect(await page.evaluate<number>(wide), hash).toBe(0);
    }
    await context.close();
  });

  testOnce('D3 D9 at 360 pixels, names with the same beginning are distinguishable', async () => {
    const { page, context } = await signedIn({ width: 360 }, '#/overview?range=30d&by=model');
    await page.locator('tbody tr').first().waitFor();
    const cut = await page.evaluate<number>(
      "[...document.querySelectorAll('td.name bdi')].filter((name) => name.getBoundingClientRect().right > name.closest('td').getBoundingClientRect().right).length",
    );
    expect(cut).toBe(0);
    await context.close();
  });

  testOnce(
    'D3 range, metric, grouping and filters are in the URL, which gives the same view to others',
    async () => {
      const { page, context } = await signedIn({}, '#/overview?range=30d');
      await page.getByRole('combobox', { name: 'By', exact: true }).selectOption('provider');
      const table = (of: Page) => of.getByRole('region', { name: /^Use by/ });
      await table(page).getByRole('link', { name: 'deepseek', exact: true }).click();
      await page.locator('.figures').getByRole('link', { name: 'Tokens', exact: true }).click();
      const url = page.url();
      expect(url).toMatch(/by=model/);
      expect(url).toMatch(/provider=deepseek/);
      expect(url).toMatch(/metric=tokens/);
      await table(page).getByRole('link', { name: 'deepseek/deepseek-flash' }).waitFor();
      const rows = await page.locator('tbody').first().locator('tr').allInnerTexts();
      await context.close();
      const other = await signedIn({}, new URL(url).hash);
      await table(other.page).getByRole('link', { name: 'deepseek/deepseek-flash' }).waitFor();
      await settle(other.page);
      expect(await other.page.locator('tbody').first().locator('tr').allInnerTexts()).toEqual(rows);
      expect(rows.every((row) => row.startsWith('deepseek/'))).toBe(true);
      await other.page.getByRole('link', { name: 'Remove filter provider deepseek' }).click();
      await table(other.page).getByRole('link', { name: 'openai/gpt-4o-mini' }).waitFor();
      await other.context.close();
    },
  );

  testOnce('D7 an impossible range after one with records: no API call', async () => {
    const { page, context } = await signedIn({}, '#/overview?range=30d');
    await page.locator('.bar rect').first().waitFor({ state: 'attached' });
    await settle(page);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.goto(`${filled.page}#/overview?from=2026-11-25&to=2026-11-22`);
    await page.getByText('It begins on 2026-11-25').waitFor();
    await page.getByRole('link', { name: '30 d', exact: true }).click();
    await page.locator('.bar rect').first().waitFor({ state: 'attached' });
    expect(asked.filter((url) => url.includes('from=1970'))).toEqual([]);
    await context.close();
  });

  testOnce('D3 the chart by keyboard: the arrow keys describe each bar', async () => {
    const { page, context } = await signedIn({}, '#/overview?range=30d&by=provider');
    await page.locator('.bar rect').first().waitFor({ state: 'attached' });
    await page
      .getByRole('group', { name: /arrow keys/ })
      .first()
      .focus();
    const tip = page.locator('.tip').first();
    // A weekend may have no request of this provider.
    for (let presses = 0; presses < 30 && !(await tip.innerText()).includes('deepseek'); presses++)
      await page.keyboard.press('ArrowLeft');
    expect(await tip.innerText()).toMatch(/UTC – \$.*deepseek/s);
    await context.close();
  });

  testOnce('D4 the list loads more when it is scrolled, and a record describes how it ended', async () => {
    const { page, context } = await signedIn({}, '#/requests?range=30d');
    await page.locator('tbody tr').nth(49).waitFor();
    await page.mouse.move(600, 400);
    await page.mouse.wheel(0, 20_000);
    await page.locator('tbody tr').nth(99).waitFor();
    await page.getByLabel('Status').selectOption('failed');
    const priced = page.locator('tbody tr', { hasText: 'deepseek/deepseek-flash' });
    await priced.filter({ hasText: 'upstream_truncated' }).first().click();
    await page.getByText(/^Truncated after .* tokens$/).waitFor();
    const sheet = await page.locator('dialog').innerText();
    expect(sheet).toContain('broke off before the answer was finished');
    expect(sheet).toMatch(/by the price table, price since/);
    expect(sheet).toMatch(/first token after/);
    await context.close();
  });

  test('D4 a request is found by its id, and an id without a record shows a message', async () => {
    const { page, context } = await signedIn({}, '#/requests?range=30d');
    const link = page.locator('tbody tr a').nth(7);
    const id = /id=([0-9a-f-]+)/.exec((await link.getAttribute('href')) ?? '')?.[1] ?? '';
    await page.getByLabel('Search').fill(id);
    await page.keyboard.press('Enter');
    await page.locator('dialog', { hasText: id }).locator('.facts').waitFor();
    await page.keyboard.press('Escape');
    await page.getByLabel('Search').fill(`${id.slice(0, -4)}ffff`);
    await page.keyboard.press('Enter');
    await page.getByText('There is no record of this request').waitFor();
    await context.close();
  });

  testOnce('D4 a search that is typed while the list loads is kept, and Enter starts it', async () => {
    const { page, context } = await signedIn({}, '#/overview?range=30d');
    const held = Promise.withResolvers<void>();
    await page.route('**/v1/usage/records?*', async (route) => {
      await held.promise;
      await route.continue();
    });
    const asked = page.waitForRequest('**/v1/usage/records?*');
    await page.getByRole('navigation').getByText('Requests').click();
    await asked;
    const field = page.getByLabel('Search');
    await field.fill('mistral/mistral-small-latest');
    held.resolve();
    await page.locator('tbody tr a').first().waitFor();
    expect(await field.inputValue()).toBe('mistral/mistral-small-latest');
    await page.keyboard.press('Enter');
    await page.waitForURL(/search=mistral/);
    await context.close();
  });

  test('D5 a key is created and shown once, changed, and revoked after a confirmation', async () => {
    const { page, context, complaints } = await signedIn({}, '#/keys');
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('staging');
    await page.getByRole('textbox', { name: 'Models' }).fill('deepseek/*');
    await page.getByLabel('Amount').fill('0.5');
    await page.getByLabel('Requests a minute').fill('30');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const token = await page.locator('output').innerText();
    expect(token).toMatch(/^weir_[0-9a-f]{64}$/);
    await page.getByRole('button', { name: 'Copy the key' }).click();
    await page.getByText('Copied', { exact: true }).waitFor();
    expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(token);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    expect(await page.locator('body').innerText()).not.toContain(token);
    const line = page.locator('tr', { hasText: 'staging' });
    await line.getByText(/\$0 of \$0\.50 a month/).waitFor();
    await chooseAction(page, 'Change', 'staging');
    await page.getByLabel('Name').fill('staging two');
    await page.getByLabel('Requests a minute').fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    const changed = page.locator('tr', { hasText: 'staging two' });
    await changed.waitFor();
    expect(await changed.innerText()).not.toContain('requests/min');
    await chooseAction(page, 'Revoke', 'staging two');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
    await changed.waitFor({ state: 'detached' });
    const response = await filled.gateway.fetch('/v1/key', { headers: { authorization: `Bearer ${token}` } });
    expect(response.status).toBe(401);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D5 a budget that requests use: reloading the keys shows what was spent', async () => {
    const { page, context } = await signedIn({}, '#/keys');
    const { token } = await makeKey(filled.gateway, { name: 'small', budget: { tokens: 1300 } });
    await page.getByRole('button', { name: 'Refresh' }).click();
    const line = page.locator('tr', { hasText: 'small' });
    await line.getByText(/^0 tokens of 1,300 tokens in total/).waitFor();
    const body = {
      model: 'deepseek/deepseek-flash',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hello' }],
    };
    const ask = () =>
      filled.gateway.post('/v1/chat/completions', body, { headers: { authorization: `Bearer ${token}` } });
    let response = await ask();
    for (let asked = 1; asked < 20 && response.status === 200; asked++) {
      await response.text();
      response = await ask();
    }
    expect(response.status).toBe(429);
    expect(await response.text()).toContain('budget_exceeded');
    await page.getByRole('button', { name: 'Refresh' }).click();
    await line.getByText(/^[1-9]\d* tokens of 1,300 tokens in total/).waitFor();
    await context.close();
  });

  testOnce(
    'D5 a budget is raised for its period: the dialog, what the table then shows, and who added it',
    async () => {
      const { page, context, complaints } = await signedIn({}, '#/keys');
      const budget = [
        { USD: 20, per: 'day' },
        { USD: 300, per: 'month' },
      ];
      const { id } = await makeKey(filled.gateway, { name: 'raised', budget });
      await page.getByRole('button', { name: 'Refresh' }).click();
      const line = page.locator('tr', { hasText: 'raised' });
      await line.getByText(/^\$0 of \$20\.00 a day\s*\+1/).waitFor();
      await chooseAction(page, 'Top up', 'raised');
      const dialog = page.getByRole('dialog', { name: 'Add to the budget?' });
      expect(await dialog.getByLabel('For').locator('option').allInnerTexts()).toEqual([
        'USD today',
        'USD this month',
      ]);
      expect(await violationsOf(page)).toEqual([]);
      await dialog.getByRole('button', { name: 'Add', exact: true }).click();
      await dialog.getByRole('alert').waitFor();
      await dialog.getByLabel('Amount').fill('12.5');
      await dialog.getByLabel('For').selectOption('USD this month');
      await dialog.getByLabel('Note').fill('launch <week>');
      await dialog.getByRole('button', { name: 'Add', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
      await page.getByRole('link', { name: 'raised', exact: true }).click();
      await page.getByText(/^\$0 of \$312\.50 a month/).waitFor();
      expect(await page.locator('.facts').first().innerText()).toMatch(
        /\$20\.00 a day[\s\S]*\$12\.50 of it added/,
      );
      const topUp = page.getByRole('region', { name: 'Top-ups' }).locator('tbody tr');
      expect(await topUp.innerText()).toMatch(/admin token\s+\$12\.50\s+\d{4}-\d\d\s+launch <week>$/);
      const kept = await jsonOf(await filled.gateway.fetch(`/admin/keys/${id}`, { headers: ADMIN }));
      expect(kept.top_ups).toMatchObject([{ add: { USD: 12.5 }, per: 'month', note: 'launch <week>' }]);
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  testOnce('D5 an invalid field: the API’s message at that field', async () => {
    const { page, context } = await signedIn({}, '#/keys');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('bad');
    await page.getByLabel('Amount').fill('5.5');
    await page.getByLabel('Currency, or tokens').selectOption('tokens');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    expect(await page.getByRole('alert').innerText()).toContain('budget.tokens must be');
    expect(await page.getByLabel('Amount').getAttribute('aria-invalid')).toBe('true');
    await context.close();
  });

  test.each([1280, 390])(
    'D5 at %d pixels the name of a key leads to its page: limits, people, changes, last requests',
    async (width) => {
      const [{ id }] = filled.keys;
      const { page, context, complaints } = await signedIn({ width }, '#/keys');
      await page.getByRole('link', { name: 'web app', exact: true }).click();
      await page.getByRole('heading', { name: 'web app' }).waitFor();
      expect(new URL(page.url()).hash).toBe(`#/keys?id=${id}`);
      await page.getByText(/of \$0\.20 in total/).waitFor();
      const from = new Date(Date.now() - 29 * 24 * HOUR_MS).toISOString().slice(0, 10);
      const path = `/v1/usage?from=${from}&key=${id}&group_by=user&limit=20`;
      const report = objectsOf((await jsonOf(await filled.gateway.fetch(path, { headers: ADMIN }))).data);
      const people = page.getByRole('region', { name: 'People' });
      await expect.poll(() => people.locator('tbody tr').count()).toBe(report.length);
      await page.getByRole('region', { name: 'Changes' }).getByText('created').waitFor();
      expect(await page.getByRole('region', { name: 'Last requests' }).locator('tbody tr').count()).toBe(5);
      await page.getByRole('button', { name: 'Rotate web app' }).click();
      await page.getByRole('button', { name: 'Cancel' }).click();
      await settle(page);
      expect(await violationsOf(page)).toEqual([]);
      expect(await overflows(page)).toBe(false);
      await page.goto(`${filled.page}#/keys?id=0123456789abcdef`);
      await page.getByText('There is no such key').waitFor();
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  test('D3 failures over time are divided by their causes, whose sums are the API’s, and a cause leads to its requests', async () => {
    const { page, context, complaints } = await signedIn({}, '#/overview?range=30d&metric=failures');
    await settle(page);
    const from = new Date(Date.now() - 29 * 24 * HOUR_MS).toISOString().slice(0, 10);
    const report = await jsonOf(
      await filled.gateway.fetch(`/v1/usage?from=${from}&group_by=error`, { headers: ADMIN }),
    );
    const failed = objectsOf(report.data)
      .map((row) => [textOf(row.error), Number(row.failed_requests)] as const)
      .filter(([, requests]) => requests > 0);
    expect(failed.length).toBeGreaterThan(2);
    const table = page.getByRole('region', { name: 'Use by cause' });
    for (const [code, requests] of failed) {
      const row = table.locator('tbody tr', { has: page.getByText(code, { exact: true }) });
      expect(await row.innerText(), code).toMatch(new RegExp(`\\t${requests}\\t`));
    }
    expect(await page.locator('figcaption').first().innerText()).toMatch(/^Failures by day and cause/);
    const [[code]] = failed as [[string, number]];
    const row = table.locator('tbody tr', { has: page.getByText(code, { exact: true }) });
    await row.locator('.failed a').first().click();
    await page.getByRole('region', { name: 'Requests', exact: true }).waitFor();
    expect(decodeURIComponent(new URL(page.url()).hash)).toContain(`error=${code}`);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('M6 refused requests: the tile counts them, and the table has each code with its key', async () => {
    const { id, token } = await makeKey(filled.gateway, { name: 'refused app' });
    const ask = (bearer: string) =>
      filled.gateway.post(
        '/v1/chat/completions',
        { model: 'nowhere/x', messages: [{ role: 'user', content: 'Hello' }] },
        { headers: { authorization: `Bearer ${bearer}` } },
      );
    for (const bearer of [token, token, `weir_${'0'.repeat(64)}`]) await (await ask(bearer)).text();
    const { page, context, complaints } = await signedIn({}, `#/overview?range=24h&key=${id}`);
    const tile = page.locator('.figures > div', { hasText: 'Refused' }).locator('.value');
    const loaded = async () => {
      await page.getByRole('button', { name: 'Refresh' }).click();
      await settle(page);
      return tile.innerText();
    };
    await expect.poll(loaded).toBe('2');
    const table = page.getByRole('region', { name: 'Refused requests' });
    expect(await table.locator('tbody tr').allInnerTexts()).toEqual([
      expect.stringMatching(/^model_not_found\s+an unknown model\s+refused app\s+2$/),
    ]);
    expect(await violationsOf(page)).toEqual([]);
    await page.goto(`${filled.page}#/overview?range=24h`);
    await table.locator('tr', { hasText: 'invalid_api_key' }).filter({ hasText: 'unknown' }).waitFor();
    // Refused requests have no model.
    await page.goto(`${filled.page}#/overview?range=24h&model=deepseek/deepseek-flash`);
    await expect.poll(() => tile.innerText()).toBe('–');
    expect(complaints).toEqual([]);
    await context.close();
    const own = await signedIn({}, '#/overview?range=24h', token);
    await own.page.locator('tr', { hasText: 'model_not_found' }).waitFor();
    expect(await own.page.locator('main').innerText()).not.toContain('invalid_api_key');
    await own.context.close();
  });

  test('D2 a gateway key sees only its own usage and limits', async () => {
    const [web] = filled.keys;
    const { page, context, complaints } = await signedIn({}, '#/overview?range=30d', web.token);
    await settle(page);
    const asked = await page.locator('tbody').first().innerText();
    expect(asked).toContain('mistral/mistral-small-latest');
    expect(
      await page.getByRole('combobox', { name: 'By', exact: true }).locator('option').allInnerTexts(),
    ).not.toContain('Key');
    await page.getByRole('link', { name: 'Key', exact: true }).click();
    await page.getByText('$0.20 in total').waitFor();
    await page.getByText('of 60').waitFor();
    expect(await violationsOf(page)).toEqual([]);
    const main = page.locator('main');
    expect(await main.innerText()).toContain(`export OPENAI_BASE_URL=${filled.gateway.url}/v1`);
    await page.getByText('Claude Code', { exact: true }).click();
    await page
      .locator('details[open]')
      .getByText(`export ANTHROPIC_BASE_URL=${filled.gateway.url}`)
      .waitFor();
    expect(await main.innerHTML()).not.toContain(web.token);
    expect(await page.locator('.columns a').first().innerText()).toContain('/');
    const last = page.getByRole('region', { name: 'Last requests', exact: true });
    expect(await last.locator('tbody tr').count()).toBe(5);
    await page
      .getByText('No failures in the last 30 days')
      .or(page.getByRole('region', { name: 'Last failures' }))
      .waitFor();
    await last.locator('tbody a').first().click();
    await page.locator('dialog .facts').waitFor();
    await page.keyboard.press('Escape');
    expect(complaints).toEqual([]);
    await context.close();
  });

  testOnce('D2 the token is kept for this tab alone, or only in memory; signing out removes it', async () => {
    const { page, context } = await open(browser, filled.page);
    const hint = page.locator('#token-hint');
    expect(await hint.innerText()).not.toContain('AUTH=open');
    await page.getByLabel('Keep it for this tab').uncheck();
    await signIn(page, ADMIN_TOKEN);
    expect(
      await page.evaluate<string>('JSON.stringify([{ ...sessionStorage }, { ...localStorage }])'),
    ).not.toContain(ADMIN_TOKEN);
    expect(await context.cookies()).toEqual([]);
    await page.reload();
    expect(await page.getByLabel('Keep it for this tab').isChecked()).toBe(true);
    await signIn(page, ADMIN_TOKEN);
    expect(await page.evaluate<string>('JSON.stringify({ ...localStorage })')).not.toContain(ADMIN_TOKEN);
    await page.reload();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Admin token or gateway key').waitFor();
    expect(await page.evaluate<string | null>("sessionStorage.getItem('weir-token')")).toBe(null);
    await context.close();
  });
});
