/** Installs clients, runs one against the gateway, and checks the file, the gateway's records and the hosts that it contacted. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ADMIN_TOKEN, type Gateway } from '../../test/e2e/gateway.ts';
import { decodeObject, type JsonObject, numberOf, objectOf, objectsOf, textOf } from '../simulator/json.ts';
import { AFTER, BEFORE, type Client, Page, type Trial } from './client.ts';

const INSTALL_LIMIT_MS = 300_000;
const TRIAL_LIMIT_MS = 120_000;
/** How long output is awaited after a program's end. */
const CLOSE_LIMIT_MS = 2_000;
/** Records follow their response. Requests beside the loop, such as one for a title, may still run when the client ends. */
const RECORDS_LIMIT_MS = 10_000;
const LISTING_PAUSE_MS = 200;
const MAX_OUTPUT_CHARACTERS = 64 * 1024;

/** A trial's result; it passed if there are no problems. */
export interface Outcome {
  readonly problems: readonly string[];
  /** Requests with a record; those for which no provider was called have none. */
  readonly requests: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** What the gateway learned about the caller, and the fields that it dropped or changed. */
  readonly facts: readonly string[];
  /** The end of what the client printed. */
  readonly output: string;
  readonly ms: number;
}

/** @returns the installed version of each package */
export async function install(
  { packages, install: script }: Client,
  folder: string,
): Promise<ReadonlyMap<string, string>> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  const latest = packages.map((name) => `${name}@latest`);
  const npm = [
    'npm',
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--no-update-notifier',
    ...latest,
  ];
  await mustRun(npm, folder);
  if (script !== undefined) {
    const path = join(folder, 'node_modules', script);
    await mustRun([process.execPath, path], dirname(path));
  }
  const versions = packages.map(async (name): Promise<[string, string]> => {
    const text = await readFile(join(folder, 'node_modules', name, 'package.json'), 'utf8');
    return [name, textOf(decodeObject(text)?.version)];
  });
  return new Map(await Promise.all(versions));
}

async function mustRun(command: readonly string[], cwd: string): Promise<void> {
  const { problem, output } = await run(command, {
    cwd,
    env: process.env,
    limitMs: INSTALL_LIMIT_MS,
  });
  if (problem !== undefined) throw new Error(`${command.join(' ')}: ${problem}\n${output}`);
}

interface RunOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly limitMs: number;
  readonly input?: string | undefined;
}

/** Runs a program in its own process group, which is killed at its end, at the limit and when this process exits. */
export async function run(
  [program = '', ...rest]: readonly string[],
  { cwd, env, limitMs, input = '' }: RunOptions,
): Promise<{ readonly problem: string | undefined; readonly output: string }> {
  const child = spawn(program, rest, { cwd, env, detached: true, stdio: 'pipe' });
  // A client that does not read its input closes it.
  child.stdin.on('error', () => undefined).end(input);
  const killGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The group has already exited.
    }
  };
  let output = '';
  const collect = (text: string) => {
    output = (output + text).slice(-MAX_OUTPUT_CHARACTERS);
  };
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  process.once('exit', killGroup);
  const limit = AbortSignal.timeout(limitMs);
  limit.addEventListener('abort', killGroup, { once: true });
  const closed = once(child, 'close').catch(() => undefined);
  try {
    const [code, killed] = await once(child, 'exit');
    killGroup();
    // The rest of the output, unless a process outside the group holds it.
    await Promise.race([closed, setTimeout(CLOSE_LIMIT_MS, undefined, { ref: false })]);
    const problem = limit.aborted ? `no end within ${limitMs / 1000} s` : `exit ${code ?? killed}`;
    return { problem: code === 0 ? undefined : problem, output };
  } catch (error) {
    return { problem: String(error), output };
  } finally {
    killGroup();
    process.off('exit', killGroup);
    limit.removeEventListener('abort', killGroup);
  }
}

export interface TrialPlace {
  readonly gateway: Gateway;
  readonly packages: string;
  /** A new folder for the home, the project and temporary files of this trial. */
  readonly folder: string;
}

