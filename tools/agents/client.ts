/** What the script of a client declares: its packages, and how it is configured from its page in docs/clients to edit a file. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../simulator/json.ts';

/** The name of a client protocol in records and in the table. */
export type Protocol = 'chat' | 'messages' | 'responses' | 'gemini';

export interface Client {
  /** The name of the page, `docs/clients/<id>.md`, and in `npm run agents -- <id>`. */
  readonly id: string;
  readonly title: string;
  /** What is installed, each in its latest version. */
  readonly packages: readonly string[];
  /** The one install script that runs, a path below `node_modules`: it puts the program for this system into its place. */
  readonly install?: string;
  readonly trials: readonly Trial[];
}

/** One run of a client: a model edits a file through one protocol. */
export interface Trial {
  readonly protocol: Protocol;
  readonly model: string;
  /** What the table says beside the protocol. */
  readonly note?: string;
  /** The packages whose versions the table names. */
  readonly versions: readonly string[];
  /** The tool calls of the simulated model, one in each step. */
  readonly calls: (file: string) => readonly ToolCall[];
  readonly launch: (place: Place, page: Page) => Launch;
  /** Codes with which Weir refuses a request of this client, which then goes on without the refused feature. */
  readonly refusals?: readonly string[];
  /** How many requests the provider refuses before it accepts the one that the gateway made of them. Default: 0. */
  readonly learned?: number;
}

/**
 * Two sessions at a model that no table names, which refuses these fields one after the other: the gateway learns from the refusals of
 * the first, so that the provider refuses nothing in the second. `fields` are names of `tools/simulator/refusal-texts.ts`.
 */
export function learning(fields: readonly string[], trial: (model: string) => Trial): readonly Trial[] {
  const session = trial(`unknown/refuses-${fields.join('+')}`);
  return [
    { ...session, note: 'first session', learned: fields.length },
    { ...session, note: 'second session' },
  ];
}

export interface ToolCall {
  readonly name: string;
  readonly arguments: JsonObject;
}

/** Where a client runs. All folders are absolute and temporary. */
export interface Place {
  readonly url: string;
  readonly key: string;
  readonly prompt: string;
  readonly home: string;
  /** The working directory, which has the file. */
  readonly project: string;
  /** The folder with the client's `node_modules`. */
  readonly packages: string;
}

export interface Launch {
  /** Texts by absolute path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly command: readonly [program: string, ...rest: string[]];
  /** What the client reads from its standard input. */
  readonly input?: string;
}

const CLIENTS = join(import.meta.dirname, '..', '..', 'docs', 'clients');

/** A page of docs/clients. The scripts use its code, so that the page cannot differ from what was run. */
export class Page {
  readonly #blocks: readonly { readonly language: string; readonly code: string }[];
  readonly #id: string;

  constructor(id: string) {
    this.#id = id;
    const text = readFileSync(join(CLIENTS, `${id}.md`), 'utf8');
    this.#blocks = [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({
      language,
      code,
    }));
  }

  /** The page's first code block in this language that has these words. */
  block(language: string, words: string): string {
    const found = this.#blocks.find((block) => block.language === language && block.code.includes(words));
    if (found !== undefined) return found.code;
    throw new Error(`docs/clients/${this.#id}.md has no ${language} block with ${JSON.stringify(words)}`);
  }

  /** Replaces words of a block. All of them must be there, because otherwise the run would not test the page. */
  replaced(code: string, words: Readonly<Record<string, string>>): string {
    return Object.entries(words).reduce((text, [from, to]) => {
      if (text.includes(from)) return text.replaceAll(from, to);
      throw new Error(`docs/clients/${this.#id}.md: the block has no ${JSON.stringify(from)} to replace`);
    }, code);
  }
}

/** The variables of a block's `export` lines, with the values of `$WEIR_URL` and `$WEIR_KEY`. */
export function exportsOf(code: string, { url, key }: Pick<Place, 'url' | 'key'>): Record<string, string> {
  const lines = code.split('\n').filter((line) => line.startsWith('export '));
  const pairs = lines.flatMap((line) =>
    line
      .replace(/\s+#.*$/, '')
      .split(/\s+/)
      .slice(1),
  );
  return Object.fromEntries(
    pairs.map((pair) => {
      const [name = '', ...rest] = pair.split('=');
      return [name, rest.join('=').replaceAll('$WEIR_URL', url).replaceAll('$WEIR_KEY', key)];
    }),
  );
}

/** The tool calls of the programs in the pages of SDKs, whose tools read and write a file. */
export function readAndWrite(path: string): readonly ToolCall[] {
  return [
    { name: 'read', arguments: { path } },
    { name: 'write', arguments: { path, text: AFTER } },
    { name: 'read', arguments: { path } },
  ];
}

/** Runs a program of a page, below the packages that it imports. */
export function launchProgram(code: string, { url, key, prompt, packages }: Place): Launch {
  const program = join(packages, 'agent.mts');
  return {
    files: { [program]: code },
    env: { WEIR_URL: url, WEIR_KEY: key },
    command: [process.execPath, program, prompt],
  };
}

/** One model each of eight providers, for clients of Gemini's API. */
export const GEMINI_MODELS = [
  ...['deepseek/deepseek-flash', 'openai/gpt-6.1-terra', 'anthropic/claude-sonnet-5'],
  ...['mistral/mistral-small-latest', 'xai/grok-4.7', 'zai/glm-5.3', 'moonshot/kimi-k3'],
  'groq/openai/gpt-oss-120b',
];

export const BEFORE = 'level: 300 cm\nstate: calm\n';
export const AFTER = 'level: 312 cm\nstate: rising\n';

/** The edit for tools that take a patch. */
export const PATCH = [
  '*** Begin Patch',
  '*** Update File: river.txt',
  '@@',
  '-level: 300 cm',
  '-state: calm',
  '+level: 312 cm',
  '+state: rising',
  '*** End Patch',
].join('\n');
