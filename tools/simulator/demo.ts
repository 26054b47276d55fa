/**
 * The demo of Weir: the simulator acts as the providers, the gateway runs under wrangler dev, and each response is
 * printed as it arrives. npm run demo -- --help
 */
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { showBudget } from './demo-budget.ts';
import { examples } from './demo-examples.ts';
import { fillDemo } from './demo-fill.ts';
import { choosePort, startGateway } from './demo-gateway.ts';
import { type LoopTotals, showLoop } from './demo-loop.ts';
import { exportLines, HELP, readOptions, USUAL_PORT } from './demo-options.ts';
import { showResume } from './demo-resume.ts';
import { frames, type GatewayAccess, post, show } from './demo-stream.ts';
import { growth, type Metered, metered, usageTable } from './demo-usage.ts';
import { ADMIN_TOKEN, demoVariables } from './demo-variables.ts';
import { numberOf } from './json.ts';
import { createSimulator } from './server.ts';
import { print, styled } from './terminal.ts';

const HUMAN_PACE_MS = 35;
const SHOWN_FRAMES = 12;
const SHOWN_CHARACTERS = 220;

const options = readOptions(process.argv.slice(2));
if (options.kind === 'help') {
  print(HELP);
  process.exit(0);
}
if (options.kind === 'wrong') {
  process.stderr.write(`${options.message}\n`);
  process.exit(2);
}
const { once, fault, vars } = options;
const port = await choosePort(options.port, USUAL_PORT);
if (port === null) {
  process.stderr.write(`Port ${options.port} is in use: choose another one with --port, or omit --port\n`);
  process.exit(2);
}

const directory = await mkdtemp(join(tmpdir(), 'weir-demo-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
const simulator = await createSimulator({ pace: HUMAN_PACE_MS });
const starting = startGateway(variables(), directory, port);
let stopping: Promise<void> | undefined;

/** Called on an interrupt and at the end; the second call waits for the first. */
function stop(): Promise<void> {
  stopping ??= (async () => {
    await (await starting).stop();
    await simulator.close();
  })();
  return stopping;
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void stop().then(() => process.exit(once ? 130 : 0)));
}

// `npm run demo | head` closes the pipe, which ends the demo.
process.stdout.on('error', () => void stop().then(() => process.exit(0)));

const gateway = await starting;
try {
  print(styled('note', `simulator ${simulator.url}, starting wrangler dev …`));
  await gateway.ready();
  const isUsual = port === USUAL_PORT || options.port !== undefined;
  const why = isUsual ? '' : `   (the default port ${USUAL_PORT} is in use)`;
  print(styled('note', `gateway   ${gateway.url}${why}`));
  const access: GatewayAccess = { url: gateway.url, key: await fillDemo(gateway.url, ADMIN_TOKEN) };
  const failures = await run(access);
  for (const line of failures) print(styled('error', line));
  if (failures.length > 0) print(await gateway.log());
  if (once) await stop();
  else {
    invite(access);
    void gateway.lost().then(endLost);
  }
  process.exitCode = failures.length > 0 ? 1 : 0;
} catch (error) {
  // An interrupt stops the gateway during a stream. That is not a failure of the demo.
  if (stopping === undefined) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.stderr.write(`${await gateway.log()}\n`);
    process.exitCode = 1;
  }
  await stop();
}

async function endLost(): Promise<void> {
  if (stopping !== undefined) return;
  process.stderr.write(`${await gateway.log()}\n\nThe demo's gateway no longer responds, so the demo ends. `);
  process.stderr.write('Running npm ci at the same time removes its files. Start it again: npm run demo\n');
  await stop();
  process.exit(1);
}

function variables(): Record<string, string> {
  const settings = demoVariables(simulator.url, vars);
  // A fault that ends with a timeout should not take two minutes.
  const short = { HEARTBEAT_SECONDS: '1', IDLE_TIMEOUT_SECONDS: '3', DEADLINE_SECONDS: '15' };
  return fault === undefined ? settings : { ...settings, ...short };
}

/** Returns the differences from the expected results. */
async function run(gateway: GatewayAccess): Promise<string[]> {
  const failures: string[] = [];
  for (const example of examples) {
    print(`\n${styled('title', example.title)}`);
    print(styled('note', `  POST ${example.path}  ${String(example.body.model)}`));
    failures.push(...(await show(gateway, example)).map((line) => `${example.title}: ${line}`));
  }
  print(
    `\n${styled('title', 'An agent loop: DeepSeek thinks before each step and requires its reasoning in the next request')}`,
  );
  const loop = await showLoop(gateway);
  failures.push(...loop.failures);
  print(
    `\n${styled('title', 'A background response of Claude: the connection is cut, and the client reads the rest')}`,
  );
  const resumed = await showResume(gateway);
  failures.push(...resumed.failures);
  print(
    `\n${styled('title', 'A key with one cent: its running budget ends a long answer as an output limit does')}`,
  );
  failures.push(...(await showBudget(gateway.url, ADMIN_TOKEN)));
  print(`\n${styled('title', 'Metered usage')}`);
  const usage = await metered(gateway, examples.length + loop.requests + resumed.requests);
  for (const line of usageTable(usage)) print(line);
  if (fault !== undefined) await showFault(gateway, fault, usage);
  return [...failures, ...checkSums(usage, [loop, resumed])];
}

