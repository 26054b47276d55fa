/** Tests the pages of the site: where documents are, that links lead to pages, and that the sidebar has the order of docs/README.md. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Document, homeOf, pageOf, pagePath, type SidebarItem, sidebarOf } from './pages.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const documents: readonly Document[] = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.md'))
  .map((path) => ({ path: `docs/${path}`, text: readFileSync(join(ROOT, 'docs', path), 'utf8') }));

describe('pagePath', () => {
  test.each([
    ['README.md', 'about.md'],
    ['SECURITY.md', 'security.md'],
    ['docs/README.md', 'index.md'],
    ['docs/clients/README.md', 'clients/index.md'],
    ['docs/clients/codex.md', 'clients/codex.md'],
    ['src/weir.ts', undefined],
    ['docs/openapi.json', undefined],
  ])('%s is the page %s', (path, page) => {
    expect(pagePath(path)).toBe(page);
  });
});

describe('pageOf', () => {
  const linked = (path: string, text: string) =>
    pageOf({ path, text }, (file) => file === 'docs/images/a.jpg').text;

  test.each([
    ['docs/a.md', '[b](b.md#c)', '[b](./b.md#c)'],
    ['docs/a.md', '[clients](clients/README.md)', '[clients](./clients/index.md)'],
    [
      'docs/clients/a.md',
      '[up](../README.md) [`code`](../../README.md)',
      '[up](../index.md) [`code`](../about.md)',
    ],
    ['README.md', '[b](docs/b.md)', '[b](./b.md)'],
    ['docs/a.md', '[source](../src/weir.ts)', 'source'],
    [
      'docs/a.md',
      '[site](https://example.com) [below](#below)',
      '[site](https://example.com) [below](#below)',
    ],
    ['docs/a.md', '![a](images/a.jpg)', '![a](./images/a.jpg)'],
    ['docs/a.md', '```\n[b](b.md)\n```', '```\n[b](b.md)\n```'],
  ])('in %s, %s becomes %s', (path, text, expected) => {
    expect(linked(path, text)).toBe(expected);
  });
});

test('sidebarOf has every document that is a page, in the groups of docs/README.md', () => {
  const groups = sidebarOf(documents);
  expect(groups.map(({ text }) => text)).toEqual(['Use it', 'Run it', 'Understand it']);
  const linksOf = (items: readonly SidebarItem[]): string[] =>
    items.flatMap(({ link, items: below = [] }) => [
      ...(link === undefined ? [] : [link]),
      ...linksOf(below),
    ]);
  const links = linksOf(groups);
  const missing = documents
    .map(({ path }) => `/${pagePath(path)?.replace(/(?:index)?\.md$/, '')}`)
    .filter((link) => link !== '/' && !links.includes(link));
  expect(missing).toEqual([]);
  expect(new Set(links).size).toBe(links.length);
});

describe('homeOf', () => {
  test('the first page says what Weir is, and has the two commands of the README, a card for each shelf, and the list', () => {
    const readme = { path: 'README.md', text: readFileSync(join(ROOT, 'README.md'), 'utf8') };
    const all = [...documents, readme];
    const text = homeOf(
      all,
      all.map((document) => pageOf(document, () => true)),
    );
    const front: unknown = JSON.parse(/^---\n(.+)\n---\n/.exec(text)?.[1] ?? '');
    expect(front).toMatchObject({
      layout: 'home',
      hero: { tagline: expect.stringContaining('one endpoint in front of many providers') },
      features: ['Use it', 'Run it', 'Understand it'].map((title) => ({
        title,
        details: expect.stringMatching(/.{20}/),
        link: expect.stringMatching(/^\/[a-z]/),
      })),
    });
    expect(text).toContain('npm ci && npm run demo');
    expect(text).toContain('npm ci && npm test');
    expect(text).toContain('[Getting started](./getting-started.md)');
  });
});
