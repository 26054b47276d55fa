/**
 * Judges every regular expression of `src`: node tools/patterns.ts, a part of npm run lint. One whose backtracks grow
 * with its text needs a row in `BOUNDS`, and takes at most `MAX_MS` for a text of that length. Exits with 1 and names
 * the others.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { problemsOf } from './patterns/bounds.ts';

const SRC = join(import.meta.dirname, '..', 'src');
/** Built by `npm run page`, from sources that are checked. */
const BUILT = 'dashboard/built/';

const paths = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
  (path) => /\.tsx?$/.test(path) && !path.startsWith(BUILT),
);
const sources = paths.map((path) => ({ path, text: readFileSync(join(SRC, path), 'utf8') }));
const problems = problemsOf(sources);
for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0) process.exitCode = 1;
