/** Starts and stops the bench's processes: a workerd for each row, and one load generator. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type Bundle, ROOT } from './build.ts';
import type { Job, JobResult, Ports } from './jobs.ts';
import { type Row, upstreamUrl } from './rows.ts';

/** The workerd that wrangler runs. The package's default export is the path of the binary. */
const WORKERD: { readonly default: string } = createRequire(join(ROOT, 'node_modules/wrangler/package.json'))(
  'workerd',
);
/** A profiler on a busy machine takes most of it. */
const START_LIMIT_MS = 120_000;

export interface Workerd {
  readonly pid: number;
  readonly port: number;
  /** Time from start to listening. */
  readonly startedInMs: number;
  stop(): Promise<void>;
}

/** @param through the command that runs workerd, such as a profiler; empty: none */
export async function startWorkerd(
  row: Row,
  bundled: Bundle,
  ports: Ports,
  through: readonly string[] = [],
): Promise<Workerd> {
  const config = join(bundled.directory, 'workerd.capnp');
  await mkdir(join(bundled.directory, 'objects'), { recursive: true });
  await writeFile(config, workerdConfig(row, bundled, ports));
  const logFile = join(bundled.directory, 'workerd.log');
  const log = openSync(logFile, 'w');
  const startedAt = performance.now();
  const [command = '', ...options] = [...through, WORKERD.default];
  const child = spawn(command, [...options, 'serve', '--control-fd=3', config, 'config'], {
    stdio: ['ignore', 'ignore', log, 'pipe'],
  });
  closeSync(log);
  endWithThisProcess(child);
  try {
    const port = await listeningPort(child);
    const startedInMs = performance.now() - startedAt;
    return { pid: child.pid ?? 0, port, startedInMs, stop: () => stop(child) };
  } catch (error) {
    await stop(child);
    throw new Error(`${String(error)}\n${readFileSync(logFile, 'utf8').slice(0, 1000)}`);
  }
}

/** SQLite on disk, as at Cloudflare. */
const LEDGER_OBJECTS = `durableObjectNamespaces = [(className = "LedgerObject", uniqueKey = "ledger", enableSql = true)],
      durableObjectStorage = (localDisk = "disk"),`;

/** Without inspector and proxy: the only socket connects to the Worker; KV and upstream connect to the load generator. */
function workerdConfig(row: Row, bundled: Bundle, ports: Ports): string {
  const text = JSON.stringify;
  const storage = join(bundled.directory, 'objects');
  const bindings = Object.entries(row.settings(upstreamUrl(ports))).map(
    ([name, value]) => `(name = ${text(name)}, text = ${text(value)})`,
  );
  if (row.hasKv) bindings.push('(name = "WEIR_KV", kvNamespace = "kv")');
  if (row.hasLedger) bindings.push('(name = "WEIR_LEDGER", durableObjectNamespace = "LedgerObject")');
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "index.js", esModule = embed ${text(bundled.file)})],
      compatibilityDate = ${text(bundled.compatibilityDate)},
      compatibilityFlags = [${bundled.compatibilityFlags.map((flag) => text(flag)).join(', ')}],
      bindings = [${bindings.join(', ')}],
      ${row.hasLedger ? LEDGER_OBJECTS : ''}
    )),
    (name = "disk", disk = (path = ${text(storage)}, writable = true)),
    (name = "kv", external = (address = "127.0.0.1:${ports.kv}", http = ())),
    (name = "internet", network = (allow = ["private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`;
}

async function listeningPort(child: ChildProcess): Promise<number> {
  const control = child.stdio[3];
  if (!(control instanceof Readable)) throw new Error('workerd has no control channel');
  const lines = createInterface({ input: control });
  const signal = AbortSignal.timeout(START_LIMIT_MS);
  const line = once(lines, 'line', { signal });
  const exit = once(child, 'exit', { signal }).then(() =>
    Promise.reject(new Error('workerd exited during its start')),
  );
  exit.catch(() => {});
  const [message]: string[] = await Promise.race([line, exit]);
  const event: { readonly port: number } = JSON.parse(message ?? '');
  return event.port;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Kills the child even if this process ends without calling stop(). */
function endWithThisProcess(child: ChildProcess): void {
  running.add(child);
  child.once('exit', () => running.delete(child));
}

export interface Load {
  readonly ports: Ports;
  run(job: Job): Promise<JobResult>;
  stop(): void;
}

export async function startLoad(): Promise<Load> {
  const child = fork(fileURLToPath(new URL('./load/main.ts', import.meta.url).href));
  endWithThisProcess(child);
  const [ports]: Ports[] = await once(child, 'message');
  if (ports === undefined) throw new Error('The load generator did not start');
  return {
    ports,
    run: async (job) => {
      const answered = once(child, 'message');
      child.send(job);
      const [result]: JobResult[] = await answered;
      return result ?? { figures: {}, problem: 'no result' };
    },
    stop: () => child.disconnect(),
  };
}
