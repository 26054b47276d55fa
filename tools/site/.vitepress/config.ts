/** The site's configuration: `npm run docs` writes its pages and its sidebar first. A link that leads nowhere fails the build. */
import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitepress';
import { SEARCH } from '../search.ts';

export default defineConfig({
  title: 'Weir',
  description: 'An LLM gateway on Cloudflare Workers',
  srcDir: 'pages',
  outDir: '../../dist/site',
  cleanUrls: true,
  lastUpdated: false,
  // The codes of rules, which are anchors and lead nowhere.
  head: [
    [
      'style',
      {},
      '.vp-doc a[id]{color:var(--vp-c-text-3);font-size:.75em;text-decoration:none;scroll-margin-top:90px}',
    ],
  ],
  themeConfig: {
    sidebar: JSON.parse(readFileSync(new URL('../sidebar.json', import.meta.url), 'utf8')),
    outline: [2, 3],
    search: { provider: 'local', options: { detailedView: true, miniSearch: SEARCH } },
  },
});
