/**
 * Runs Workers in Miniflare, which brings the workerd that wrangler runs: the bundle that `wrangler deploy` would upload, with the
 * compatibility date, the flags and the bindings of wrangler.toml. Without wrangler, a start takes a third of a second.
 */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import { Log, LogLevel, Miniflare, type MiniflareOptions, Response as MiniflareResponse } from 'miniflare';
import { parse } from 'smol-toml';
import { buildPage } from '../../tools/page/build.ts';
import { objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';

type WorkerConfig = MiniflareOptions['workers'][number]['config'];
type Env = NonNullable<WorkerConfig['env']>;
type Dev = NonNullable<MiniflareOptions['workers'][number]['dev']>;
type Remote = NonNullable<Dev['remoteProxyConnectionString']>;

const ROOT = join(import.meta.dirname, '..', '..');

/** What wrangler.toml says of the deployed Worker. */
const DEPLOYED = objectOf(parse(readFileSync(join(ROOT, 'wrangler.toml'), 'utf8')));
/** The deployed Worker's source file. */
const MAIN = join(ROOT, textOf(DEPLOYED.main));

const COMPATIBILITY_DATE = textOf(DEPLOYED.compatibility_date);
const COMPATIBILITY_FLAGS = Array.isArray(DEPLOYED.compatibility_flags)
  ? DEPLOYED.compatibility_flags.map(textOf)
  : [];

/** The folder of the bundles that vitest's global setup has built; unset elsewhere, for example in `npm run soak`. */
const BUNDLES = 'WEIR_BUNDLES';

/** esbuild's options in wrangler 4.155, `bundleWorker`, for a deployment. */
const BUNDLING: BuildOptions = {
  absWorkingDir: ROOT,
  bundle: true,
  format: 'esm',
  target: 'es2024',
  supported: { 'import-source': true, using: true },
  conditions: ['workerd', 'worker', 'browser'],
  loader: { '.js': 'jsx', '.mjs': 'jsx', '.cjs': 'jsx' },
  define: Object.fromEntries([
    ['navigator.userAgent', '"Cloudflare-Workers"'],
    ...['process', 'global.process', 'globalThis.process'].map((name) => [
      `${name}.env.NODE_ENV`,
      '"production"',
    ]),
  ]),
  external: ['cloudflare:*', 'node:*'],
  minify: DEPLOYED.minify === true,
  keepNames: DEPLOYED.keep_names !== false,
  logLevel: 'silent',
};

/** Builds the deployed Worker into a folder, where this process and its children find it. */
export async function buildDeployed(directory: string): Promise<void> {
  await buildPage();
  await build({ ...BUNDLING, entryPoints: [MAIN], outfile: bundlePath(directory, MAIN) });
  process.env[BUNDLES] = directory;
}

/** The text of the deployed Worker's bundle. */
export const deployedBundle = (): Promise<string> => bundleOf(MAIN);

/** The bundle of a host with this source, which imports from `src`. */
export async function hostBundle(contents: string): Promise<string> {
  await buildPage();
  const stdin = { contents, resolveDir: join(ROOT, 'src'), loader: 'ts' as const };
  const { outputFiles } = await build({ ...BUNDLING, stdin, write: false });
  return outputFiles[0]?.text ?? '';
}

/** The paths of the files in the deployed Worker's bundle, from the repository on. */
export async function deployedSources(): Promise<readonly string[]> {
  await buildPage();
  const { metafile } = await build({ ...BUNDLING, entryPoints: [MAIN], write: false, metafile: true });
  return Object.keys(metafile.inputs);
}

/** The bytes that each file has in the deployed Worker's bundle, by its path from the repository on. */
export async function deployedBytes(): Promise<ReadonlyMap<string, number>> {
  await buildPage();
  const { metafile } = await build({ ...BUNDLING, entryPoints: [MAIN], write: false, metafile: true });
  const files = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs));
  return new Map(files.map(([path, { bytesInOutput }]) => [path, bytesInOutput]));
}

