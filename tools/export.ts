/**
 * Writes all usage records of a time range to a file, through a deployment's public routes: npm run export -- --url URL --from DAY
 * --to DAY [--format ndjson|csv] [--key ID] [--out FILE] [--page RECORDS]. The token is in ADMIN_TOKEN, or in WEIR_KEY for one key's
 * own records. After an interruption, the same command continues.
 */
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type ExportOptions, exportRecords, RefusedExport } from './export/export-records.ts';
import { Progress } from './export/progress.ts';

const USAGE =
  'ADMIN_TOKEN=… npm run export -- --url https://weir.example.com --from 2026-11-01 --to 2026-12-01 [--format ndjson|csv] [--key ID] [--out FILE] [--page RECORDS]';
const MAX_PAGE = 1000;

function fail(message: string, code: number): never {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}

function readOptions(): ExportOptions {
  try {
    const { values } = parseArgs({
      options: {
        url: { type: 'string' },
        from: { type: 'string' },
        to: { type: 'string' },
        format: { type: 'string', default: 'ndjson' },
        key: { type: 'string' },
        out: { type: 'string' },
        page: { type: 'string', default: String(MAX_PAGE) },
      },
    });
    const { url, from, to, format, key, page } = values;
    const token = process.env.ADMIN_TOKEN ?? process.env.WEIR_KEY;
    if (url === undefined || !URL.canParse(url)) fail(`--url must be the URL of the deployment\n${USAGE}`, 2);
    if (from === undefined || to === undefined)
      fail(`--from and --to must be days or UTC times\n${USAGE}`, 2);
    if (format !== 'ndjson' && format !== 'csv') fail(`--format must be ndjson or csv\n${USAGE}`, 2);
    if (token === undefined || token === '') fail(`Set ADMIN_TOKEN, or WEIR_KEY\n${USAGE}`, 2);
    const out = values.out ?? `weir-usage-${from}-${to}.${format}`.replaceAll(':', '');
    return {
      url: url.replace(/\/+$/, ''),
      token,
      from,
      to,
      format,
      key: key ?? null,
      out,
      page: Number(page),
    };
  } catch (error) {
    fail(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`, 2);
  }
}

const options = readOptions();
const progress = new Progress(process.stderr);
try {
  const count = await exportRecords(options, { fetch, wait: (ms) => setTimeout(ms), progress });
  progress.end(`${count} records are in ${options.out}`);
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  const isFinal = error instanceof RefusedExport;
  progress.end(isFinal ? reason : `${reason}\nRun the same command again to continue.`);
  process.exitCode = 1;
}
