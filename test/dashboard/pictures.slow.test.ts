/**
 * Tests the pictures of the overview in Chromium against sums of the single records, which no report has made (D3), and
 * menus by keyboard (D5).
 */
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fill } from '../../tools/simulator/demo-records.ts';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { jsonOf } from '../e2e/client.ts';
import { ADMIN_TOKEN } from '../e2e/gateway.ts';
import { record } from '../metering/records.ts';
import { overflows, tabTo, violationsInBoth } from './axe.ts';
import {
  alter,
  chooseAction,
  hasChromium,
  type Look,
  launch,
  open,
  settle,
  signIn,
  type Watched,
} from './browser.ts';
import { ADMIN, type Filled, makeKey, RECORDS, startFilled } from './filled.ts';

const DAY_MS = 86_400_000;

/** The table of keys. */
interface Shapes {
  readonly heights: readonly number[];
  /** The height of a line of text. */
  readonly line: number;
  /** Whether each menu's button is in sight. */
  readonly buttons: readonly boolean[];
  readonly isWider: boolean;
  readonly wider: number;
  /** Budgets that reach beyond their cell. */
  readonly overlaps: number;
}

/** Where a tile is, and whether its number is wider. */
interface Box {
  readonly x: number;
  readonly y: number;
  readonly right: number;
  readonly isCut: boolean;
}

/** Shown amounts have two significant digits. */
const TOLERANCE = 0.05;

