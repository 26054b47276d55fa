/** A gateway in workerd with requests that wait for one credential: a flood in one isolate, and a first requester that leaves. */
import { type Runtime, startWorkers, type WorkerOptions } from './workers.ts';

const messages = [{ role: 'user', content: 'Hellö 👋' }];

/** What holds back a service until `release`. A test awaits `arrived`, because a poll would take a processor from workerd. */
export interface Hold {
  /** The service awaits this before it answers. */
  readonly wait: () => Promise<void>;
  /** Resolves when the service has its first request. */
  readonly arrived: Promise<void>;
  readonly release: () => void;
}

export function hold(): Hold {
  const arrived = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  return {
    wait: () => {
      arrived.resolve();
      return released.promise;
    },
    arrived: arrived.promise,
    release: released.resolve,
  };
}

export class FloodGateway {
  readonly #runtime: Runtime;
  readonly #workers: WorkerOptions[];

  private constructor(runtime: Runtime, workers: WorkerOptions[]) {
    this.#runtime = runtime;
    this.#workers = workers;
  }

  static async start(
    vars: Record<string, string>,
    outbound: NonNullable<WorkerOptions['outbound']>,
  ): Promise<FloodGateway> {
    const bindings = { SELF: { type: 'worker', worker: 'weir' } } as const;
    const workers = [{ main: 'flood-worker.ts', vars, bindings, outbound }];
    return new FloodGateway(await startWorkers({ workers }), workers);
  }

  /** A restart is a fresh isolate. */
  restart(): Promise<void> {
    return this.#runtime.set(this.#workers);
  }

  ask(model: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.#runtime.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages }),
      ...init,
    });
  }

  /** @returns what each of the requests got that the Worker sends itself at once: `served`, or the text of another response */
  async flood(model: string, count: number): Promise<string[]> {
    const body = JSON.stringify({ model, messages });
    const response = await fetch(`${this.#runtime.url}/flood?count=${count}`, { method: 'POST', body });
    return JSON.parse(await response.text());
  }

  /** The first requester disconnects while the credential is held back. @returns the statuses of 20 requests that wait for it */
  async leaveFirst(model: string, { arrived, release }: Hold): Promise<number[]> {
    const first = new AbortController();
    const cancelled = this.ask(model, { signal: first.signal }).then(
      () => 'answered',
      () => 'cancelled',
    );
    await arrived;
    const asked = Array.from({ length: 20 }, async () => (await this.ask(model)).status);
    first.abort();
    if ((await cancelled) !== 'cancelled') throw new Error('The first requester was answered');
    release();
    return Promise.all(asked);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#runtime[Symbol.asyncDispose]();
  }
}
