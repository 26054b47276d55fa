/** Asks for the answers at a terminal, and checks each when it is given. Keys are not shown while they are typed. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { type Readable, Writable } from 'node:stream';
import { readServiceAccount } from '../../src/credentials/google.ts';
import { readPem } from '../../src/credentials/jwt.ts';
import { PROVIDERS, secretSettings } from '../../src/providers/index.ts';
import type { EntraSettings, GoogleSettings } from '../../src/providers/provider.ts';
import { PROVIDER_IDS, readAnswers, type Surroundings, secretOf } from './answers.ts';
import { PRODUCTION } from './wrangler-config.ts';

/** What is wrong with an answer; nothing is wrong where it is empty. */
type Check = (answer: string) => readonly string[];

/** The terminal of a person. */
export class Terminal {
  #isHidden = false;
  readonly #output: Writable;
  readonly #lines: Interface;
  /** Lines that were typed or pasted before their question. */
  readonly #typed: string[] = [];
  /** Takes the next line; null: Ctrl-C, or the end of the input. */
  #take: ((line: string | null) => void) | null = null;
  #isClosed = false;

  constructor(
    input: Readable & { readonly isTTY?: boolean } = process.stdin,
    output: Writable = process.stdout,
  ) {
    this.#output = output;
    const shown = new Writable({
      write: (chunk, _, done) => {
        if (!this.#isHidden) output.write(chunk);
        done();
      },
    });
    this.#lines = createInterface({ input, output: shown, terminal: input.isTTY === true });
    this.#lines.on('line', (line) => {
      if (this.#take === null) this.#typed.push(line);
      else this.#take(line);
    });
    this.#lines.on('close', () => {
      this.#isClosed = true;
      this.#take?.(null);
    });
  }

  /** Asks again until nothing is wrong. @returns the line, or `usual` for an empty one */
  async ask(question: string, usual = '', check: Check = () => []): Promise<string> {
    for (;;) {
      const line = await this.#line(`${question}${usual === '' ? '' : ` [${usual}]`}: `);
      const answer = line.trim() || usual;
      if (this.#accepts(check(answer))) return answer;
    }
  }

  async askYes(question: string): Promise<boolean> {
    const isWord = (answer: string) => (/^(y|yes|n|no)$/i.test(answer) ? [] : ['Type y or n']);
    return /^y/i.test(await this.ask(`${question} y/n`, 'n', isWord));
  }

  /** Asks without showing what is typed or pasted. */
  async askHidden(question: string, check: Check = () => []): Promise<string> {
    for (;;) {
      this.#output.write(`${question}: `);
      this.#isHidden = true;
      const line = await this.#line('').finally(() => {
        this.#isHidden = false;
        this.#output.write('\n');
      });
      const answer = line.trim();
      if (this.#accepts(check(answer))) return answer;
    }
  }

  close(): void {
    this.#lines.close();
  }

  /** Throws where there is no further line. */
  async #line(question: string): Promise<string> {
    this.#lines.setPrompt(question);
    this.#lines.prompt();
    const line = this.#typed.shift() ?? (this.#isClosed ? null : await this.#nextLine());
    if (line === null) throw new Error('Interrupted');
    return line;
  }

  #nextLine(): Promise<string | null> {
    return new Promise((resolve) => {
      this.#take = (line) => {
        this.#take = null;
        resolve(line);
      };
    });
  }

  #accepts(problems: readonly string[]): boolean {
    for (const problem of problems) this.#output.write(`  ${problem}\n`);
    return problems.length === 0;
  }
}

/** What was answered so far: the fields of an answers file, without secrets. */
export interface Draft {
  worker?: string;
  environments?: string[];
  providers?: string[];
  vars?: Record<string, string | Record<string, unknown>>;
  key?: string;
}

const OTHER = 'other';
const PROVIDER_NAME = /^[a-z0-9][a-z0-9_-]{0,31}$/;
/** What an HTTP header can carry, without spaces. */
const KEY = /^[\x21-\x7e]+$/;

