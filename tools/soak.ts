/**
 * Runs many concurrent streams through the gateway and prints their results: node tools/soak.ts [--streams 1000]
 * [--seconds 30] [--seed 1] [--client chat|completions|messages|responses|passthrough|all] [--flap: one of three
 * targets fails from time to time]. Exits with 1 if a record is missing, duplicated or incorrect, or a response is
 * invalid.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { RecordSummary } from '../src/metering/record.ts';
import { type Gateway, startGateway } from '../test/e2e/gateway.ts';
import { residentBytes, workerdIds } from '../test/e2e/processes.ts';
import { decodeObject, type JsonObject, objectOf, textOf } from './simulator/json.ts';
import { type Load, type Outcome, planIn, runClients } from './soak/clients.ts';
import { FLAPPING_VARS, flap, flapLines, lostMs, MAX_LOST_MS } from './soak/flapping.ts';
import { CLIENTS, PLAN_KINDS, type Plan } from './soak/plan.ts';
import { PROMPT_TOKENS } from './soak/protocols.ts';

/** Time between two upstream events: sixteen words take eight seconds. */
const PACE_MS = 500;
/** workerd notices a disconnected client at the next write or the one after. */
const NOTICE_MS = 3 * PACE_MS;
const SAMPLE_MS = 250;
const MAX_STREAMS = 5000;
const MAX_SECONDS = 600;
/** Records are written after the responses. Writing one may take 30 s, so none is later than this. */
const MAX_SETTLE_MS = 60_000;
const MAX_FAULTS_SHOWN = 20;
const MIB = 1024 * 1024;
const ALL = 'all';

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    client: { type: 'string', default: ALL },
    flap: { type: 'boolean', default: false },
    /** Set only in the process that runs the clients. */
    url: { type: 'string' },
  },
});
const clients = CLIENTS.filter((name) => values.client === ALL || values.client === name);
if (clients.length === 0) throw new Error(`--client must be one of ${[...CLIENTS, ALL].join(', ')}`);
const load: Load = {
  url: values.url ?? '',
  streams: Math.min(Number(values.streams), MAX_STREAMS),
  seconds: Math.min(Number(values.seconds), MAX_SECONDS),
  seed: Number(values.seed),
  clients,
  flaps: values.flap,
};

async function soak(): Promise<number> {
  const vars = { HEARTBEAT_SECONDS: '2', IDLE_TIMEOUT_SECONDS: '20', DEADLINE_SECONDS: '120' };
  const options = load.flaps ? { vars: { ...vars, ...FLAPPING_VARS }, replay: flap() } : { vars };
  await using gateway = await startGateway({ pace: PACE_MS, ...options });
  const memory = new Memory();
  const outcomes = await runInOwnProcess(gateway.url);
  memory.stop();
  const records = await settled(gateway, outcomes.length);
  const faults = [...findFaults(outcomes, records, gateway)];
  print(outcomes, records, memory, faults);
  if (load.flaps) {
    const waits = outcomes.flatMap(({ firstTextMs }) => firstTextMs ?? []);
    process.stdout.write(`${flapLines(requestLines(gateway), waits).join('\n')}\n`);
  }
  return faults.length === 0 ? 0 : 1;
}

async function runInOwnProcess(url: string): Promise<Outcome[]> {
  const { streams, seconds, seed } = load;
  const options = { url, streams, seconds, seed, client: values.client };
  const child = fork(import.meta.filename, [
    ...Object.entries(options).map(([name, value]) => `--${name}=${value}`),
    ...(load.flaps ? ['--flap'] : []),
  ]);
  const outcomes: Outcome[] = [];
  child.on('message', (outcome) => outcomes.push(decodeOutcome(outcome)));
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`The clients ended with ${code}`);
  return outcomes;
}

function decodeOutcome(message: unknown): Outcome {
  const { number, id, fault, firstTextMs, leftAt } = objectOf(message);
  return {
    number: Number(number),
    id: textOf(id),
    fault: fault === null ? null : String(fault),
    firstTextMs: firstTextMs === null ? null : Number(firstTextMs),
    leftAt: leftAt === null ? null : Number(leftAt),
  };
}

/** Waits for this number of records; returns those present at the time limit. */
async function settled(gateway: Gateway, count: number): Promise<RecordSummary[]> {
  const until = Date.now() + MAX_SETTLE_MS;
  for (;;) {
    const isOver = Date.now() > until;
    const logged = requestLines(gateway).length;
    if (logged >= count || isOver) return gateway.records(Math.min(logged, count));
    await setTimeout(SAMPLE_MS);
  }
}

function requestLines(gateway: Gateway): JsonObject[] {
  const lines = gateway.logs().map((line) => decodeObject(line) ?? {});
  return lines.filter((line) => line.event === 'request');
}

