/** The text of `docs/llms.txt`, from the list of documents in docs/README.md and the titles of the clients' pages. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const DOCS = join(import.meta.dirname, '..', '..', 'docs');

const INTRO = `# Weir

> An LLM gateway for Cloudflare Workers: one endpoint for OpenAI Chat Completions, OpenAI Responses, Anthropic Messages and Gemini's API with the models of every provider. Tokens and cost of each request are recorded in your own account, and keys have hard budgets.

To set Weir up: \`npm ci && npm run demo\` runs it against simulated providers without an account; \`npm run setup -- --answers setup.json\` deploys it (see Deployment; \`--dry-run\` only shows the steps). To call it: any SDK of OpenAI, Anthropic or Google with the base URL of the deployment and a key \`weir_…\`; a model is \`<provider>/<model>\`, an alias, or the maker's own name. Every route is in [Routes and fields](api.md), with its schemas in [openapi.json](openapi.json).`;

/**
 * @param home the text of docs/README.md
 * @param clients the pages of clients: the path from `docs`, and the title
 */
function llmsText(
  home: string,
  clients: readonly { readonly path: string; readonly title: string }[],
): string {
  const groups = home.split(/^\*\*/m).slice(1);
  const sections = groups.map((group) => {
    const [title = '', list = ''] = group.split('**\n');
    // Documents at the root of the repository are not beside this file.
    return `## ${title}\n\n${list.trim().replace(/\[([^\]]*)\]\(\.\.\/[^)]*\)/g, '$1')}`;
  });
  const pages = clients.map(({ path, title }) => `- [${title}](${path})`).join('\n');
  const [first = '', ...others] = sections;
  return `${[INTRO, first, `## Clients\n\n${pages}`, ...others].join('\n\n')}\n`;
}

/** The text for the documents as they are on disk. */
export function writtenLlmsText(): string {
  const read = (path: string) => readFileSync(join(DOCS, path), 'utf8');
  const clients = readdirSync(join(DOCS, 'clients'))
    .filter((name) => name !== 'README.md')
    .sort()
    .map((name) => ({
      path: `clients/${name}`,
      title: /^# (.+)$/m.exec(read(`clients/${name}`))?.[1] ?? name,
    }));
  return llmsText(read('README.md'), clients);
}
