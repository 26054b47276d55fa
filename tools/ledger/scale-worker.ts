/** A Worker for `npm run ledger` that fills a ledger object with many records, or calls one of its methods. */
import { type LedgerEnv, LedgerObject } from '../../src/ledger/ledger-object.ts';
import { requestId } from '../../src/metering/time.ts';
import { record } from '../../test/metering/records.ts';
import { seeded } from '../../test/random.ts';

const MODELS = 10;

/** The posted job: generate and settle records, or call a method several times. */
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
      readonly call: 'report' | 'reportAll' | 'fireAlarms' | 'nothing';
      readonly times: number;
      readonly key: string;
      readonly args: readonly unknown[];
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

function recordOf({ key, fromMs, toMs }: Extract<Job, { fill: number }>, random: () => number) {
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
