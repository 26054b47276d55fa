/** Checks rules for the source code: layers, header comments, types and purity. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PROVIDERS } from '../src/providers/index.ts';

const SRC = join(import.meta.dirname, '..', 'src');

interface Source {
  /** Below `src/`, with slashes. */
  readonly path: string;
  /** The folder, or the file itself at the root. */
  readonly layer: string;
  readonly text: string;
  /** The code without comments, contents of strings and text of JSX. */
  readonly code: string;
  /** The paths below `src/` that it imports, and those from which it only imports types. */
  readonly imports: readonly string[];
  readonly typeImports: readonly string[];
}

const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  // `npm run page` writes these from sources that are checked.
  .filter((path) => /\.tsx?$/.test(path) && !path.startsWith('dashboard/built/'))
  .map(readSource);

function readSource(path: string): Source {
  const text = readFileSync(join(SRC, path), 'utf8');
  const all = [...text.matchAll(/^(import|export)( type)? [^;]*? from '(\.[^']+)'/gm)].map(
    ([, , isType, from]) => ({ isType, path: relative(SRC, join(SRC, dirname(path), from ?? '')) }),
  );
  const imports = all.flatMap((one) => (one.isType ? [] : [one.path]));
  const typeImports = all.flatMap((one) => (one.isType ? [one.path] : []));
  const plain = text
    .replace(/'[^'\n]*'|`[^`\n]*`|(?<=\bword(?:s|Set)\()`[^`]*`/g, "''")
    .replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  // Attributes and text of JSX.
  const code = path.endsWith('x') ? plain.replace(/"[^"\n]*"/g, '""').replace(/>[^<>{}]+</g, '><') : plain;
  return { path, layer: path.split('/')[0] ?? path, text, code, imports, typeImports };
}

