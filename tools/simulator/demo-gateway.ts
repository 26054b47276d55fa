/** Runs the demo's gateway: a `wrangler dev` child process, which is killed at the end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url).href);
const START_LIMIT_MS = 240_000;
const STOP_LIMIT_MS = 5_000;
const LOG_LINES = 40;
const CHECK_EVERY_MS = 1_000;
const CHECK_LIMIT_MS = 15_000;
const MAX_FAILED_CHECKS = 3;

export interface Gateway {
  readonly url: string;
  /** Resolves when /health responds, rejects if wrangler exits before. */
  ready(): Promise<void>;
  /** The last lines of wrangler's output, to print after a failure. */
  log(): Promise<string>;
  stop(): Promise<void>;
  /** Resolves when the process has exited, or when /health has not responded for a while. */
  lost(): Promise<void>;
}

/** @param directory receives everything that wrangler writes; the caller removes it */
export async function startGateway(
  variables: Readonly<Record<string, string>>,
  directory: string,
  port: number,
): Promise<Gateway> {
  const logFile = join(directory, 'wrangler.log');
  const settings = join(directory, 'empty.env');
  await writeFile(settings, '');
  const output = openSync(logFile, 'a');
  // A separate process group, so that the whole group can be killed, and Ctrl-C reaches only this process.
  const child = spawn(process.execPath, wranglerArguments(variables, port, directory, settings), {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', output, output],
    env: {
      ...process.env,
      WRANGLER_SEND_METRICS: 'false',
      CLOUDFLARE_CF_FETCH_ENABLED: 'false',
      WRANGLER_HIDE_BANNER: 'true',
      WRANGLER_LOG_PATH: join(directory, 'logs'),
      WRANGLER_REGISTRY_PATH: join(directory, 'registry'),
    },
  });
  closeSync(output);
  // Kills wrangler even if this process ends without calling stop().
  process.once('exit', () => killGroup(child));
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    ready: async () => {
      if (!(await healthy(url, child))) throw new Error('wrangler dev did not start');
    },
    log: async () => (await readFile(logFile, 'utf8')).trimEnd().split('\n').slice(-LOG_LINES).join('\n'),
    stop: () => stop(child),
    lost: () => isLost(url, child),
  };
}

/**
 * The empty settings file keeps a `.dev.vars` with real keys out of the demo. `--local`: with Cloudflare's models
 * bound, wrangler would ask for a login.
 */
export function wranglerArguments(
  variables: Readonly<Record<string, string>>,
  port: number,
  directory: string,
  settings: string,
): string[] {
  const pairs = Object.entries(variables).flatMap(([name, value]) => ['--var', `${name}:${value}`]);
  return [
    join(ROOT, 'node_modules/wrangler/bin/wrangler.js'),
    'dev',
    // The gateway with a route that stores records of earlier days.
    join(ROOT, 'tools/simulator/filled-worker.ts'),
    '--local',
    ...['--ip', '127.0.0.1', '--port', String(port), '--inspector-port', '0'],
    ...['--persist-to', join(directory, 'state'), '--env-file', settings],
    '--show-interactive-dev-session=false',
    ...pairs,
  ];
}

async function healthy(url: string, child: ChildProcess): Promise<boolean> {
  const deadline = Date.now() + START_LIMIT_MS;
  while (Date.now() < deadline && child.exitCode === null && child.signalCode === null) {
    const answered = await fetch(`${url}/health`).then(
      (response) => response.ok,
      () => false,
    );
    if (answered) return true;
    await setTimeout(100);
  }
  return false;
}

/** If workerd dies, wrangler keeps running but no longer responds. */
export async function isLost(
  url: string,
  child: Pick<ChildProcess, 'exitCode' | 'signalCode'>,
): Promise<void> {
  for (let failures = 0; failures < MAX_FAILED_CHECKS; ) {
    await setTimeout(CHECK_EVERY_MS, undefined, { ref: false });
    if (child.exitCode !== null || child.signalCode !== null) return;
    const isUp = await fetch(`${url}/health`, { signal: AbortSignal.timeout(CHECK_LIMIT_MS) }).then(
      (response) => response.ok,
      () => false,
    );
    failures = isUp ? 0 : failures + 1;
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const late = setTimeout(STOP_LIMIT_MS, undefined, { ref: false });
  await Promise.race([exited, late]);
  killGroup(child);
  await exited;
}

/** On SIGTERM wrangler ends workerd itself. This kills the remaining processes. */
function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has already exited.
  }
}

/**
 * @param requested the requested port; undefined: `usual` if it is free, otherwise any free port
 * @returns null if the requested port is in use
 */
export async function choosePort(requested: number | undefined, usual: number): Promise<number | null> {
  const port = await freePort(requested ?? usual);
  return port !== null || requested !== undefined ? port : freePort(0);
}

/** @returns null if the port is in use */
async function freePort(requested: number): Promise<number | null> {
  const server = createServer().listen(requested, '127.0.0.1');
  const isListening = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (!isListening) return null;
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('No port is free');
  return address.port;
}
