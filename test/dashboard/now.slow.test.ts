/** Tests the view of what happens now, what is out of the ordinary, saved views and shared links, in Chromium (D2, D7, D9, D10). */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { UsageRecord } from '../../src/metering/record.ts';
import { fill } from '../../tools/simulator/demo-records.ts';
import { objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { jsonOf } from '../e2e/client.ts';
import { ADMIN_TOKEN } from '../e2e/gateway.ts';
import { record } from '../metering/records.ts';
import { overflows, tabTo, violationsOf } from './axe.ts';
import { alter, hasChromium, type Look, launch, open, settle, signIn, type Watched } from './browser.ts';
import { ADMIN, type Filled, makeKey, startFilled } from './filled.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const FAILING = 'mistral/large-that-fails';

let browser: Browser;
let filled: Filled;

/** Of the last minutes: seven of eight requests of a model failed. */
function failingRecords(keyId: string): UsageRecord[] {
  const now = Date.now();
  return Array.from({ length: 8 }, (_, n) => {
    const failed = { status: 'failed', error_code: 'upstream_overloaded', fault: 'provider' } as const;
    const own = { asked: FAILING, key_id: keyId, time: new Date(now - MINUTE_MS - n * 1000).toISOString() };
    return record({ ...own, ...(n > 0 && failed) }, 0xbad00 + n);
  });
}

/** 1 cent in each of ten hours, and 50 in the last. */
function expensiveRecords(keyId: string): UsageRecord[] {
  const now = Date.now();
  return Array.from({ length: 11 }, (_, hoursAgo) => {
    const time = new Date(now - hoursAgo * HOUR_MS - 1000).toISOString();
    const cost_nanos = hoursAgo === 0 ? 500_000_000 : 10_000_000;
    return record(
      { key_id: keyId, time, cost_nanos, currency: 'USD', cost_source: 'upstream' },
      0xc0de00 + hoursAgo,
    );
  });
}

describe.runIf(hasChromium)('now', () => {
  let spender: string;
  beforeAll(async () => {
    [browser, filled] = await Promise.all([launch(), startFilled({ pace: 15, vars: { LEDGER: 'object' } })]);
    const { id } = await makeKey(filled.gateway, { name: 'spender', budget: { USD: 40, per: 'month' } });
    spender = id;
    await fill(filled.gateway.url, [...failingRecords(id), ...expensiveRecords(id)]);
  });
  afterAll(async () => {
    await browser.close();
    await filled[Symbol.asyncDispose]();
  });

  async function signedIn(hash: string, look: Look = {}, token = ADMIN_TOKEN): Promise<Watched> {
    const watched = await open(browser, filled.page + hash, { locale: 'en-US', ...look });
    await signIn(watched.page, token);
    await settle(watched.page);
    return watched;
  }
  const figure = (page: Page, name: string) => page.locator('.now dl', { hasText: name });

  test('D10 requests in flight of the isolate and of a key with a limit, spend against forecast and budgets, errors of ten minutes', async () => {
    const [, agents] = filled.keys;
    const asked = new AbortController();
    const body = {
      model: 'deepseek/deepseek-flash:stall-mid',
      stream: true,
      messages: [{ role: 'user', content: 'Hi' }],
    };
    const headers = { authorization: `Bearer ${agents.token}` };
    const response = await filled.gateway.post('/v1/chat/completions', body, {
      headers,
      signal: asked.signal,
    });
    const { page, context, complaints } = await signedIn('#/now');
    await page.getByText(/^agents 1 of 8$/).waitFor();
    await figure(page, 'In flight').getByText('1', { exact: true }).waitFor();
    await figure(page, 'In flight').getByText('in the isolate that answered').waitFor();
    const spend = figure(page, 'Spend today (UTC)');
    await spend.getByText(/\$[\d.]+ this month, \$[\d.]+ at the pace of the last 7 days/).waitFor();
    await spend.getByText('of $40.00: the monthly budgets of 1 of 4 keys').waitFor();
    expect(await spend.getByRole('meter').getAttribute('aria-label')).toMatch(/^Spent this month \$/);
    await figure(page, 'Errors').getByText('7', { exact: true }).waitFor();
    const errors = page.getByRole('region', { name: 'Errors' });
    expect(await errors.locator('tbody tr').count()).toBe(7);
    await errors.locator('tbody a').first().click();
    await page.locator('dialog .facts').waitFor();
    expect(complaints).toEqual([]);
    await context.close();
    asked.abort();
    await response.body?.cancel().catch(() => {});
  });

  test('D10 a refresh replaces figures in place: while it loads, and when it fails, they stay', async () => {
    const { page, context } = await signedIn('#/now');
    await figure(page, 'Errors').getByText('7', { exact: true }).waitFor();
    const text = () => page.locator('.now').innerText();
    const before = await text();
    await page.evaluate(
      "globalThis.seen = new Set(); new MutationObserver(() => seen.add(document.querySelector('.now')?.innerText ?? 'gone')).observe(document.body, { childList: true, characterData: true, subtree: true })",
    );
    const held = Promise.withResolvers<void>();
    await page.route('**/v1/usage**', async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Refresh' }).click();
    expect(await text()).toBe(before);
    held.resolve();
    await page.waitForResponse('**/v1/usage/records?*');
    expect(
      await page.evaluate<string[]>("[...seen].filter((one) => one === 'gone' || /\\n[–…]/.test(one))"),
    ).toEqual([]);
    await page.unroute('**/v1/usage**');
    await page.route('**/v1/usage**', (route) => route.abort());
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page
      .locator('.stale')
      .getByText(/You see the data of/)
      .waitFor();
    await figure(page, 'Errors').getByText('7', { exact: true }).waitFor();
    await context.close();
  });

  test('D10 it refreshes by itself while the page is visible, until the switch is off', async () => {
    const { page, context } = await signedIn('#/keys');
    await page.clock.install();
    await page.goto(`${filled.page}#/now`);
    await figure(page, 'Errors').getByText('7', { exact: true }).waitFor();
    const again = page.waitForRequest('**/v1/usage/records?*');
    await page.clock.runFor(15_000);
    await again;
    await page.getByLabel('every 15 s').uncheck();
    await page.waitForURL(/refresh=off/);
    let calls = 0;
    page.on('request', () => calls++);
    await page.clock.runFor(MINUTE_MS);
    expect(calls).toBe(0);
    await context.close();
  });

  test.each(['now', 'overview?range=24h'])(
    'D10 %s says in words what is out of the ordinary, with links',
    async (view) => {
      const { page, context, complaints } = await signedIn(`#/${view}`);
      const list = page.getByRole('list', { name: 'Out of the ordinary' });
      await list.getByText(/spender spent 50 times its usual hour: \$0\.50 in the hour from \d/).waitFor();
      const failing = list.locator('li', { hasText: FAILING });
      // One succeeded after the others.
      expect(await failing.innerText()).toMatch(
        /^88% of mistral\/large-that-fails failed since \d.* 7 of 8 requests$/,
      );
      expect(await violationsOf(page)).toEqual([]);
      await failing.getByRole('link').click();
      await page.locator('tbody tr', { hasText: 'failed' }).nth(6).waitFor();
      expect(await page.locator('tbody tr').count()).toBe(7);
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  test('D10 a key sees its own requests in flight and its own budget; a range of the past has no news', async () => {
    const { page, context } = await signedIn('#/now', {}, filled.keys[1].token);
    await figure(page, 'In flight').getByText('of 8 of this key').waitFor();
    await page.goto(`${filled.page}#/overview?from=2026-10-01&to=2026-10-02`);
    await settle(page);
    expect(await page.locator('.anomalies').count()).toBe(0);
    await context.close();
  });

  test('D11 by keyboard alone: a view is saved in the browser, opened and removed', async () => {
    const { page, context, complaints } = await signedIn('#/overview?range=30d&by=user&metric=tokens');
    const dialog = page.getByRole('dialog');
    await tabTo(page, page.getByRole('button', { name: 'Views' }));
    await page.keyboard.press('Enter');
    await tabTo(page, dialog.getByLabel('Save this view as'));
    await page.keyboard.press('Control+A');
    await page.keyboard.type(`Tokens of users ${'x'.repeat(84)}`);
    await page.keyboard.press('Enter');
    await dialog.getByRole('link', { name: 'Tokens of users' }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    expect(await overflows(page)).toBe(false);
    await page.keyboard.press('Escape');
    await page.goto(`${filled.page}#/keys`);
    await page.reload();
    await page.getByRole('button', { name: 'Views' }).click();
    await tabTo(page, dialog.getByRole('link', { name: 'Tokens of users' }));
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/overview\?range=30d&by=user&metric=tokens$/);
    await page.getByRole('button', { name: 'Views' }).click();
    await dialog.getByRole('button', { name: /^Remove Tokens of users/ }).click();
    expect(await dialog.getByRole('link').count()).toBe(0);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D11 a shared link shows the view without the admin token, reads what it is bound to, and ends when it is revoked', async () => {
    const { page, context, complaints } = await signedIn(`#/requests?range=7d&key=${spender}&status=failed`);
    await page.getByRole('button', { name: 'Views' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('A link that shows it without the admin token').click();
    await dialog.getByText('only usage and records of key spender').waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await dialog.getByLabel('Days until it expires').fill('3');
    await dialog.getByRole('button', { name: 'Make the link' }).click();
    const link = await dialog.locator('output').innerText();
    expect(complaints).toEqual([]);
    await context.close();

    // A tab with the page: only its hash changes.
    const reader = await open(browser, filled.page);
    const sent: string[] = [];
    reader.page.on('request', (request) => sent.push(request.url()));
    await reader.page.goto(link);
    await reader.page.locator('tbody tr').nth(6).waitFor();
    expect(await reader.page.locator('tbody tr').count()).toBe(7);
    // The token is in no address: neither of the page nor of a request.
    expect(reader.page.url()).not.toContain('weir-usage_');
    expect(sent.filter((url) => url.includes('weir-usage_'))).toEqual([]);
    expect(await reader.page.getByRole('navigation').getByRole('link').allInnerTexts()).toEqual([
      ...['Overview', 'Now', 'Requests'],
    ]);
    await reader.page.reload();
    await reader.page.locator('tbody tr').nth(6).waitFor();
    expect(await reader.page.locator('tbody tr').count()).toBe(7);
    await reader.page.goto(`${filled.page}#/overview?range=30d`);
    await reader.page.getByRole('region', { name: 'Use by model' }).locator('tbody tr').first().waitFor();
    expect(await reader.page.locator('main').innerText()).not.toContain('gpt-4o-mini');
    expect(await violationsOf(reader.page)).toEqual([]);
    expect(reader.complaints).toEqual([]);
    await reader.context.close();

    const listed = await jsonOf(await filled.gateway.fetch('/admin/keys', { headers: ADMIN }));
    const [token] = objectsOf(listed.tokens);
    expect(token).toMatchObject({ name: 'Link to Requests', filter: { key: spender } });
    const left = Date.parse(textOf(token?.expires_at)) - Date.now();
    expect(left).toBeGreaterThan(2.9 * 24 * HOUR_MS);
    await filled.gateway.fetch(`/admin/keys/${textOf(token?.id)}`, { method: 'DELETE', headers: ADMIN });
    const late = await open(browser, link);
    await late.page.getByText('This link has expired or was revoked').waitFor();
    expect(await late.page.evaluate<string | null>("sessionStorage.getItem('weir-token')")).toBe(null);
    await late.context.close();
  });

  test.each([
    ['the admin token is in memory, and the link is opened in the same tab', false],
    ['the admin token is kept for the tab, and the link is opened anew', true],
  ])('D11 a shared link asks before it replaces a session: %s', async (_, isKept) => {
    const { page, context, complaints } = await open(browser, filled.page);
    await page.getByLabel('Admin token or gateway key').fill(ADMIN_TOKEN);
    if (!isKept) await page.getByLabel('Keep it for this tab').uncheck();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation').getByRole('link', { name: 'Keys' }).waitFor();
    const made = await jsonOf(
      await filled.gateway.post('/admin/keys', { name: 'reader', scope: 'usage' }, { headers: ADMIN }),
    );
    const link = `${filled.page}#/requests?range=7d&token=${textOf(made.key)}`;
    const follow = async () => {
      if (isKept) await page.goto('about:blank');
      await page.goto(link);
      await page.getByRole('button', { name: 'Stay signed in' }).waitFor();
      expect(page.url()).not.toContain('weir-usage_');
    };
    const stored = () => page.evaluate<string | null>("sessionStorage.getItem('weir-token')");
    await follow();
    expect(await violationsOf(page)).toEqual([]);
    expect(await stored()).toBe(isKept ? ADMIN_TOKEN : null);
    await page.getByRole('button', { name: 'Stay signed in' }).click();
    await page.getByRole('navigation').getByRole('link', { name: 'Keys' }).waitFor();
    expect(await stored()).toBe(isKept ? ADMIN_TOKEN : null);
    await page.goto(`${filled.page}#/overview`);
    await follow();
    await page.getByRole('button', { name: 'Use the link’s token' }).click();
    await page.getByText('Read only').waitFor();
    expect(await page.getByRole('navigation').getByRole('link', { name: 'Keys' }).count()).toBe(0);
    // A reader's token is replaced without a question.
    await page.goto(`${filled.page}#/overview`);
    await page.goto(link);
    await page.getByText('Read only').waitFor();
    expect(complaints).toEqual([]);
    await context.close();
    await filled.gateway.fetch(`/admin/keys/${textOf(made.id)}`, { method: 'DELETE', headers: ADMIN });
  });

  test('D11 an address with another token than one that reads usage: the page does not use it', async () => {
    const { page, context } = await open(browser, `${filled.page}#/overview?token=${ADMIN_TOKEN}`);
    await page.getByLabel('Admin token or gateway key').waitFor();
    await context.close();
  });

  test('D9 five hundred models with names of 120 letters: every view that lists them, without sideways scrolling', async () => {
    const many = Array.from(
      { length: 500 },
      (_, n) => `provider/${'m'.repeat(106)}-${String(n).padStart(4, '0')}`,
    );
    const { page, context, complaints } = await signedIn('#/keys', { width: 320 });
    await page.route('**/v1/models**', (route) =>
      route.fulfill({
        json: { data: many.map((id) => ({ id })) },
      }),
    );
    await alter(page, '**/v1/usage?*', (report, query) => {
      const rows = many.map((model, n) => ({ ...objectOf(report.total), model, cost: { USD: n } }));
      return query.get('group_by') === 'model' ? { ...report, data: rows } : report;
    });
    for (const hash of ['#/overview?range=30d', '#/now', '#/live', '#/keys']) {
      await page.goto(filled.page + hash);
      await settle(page);
      expect(await overflows(page), hash).toBe(false);
    }
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Add a model').selectOption(many[499] ?? '');
    expect(await overflows(page)).toBe(false);
    await page.keyboard.press('Escape');
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D7 the server down and a token that has expired: every view says so', async () => {
    const { page, context } = await signedIn('#/overview');
    for (const [answer, words] of [
      [{ status: 502, contentType: 'text/html', body: '<h1>Bad gateway</h1>' }, 'The request failed (502)'],
      [
        { status: 401, json: { error: { code: 'invalid_api_key', message: 'Expired' } } },
        'not accepted any more',
      ],
    ] as const) {
      await page.route(/\/(v1|admin)\//, (route) => route.fulfill(answer));
      for (const view of ['now', 'requests', 'keys', 'health', 'audit', 'overview']) {
        await page.goto(`${filled.page}#/${view}`);
        await page.getByRole('alert').first().getByText(words).waitFor();
        expect(await violationsOf(page), view).toEqual([]);
      }
      await page.unroute(/\/(v1|admin)\//);
      await page.getByRole('button', { name: 'Refresh' }).click();
      await page.locator('tbody tr').first().waitFor();
    }
    await context.close();
  });
});
