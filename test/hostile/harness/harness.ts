/** Runs attacks one after the other, each on a new gateway, and measures responses, memory and the wait of other streams. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { JsonObject } from '../../../tools/simulator/json.ts';
import { type WorkerFile, writeBundle } from '../../e2e/workers.ts';
import { type Kv, startKv } from './kv.ts';
import { type Command, type HostileRequest, type Outcome, type Report, WARM_REQUESTS } from './messages.ts';
import { type Gap, startPacedUpstream, startPacer } from './pacer.ts';
import { peakBytes, ranMs, resetPeak, residentBytes } from './process.ts';
import { startWorkerd } from './workerd.ts';

const SETTLE_MS = 120;
const RECORD_LIMIT_MS = 60_000;
const MIB = 1024 * 1024;

export interface Attack {
  readonly outcomes: readonly Outcome[];
  /** The number of upstream requests. */
  readonly requestCount: number;
  readonly bytesUp: number;
  /** The written usage records. */
  readonly records: readonly JsonObject[];
  /** The peak of the gateway's resident memory above idle, in MiB; infinite if its process exited. */
  readonly rssMib: number;
  /** The longest time that another stream with a frame every 50 ms waited while the gateway did other work. */
  readonly gap: Gap;
  /** The problems of that stream. */
  readonly paceProblems: readonly string[];
  /** The gateway's log lines that report internal problems. */
  readonly alarms: readonly string[];
}

type Fired = Extract<Report, { kind: 'fired' }>;

export class Harness {
  readonly #bundle: WorkerFile;
  readonly #kv: Kv;
  readonly #pacedPort: number;
  readonly #attacker: ChildProcess;
  readonly #attackerEnded = new AbortController();
  readonly #upstreamPort: number;

  private constructor(
    bundle: WorkerFile,
    kv: Kv,
    pacedPort: number,
    attacker: ChildProcess,
    upstreamPort: number,
  ) {
    this.#bundle = bundle;
    this.#kv = kv;
    this.#pacedPort = pacedPort;
    this.#attacker = attacker;
    attacker.once('exit', () => this.#attackerEnded.abort(new Error('The attacker ended')));
    this.#upstreamPort = upstreamPort;
  }

  static async open(): Promise<Harness> {
    const attacker = fork(join(import.meta.dirname, 'attacker.ts'), {
      serialization: 'advanced',
    });
    const [bundle, kv, pacedPort, [started]] = await Promise.all([
      writeBundle('hostile'),
      startKv(),
      startPacedUpstream(),
      once(attacker, 'message'),
    ]);
    const report: Report = started;
    if (report.kind !== 'started') throw new Error('The attacker did not start');
    return new Harness(bundle, kv, pacedPort, attacker, report.upstreamPort);
  }

  /** The hostile upstream's address. */
  get upstreamUrl(): string {
    return `http://127.0.0.1:${this.#upstreamPort}`;
  }

  close(): void {
    if (this.#attacker.connected) this.#attacker.disconnect();
  }

  /** Runs an attack and prints its figures. */
  async attack(
    name: string,
    hostileRequests: readonly HostileRequest[],
    vars: Readonly<Record<string, string>> = {},
  ): Promise<Attack> {
    const attack = await this.#run(hostileRequests, vars);
    print(name, attack);
    return attack;
  }

  async #run(
    hostileRequests: readonly HostileRequest[],
    vars: Readonly<Record<string, string>>,
  ): Promise<Attack> {
    const workerd = await startWorkerd({
      bundle: this.#bundle,
      kvPort: this.#kv.port,
      vars: this.#vars(vars),
    });
    try {
      await this.#send({ kind: 'prepare', hostileRequests, port: workerd.port });
      const recordsAtStart = this.#kv.records.length;
      await this.#send({ kind: 'warm', port: workerd.port });
      await this.#records(recordsAtStart, WARM_REQUESTS, 0);
      const pacer = startPacer(workerd.port, () => ranMs(workerd.pid));
      await setTimeout(SETTLE_MS);
      const recordsBefore = this.#kv.records.length;
      const idle = residentBytes(workerd.pid);
      resetPeak(workerd.pid);
      pacer.takeGap();
      const { outcomes, requestCount, bytesUp } = await this.#fire();
      const gap = pacer.takeGap();
      await pacer.stop();
      const expected = workerd.isAlive() ? outcomes.filter(({ isSentOn }) => isSentOn).length : 0;
      const records = await this.#records(recordsBefore, expected, SETTLE_MS);
      return {
        outcomes,
        requestCount,
        bytesUp,
        records,
        gap,
        rssMib: workerd.isAlive() ? (peakBytes(workerd.pid) - idle) / MIB : Number.POSITIVE_INFINITY,
        paceProblems: pacer.problems,
        alarms: workerd.logged
          .filter(isAlarm)
          .map((line) => JSON.stringify(line))
          .concat(workerd.otherLines),
      };
    } finally {
      await workerd.stop();
    }
  }

  #vars(vars: Readonly<Record<string, string>>): Record<string, string> {
    return {
      AUTH: 'open',
      OPENAI_API_KEY: 'sk-hostile-000000',
      OPENAI_BASE_URL: `${this.upstreamUrl}/v1`,
      ANTHROPIC_API_KEY: 'sk-hostile-000001',
      ANTHROPIC_BASE_URL: this.upstreamUrl,
      GEMINI_API_KEY: 'sk-hostile-000002',
      GEMINI_BASE_URL: this.upstreamUrl,
      PROVIDERS: JSON.stringify({
        paced: { base_url: `http://127.0.0.1:${this.#pacedPort}/v1` },
        converse: {
          ...{ base_url: this.upstreamUrl, api_key: 'OPENAI_API_KEY' },
          ...{ like: 'bedrock', api: 'bedrock-converse' },
        },
      }),
      ...vars,
    };
  }

