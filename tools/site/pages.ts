/** The documents as pages of the site: where each is, its links, and their order, which is that of docs/README.md. */
import { posix } from 'node:path';

export interface Document {
  /** From the root of the repository, such as `docs/clients/README.md`. */
  readonly path: string;
  readonly text: string;
}

export interface Page {
  /** In the site's folder, such as `clients/index.md`. */
  readonly path: string;
  readonly text: string;
}

export interface SidebarItem {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: SidebarItem[];
}

/** Documents at the root of the repository that are pages, too. */
export const ROOT_DOCUMENTS = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'];

const HOME = 'docs/README.md';

/** The path of a document in the site; undefined: it is no page. */
export function pagePath(path: string): string | undefined {
  if (ROOT_DOCUMENTS.includes(path)) return path === 'README.md' ? 'about.md' : path.toLowerCase();
  if (!path.startsWith('docs/') || !path.endsWith('.md')) return undefined;
  return path.slice('docs/'.length).replace(/(^|\/)README\.md$/, '$1index.md');
}

const LINK = /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g;

/**
 * A document as a page: links between documents lead to their pages. The site has no source files, so a link to one is its text.
 *
 * @param isKept whether a file of `docs` that is no page, such as a picture, is in the site
 */
export function pageOf({ path, text }: Document, isKept: (path: string) => boolean): Page {
  const own = pagePath(path) ?? path;
  const linked = outsideOfCode(text, (prose) =>
    prose.replace(LINK, (whole, picture: string, words: string, target: string) => {
      if (/^(?:[a-z]+:|#)/.test(target)) return whole;
      const [file = '', anchor] = target.split('#');
      const found = posix.normalize(posix.join(posix.dirname(path), file));
      const to = pagePath(found) ?? (isKept(found) ? found.replace(/^docs\//, '') : undefined);
      if (to === undefined) return words;
      const relative = posix.relative(posix.dirname(own), to);
      const link = `${relative.startsWith('.') ? '' : './'}${relative}${anchor === undefined ? '' : `#${anchor}`}`;
      return `${picture}[${words}](${link})`;
    }),
  );
  return { path: own, text: linked.replace(/(<img[^>]* src=")(?![./]|[a-z]+:)/g, '$1./') };
}

/** Changes what stands neither in a block of code nor in a code span. */
function outsideOfCode(text: string, change: (prose: string) => string): string {
  return text
    .split(/^( *```[\s\S]*?^ *```)/gm)
    .map((part, i) => (i % 2 === 1 ? part : change(part).replace(/\{\{/g, '{<!-- -->{')))
    .join('');
}

/** What the shelves of docs/README.md are for. */
const SHELVES: Readonly<Record<string, string>> = {
  'Use it': 'Send requests: clients, streams, routing, errors',
  'Run it': 'Deploy it, hand out keys, set budgets, see what is spent',
  'Understand it': 'How it works, the contract, decisions, measurements',
};

/** The site's first page: what Weir is, the two commands, a card for each shelf, and the list of docs/README.md. */
export function homeOf(documents: readonly Document[], pages: readonly Page[]): string {
  const about = documents.find(({ path }) => path === 'README.md')?.text ?? '';
  const [, pitch = ''] = /^# Weir\n+([\s\S]+?)\n\n/.exec(about) ?? [];
  const commands = [...about.matchAll(/```console\n[\s\S]+?```/g)].slice(0, 2).map(([block]) => block);
  const list = pages.find(({ path }) => path === 'index.md')?.text ?? '';
  const cards = sidebarOf(documents).map(({ text, items = [] }) => ({
    title: text,
    details: SHELVES[text] ?? '',
    link: items[0]?.link ?? '/',
  }));
  const front = {
    layout: 'home',
    hero: {
      name: 'Weir',
      text: 'An LLM gateway on Cloudflare Workers',
      tagline: pitch.replaceAll('\n', ' '),
      actions: [
        { theme: 'brand', text: 'Get started', link: '/getting-started' },
        { theme: 'alt', text: 'What it does', link: '/about' },
      ],
    },
    features: cards,
  };
  // JSON is YAML.
  return `---\n${JSON.stringify(front)}\n---\n\n## Try it\n\n${commands.join('\n\n')}\n\n${list.replace(/^# .*$/m, '## All documents')}`;
}

/** The sidebar: the groups and links of docs/README.md, and below the page of a folder those of its other documents. */
export function sidebarOf(documents: readonly Document[]): SidebarItem[] {
  const home = documents.find(({ path }) => path === HOME)?.text ?? '';
  return home
    .split(/^\*\*/m)
    .slice(1)
    .map((group) => {
      const [title = '', list = ''] = group.split('**');
      const items = [...list.matchAll(LINK)].flatMap(([, , text = '', target = '']) => {
        const path = posix.normalize(posix.join('docs', target));
        const page = pagePath(path);
        if (page === undefined || target.includes('#')) return [];
        return [itemOf(capitalised(text), path, page, documents)];
      });
      return { text: title, items };
    });
}

function itemOf(text: string, path: string, page: string, documents: readonly Document[]): SidebarItem {
  const link = `/${page.replace(/(?:index)?\.md$/, '')}`;
  if (!page.endsWith('/index.md')) return { text, link };
  const folder = posix.dirname(path);
  const items = documents
    .filter((other) => posix.dirname(other.path) === folder && other.path !== path)
    .map((other) => ({ text: titleOf(other), link: `/${pagePath(other.path)?.replace(/\.md$/, '')}` }));
  return { text, link, collapsed: true, items };
}

/** The first heading. */
function titleOf({ path, text }: Document): string {
  return /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? path;
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
