/** The demo's command line: its options, its help, and the environment variables for clients of the demo. */
import { parseArgs } from 'node:util';
import { didYouMean } from '../../src/shared/nearest.ts';
import { deepseek } from './deepseek.ts';
import { FAULT_NAMES, isFault } from './faults.ts';

/** The port in the README's examples. */
export const USUAL_PORT = 8787;

const OPTIONS = {
  once: { type: 'boolean' },
  fault: { type: 'string' },
  port: { type: 'string' },
  var: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

export const HELP = `npm run demo -- [options]

  --port <number>     the gateway's port (default: ${USUAL_PORT}, or a free port if ${USUAL_PORT} is in use)
  --fault <name>      also runs one request whose upstream fails in this way
  --var <NAME:value>  sets a variable, such as ALIASES of docs/routing.md; servers of PROVIDERS are the simulator, too
  --once              exits after the examples
  --help              prints this help

Faults: ${FAULT_NAMES.join(' ')} status-<code>[-<form>]
`;

const VARIABLE = /^([A-Z][A-Z0-9_]*):([\s\S]*)$/;

export type DemoOptions =
  | {
      readonly kind: 'run';
      readonly once: boolean;
      readonly fault: string | undefined;
      readonly port: number | undefined;
      /** Variables of the gateway, by name. */
      readonly vars: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string };

/** @param args without the two that Node adds */
export function readOptions(args: readonly string[]): DemoOptions {
  const { tokens } = parseArgs({ args: [...args], options: OPTIONS, strict: false, tokens: true });
  const given = new Map<string, string | undefined>();
  const vars: Record<string, string> = {};
  for (const token of tokens) {
    if (token.kind === 'positional') return wrong(`Unexpected argument: ${JSON.stringify(token.value)}`);
    if (token.kind !== 'option') continue;
    if (!Object.hasOwn(OPTIONS, token.name)) {
      return wrong(`Unknown option ${token.rawName}${didYouMean(token.name, Object.keys(OPTIONS))}`);
    }
    given.set(token.name, token.value);
    if (token.name !== 'var') continue;
    const [, name, value] = VARIABLE.exec(token.value ?? '') ?? [];
    if (name === undefined || value === undefined || name === 'ADMIN_TOKEN')
      return wrong('--var must be NAME:value, of a setting such as ALIASES, and not ADMIN_TOKEN');
    vars[name] = value;
  }
  if (given.has('help')) return { kind: 'help' };
  const fault = given.get('fault');
  if (given.has('fault') && (fault === undefined || !isFault(fault, deepseek))) {
    return wrong(`--fault must be one of: ${FAULT_NAMES.join(' ')} status-<code>[-<form>]`);
  }
  const port = given.has('port') ? Number(given.get('port') ?? Number.NaN) : undefined;
  if (port !== undefined && !(Number.isInteger(port) && port >= 1 && port <= 65_535)) {
    return wrong('--port must be a number from 1 to 65535');
  }
  return { kind: 'run', once: given.has('once'), fault, port, vars };
}

function wrong(message: string): DemoOptions {
  const end = message.endsWith('?') ? '' : '.';
  return { kind: 'wrong', message: `${message}${end} npm run demo -- --help lists the options` };
}

/** Shell commands that point clients at the demo's gateway. */
export function exportLines(url: string, key: string): string[] {
  return [
    `export WEIR_URL=${url} WEIR_KEY=${key}`,
    `export OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=$WEIR_KEY`,
    `export ANTHROPIC_BASE_URL=${url} ANTHROPIC_AUTH_TOKEN=$WEIR_KEY`,
  ];
}
