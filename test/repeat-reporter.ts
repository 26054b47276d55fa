/**
 * Vitest's reporter that ends with one line for each failed test: the command that repeats it alone, the time that it
 * took, and its limit.
 */
import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';
import { SEED } from './random-run.ts';

export default class RepeatReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const failed = modules.flatMap((module) => [...module.children.allTests('failed')]);
    const broken = modules.flatMap((module) =>
      [module, ...module.children.allSuites()].filter((one) => one.errors().length > 0),
    );
    const lines = [
      ...failed.map((test) => `  ${commandOf(test)}\n    ${timeOf(test)}`),
      ...broken.map((one) => `  ${commandOf(one)}\n    it failed outside its tests`),
    ];
    if (lines.length > 0) process.stdout.write(`To repeat what failed:\n${lines.join('\n')}\n`);
  }
}

function commandOf(task: TestCase | TestSuite | TestModule): string {
  const module = task.type === 'module' ? task : task.module;
  const { mode } = module.project.vite.config;
  const set = ['RUNS', 'STEP'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [` ${name}=${value}`];
  });
  const file = relative(process.cwd(), module.moduleId);
  const end = task.type === 'test' ? '$' : '';
  const name = task.type === 'module' ? '' : ` -t ${quoted(`^${escaped(task.fullName)}${end}`)}`;
  return `SEED=${SEED}${set.join('')} npx vitest run${mode === 'test' ? '' : ` --mode ${mode}`} ${file}${name}`;
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function timeOf(test: TestCase): string {
  const limit = test.options.timeout ?? test.project.config.testTimeout;
  return `it took ${Math.round(test.diagnostic()?.duration ?? 0)} ms, its limit is ${limit} ms`;
}
