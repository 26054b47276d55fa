/**
 * Requests that end without output under a hard budget: what shows that the provider did no work, and what is charged
 * otherwise (G3, R7).
 */
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/stream/timers.ts';
import { decodeObject, type JsonObject, numberOf, objectOf } from '../../tools/simulator/json.ts';
import { useOrderedDigests } from '../random-run.ts';
import { LimitedGateway } from './limited-gateway.ts';
// Defines the runtime's pipes.
import './upstreams.ts';

useOrderedDigests();

type Answer = (init: RequestInit | undefined) => Response | Promise<Response>;

/** 3 times the median of the model's row. */
const TOKENS_PER_SECOND = 603;
const FAST = 'openai/gpt-5.4-mini';
const UNKNOWN = 'openai/gpt-4o-mini';
const MAX_TOKENS = 100_000;

const START = 1_790_000_000_000;

/** A gateway whose upstream answers after this time, which passes at once. */
function gatewayOf(answers: readonly Answer[], takesMs = 0, env: JsonObject = {}) {
  let passedMs = 0;
  const left = [...answers];
  const gateway: LimitedGateway = new LimitedGateway(
    { RETRIES: '0', ...env },
    {
      fetch: async (_, init) => {
        gateway.calls.push('upstream');
        passedMs += takesMs;
        const answer = left.length > 1 ? left.shift() : left[0];
        if (answer === undefined) throw new Error('no answer');
        return answer(init);
      },
      clock: new IdleClock(
        () => START + passedMs,
        (at) => {
          passedMs = Math.max(passedMs, at - START);
        },
      ),
    },
  );
  const pass = (ms: number) => {
    passedMs += ms;
  };
  return { gateway, pass };
}

/** How long nothing may start or end a timer before the clock moves on, in turns of the event loop. */
const IDLE_TURNS = 200;
/** Longer timers never fire. */
const LONG_MS = 20_000;

/** A clock that moves to its earliest timer when nothing else goes on. It knows no real time, so a busy machine changes nothing. */
class IdleClock implements Clock {
  readonly now: () => number;
  readonly #moveTo: (at: number) => void;
  readonly #timers = new Set<{ readonly at: number; readonly onFire: () => void }>();
  #turnsLeft = 0;
  #isWaiting = false;

  constructor(now: () => number, moveTo: (at: number) => void) {
    this.now = now;
    this.#moveTo = moveTo;
  }

