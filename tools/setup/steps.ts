/** The steps of the set-up. Each can be shown without running it, and run again without harm. */
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { frames } from '../simulator/demo-stream.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../simulator/json.ts';
import { type Answers, secretOf } from './answers.ts';
import { printableName, shellWord } from './terminal-text.ts';
import {
  type Bucket,
  changeConfig,
  hasArchive,
  namespaceId,
  PRODUCTION,
  workerName,
} from './wrangler-config.ts';

const CONFIG = 'wrangler.toml';
const WRANGLER = join('node_modules', 'wrangler', 'bin', 'wrangler.js');
/** A new address answers after some seconds, and so does a new secret. */
const MAX_WAITS = 60;
const WAIT_MS = 2000;
const CALL_TIMEOUT_MS = 30_000;
const COMMAND_TIMEOUT_MS = 300_000;

export interface Step {
  readonly title: string;
  /** The commands, requests and lines of a file, as they are printed before the step runs. Secrets have their names only. */
  readonly shown: readonly string[];
  /** Throws an error with a message for the operator. */
  run(): Promise<void>;
}

export interface Surroundings {
  /** The folder with `wrangler.toml` and `node_modules`. */
  readonly root: string;
  /** Where secrets are looked up, and what wrangler gets. */
  readonly env: NodeJS.ProcessEnv;
  readonly print: (line: string) => void;
}

export function planSteps(answers: Answers, surroundings: Surroundings): readonly Step[] {
  return new Setup(answers, surroundings).steps();
}

class Setup {
  readonly #answers: Answers;
  readonly #root: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #print: (line: string) => void;
  /** The ids of the KV namespaces, by environment. */
  readonly #namespaces = new Map<string, string>();
  readonly #addresses: Map<string, string>;
  /** The names of the secrets that an environment's Worker has, by environment. */
  readonly #present = new Map<string, ReadonlySet<string>>();
  /** The admin token, where this run knows it. */
  readonly #tokens = new Map<string, string>();
  /** The first gateway keys that this run made, by environment. */
  readonly #keys = new Map<string, string>();

  constructor(answers: Answers, { root, env, print }: Surroundings) {
    this.#answers = answers;
    this.#root = root;
    this.#env = env;
    this.#print = print;
    this.#addresses = new Map(Object.entries(answers.addresses));
  }

  steps(): readonly Step[] {
    return [
      { title: 'Check the login', shown: [command(['whoami'])], run: () => this.#checkLogin() },
      this.#secretCheckStep(),
      this.#namespaceStep(),
      ...this.#archiveSteps(),
      this.#configStep(),
      ...this.#answers.environments.flatMap((environment) => [
        this.#deployStep(environment),
        this.#secretStep(environment),
        this.#keyStep(environment),
        ...(this.#answers.ai ? [this.#answerStep(environment)] : []),
      ]),
    ];
  }

