/** Cold: the first stream of a fresh process; CPU of workerd until its first byte and until each mark. */
import type { ColdJob, JobResult } from '../jobs.ts';
import { cpuMs } from './accounting.ts';
import { readPaced } from './paced-client.ts';
import { openPacer } from './pacer.ts';

export async function runCold({ target, rate, marks }: ColdJob): Promise<JobResult> {
  openPacer(marks.at(-1));
  const figures: Record<string, number> = {};
  // CPU time before the first request: the start of the runtime and of the script.
  const startMs = cpuMs(target.pid);
  figures.startMs = startMs;
  const { firstByteMs, problem } = await readPaced({
    target,
    stream: 'deepseek',
    model: `paced.${rate}.0.deepseek`,
    onFrame: (_, number) => {
      if (marks.includes(number + 1)) figures[`cpu${number + 1}Ms`] = cpuMs(target.pid) - startMs;
    },
    isKept: true,
  });
  return { figures: { ...figures, firstByteMs }, problem };
}
