/** Makes the pictures of docs/dashboard.md: each view, wide and narrow, light and dark, with made-up records. npm run picture */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasChromium, launch, open, settle, signIn } from '../../test/dashboard/browser.ts';
import { ADMIN, startFilled } from '../../test/dashboard/filled.ts';
import { ADMIN_TOKEN } from '../../test/e2e/gateway.ts';
import { demoKeys, sendRefused } from '../simulator/demo-fill.ts';
import { DEMO_SESSION, demoRecords, fill } from '../simulator/demo-records.ts';

const FOLDER = join(import.meta.dirname, '..', '..', 'docs', 'images');
/** The README shows this one. */
const README = join(FOLDER, 'dashboard.png');
const QUALITY = 34;
/** What a team of some dozen people sends in a month. */
const REQUESTS = 5000;
const DAYS = 30;
/** Prompts and outputs are so many times as long as those of the demo. */
const SCALE = 20;
const VIEWS = [
  ['overview', '#/overview?range=30d', '.bar rect'],
  ['latency', '#/overview?range=30d&metric=first-token', '.line'],
  ['now', '#/now', 'dl.wide'],
  ['users', '#/overview?range=30d&by=user', '.bar rect'],
  ['requests', '#/requests?range=30d', 'tbody tr'],
  ['session', `#/requests?range=30d&session=${DEMO_SESSION}`, '.line'],
  ['keys', '#/keys', '.meter'],
  ['live', '#/live?a=deepseek/deepseek-flash&b=mistral/mistral-small-latest', '.empty'],
] as const;

if (!hasChromium) process.exit(1);
// Reports by tag need this ledger.
await using filled = await startFilled({ vars: { LEDGER: 'object' } });
const [{ token: web }] = filled.keys;
const [webId = '', agents = '', evals = ''] = filled.keys.map(({ id }) => id);
const changed = await filled.gateway.fetch(`/admin/keys/${webId}`, {
  method: 'PATCH',
  headers: { ...ADMIN, 'content-type': 'application/json' },
  body: JSON.stringify({
    budget: [
      { USD: 400, per: 'month' },
      { USD: 40, per: 'day' },
    ],
  }),
});
if (!changed.ok) throw new Error(await changed.text());
const senders = demoKeys(webId, agents, evals).map((key) => ({
  ...key,
  promptTokens: key.promptTokens * SCALE,
  completionTokens: key.completionTokens * SCALE,
}));
await fill(filled.gateway.url, demoRecords(REQUESTS, senders, Date.now(), 7, DAYS));
await sendRefused(filled.gateway.url, web);
const browser = await launch();
try {
  await mkdir(join(FOLDER, 'dashboard'), { recursive: true });
  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      const { page, context } = await open(browser, filled.page, { theme, width });
      await signIn(page, ADMIN_TOKEN);
      for (const [view, hash, shown] of VIEWS) {
        await page.goto(filled.page + hash);
        await page.mouse.move(0, 0);
        await page.locator(shown).first().waitFor({ state: 'attached' });
        await settle(page);
        if (view === 'live') {
          await page.getByRole('button', { name: 'Send' }).click();
          await page.getByText('Finished (stop)').nth(1).waitFor();
          if (width < 500) {
            await page.evaluate("document.querySelector('.streams').scrollIntoView()");
            await page.evaluate(
              'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))',
            );
          }
        }
        const path = join(FOLDER, 'dashboard', `${view}-${width}-${theme}.jpg`);
        await page.screenshot({ path, type: 'jpeg', quality: QUALITY });
        if (view === 'overview' && width === 1440 && theme === 'light')
          await page.screenshot({ path: README });
      }
      await context.close();
    }
  }
} finally {
  await browser.close();
}
process.stdout.write(`${FOLDER}\n`);