/** What each layer may import besides itself: only layers below. The features come last. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  shared: [],
  facts: ['shared'],
  canonical: ['shared'],
  stream: ['shared', 'canonical'],
  'request-translation': ['shared', 'facts', 'canonical'],
  fitting: ['shared', 'facts', 'canonical', 'request-translation'],
  protocols: ['shared', 'facts', 'canonical', 'stream', 'request-translation', 'fitting'],
  providers: ['shared', 'facts', 'canonical', 'stream', 'request-translation', 'fitting', 'protocols'],
  auth: ['shared', 'canonical'],
  credentials: ['shared', 'canonical', 'stream'],
  upstream: ['shared', 'facts', 'canonical', 'stream', 'fitting', 'auth', 'credentials', 'providers'],
  metering: ['shared', 'facts', 'canonical'],
  settings: [
    'shared',
    'canonical',
    'stream',
    'auth',
    'credentials',
    'request-translation',
    'providers',
    'metering',
  ],
  routing: ['shared', 'canonical', 'request-translation', 'fitting', 'providers', 'metering', 'settings'],
  http: [
    'shared',
    'canonical',
    'stream',
    'fitting',
    'protocols',
    'credentials',
    'upstream',
    'routing',
    'metering',
    'auth',
    'settings',
  ],
  completion: [
    'shared',
    'fitting',
    'facts',
    'canonical',
    'stream',
    'request-translation',
    'protocols',
    'providers',
    'upstream',
    'routing',
    'metering',
    'auth',
    'settings',
    'http',
  ],
  api: [
    'shared',
    'canonical',
    'stream',
    'protocols',
    'providers',
    'upstream',
    'routing',
    'metering',
    'auth',
    'settings',
    'http',
    'completion',
  ],
  tracing: ['shared', 'providers', 'metering'],
  'types.ts': ['metering', 'settings'],
  'routes.ts': ['shared', 'canonical', 'protocols', 'http', 'completion', 'api'],
  'feature.ts': [
    'shared',
    'canonical',
    'auth',
    'metering',
    'settings',
    'http',
    'completion',
    'types.ts',
    'routes.ts',
  ],
  attribution: ['shared', 'canonical', 'auth', 'metering', 'settings', 'types.ts', 'feature.ts'],
  privacy: ['shared', 'canonical', 'auth', 'metering', 'http', 'api', 'types.ts', 'routes.ts', 'feature.ts'],
  dashboard: ['shared', 'canonical', 'types.ts', 'routes.ts', 'feature.ts'],
  'origin-proxy': ['shared', 'canonical', 'auth', 'settings', 'http', 'types.ts', 'routes.ts', 'feature.ts'],
  ledger: [
    'shared',
    'fitting',
    'facts',
    'canonical',
    'request-translation',
    'routing',
    'metering',
    'auth',
    'settings',
    'http',
    'types.ts',
    'feature.ts',
  ],
  'durable-responses': [
    'shared',
    'canonical',
    'stream',
    'protocols',
    'auth',
    'metering',
    'settings',
    'http',
    'completion',
    'api',
    'types.ts',
    'routes.ts',
    'feature.ts',
  ],
  'without-features.ts': [
    'shared',
    'canonical',
    'auth',
    'metering',
    'settings',
    'http',
    'completion',
    'feature.ts',
  ],
  'gateway.ts': [
    'shared',
    'fitting',
    'canonical',
    'stream',
    'auth',
    'credentials',
    'routing',
    'metering',
    'settings',
    'http',
    'api',
    'tracing',
    'types.ts',
    'routes.ts',
    'feature.ts',
    'without-features.ts',
  ],
  'environment.ts': [
    'shared',
    'canonical',
    'settings',
    'http',
    'tracing',
    'types.ts',
    'feature.ts',
    'gateway.ts',
  ],
  'weir.ts': ['metering', 'settings', 'tracing', 'types.ts', 'environment.ts'],
  'whole-worker.ts': [
    'tracing',
    'types.ts',
    'environment.ts',
    'attribution',
    'durable-responses',
    'ledger',
    'origin-proxy',
    'privacy',
  ],
  'index.ts': ['dashboard', 'whole-worker.ts'],
  'worker-gateway.ts': ['dashboard', 'whole-worker.ts'],
  'worker.ts': ['ledger', 'types.ts', 'worker-gateway.ts'],
};

/** Further layers from which a layer may import types, which leave no trace in the build. */
const TYPES: Readonly<Record<string, readonly string[]>> = {
  // The page reads the API's responses.
  dashboard: ['metering', 'api', 'auth'],
  http: ['api'],
  // What they implement for completions.
  attribution: ['completion', 'http'],
  ledger: ['completion'],
  'gateway.ts': ['completion'],
};

/** What a deployment can leave out. All other code works without them and declares the interfaces that it needs. */
const FEATURES = ['attribution', 'dashboard', 'durable-responses', 'ledger', 'origin-proxy', 'privacy'];
/** The files that list the features. */
const WIRING = ['whole-worker.ts', 'index.ts', 'worker-gateway.ts', 'worker.ts'];

const PURE_LAYERS = ['shared', 'facts', 'canonical', 'stream', 'protocols', 'request-translation', 'fitting'];
const IMPURE = /\b(Request|Response|fetch|env|KVNamespace|console|crypto)\b|Math\.random/;
const READS_CLOCK = /\b(setTimeout|setInterval|performance)\b|Date\.now|\bnew Date\(\)/;
/** Where the Worker meets the runtime. All its other code gets the time as an argument. */
const CLOCK_READERS = [
  'environment.ts',
  'ledger/ledger-object.ts',
  'durable-responses/feature.ts',
  'durable-responses/response-object.ts',
  // Ends calls of objects, in requests and in objects.
  'shared/durable-objects.ts',
];

