/** Questions of new users, which the site's search has to answer: the built index is asked as the page asks it. `npm run docs` runs this. */
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { SEARCH } from './search.ts';

const SITE = join(import.meta.dirname, '..', '..', 'dist', 'site');
/** Among so many results the answer has to be: what the search shows without scrolling. */
const SHOWN = 5;

/** What someone types, and the sections or pages that answer it. */
const QUESTIONS: readonly (readonly [question: string, ...answers: string[]])[] = [
  ['how do I set a budget', '/budgets#set-a-budget-and-other-limits', '/keys#create-a-key'],
  ['why was I charged', '/budgets#what-is-charged'],
  ['how do I add a provider', '/providers#add-a-provider-of-your-own'],
  ['what does upstream_truncated mean', '/errors#of-the-provider', '/streams#how-a-stream-ends'],
  ['how do I deploy below /ai', '/deployment#on-an-existing-domain-below-a-path-such-as-ai'],
  ['why did my prompt cache break', '/prompt-caches#read-a-break'],
  ['claude code with deepseek', '/clients/claude-code#claude-code', '/recipes#claude-code-at-another-model'],
  [
    'fallback to another model when a provider is down',
    '/routing#fallback-what-moves-on-to-the-next-target',
    '/recipes#fallback-to-another-provider-or-model',
  ],
  ['are my prompts stored', '/privacy'],
  ['docker', '/deployment#without-cloudflare'],
  ['kubernetes', '/deployment#without-cloudflare'],
  ['can I run it without cloudflare', '/deployment#without-cloudflare'],
  ['self-hosting', '/deployment#without-cloudflare'],
  ['sso', '/sign-in'],
  ['read-only', '/keys#tokens-that-only-read'],
  ['slack', '/alerts'],
  ['gdpr', '/privacy'],
  ['weekly', '/alerts#weekly-summary', '/budgets'],
  ['bedrock', '/clouds', '/providers#aws-bedrock'],
  ['vertex', '/clouds', '/providers'],
  ['what does it cost a month', '/sizes-and-costs#what-a-deployment-costs-a-month'],
  ['bundle size', '/sizes-and-costs#bundles'],
  ['401 invalid api key', '/errors#of-the-request', '/troubleshooting'],
  ['limit requests per minute of a user', '/budgets#limits-for-each-user'],
  ['which reasoning effort does the model support', '/models#efforts', '/request-translation#efforts'],
];

interface Index {
  search(question: string): readonly { readonly id: string }[];
}

/** The index of the built site, with the options of VitePress's search box. */
async function siteIndex(): Promise<Index> {
  const chunks = join(SITE, 'assets', 'chunks');
  const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndexroot')) ?? '';
  const { default: json } = await import(join(chunks, file));
  const MiniSearch = createRequire(join(import.meta.dirname, 'package.json'))('minisearch');
  return MiniSearch.loadJSON(json, {
    fields: ['title', 'titles', 'text'],
    storeFields: ['title', 'titles'],
    ...SEARCH.options,
    searchOptions: SEARCH.searchOptions,
  });
}

const index = await siteIndex();
for (const [question, ...answers] of QUESTIONS) {
  const ids = index.search(question).map(({ id }) => id);
  const place = ids.findIndex((id) => answers.some((answer) => id === answer || id.startsWith(`${answer}#`)));
  const isShown = place >= 0 && place < SHOWN;
  process.stdout.write(`${isShown ? place + 1 : '-'}  ${question}: ${ids[Math.max(place, 0)]}\n`);
  if (!isShown) {
    process.stderr.write(`The search does not answer "${question}": ${ids.slice(0, SHOWN).join(', ')}\n`);
    process.exitCode = 1;
  }
}
