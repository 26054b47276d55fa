/** What documents and the deploy button's files say of each provider that needs a key alone, from the providers' files. */
import { isReserved, PROVIDERS } from '../../src/providers/index.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { decodeObject, objectOf } from '../simulator/json.ts';

const ofNoCloud = PROVIDERS.filter(({ cloud }) => cloud === undefined);
/** They need nothing else than their key. */
const byKey = ofNoCloud.filter(({ defaultBaseUrl }) => defaultBaseUrl !== null);
/** Their rows in documents have one form. */
const ofOneForm = ofNoCloud.filter(({ id }) => !isReserved(id));

/** The writer of each file: its text, with what follows from the providers. What people have written of a provider stays. */
export const LISTS: Readonly<Record<string, (text: string) => string>> = {
  '.dev.vars.example': exampleOf,
  'package.json': packageOf,
  'docs/settings.md': settingsOf,
  'docs/providers.md': providersOf,
};

/** Replaces what the pattern finds. Throws if it finds nothing: then the layout of the file has changed. */
function put(text: string, place: RegExp, written: string): string {
  if (!place.test(text)) throw new Error(`There is no place for the list of providers: ${place}`);
  return text.replace(place, () => written);
}

function exampleOf(text: string): string {
  const listed = new Set<string>();
  const lines = byKey.flatMap(({ apiKeySettings: [first, ...others] }) =>
    [first, ...others]
      .filter((name) => !listed.has(name))
      .flatMap((name) => {
        listed.add(name);
        return name === first ? [`# ${name}=`] : [`# Used if ${first} is not set:`, `# ${name}=`];
      }),
  );
  const [first = ''] = lines;
  return put(text, new RegExp(`^${first}\n(?:#.*\n)*`, 'm'), `${lines.join('\n')}\n`);
}

function packageOf(text: string): string {
  const parsed = decodeObject(text) ?? {};
  const cloudflare = objectOf(parsed.cloudflare);
  const described = new Map(Object.entries(objectOf(cloudflare.bindings)));
  let last = '';
  for (const { id, name, apiKeySettings } of byKey) {
    const [key] = apiKeySettings;
    if (!described.has(key)) {
      const entries = [...described];
      const at = entries.findIndex(([other]) => other === last) + 1;
      const description = `Your key of ${name}; it enables \`${id}/…\`.`;
      described.clear();
      for (const [other, value] of entries.toSpliced(at, 0, [key, { description }]))
        described.set(other, value);
    }
    last = key;
  }
  const bindings = Object.fromEntries(described);
  return `${JSON.stringify({ ...parsed, cloudflare: { ...cloudflare, bindings } }, null, 2)}\n`;
}

function settingsOf(text: string): string {
  const names = (settings: readonly string[]) => settings.map((name) => `\`${name}\``).join(', ');
  const keys = names(ofNoCloud.map(({ apiKeySettings }) => apiKeySettings[0]));
  const urls = names(ofOneForm.map(({ baseUrlSettings }) => baseUrlSettings[0]));
  const withKeys = put(text, /^\| `DEEPSEEK_API_KEY`, [^|]* \|/m, `| ${keys} |`);
  return put(withKeys, /^\| `GROQ_BASE_URL`, [^|]* \|/m, `| ${urls} |`);
}

/** The routes of a server that is compatible with OpenAI's API, which the page names once. */
const COMMON = ['chat', 'completions', 'fim', 'embeddings'];

function hasCommonRoutes({ endpoints }: Provider): boolean {
  return COMMON.every((route) => Object.hasOwn(endpoints, route));
}

/** What a row says of routes beyond the common ones stays. */
function providersOf(text: string): string {
  const rowOf = (provider: Provider) => {
    const { id, apiKeySettings, defaultBaseUrl, endpoints } = provider;
    const begin = `| \`${id}\` | \`${apiKeySettings[0]}\` | \`${defaultBaseUrl}\` | `;
    const routes = hasCommonRoutes(provider) ? 'as below' : Object.keys(endpoints).join(', ');
    const known = text.split('\n').find((line) => line.startsWith(begin + routes));
    return known ?? `${begin}${routes} |`;
  };
  const table = put(text, /^\| `groq` \| .*\n(?:\| `.*\n)*/m, `${ofOneForm.map(rowOf).join('\n')}\n`);
  const last = ofOneForm.findLast(hasCommonRoutes)?.id;
  return put(
    table,
    /^The routes from `groq` to `[^`]+` are /m,
    `The routes from \`groq\` to \`${last}\` are `,
  );
}
