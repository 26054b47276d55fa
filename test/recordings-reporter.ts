/** Vitest's reporter that says in one line at the end what was skipped for want of recordings. */
import type { Reporter, TestModule } from 'vitest/node';

/** What the titles of such tests have where the folder is missing. */
const NOTE = /\(skipped: (\S+) is not here\)/;

export default class RecordingsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const folders = new Set<string>();
    const files = new Set<string>();
    let tests = 0;
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const [, folder] = NOTE.exec(test.fullName) ?? [];
        if (folder === undefined) continue;
        folders.add(folder);
        files.add(module.moduleId);
        if (test.result().state === 'skipped') tests++;
      }
    }
    if (files.size === 0) return;
    process.stdout.write(
      `Recordings: ${tests} tests in ${files.size} files were skipped, and in them one for each recording, because ` +
        `${[...folders].sort().join(' and ')} is missing. CONTRIBUTING.md says where recordings come from.\n`,
    );
  }
}