  readonly startTimer = (ms: number, onFire: () => void): (() => void) => {
    if (ms >= LONG_MS) return () => {};
    const timer = { at: this.now() + ms, onFire };
    this.#timers.add(timer);
    this.#turnsLeft = IDLE_TURNS;
    if (!this.#isWaiting) this.#wait();
    return () => {
      this.#timers.delete(timer);
      this.#turnsLeft = IDLE_TURNS;
    };
  };

  #wait(): void {
    this.#isWaiting = true;
    setImmediate(() => {
      this.#isWaiting = false;
      if (this.#turnsLeft-- <= 0) {
        const [first] = [...this.#timers].sort((a, b) => a.at - b.at);
        if (first === undefined) return;
        this.#timers.delete(first);
        this.#moveTo(first.at);
        this.#turnsLeft = IDLE_TURNS;
        first.onFire();
      }
      if (this.#timers.size > 0 && !this.#isWaiting) this.#wait();
    });
  }
}

async function budgetOf(gateway: LimitedGateway, token: string): Promise<JsonObject> {
  const response = await gateway.fetch('/v1/key', token);
  return objectOf(decodeObject(await response.text())?.budget);
}

/** The tokens that a request is charged. */
async function chargeOf(answer: Answer, { model = FAST, ms = 0, fields = {}, retries = 0 } = {}) {
  const { gateway } = gatewayOf([answer], ms, { RETRIES: String(retries) });
  const token = await gateway.key({ budget: { tokens: 1e9 } });
  const response = await gateway.ask(token, { model, max_tokens: MAX_TOKENS, ...fields });
  await response.text();
  await gateway.idle();
  const { spent, reserved } = await budgetOf(gateway, token);
  expect(reserved).toBe(0);
  const calls = gateway.calls.filter((call) => call === 'upstream').length;
  return { spent: numberOf(spent) ?? Number.NaN, calls, status: response.status };
}

const PAGE = '<html><title>Gateway</title></html>';
const page = (status: number) => () => new Response(PAGE, { status });
const broken = () => {
  throw new TypeError('The connection was reset');
};

/** What a request without any output is charged for its prompt. */
const promptCharge = chargeOf(page(504)).then(({ spent }) => spent);

describe('G3 charged 0, because nothing was done', () => {
  test.each([400, 401, 402, 403, 404, 405, 413, 415, 422, 429, 501, 521, 523, 525, 526, 530])(
    'status %i in any words, after 90 s',
    async (status) => {
      expect((await chargeOf(page(status), { ms: 90_000 })).spent).toBe(0);
    },
  );

  test.each([
    ["OpenAI's form", 500, { error: { message: 'The server had an error', type: 'server_error' } }],
    ['a list of one error', 503, [{ error: { code: 503, message: 'Overloaded', status: 'UNAVAILABLE' } }]],
    ["FastAPI's form", 500, { detail: 'Engine died' }],
    ["Anthropic's form", 529, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
    ['a 504 of its own', 504, { error: { message: 'Model timed out' } }],
  ])('the provider’s own error, in %s', async (_, status, body) => {
    expect((await chargeOf(() => Response.json(body, { status }), { ms: 90_000 })).spent).toBe(0);
  });

  test('a connection that the upstream ends within a second', async () => {
    expect((await chargeOf(broken, { ms: 900 })).spent).toBe(0);
  });

  test('an error instead of output in a response with success', async () => {
    expect((await chargeOf(() => Response.json({ error: { message: 'No' } }))).spent).toBe(0);
  });
});

describe('G3 charged for the prompt, and for the output that the time allows', () => {
  test.each([301, 408, 409, 418, 499, 500, 502, 503, 504, 507, 520, 522, 524, 527, 529])(
    'status %i without the provider’s own error',
    async (status) => {
      const { spent } = await chargeOf(page(status), { ms: 60_000 });
      expect(spent).toBe((await promptCharge) + 60 * TOKENS_PER_SECOND);
    },
  );

  test.each([
    ['no body', ''],
    ['a JSON object without an error', '{"message":"Endpoint request timed out"}'],
    ['half an error', '{"error":{"message":"Too lo'],
  ])('a 504 with %s', async (_, body) => {
    const { spent } = await chargeOf(() => new Response(body, { status: 504 }), { ms: 10_000 });
    expect(spent).toBe((await promptCharge) + 10 * TOKENS_PER_SECOND);
  });

  test('a connection that ends after more than a second', async () => {
    const { spent } = await chargeOf(broken, { ms: 1100 });
    expect(spent).toBe((await promptCharge) + Math.ceil(1.1 * TOKENS_PER_SECOND));
  });

  test('at most the output limit', async () => {
    const { spent } = await chargeOf(page(524), { ms: 60_000, fields: { max_tokens: 50 } });
    expect(spent).toBeLessThanOrEqual((await promptCharge) + 50);
    expect(spent).toBeGreaterThan(50);
  });

  test('each choice may be as long', async () => {
    const { spent } = await chargeOf(page(504), { ms: 1000, fields: { n: 3 } });
    expect(spent - (await chargeOf(page(504), { fields: { n: 3 } })).spent).toBe(3 * TOKENS_PER_SECOND);
  });

  test('the whole output of a model without a known speed', async () => {
    const { spent } = await chargeOf(page(502), { model: UNKNOWN, ms: 5 });
    expect(spent).toBeGreaterThan(MAX_TOKENS);
  });

  test('the whole output of a premium tier, whose speed is not known', async () => {
    const { spent } = await chargeOf(page(502), { ms: 5, fields: { service_tier: 'priority' } });
    expect(spent).toBeGreaterThan(MAX_TOKENS);
  });

  test('the whole output if the client leaves before the head, because the provider may go on', async () => {
    const client = new AbortController();
    const { gateway, pass } = gatewayOf([
      (init) =>
        new Promise((_, reject) => {
          init?.signal?.addEventListener('abort', () => reject(new Error('aborted')));
          pass(500);
          queueMicrotask(() => client.abort());
        }),
    ]);
    const token = await gateway.key({ budget: { tokens: 1e9 } });
    const pending = gateway.ask(token, { model: FAST, max_tokens: MAX_TOKENS }, { signal: client.signal });
    await pending.catch(() => undefined);
    await gateway.idle();
    expect(numberOf((await budgetOf(gateway, token)).spent)).toBe((await promptCharge) + MAX_TOKENS);
  });

  test('each attempt of a request; a retry reserves again', async () => {
    const { spent, calls } = await chargeOf(page(504), { ms: 1000, retries: 2 });
    expect(calls).toBe(3);
    expect(spent).toBe(3 * ((await promptCharge) + TOKENS_PER_SECOND));
  });

  test('without room in the budget there is no retry', async () => {
    const { gateway } = gatewayOf([page(504)], 1000, { RETRIES: '2' });
    const token = await gateway.key({ budget: { tokens: 4000 } });
    const response = await gateway.ask(token, { model: FAST, max_tokens: 2000 });
    await response.text();
    await gateway.idle();
    expect(gateway.calls.filter((call) => call === 'upstream')).toHaveLength(1);
    expect(numberOf((await budgetOf(gateway, token)).spent)).toBeLessThanOrEqual(4000);
  });
});

describe('R7 an outage that may be billed, for a key with limits', () => {
  test('after five failures in a row a request gets 503 with retry-after and costs nothing, until one is sent as a probe', async () => {
    const { gateway, pass } = gatewayOf([page(504)], 60_000);
    const token = await gateway.key({ budget: { tokens: 1e9 } });
    const other = await gateway.key({});
    const ask = async (key = token) => {
      const response = await gateway.ask(key, { model: FAST, max_tokens: 10 });
      const error = objectOf(decodeObject(await response.text())?.error);
      await gateway.idle();
      return { status: response.status, code: error.code, retryAfter: response.headers.get('retry-after') };
    };
    for (let i = 0; i < 5; i++) expect(await ask()).toMatchObject({ status: 504 });
    const { spent } = await budgetOf(gateway, token);
    expect(await ask()).toEqual({ status: 503, code: 'upstream_overloaded', retryAfter: '10' });
    expect((await budgetOf(gateway, token)).spent).toBe(spent);
    // A key without limits has no budget to spare.
    expect(await ask(other)).toMatchObject({ status: 504 });
    pass(10_000);
    expect(await ask()).toMatchObject({ status: 504 });
    expect(await ask()).toMatchObject({ status: 503 });
  });

  test('deadlines open the circuit, too', async () => {
    const { gateway } = gatewayOf(
      [
        (init) =>
          new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(new Error('x')))),
      ],
      0,
      { DEADLINE_SECONDS: '10', HEARTBEAT_SECONDS: '0', IDLE_TIMEOUT_SECONDS: '0' },
    );
    const token = await gateway.key({ budget: { tokens: 1e9 } });
    const statuses: number[] = [];
    for (let i = 0; i < 7; i++) {
      const response = await gateway.ask(token, { model: FAST, max_tokens: 10, stream: i % 2 === 1 });
      await response.text();
      await gateway.idle();
      statuses.push(response.status);
    }
    expect(statuses).toEqual([504, 504, 504, 504, 504, 503, 503]);
  });

  test('a client that leaves five times in a row before an answer gets 503; others do not', async () => {
    let reached = () => {};
    const { gateway, pass } = gatewayOf([
      (init) => {
        reached();
        return new Promise((_, reject) =>
          init?.signal?.addEventListener('abort', () => reject(new Error('x'))),
        );
      },
    ]);
    const token = await gateway.key({ budget: { tokens: 1e9 } });
    const other = await gateway.key({ budget: { tokens: 1e9 } });
    const leave = async (key: string, afterMs: number) => {
      const client = new AbortController();
      const arrival = new Promise<null>((resolve) => {
        reached = () => resolve(null);
      });
      const pending = gateway.ask(key, { model: FAST, max_tokens: 10 }, { signal: client.signal });
      const refused = await Promise.race([pending, arrival]);
      if (refused !== null) return refused.status;
      pass(afterMs);
      client.abort();
      await pending.catch(() => undefined);
      await gateway.idle();
      return null;
    };
    // Who leaves at once does not wait for an answer.
    for (let i = 0; i < 7; i++) expect(await leave(token, 9000)).toBeNull();
    for (let i = 0; i < 5; i++) expect(await leave(token, 10_000)).toBeNull();
    expect(await leave(token, 10_000)).toBe(503);
    expect(await leave(other, 10_000)).toBeNull();
    pass(10_000);
    expect(await leave(token, 10_000)).toBeNull();
  });

  test.each([
    ['15 requests a minute', 4000, 60_000, 60_000],
    ['60 requests a minute', 1000, 60_000, 60_000],
    ['240 requests a minute', 250, 60_000, 60_000],
    ['60 requests a minute, each after 30 to 600 s', 1000, 30_000, 600_000],
  ])(
    'an upstream that responds with 504 after 60 s to %s: at most 12 attempts a minute are charged from the first 504 on',
    async (_, everyMs, fromMs, toMs) => {
      const startedAt = await outage({ everyMs, fromMs, toMs, minutes: 12 });
      // Until the first 504, nothing shows that there is an outage.
      const perMinute = Array.from(
        { length: 11 },
        (_, minute) =>
          startedAt.filter((at) => at > fromMs && Math.floor((at - fromMs) / 60_000) === minute).length,
      );
      expect(Math.max(...perMinute), String(perMinute)).toBeLessThanOrEqual(12);
      // It is tried again, so that its end is seen.
      expect(Math.max(...perMinute.slice(-2)), String(perMinute)).toBeGreaterThan(0);
    },
  );
});

interface Outage {
  /** A request starts each time. */
  readonly everyMs: number;
  /** Each is answered with 504 after a time between these two. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly minutes: number;
}

/** When each attempt began, in ms since the start of the outage. */
async function outage({ everyMs, fromMs, toMs, minutes }: Outage): Promise<readonly number[]> {
  let now = 0;
  let running = 0;
  let answered = 0;
  const waiting: { readonly at: number; readonly end: () => void }[] = [];
  const startedAt: number[] = [];
  const gateway: LimitedGateway = new LimitedGateway(
    {},
    {
      fetch: () =>
        new Promise((resolve) => {
          // The first one is the fastest; the others are spread evenly.
          const part = (startedAt.length * 0.618) % 1;
          startedAt.push(now);
          const end = () => {
            answered++;
            resolve(page(504)());
          };
          waiting.push({ at: now + fromMs + part * (toMs - fromMs), end });
        }),
      clock: {
        now: () => START + now,
        startTimer: (ms, onFire) => {
          const timer = { at: now + ms, end: onFire };
          waiting.push(timer);
          return () => void waiting.splice(waiting.indexOf(timer), waiting.includes(timer) ? 1 : 0);
        },
      },
    },
  );
  const token = await gateway.key({ budget: { tokens: 1e12 } });
  for (; now < minutes * 60_000; now += 250) {
    for (const due of waiting.filter(({ at }) => at <= now)) {
      if (!waiting.includes(due)) continue;
      waiting.splice(waiting.indexOf(due), 1);
      due.end();
    }
    if (now % everyMs === 0) {
      running++;
      void gateway.ask(token, { model: FAST, max_tokens: 10 }).finally(() => running--);
    }
    // Until each request waits for the upstream, or for a retry.
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    const until = performance.now() + 100;
    while (running !== startedAt.length - answered && performance.now() < until)
      await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return startedAt;
}