  /** Waits for as many records as requests were forwarded, and a little longer to detect extra ones. */
  async #records(before: number, count: number, moreMs: number): Promise<JsonObject[]> {
    const hostile = () => this.#kv.records.slice(before).filter(({ provider }) => provider !== 'paced');
    const until = performance.now() + RECORD_LIMIT_MS;
    while (hostile().length < count && performance.now() < until) await setTimeout(10);
    await setTimeout(moreMs);
    return hostile();
  }

  async #fire(): Promise<Fired> {
    const report = await this.#send({ kind: 'fire' });
    if (report.kind !== 'fired') throw new Error(`The attacker answered ${report.kind}`);
    return report;
  }

  async #send(command: Command): Promise<Report> {
    const answered = once(this.#attacker, 'message', { signal: this.#attackerEnded.signal });
    this.#attacker.send(command);
    const [report]: Report[] = await answered;
    if (report === undefined) throw new Error('The attacker answered nothing');
    if (report.kind === 'broken') throw new Error(report.reason);
    return report;
  }
}

const ALARMS = ['internal_error', 'record_lost', 'misconfigured'];

function isAlarm({ event }: JsonObject): boolean {
  return typeof event === 'string' && ALARMS.includes(event);
}

function print(name: string, { rssMib, gap, outcomes, records }: Attack): void {
  const count = (values: readonly string[]) =>
    [...new Set(values)]
      .map(
        (value) => `${value}${values.length > 1 ? ` x${values.filter((one) => one === value).length}` : ''}`,
      )
      .join(', ');
  const statuses = count(
    outcomes.map(
      ({ status, code, end }) =>
        `${status}${code === null ? '' : ` ${code}`}${end === 'whole' ? '' : ` ${end}`}`,
    ),
  );
  const recorded = count(
    records.map(
      ({ status, error_code }) => `${String(status)}${error_code === null ? '' : ` ${String(error_code)}`}`,
    ),
  );
  const longest = Math.max(...outcomes.map(({ ms }) => ms));
  process.stdout.write(
    `${name.padEnd(44)} RSS +${rssMib.toFixed(0).padStart(4)} MiB   gap ${gap.ranMs.toFixed(0).padStart(5)} ms of ${gap.waitedMs.toFixed(0).padStart(5)}   ${(longest / 1000).toFixed(2).padStart(6)} s   ${statuses} | record: ${recorded || 'none'}\n`,
  );
}
