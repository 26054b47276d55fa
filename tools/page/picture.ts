/** Takes the README's screenshot of the dashboard, from a gateway with sample records: npm run picture. */
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { launch, open, settle, signIn } from '../../test/dashboard/browser.ts';
import { startFilled } from '../../test/dashboard/filled.ts';
import { ADMIN_TOKEN } from '../../test/e2e/gateway.ts';

const FILE = join(import.meta.dirname, '..', '..', 'docs', 'images', 'dashboard.png');

await using filled = await startFilled();
const browser = await launch();
try {
  const { page } = await open(browser, filled.page);
  await signIn(page, ADMIN_TOKEN);
  await settle(page);
  await mkdir(dirname(FILE), { recursive: true });
  await page.screenshot({ path: FILE });
} finally {
  await browser.close();
}
process.stdout.write(`${FILE}\n`);
