/**
 * Runs the real clients of docs/clients against the simulated providers: npm run agents [-- <client> …] [--write]. Installs each from its
 * registry into a temporary folder and lets it edit a file. Exits with 1 if one fails. The table in docs/clients/runs.md gets the
 * results if all pass; with --write also those that fail.
 */
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { didYouMean } from '../src/shared/nearest.ts';
import { AI_BINDING, AiRemote } from '../test/e2e/ai-remote.ts';
import { SIGNED_BEDROCK, startGateway } from '../test/e2e/gateway.ts';
import { CLIENTS, deploymentAliases } from './agents/clients.ts';
import { install, runTrial } from './agents/run.ts';
import { type Row, writeRows } from './agents/table.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false } },
});
const ids = CLIENTS.map(({ id }) => id);
const unknown = positionals.find((id) => !ids.includes(id));
if (unknown !== undefined) {
  process.stderr.write(
    `Unknown client ${unknown}${didYouMean(unknown, ids)} The clients: ${ids.join(' ')}\n`,
  );
  process.exit(2);
}
const clients = CLIENTS.filter(({ id }) => positionals.length === 0 || positionals.includes(id));

const root = await mkdtemp(join(tmpdir(), 'weir-agents-'));
// Programs that run are killed in the same way. Nothing can be awaited, because wrangler also ends the process on a signal.
process.once('exit', () => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));
// Cloudflare's models are at the binding `AI`.
const remote = await AiRemote.start();
const gateway = await startGateway({
  vars: { ...SIGNED_BEDROCK, AUTH: 'keys', ALIASES: deploymentAliases() },
  hasPromptCache: true,
  ...{ bindings: AI_BINDING, remote: remote.url },
});
remote.simulatorUrl = gateway.simulator.url;
const rows: Row[] = [];
let isComplete = true;
for (const client of clients) {
  try {
    rows.push(...(await runClient(client)));
  } catch (error) {
    isComplete = false;
    process.stderr.write(`${client.title} was not run to its end: ${String(error)}\n`);
  }
}
await gateway[Symbol.asyncDispose]();
await remote[Symbol.asyncDispose]();
const passed = rows.filter(({ problems }) => problems.length === 0).length;
process.stdout.write(`${passed} of ${rows.length} pass\n`);
const isGood = isComplete && passed === rows.length;
if (isGood || values.write) await writeRows(rows, ids);
if (!isGood) process.exitCode = 1;

async function runClient(client: (typeof CLIENTS)[number]): Promise<Row[]> {
  const folder = join(root, client.id);
  const versions = await install(client, folder);
  const rows: Row[] = [];
  for (const [index, trial] of client.trials.entries()) {
    const place = { gateway, packages: folder, folder: join(root, `${client.id}-${index}`) };
    const outcome = await runTrial(client, trial, place);
    const row = {
      client,
      trial,
      versions: trial.versions.map((name) => `${name} ${versions.get(name)}`),
      requests: outcome.requests,
      problems: outcome.problems,
      date: new Date().toISOString().slice(0, 10),
    };
    rows.push(row);
    const result = outcome.problems.length === 0 ? 'ok' : `FAILED: ${outcome.problems.join('; ')}`;
    const tokens = `${outcome.promptTokens} prompt tokens, ${outcome.cachedTokens} cached`;
    const facts = [
      `${outcome.requests} requests`,
      tokens,
      ...outcome.facts,
      `${(outcome.ms / 1000).toFixed(1)} s`,
    ];
    process.stdout.write(
      `${client.title} (${row.versions.join(', ')}), ${trial.protocol} at ${trial.model}: ${result} (${facts.join('; ')})\n`,
    );
    if (outcome.problems.length > 0) process.stderr.write(`${outcome.output}\n`);
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  return rows;
}