const bundles = new Map<string, Promise<string>>();

/** The bundle's text. @param main the absolute path of the Worker's source */
function bundleOf(main: string): Promise<string> {
  const bundle = bundles.get(main) ?? readBundle(main);
  bundles.set(main, bundle);
  return bundle;
}

async function readBundle(main: string): Promise<string> {
  const directory = process.env[BUNDLES];
  const path = directory === undefined ? '' : bundlePath(directory, main);
  if (existsSync(path)) return readFileSync(path, 'utf8');
  await buildPage();
  const { outputFiles } = await build({ ...BUNDLING, entryPoints: [main], write: false });
  return outputFiles?.[0]?.text ?? '';
}

/** A bundle in a file, and how workerd runs it. */
export interface WorkerFile {
  readonly directory: string;
  /** A path in the directory. */
  readonly file: string;
  readonly compatibilityDate: string;
  readonly compatibilityFlags: readonly string[];
}

/**
 * Bundles a Worker for a workerd process.
 * @param name of its folder, which is different for each test file; below the repository, where Git ignores it
 * @param main the absolute path of the Worker's source. Default: the deployed Worker
 */
export async function writeBundle(name: string, main = MAIN): Promise<WorkerFile> {
  const directory = join(ROOT, '.wrangler', 'workers', name);
  const file = 'index.js';
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, file), await bundleOf(main));
  return { directory, file, compatibilityDate: COMPATIBILITY_DATE, compatibilityFlags: COMPATIBILITY_FLAGS };
}

function bundlePath(directory: string, main: string): string {
  return join(directory, `${relative(ROOT, main).replaceAll('/', '-')}.js`);
}

export interface WorkerOptions {
  /** Default: `weir`. */
  readonly name?: string;
  /** The path of its source: absolute, or relative to this folder. Default: the deployed Worker. */
  readonly main?: string;
  readonly vars?: Readonly<Record<string, string>>;
  /** Bindings in addition to those of wrangler.toml, or false to remove one. */
  readonly bindings?: Readonly<Record<string, Env[string] | false>>;
  readonly triggers?: WorkerConfig['triggers'];
  /** Default: those of wrangler.toml. */
  readonly compatibilityFlags?: readonly string[];
  /** Answers all requests that the Worker sends. Default: they go over the network. */
  readonly outbound?: (url: string, init: RequestInit) => Promise<Response>;
}

/** A Worker with the date, the flags and the bindings of wrangler.toml. Its KV namespaces and its objects are its own. */
async function configOf(options: WorkerOptions): Promise<WorkerConfig> {
  const { name = 'weir', main = MAIN, vars = {}, bindings = {}, triggers } = options;
  const { compatibilityFlags = COMPATIBILITY_FLAGS } = options;
  const objects = objectsOf(objectOf(DEPLOYED.durable_objects).bindings);
  const assets = objectOf(DEPLOYED.assets);
  const env: Record<string, Env[string] | false> = {
    ...Object.fromEntries(
      objectsOf(DEPLOYED.kv_namespaces).map(({ binding }) => [
        textOf(binding),
        { type: 'kv', id: `${name}-${textOf(binding)}` } as const,
      ]),
    ),
    ...Object.fromEntries(
      objects.map(({ name: binding, class_name }) => [
        textOf(binding),
        { type: 'durable-object', worker: name, exportName: textOf(class_name) } as const,
      ]),
    ),
    ASSETS: { type: 'assets' },
    ...Object.fromEntries(
      Object.entries(vars).map(([key, value]) => [key, { type: 'text', value } as const]),
    ),
    ...bindings,
  };
  const bound = Object.entries(env).filter((entry): entry is [string, Env[string]] => entry[1] !== false);
  const classes = bound.flatMap(([, binding]) =>
    binding.type === 'durable-object' && 'exportName' in binding ? [textOf(binding.exportName)] : [],
  );
  const contents = await bundleOf(resolve(import.meta.dirname, main));
  return {
    name,
    compatibilityDate: COMPATIBILITY_DATE,
    compatibilityFlags: [...compatibilityFlags],
    assets: {
      directory: join(ROOT, textOf(assets.directory)),
      hasUserWorker: true,
      htmlHandling: 'none',
      runWorkerFirst: assets.run_worker_first === true,
    },
    manifest: { mainModule: 'index.js', modules: { 'index.js': { type: 'esm', contents } } },
    env: Object.fromEntries(bound),
    exports: Object.fromEntries(
      classes.map((className) => [className, { type: 'durable-object', storage: 'sqlite' }]),
    ),
    ...(triggers && { triggers }),
  };
}

