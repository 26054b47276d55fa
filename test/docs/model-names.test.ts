/**
 * Models that the documents name exist: the simulator, which refuses what providers do not have, is asked for each.
 * Recipes run as the demo runs them.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROVIDERS } from '../../src/providers/index.ts';
import { matchesAnyGlob } from '../../src/shared/glob.ts';
import { demoVariables } from '../../tools/simulator/demo-variables.ts';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { basePaths } from '../../tools/simulator/scenes.ts';
import { createSimulator, type Simulator } from '../../tools/simulator/server.ts';
import { LimitedGateway } from '../gateway/limited-gateway.ts';
import '../gateway/upstreams.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** Its tables have families of models, which no request names. */
const FAMILIES = 'docs/models.md';
const pages = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join('docs', path)),
]
  .filter((path) => path !== FAMILIES)
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

/** What looks like a model and is none: an app, a profile, a module, a provider of Terraform's, a login and a family. */
const NO_MODELS: ReadonlySet<string> = new Set([
  ...['anthropic/claude-cli', 'gemini/gemini-native', 'openai/helpers/zod', 'mistral/magistral-medium'],
  ...['cloudflare/cloudflare', 'gemini/gemini-api-key'],
]);
/** "Was retired on 2026-07-24": docs/providers.md. The simulator has it, for other tests. */
const RETIRED = 'deepseek/deepseek-chat';

/** Code of a page: its fenced blocks, and each span. */
function codeOf(text: string): readonly string[] {
  const blocks = [...text.matchAll(/^ *```[^\n]*\n([\s\S]*?)^ *```/gm)].map(([, code = '']) => code);
  const rest = text.replace(/^ *```[\s\S]*?^ *```/gm, '');
  return [...blocks, ...[...rest.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => `"${code}"`)];
}

const ADDRESS = /(?<![\w./:@$-])([a-z][a-z0-9-]*)\/([\w./:-]*\w(?:@\d+)?)(?![*<…/\w-])/g;
const QUOTED = /["']([\w.:-]*\w)["']/g;

const ALIASES = /^ALIASES = ('''|')(\{[\s\S]*?\})\1/gm;

/** Names that pages give to aliases. */
const aliases: ReadonlySet<string> = new Set(
  pages.flatMap(({ text }) =>
    [...text.matchAll(ALIASES)].flatMap(([, , json = '']) => Object.keys(decodeObject(json) ?? {})),
  ),
);

/** A fault of the simulator that a model's name ends with. */
const FAULT = /:[a-z-]+$/;

/** The addresses of models in a code: written so, or a maker's own name in quotes. */
function modelsIn(code: string): readonly string[] {
  const addresses = [...code.matchAll(ADDRESS)].flatMap(([name, provider = '', model = '']) =>
    provider in basePaths && !aliases.has(name) && !/\.(?:ts|md|json)$/.test(model) ? [name] : [],
  );
  const bare = [...code.matchAll(QUOTED)].flatMap(([, name = '']) => {
    const maker = PROVIDERS.find(({ ownModels = [] }) => matchesAnyGlob(ownModels, name));
    return maker !== undefined && maker.id in basePaths && !aliases.has(name) ? `${maker.id}/${name}` : [];
  });
  return [...addresses, ...bare]
    .map((address) => address.replace(FAULT, ''))
    .filter((address) => !NO_MODELS.has(address));
}

let simulator: Simulator;
beforeAll(async () => {
  simulator = await createSimulator();
});
afterAll(() => simulator.close());

/** The demo's gateway in memory, at the simulator. */
function demoGateway(given: Readonly<Record<string, string>> = {}): LimitedGateway {
  const { ADMIN_TOKEN: _, ...settings } = demoVariables(simulator.url, given);
  const own = { AUTH: 'open', LEDGER: 'kv', RESPONSES: 'stateless' };
  return new LimitedGateway({ ...settings, ...own }, { fetch: (url, init) => fetch(url, init) });
}

/** The error of a request for a model, by the route that it is for. */
async function ask(gateway: LimitedGateway, model: string): Promise<JsonObject> {
  const [path, body] = /embed/.test(model)
    ? ['/v1/embeddings', { input: 'a' }]
    : /instruct$/.test(model)
      ? ['/v1/completions', { prompt: 'a' }]
      : ['/v1/chat/completions', { messages: [{ role: 'user', content: 'a' }] }];
  const response = await gateway.post(path, '', { model, ...body });
  return objectOf(decodeObject(await response.text())?.error);
}

describe('models that documents name exist at the simulator', () => {
  const named = Map.groupBy(
    pages.flatMap(({ path, text }) =>
      codeOf(text)
        .flatMap(modelsIn)
        .map((model) => ({ path, model })),
    ),
    ({ model }) => model,
  );

  test('the pages name models', () => {
    expect(named.size).toBeGreaterThan(20);
  });

  const rows = [...named].map(([model, places]) => [
    model,
    [...new Set(places.map(({ path }) => path))].join(', '),
  ]);
  test.each(rows)('%s, in %s', async (model = '', places) => {
    if (model === RETIRED) expect(places).toBe('docs/providers.md');
    expect(await ask(demoGateway(), model)).toEqual({});
  });
});

describe('the recipes of docs/routing.md', () => {
  const text = pages.find(({ path }) => path === 'docs/routing.md')?.text.split('\n## Recipes\n')[1] ?? '';
  const recipes = text
    .split(/^### /m)
    .slice(1)
    .flatMap((section) => {
      const [, toml] = /^```toml\n([\s\S]*?)^```/m.exec(section) ?? [];
      return toml === undefined ? [] : [[section.split('\n')[0] ?? '', toml] as const];
    });

  test.each(recipes)('%s: its aliases and servers answer at the demo with --var', async (_, toml) => {
    const given = Object.fromEntries(
      Object.entries(objectOf(parse(toml))).map(([name, value]) => [name, textOf(value)]),
    );
    const gateway = demoGateway(given);
    const aliases = Object.keys(decodeObject(given.ALIASES ?? '{}') ?? {});
    const servers = Object.keys(decodeObject(given.PROVIDERS ?? '{}') ?? {});
    const models = [
      ...aliases.map((name) => name.replaceAll('*', 'sonnet-5')),
      ...(aliases.length > 0 ? [] : servers.map((id) => `${id}/Qwen/Qwen3.8-27B`)),
    ];
    expect(models.length).toBeGreaterThan(0);
    for (const model of models) expect(await ask(gateway, model)).toEqual({});
    expect(simulator.requests.length).toBeGreaterThan(0);
  });
});
