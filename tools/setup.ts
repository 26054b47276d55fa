/**
 * Sets up a deployment: npm run setup [-- --answers FILE] [--dry-run]. It asks for providers and environments, or reads the answers of a
 * file; writes wrangler.toml, creates KV, deploys, sets secrets, makes a first key, and prints what clients need.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Draft } from './setup/ask.ts';
import type { Step } from './setup/steps.ts';
import { printable } from './setup/terminal-text.ts';

const HELP = `npm run setup -- [options]

  --dry-run         prints every step; writes and calls nothing
  --answers <file>  a JSON file in place of questions. Secrets are read from the environment: OPENAI_API_KEY=… npm run setup -- --answers setup.json
  --help            prints this help

docs/deployment.md#set-up has the fields of the file.
`;

/** Files of answers that one folder gets. */
const MAX_KEPT = 9;

class WrongAnswers extends Error {}

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
  // npm takes flags that stand before `--`, and passes them on in the environment.
  const { npm_config_dry_run, npm_config_answers } = process.env;
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: npm_config_answers === 'true' });
    const [file] = positionals;
    const taken = npm_config_answers === 'true' ? file : npm_config_answers;
    return {
      ...values,
      'dry-run': values['dry-run'] ?? npm_config_dry_run === 'true',
      answers: values.answers ?? (taken || undefined),
    };
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

const { help, answers: path, 'dry-run': isDryRun } = readOptions();
if (help) {
  print(HELP);
  process.exit(0);
}
if (path === undefined && !process.stdin.isTTY)
  fail(`There is no terminal to ask questions: use --answers\n\n${HELP}`);

const env = { ...process.env };
const root = process.cwd();
const surroundings = { config: readFile(join(root, 'wrangler.toml')), env, now: Date.now() };
const { readAnswers } = await import('./setup/answers.ts');
const { planSteps } = await import('./setup/steps.ts');

/** Shows the steps of the answers, and runs them. Throws an error with a message for the operator. */
async function setUp(text: string, confirm: () => Promise<boolean>): Promise<boolean> {
  const answers = readAnswers(text, surroundings);
  if (answers.kind === 'error') throw new WrongAnswers(answers.error.join('\n'));
  const steps = planSteps(answers.value, { root, env, print });
  for (const note of answers.value.notes) print(`Note: ${note}`);
  print('These are the steps. Each leaves alone what is there already.');
  for (const [index, step] of steps.entries()) show(step, index + 1);
  if (isDryRun || !(await confirm())) return false;
  for (const [index, step] of steps.entries()) {
    print(`\n${index + 1}. ${step.title}`);
    await step.run();
  }
  return true;
}

/** Runs the steps of a file. */
async function setUpFile(file: string): Promise<void> {
  try {
    await setUp(readFile(file), async () => true);
  } catch (error) {
    if (error instanceof WrongAnswers) fail(error.message);
    tellFailure(error);
    process.stderr.write('After a repair, run the same command again.\n');
  }
}

/** Asks, and runs the steps until they succeed or the person gives up. What was typed is kept: keys in this process, the rest in a file. */
async function setUpAtTerminal(): Promise<void> {
  const { askAnswers, Terminal, writeDraft } = await import('./setup/ask.ts');
  const terminal = new Terminal();
  const draft: Draft = {};
  let isDone = false;
  try {
    await askAnswers(terminal, draft, surroundings);
    let isAgain = false;
    do {
      try {
        isDone = await setUp(writeDraft(draft), () => terminal.askYes('\nRun them?'));
        isAgain = false;
      } catch (error) {
        tellFailure(error);
        isAgain = await terminal.askYes('\nShow and run the steps again, with the same answers and keys?');
      }
    } while (isAgain);
  } catch (error) {
    tellFailure(error);
  } finally {
    terminal.close();
  }
  if (isDone || Object.keys(draft).length === 0) return;
  if (isDryRun) print(`\nThe answers, for --answers <file>. Keys are not in them:\n${writeDraft(draft)}`);
  else keep(writeDraft(draft));
}

function tellFailure(error: unknown): void {
  process.stderr.write(`\n${printable(error instanceof Error ? error.message : String(error))}\n`);
  process.exitCode = 1;
}

/** Writes answers into the first of these files that does not exist. */
function keep(text: string): void {
  for (let number = 1; number <= MAX_KEPT; number++) {
    const name = number === 1 ? 'setup.json' : `setup-${number}.json`;
    try {
      writeFileSync(join(root, name), text, { flag: 'wx' });
    } catch {
      continue;
    }
    print(
      `\nWhat you answered is in ${name}, without keys. To go on from there, with the keys in the environment:`,
    );
    print(`  npm run setup -- --answers ${name}`);
    return;
  }
  print(`\nWhat you answered, for --answers <file>:\n${text}`);
}

if (path === undefined) await setUpAtTerminal();
else await setUpFile(path);