export interface RuntimeOptions {
  readonly workers: readonly WorkerOptions[];
  /** Receives each line that a Worker logs. */
  readonly onLog?: (line: string) => void;
  /** `127.0.0.1:<port>` of the origin behind the zone that the Worker runs on. */
  readonly zone?: string;
  /** Where the bindings that run remotely are; absent: there is none. */
  readonly remote?: URL;
  /** The folder to which the runtime writes KV and Durable Objects. Default: a temporary one. */
  readonly persist?: string;
}

export interface Runtime extends AsyncDisposable {
  /** Of the first Worker; without a trailing slash. */
  readonly url: string;
  readonly miniflare: Miniflare;
  /** Restarts workerd with other Workers. The URL, KV and the objects' storage are kept. */
  set(workers: readonly WorkerOptions[]): Promise<void>;
}

/** Starts one workerd that runs these Workers. */
export async function startWorkers(options: RuntimeOptions): Promise<Runtime> {
  const miniflare = new Miniflare(await runtimeOptions(options, options.workers));
  const { origin } = await miniflare.ready;
  return {
    url: origin,
    miniflare,
    set: async (workers) => miniflare.setOptions(await runtimeOptions(options, workers)),
    [Symbol.asyncDispose]: () => miniflare.dispose(),
  };
}

async function runtimeOptions(
  { onLog, zone, persist, remote }: RuntimeOptions,
  workers: readonly WorkerOptions[],
): Promise<MiniflareOptions> {
  return {
    host: '127.0.0.1',
    port: 0,
    // No request to Cloudflare for the properties of `request.cf`.
    cf: false,
    log: new Log(LogLevel.NONE),
    logRequests: false,
    enableDevRegistry: false,
    handleStructuredLogs: ({ message }) => onLog?.(message),
    ...(zone === undefined ? {} : { upstream: `http://${zone}` }),
    ...(persist === undefined ? {} : { resourcePersistencePath: persist }),
    workers: await Promise.all(
      workers.map(async (worker) => ({
        config: await configOf(worker),
        ...outboundOf(worker),
        ...(remote && { dev: { remoteProxyConnectionString: remote as URL & Remote } }), // decode
      })),
    ),
  };
}

/** Miniflare's option for the requests that a Worker sends. */
function outboundOf({ outbound }: WorkerOptions): Pick<MiniflareOptions['workers'][number], 'dev'> {
  if (outbound === undefined) return {};
  type Service = Extract<
    NonNullable<NonNullable<MiniflareOptions['workers'][number]['dev']>['outboundService']>,
    { type: 'fetcher' }
  >;
  const handler: Service['handler'] = async (request) => {
    const { url, method } = request;
    const headers = Object.fromEntries(request.headers);
    const body = new Uint8Array(await request.arrayBuffer());
    const response = await outbound(url, { method, headers, body });
    return new MiniflareResponse(await response.arrayBuffer(), {
      status: response.status,
      headers: Object.fromEntries(response.headers),
    });
  };
  return { dev: { outboundService: { type: 'fetcher', handler } } };
}
