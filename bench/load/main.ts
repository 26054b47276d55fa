/** The load generator's process: simulates the upstream and KV, and runs the bench's jobs as their clients. */
import type { Job, JobResult } from '../jobs.ts';
import { runBulk } from './bulk.ts';
import { runCold } from './cold.ts';
import { startKv } from './kv.ts';
import { runPaced } from './paced.ts';
import { runRequests } from './requests.ts';
import { startUpstream } from './upstream.ts';

function run(job: Job): Promise<JobResult> {
  switch (job.kind) {
    case 'bulk':
      return runBulk(job);
    case 'paced':
      return runPaced(job);
    case 'cold':
      return runCold(job);
    case 'requests':
      return runRequests(job);
  }
}

process.on('message', (job: Job) => {
  run(job).then(
    (result) => process.send?.(result),
    (error: unknown) => process.send?.({ figures: {}, problem: String(error) }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ upstream: await startUpstream(), kv: await startKv() });