export async function runTrial(
  client: Client,
  trial: Trial,
  { gateway, packages, folder }: TrialPlace,
): Promise<Outcome> {
  const started = performance.now();
  const [home, project, temporary] = [join(folder, 'home'), join(folder, 'project'), join(folder, 'tmp')];
  for (const path of [home, project, temporary]) await mkdir(path, { recursive: true });
  const file = join(project, 'river.txt');
  await writeFile(file, BEFORE);
  const calls = trial.calls(file);
  const prompt = `Correct river.txt: the river is at 312 cm and rising. calls:${JSON.stringify(calls)}`;
  const { id, key } = await createKey(gateway, `${client.id} ${trial.protocol} ${trial.model}`);
  const place = { url: gateway.url, key, prompt, home, project, packages };
  const launch = trial.launch(place, new Page(client.id));
  for (const [path, text] of Object.entries(launch.files ?? {})) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  await using network = await watchNetwork(await registryHost());
  const firstLine = gateway.logs().length;
  const { problem, output } = await run(launch.command, {
    cwd: project,
    // Nothing of the user's own environment: no keys, no settings.
    env: {
      PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
      HOME: home,
      TMPDIR: temporary,
      LANG: 'C.UTF-8',
      TERM: 'dumb',
      ...network.env,
      ...launch.env,
    },
    limitMs: TRIAL_LIMIT_MS,
    input: launch.input,
  });
  const records = await recordsOf(gateway, id, calls.length + 1);
  const refused = linesOf(gateway, 'request_refused', id, firstLine);
  const text = await readFile(file, 'utf8');
  const failed = records.filter(({ status, error_code }) => status !== 'finished' || error_code !== null);
  const loop = records.filter(({ asked, client }) => asked === trial.model && client === trial.protocol);
  const problems = [
    ...(problem === undefined ? [] : [problem]),
    ...(text === AFTER ? [] : [`the file has ${JSON.stringify(text)}`]),
    ...(loop.length > calls.length
      ? []
      : [`${loop.length} records of ${trial.model} over ${trial.protocol}, expected ${calls.length + 1}`]),
    ...failed.map(
      ({ status, error_code, asked }) => `${textOf(asked)} ${textOf(status)} ${textOf(error_code)}`,
    ),
    ...refusedUpstream(records, trial),
    ...refusals(refused, trial),
    ...network.hosts().map((host) => `contacts ${host}`),
  ];
  return {
    problems: [...new Set(problems)],
    requests: records.length,
    promptTokens: sum(records, 'prompt_tokens'),
    cachedTokens: sum(records, 'cached_tokens'),
    facts: [...factsOf(records, refused), ...(await cacheCauses(gateway, records))],
    output,
    ms: performance.now() - started,
  };
}

async function createKey(
  gateway: Gateway,
  name: string,
): Promise<{ readonly id: string; readonly key: string }> {
  const response = await gateway.post(
    '/admin/keys',
    { name },
    { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } },
  );
  const made = decodeObject(await response.text());
  if (!response.ok) throw new Error(`POST /admin/keys returned ${response.status}`);
  return { id: textOf(made?.id), key: textOf(made?.key) };
}

/** The log has the complete records, with the fields that were dropped and changed. */
async function recordsOf(gateway: Gateway, keyId: string, count: number): Promise<JsonObject[]> {
  const records = () => linesOf(gateway, 'request', keyId);
  const enough = gateway.logged(() => records().length >= count);
  await Promise.race([enough, setTimeout(RECORDS_LIMIT_MS, undefined, { ref: false })]);
  return records();
}

/** The log's key id of a request that was refused before its key was read. */
const NO_KEY = 'none';

/** Lines of a key; from `firstLine` on also those of requests that were refused before their key was read. */
function linesOf(
  gateway: Gateway,
  event: string,
  keyId: string,
  firstLine = Number.POSITIVE_INFINITY,
): JsonObject[] {
  return gateway.logs().flatMap((text, index) => {
    const line = decodeObject(text) ?? {};
    const isOfTrial = line.key_id === keyId || (index >= firstLine && line.key_id === NO_KEY);
    return line.event === event && isOfTrial ? [line] : [];
  });
}

/** The provider's refusals, if they are not as many as the trial expects. */
export function refusedUpstream(
  records: readonly JsonObject[],
  { learned = 0 }: Pick<Trial, 'learned'>,
): string[] {
  const failed = records.flatMap(failedAttempts);
  if (failed.length === learned) return [];
  return learned === 0 ? failed : [`the provider refused ${failed.length} requests, expected ${learned}`];
}

function failedAttempts({ attempts, asked }: JsonObject): string[] {
  const failed = objectsOf(attempts).filter(({ status }) => status !== 200);
  return failed.map(
    ({ status, error_code }) => `${textOf(asked)}: the provider returned ${status} ${textOf(error_code)}`,
  );
}

