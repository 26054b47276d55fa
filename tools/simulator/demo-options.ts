/** The demo's command line: what it takes, its help, and what a client needs to reach the demo's gateway. */
import { parseArgs } from 'node:util';
import { didYouMean } from '../../src/shared/nearest.ts';
import { deepseek } from './deepseek.ts';
import { FAULT_NAMES, isFault } from './faults.ts';

/** The port that the README's examples name. */
export const USUAL_PORT = 8787;

const OPTIONS = {
  once: { type: 'boolean' },
  fault: { type: 'string' },
  port: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

export const HELP = `npm run demo -- [options]

  --port <number>   the gateway's port; without it ${USUAL_PORT}, or a free one where that is taken
  --fault <name>    plays one fault of an upstream after the examples
  --once            ends after the examples
  --help            prints this

Faults: ${FAULT_NAMES.join(' ')} status-<code>[-<form>]
`;

export type DemoOptions =
  | {
      readonly kind: 'run';
      readonly once: boolean;
      readonly fault: string | undefined;
      readonly port: number | undefined;
    }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string };

/** @param args without Node's own two */
export function readOptions(args: readonly string[]): DemoOptions {
  const { tokens } = parseArgs({ args: [...args], options: OPTIONS, strict: false, tokens: true });
  const given = new Map<string, string | undefined>();
  for (const token of tokens) {
    if (token.kind === 'positional')
      return wrong(`It takes no argument such as ${JSON.stringify(token.value)}`);
    if (token.kind !== 'option') continue;
    if (!Object.hasOwn(OPTIONS, token.name)) {
      return wrong(`There is no option ${token.rawName}${didYouMean(token.name, Object.keys(OPTIONS))}`);
    }
    given.set(token.name, token.value);
  }
  if (given.has('help')) return { kind: 'help' };
  const fault = given.get('fault');
  if (given.has('fault') && (fault === undefined || !isFault(fault, deepseek))) {
    return wrong(`--fault takes one of: ${FAULT_NAMES.join(' ')} status-<code>[-<form>]`);
  }
  const port = given.has('port') ? Number(given.get('port') ?? Number.NaN) : undefined;
  if (port !== undefined && !(Number.isInteger(port) && port >= 1 && port <= 65_535)) {
    return wrong('--port takes a number from 1 to 65535');
  }
  return { kind: 'run', once: given.has('once'), fault, port };
}

function wrong(message: string): DemoOptions {
  const end = message.endsWith('?') ? '' : '.';
  return { kind: 'wrong', message: `${message}${end} npm run demo -- --help lists the options` };
}

/** The lines that make a shell's clients ask the demo's gateway. */
export function exportLines(url: string, key: string): string[] {
  return [
    `export WEIR_URL=${url} WEIR_KEY=${key}`,
    `export OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=$WEIR_KEY`,
    `export ANTHROPIC_BASE_URL=${url} ANTHROPIC_AUTH_TOKEN=$WEIR_KEY`,
  ];
}