function checkSums({ total }: Metered, others: readonly LoopTotals[]): string[] {
  const all = [...examples.map(({ expected }) => ({ requests: 1, ...expected })), ...others];
  const requests = all.reduce((sum, one) => sum + one.requests, 0);
  const prompt = all.reduce((sum, one) => sum + one.promptTokens, 0);
  const completion = all.reduce((sum, one) => sum + one.completionTokens, 0);
  const actual = [total.requests, total.prompt_tokens, total.completion_tokens].map(numberOf).join();
  const expected = [requests, prompt, completion].join();
  return actual === expected
    ? []
    : [`Metered requests, prompt tokens and completion tokens are ${actual}, expected ${expected}`];
}

/** Prints the raw frames: here the exact bytes matter. */
async function showFault(gateway: GatewayAccess, name: string, before: Metered): Promise<void> {
  const model = `deepseek/deepseek-flash:${name}`;
  print(`\n${styled('title', `With the upstream fault ${name}`)}`);
  const body = { model, messages: [{ role: 'user', content: 'What does a weir do?' }], stream: true };
  try {
    await showFrames(await post(gateway, { path: '/v1/chat/completions', body }));
  } catch (error) {
    print(styled('error', `  error at the client: ${String(error)}`));
  }
  const after = await metered(gateway, (numberOf(before.total.requests) ?? 0) + 1);
  print(styled('note', `  usage record: ${growth(before, after)}`));
}

async function showFrames(response: Response): Promise<void> {
  print(styled('note', `  ${response.status} ${response.headers.get('content-type') ?? ''}`));
  let count = 0;
  let last: string[] = [];
  for await (const frame of frames(response.body)) {
    count += 1;
    if (count <= SHOWN_FRAMES) print(`  ${shortened(frame)}`);
    else last = [...last, frame].slice(-2);
  }
  const hidden = count - SHOWN_FRAMES - last.length;
  if (hidden > 0) print(styled('note', `  … ${hidden} more …`));
  for (const frame of last) print(`  ${shortened(frame)}`);
}

/** Omits the envelope, which is the same in every chunk. */
function shortened(frame: string): string {
  const text = frame.trimEnd().replace(/^data: \{"id".*?(?="choices")/, 'data: {… ');
  const line = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)} …` : text;
  return styled(/"error":|^data: \[DONE\]/.test(line) ? 'error' : 'text', line);
}

function invite({ url, key }: GatewayAccess): void {
  const auth = '-H "authorization: Bearer $WEIR_KEY"';
  const chat = (model: string, content: string) => {
    const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content }] });
    return `curl -sN $WEIR_URL/v1/chat/completions ${auth} -H 'content-type: application/json' -d '${body}'`;
  };
  print(`\n${styled('title', 'Try, in another terminal with the variables below:')}`);
  const vectors = JSON.stringify({
    model: 'openai/text-embedding-3-small',
    input: 'How high is the river?',
    dimensions: 8,
  });
  const commands = [
    ['Reasoning, then text', chat('deepseek/deepseek-flash', 'How does a lock empty?')],
    ['A refusal', chat('xerotier/llama-3.1-8b-refusal', 'Open all gates at once')],
    ['A truncated upstream stream', chat('openai/gpt-4o-mini:cut', 'What does a weir do?')],
    ['A rate-limited upstream', chat('mistral/mistral-small-latest:status-429', 'Hello')],
    [
      'Embeddings',
      `curl -s $WEIR_URL/v1/embeddings ${auth} -H 'content-type: application/json' -d '${vectors}'`,
    ],
    ['The models', `curl -s $WEIR_URL/v1/models ${auth}`],
    ['Metered usage', `curl -s "$WEIR_URL/v1/usage?group_by=provider,model" ${auth}`],
  ] as const;
  for (const [title, command] of commands) print(`\n${styled('note', title)}\n${command}`);
  print(`\n${styled('title', 'Dashboard, with sample records of the last two weeks')}`);
  print(`${url}/dashboard   sign in with ${ADMIN_TOKEN}`);
  print(
    `\n${styled('title', 'Address and key, for another terminal. The gateway runs until you press Ctrl-C')}`,
  );
  for (const line of exportLines(url, key)) print(line);
}