/** Refusals by Weir that the trial does not expect, and expected ones that are missing. */
function refusals(refused: readonly JsonObject[], { refusals: expected = [] }: Trial): string[] {
  const others = refused.filter(({ code }) => !expected.includes(textOf(code)));
  const missing = expected.filter((code) => !refused.some((one) => one.code === code));
  return [
    ...others.map(({ status, code, route }) => `Weir refused ${textOf(route)}: ${status} ${textOf(code)}`),
    ...missing.map((code) => `Weir did not refuse: ${code}`),
  ];
}

function factsOf(records: readonly JsonObject[], refused: readonly JsonObject[]): string[] {
  const values = (name: string) => {
    const all = records.flatMap((record) => (Array.isArray(record[name]) ? record[name] : [record[name]]));
    return [...new Set(all.map(textOf).filter((value) => value !== ''))];
  };
  const apis = records.flatMap(({ attempts }) => objectsOf(attempts).map(({ api }) => textOf(api)));
  const lists = {
    app: values('app'),
    dropped: values('dropped'),
    changed: values('changed'),
    refused: [...new Set(refused.map(({ code }) => textOf(code)))],
  };
  return [
    ...Object.entries(lists).flatMap(([name, list]) =>
      list.length > 0 ? [`${name} ${list.join(', ')}`] : [],
    ),
    `sessions ${values('session').length}`,
    ...(apis.includes('responses') ? ['through Responses'] : []),
  ];
}

/** Why the requests of each session were not read from the prompt cache, with how often: `caches first 2, none 5`. */
async function cacheCauses(gateway: Gateway, records: readonly JsonObject[]): Promise<string[]> {
  const sessions = Map.groupBy(records, ({ session }) => textOf(session));
  sessions.delete('');
  const causes: string[] = [];
  for (const [session, own] of sessions) {
    const listed = await listSession(gateway, session, own.length);
    causes.push(...listed.map(({ cache }) => textOf(objectOf(cache).cause)));
  }
  const counts = [...Map.groupBy(causes, (cause) => cause || 'not compared')];
  const texts = counts.map(([cause, all]) => `${cause} ${all.length}`).toSorted();
  return texts.length === 0 ? [] : [`caches ${texts.join(', ')}`];
}

/** The records of a session, once all are stored. */
async function listSession(gateway: Gateway, session: string, count: number): Promise<JsonObject[]> {
  const path = `/v1/usage/records?session=${encodeURIComponent(session)}&limit=1000`;
  const until = performance.now() + RECORDS_LIMIT_MS;
  for (;;) {
    const response = await gateway.fetch(path, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    const list = objectsOf(decodeObject(await response.text())?.data);
    if (list.length >= count || performance.now() > until) return list;
    await setTimeout(LISTING_PAUSE_MS);
  }
}

function sum(records: readonly JsonObject[], name: string): number {
  return records.reduce((total, record) => total + (numberOf(record[name]) ?? 0), 0);
}

interface Network extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  /** The hosts that the client tried to reach, without this machine's own and the registry. */
  hosts(): string[];
}

/** The host of npm's registry, from which opencode installs its plugins. */
async function registryHost(): Promise<string> {
  const limitMs = 20_000;
  const { output } = await run(['npm', 'config', 'get', 'registry'], { cwd: '/', env: process.env, limitMs });
  return URL.canParse(output.trim()) ? new URL(output.trim()).host : '';
}

/**
 * A proxy that refuses every connection and notes its host. Clients reach the gateway without it.
 * @param registry the host of the package registry, which is refused and not noted
 */
export async function watchNetwork(registry: string): Promise<Network> {
  const hosts = new Set<string>();
  const server = createServer((request, response) => {
    hosts.add(URL.canParse(request.url ?? '') ? new URL(request.url ?? '').host : 'the proxy itself');
    response.writeHead(403).end();
  });
  server.on('connect', ({ url = '' }, socket) => {
    hosts.add(url.replace(/:(?:443|80)$/, ''));
    socket.on('error', () => undefined).end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const proxy = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => [name, name.toLowerCase()]);
  const own = '127.0.0.1,localhost,::1';
  return {
    env: {
      ...Object.fromEntries(names.map((name) => [name, proxy])),
      NO_PROXY: own,
      no_proxy: own,
      // Node's own fetch uses a proxy only if this is set.
      NODE_USE_ENV_PROXY: '1',
    },
    hosts: () => [...hosts].filter((host) => host !== registry),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