describe.each(sources.map((source) => [source.path, source] as const))('src/%s', (_, source) => {
  test('imports only from lower layers', () => {
    const allowed = LAYERS[source.layer];
    expect(allowed, `${source.layer} is missing in the layer table`).toBeDefined();
    const layersOf = (paths: readonly string[]) =>
      paths.map((path) => path.split('/')[0] ?? path).filter((layer) => layer !== source.layer);
    expect(layersOf(source.imports).filter((layer) => !allowed?.includes(layer))).toEqual([]);
    const typesOf = [...(allowed ?? []), ...(TYPES[source.layer] ?? [])];
    expect(layersOf(source.typeImports).filter((layer) => !typesOf.includes(layer))).toEqual([]);
  });

  test('begins with a one-sentence description', () => {
    expect(source.text).toMatch(/^\/\*\*[^@]+?\*\/\n/);
  });

  test('has comments of at most 140 characters a line, except tables', () => {
    const comments = source.text.split('\n').filter((line) => /^\s*(\/\*\*|\/\/|\*) (?!\|)/.test(line));
    expect(comments.filter((line) => line.length > 140)).toEqual([]);
  });

  test('has no any, and no `as` that is not marked as the end of a decoding', () => {
    const lines = source.code.split('\n').filter((line) => !/^\s*(import|export) /.test(line));
    expect(lines.filter((line) => /\bany\b/.test(line))).toEqual([]);
    expect(lines.filter((line) => /\bas (?!const\b)/.test(line) && !/\/\/ decode$/.test(line))).toEqual([]);
  });

  test.runIf(PURE_LAYERS.includes(source.layer))('uses no network, store, randomness or log', () => {
    expect(source.code.split('\n').filter((line) => IMPURE.test(line))).toEqual([]);
  });

  const mayReadClock = CLOCK_READERS.includes(source.path) || source.path.startsWith('dashboard/page/');
  test.runIf(!mayReadClock)('reads no clock and starts no timer', () => {
    expect(source.code.split('\n').filter((line) => READS_CLOCK.test(line))).toEqual([]);
  });

  // OpenTelemetry names providers, too.
  const listsNames = source.path.startsWith('metering/pricing/') || source.path === 'tracing/spans.ts';
  // A client protocol, as records name it.
  const namesProtocol = [
    'metering/record.ts',
    'protocols/shared/client-protocol.ts',
    'protocols/gemini/client.ts',
    'dashboard/page/views/live/live.tsx',
    'dashboard/page/views/live/protocols.ts',
  ];
  const isProtocol = (id: string) => id === 'gemini' && namesProtocol.includes(source.path);
  test.runIf(source.layer !== 'providers' && !listsNames)(
    "names no provider: a provider's deviations and prices belong in its own file",
    () => {
      const named = PROVIDERS.filter(({ id }) => !isProtocol(id)).filter(({ id, name }) =>
        new RegExp(`['"\`](${id}|${name})['"\`]|^ *${id}\\??:`, 'm').test(source.text),
      );
      expect(named.map(({ id }) => id)).toEqual([]);
    },
  );
});