/**
 * @param draft gets each answer as soon as it is valid
 * @param surroundings `env` gets the keys that are typed, as if they had been in the environment
 */
export async function askAnswers(
  terminal: Terminal,
  draft: Draft,
  surroundings: Surroundings,
): Promise<void> {
  const { env } = surroundings;
  /** What is wrong with this answer besides what the others lack. */
  const problemsOf = (change: Draft, about: (problem: string) => boolean): readonly string[] => {
    const usual = { providers: [PROVIDER_IDS[0]] };
    const read = readAnswers(JSON.stringify({ ...usual, ...draft, ...change }), surroundings);
    return read.kind === 'error' ? read.error.filter(about) : [];
  };

  draft.worker = await terminal.ask('Name of the Worker', 'weir', (worker) =>
    problemsOf({ worker }, (problem) => problem.startsWith('worker')),
  );
  const hasStaging = await terminal.askYes('An environment for staging, too?');
  draft.environments = hasStaging ? [PRODUCTION, 'staging'] : [PRODUCTION];

  const ids = await terminal.ask(
    `Providers, with commas (${PROVIDER_IDS.join(', ')}; ${OTHER}: any server with OpenAI's API)`,
    '',
    (text) =>
      idsOf(text).length === 0
        ? ['Name one at least']
        : problemsOf({ providers: idsOf(text).filter((id) => id !== OTHER) }, (problem) =>
            / is no provider/.test(problem),
          ),
  );
  draft.vars = {};
  draft.providers = idsOf(ids).filter((id) => id !== OTHER);
  for (const id of draft.providers) await askProvider(id);
  if (idsOf(ids).includes(OTHER)) {
    const entries: Record<string, unknown> = {};
    do await askOther(entries);
    while (await terminal.askYes('Another server?'));
  }
  draft.key = await terminal.ask('Name of the first gateway key', 'first', (key) =>
    problemsOf({ key }, (problem) => problem.startsWith('key')),
  );

  async function askKey(name: string, settings: readonly string[], empty: string): Promise<string> {
    const [own = ''] = settings;
    if (settings.some((setting) => secretOf(env, PRODUCTION, setting) !== null)) return own;
    const key = await terminal.askHidden(`${own}, the key of ${name} (empty: ${empty})`, (text) =>
      text === '' || KEY.test(text) ? [] : ['It has spaces or characters that no key has'],
    );
    if (key !== '') env[own] = key;
    return key;
  }

  /** The key of a built-in provider, and the settings that Weir finds missing with it, such as an address. */
  async function askProvider(id: string): Promise<void> {
    const provider = PROVIDERS.find((one) => one.id === id);
    if (provider === undefined) return;
    const { auth, apiKeySettings } = provider;
    const isMade = auth !== undefined && secretSettings(provider).some((name) => isGiven(name));
    const isAsked = !isMade && !(auth?.kind === 'google' && (await askServiceAccount(auth)));
    if (isAsked) {
      const empty =
        provider.cloud?.binding !== undefined
          ? 'none, by the binding AI'
          : auth?.kind === 'entra'
            ? 'by Entra ID, or it is set already'
            : 'it is set already';
      const key = await askKey(provider.name, apiKeySettings, empty);
      if (key === '' && auth?.kind === 'entra') await askEntra(auth);
    }
    for (const setting of missingSettings(id)) {
      const value = await terminal.ask(`${setting} of ${provider.name}`, '', (text) =>
        text === ''
          ? [`${provider.name} needs it`]
          : problemsOf({ providers: [id], vars: { ...draft.vars, [setting]: text } }, (problem) =>
              problem.includes(setting),
            ),
      );
      draft.vars = { ...draft.vars, [setting]: value };
    }
  }

  function isGiven(name: string): boolean {
    return secretOf(env, PRODUCTION, name) !== null;
  }

  /** A secret that is the text of a file, which has line ends. @returns whether a path was typed */
  async function askFile(
    name: string,
    what: string,
    empty: string,
    isWhole: (text: string) => boolean,
  ): Promise<boolean> {
    const given = await terminal.ask(`${name}, the path of ${what} (empty: ${empty})`, '', (text) => {
      if (text === '') return [];
      const content = textOfFile(pathOf(text));
      if (content === null) return [`${text} cannot be read`];
      return isWhole(content) ? [] : [`${text} is not ${what}`];
    });
    if (given !== '') env[name] = `@${pathOf(given)}`;
    return given !== '';
  }

  function askServiceAccount({ key }: GoogleSettings): Promise<boolean> {
    const isKey = (text: string) => readServiceAccount(text, key) !== null;
    return askFile(key, "the JSON file of a service account's key", 'by an API key', isKey);
  }

  /** The application that gets tokens in place of a key. */
  async function askEntra({ tenantId, clientId, secret, certificate }: EntraSettings): Promise<void> {
    const askId = async (setting: string, empty: string) => {
      const value = await terminal.ask(`${setting}${empty}`, '', (text) =>
        text === '' && empty === '' ? ['The application needs it'] : [],
      );
      if (value !== '') draft.vars = { ...draft.vars, [setting]: value };
      return value;
    };
    if ((await askId(tenantId, ' of Entra ID (empty: the key is set already)')) === '') return;
    await askId(clientId, '');
    const isPem = (text: string) =>
      ['PRIVATE KEY', 'CERTIFICATE'].every((label) => readPem(text, label) !== null);
    const what = 'a PEM file with its private key and certificate';
    if (!(await askFile(certificate, what, 'a client secret', isPem)))
      await askKey('the application', [secret], 'it is set already');
  }

  /** The variables that a provider needs and the draft has not. */
  function missingSettings(id: string): readonly string[] {
    const problems = problemsOf({ providers: [id] }, () => true);
    const names = problems.map((problem) => /^([A-Z][A-Z0-9_]*) must be set/.exec(problem)?.[1] ?? []);
    return names.flat().filter((name) => draft.vars?.[name] === undefined);
  }

  /** An entry of `PROVIDERS`. */
  async function askOther(entries: Record<string, unknown>): Promise<void> {
    const isFree = (name: string) =>
      PROVIDER_NAME.test(name) && !PROVIDER_IDS.includes(name) && !(name in entries) && name !== OTHER;
    const name = await terminal.ask('Name of the server, as in <name>/<model>', '', (text) =>
      isFree(text) ? [] : ['It must be lowercase letters, digits, - and _, and no name of another provider'],
    );
    const withEntry = (entry: object) => ({ ...draft.vars, PROVIDERS: { ...entries, [name]: entry } });
    const base_url = await terminal.ask(
      `Base URL of ${name}, such as https://api.example.com/v1`,
      '',
      (text) =>
        text === ''
          ? [`${name} needs it`]
          : problemsOf({ vars: withEntry({ base_url: text }) }, (problem) => problem.includes('PROVIDERS')),
    );
    const secret = `${name
      .toUpperCase()
      .replaceAll('-', '_')
      .replace(/^[^A-Z]+/, '')}_API_KEY`;
    const key = await askKey(name, [secret], 'it needs none');
    entries[name] = key === '' ? { base_url } : { base_url, api_key: secret };
    draft.vars = { ...draft.vars, PROVIDERS: { ...entries } };
  }
}

/** As a shell would have it: without quotation marks, and with the home folder. */
function pathOf(typed: string): string {
  const path = typed.replace(/^(['"])(.*)\1$/, '$2');
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
}

function textOfFile(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function idsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((id) => id !== '');
}

/** The text of an answers file. */
export function writeDraft(draft: Draft): string {
  return `${JSON.stringify(draft, null, 2)}\n`;
}
