/** Bulk: streams at full speed, one after the other; CPU of workerd per upstream event. */
import { hash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { BulkJob, JobResult, Target } from '../jobs.ts';
import { cpuMs } from './accounting.ts';
import { problemOf } from './check.ts';
import { Connection } from './client.ts';
import { bulkBody, bulkModel } from './upstream.ts';

/** Time for the work after a response's end, such as a usage record, which counts too. */
const SETTLE_MS = 30;

/** Digests of responses that passed the check, by row and model: identical bytes need no second check. */
const known = new Map<string, string>();

export async function runBulk(job: BulkJob): Promise<JobResult> {
  const { target } = job;
  const model = bulkModel(job.stream, job.chunkBytes, job.events);
  const upstream = bulkBody(model);
  const connection = await Connection.open(target.port);
  const cpuBefore = cpuMs(target.pid);
  const start = performance.now();
  let answers = 0;
  let problem: string | null = null;
  while (problem === null && (answers === 0 || performance.now() - start < job.ms)) {
    const pieces: Buffer[] = [];
    const status = await connection.request(
      { path: pathOf(target, model), headers: target.headers, body: requestBody(target, model, true) },
      (bytes) => pieces.push(bytes),
    );
    answers++;
    problem = check(target, model, status, Buffer.concat(pieces), upstream);
  }
  const wallMs = performance.now() - start;
  await setTimeout(SETTLE_MS);
  const spent = cpuMs(target.pid) - cpuBefore;
  connection.close();
  return { figures: { cpuUs: (spent * 1000) / (answers * job.events), answers, wallMs }, problem };
}

/** The path of a request, in which clients of Gemini's API have the model. */
function pathOf({ path, modelPrefix }: Target, model: string): string {
  return path.replace('{model}', () => encodeURIComponent(modelPrefix + model));
}

export function requestBody(
  target: Target,
  model: string,
  stream: boolean,
  messages: readonly object[] = [{ role: 'user', content: 'What is a weir?' }],
): string {
  if (target.treatment === 'gemini') {
    return JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'What is a weir?' }] }] });
  }
  const requested = target.treatment === 'responses' ? { input: messages } : { messages };
  return JSON.stringify({ model: target.modelPrefix + model, stream, ...requested });
}

function check(
  target: Target,
  model: string,
  status: number,
  answer: Buffer,
  upstream: ReturnType<typeof bulkBody>,
): string | null {
  if (status !== 200) return `status ${status}: ${answer.toString().slice(0, 300)}`;
  const name = `${target.row} ${model}`;
  const digest = hash('sha1', answer);
  if (known.get(name) === digest) return null;
  const isSame = target.treatment === 'bytes' && answer.equals(upstream.raw);
  const problem = isSame ? null : problemOf(target.treatment, upstream.text, answer.toString());
  if (problem === null) known.set(name, digest);
  return problem;
}