test('E1 only http/respond.ts writes the error of a request: handlers return it', () => {
  const writes = sources.filter(({ code }) => /\.errorResponse\(/.test(code));
  // The protocol of a route is given on with its session.
  expect(writes.map(({ path }) => path)).toEqual(['completion/request.ts', 'http/respond.ts']);
});

test('S1 only stream/sse-frame.ts writes the lines of events', () => {
  // These read them.
  const readers = ['stream/sse-frame.ts', 'durable-responses/frames.ts', 'stream/fast-path/template.ts'];
  const writes = sources
    .filter(({ path }) => !readers.includes(path) && !path.startsWith('dashboard/'))
    .filter(({ code }) =>
      /['"`](?:event|data): ?(?:\$\{|\[DONE|['"`])|\\n(?:event|data): |['"`]: \w+\\n/.test(code),
    );
  expect(writes.map(({ path }) => path)).toEqual([]);
});

/** Everything but the features and the files that list them. */
const core = sources.filter(({ layer }) => ![...FEATURES, ...WIRING].includes(layer));

/** What a file declares at its top level: `export ` or nothing, the kind, and the name. */
const DECLARATION = /^(export )?(?:async )?(?:abstract )?(interface|type|class|function)\*? (\w+)/gm;

test('one name, one thing: no two types of the core have the same name', () => {
  const paths = new Map<string, string[]>();
  for (const { path, text } of core) {
    for (const [, , kind, name = ''] of text.matchAll(DECLARATION)) {
      if (kind !== 'function') paths.set(name, [...(paths.get(name) ?? []), path]);
    }
  }
  expect([...paths].filter(([, declared]) => declared.length > 1)).toEqual([]);
});

test('each exported function and class of the core has a docstring', () => {
  const lacking = core.flatMap(({ path, text }) =>
    [...text.matchAll(DECLARATION)]
      .filter(([, isExported, kind]) => isExported && (kind === 'function' || kind === 'class'))
      .filter(({ index }) => !/\*\/\n$/.test(text.slice(0, index)))
      .map(([, , , name]) => `${path}: ${name}`),
  );
  expect(lacking).toEqual([]);
});

test('only stream/relay.ts knows whether a stream is over', () => {
  const asking = sources
    .filter(({ path }) => path.startsWith('stream/') && path !== 'stream/relay.ts')
    .filter(({ text }) => /\bis(?:Over|Stopped|Ended|Cancelled)\b|'over'/.test(text));
  expect(asking.map(({ path }) => path)).toEqual([]);
});

test('X9 the core imports no feature', () => {
  const importsOf = ({ path, imports, typeImports }: Source) =>
    [...imports, ...typeImports].map((imported) => ({ path, imported }));
  const wrong = core
    .flatMap(importsOf)
    .filter(({ imported }) => FEATURES.includes(imported.split('/')[0] ?? ''));
  expect(wrong).toEqual([]);
});

test('no import cycle', () => {
  const importsOf = new Map(
    sources.map(({ path, imports, typeImports }) => [path, [...imports, ...typeImports]]),
  );
  const done = new Set<string>();
  const cycles: string[] = [];
  function visit(path: string, trail: readonly string[]): void {
    if (trail.includes(path)) cycles.push([...trail, path].join(' -> '));
    if (done.has(path) || trail.includes(path)) return;
    for (const next of importsOf.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  }
  for (const { path } of sources) visit(path, []);
  expect(cycles).toEqual([]);
});

test('docs/architecture.md has every layer, each below those that it imports', () => {
  const text = readFileSync(join(SRC, '..', 'docs', 'architecture.md'), 'utf8');
  const table = text.split(/^## /m).find((section) => section.startsWith('Layers')) ?? '';
  const rows = [...table.matchAll(/^\| (`.+?) \|/gm)].map(([, names = '']) => [
    ...(names.match(/[\w.-]+/g) ?? []),
  ]);
  expect(rows.flat().sort()).toEqual(Object.keys(LAYERS).sort());
  const rowOf = (layer: string) => rows.findIndex((names: readonly string[]) => names.includes(layer));
  const wrong = Object.entries(LAYERS).flatMap(([layer, imports]) =>
    imports.filter((imported) => rowOf(imported) > rowOf(layer)).map((imported) => `${layer}: ${imported}`),
  );
  expect(wrong).toEqual([]);
});

test('miniflare is the version that wrangler depends on, so that tests run the workerd of `wrangler dev`', () => {
  const packageOf = (folder: string) => readFileSync(join(SRC, '..', folder, 'package.json'), 'utf8');
  const versionIn = (text: string) => /"miniflare": "([^"]+)"/.exec(text)?.[1];
  expect(versionIn(packageOf('.'))).toBe(versionIn(packageOf('node_modules/wrangler')));
});

test('no test has a time limit of its own that a slow machine could reach', () => {
  const root = join(SRC, '..');
  const files = ['test', 'tools', 'bench'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => join(folder, name)),
  );
  const own = /^ *\}, ([\d_]{4,})\);$|\b(?:poll|waitFor)\(.*\btimeout: ([\d_]+)/gm;
  const short = files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(own)]
      .map(([, limit, wait]) => Number((limit ?? wait ?? '').replaceAll('_', '')))
      .filter((limit) => limit < 300_000)
      .map((limit) => `${file}: ${limit}`),
  );
  expect(short).toEqual([]);
});
