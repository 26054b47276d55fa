/**
 * Makes the pictures of the documents with made-up records: npm run picture. With `-- --all <folder>`, each view at four widths, light and
 * dark, with much, few and no data, to look at before a release.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { hasChromium, launch, open, settle, signIn } from '../../test/dashboard/browser.ts';
import { ADMIN, makeKey, RECORDS, startFilled } from '../../test/dashboard/filled.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from '../../test/e2e/gateway.ts';
import { demoKeys, sendRefused } from '../simulator/demo-fill.ts';
import { DEMO_SESSION, demoRecords, fill } from '../simulator/demo-records.ts';
import { decodeObject, type JsonObject, numberOf, objectOf, textOf } from '../simulator/json.ts';

const FOLDER = join(import.meta.dirname, '..', '..', 'docs', 'images');
/** The README shows this one. */
const README = join(FOLDER, 'dashboard.png');
const QUALITY = 34;
const THEMES = ['light', 'dark'] as const;
const WIDTHS = [1440, 1024, 768, 390] as const;
/** What a company of some dozen people sends in a month, and in the one before, with which reports compare it. */
const REQUESTS = 5000;
const REQUESTS_BEFORE = 3800;
const DAYS = 30;
const DAY_MS = 86_400_000;
/** Prompts and outputs are so many times as long as those of the demo. */
const SCALE = 40;
const DEVELOPERS = 'ada grace linus barbara edsger margaret ken radia donald frances dennis adele'.split(' ');
const CUSTOMERS = 24;
/** Only a failure reaches it. */
const MOST_SECONDS = 300;
/** More than the table of keys shows at first. */
const KEYS = 60;

/** The views that docs/dashboard.md shows. */
const SHOWN = [
  ['overview', '#/overview?range=30d'],
  ['requests', '#/requests?range=30d'],
  ['session', `#/requests?range=30d&session=${DEMO_SESSION}`],
] as const;

/** What stands for something that is loading. */
const LOADING = /^(Loading …|…)$/;

/** A gateway to take pictures of. */
interface Subject {
  readonly gateway: Gateway;
  readonly key: { readonly id: string; readonly token: string };
  readonly team: string;
}

// Reports by tag need this ledger.
const OPTIONS = { vars: { LEDGER: 'object' } };

