/** Writes `docs/openapi.json`: npm run openapi. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openApiText, routeProblems } from './openapi/document.ts';

const problems = routeProblems();
for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0) process.exitCode = 1;
else writeFileSync(join(import.meta.dirname, '..', 'docs', 'openapi.json'), openApiText());