  async #checkLogin(): Promise<void> {
    const { code, stdout } = await this.#wrangler(['whoami']);
    if (code !== 0 || /not authenticated/i.test(stdout))
      throw new Error('wrangler is not logged in. Run: npx wrangler login');
  }

  /** Before anything is made: a Worker without a secret that its settings name refuses every request. */
  #secretCheckStep(): Step {
    const { environments } = this.#answers;
    const shown = environments.map((environment) => command(this.#secretList(environment)));
    return { title: 'Read which secrets are set', shown, run: () => this.#checkSecrets() };
  }

  /** Names the Worker itself: its environment may not be in the file yet. */
  #secretList(environment: string): readonly string[] {
    const name = workerName(this.#answers.worker, environment);
    return ['secret', 'list', `--name=${name}`, '--env='];
  }

  async #checkSecrets(): Promise<void> {
    const problems: string[] = [];
    for (const environment of this.#answers.environments) {
      const present = await this.#readPresent(environment);
      this.#present.set(environment, present);
      const worker = workerName(this.#answers.worker, environment);
      for (const name of this.#secretNames(environment)) {
        if (name === 'ADMIN_TOKEN' || present.has(name)) continue;
        if (secretOf(this.#env, environment, name) !== null) continue;
        const put = command(['secret', 'put', name, `--name=${worker}`, '--env=']);
        problems.push(
          `${name} is not set for ${environment}. Run this again with ${name}=… in its environment, or: ${put}`,
        );
      }
    }
    if (problems.length > 0) throw new Error(problems.join('\n'));
  }

  /** The names of the secrets of an environment's Worker: none where there is no Worker yet. */
  async #readPresent(environment: string): Promise<ReadonlySet<string>> {
    const args = this.#secretList(environment);
    const { code, stdout, stderr } = await this.#wrangler(args);
    if (code === 0) return new Set(jsonList(stdout).map(({ name }) => textOf(name)));
    if (NO_WORKER.test(stdout + stderr)) return new Set();
    throw new Error(`${command(args)} failed:\n${stdout}${stderr}`);
  }

  #namespaceStep(): Step {
    const text = this.#readConfig();
    const shown: string[] = [];
    for (const environment of this.#answers.environments) {
      const id = namespaceId(text, environment);
      if (id !== null) this.#namespaces.set(environment, id);
      else
        shown.push(
          `${command(['kv', 'namespace', 'create', this.#title(environment)])}   # if there is none`,
        );
    }
    if (shown.length === 0)
      return { title: 'KV namespaces', shown: [`${CONFIG} names them already`], run: async () => undefined };
    const run = () => this.#findNamespaces();
    return { title: 'KV namespaces', shown: [command(['kv', 'namespace', 'list']), ...shown], run };
  }

  /** The bucket for records of each environment that has none in the file. */
  get #buckets(): ReadonlyMap<string, Bucket> {
    const { archive, environments, vars, worker } = this.#answers;
    if (!archive) return new Map();
    const text = this.#readConfig();
    const jurisdiction = vars.JURISDICTION || null;
    return new Map(
      environments
        .filter((environment) => !hasArchive(text, environment))
        .map((one) => [one, { name: `${workerName(worker, one)}-weir-archive`, jurisdiction }]),
    );
  }

  #archiveSteps(): readonly Step[] {
    if (!this.#answers.archive) return [];
    const title = 'R2 buckets for records that leave a full ledger object';
    const buckets = [...this.#buckets.values()];
    if (buckets.length === 0)
      return [{ title, shown: [`${CONFIG} names them already`], run: async () => undefined }];
    const shown = buckets.map((bucket) => `${command(createBucket(bucket))}   # if there is none`);
    const run = async () => {
      for (const bucket of buckets) await this.#createBucket(bucket);
    };
    return [{ title, shown, run }];
  }

  async #createBucket(bucket: Bucket): Promise<void> {
    const args = createBucket(bucket);
    const { code, stdout, stderr } = await this.#wrangler(args);
    if (code !== 0 && !BUCKET_EXISTS.test(stdout + stderr))
      throw new Error(
        `${command(args)} failed:\n${stdout}${stderr}\nWithout R2, set "archive": false: full objects then delete their oldest records`,
      );
    this.#print(`  ${bucket.name}`);
  }

  /** The title that `wrangler deploy` gives to a namespace without an id, so that the one of an earlier deployment is found. */
  #title(environment: string): string {
    return `${workerName(this.#answers.worker, environment)}-weir-kv`;
  }

  async #findNamespaces(): Promise<void> {
    const present = await this.#namespaceList();
    for (const environment of this.#answers.environments) {
      if (this.#namespaces.has(environment)) continue;
      const title = this.#title(environment);
      const id = present.get(title) ?? (await this.#createNamespace(title));
      this.#namespaces.set(environment, id);
      this.#print(`  ${title}: ${id}`);
    }
  }

  async #createNamespace(title: string): Promise<string> {
    await this.#succeed(['kv', 'namespace', 'create', title]);
    const id = (await this.#namespaceList()).get(title);
    if (id === undefined)
      throw new Error(
        `The KV namespace ${title} was created, but is not in the list yet. Run the set-up again`,
      );
    return id;
  }

  async #namespaceList(): Promise<ReadonlyMap<string, string>> {
    const stdout = await this.#succeed(['kv', 'namespace', 'list']);
    return new Map(jsonList(stdout).map(({ title, id }) => [textOf(title), textOf(id)]));
  }

  #configStep(): Step {
    const { environments } = this.#answers;
    const shownIds = new Map(
      environments.map((one) => [one, this.#namespaces.get(one) ?? `<the id of ${this.#title(one)}>`]),
    );
    const { text, notes } = this.#changed(shownIds);
    const lines = addedLines(this.#readConfig(), text);
    const shown = [
      ...(lines.length === 0 ? ['has everything already'] : lines),
      ...notes.map((note) => `# ${note}`),
    ];
    return {
      title: `Write ${CONFIG}`,
      shown,
      run: async () => {
        const changed = this.#changed(this.#namespaces).text;
        if (changed !== this.#readConfig()) writeFileSync(join(this.#root, CONFIG), changed);
      },
    };
  }

  #changed(namespaces: ReadonlyMap<string, string>) {
    const { worker, vars, ai } = this.#answers;
    return changeConfig(this.#readConfig(), { worker, vars, namespaces, buckets: this.#buckets, ai });
  }

  #readConfig(): string {
    return readFileSync(join(this.#root, CONFIG), 'utf8');
  }

  #deployStep(environment: string): Step {
    const args = ['deploy', '--no-autoconfig', ...this.#tag(), environmentFlag(environment)];
    const run = async () => {
      const folder = mkdtempSync(join(tmpdir(), 'weir-setup-'));
      const output = join(folder, 'output.ndjson');
      try {
        await this.#succeed(args, { WRANGLER_OUTPUT_FILE_PATH: output });
        const address = deployedAddress(readFileSync(output, 'utf8'));
        if (!this.#addresses.has(environment) && address !== undefined)
          this.#addresses.set(environment, address + (this.#answers.vars.BASE_PATH ?? ''));
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
      this.#print(`  ${this.#addresses.get(environment) ?? 'no address: set addresses in the answers'}`);
    };
    return { title: `Deploy ${environment}`, shown: [command(args)], run };
  }

  /** As `npm run deploy` does; nothing outside of a clone. */
  #tag(): readonly string[] {
    try {
      const options = {
        cwd: this.#root,
        stdio: ['ignore', 'pipe', 'ignore'] as const,
        encoding: 'utf8' as const,
      };
      return [
        '--tag',
        execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], {
          ...options,
          stdio: [...options.stdio],
        }).trim(),
      ];
    } catch {
      return [];
    }
  }

  #secretStep(environment: string): Step {
    const flag = environmentFlag(environment);
    const sources = this.#secretNames(environment).map((name) => {
      const given = secretOf(this.#env, environment, name) !== null;
      const source = given
        ? 'from the environment of this command'
        : name === 'ADMIN_TOKEN'
          ? 'a new random text'
          : 'not given: the set-up stops at step 2 unless the Worker has it';
      return `  ${name}: ${source}`;
    });
    return {
      title: `Secrets of ${environment}`,
      shown: [
        `${command(['secret', 'bulk', flag])}   # those that are not set, through standard input:`,
        ...sources,
      ],
      run: () => this.#setSecrets(environment, flag),
    };
  }

  #secretNames(environment: string): readonly string[] {
    return this.#answers.neededSecrets.get(environment) ?? [];
  }

  async #setSecrets(environment: string, flag: string): Promise<void> {
    const present = this.#present.get(environment) ?? new Set();
    const added: Record<string, string> = {};
    for (const name of this.#secretNames(environment)) {
      const given = secretOf(this.#env, environment, name);
      if (name === 'ADMIN_TOKEN' && given !== null) this.#tokens.set(environment, given);
      if (present.has(name)) {
        this.#print(`  ${name} is set and stays. To change it: npx wrangler secret put ${name} ${flag}`);
      } else if (given !== null) {
        added[name] = given;
      } else if (name === 'ADMIN_TOKEN') {
        added[name] = randomBytes(32).toString('hex');
        this.#tokens.set(environment, added[name]);
      }
    }
    if (Object.keys(added).length === 0) return;
    await this.#succeed(['secret', 'bulk', flag], {}, JSON.stringify(added));
    this.#print(`  set: ${Object.keys(added).join(', ')}`);
    // Printed at once: a later step may fail, and nothing else can show it again.
    if (added.ADMIN_TOKEN !== undefined && secretOf(this.#env, environment, 'ADMIN_TOKEN') === null)
      this.#print(`  ADMIN_TOKEN of ${environment}, which is not shown again: ${added.ADMIN_TOKEN}`);
  }

  #keyStep(environment: string): Step {
    const { key, team } = this.#answers;
    const address = this.#addresses.get(environment) ?? `<the address of ${environment}>`;
    const ofTeam = team === null ? key : { ...key, team: `<the id of ${team.name}>` };
    return {
      title: `${team === null ? 'A' : 'A team and a'} gateway key for ${environment}`,
      shown: [
        `GET ${address}/health`,
        `GET ${address}/admin/keys`,
        ...(team === null
          ? []
          : [
              `GET ${address}/v1/admin/teams`,
              `POST ${address}/v1/admin/teams ${JSON.stringify(team)}   # if there is none of this name`,
            ]),
        `POST ${address}/admin/keys ${JSON.stringify(ofTeam)}   # if there is none of this name`,
      ],
      run: () => this.#makeKey(environment),
    };
  }

  async #makeKey(environment: string): Promise<void> {
    const address = this.#addresses.get(environment)?.replace(/\/+$/, '');
    if (address === undefined)
      throw new Error(`The address of ${environment} is unknown: name it in addresses of the answers`);
    const token = this.#tokens.get(environment);
    if (token === undefined) {
      this.#print(
        '  No key is made: ADMIN_TOKEN is set on the Worker and not in the environment of this command.',
      );
      this.#print(`  Make one on ${address}/dashboard`);
      return;
    }
    const authorization = `Bearer ${token}`;
    await this.#answered(`${address}/health`, {});
    const listed = await this.#answered(`${address}/admin/keys`, { authorization });
    const team = await this.#makeTeam(address, authorization);
    const { key: wanted } = this.#answers;
    const { name } = wanted;
    if (objectsOf(decodeObject(listed)?.data).some((key) => key.name === name)) {
      this.#print(`  There is a key named ${printableName(name)}. Its text was shown when it was made.`);
      return;
    }
    const body = team === null ? wanted : { ...wanted, team };
    const key = await post(`${address}/admin/keys`, authorization, body, 'key');
    this.#keys.set(environment, key);
    for (const line of pasteLines(address, key, this.#answers.ai)) this.#print(line);
  }

  /** Makes the first team unless there is one of its name. @returns its id; null: the answers have none */
  async #makeTeam(address: string, authorization: string): Promise<string | null> {
    const { team } = this.#answers;
    if (team === null) return null;
    const listed = await this.#answered(`${address}/v1/admin/teams`, { authorization });
    const known = objectsOf(decodeObject(listed)?.data).find(({ name }) => name === team.name);
    if (known !== undefined) {
      this.#print(`  There is a team named ${printableName(team.name)}.`);
      return textOf(known.id);
    }
    const id = await post(`${address}/v1/admin/teams`, authorization, team, 'id');
    this.#print(`  The team ${printableName(team.name)} has the id ${id}`);
    return id;
  }

  /** Where a model needs no key, the set-up ends with an answer of one. */
  #answerStep(environment: string): Step {
    const address = this.#addresses.get(environment) ?? `<the address of ${environment}>`;
    return {
      title: `An answer of a model from ${environment}`,
      shown: [
        `POST ${address}/v1/chat/completions ${FIRST_QUESTION}   # with the key, where this run makes it`,
      ],
      run: () => this.#ask(environment),
    };
  }

  /** The deployment is ready: a model that does not answer is told, and fails nothing. */
  async #ask(environment: string): Promise<void> {
    const key = this.#keys.get(environment);
    const address = this.#addresses.get(environment)?.replace(/\/+$/, '');
    if (key === undefined || address === undefined) {
      this.#print('  No request is made: the key was not made by this run.');
      return;
    }
    try {
      const response = await fetch(`${address}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: FIRST_QUESTION,
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      if (response.status === 200) for await (const line of answerLines(response)) this.#print(`  ${line}`);
      else this.#print(`  ${response.status} ${(await response.text()).slice(0, 500)}`);
    } catch (error) {
      this.#print(`  The model did not answer: ${String(error)}`);
    }
  }

  /** Waits until a deployment answers with 200: a new address and new secrets take some seconds. @returns the body */
  async #answered(url: string, headers: Readonly<Record<string, string>>): Promise<string> {
    let last = '';
    for (let attempt = 0; attempt < MAX_WAITS; attempt++) {
      if (attempt > 0) await setTimeout(WAIT_MS);
      try {
        const response = await fetch(url, { headers, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) });
        const text = await response.text();
        if (response.status === 200) return text;
        last = `${response.status} ${text.slice(0, 300)}`;
      } catch (error) {
        last = String(error);
      }
    }
    throw new Error(`GET ${url}: ${last}`);
  }

  async #succeed(args: readonly string[], env: NodeJS.ProcessEnv = {}, input = ''): Promise<string> {
    const { code, stdout, stderr } = await this.#wrangler(args, env, input);
    if (code !== 0) throw new Error(`${command(args)} failed:\n${stdout}${stderr}`);
    return stdout;
  }

  #wrangler(args: readonly string[], env: NodeJS.ProcessEnv = {}, input = '') {
    const child = spawn(process.execPath, [join(this.#root, WRANGLER), ...args], {
      cwd: this.#root,
      env: { ...this.#env, WRANGLER_SEND_METRICS: 'false', ...env },
      timeout: COMMAND_TIMEOUT_MS,
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (data: Buffer) => (stdout += data));
    child.stderr.on('data', (data: Buffer) => (stderr += data));
    child.stdin.end(input);
    return new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => resolve({ code, stdout, stderr }));
    });
  }
}

/** @returns a field of what is created */
async function post(url: string, authorization: string, body: JsonObject, field: string): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  const text = await response.text();
  const created = textOf(decodeObject(text)?.[field]);
  if (response.status !== 201 || created === '') throw new Error(`POST ${url}: ${response.status} ${text}`);
  return created;
}

/** What wrangler says of a Worker that was never deployed. */
const NO_WORKER = /Worker "[^"]*"[^\n]* not found/;

/** Cloudflare's error 10004, or its sentence. */
const BUCKET_EXISTS = /already exists|10004/;

function createBucket({ name, jurisdiction }: Bucket): readonly string[] {
  return [
    'r2',
    'bucket',
    'create',
    name,
    ...(jurisdiction === null ? [] : [`--jurisdiction=${jurisdiction}`]),
  ];
}

/** The address of the first host among the targets of `wrangler deploy`, of the file that it writes for programs. */
function deployedAddress(ndjson: string): string | undefined {
  const deployed = ndjson
    .split('\n')
    .map(decodeObject)
    .find((line) => line?.type === 'deploy');
  const targets = Array.isArray(deployed?.targets) ? deployed.targets.map(textOf) : [];
  const host = targets.map((target) => target.replace(/^https:\/\//, '').split(' ')[0] ?? '').find(isHost);
  return host === undefined ? undefined : `https://${host}`;
}

/** Not a route such as `example.com/llm/*`, a schedule or a queue. */
function isHost(target: string): boolean {
  return /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/.test(target);
}

/** The JSON list that wrangler prints, which may have a banner before it. */
function jsonList(stdout: string) {
  const start = stdout.indexOf('[');
  try {
    return objectsOf(JSON.parse(stdout.slice(start)));
  } catch {
    return [];
  }
}

function environmentFlag(environment: string): string {
  return environment === PRODUCTION ? '--env=' : `--env=${environment}`;
}

function command(args: readonly string[]): string {
  return ['npx wrangler', ...args.map(shellWord)].join(' ');
}

/** The lines of the new text that the old one lacks. Lines are only added, or replaced by a line with another name. */
function addedLines(before: string, after: string): readonly string[] {
  const old = before.split('\n');
  let at = 0;
  return after.split('\n').flatMap((line) => {
    const found = old.indexOf(line, at);
    if (found >= 0) {
      at = found + 1;
      return [];
    }
    return line === '' ? [] : [`+ ${line}`];
  });
}

/** Some tokens of a model that does not reason: docs/prices.md. */
const FIRST_QUESTION = JSON.stringify({
  model: 'cloudflare/@cf/meta/llama-3.3-70b-instruct-fp8-fast',
  stream: true,
  max_tokens: 200,
  messages: [{ role: 'user', content: 'Why a weir? Answer in two sentences.' }],
});

/** The lines of a streamed answer, each as soon as it is whole. */
async function* answerLines(response: Response): AsyncGenerator<string> {
  let line = '';
  for await (const frame of frames(response.body)) {
    const chunk = decodeObject(frame.replace(/^data: /, ''));
    if (chunk?.error !== undefined) yield JSON.stringify(chunk.error);
    const [choice] = objectsOf(chunk?.choices);
    const pieces = (line + textOf(objectOf(choice?.delta).content)).split('\n');
    line = pieces.pop() ?? '';
    yield* pieces;
  }
  if (line !== '') yield line;
}

/** @param ai a model of Cloudflare's answers without a key */
function pasteLines(address: string, key: string, ai: boolean): readonly string[] {
  return [
    '',
    'Paste this into a shell, or the names and values into your clients:',
    '',
    `export WEIR_URL=${shellWord(address)} WEIR_KEY=${shellWord(key)}`,
    `export OPENAI_BASE_URL=${shellWord(`${address}/v1`)} OPENAI_API_KEY=$WEIR_KEY`,
    `export ANTHROPIC_BASE_URL=${shellWord(address)} ANTHROPIC_AUTH_TOKEN=$WEIR_KEY`,
    `curl -s "$WEIR_URL/v1/models" -H "authorization: Bearer $WEIR_KEY"`,
    ...(ai
      ? [
          `curl -sN "$WEIR_URL/v1/chat/completions" -H "authorization: Bearer $WEIR_KEY" -d ${shellWord(FIRST_QUESTION)}`,
        ]
      : []),
    '',
    `Dashboard: ${address}/dashboard, with ADMIN_TOKEN`,
  ];
}
