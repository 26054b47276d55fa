/**
 * Sets up a deployment: npm run setup [-- --answers FILE] [--dry-run]. It asks for providers and environments, or reads the answers of a
 * file; writes wrangler.toml, creates KV, deploys, sets secrets, makes a first key, and prints what clients need.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readAnswers } from './setup/answers.ts';
import { askAnswers, Terminal } from './setup/ask.ts';
import { planSteps, type Step } from './setup/steps.ts';
import { printable } from './setup/terminal-text.ts';

const HELP = `npm run setup -- [options]

  --dry-run         prints every step; writes and calls nothing
  --answers <file>  a JSON file in place of questions. Secrets are read from the environment: OPENAI_API_KEY=… npm run setup -- --answers setup.json
  --help            prints this help

docs/deployment.md#set-up has the fields of the file.
`;

const print = (line: string) => void process.stdout.write(`${printable(line)}\n`);

function fail(message: string): never {
  process.stderr.write(`${printable(message)}\n`);
  process.exit(2);
}

function readOptions() {
  const options = {
    'dry-run': { type: 'boolean' },
    answers: { type: 'string' },
    help: { type: 'boolean' },
  } as const;
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    fail(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`);
  }
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    fail(`${path} cannot be read`);
  }
}

function show(step: Step, number: number): void {
  print(`\n${number}. ${step.title}`);
  for (const line of step.shown) print(`   ${line}`);
}

const { help, answers: path, 'dry-run': isDryRun = false } = readOptions();
if (help) {
  print(HELP);
  process.exit(0);
}
if (path === undefined && !process.stdin.isTTY)
  fail(`There is no terminal to ask questions: use --answers\n\n${HELP}`);

const env = { ...process.env };
const terminal = path === undefined ? new Terminal() : undefined;
try {
  const text = terminal === undefined ? readFile(path ?? '') : await askAnswers(terminal, env);
  const answers = readAnswers(text);
  if (answers.kind === 'error') fail(answers.error.join('\n'));
  const steps = planSteps(answers.value, { root: process.cwd(), env, print });
  print('These are the steps. Each leaves alone what is there already.');
  for (const [index, step] of steps.entries()) show(step, index + 1);
  if (!isDryRun && (terminal === undefined || (await terminal.askYes('\nRun them?')))) {
    for (const [index, step] of steps.entries()) {
      print(`\n${index + 1}. ${step.title}`);
      await step.run();
    }
  }
} catch (error) {
  process.stderr.write(
    `\n${printable(error instanceof Error ? error.message : String(error))}\nAfter a repair, run the same command again.\n`,
  );
  process.exitCode = 1;
} finally {
  terminal?.close();
}
