/** Measures the dashboard's page: its size, and the time to its first paint from a warm Worker in a Chromium. node tools/page/measure.ts */
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { DOCUMENT } from '../../src/dashboard/built/document.ts';

/** The size of the document in KiB, as it is, and as gzip. */
export function pageSize(): { readonly plain: number; readonly gzip: number } {
  const kib = (bytes: number) => bytes / 1024;
  return { plain: kib(Buffer.byteLength(DOCUMENT)), gzip: kib(gzipSync(DOCUMENT).length) };
}

const RUNS = 15;

/** The first contentful paint in ms, in order of the runs, each in a new context without a cache. */
async function firstPaints(): Promise<readonly number[]> {
  const { hasChromium, launch } = await import('../../test/dashboard/browser.ts');
  const { startGateway } = await import('../../test/e2e/gateway.ts');
  if (!hasChromium) return [];
  await using gateway = await startGateway({ vars: { AUTH: 'keys' } });
  const browser = await launch();
  const paints: number[] = [];
  try {
    for (let run = 0; run <= RUNS; run++) {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`${gateway.url}/dashboard`);
      await page.getByLabel('Admin token or gateway key').waitFor();
      const paint = await page.evaluate<number>(
        "new Promise((done) => new PerformanceObserver((list) => done(list.getEntries()[0].startTime)).observe({ type: 'paint', buffered: true }))",
      );
      // The first run warms the Worker and the browser.
      if (run > 0) paints.push(paint);
      await context.close();
    }
  } finally {
    await browser.close();
  }
  return paints;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { plain, gzip } = pageSize();
  process.stdout.write(`The page: ${plain.toFixed(0)} KiB, ${gzip.toFixed(1)} KiB gzip\n`);
  const sorted = [...(await firstPaints())].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]?.toFixed(0);
  process.stdout.write(
    `First paint: median ${at(0.5)} ms, fastest ${at(0)}, slowest ${at(1)} (${RUNS} runs)\n`,
  );
}
