/** Runs a bundle in a separate workerd process without a proxy or an inspector, and keeps its log. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { decodeObject, type JsonObject, numberOf } from '../../../tools/simulator/json.ts';
import type { WorkerFile } from '../../e2e/workers.ts';

/** The workerd that wrangler runs. The package's default export is the path of the binary. */
const WORKERD: { readonly default: string } = createRequire(
  createRequire(import.meta.url).resolve('wrangler/package.json'),
)('workerd');
/**
 * A Worker's isolate has 128 MB at Cloudflare. The second flag starts garbage collection at 16 MB instead of half the limit,
 * so that tests measure the memory that requests hold, without garbage before the first collection.
 */
const V8_FLAGS = ['--max-heap-size=128', '--initial-old-space-size=16'];
const START_LIMIT_MS = 120_000;

export interface Workerd {
  readonly pid: number;
  readonly port: number;
  /** Log lines that are JSON objects, and all other lines, which are workerd's. */
  readonly logged: readonly JsonObject[];
  readonly otherLines: readonly string[];
  /** Whether the process is running. */
  isAlive(): boolean;
  stop(): Promise<void>;
}

export interface WorkerdOptions {
  readonly bundle: WorkerFile;
  readonly kvPort: number;
  readonly vars: Readonly<Record<string, string>>;
  /** The module of a tail Worker that receives the gateway's traces. */
  readonly tail?: string;
}

let started = 0;

export async function startWorkerd(options: WorkerdOptions): Promise<Workerd> {
  const config = join(options.bundle.directory, `workerd-${++started}.capnp`);
  await writeFile(config, configOf(options));
  const child = spawn(WORKERD.default, ['serve', '--control-fd=3', config, 'config'], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  endWithThisProcess(child);
  const logged: JsonObject[] = [];
  const otherLines: string[] = [];
  for (const input of [child.stdout, child.stderr]) {
    if (input === null) continue;
    createInterface({ input }).on('line', (line) => {
      const object = decodeObject(line);
      if (object === undefined) otherLines.push(line);
      else logged.push(object);
    });
  }
  const isAlive = () => child.exitCode === null && child.signalCode === null;
  async function stop(): Promise<void> {
    if (!isAlive()) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
  try {
    const port = await listeningPort(child);
    return { pid: child.pid ?? 0, port, logged, otherLines, isAlive, stop };
  } catch (error) {
    await stop();
    throw new Error(`${String(error)}\n${otherLines.join('\n').slice(0, 1000)}`);
  }
}

function configOf({ bundle, kvPort, vars, tail }: WorkerdOptions): string {
  const text = JSON.stringify;
  const date = `compatibilityDate = ${text(bundle.compatibilityDate)}`;
  const bindings = Object.entries(vars).map(
    ([name, value]) => `(name = ${text(name)}, text = ${text(value)})`,
  );
  const tailService = `
    (name = "tail", worker = (modules = [(name = "tail.js", esModule = ${text(tail)})], ${date})),`;
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "index.js", esModule = embed ${text(bundle.file)})],
      ${date},
      compatibilityFlags = [${bundle.compatibilityFlags.map((flag) => text(flag)).join(', ')}],
      bindings = [${bindings.join(', ')}, (name = "WEIR_KV", kvNamespace = "kv")],
      streamingTails = [${tail === undefined ? '' : '"tail"'}],
    )),${tail === undefined ? '' : tailService}
    (name = "kv", external = (address = "127.0.0.1:${kvPort}", http = ())),
    (name = "internet", network = (allow = ["private"])),
  ],
  v8Flags = [${V8_FLAGS.map((flag) => text(flag)).join(', ')}],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`;
}

async function listeningPort(child: ChildProcess): Promise<number> {
  const control = child.stdio[3];
  if (!(control instanceof Readable)) throw new Error('workerd has no control channel');
  const signal = AbortSignal.timeout(START_LIMIT_MS);
  const line = once(createInterface({ input: control }), 'line', { signal });
  const exit = once(child, 'exit', { signal }).then(() =>
    Promise.reject(new Error('workerd exited during its start')),
  );
  exit.catch(() => {});
  const [message]: string[] = await Promise.race([line, exit]);
  return numberOf(decodeObject(message ?? '')?.port) ?? 0;
}

/** Kills the child even if this process ends without calling stop(). */
function endWithThisProcess(child: ChildProcess): void {
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
}
