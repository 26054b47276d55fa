/** Builds the page that the Worker serves from its sources in src/dashboard/page: npm run page. */
import { writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { buildPage, GENERATED } from './page/build.ts';

const module = await buildPage();
await writeFile(GENERATED, module);
const [, json = '""'] = /DOCUMENT =\s+(".*");/.exec(module) ?? [];
const document: string = JSON.parse(json);
const gzip = gzipSync(document, { level: 9 }).length;
process.stdout.write(`${GENERATED}: ${Buffer.byteLength(document)} bytes, ${gzip} gzip\n`);
