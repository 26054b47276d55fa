/** Runs the simulator as a server of its own: npm run simulator -- --help */
import { parseArgs } from 'node:util';
import { deepseek } from './deepseek.ts';
import { FAULT_NAMES, isFault } from './faults.ts';
import { basePaths } from './scenes.ts';
import { createSimulator } from './server.ts';

const HELP = `npm run simulator -- [options]

  --port <number>   the port (default: 9100)
  --pace <ms>       between two events of a stream (default: 40; 0: none)
  --fault <name>    the fault of every request that names none
  --help            prints this help

Faults, as a model's suffix (deepseek-chat:cut), too: ${FAULT_NAMES.join(' ')} status-<code>[-<form>]
`;
/** A day. */
const MAX_PACE_MS = 86_400_000;

function fail(message: string): never {
  process.stderr.write(`${message}. npm run simulator -- --help lists the options\n`);
  process.exit(2);
}

function readOptions() {
  try {
    return parseArgs({
      options: {
        port: { type: 'string', default: '9100' },
        pace: { type: 'string', default: '40' },
        fault: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
  }
}

function isWithin(text: string, from: number, to: number): boolean {
  return /^\d+$/.test(text) && Number(text) >= from && Number(text) <= to;
}

const { port, pace, fault, help } = readOptions();
if (help) {
  process.stdout.write(HELP);
  process.exit(0);
}
if (!isWithin(port, 0, 65_535)) fail('--port must be a number from 0 to 65535');
if (!isWithin(pace, 0, MAX_PACE_MS)) fail(`--pace must be a number of ms from 0 to ${MAX_PACE_MS}`);
if (fault !== undefined && !isFault(fault, deepseek))
  fail(`--fault must be one of: ${FAULT_NAMES.join(' ')} status-<code>[-<form>]`);
const simulator = await createSimulator({
  port: Number(port),
  pace: Number(pace),
  ...(fault === undefined ? {} : { fault }),
}).catch((error: unknown) => fail(`The simulator cannot listen at port ${port}: ${String(error)}`));
const lines = Object.entries(basePaths).map(([name, path]) => `  ${name.padEnd(11)} ${simulator.url}${path}`);
process.stdout.write(`Simulated providers (any key that begins with sim-):\n${lines.join('\n')}\n`);
process.stdout.write(
  `Faults, as a model's suffix (deepseek-chat:cut): ${FAULT_NAMES.join(' ')} status-<code>[-<form>]\n`,
);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void simulator.close());
