/** Each question of users is answered within two clicks from README. The site's search is asked the same questions by `npm run docs`. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { QUESTIONS } from '../../tools/site/question-list.ts';
import { anchorsOf } from './anchors.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** The documents that a document links to. */
function linksOf(path: string): readonly string[] {
  const text = readFileSync(join(ROOT, path), 'utf8');
  return [...text.matchAll(/\]\(([^)\s#]+\.md)(?:#[^)\s]*)?\)/g)]
    .filter(([, file = '']) => !/^[a-z]+:/.test(file))
    .map(([, file = '']) => relative(ROOT, join(ROOT, dirname(path), file)));
}

const first = linksOf('README.md');
const reached = new Set([...first, ...first.flatMap(linksOf)]);

test('there are more than twenty questions, each once', () => {
  expect(QUESTIONS.length).toBeGreaterThan(20);
  expect(new Set(QUESTIONS.map(({ question }) => question)).size).toBe(QUESTIONS.length);
});

test.each(QUESTIONS.map(({ question, answers }) => [question, answers] as const))(
  '%s: the answers are pages, with their sections, two clicks from README',
  (_, answers) => {
    for (const answer of answers) {
      const [page = '', anchor] = answer.split('#');
      const path = `docs${page}.md`;
      expect(existsSync(join(ROOT, path)), path).toBe(true);
      expect([...reached]).toContain(path);
      if (anchor === undefined) continue;
      const anchors = anchorsOf(readFileSync(join(ROOT, path), 'utf8'));
      expect([...anchors], path).toContain(anchor);
    }
  },
);