function* findFaults(outcomes: readonly Outcome[], records: readonly RecordSummary[], gateway: Gateway) {
  const byId = new Map(records.map((record) => [record.request_id, record]));
  const logged = new Set<string>();
  for (const { request_id } of requestLines(gateway)) {
    const id = textOf(request_id);
    if (logged.has(id)) yield `${id} was settled twice`;
    logged.add(id);
  }
  if (byId.size !== records.length) yield `${records.length - byId.size} records are duplicated`;
  if (records.length !== outcomes.length) yield `${outcomes.length} requests left ${records.length} records`;
  for (const { number, id, fault, leftAt } of outcomes) {
    const plan = planIn(load, number);
    const name = `client ${number} (${plan.client}, ${plan.kind}, ${plan.model})`;
    if (fault !== null) yield `${name}: ${fault}`;
    const record = byId.get(id);
    if (id !== '') byId.delete(id);
    if (id !== '' && record === undefined) yield `${name}: no record of ${id}`;
    if (record !== undefined) yield* recordFaults(record, plan, leftAt).map((found) => `${name}: ${found}`);
  }
  if (load.flaps) {
    const longest = Math.max(...lostMs(requestLines(gateway)));
    if (longest > MAX_LOST_MS) yield `a request spent ${longest} ms on failed targets`;
  }
  // The remaining records have no known id: their clients disconnected before the response head.
  for (const record of byId.values())
    if (record.status !== 'cancelled')
      yield `${record.request_id}, whose client disconnected early: ${record.status}`;
}

function recordFaults(record: RecordSummary, plan: Plan, leftAt: number | null): string[] {
  const { error_code, total_ms, prompt_tokens, completion_tokens, estimated, client } = record;
  const { status, protocol, answers } = plan;
  if (client !== protocol) return [`the record's client protocol is ${client}`];
  // On a slow machine, a client may disconnect when its response is almost complete.
  const leftTooLate = leftAt !== null && Date.parse(record.ended) < leftAt + NOTICE_MS;
  if (record.status === 'finished' && leftTooLate) return [];
  if (record.status !== status) {
    return [`the record is ${record.status} (${error_code}) after ${total_ms} ms, not ${status}`];
  }
  if (status !== 'finished') return [];
  // The tokens of a target that failed silently are estimated.
  if (load.flaps) return completion_tokens === 0 ? ['the record lacks the reported tokens'] : [];
  const isExact = prompt_tokens === PROMPT_TOKENS && completion_tokens === answers[0]?.completionTokens;
  return isExact && !estimated ? [] : [`the record has ${prompt_tokens} and ${completion_tokens} tokens`];
}

/** Samples the memory of the workerd processes and the pauses of this process while the load runs. */
class Memory {
  readonly #ids = workerdIds();
  readonly #samples: number[][] = [];
  readonly #delays = monitorEventLoopDelay();
  readonly #timer = setInterval(
    () => this.#samples.push(this.#ids.map((id) => residentBytes([id]))),
    SAMPLE_MS,
  );

  constructor() {
    this.#delays.enable();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#delays.disable();
  }

  /** The longest pause of this process, which simulates the upstreams. A pause beyond the idle timeout makes them fail. */
  get longestPauseMs(): number {
    return Math.round(this.#delays.max / 1e6);
  }

  /** The peak growth of all processes together, in KiB. */
  get peakKiB(): number {
    const sums = this.#samples.map((sample) => sample.reduce((sum, bytes) => sum + bytes, 0));
    return Math.round((Math.max(...sums) - (sums[0] ?? 0)) / 1024);
  }

  /** For each process: its id, and its MiB at the start, at the quartiles and at the end. */
  get rows(): string[][] {
    const last = this.#samples.length - 1;
    const times = [0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(part * last));
    return this.#ids.map((id, at) => [
      `workerd ${id}, MiB`,
      ...times.map((time) => String(Math.round((this.#samples[time]?.[at] ?? 0) / MIB))),
    ]);
  }
}

function print(
  outcomes: readonly Outcome[],
  records: readonly RecordSummary[],
  memory: Memory,
  faults: readonly string[],
): void {
  const plans = outcomes.map(({ number }) => planIn(load, number));
  const statuses = ['finished', 'failed', 'timed_out', 'cancelled'];
  const rows = [
    ['concurrent streams', String(load.streams)],
    ['requests', String(outcomes.length)],
    ...PLAN_KINDS.map((kind) => [`  ${kind}`, String(plans.filter((plan) => plan.kind === kind).length)]),
    ...CLIENTS.map((name) => [`  of ${name}`, String(plans.filter(({ client }) => client === name).length)]),
    ['records', String(records.length)],
    ...statuses.map((status) => [
      `  ${status}`,
      String(records.filter((one) => one.status === status).length),
    ]),
    ["simulator's longest pause, ms", String(memory.longestPauseMs)],
    ['', 'start', '25%', '50%', '75%', 'end'],
    ...memory.rows,
    ['peak memory, KiB per stream', String(Math.round(memory.peakKiB / load.streams))],
    ['faults', String(faults.length)],
  ];
  const lines = rows.map(
    ([name = '', ...cells]) => name.padEnd(34) + cells.map((cell) => cell.padStart(8)).join(''),
  );
  process.stdout.write(`${[...lines, ...faults.slice(0, MAX_FAULTS_SHOWN)].join('\n')}\n`);
}

if (values.url === undefined) process.exitCode = await soak();
else await runClients(load, (outcome) => void process.send?.(outcome));