describe.runIf(hasChromium)('the pictures of the page', () => {
  let browser: Browser;
  let filled: Filled;
  let records: readonly JsonObject[];

  beforeAll(async () => {
    [browser, filled] = await Promise.all([launch(), startFilled({ vars: { LEDGER: 'object' } })]);
    const from = new Date(Date.now() - 29 * DAY_MS).toISOString().slice(0, 10);
    const response = await filled.gateway.fetch(`/v1/usage/records?from=${from}&limit=1000`, {
      headers: ADMIN,
    });
    records = objectsOf((await jsonOf(response)).data);
    expect(records).toHaveLength(RECORDS);
  });
  afterAll(async () => {
    await browser.close();
    await filled[Symbol.asyncDispose]();
  });

  async function signedIn(hash: string, look: Look = {}, token = ADMIN_TOKEN): Promise<Watched> {
    const watched = await open(browser, `${filled.page}${hash}`, { timezone: 'UTC', ...look });
    await signIn(watched.page, token);
    await settle(watched.page);
    return watched;
  }

  const chart = (page: Page, label: string) =>
    page.locator('figure', { has: page.locator('figcaption', { hasText: label }) });

  /** What a chart says of each step to a reader with a keyboard. */
  async function readChart(of: Locator): Promise<readonly string[]> {
    await of.locator('.plot').focus();
    const steps = await of.locator('.bar').count();
    const texts: string[] = [];
    for (let step = 0; step < steps; step++) {
      await of.locator('.plot').press('ArrowRight');
      texts.push(await of.locator('.tip').innerText());
    }
    return texts;
  }

  const days = Array.from({ length: 30 }, (_, i) =>
    new Date(Date.now() - (29 - i) * DAY_MS).toISOString().slice(0, 10),
  );
  const ofDay = (day: string) => records.filter(({ time }) => textOf(time).startsWith(day));
  const tile = (page: Page, name: string) =>
    page.locator('.figures > div', { has: page.getByRole('link', { name, exact: true }) });

  const isClose = (shown: number, exact: number) => Math.abs(shown - exact) <= exact * TOLERANCE + 1e-6;
  const numberIn = (text: string, pattern: RegExp) =>
    Number((pattern.exec(text)?.[1] ?? '0').replaceAll(',', ''));

  test('D3 spend by input, cached input and output: for each day the sums of the records’ parts', async () => {
    const { page, context, complaints } = await signedIn('#/overview?range=30d');
    const texts = await readChart(chart(page, 'Spend by input, cached input and output'));
    expect(texts).toHaveLength(30);
    const sumOf = (some: readonly JsonObject[], part: string) =>
      some.reduce((sum, { cost_parts = null }) => {
        return sum + (cost_parts === null ? 0 : Number(objectOf(cost_parts)[part]));
      }, 0);
    for (const [i, text] of texts.entries()) {
      const own = ofDay(days[i] ?? '');
      for (const [part, name] of [
        ['input', 'Input'],
        ['cached', 'Cached input'],
        ['output', 'Output'],
      ] as const) {
        const shown = numberIn(text, new RegExp(`\\n${name} \\$([\\d.,]+)`));
        expect(isClose(shown, sumOf(own, part)), `${days[i]} ${part} ${shown}`).toBe(true);
      }
    }
    expect(sumOf(records, 'output')).toBeGreaterThan(0);
    const note = await tile(page, 'Spend').innerText();
    for (const [part, name] of [
      ['input', 'input'],
      ['cached', 'cached input'],
      ['output', 'output'],
    ] as const)
      expect(isClose(numberIn(note, new RegExp(`${name} \\$([\\d.]+)`)), sumOf(records, part)), note).toBe(
        true,
      );
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D3 active users and sessions: as many as the records have, with the cost of each, over time and in total', async () => {
    const { page, context, complaints } = await signedIn('#/overview?range=30d&metric=users');
    for (const [name, fact] of [
      ['Active users', 'user'],
      ['Sessions', 'session'],
    ] as const) {
      await tile(page, name).getByRole('link').click();
      await chart(page, `${name} by day`).waitFor();
      await settle(page);
      const named = records.filter((record) => record[fact] !== null);
      const count = new Set(named.map((record) => record[fact])).size;
      const cost = named.reduce((sum, record) => sum + Number(record.cost ?? 0), 0);
      const text = await tile(page, name).innerText();
      expect(numberIn(text, /\n([\d,]+)/), name).toBe(count);
      expect(isClose(numberIn(text, /\$([\d.]+) each/), cost / count), text).toBe(true);
      const counts = (await readChart(chart(page, `${name} by day`))).map((tip) =>
        numberIn(tip, /UTC – (\d+)/),
      );
      const expected = days.map((day) => new Set(ofDay(day).flatMap((record) => record[fact] ?? [])).size);
      expect(counts, name).toEqual(expected);
    }
    const cost = records.reduce((sum, record) => sum + Number(record.cost ?? 0), 0);
    const each = numberIn(await tile(page, 'Requests').innerText(), /\$([\d.]+) each/);
    expect(isClose(each, cost / records.length)).toBe(true);
    expect(await violationsInBoth(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D3 failures by cause: for each day the records of each error, and a click on a part of a bar or a name opens them', async () => {
    const { page, context, complaints } = await signedIn('#/overview?range=30d&metric=failures');
    const bars = chart(page, 'Failures by day and cause');
    const texts = await readChart(bars);
    const failed = records.filter(({ status }) => status === 'failed' || status === 'timed_out');
    const causes = [...new Set(failed.map(({ error }) => textOf(error)))];
    expect(causes.length).toBeGreaterThan(2);
    const of = (cause: string, some: readonly JsonObject[]) =>
      some.filter(({ error, status }) => error === cause && (status === 'failed' || status === 'timed_out'));
    for (const [i, text] of texts.entries())
      for (const cause of causes) {
        const shown = numberIn(text, new RegExp(`\\n${cause} ([\\d,]+)`));
        expect(shown, `${days[i]} ${cause}`).toBe(of(cause, ofDay(days[i] ?? '')).length);
      }
    const legend = bars.locator('figcaption a');
    const [first = ''] = await legend.allInnerTexts();
    const day = days.find((one) => of(first, ofDay(one)).length > 0) ?? '';
    await bars.locator('.bar').nth(days.indexOf(day)).locator('rect[data-series="0"]').first().click();
    const rows = page.getByRole('region', { name: 'Requests', exact: true }).locator('tbody tr');
    await expect.poll(() => rows.count()).toBe(of(first, ofDay(day)).length);
    expect(Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.split('?')[1]))).toEqual({
      from: day,
      to: day,
      status: 'failed,timed_out',
      error: first,
    });
    await page.goBack();
    await tabTo(page, legend.first());
    await page.keyboard.press('Enter');
    await expect.poll(() => rows.count()).toBe(of(first, records).length);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D3 each tile has a small line: those of users, sessions and refused requests are the records’ of each day', async () => {
    const [{ token }] = filled.keys;
    const refused = await filled.gateway.post(
      '/v1/chat/completions',
      { model: 'nowhere/x', messages: [{ role: 'user', content: 'Hello' }] },
      { headers: { authorization: `Bearer ${token}` } },
    );
    await refused.text();
    const { page, context, complaints } = await signedIn('#/overview?range=30d');
    const lineOf = (name: string) => tile(page, name).locator('.spark path').getAttribute('d');
    const pathOf = (values: readonly number[]) => {
      const top = Math.max(...values);
      return values.map((value, i) => `${i === 0 ? 'M' : 'L'}${i} ${1 + 18 * (1 - value / top)}`).join('');
    };
    for (const [name, fact] of [
      ['Active users', 'user'],
      ['Sessions', 'session'],
    ] as const) {
      const counts = days.map((day) => new Set(ofDay(day).flatMap((record) => record[fact] ?? [])).size);
      await expect.poll(() => lineOf(name), { message: name }).toBe(pathOf(counts));
    }
    const reload = async () => {
      await page.getByRole('button', { name: 'Refresh' }).click();
      await settle(page);
      return lineOf('Refused');
    };
    await expect.poll(reload).toBe(pathOf(days.map((_, i) => (i === days.length - 1 ? 1 : 0))));
    expect(await page.locator('.figures > div').count()).toBe(await page.locator('.spark').count());
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D3 first token and speed: p50, p95 and p99 over time, and a distribution that counts each measured request once', async () => {
    const { page, context, complaints } = await signedIn('#/overview?range=30d&metric=first-token');
    const lines = chart(page, 'First token by day');
    expect(await lines.locator('figcaption').innerText()).toMatch(/p50.*p95.*p99/s);
    const spread = await readChart(chart(page, 'Requests by first token'));
    const counted = spread.reduce((sum, tip) => sum + numberIn(tip, / – ([\d,]+)/), 0);
    const measured = records.filter(({ first_token_ms }) => first_token_ms !== null);
    expect(counted).toBe(measured.length);
    const busiest = days.toSorted((a, b) => ofDay(b).length - ofDay(a).length)[0] ?? '';
    const times = ofDay(busiest)
      .flatMap(({ first_token_ms: ms }) => (ms === null ? [] : [Number(ms)]))
      .sort((a, b) => a - b);
    const tip = (await readChart(lines))[days.indexOf(busiest)] ?? '';
    const shown = /p50\) ([\d.,]+ m?s)/.exec(tip)?.[1] ?? '';
    const ms = Number.parseFloat(shown.replace(',', '')) * (shown.endsWith(' ms') ? 1 : 1000);
    // Buckets are half as wide as their values.
    expect(ms / (times[Math.floor(times.length / 2)] ?? 1)).toBeGreaterThan(1 / 1.5);
    expect(ms / (times[Math.floor(times.length / 2)] ?? 1)).toBeLessThan(1.5);
    await tile(page, 'Tokens a second').getByRole('link').click();
    await chart(page, 'Requests by tokens a second').waitFor();
    expect(await violationsInBoth(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test.each([1440, 1024, 768, 390, 320])(
    'D3 at %d pixels the tiles fill their rows, and no number is cut',
    async (width) => {
      const { page, context } = await signedIn('#/overview?range=30d', { width });
      const boxes = await page.evaluate<readonly Box[]>(
        `[...document.querySelectorAll('.figures > div')].map((one) => {
        const { x, y, right } = one.getBoundingClientRect();
        return { x, y, right, isCut: one.querySelector('.value').scrollWidth > one.clientWidth };
      })`,
      );
      expect(boxes).toHaveLength(13);
      expect(boxes.some(({ isCut }) => isCut)).toBe(false);
      const rows = [...Map.groupBy(boxes, ({ y }) => Math.round(y)).values()];
      const edges = rows.map((row) => [
        Math.min(...row.map(({ x }) => x)),
        Math.max(...row.map(({ right }) => right)),
      ]);
      for (const [left = 0, right = 0] of edges) {
        expect(Math.abs(left - (edges[0]?.[0] ?? 0))).toBeLessThan(2);
        expect(Math.abs(right - (edges[0]?.[1] ?? 0))).toBeLessThan(2);
      }
      await context.close();
    },
  );

  test('D5 by keyboard alone: the menu of a key opens, closes and gives the focus back, and leads to its dialog', async () => {
    const { page, context, complaints } = await signedIn('#/keys');
    const button = page.getByRole('button', { name: 'Actions of web app' });
    await button.focus();
    await page.keyboard.press('Enter');
    const rotate = page.getByRole('button', { name: 'Rotate web app' });
    await tabTo(page, rotate, 8);
    expect(await violationsInBoth(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await rotate.waitFor({ state: 'hidden' });
    await expect.poll(() => button.and(page.locator(':focus')).count()).toBe(1);
    await page.keyboard.press('Enter');
    await tabTo(page, rotate, 8);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Make a new secret?' }).waitFor();
    expect(await rotate.isVisible()).toBe(false);
    await page.keyboard.press('Escape');
    await expect.poll(() => button.and(page.locator(':focus')).count()).toBe(1);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D5 D9 by keyboard alone: a key is topped up, disabled, enabled and rotated; a token, and a team with a budget, are made, changed and removed', async () => {
    const { id } = await makeKey(filled.gateway, { name: 'by keys', budget: { USD: 20, per: 'month' } });
    const { page, context, complaints } = await signedIn(`#/keys?id=${id}`);
    const dialog = page.getByRole('dialog');
    const main = page.getByRole('main');
    const press = async (name: string | RegExp, within: Page | Locator = page) => {
      await tabTo(page, within.getByRole('button', { name, exact: true }));
      await page.keyboard.press('Enter');
    };
    const write = async (label: string, text: string) => {
      await tabTo(page, dialog.getByLabel(label));
      await page.keyboard.type(text);
    };
    const isGone = () => dialog.waitFor({ state: 'detached' });
    await press('Top up by keys');
    await write('Amount', '5');
    await write('Note', 'typed');
    await press('Add', dialog);
    await isGone();
    await main.getByText(/^\$0 of \$25\.00 a month/).waitFor();
    await press('Disable by keys');
    await press('Disable', dialog);
    await isGone();
    await press('Enable by keys');
    await press('Enable', dialog);
    await isGone();
    await press('Rotate by keys');
    await write('Overlap in hours', '');
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('1');
    await press('Rotate', dialog);
    expect(await dialog.locator('output').innerText()).toMatch(/^weir_/);
    await press('I have copied it', dialog);
    await isGone();
    await tabTo(page, main.getByRole('link', { name: 'All keys' }));
    await page.keyboard.press('Enter');
    await press('Create token');
    await write('Name', 'typed token');
    await page.keyboard.press('Enter');
    expect(await dialog.locator('output').innerText()).toMatch(/^weir-usage_/);
    await page.keyboard.press('Escape');
    await isGone();
    await press('Revoke typed token');
    await press('Revoke', dialog);
    await isGone();
    expect(await page.getByText('typed token').count()).toBe(0);
    await press('Create team');
    await write('Name', 'typed team');
    await write('Amount', '7');
    await page.keyboard.press('Enter');
    await isGone();
    await press('Actions of typed team');
    await press('Change typed team');
    await write('Requests a minute', '30');
    expect(await violationsInBoth(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await isGone();
    await tabTo(page, main.getByRole('link', { name: 'typed team' }));
    await page.keyboard.press('Enter');
    await main.getByText('0 of 30').waitFor();
    await press('Top up typed team');
    await write('Amount', '3');
    await press('Add', dialog);
    await isGone();
    await main.getByText(/^\$0 of \$10\.00 a month/).waitFor();
    await press('Delete typed team');
    await press('Delete', dialog);
    await isGone();
    await main.getByRole('button', { name: 'Create team' }).waitFor();
    expect(await page.getByText('typed team').count()).toBe(0);
    expect(complaints).toEqual([]);
    await context.close();
    await filled.gateway.fetch(`/admin/keys/${id}`, { method: 'DELETE', headers: ADMIN });
  });

  test('D5 a team with people, groups and limits of each key and user; a change removes some; a key joins it by its form', async () => {
    const { page, context, complaints } = await signedIn('#/keys');
    const dialog = page.getByRole('dialog');
    const listed = async () => {
      const response = await filled.gateway.fetch('/v1/admin/teams', { headers: ADMIN });
      const { data } = await jsonOf(response);
      return objectsOf(data).find(({ name }) => name === 'with people');
    };
    await page.getByRole('button', { name: 'Create team' }).click();
    await dialog.getByLabel('Name').fill('with people');
    await dialog.getByText('People without a key').click();
    await dialog.getByLabel('People', { exact: true }).fill('*@search.example.com, build-bot');
    await dialog.getByLabel('Groups').fill('Search Engineers');
    await dialog.getByLabel('All others whom no team lists').check();
    await dialog.getByLabel('Limits for each key of the team that sets none').check();
    const ofKeys = dialog.getByRole('group', { name: 'Limits of each key' });
    await ofKeys.getByLabel('Requests a minute').fill('60');
    await ofKeys.getByLabel('Max output tokens').fill('4096');
    await dialog.getByLabel('Limits for each user of the team').check();
    await dialog.getByRole('group', { name: 'Budget of each user' }).getByLabel('Amount').fill('20');
    expect(await violationsInBoth(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Create team' }).click();
    await dialog.waitFor({ state: 'detached' });
    const made = await listed();
    expect(made).toMatchObject({
      ...{ people: ['*@search.example.com', 'build-bot'], groups: ['Search Engineers'], default: true },
      ...{ per_key: { rpm: 60, max_output_tokens: 4096 } },
      per_user: { budget: { USD: 20, per: 'month', mode: 'hard' } },
    });
    await chooseAction(page, 'Change', 'with people');
    expect(await dialog.getByLabel('Groups').inputValue()).toBe('Search Engineers');
    await dialog.getByLabel('Groups').fill('');
    await dialog.getByLabel('All others whom no team lists').uncheck();
    await dialog.getByLabel('Limits for each key of the team that sets none').uncheck();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    const { groups: _, default: __, per_key: ___, ...left } = made ?? {};
    expect(await listed()).toEqual(left);
    await page.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByLabel('Name').fill('of the people');
    await dialog.getByLabel('Team').selectOption('with people');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByRole('link', { name: 'of the people' }).click();
    await page.locator('.facts').getByRole('link', { name: 'with people' }).click();
    await page.locator('.facts', { hasText: 'build-bot' }).waitFor();
    const link = page.getByRole('link', { name: 'of the people' });
    const key = new URLSearchParams((await link.getAttribute('href'))?.split('?')[1]).get('id');
    for (const path of [`/admin/keys/${key}`, `/v1/admin/teams/${textOf(made?.id)}`])
      await filled.gateway.fetch(path, { method: 'DELETE', headers: ADMIN });
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D5 K9 a team lead’s token is made by the form; its row says what it may; it lists the keys of its team', async () => {
    const made = await filled.gateway.post('/v1/admin/teams', { name: 'led' }, { headers: ADMIN });
    const team = textOf((await jsonOf(made)).id);
    const { id } = await makeKey(filled.gateway, { name: 'of the lead', team });
    const { page, context, complaints } = await signedIn('#/keys');
    await page.getByRole('button', { name: 'Create token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('lead');
    await dialog.getByRole('combobox', { name: 'May' }).selectOption('manage the keys of one team');
    await dialog.getByRole('combobox', { name: 'Team' }).selectOption('led');
    expect(await violationsInBoth(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Create token' }).click();
    const token = await dialog.locator('output').innerText();
    await page.keyboard.press('Escape');
    const row = page.getByRole('region', { name: 'Tokens' }).getByRole('row', { name: 'lead' });
    await row.getByText('manage the keys of team led, and read its usage').waitFor();
    const headers = { authorization: `Bearer ${token}` };
    const list = await jsonOf(await filled.gateway.fetch('/admin/keys', { headers }));
    expect(objectsOf(list.data).map(({ name }) => name)).toEqual(['of the lead']);
    await row.getByRole('button', { name: 'Revoke' }).click();
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await row.waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
    await context.close();
    for (const path of [`/admin/keys/${id}`, `/v1/admin/teams/${team}`])
      await filled.gateway.fetch(path, { method: 'DELETE', headers: ADMIN });
  });

  test('D5 a team with keys is not deleted: the dialog says how many', async () => {
    const made = await filled.gateway.post('/v1/admin/teams', { name: 'in use' }, { headers: ADMIN });
    const team = textOf((await jsonOf(made)).id);
    const { id } = await makeKey(filled.gateway, { name: 'of it', team });
    const { page, context, complaints } = await signedIn(`#/keys?team=${team}`);
    await page.getByRole('button', { name: 'Delete in use' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('alert').getByText('This team has 1 key').waitFor();
    expect(complaints).toEqual([]);
    await context.close();
    for (const path of [`/admin/keys/${id}`, `/v1/admin/teams/${team}`])
      await filled.gateway.fetch(path, { method: 'DELETE', headers: ADMIN });
  });

  test.each([1440, 1024, 768, 390])(
    'D5 at %d pixels long names, people and several budgets: rows of one height, actions in sight, and a word where it scrolls',
    async (width) => {
      const name = `team of the ${'very '.repeat(12)}long name`;
      const budget = [
        { USD: 20, per: 'day' },
        { USD: 300, per: 'month' },
      ];
      const { id } = await makeKey(filled.gateway, {
        ...{ name, budget, user: `somebody.with.a.long.name.${width}@subsidiary.example.com` },
        ...{
          rpm: 100,
          tpm: 1_000_000,
          max_concurrent: 20,
          max_output_tokens: 4096,
          tags: { team: 'search' },
        },
        models: ['deepseek/*', 'mistral/mistral-small-latest', 'openai/gpt-4o-mini'],
      });
      const { page, context, complaints } = await signedIn('#/keys', { width });
      await page
        .getByText(/^\$0 of \$20\.00 a day/)
        .first()
        .waitFor();
      await page.getByText(/\$0\.\d+ of \$0\.20 in total/).waitFor();
      const shapes = await page.evaluate<Shapes>(
        `(() => {
          const region = document.querySelector('section[aria-label=Keys]');
          const boxes = (what) => [...region.querySelectorAll(what)].map((one) => one.getBoundingClientRect());
          return {
            line: Number.parseFloat(getComputedStyle(region.querySelector('td')).lineHeight),
            heights: boxes('tbody tr').map(({ height }) => Math.round(height)),
            buttons: boxes('td.actions > button').map(({ left, right }) => left >= 0 && right <= innerWidth),
            isWider: region.scrollWidth > region.clientWidth + 1,
            wider: region.scrollWidth - region.clientWidth,
            overlaps: [...region.querySelectorAll('.usage')].filter((one) => one.scrollWidth > one.parentElement.clientWidth + 1).length,
          };
        })()`,
      );
      expect(new Set(shapes.heights).size).toBe(1);
      // Two lines.
      if (width <= 640) expect(shapes.heights[0]).toBeLessThan(3 * shapes.line);
      if (width === 1440) expect(shapes.wider).toBeLessThan(2);
      expect(shapes.overlaps).toBe(0);
      expect(shapes.buttons.every(Boolean)).toBe(true);
      expect(await page.getByText('This table scrolls sideways.').isVisible()).toBe(shapes.isWider);
      expect(await overflows(page)).toBe(false);
      expect(await violationsInBoth(page)).toEqual([]);
      // The whole row opens.
      await page
        .locator('tbody tr', { hasText: name.slice(0, 30) })
        .first()
        .locator('td[data-head="Budget"]')
        .click();
      await page.waitForURL(/#\/keys\?id=/);
      await page.getByText(/of \$300\.00 a month/).waitFor();
      expect(complaints).toEqual([]);
      await context.close();
      await filled.gateway.fetch(`/admin/keys/${id}`, { method: 'DELETE', headers: ADMIN });
    },
  );

  test('D5 a key that is spread over several ledger objects: its page has a row for each region', async () => {
    const [{ id }] = filled.keys;
    const { page, context, complaints } = await signedIn('#/overview');
    await alter(page, `**/admin/keys/${id}`, (answer) => ({
      ...answer,
      shards: { EU: 4, NA: 1 },
    }));
    await page.goto(`${filled.page}#/keys?id=${id}`);
    await page.getByRole('heading', { name: 'Spread over 5 ledger objects' }).waitFor();
    const table = page.getByRole('region', { name: 'Spread' });
    expect(await table.locator('th').allInnerTexts()).toEqual(['Region', 'Ledger objects']);
    expect(await table.locator('tbody tr').first().innerText()).toMatch(/^EU\s+4$/);
    expect(await violationsInBoth(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D1 each view links to its page of the documents, which the deployment has itself', async () => {
    const [{ id, token }] = filled.keys;
    const docs = await open(browser, `${filled.page}/docs`);
    const ids = await docs.page.evaluate<readonly string[]>(
      "[...document.querySelectorAll('[id]')].map(({ id }) => id)",
    );
    for (const [own, views] of [
      [
        ADMIN_TOKEN,
        [
          'overview',
          'now',
          'requests',
          'requests?session=x',
          'keys',
          `keys?id=${id}`,
          'live',
          'health',
          'audit',
        ],
      ],
      [token, ['overview', 'keys']],
    ] as const) {
      const { page, context, complaints } = await signedIn('#/overview', {}, own);
      const targets = new Set<string>();
      for (const view of views) {
        await page.goto(`${filled.page}#/${view}`);
        const link = page.getByRole('link', { name: /^Docs about / });
        const href = new URL((await link.getAttribute('href')) ?? '', page.url());
        expect(href.pathname).toBe(`${new URL(filled.page).pathname}/docs`);
        expect(ids).toContain(href.hash.slice(1));
        targets.add(href.hash);
      }
      expect(targets.size).toBe(views.length);
      expect(complaints).toEqual([]);
      await context.close();
    }
    await docs.page.goto(`${filled.page}/docs#keys/audit`);
    await docs.page.getByRole('heading', { name: 'Audit', exact: true }).waitFor();
    // The rules take a minute for all of it.
    await docs.page.evaluate(
      "for (const one of document.querySelectorAll('section:nth-of-type(n + 4)')) one.remove()",
    );
    expect(await violationsInBoth(docs.page)).toEqual([]);
    expect(docs.complaints).toEqual([]);
    await docs.context.close();
  });

  test('D5 the page of a key’s holder: base URLs, lines for each client, models, what is left as bars, last requests and failures', async () => {
    const [{ token }] = filled.keys;
    const { page, context, complaints } = await signedIn('#/keys', {}, token);
    const main = page.getByRole('main');
    await page.getByRole('meter').first().waitFor();
    const base = filled.page.replace('/dashboard', '');
    for (const [client, line] of [
      ['OpenAI’s SDKs', `export OPENAI_BASE_URL=${base}/v1`],
      ['Anthropic’s SDKs', `export ANTHROPIC_BASE_URL=${base}`],
      ['Google’s SDKs', `export GOOGLE_GEMINI_BASE_URL=${base}`],
      ['Claude Code', 'export ANTHROPIC_MODEL='],
      ['Codex (~/.codex/config.toml)', `base_url = "${base}/v1"`],
      ['Gemini CLI', 'gemini -m '],
      ['curl', `curl ${base}/v1/chat/completions`],
    ] as const) {
      const part = main.locator('details', { has: page.getByText(client, { exact: true }) });
      expect(await part.locator('pre').textContent(), client).toContain(line);
      if (client !== 'OpenAI’s SDKs') await part.locator('summary').click();
      await part.getByRole('button', { name: `Copy the lines for ${client}` }).waitFor();
    }
    expect(await main.innerText()).not.toContain(token);
    const response = await filled.gateway.fetch('/v1/models', {
      headers: { authorization: `Bearer ${token}` },
    });
    const ids = objectsOf((await jsonOf(response)).data).map(({ id }) => textOf(id));
    const shown = await main.locator('.columns a').allTextContents();
    expect(shown).toEqual(ids);
    const [{ id: keyId }] = filled.keys;
    const own = records.filter(({ key_id }) => key_id === keyId);
    const failed = own.filter(({ status }) => status === 'failed' || status === 'timed_out');
    for (const [label, some] of [
      ['Last requests', own],
      ['Last failures', failed],
    ] as const) {
      const rows = page.getByRole('region', { name: label }).locator('tbody tr');
      await expect.poll(() => rows.count()).toBe(Math.min(5, some.length));
    }
    expect(await violationsInBoth(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('D5 teams: a table with their budgets as bars, and a page for each with its limits, keys, top-ups and changes', async () => {
    const response = await filled.gateway.post(
      '/v1/admin/teams',
      {
        name: 'search <team>',
        budget: [
          { USD: 500, per: 'month' },
          { USD: 30, per: 'day' },
        ],
        ...{ rpm: 600, per_key: { rpm: 60 } },
      },
      { headers: ADMIN },
    );
    const id = textOf((await jsonOf(response)).id);
    const key = await makeKey(filled.gateway, { name: 'search ci', team: id });
    const added = await filled.gateway.post(
      `/v1/admin/teams/${id}/budget`,
      { add: { USD: 50 }, per: 'month', note: 'launch' },
      { headers: ADMIN },
    );
    expect(added.status).toBe(200);
    const of = { key_id: key.id, team: id, time: new Date(Date.now() - 60_000).toISOString() };
    const failure = { status: 'failed', error: 'upstream_error', fault: 'provider' } as const;
    await fill(filled.gateway.url, [
      record({ ...of, user: 'ada' }, 1),
      record({ ...of, user: 'ada', ...failure }, 2),
      record({ ...of, user: 'bob' }, 3),
    ]);
    const { page, context, complaints } = await signedIn('#/keys');
    const row = page.getByRole('region', { name: 'Teams' }).locator('tbody tr');
    await row.getByRole('meter', { name: /^Spent \$0 of \$\d+/ }).waitFor();
    expect(await row.innerText()).toMatch(
      /^search <team>\s+1\s+\$0 of \$\d+\.00 a (day|month)\s*\+1\s+600 requests\/min/,
    );
    expect(await violationsInBoth(page)).toEqual([]);
    await row.locator('td[data-head="Created"]').click();
    await page.getByRole('heading', { name: 'search <team>' }).waitFor();
    expect(new URL(page.url()).hash).toBe(`#/keys?team=${id}`);
    await page.getByText(/^\$0 of \$550\.00 a month/).waitFor();
    await page.getByText(/^\$0 of \$30\.00 a day/).waitFor();
    expect(await page.getByRole('region', { name: 'Top-ups' }).innerText()).toContain('launch');
    const changes = page.getByRole('region', { name: 'Changes' });
    await changes.getByText('team created').waitFor();
    expect(await changes.innerText()).not.toContain('actor:');
    await page.getByText('each user:').waitFor({ state: 'detached' });
    const rowsOf = (label: string) =>
      page.getByRole('region', { name: label, exact: true }).locator('tbody tr');
    await expect.poll(() => rowsOf('People').count()).toBe(2);
    expect(await rowsOf('People').filter({ hasText: 'ada' }).innerText()).toMatch(/^ada\t.*\t2\t.*\t1\t/);
    await expect.poll(() => rowsOf('Last requests').count()).toBe(3);
    expect(await rowsOf('Last failures').count()).toBe(1);
    expect(await violationsInBoth(page)).toEqual([]);
    await page
      .getByRole('region', { name: 'Keys of the team' })
      .getByRole('link', { name: 'search ci' })
      .click();
    await page.waitForURL(new RegExp(`id=${key.id}`));
    await page.getByRole('link', { name: 'search <team>' }).waitFor();
    expect(complaints).toEqual([]);
    await context.close();
    await filled.gateway.fetch(`/admin/keys/${key.id}`, { method: 'DELETE', headers: ADMIN });
  });

  test('D4 the list of requests ends at 2,000 rows, and says how to find the others', async () => {
    const { page, context, complaints } = await signedIn('#/overview?range=7d');
    let pages = 0;
    await page.route('**/v1/usage/records?*', (route) => {
      const data = Array.from({ length: 1000 }, (_, n) => ({
        ...records[n % records.length],
        request_id: `01a20438-82ea-7af1-a785-${(pages * 1000 + n).toString(16).padStart(12, '0')}`,
      }));
      pages++;
      return route.fulfill({ json: { object: 'list', data, has_more: true, next_cursor: 'more' } });
    });
    await page.goto(`${filled.page}#/requests?range=30d`);
    const rows = page.getByRole('region', { name: 'Requests' }).locator('tbody tr');
    await rows.first().waitFor();
    await page.evaluate('scrollTo(0, document.body.scrollHeight)');
    await page.getByText(/^The latest 2,000: a shorter range/).waitFor();
    expect(await rows.count()).toBe(2000);
    expect(pages).toBe(2);
    expect(complaints).toEqual([]);
    await context.close();
  });
});
