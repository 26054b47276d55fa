/** Makes the page of documents that the dashboard links to: the pages of `docs`, in the order of docs/README.md, as one HTML document. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { Marked } from 'marked';
import { type Document, pageOf, pagePath, type SidebarItem, sidebarOf } from '../site/pages.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** The page with the list of all others, which is the navigation. */
const LIST = 'index';

const STYLE = `:root{color-scheme:light dark;font:15px/1.55 system-ui,sans-serif;color:light-dark(#1b1f23,#e6e9ec);background:light-dark(#fff,#14171a)}
*{box-sizing:border-box;min-width:0}
body{display:grid;grid-template-columns:15rem minmax(0,52rem);gap:3rem;margin:0;padding:1.5rem}
nav{position:sticky;top:1.5rem;max-height:calc(100vh - 3rem);overflow:auto;align-self:start;font-size:.9rem}
nav ul{padding-left:.8rem;list-style:none}
a{color:light-dark(#0b66c3,#62a8f0)}
section{border-bottom:1px solid light-dark(#dfe3e6,#31373d);margin-bottom:3rem;padding-bottom:2rem}
code,pre{font:.88em ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}
pre{white-space:pre-wrap;padding:.8rem;background:light-dark(#f6f7f8,#1c2024)}
table{width:100%;border-collapse:collapse;font-size:.92rem}
td,th{padding:.3rem .5rem;border:1px solid light-dark(#dfe3e6,#31373d);text-align:left;vertical-align:top;overflow-wrap:anywhere}
@media(max-width:60rem){body{display:block}nav{position:static;max-height:none}}`;

/** Documents that are pages here. */
export function docsInputs(): readonly string[] {
  return readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .sort()
    .map((path) => join(ROOT, 'docs', path));
}

/** The document, and its style, which its security policy allows. */
export function docsPage(): { readonly html: string; readonly style: string } {
  const documents = docsInputs().map((path): Document => {
    const name = path.slice(ROOT.length + 1).replaceAll('\\', '/');
    return { path: name, text: readFileSync(path, 'utf8') };
  });
  const groups = sidebarOf(documents);
  const listed = groups.flatMap(({ items = [] }) => items.flatMap((item) => [item, ...(item.items ?? [])]));
  const order = new Map(listed.map(({ link = '' }, at) => [idOfLink(link), at]));
  const pages = documents
    .map((document) => ({ id: idOf(pagePath(document.path) ?? ''), document }))
    .filter(({ id }) => id !== LIST)
    .sort((a, b) => (order.get(a.id) ?? order.size) - (order.get(b.id) ?? order.size));
  const ids = new Set(pages.map(({ id }) => id));
  const sections = pages.map(({ id, document }) => `<section>${htmlOf(id, document, ids)}</section>`);
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex"><title>Documents – Weir</title><style>${STYLE}</style></head><body><nav aria-label="Documents" tabindex="0">${groups.map((group) => groupHtml(group, ids)).join('')}</nav><main>${sections.join('')}</main></body></html>`;
  return { html, style: STYLE };
}

function groupHtml({ text, items = [] }: SidebarItem, ids: ReadonlySet<string>): string {
  const links = items.map(({ text: name, link = '' }) => {
    const id = idOfLink(link);
    return ids.has(id) ? `<li><a href="#${id}">${escapeHtml(name)}</a></li>` : '';
  });
  return `<h2>${escapeHtml(text)}</h2><ul>${links.join('')}</ul>`;
}

/** The id of a page, such as `clients/pi`. */
function idOf(path: string): string {
  return path.replace(/\.md$/, '').replace(/\/index$/, '');
}

function idOfLink(link: string): string {
  return link.replace(/^\//, '').replace(/\/$/, '');
}

function htmlOf(id: string, document: Document, ids: ReadonlySet<string>): string {
  const page = pageOf(document, () => false);
  const seen = new Map<string, number>();
  const marked = new Marked({
    renderer: {
      heading(text, level, raw) {
        const base = slugOf(raw);
        const repeats = seen.get(base) ?? 0;
        seen.set(base, repeats + 1);
        // The first heading is the page.
        const own = level === 1 ? id : `${id}/${base}${repeats === 0 ? '' : `-${repeats}`}`;
        return `<h${level} id="${own}">${text}</h${level}>\n`;
      },
      link(href, _title, text) {
        if (/^[a-z]+:/.test(href)) return `<a href="${escapeHtml(href)}" rel="noreferrer">${text}</a>`;
        const [file = '', anchor] = href.split('#');
        const to = file === '' ? id : idOf(posix.normalize(posix.join(posix.dirname(page.path), file)));
        if (!ids.has(to)) return text;
        return `<a href="#${to}${anchor === undefined ? '' : `/${anchor}`}">${text}</a>`;
      },
      // The asset is one file.
      image: (_href, _title, text) => escapeHtml(text),
      checkbox: () => '☐ ',
      tablecell: (content, { header }) =>
        header && content !== '' ? `<th>${content}</th>` : `<td>${content}</td>`,
    },
  });
  return String(marked.parse(page.text.replaceAll('<a id="', `<a id="${id}/`)));
}

/** The anchor of a heading, as GitHub makes it. */
function slugOf(heading: string): string {
  const plain = heading.replace(/<[^>]*>/g, '').toLowerCase();
  return plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/ /g, '-');
}

function escapeHtml(text: string): string {
  return text.replace(/[&"<>]/g, (char) => `&#${char.charCodeAt(0)};`);
}
