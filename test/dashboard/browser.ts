/** Starts Chromium for tests of the page, and watches the page for errors (D9). */
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Download, type Page } from 'playwright-core';
import { type JsonObject, objectOf } from '../../tools/simulator/json.ts';

const EXECUTABLE = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const hasChromium = existsSync(EXECUTABLE);
if (!hasChromium)
  process.stdout.write(
    `No Chromium at ${EXECUTABLE}: the tests of the page are skipped (apt-get install chromium)\n`,
  );

/** Without these flags, Chromium contacts Google. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** What pages that live for seconds do without. */
const CHEAP = [
  // The compiler of hot code takes more time than its code saves.
  '--js-flags=--no-turbofan',
  // No renderer in reserve for each context, and no process for a GPU, which there is not.
  '--renderer-process-limit=1',
  '--in-process-gpu',
];

/** For one step of a test. Only a hang reaches it. */
const PAGE_LIMIT_MS = 300_000;

/** @param cheap empty: tests measure the page, in the processes that it has elsewhere */
export function launch(cheap: readonly string[] = CHEAP): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    headless: true,
    args: [...FLAGS, ...cheap],
    timeout: PAGE_LIMIT_MS,
  });
}

export interface Look {
  readonly width?: number;
  readonly theme?: 'light' | 'dark';
  readonly locale?: string;
  readonly timezone?: string;
  /** Sent with each request, as a proxy before the Worker adds them. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A page with its problems: console messages, violations of its security policy, and requests to other hosts. */
export interface Watched {
  readonly page: Page;
  readonly context: BrowserContext;
  /** All problems, except failed API calls, which Chromium also logs. */
  readonly complaints: string[];
}

export async function open(browser: Browser, url: string, look: Look = {}): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1280, height: 800 },
    colorScheme: look.theme ?? 'light',
    locale: look.locale ?? 'en-GB',
    timezoneId: look.timezone ?? 'Europe/Berlin',
    reducedMotion: 'reduce',
    extraHTTPHeaders: look.headers ?? {},
  });
  context.setDefaultTimeout(PAGE_LIMIT_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (!/^Failed to load resource/.test(message.text())) complaints.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL(url).origin) && !request.url().startsWith('data:'))
      complaints.push(`request: ${request.url()}`);
  });
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', (event) => console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))",
  );
  await page.goto(url);
  return { page, context, complaints };
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Admin token or gateway key').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation').waitFor();
}

/** Changes the server's JSON in the responses to these requests. A request that fails is aborted, also one whose page has been closed. */
export async function alter(
  page: Page,
  requests: string,
  change: (answer: JsonObject, query: URLSearchParams) => JsonObject,
): Promise<void> {
  await page.route(requests, async (route) => {
    const response = route.fetch().then(async (fetched) => objectOf(await fetched.json()));
    const answer = await response.catch(() => undefined);
    if (answer === undefined) return route.abort();
    return route.fulfill({ json: change(answer, new URL(route.request().url()).searchParams) });
  });
}

/** Chooses what to do with a key from the menu of its row. */
export async function chooseAction(page: Page, action: string, key: string): Promise<void> {
  await page.getByRole('button', { name: `Actions of ${key}`, exact: true }).click();
  await page.getByRole('button', { name: `${action} ${key}`, exact: true }).click();
}

/** Saves a table by the menu for that. */
export async function saveTable(page: Page, label: string): Promise<Download> {
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Tables as CSV' }).click();
  await page.getByRole('button', { name: `${label} as CSV`, exact: true }).click();
  return download;
}

/** Waits until nothing is loading. */
export async function settle(page: Page): Promise<void> {
  await page.locator('[aria-busy=true], .loading, .chart.waiting').first().waitFor({ state: 'detached' });
}
