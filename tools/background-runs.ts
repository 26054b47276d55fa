/**
 * Runs background Responses at once in one workerd and sends them no request until their time is over: node tools/background-runs.ts
 * [--runs 1] [--seconds 360] [--events 10: of each run, each second]. Prints how they ended, and the memory of workerd. Exits with 1 if
 * a run is not complete or has not one record.
 */
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startGateway } from '../test/e2e/gateway.ts';
import { residentBytes, workerdIds } from '../test/e2e/processes.ts';
import { event, many, replayOf } from '../test/e2e/scenarios.ts';
import { decodeObject, textOf } from './simulator/json.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '360' },
    events: { type: 'string', default: '10' },
  },
});
const runs = Number(values.runs);
const seconds = Number(values.seconds);
const eventsEachSecond = Number(values.events);
const MIB = 1024 * 1024;
const SAMPLE_MS = 1000;
/** For the last events of all runs. */
const MAX_LATE_MS = 120_000;

const MODEL = 'long';
const chunks = [...many(event('word '), seconds * eventsEachSecond), event('', 'stop'), 'data: [DONE]\n\n'];
const vars = { AUTH: 'open', RESPONSES: 'durable', DEADLINE_SECONDS: '0', IDLE_TIMEOUT_SECONDS: '0' };
await using gateway = await startGateway({
  vars,
  replay: replayOf({ [MODEL]: { chunks, gapMs: 1000 / eventsEachSecond } }),
});

const processes = workerdIds();
const memory = () => Math.round(residentBytes(processes) / MIB);
await gateway.fetch('/health');
const before = memory();
const startedAt = Date.now();
const ids = await Promise.all(
  Array.from({ length: runs }, async () => {
    const body = { model: `mistral/${MODEL}`, input: 'Hello', background: true, metadata: {} };
    const response = await gateway.post('/v1/responses', body);
    return textOf(decodeObject(await response.text())?.id);
  }),
);
const startMs = Date.now() - startedAt;
let peak = before;
while (Date.now() - startedAt < seconds * 1000 + 5000) {
  await setTimeout(SAMPLE_MS);
  peak = Math.max(peak, memory());
}
const statuses = new Map<string, number>();
const sizes: number[] = [];
for (const id of ids) {
  for (const until = Date.now() + MAX_LATE_MS; ; await setTimeout(SAMPLE_MS)) {
    const text = await (await gateway.fetch(`/v1/responses/${id}`)).text();
    const status = textOf(decodeObject(text)?.status);
    if (status === 'in_progress' && Date.now() < until) continue;
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    sizes.push(text.length);
    break;
  }
}
const records = await gateway.records(runs);
const lines = {
  runs,
  seconds,
  started_in_ms: startMs,
  statuses: Object.fromEntries(statuses),
  records: records.length,
  record_statuses: [...new Set(records.map(({ status }) => status))],
  response_bytes: [Math.min(...sizes), Math.max(...sizes)],
  workerd_mib: { before, peak, after: memory() },
};
process.stdout.write(`${JSON.stringify(lines, null, 2)}\n`);
process.exitCode = statuses.get('completed') === runs && records.length === runs ? 0 : 1;
