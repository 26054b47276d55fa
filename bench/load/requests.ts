/** Requests: responses of one frame, or refusals, one after the other; CPU of workerd per request. */
import { setTimeout } from 'node:timers/promises';
import type { JobResult, RequestsJob } from '../jobs.ts';
import { median } from '../samples.ts';
import { conversation, oneFrameText, REFUSAL } from '../streams.ts';
import { cpuMs } from './accounting.ts';
import { requestBody } from './bulk.ts';
import { problemOf, problemOfWhole } from './check.ts';
import { Connection } from './client.ts';
import { recordBytesWritten, recordsWritten } from './kv.ts';

const SETTLE_MS = 100;
const MAX_LATE_MS = 20_000;

export async function runRequests(job: RequestsJob): Promise<JobResult> {
  const { target, isStreamed, ms, promptBytes, isRefused = false } = job;
  const connection = await Connection.open(target.port);
  const messages = promptBytes === undefined ? undefined : conversation(promptBytes);
  const model = isRefused ? 'refused' : 'one';
  const ask = { headers: target.headers, body: requestBody(target, model, isStreamed, messages) };
  const cpuBefore = cpuMs(target.pid);
  const recordsBefore = recordsWritten();
  const recordBytesBefore = recordBytesWritten();
  const start = performance.now();
  const firstBytes: number[] = [];
  let requests = 0;
  let checked = '';
  let problem: string | null = null;
  while (problem === null && (requests === 0 || performance.now() - start < ms)) {
    let answer = '';
    const askedAt = performance.now();
    const status = await connection.request(ask, (bytes) => {
      if (answer === '') firstBytes.push(performance.now() - askedAt);
      answer += bytes.toString();
    });
    requests++;
    if (answer === checked) continue;
    if (status !== (isRefused ? 400 : 200)) problem = `status ${status}: ${answer.slice(0, 300)}`;
    else if (isRefused)
      problem = answer.includes(REFUSAL) ? null : `not the refusal: ${answer.slice(0, 300)}`;
    else problem = isStreamed ? problemOf(target.treatment, oneFrameText(), answer) : problemOfWhole(answer);
    checked = answer;
  }
  const wallMs = performance.now() - start;
  const recorded = () => recordsWritten() - recordsBefore;
  const isRecording = target.modelPrefix !== '';
  await setTimeout(SETTLE_MS);
  // Under a profiler on a busy machine, the last records are late.
  for (let ms = 0; isRecording && recorded() < requests && ms < MAX_LATE_MS; ms += SETTLE_MS)
    await setTimeout(SETTLE_MS);
  const spent = cpuMs(target.pid) - cpuBefore;
  if (isRecording && recorded() !== requests) problem ??= `${recorded()} records of ${requests} requests`;
  connection.close();
  const figures = {
    cpuUs: (spent * 1000) / requests,
    requests,
    ms: wallMs / requests,
    firstByteMs: median(firstBytes),
    recordBytes: (recordBytesWritten() - recordBytesBefore) / requests,
  };
  return { figures, problem };
}
