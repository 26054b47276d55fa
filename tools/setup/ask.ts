/** Asks for the answers at a terminal. Keys are not shown while they are typed. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { PROVIDERS } from '../../src/providers/index.ts';
import { needsUrl, PROVIDER_IDS, secretOf } from './answers.ts';
import { PRODUCTION } from './wrangler-config.ts';

/** The terminal of a person. */
export class Terminal {
  #isHidden = false;
  readonly #output = new Writable({
    write: (chunk, _, done) => {
      if (!this.#isHidden) process.stdout.write(chunk);
      done();
    },
  });
  readonly #lines = createInterface({
    input: process.stdin,
    output: this.#output,
    terminal: process.stdin.isTTY,
  });

  /** @returns the line, or `usual` for an empty one */
  async ask(question: string, usual = ''): Promise<string> {
    const line = await this.#lines.question(`${question}${usual === '' ? '' : ` [${usual}]`}: `);
    return line.trim() || usual;
  }

  async askYes(question: string): Promise<boolean> {
    return /^y(es)?$/i.test(await this.ask(`${question} y/n`, 'n'));
  }

  /** Asks without showing what is typed or pasted. */
  async askHidden(question: string): Promise<string> {
    process.stdout.write(`${question}: `);
    this.#isHidden = true;
    const line = await this.#lines.question('');
    this.#isHidden = false;
    process.stdout.write('\n');
    return line.trim();
  }

  close(): void {
    this.#lines.close();
  }
}

/**
 * @param env gets the keys that are typed, as if they had been in the environment
 * @returns the text of an answers file, without secrets
 */
export async function askAnswers(terminal: Terminal, env: NodeJS.ProcessEnv): Promise<string> {
  const worker = await terminal.ask('Name of the Worker', 'weir');
  const hasStaging = await terminal.askYes('An environment for staging, too?');
  const ids = await terminal.ask(`Providers, with commas (${PROVIDER_IDS.join(', ')})`);
  const providers = ids.split(/[\s,]+/).filter((id) => id !== '');
  const vars: Record<string, string> = {};
  for (const id of providers) {
    const provider = PROVIDERS.find((one) => one.id === id);
    if (provider === undefined) continue;
    const { name, apiKeySettings, baseUrlSettings } = provider;
    if (apiKeySettings.every((setting) => secretOf(env, PRODUCTION, setting) === null)) {
      const key = await terminal.askHidden(
        `${apiKeySettings[0]}, the key of ${name} (empty: it is set already)`,
      );
      if (key !== '') env[apiKeySettings[0]] = key;
    }
    if (needsUrl(provider))
      vars[baseUrlSettings[0]] = await terminal.ask(`${baseUrlSettings[0]}, the address of ${name}`);
  }
  const key = await terminal.ask('Name of the first gateway key', 'first');
  const environments = hasStaging ? [PRODUCTION, 'staging'] : [PRODUCTION];
  return JSON.stringify({ worker, environments, providers, vars, key }, null, 2);
}
