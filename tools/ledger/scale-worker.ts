/** A Worker for `npm run ledger` that fills a ledger object with many records, or calls one of its methods. */
import { type LedgerEnv, LedgerObject } from '../../src/ledger/ledger-object.ts';
import { ObjectLedger } from '../../src/ledger/records/object-ledger.ts';
import type { ReportQuery } from '../../src/metering/ledger.ts';
import { DAY_MS, firstIdAt, requestId } from '../../src/metering/time.ts';
import { record } from '../../test/metering/records.ts';
import { seeded } from '../../test/random.ts';

const MODELS = 10;
const SLICE_TOKENS = 2000;

/**
 * The posted job: generate and settle records, call a method or read over all keys several times, or reserve and settle
 * requests under a running budget.
 */
export type Job =
  | {
      readonly fill: number;
      readonly seed: number;
      readonly batch: number;
      readonly key: string;
      readonly fromMs: number;
      readonly toMs: number;
    }
  | {
      readonly call: 'report' | 'fireAlarms' | 'nothing';
      readonly times: number;
      readonly key: string;
      readonly args: readonly unknown[];
    }
  | {
      /** Settles records of these keys and has each of them tell its directory. */
      readonly spread: readonly string[];
      readonly records: number;
      readonly users: number;
      readonly fromMs: number;
      readonly toMs: number;
    }
  | {
      /** A report over all keys, or the first page of their records. */
      readonly all: ReportQuery | 'list';
      readonly times: number;
    }
  | {
      readonly reserve: number;
      /** Requests at a time. */
      readonly parallel: number;
      /** Slices of output of each: a call for each, and one that settles. */
      readonly slices: number;
      readonly key: string;
    };

class ScaleLedger extends LedgerObject {
  /** Runs the alarm handler several times. */
  async fireAlarms(times: number): Promise<void> {
    for (let i = 0; i < times; i++) await this.alarm();
  }

  /** Measures the cost of a call itself. */
  async nothing(): Promise<void> {}
}

export { ScaleLedger as LedgerObject };

export default {
  async fetch(request, env) {
    const job = await request.json<Job>();
    if ('fill' in job) return Response.json(await fill(job, env));
    if ('spread' in job) return Response.json(await spread(job, env));
    if ('all' in job) return Response.json(await readAll(job, env));
    if ('reserve' in job) return Response.json(await reserve(job, env));
    const stub: object = env.WEIR_LEDGER.getByName(job.key);
    let result: unknown;
    for (let i = 0; i < job.times; i++)
      result = await Reflect.apply(Reflect.get(stub, job.call), stub, job.args);
    return Response.json(result ?? null);
  },
} satisfies ExportedHandler<LedgerEnv>;

async function fill(job: Extract<Job, { fill: number }>, env: LedgerEnv): Promise<number> {
  const random = seeded(job.seed);
  for (let at = 0; at < job.fill; at += job.batch) {
    const records = Array.from({ length: Math.min(job.batch, job.fill - at) }, () => recordOf(job, random));
    await env.WEIR_LEDGER.getByName(job.key).settle(records);
  }
  return job.fill;
}

async function spread(job: Extract<Job, { spread: unknown }>, env: LedgerEnv): Promise<number> {
  for (const [n, key] of job.spread.entries()) {
    const random = seeded(n + 1);
    const records = Array.from({ length: job.records }, () => ({
      ...recordOf({ ...job, key }, random),
      user: `user-${Math.floor(random() * job.users)}@example.com`,
    }));
    await env.WEIR_LEDGER.getByName(key).settle(records);
    await env.WEIR_LEDGER.getByName(key).sendSums();
  }
  return job.spread.length;
}

/** @returns the rows or records of the last answer */
async function readAll({ all, times }: Extract<Job, { all: unknown }>, env: LedgerEnv): Promise<number> {
  const ledger = new ObjectLedger({ ledgers: env.WEIR_LEDGER, log: () => {} });
  let count = 0;
  for (let i = 0; i < times; i++) {
    if (all === 'list') {
      const bounds = { fromId: firstIdAt(0), beforeId: firstIdAt(Date.now() + DAY_MS) };
      const page = await ledger.list({ ...bounds, keyId: null, model: null, statuses: null, limit: 100 });
      if (page.kind === 'error') throw new Error(page.error.message);
      count = page.value.records.length;
    } else {
      const report = await ledger.report(all);
      if (report.kind === 'error') throw new Error(report.error.message);
      count = report.value.rows.length;
    }
  }
  return count;
}

/** @returns how many requests found no room */
async function reserve(
  { reserve: count, parallel, slices, key }: Extract<Job, { reserve: number }>,
  env: LedgerEnv,
): Promise<number> {
  const object = env.WEIR_LEDGER.getByName(key);
  const request = {
    ...{ promptTokens: 3000, estimatedPromptTokens: 1000, outputTokens: SLICE_TOKENS * slices, choices: 1 },
    price: { currency: 'USD', prompt: 1_000_000, output: 2_000_000 },
    expiresAfterMs: 600_000,
    limits: { budget: { USD: 100_000, per: 'month', mode: 'hard' }, mode: 'running', rpm: 1_000_000 },
  };
  let next = 0;
  let refused = 0;
  const run = async () => {
    while (next < count) {
      const id = `request-${next++}`;
      for (let slice = 1; slice <= slices; slice++) {
        const likely = { promptTokens: 1500, outputTokens: SLICE_TOKENS * slice };
        const { kind } = await object.reserve({ ...request, id, likely });
        if (kind !== 'reserved') refused++;
      }
      await object.settleReservation(id, { tokens: 3000, cost: { currency: 'USD', nano: 5000 } });
    }
  };
  await Promise.all(Array.from({ length: parallel }, run));
  return refused;
}

function recordOf(
  { key, fromMs, toMs }: Pick<Extract<Job, { fill: number }>, 'key' | 'fromMs' | 'toMs'>,
  random: () => number,
) {
  const below = (limit: number) => Math.floor(random() * limit);
  const ms = fromMs + below(toMs - fromMs);
  const prompt_tokens = below(20_000);
  const completion_tokens = below(2_000);
  const first_token_ms = 200 + below(4_000);
  const turn = random();
  return record({
    request_id: requestId(ms, crypto.randomUUID()),
    time: new Date(ms).toISOString(),
    key_id: key,
    model: `model-${below(MODELS)}-of-a-usual-length`,
    status: turn < 0.94 ? 'finished' : turn < 0.97 ? 'cancelled' : 'failed',
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    cost_nanos: prompt_tokens * 150 + completion_tokens * 600,
    currency: 'USD',
    first_token_ms,
    total_ms: first_token_ms + below(60_000),
    cost_source: 'table',
  });
}
