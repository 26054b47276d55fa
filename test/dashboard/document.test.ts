/** Tests the document that the Worker serves: built from its sources, and restricted by its headers (D1, D2). */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DOCUMENT } from '../../src/dashboard/built/document.ts';
import { BUILT, buildPage } from '../../tools/page/build.ts';
import { pageSize } from '../../tools/page/measure.ts';
import { type Gateway, startGateway } from '../e2e/gateway.ts';

const ROOT = join(import.meta.dirname, '..', '..');

function hashesOf(tag: 'script' | 'style'): string[] {
  const texts = [...DOCUMENT.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, 'gs'))].map(
    ([, text]) => text ?? '',
  );
  return texts.map((text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`);
}

const HTML = join(BUILT, 'assets', 'dashboard.html');

test('D1 the page is built once: later builds, also concurrent ones, write nothing', async () => {
  expect(await readFile(HTML, 'utf8')).toBe(DOCUMENT);
  const before = await Promise.all([HTML, join(BUILT, 'hashes.ts')].map((path) => stat(path)));
  expect(await Promise.all([buildPage(), buildPage(), buildPage()])).toEqual([false, false, false]);
  const after = await Promise.all([HTML, join(BUILT, 'hashes.ts')].map((path) => stat(path)));
  expect(after.map(({ mtimeMs }) => mtimeMs)).toEqual(before.map(({ mtimeMs }) => mtimeMs));
});

test('D1 the folder of assets has the two pages alone, because all of it is uploaded', async () => {
  expect((await readdir(join(BUILT, 'assets'))).sort()).toEqual(['dashboard.html', 'docs.html']);
});

test('D1 each link of the page of documents leads to a heading or a rule of it', async () => {
  const docs = await readFile(join(BUILT, 'assets', 'docs.html'), 'utf8');
  const ids = new Set([...docs.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
  const links = [...docs.matchAll(/ href="([^"]+)"/g)].map(([, href = '']) => href);
  const own = links.filter((href) => href.startsWith('#'));
  expect(own.length).toBeGreaterThan(500);
  expect(own.filter((href) => !ids.has(href.slice(1)))).toEqual([]);
  expect(links.filter((href) => !/^(?:#|https?:\/\/|mailto:)/.test(href))).toEqual([]);
  expect(docs).not.toMatch(/<script|<img| on[a-z]+=| style=/);
});

/** The licences of third-party code, which the document must contain. */
const LICENCES = /<!--.*?-->/gs;

test('D1 the document has one script, one style, and no other URL', () => {
  expect(hashesOf('script')).toHaveLength(1);
  expect(hashesOf('style')).toHaveLength(1);
  const markup = DOCUMENT.replace(/<(script|style)>.*?<\/\1>/gs, '');
  expect(markup.match(/(src|href)="[^"]{0,22}/g)).toEqual(['href="data:image/svg+xml,%3C']);
  expect(markup).not.toMatch(/ on[a-z]+=| style=/);
});

test('the document has the complete licence of Preact, the only third-party code in its script', async () => {
  const licence = await readFile(join(ROOT, 'node_modules/preact/LICENSE'), 'utf8');
  expect(DOCUMENT.match(LICENCES)).toEqual([`<!--\nThis page contains preact:\n\n${licence.trim()}\n-->`]);
  expect(licence).toMatch(/Copyright \(c\) 2015-present Jason Miller\s+Permission is hereby granted/);
});

/** What the page may take. */
const MAX_KIB = 70;

test('D1 docs/dashboard.md names the size of the page (node tools/page/measure.ts), at most 70 KiB gzip', async () => {
  const docs = await readFile(join(ROOT, 'docs/dashboard.md'), 'utf8');
  const named = Number(/one document of (\d+) KiB gzip/.exec(docs)?.[1]);
  expect(Math.abs(named - pageSize().gzip)).toBeLessThan(3);
  expect(pageSize().gzip).toBeLessThanOrEqual(MAX_KIB);
});

test('D2 the page creates no markup and no code from strings', async () => {
  const page = join(ROOT, 'src', 'dashboard', 'page');
  const files = (await readdir(page, { recursive: true })).filter((path) => /\.tsx?$/.test(path));
  const texts = await Promise.all(files.map((path) => readFile(join(page, path), 'utf8')));
  expect(texts.join('\n')).not.toMatch(/innerHTML|insertAdjacentHTML|document\.write|outerHTML/i);
  expect(DOCUMENT).not.toMatch(/eval\(|new Function/);
});

describe('GET /dashboard', () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway({ vars: { AUTH: 'keys', BASE_PATH: '/llm' } });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test('D1 D2 below BASE_PATH: the document is public, not cached, and cannot be framed', async () => {
    const response = await gateway.fetch('/llm/dashboard');
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(DOCUMENT);
    const { headers } = response;
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')?.split('; ')).toEqual([
      "default-src 'none'",
      `script-src ${hashesOf('script')}`,
      `style-src ${hashesOf('style')}`,
      "connect-src 'self'",
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ]);
    expect([...headers.keys()].filter((name) => /^(etag|cf-cache-status|last-modified)$/.test(name))).toEqual(
      [],
    );
    const cached = await gateway.fetch('/llm/dashboard', {
      headers: { 'if-none-match': '*', range: 'bytes=0-9' },
    });
    expect([cached.status, await cached.text()]).toEqual([200, DOCUMENT]);
  });

  test('D1 below BASE_PATH, /dashboard/docs is the documents of this version, under a policy without scripts', async () => {
    const response = await gateway.fetch('/llm/dashboard/docs');
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(response.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-/,
    );
    const text = await response.text();
    const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    expect(response.headers.get('content-security-policy')).toContain(hash);
    expect(text).toContain('<h1 id="keys">');
  });

  test.each(['/dashboard', '/dashboard.html', '/llm/dashboard.html', '/', '/llm/assets/dashboard.html'])(
    'D1 the asset is at no other path: %s is not found',
    async (path) => {
      const response = await gateway.fetch(path);
      expect([response.status, response.headers.get('content-type')]).toEqual([
        404,
        'application/json; charset=utf-8',
      ]);
    },
  );

  test('D1 HEAD and other methods', async () => {
    const head = await gateway.fetch('/llm/dashboard', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await gateway.fetch('/llm/dashboard', { method: 'POST' });
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET']);
  });

  test('D2 the response is the same with and without ADMIN_TOKEN', async () => {
    const facts = async () => {
      const response = await gateway.fetch('/llm/dashboard');
      const headers = [...response.headers].filter(
        ([name]) => !/^(date|x-request-id|x-weir-request-id)$/.test(name),
      );
      return { headers, text: await response.text() };
    };
    const before = await facts();
    await gateway.set({ AUTH: 'keys', BASE_PATH: '/llm', ADMIN_TOKEN: undefined });
    expect(await facts()).toEqual(before);
  });
});
