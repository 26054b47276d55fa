/** Runs the simulator as a server of its own: node tools/simulator/main.ts [--port 9100] [--pace 40] [--fault NAME] */
import { parseArgs } from 'node:util';
import { FAULT_NAMES } from './faults.ts';
import { basePaths } from './scenes.ts';
import { createSimulator } from './server.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '9100' },
    pace: { type: 'string', default: '40' },
    fault: { type: 'string' },
  },
});
const simulator = await createSimulator({
  port: Number(values.port),
  pace: Number(values.pace),
  ...(values.fault === undefined ? {} : { fault: values.fault }),
});
const lines = Object.entries(basePaths).map(([name, path]) => `  ${name.padEnd(11)} ${simulator.url}${path}`);
process.stdout.write(`Simulated providers (any key that begins with sim-):\n${lines.join('\n')}\n`);
process.stdout.write(
  `Faults, as a model's suffix (deepseek-chat:cut): ${FAULT_NAMES.join(' ')} status-<code>[-<form>]\n`,
);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void simulator.close());
