/** Writes `docs/openapi.json` and `docs/api.md`: npm run openapi. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openApiText, routeProblems } from './openapi/document.ts';
import { referenceText } from './openapi/reference.ts';

const DOCS = join(import.meta.dirname, '..', 'docs');

const problems = routeProblems();
for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0) process.exitCode = 1;
else {
  writeFileSync(join(DOCS, 'openapi.json'), openApiText());
  writeFileSync(join(DOCS, 'api.md'), referenceText());
}