async function send(gateway: Gateway, method: string, path: string, body: JsonObject): Promise<string> {
  const response = await gateway.fetch(path, {
    method,
    headers: { ...ADMIN, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} returned ${response.status} ${text}`);
  return textOf(decodeObject(text)?.id ?? '');
}

/** A month of a team of some dozen people, with keys and teams of long names. */
async function startMuch(): Promise<Subject> {
  const { gateway, keys } = await startFilled(OPTIONS);
  const [key] = keys;
  const [webId = '', agents = '', evals = ''] = keys.map(({ id }) => id);
  const budget = [
    { USD: 400, per: 'month' },
    { USD: 40, per: 'day' },
  ];
  await send(gateway, 'PATCH', `/admin/keys/${webId}`, { budget, tags: { team: 'shop' } });
  await send(gateway, 'POST', `/v1/admin/keys/${webId}/budget`, {
    ...{ add: { USD: 100 }, per: 'month', note: 'launch of the new search' },
  });
  const team = await send(gateway, 'POST', '/v1/admin/teams', {
    ...{
      name: 'search and recommendations',
      budget,
      rpm: 600,
      per_user: { budget: { USD: 20, per: 'day' } },
    },
  });
  await send(gateway, 'POST', '/v1/admin/teams', { name: 'platform', budget: { USD: 90, per: 'week' } });
  const senders = demoKeys(webId, agents, evals).map((sender) => ({
    ...sender,
    promptTokens: sender.promptTokens * SCALE,
    completionTokens: sender.completionTokens * SCALE,
    ...(sender.id === agents && { users: DEVELOPERS.map((name) => `${name}@example.com`) }),
    ...(sender.id === webId && { users: Array.from({ length: CUSTOMERS }, (_, n) => `u-${1841 + 97 * n}`) }),
  }));
  const now = Date.now();
  const records = [
    ...demoRecords(REQUESTS_BEFORE, senders, now - DAYS * DAY_MS, 8, DAYS),
    ...demoRecords(REQUESTS, senders, now, 7, DAYS),
  ];
  await fill(
    gateway.url,
    records.map((record) => (record.key_id === agents ? { ...record, team } : record)),
  );
  await sendRefused(gateway.url, key.token);
  await whenReported(gateway, RECORDS + records.length);
  return { gateway, key, team };
}

/** Each key tells its directory what it has, which reports are made of: until then a change to the range before is of a part. */
async function whenReported(gateway: Gateway, requests: number): Promise<void> {
  const from = new Date(Date.now() - (2 * DAYS + 1) * DAY_MS).toISOString().slice(0, 10);
  for (let seconds = 0; seconds < MOST_SECONDS; seconds++) {
    const response = await gateway.fetch(`/v1/usage?from=${from}&group_by=status`, { headers: ADMIN });
    const total = objectOf(decodeObject(await response.text())?.total);
    if ((numberOf(total.requests) ?? 0) >= requests) return;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  throw new Error(`The reports lack some of ${requests} records`);
}

/** What only the table of keys and the page of a team need. */
async function addKeys({ gateway, team }: Subject): Promise<void> {
  for (let n = 0; n < KEYS; n++)
    await makeKey(gateway, {
      name: n % 7 === 0 ? `service of the ${'very '.repeat(8)}long name ${n}` : `service ${n}`,
      ...(n % 3 === 0 && { user: `somebody.with.a.long.name.${n}@subsidiary.example.com`, rpm: 100 }),
      ...(n % 4 === 0 && { team, models: ['deepseek/*', 'mistral/mistral-small-latest'] }),
      ...(n % 5 === 0 && { budget: { USD: 20, per: 'day' }, expires_at: '2999-01-01' }),
    });
  const { id } = await makeKey(gateway, { name: 'left the company' });
  await gateway.fetch(`/admin/keys/${id}`, { method: 'DELETE', headers: ADMIN });
  await makeKey(gateway, { name: 'finance', scope: { usage: {} } });
}

async function startFew(): Promise<Subject> {
  const gateway = await startGateway({ entrypoint: '../../tools/simulator/filled-worker.ts', ...OPTIONS });
  const key = await makeKey(gateway, { name: 'my laptop', budget: { USD: 5, per: 'month' } });
  const team = await send(gateway, 'POST', '/v1/admin/teams', { name: 'us' });
  await fill(gateway.url, demoRecords(3, demoKeys(key.id, key.id, key.id), Date.now()));
  return { gateway, key, team };
}

/** The documents' pictures. */
async function picture(browser: Browser, { gateway }: Subject): Promise<void> {
  await mkdir(join(FOLDER, 'dashboard'), { recursive: true });
  for (const theme of THEMES) {
    const { page, context } = await open(browser, `${gateway.url}/dashboard`, { theme, width: 1440 });
    await signIn(page, ADMIN_TOKEN);
    for (const [view, hash] of SHOWN) {
      await show(page, gateway, hash);
      const path = join(FOLDER, 'dashboard', `${view}-1440-${theme}.jpg`);
      await page.screenshot({ path, type: 'jpeg', quality: QUALITY });
      if (view === 'overview' && theme === 'light') await page.screenshot({ path: README });
    }
    await context.close();
  }
}

async function show(page: Page, gateway: Gateway, hash: string): Promise<void> {
  await page.goto(`${gateway.url}/dashboard${hash}`);
  await page.mouse.move(0, 0);
  await settle(page);
  await page.getByText(LOADING).first().waitFor({ state: 'detached' });
}

/** Each view in all its forms: `<view>-<amount>-<width>-<theme>.png`. */
async function pictureAll(browser: Browser, amount: string, subject: Subject, folder: string): Promise<void> {
  const { gateway, key, team } = subject;
  const { page, context } = await open(browser, `${gateway.url}/dashboard`, { timezone: 'UTC' });
  const take = async (view: string) => {
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      for (const colorScheme of THEMES) {
        await page.emulateMedia({ colorScheme });
        // Charts are drawn anew at their width.
        await page.evaluate(
          'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))',
        );
        const path = join(folder, `${view}-${amount}-${width}-${colorScheme}.png`);
        await page.screenshot({ path, fullPage: true });
      }
    }
  };
  await take('sign-in');
  await signIn(page, ADMIN_TOKEN);
  for (const [view, hash] of [
    ...SHOWN,
    ...['failures', 'first-token', 'users', 'refused'].map((metric) => [
      metric,
      `#/overview?range=30d&metric=${metric}`,
    ]),
    ...['user', 'session', 'tag:team'].map((by) => [`by-${by.slice(0, 4)}`, `#/overview?range=30d&by=${by}`]),
    ['now', '#/now'],
    ['keys', '#/keys'],
    ['key', `#/keys?id=${key.id}`],
    ['team', `#/keys?team=${team}`],
    ['health', '#/health'],
    ['audit', '#/audit'],
    ['live', '#/live?a=deepseek/deepseek-flash&b=mistral/mistral-small-latest'],
  ] as const) {
    await show(page, gateway, hash ?? '');
    if (view === 'live') {
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByText('Finished (stop)').nth(1).waitFor();
    }
    await take(view ?? '');
  }
  if (amount !== 'none') {
    await show(page, gateway, '#/requests?range=30d');
    await page.locator('tbody tr').first().click();
    await page.getByRole('dialog').waitFor();
    await take('record');
    await page.keyboard.press('Escape');
    // It removes the record from the address when it has closed.
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
  await show(page, gateway, '#/keys');
  for (const [view, button] of [
    ['create-key', 'Create key'],
    ['create-token', 'Create token'],
    ['saved', 'Views'],
  ] as const) {
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.getByRole('dialog').waitFor();
    await take(view);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
  if (key.token !== '') {
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, key.token);
    await show(page, gateway, '#/keys');
    await take('own');
  }
  await context.close();
}

if (!hasChromium) process.exit(1);
const { all } = parseArgs({ options: { all: { type: 'string' } } }).values;
const much = await startMuch();
const browser = await launch();
const started: Gateway[] = [much.gateway];
try {
  if (all === undefined) await picture(browser, much);
  else {
    await mkdir(all, { recursive: true });
    await addKeys(much);
    const few = await startFew();
    started.push(few.gateway);
    const empty = await startGateway(OPTIONS);
    started.push(empty);
    await pictureAll(browser, 'much', much, all);
    await pictureAll(browser, 'few', few, all);
    await pictureAll(browser, 'none', { gateway: empty, key: { id: '', token: '' }, team: '' }, all);
  }
} finally {
  await browser.close();
  for (const gateway of started) await gateway[Symbol.asyncDispose]();
}
process.stdout.write(`${all ?? FOLDER}\n`);
