/** Tests the page's empty, loading and error states and hostile data, in Chromium (D2, D7, D9). */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { UsageRecord } from '../../src/metering/record.ts';
import { fill } from '../../tools/simulator/demo-records.ts';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { jsonOf } from '../e2e/client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from '../e2e/gateway.ts';
import { record } from '../metering/records.ts';
import { overflows, tabTo, violationsOf } from './axe.ts';
import { alter, chooseAction, hasChromium, launch, open, settle, signIn } from './browser.ts';
import { ADMIN, makeKey } from './filled.ts';

const HOUR_MS = 3_600_000;
const MARKUP = '<img src=x onerror=alert(1)><script>alert(2)</script>';
const RIGHT_TO_LEFT = '\u202egnp.exe\u202c \u05e9\u05dc\u05d5\u05dd';
const LONG = 'm'.repeat(200);

const NOWHERE = { x: -1, y: -1, width: 0, height: 0 };

/** Records of three hours ago, one per millisecond. */
function recordsOf(some: readonly Partial<UsageRecord>[]): UsageRecord[] {
  const from = Date.now() - 3 * HOUR_MS;
  return some.map((fields, n) => record({ time: new Date(from + n).toISOString(), ...fields }, n));
}

describe.runIf(hasChromium)('states', () => {
  let browser: Browser;
  let gateway: Gateway;
  let page: Page;
  let complaints: string[];
  const url = (hash = '') => `${gateway.url}/llm/dashboard${hash}`;

  beforeAll(async () => {
    [browser, gateway] = await Promise.all([
      launch(),
      startGateway({
        entrypoint: '../../tools/simulator/filled-worker.ts',
        vars: { AUTH: 'keys', BASE_PATH: '/llm' },
      }),
    ]);
    ({ page, complaints } = await open(browser, url()));
  });
  afterAll(async () => {
    await browser.close();
    await gateway[Symbol.asyncDispose]();
  });

  test('D2 D7 a wrong token of any kind shows a message, and so does a sign-in without a connection', async () => {
    const field = page.getByLabel('Admin token or gateway key');
    for (const token of ['not-the-token', `weir_${'0'.repeat(64)}`]) {
      await field.fill(token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('This token is not accepted.').waitFor();
      expect(await violationsOf(page)).toEqual([]);
    }
    await page.context().setOffline(true);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('You may be offline').waitFor();
    await page.context().setOffline(false);
    expect(complaints).toEqual([]);
  });

  test('D1 D7 without data, below BASE_PATH: each view says what it will show, and that records take a minute', async () => {
    await signIn(page, ADMIN_TOKEN);
    await page.getByText('No requests in this range').waitFor();
    expect(await page.locator('main').innerText()).toContain('within a minute');
    expect(await violationsOf(page)).toEqual([]);
    for (const [view, words] of [
      ['requests', 'No requests in this range'],
      ['requests?model=m', 'No requests fit these filters'],
      ['keys', 'There are no keys yet'],
      ['live', 'No request yet'],
    ] as const) {
      await page.goto(url(`#/${view}`));
      await page.getByText(words).waitFor();
      expect(await violationsOf(page)).toEqual([]);
    }
    expect(complaints).toEqual([]);
  });

  test('D7 a range that is too large: the message names the problem and a solution', async () => {
    await page.goto(url('#/overview?from=2020-01-01&to=2026-11-22'));
    await page.getByText('This range is too large').waitFor();
    expect(await page.getByRole('alert').innerText()).toMatch(/At most 366 days/);
    expect(await violationsOf(page)).toEqual([]);
    await page.getByRole('link', { name: '24 h', exact: true }).click();
    await page.getByText('No requests in this range').waitFor();
  });

  test('D7 the day fields of "24 h" are the covered days, also across midnight', async () => {
    for (const now of ['2026-11-22T14:02:00Z', '2026-11-22T23:30:00Z', '2026-11-23T00:10:00Z']) {
      const own = await open(browser, url());
      await own.page.clock.setFixedTime(now);
      await own.page.goto(url('?at=1#/overview?range=24h'));
      await signIn(own.page, ADMIN_TOKEN);
      const end = Math.floor(Date.parse(now) / HOUR_MS + 1) * HOUR_MS;
      const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
      expect([
        await own.page.getByLabel('From day (UTC)').inputValue(),
        await own.page.getByLabel('To day (UTC)').inputValue(),
      ]).toEqual([dayOf(end - 24 * HOUR_MS), dayOf(end - 1)]);
      await own.page.getByRole('link', { name: '7 d', exact: true }).click();
      await expect.poll(() => own.page.getByLabel('To day (UTC)').inputValue()).toBe(now.slice(0, 10));
      await own.context.close();
    }
  });

  test.each(['overview', 'requests'])(
    'D7 an impossible range of the %s shows a message and keeps the input',
    async (view) => {
      const own = await open(browser, url(`#/${view}?from=2026-11-20&to=2026-11-21`));
      await signIn(own.page, ADMIN_TOKEN);
      const [from, to] = [own.page.getByLabel('From day (UTC)'), own.page.getByLabel('To day (UTC)')];
      const problem = own.page.getByRole('alert');
      await from.fill('2026-11-25');
      await problem.getByText('It begins on 2026-11-25, after its end on 2026-11-21').waitFor();
      expect([await from.inputValue(), await to.inputValue()]).toEqual(['2026-11-25', '2026-11-21']);
      expect(await from.getAttribute('aria-invalid')).toBe('true');
      expect(await violationsOf(own.page)).toEqual([]);
      expect(await own.page.locator('table, .chart').count()).toBe(0);
      await from.fill('2026-11-01');
      await problem.waitFor({ state: 'detached' });
      await own.page.goto(url(`#/${view}?from=2998-01-01&to=2999-01-01`));
      await problem.getByText(/It begins on 2998-01-01, and today is \d{4}-\d\d-\d\d \(UTC\)/).waitFor();
      await own.page.goto(url(`#/${view}?from=2026-13-45&to=2026-11-21`));
      await problem.getByText('Choose the first and the last day').waitFor();
      await own.page.getByRole('link', { name: '24 h', exact: true }).click();
      await problem.waitFor({ state: 'detached' });
      expect(own.complaints).toEqual([]);
      await own.context.close();
    },
  );

  test('D5 the menu of actions is visible at every width, for keys with the README’s limits', async () => {
    const fields = {
      models: ['deepseek/*', 'mistral/*'],
      expires_at: '2999-01-01T00:00:00Z',
      budget: { USD: 5, per: 'month', mode: 'hard' },
      rpm: 60,
      tpm: 200_000,
      max_concurrent: 10,
      max_output_tokens: 4096,
    };
    const keys = [await makeKey(gateway, { name: 'team-a', ...fields }, '/llm')];
    keys.push(await makeKey(gateway, { name: 'team-b', models: fields.models }, '/llm'));
    for (const width of [390, 768, 1440]) {
      const own = await open(browser, url('#/keys'), { width });
      await signIn(own.page, ADMIN_TOKEN);
      // Rows grow when their budget and last use are loaded.
      await own.page.locator('.meter').first().waitFor();
      await own.page.getByText('not in 30 d').first().waitFor({ state: 'attached' });
      const button = own.page.getByRole('button', { name: 'Actions of team-a' });
      await button.waitFor();
      // Playwright would scroll to the button. This checks the position without scrolling.
      const { x, y, width: wide, height } = (await button.boundingBox()) ?? NOWHERE;
      for (const at of [x + 2, x + wide - 2]) {
        const seen = await own.page.evaluate<string | null>(
          `document.elementFromPoint(${at}, ${y + height / 2})?.getAttribute('aria-label')`,
        );
        expect(seen, `at ${width} pixels`).toBe('Actions of team-a');
      }
      expect(await overflows(own.page)).toBe(false);
      expect(await violationsOf(own.page)).toEqual([]);
      await own.context.close();
    }
    for (const { id } of keys)
      await gateway.fetch(`/llm/admin/keys/${id}`, { method: 'DELETE', headers: ADMIN });
  });

  test('K4 D5 the form offers the existing units, and warns about keys that cannot be used', async () => {
    const own = await open(browser, url('#/keys'));
    await signIn(own.page, ADMIN_TOKEN);
    await own.page.getByRole('button', { name: 'Create key' }).click();
    await own.page.getByLabel('Name').fill('misspelt');
    await own.page.getByRole('textbox', { name: 'Models' }).fill('deepsek/*');
    const unit = own.page.getByLabel('Currency, or tokens');
    await expect.poll(() => unit.locator('option').allInnerTexts()).toEqual(['USD', 'tokens']);
    expect(await own.page.getByText('Currency, or tokens').isVisible()).toBe(true);
    await own.page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const warning = own.page.getByRole('alert');
    await warning.getByText('Did you mean deepseek/*?').waitFor();
    expect(await own.page.locator('output').innerText()).toMatch(/^weir_/);
    expect(await violationsOf(own.page)).toEqual([]);
    await own.page.getByRole('button', { name: 'I have copied it' }).click();
    await chooseAction(own.page, 'Change', 'misspelt');
    await own.page.getByRole('textbox', { name: 'Models' }).fill('opnai/*');
    await own.page.getByRole('button', { name: 'Save' }).click();
    await warning.getByText('Did you mean openai/*?').waitFor();
    await own.page.getByRole('button', { name: 'Close' }).click();
    await chooseAction(own.page, 'Change', 'misspelt');
    await own.page.getByRole('textbox', { name: 'Models' }).fill('openai/*');
    await own.page.getByRole('button', { name: 'Save' }).click();
    await own.page.locator('dialog').waitFor({ state: 'detached' });
    await chooseAction(own.page, 'Revoke', 'misspelt');
    await own.page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
    await own.page.locator('dialog').waitFor({ state: 'detached' });
    expect(own.complaints).toEqual([]);
    await own.context.close();
  });

  test('Y2 D5 a key fixes its user and tags in the form, and the table shows and finds them', async () => {
    const own = await open(browser, url('#/keys'));
    await signIn(own.page, ADMIN_TOKEN);
    await own.page.getByRole('button', { name: 'Create key' }).click();
    const dialog = own.page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('of a person');
    await dialog.getByText('User and tags of all its requests').click();
    await dialog.getByLabel('Set user').fill('ada@example.com');
    await dialog.getByLabel('Set tags').fill('team=search, Not Valid=1');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    expect(await dialog.getByRole('alert').innerText()).toContain('tags must be an object');
    expect(await dialog.getByLabel('Set tags').getAttribute('aria-invalid')).toBe('true');
    await dialog.getByLabel('Set tags').fill('team=search, formula=a=b+c');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.locator('output').waitFor();
    await own.page.getByRole('button', { name: 'I have copied it' }).click();
    const row = own.page.locator('tr', { hasText: 'of a person' });
    await row.getByText('team=search, formula=a=b+c').waitFor();
    expect(await row.innerText()).toContain('ada@example.com');
    const listed = async () => {
      const { data } = await jsonOf(await gateway.fetch('/llm/admin/keys', { headers: ADMIN }));
      return objectsOf(data).find(({ name }) => name === 'of a person');
    };
    expect(await listed()).toMatchObject({
      user: 'ada@example.com',
      tags: { team: 'search', formula: 'a=b+c' },
    });
    await chooseAction(own.page, 'Change', 'of a person');
    await dialog.getByLabel('Refuse requests without a user').check();
    await dialog.getByLabel('Set user').fill('');
    expect(await violationsOf(own.page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(listed).toMatchObject({ tags: { team: 'search' }, require_user: true });
    expect(await listed()).not.toHaveProperty('user');
    for (let n = 0; n < 10; n++) await makeKey(gateway, { name: `other ${n}` }, '/llm');
    await own.page.getByRole('button', { name: 'Refresh' }).click();
    await own.page.getByRole('searchbox', { name: 'Search in Keys' }).fill('SEARCH');
    await expect
      .poll(() => own.page.getByRole('region', { name: 'Keys', exact: true }).locator('tbody tr').count())
      .toBe(1);
    expect(own.complaints).toEqual([]);
    await own.context.close();
    const { data } = await jsonOf(await gateway.fetch('/llm/admin/keys', { headers: ADMIN }));
    for (const { id } of objectsOf(data))
      await gateway.fetch(`/llm/admin/keys/${textOf(id)}`, { method: 'DELETE', headers: ADMIN });
  });

  test('D3 Y8 users beyond the rows of a report: the bars have the total, with Others', async () => {
    const own = await open(browser, url());
    // The API's response to this many users has its own tests.
    await alter(own.page, '**/v1/usage?*', (report, query) => {
      // The last day of the page's range.
      const day = new Date(Date.parse(query.get('to') ?? '') - 1).toISOString().slice(0, 10);
      const row = (groups: object, USD: number) => ({
        ...objectOf(report.total),
        requests: 2,
        ...groups,
        cost: { USD },
      });
      const rows: JsonObject = {
        user: [row({ user: 'ada' }, 3), row({ user: '(other)' }, 7)],
        'day,user': [row({ day, user: 'ada' }, 3), row({ day: '(other)', user: '(other)' }, 7)],
        day: [row({ day }, 10)],
      };
      return { ...report, data: rows[query.get('group_by') ?? ''] ?? report.data, total: row({}, 10) };
    });
    await signIn(own.page, ADMIN_TOKEN);
    await own.page.goto(url('#/overview?by=user&range=7d'));
    await own.page.locator('.bar rect').first().waitFor({ state: 'attached' });
    await own.page.getByRole('group', { name: /arrow keys/ }).focus();
    await own.page.keyboard.press('ArrowLeft');
    expect((await own.page.locator('.tip').innerText()).replaceAll(/\s+/g, ' ')).toMatch(
      /\$10\.00 ada \$3\.00 Others \$7\.00$/,
    );
    const others = own.page.locator('tbody tr', { hasText: 'all others' });
    expect(await others.locator('a').count()).toBe(0);
    expect(own.complaints).toEqual([]);
    await own.context.close();
  });

  test('D7 the page shows that it is loading or offline, and Try again continues', async () => {
    const held = Promise.withResolvers<void>();
    await page.route('**/v1/usage?*', async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.goto(url('#/overview?range=30d'));
    await page.locator('[aria-busy="true"]').first().waitFor();
    expect(await violationsOf(page)).toEqual([]);
    held.resolve();
    await settle(page);
    await page.unroute('**/v1/usage?*');
    await page.context().setOffline(true);
    await page.getByRole('link', { name: '90 d', exact: true }).click();
    await page.getByText("The deployment can't be reached").waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await page.context().setOffline(false);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('No requests in this range').waitFor();
    expect(complaints).toEqual([]);
  });

  test('L8 D7 Health names the keys whose full object has deleted records or cannot archive them, and what to do', async () => {
    const shown = (hasArchive: boolean, key: JsonObject) =>
      alter(page, '**/v1/admin/status', (answer) => ({
        ...answer,
        ledger: { ...objectOf(answer.ledger), store: 'object', has_archive: hasArchive, full_keys: [key] },
      }));
    const key = { key_id: 'busy', deleted_records: 4321, deleted_before: '2026-11-20T10:00:00.000Z' };
    await shown(false, { ...key, archive_failing_since: null, reason: null });
    await page.goto(url('#/health'));
    await page.getByText('Bind an R2 bucket as WEIR_ARCHIVE').waitFor();
    expect(await page.getByRole('region', { name: 'Full ledgers' }).innerText()).toMatch(/busy\s+4,321/);
    expect(await violationsOf(page)).toEqual([]);
    await page.unroute('**/v1/admin/status');
    const failing = { archive_failing_since: '2026-11-21T08:00:00.000Z', reason: MARKUP };
    await shown(true, { key_id: 'busy', deleted_records: 0, deleted_before: null, ...failing });
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('Records cannot be archived').waitFor();
    expect(await page.getByRole('region', { name: 'Full ledgers' }).innerText()).toContain(MARKUP);
    expect(await violationsOf(page)).toEqual([]);
    expect(await overflows(page)).toBe(false);
    await page.unroute('**/v1/admin/status');
    expect(complaints).toEqual([]);
  });

  test('D7 a key that is revoked while signed in: the page offers to sign out', async () => {
    const key = await makeKey(gateway, { name: 'short-lived' }, '/llm');
    const own = await open(browser, url());
    await signIn(own.page, key.token);
    await settle(own.page);
    await gateway.fetch(`/llm/admin/keys/${key.id}`, { method: 'DELETE', headers: ADMIN });
    await own.page.getByRole('link', { name: '90 d', exact: true }).click();
    await own.page.getByText('not accepted any more').first().waitFor();
    await own.page.getByRole('alert').getByRole('button', { name: 'Sign out' }).first().click();
    await own.page.getByLabel('Admin token or gateway key').waitFor();
    await own.context.close();
  });

  test('D7 numbers and times use the reader’s locale, and times have their zone', async () => {
    await fill(`${gateway.url}`, recordsOf([{ prompt_tokens: 1_234_567, total_tokens: 1_234_572 }]));
    const own = await open(browser, url('#/requests'), { locale: 'de-DE', timezone: 'Asia/Tokyo' });
    await signIn(own.page, ADMIN_TOKEN);
    await own.page.locator('tbody tr').first().waitFor();
    expect(await own.page.locator('thead').innerText()).toContain('UTC');
    await own.page.getByLabel('Times in').selectOption('My time');
    await own.page
      .getByText(/GMT\+9|JST/)
      .first()
      .waitFor();
    await own.page.locator('tbody tr').first().waitFor();
    const table = await own.page.locator('table').innerText();
    expect(table).toContain('1.234.567');
    expect(table).toMatch(/GMT\+9|JST/);
    await own.context.close();
  });

  test('D4 a request of another protocol: the record explains the provider’s finish reason and names caller and protocol', async () => {
    const fields = {
      client: 'messages',
      finish_reason: 'end_turn',
      cached_tokens: 2,
      cache_write_tokens: 3,
    } as const;
    const [one] = recordsOf([fields]).map((each) => ({
      ...each,
      request_id: `${each.request_id.slice(0, -4)}b001`,
    }));
    await fill(gateway.url, one === undefined ? [] : [one]);
    const own = await open(browser, url(`#/requests?id=${one?.request_id}`));
    await signIn(own.page, ADMIN_TOKEN);
    await own.page.locator('dialog .facts').waitFor();
    const sheet = await own.page.locator('dialog').innerText();
    expect(sheet).toMatch(/Finished\s+The model ended its answer\.\s+end_turn/);
    expect(sheet).toMatch(/Client\s+messages/);
    expect(sheet).toContain('10 tokens, of them 2 cached, 3 written to the cache');
    await own.context.close();
  });

  test('D4 D9 by keyboard alone: requests are searched and filtered, and a record is opened, copied and closed', async () => {
    await fill(
      gateway.url,
      recordsOf([{ asked: 'p/keyboard', status: 'cancelled' }]).map((one) => ({
        ...one,
        request_id: `${one.request_id.slice(0, -4)}c001`,
      })),
    );
    const own = await open(browser, url());
    await own.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await tabTo(own.page, own.page.getByLabel('Admin token or gateway key'));
    await own.page.keyboard.type(ADMIN_TOKEN);
    await own.page.keyboard.press('Enter');
    await tabTo(own.page, own.page.getByRole('navigation').getByText('Requests'));
    await own.page.keyboard.press('Enter');
    await tabTo(own.page, own.page.getByLabel('Status'));
    // The first letters of an option select it.
    await own.page.keyboard.type('cancelled');
    await own.page.waitForURL(/status=cancelled/);
    await tabTo(own.page, own.page.getByLabel('Search'));
    await own.page.keyboard.type('keyboard');
    await own.page.keyboard.press('Enter');
    await own.page.waitForURL(/search=keyboard/);
    await tabTo(own.page, own.page.locator('tbody a').first());
    await own.page.keyboard.press('Enter');
    const sheet = own.page.getByRole('dialog');
    await sheet.locator('.facts').waitFor();
    await tabTo(own.page, sheet.getByRole('button', { name: 'Copy the request id' }));
    await own.page.keyboard.press('Enter');
    await sheet.getByRole('button', { name: 'Copied the request id' }).waitFor();
    expect(await own.page.evaluate<string>('navigator.clipboard.readText()')).toMatch(/c001$/);
    await own.page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
    expect(own.complaints).toEqual([]);
    await own.context.close();
  });

  test('D5 D9 by keyboard alone: a key is created, copied as curl, changed and revoked', async () => {
    const own = await open(browser, url('#/keys'));
    await own.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await signIn(own.page, ADMIN_TOKEN);
    const { page: keys } = own;
    const press = async (name: string) => {
      await tabTo(keys, keys.getByRole('button', { name, exact: true }).last());
      await keys.keyboard.press('Enter');
    };
    await press('Create key');
    const dialog = keys.getByRole('dialog');
    await tabTo(keys, dialog.getByLabel('Name'));
    await keys.keyboard.type('by keyboard');
    await tabTo(keys, dialog.getByLabel('Requests a minute'));
    await keys.keyboard.type('30');
    await keys.keyboard.press('Enter');
    const secret = await dialog.locator('output').innerText();
    await press('Copy as curl');
    await keys.getByText('Copied', { exact: true }).waitFor();
    const copied = await keys.evaluate<string>('navigator.clipboard.readText()');
    expect(copied).toContain(`curl ${gateway.url}/llm/v1/chat/completions`);
    expect(copied).toContain(`authorization: Bearer ${secret}`);
    await press('I have copied it');
    await dialog.waitFor({ state: 'detached' });
    await press('Actions of by keyboard');
    await press('Change by keyboard');
    await tabTo(keys, dialog.getByLabel('Name'));
    await keys.keyboard.press('End');
    await keys.keyboard.type(', changed');
    await keys.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await press('Actions of by keyboard, changed');
    await press('Revoke by keyboard, changed');
    await press('Revoke');
    await dialog.waitFor({ state: 'detached' });
    expect(await keys.getByText('by keyboard, changed').count()).toBe(0);
    expect(own.complaints).toEqual([]);
    await own.context.close();
  });

  test('D3 D4 the switch refreshes every 15 seconds while the page is visible, and no longer once it is off', async () => {
    const own = await open(browser, url());
    await signIn(own.page, ADMIN_TOKEN);
    await own.page.clock.install();
    for (const [view, path] of [
      ['overview', '**/v1/usage?*'],
      ['requests', '**/v1/usage/records?*'],
      ['keys', '**/admin/keys'],
    ] as const) {
      await own.page.goto(url(`#/${view}`));
      const toggle = own.page.getByLabel('every 15 s');
      expect(await toggle.isChecked(), view).toBe(false);
      await toggle.check();
      await own.page.waitForURL(/refresh=on/);
      await settle(own.page);
      const again = own.page.waitForRequest(path);
      await own.page.clock.runFor(15_000);
      await again;
      await settle(own.page);
      await toggle.uncheck();
      let calls = 0;
      const count = () => calls++;
      own.page.on('request', count);
      await own.page.clock.runFor(60_000);
      own.page.off('request', count);
      expect(calls, view).toBe(0);
    }
    await own.context.close();
  });

  test('D4 a record shows each attempt with its error and, to the admin, its cause', async () => {
    const target = { provider: 'deepseek', model: 'deepseek-flash' };
    const [one] = recordsOf([
      {
        ...target,
        asked: 'fast',
        attempts: [
          {
            ...target,
            status: null,
            error_code: 'upstream_unreachable',
            ms: 12,
            cause: 'DEEPSEEK_BASE_URL http://localhost:9: connection refused',
          },
          { ...target, status: null, error_code: 'circuit_open', ms: null },
          { ...target, status: 200, error_code: null, ms: 40 },
        ],
      },
    ]).map((each) => ({ ...each, request_id: `${each.request_id.slice(0, -4)}d001` }));
    await fill(gateway.url, one === undefined ? [] : [one]);
    const own = await open(browser, url('#/requests?search=d001'));
    await signIn(own.page, ADMIN_TOKEN);
    const row = own.page.locator('tbody tr').first();
    // One of the three was not called.
    await row.getByText('2 attempts').waitFor();
    await row.locator('a').first().click();
    const attempts = own.page.locator('.attempts');
    expect(await attempts.innerText()).toMatch(
      /12 ms\s+no response upstream_unreachable\s+DEEPSEEK_BASE_URL http:\/\/localhost:9: connection refused.*–\s+not called circuit_open.*40 ms\s+200/s,
    );
    expect(await violationsOf(own.page)).toEqual([]);
    await own.context.close();
  });

  test('D4 from the count of failures to the sentence: a row links to its requests, which fault and error filter, and a record begins with it', async () => {
    const target = { provider: 'mistral', model: 'mistral-small-latest' };
    const why = [
      { fault: 'provider', error: 'upstream_invalid', message: "Mistral sent an event that can't be read" },
      { fault: 'deployment', error: 'upstream_credential', message: 'This account is suspended' },
    ] as const;
    const failed = recordsOf(
      why.map(({ fault, error, message }) => ({
        ...{ ...target, status: 'failed' as const, fault, error, error_code: error },
        attempts: [{ ...target, status: 200, error_code: error, ms: 12, message }],
      })),
    ).map((each, n) => ({ ...each, request_id: `${each.request_id.slice(0, -4)}e00${n}` }));
    await fill(gateway.url, failed);
    const own = await open(browser, url('#/overview?range=7d'));
    await signIn(own.page, ADMIN_TOKEN);
    const table = own.page.getByRole('region', { name: 'Why requests failed' });
    await table.getByRole('link', { name: 'upstream_credential' }).click();
    await own.page.waitForURL(/#\/requests\?.*fault=deployment&error=upstream_credential/);
    await own.page.getByLabel('Fault of').waitFor();
    expect(await own.page.getByLabel('Fault of').inputValue()).toBe('deployment');
    await own.page.locator('tbody tr').first().waitFor();
    expect(await own.page.locator('tbody tr').count()).toBe(1);
    await own.page.locator('tbody tr a').first().click();
    expect(await own.page.locator('.ending').innerText()).toMatch(
      /^Truncated.*own key\.\s+This account is suspended.*fault of the deployment/s,
    );
    const width = async (place: string) => (await own.page.locator(place).first().boundingBox())?.width ?? 0;
    expect(await width('.attempts .said')).toBeGreaterThan(0.9 * (await width('.attempts')));
    expect(await violationsOf(own.page)).toEqual([]);
    await own.context.close();
  });

  test('D5 a budget shows what is spent, reserved, left, charged at the upper bound, and when it resets', async () => {
    const { id } = await makeKey(gateway, { name: 'bounded', budget: { USD: 2, per: 'day' } }, '/llm');
    const own = await open(browser, url(`#/keys?id=${id}`));
    const used = { spent: 0.75, reserved: 0.1, remaining: 1.15, unreported: 0.25 };
    const resets_at = '2026-11-30T00:00:00.000Z';
    await alter(own.page, `**/admin/keys/${id}`, (status) => ({
      ...status,
      budget: { ...objectOf(status.budget), ...used, resets_at },
    }));
    await signIn(own.page, ADMIN_TOKEN);
    const budget = own.page.locator('.budget').first();
    await budget.locator('.meter').waitFor();
    expect((await budget.innerText()).replaceAll(/\s+/g, ' ').trim()).toBe(
      '$0.75 of $2.00 a day · $0.25 at the upper bound: the provider reported no usage · $0.10 reserved · $1.15 left, resets 30 Nov 2026, 00:00:00 UTC',
    );
    expect(await violationsOf(own.page)).toEqual([]);
    await own.context.close();
    await gateway.fetch(`/llm/admin/keys/${id}`, { method: 'DELETE', headers: ADMIN });
  });

  test('Y6 Y8 limits for each user are set in the form, and the admin and the key see what a user has used', async () => {
    const own = await open(browser, url('#/keys'));
    await signIn(own.page, ADMIN_TOKEN);
    await own.page.getByRole('button', { name: 'Create key' }).click();
    const dialog = own.page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('shared');
    await dialog.getByLabel('Limits for each user of the key').check();
    await dialog.getByLabel('Amount').nth(1).fill('0.5');
    await dialog.getByLabel('Requests a minute').nth(1).fill('7');
    await dialog.getByLabel('Users with an allowance of their own').fill('0');
    expect(await violationsOf(own.page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Create key' }).click();
    expect(await own.page.locator('input:invalid').count()).toBe(1);
    await dialog.getByLabel('Users with an allowance of their own').fill('');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    const token = await dialog.locator('output').innerText();
    await own.page.getByRole('button', { name: 'I have copied it' }).click();
    const row = own.page.locator('tr', { hasText: 'shared' });
    expect(await row.innerText()).toContain('each user: $0.50 a month, 7 requests/min');
    const body = { model: 'deepseek/deepseek-flash', messages: [{ role: 'user', content: 'Hello' }] };
    const headers = { authorization: `Bearer ${token}` };
    for (const [user, requests, used] of [
      ['ada', 2, '2 of 7'],
      ['bob', 1, '1 of 7'],
      ['eve', 0, '0 of 7'],
    ] as const) {
      // Right before they are looked at, because the limit is of a minute.
      for (let sent = 0; sent < requests; sent++) {
        const of = { headers: { ...headers, 'x-weir-user': user } };
        const response = await gateway.post('/llm/v1/chat/completions', body, of);
        await response.text();
        expect(response.status).toBe(200);
      }
      await own.page.goto(url(`#/overview?range=24h&user=${user}`));
      await own.page.getByRole('heading', { name: `Limits of ${user} with the key shared` }).waitFor();
      const facts = own.page.locator('section', { hasText: `Limits of ${user}` }).locator('.facts');
      await facts.getByText(used).waitFor();
      expect(await facts.innerText()).toMatch(/\$0(?:\.\d+)? of \$0\.50 a month/);
    }
    expect(await violationsOf(own.page)).toEqual([]);
    await own.page.goto(url('#/keys'));
    await chooseAction(own.page, 'Change', 'shared');
    expect(await dialog.getByLabel('Requests a minute').nth(1).inputValue()).toBe('7');
    await dialog.getByLabel('Limits for each user of the key').uncheck();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await expect.poll(() => row.innerText()).not.toContain('each user');
    await chooseAction(own.page, 'Revoke', 'shared');
    await dialog.getByRole('button', { name: 'Revoke', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(own.complaints).toEqual([]);
    await own.context.close();

    const key = await makeKey(gateway, { name: 'own view', user: 'grace', per_user: { rpm: 9 } }, '/llm');
    const signed = await open(browser, url('#/keys'));
    await signIn(signed.page, key.token);
    await signed.page.getByRole('heading', { name: 'Limits of grace' }).waitFor();
    await signed.page.getByText('0 of 9').waitFor();
    expect(await violationsOf(signed.page)).toEqual([]);
    await signed.context.close();
    await gateway.fetch(`/llm/admin/keys/${key.id}`, { method: 'DELETE', headers: ADMIN });
  });

  test('D9 hostile names, codes and models are shown as text and don’t break the layout', async () => {
    const name = `${MARKUP} ${RIGHT_TO_LEFT}`;
    const key = await makeKey(gateway, { name: name.slice(0, 100) }, '/llm');
    await fill(
      gateway.url,
      recordsOf([
        {
          key_id: key.id,
          provider: 'p',
          model: MARKUP,
          asked: MARKUP,
          status: 'failed',
          error_code: MARKUP.slice(0, 60),
        },
        { key_id: key.id, provider: 'p', model: RIGHT_TO_LEFT, asked: RIGHT_TO_LEFT },
        { key_id: key.id, provider: 'p', model: LONG, asked: LONG, finish_reason: MARKUP.slice(0, 60) },
        { key_id: key.id, cost_nanos: 5, currency: '<b>', cost_source: 'upstream' },
      ]).map((one, n) => ({ ...one, request_id: one.request_id.slice(0, -4) + `a00${n}` })),
    );
    for (const width of [1280, 360]) {
      const own = await open(browser, url(), { width });
      await signIn(own.page, ADMIN_TOKEN);
      for (const hash of [
        '#/overview?by=model',
        '#/overview?by=key',
        `#/overview?key=${key.id}`,
        '#/requests',
        '#/keys',
      ]) {
        await own.page.goto(url(hash));
        await own.page.locator('tbody tr').first().waitFor();
        await settle(own.page);
        expect(await overflows(own.page), hash).toBe(false);
        expect(await own.page.locator('main img, main script, main b').count()).toBe(0);
      }
      expect(await own.page.locator('tbody').first().innerText()).toContain('<img src=x onerror=alert(1)>');
      await own.page.goto(url('#/requests?status=failed'));
      await own.page.locator('tbody tr', { hasText: 'onerror' }).first().click();
      await own.page.locator('dialog .facts').waitFor();
      expect(await overflows(own.page)).toBe(false);
      expect(await violationsOf(own.page)).toEqual([]);
      expect(own.complaints).toEqual([]);
      await own.context.close();
    }
  });

  test('D3 D9 ten thousand groups: the most expensive first, the others on request, and undivided bars', async () => {
    const own = await open(browser, url());
    await signIn(own.page, ADMIN_TOKEN);
    // The API's response to this many groups has its own tests.
    await alter(own.page, '**/v1/usage?*', (report, query) => {
      const row = { ...objectOf(report.total), requests: 3, total_tokens: 70 };
      const models = Array.from({ length: 10_000 }, (_, n) => ({
        ...row,
        model: `p/${n}`,
        cost: { USD: n / 1000 },
      }));
      return {
        ...report,
        data: query.get('group_by') === 'model' ? models : report.data,
        total: { ...row, requests: 30_000, cost: { USD: 49_995 } },
      };
    });
    await own.page.route(/group_by=day%2Cmodel/, (route) =>
      route.fulfill({
        status: 400,
        json: { error: { code: 'invalid_request', message: 'Too many', param: 'group_by' } },
      }),
    );
    await own.page.goto(url('#/overview?by=model&range=30d'));
    await own.page.getByText('too many groups to divide').waitFor();
    await settle(own.page);
    const rows = own.page.getByRole('region', { name: 'Use by model' }).locator('tbody tr');
    expect(await rows.count()).toBe(50);
    expect(await rows.first().innerText()).toContain('p/9999');
    expect(await overflows(own.page)).toBe(false);
    await own.page.getByRole('button', { name: /Show 200 more of 9950/ }).click();
    expect(await rows.count()).toBe(250);
    expect(own.complaints).toEqual([]);
    await own.context.close();
  });
});
