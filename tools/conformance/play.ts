/** Plays one case: sends the request through the gateway, serves the provider's side, and has what both sides saw. */
import { setTimeout } from 'node:timers/promises';
import { residentBytes } from '../../test/e2e/processes.ts';
import { objectOf } from '../simulator/json.ts';
import type { RecordedRequest } from '../simulator/recorded-request.ts';
import { createSimulator, type Replay, type Simulator } from '../simulator/server.ts';
import type { Case, Step, Upstream } from './case.ts';
import { Reading } from './reading.ts';
import { pathOf, playIdIn, requestOf } from './request.ts';

/** A gateway that has not sent a piece by then holds it back: the upstream sends nothing more until the client has it. */
const HELD_BACK_MS = 3_000;
/** After the client has left, the upstream's connection must be closed within this time. */
const CANCEL_MS = 6_000;
/** The whole of one case. */
const PLAY_MS = 60_000;
/** Bytes that arrive at no reader: no growth for this long means that nobody takes more. */
const STALLED_MS = 1_500;

/** The gateway and how a client addresses it. */
export interface Gateway {
  readonly name: string;
  readonly version: string;
  /** With `/v1`, as the OpenAI SDKs take it. */
  readonly url: string;
  readonly key: string;
  /** The model, and further headers, that reach each protocol of the suite's upstreams; absent: the gateway is not asked for it. */
  readonly upstreams: Partial<Readonly<Record<Upstream, Route>>>;
  /** Processes whose memory is measured. */
  readonly processes?: () => readonly number[];
  /** The gateway's own record of a request; null: there is none. */
  readonly record?: (headers: Headers) => Promise<GatewayRecord | null>;
  /** The name of a provider in error messages, which Weir's contract asks for. */
  readonly providerOf?: (upstream: Upstream) => string;
}

export interface Route {
  readonly model: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface GatewayRecord {
  readonly prompt: number | null;
  readonly completion: number | null;
  readonly isEstimated: boolean;
}

/** What both sides saw. */
export interface Play {
  readonly id: string;
  readonly case: Case;
  readonly reading: Reading;
  /** The requests that arrived at the case's own protocol. */
  readonly requests: RecordedRequest[];
  /** The protocol that a request arrived in instead. */
  otherUpstream: Upstream | undefined;
  /** Each write of the upstream, with its time. */
  readonly writes: { readonly at: number; readonly text: string }[];
  /** Texts that the client did not have in time. */
  readonly heldBack: string[];
  readonly sentAt: number;
  /** The upstream's connection was closed after the client had left; null: the client did not leave. */
  isCancelled: boolean | null;
  /** Bytes that the gateway took from the upstream while the client read nothing. */
  bytesAhead: number;
  /** Resident bytes of the gateway's processes at that time. */
  memoryAhead: number;
  isTooLate: boolean;
}

const PATTERNS: readonly (readonly [Upstream, RegExp])[] = [
  ['chat', /\/chat\/completions/],
  ['messages', /\/messages/],
  ['responses', /\/responses/],
  ['gemini', /[gG]enerateContent/],
];

/** The suite's own upstreams, on one port. */
export class Stage implements AsyncDisposable {
  readonly #plays = new Map<string, Play>();
  readonly #simulator: Simulator;
  #serial = 0;

  static async open(port: number): Promise<Stage> {
    const holder: { stage?: Stage } = {};
    const simulator = await createSimulator({ port, replay: (request) => holder.stage?.answer(request) });
    const stage = new Stage(simulator);
    holder.stage = stage;
    return stage;
  }

  private constructor(simulator: Simulator) {
    this.#simulator = simulator;
  }

  get url(): string {
    return this.#simulator.url;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#simulator.close();
  }

  answer(request: RecordedRequest): Replay | undefined {
    const play = this.#plays.get(playIdIn(request.text) ?? '');
    const upstream = PATTERNS.find(([, pattern]) => pattern.test(request.path))?.[0];
    if (play === undefined || upstream === undefined) return undefined;
    if (upstream !== play.case.upstream) {
      play.otherUpstream = upstream;
      const body = JSON.stringify({ error: { message: 'Another protocol was expected', type: 'not_found' } });
      return {
        status: 404,
        headers: { 'content-type': 'application/json' },
        chunks: [new TextEncoder().encode(body)],
      };
    }
    play.requests.push(request);
    const { status = 200, contentType = 'text/event-stream; charset=utf-8', headers } = play.case.head ?? {};
    const { ends } = play.case;
    return {
      status,
      headers: { 'content-type': contentType, ...headers },
      chunks: served(play),
      ...(ends === undefined ? {} : { ends }),
    };
  }

  /** @param gateway null: the client calls the upstream itself, to measure what the gateway adds */
  async play(one: Case, gateway: Gateway | null): Promise<Play> {
    this.#serial += 1;
    const play: Play = {
      id: `${one.id}.${this.#serial}`,
      case: one,
      reading: new Reading(one.client),
      requests: [],
      otherUpstream: undefined,
      writes: [],
      heldBack: [],
      sentAt: performance.now(),
      isCancelled: null,
      bytesAhead: 0,
      memoryAhead: 0,
      isTooLate: false,
    };
    this.#plays.set(play.id, play);
    try {
      await this.#request(play, gateway);
    } finally {
      this.#plays.delete(play.id);
    }
    return play;
  }

  async #request(play: Play, gateway: Gateway | null): Promise<void> {
    const { reading, case: one } = play;
    const route = gateway?.upstreams[one.upstream];
    const model = route?.model ?? 'conformance-1';
    const leaving = new AbortController();
    const late = AbortSignal.timeout(PLAY_MS);
    const left = this.#leave(play, leaving);
    try {
      const response = await fetch((gateway?.url ?? `${this.url}/v1`) + pathOf(one, model), {
        method: 'POST',
        redirect: 'manual',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${gateway?.key ?? 'conformance'}`,
          ...(one.client === 'messages'
            ? { 'x-api-key': gateway?.key ?? 'conformance', 'anthropic-version': '2023-06-01' }
            : {}),
          ...route?.headers,
        },
        body: JSON.stringify(requestOf(one, play.id, model)),
        signal: AbortSignal.any([leaving.signal, late]),
      });
      reading.status = response.status;
      reading.headers = response.headers;
      if (one.readsNothing === true) await this.#stall(play, gateway);
      else await readBody(reading, response, one.request?.isStreamed !== false);
    } catch (error) {
      play.isTooLate = late.aborted;
      if (!leaving.signal.aborted) {
        const cause = error instanceof Error && error.cause !== undefined ? ` (${String(error.cause)})` : '';
        reading.fail({ kind: 'connection', message: `${String(error)}${cause}` });
      }
    }
    leaving.abort();
    await left;
  }

  /** Leaves when the case says so, and then waits until the upstream's connection is closed. */
  async #leave(play: Play, leaving: AbortController): Promise<void> {
    const { leavesAt } = play.case;
    if (leavesAt === undefined) return;
    if (leavesAt === '') await this.#arrival(play);
    else await play.reading.has(leavesAt, PLAY_MS);
    leaving.abort();
    const closed = play.requests.at(-1)?.closed;
    const ending = await Promise.race([closed, setTimeout(CANCEL_MS, 'open' as const, { ref: false })]);
    play.isCancelled = ending === 'disconnected';
  }

  async #arrival(play: Play): Promise<void> {
    for (const end = Date.now() + PLAY_MS; play.requests.length === 0 && Date.now() < end; ) {
      await setTimeout(5);
    }
  }

  /** Waits until the gateway takes no more bytes. */
  async #stall(play: Play, gateway: Gateway | null): Promise<void> {
    for (let before = -1; before !== play.bytesAhead; ) {
      before = play.bytesAhead;
      await setTimeout(STALLED_MS);
      play.bytesAhead = play.requests.at(-1)?.bytesSent ?? 0;
      play.memoryAhead = Math.max(play.memoryAhead, residentBytes(gateway?.processes?.() ?? []));
    }
  }
}

async function readBody(reading: Reading, response: Response, isStreamed: boolean): Promise<void> {
  const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (!isStreamed || !isEvents || response.status >= 400) {
    const text = await response.text();
    if (response.status >= 400) {
      reading.bytes.push(new TextEncoder().encode(text));
      reading.fail({ kind: 'status', message: text });
    } else reading.whole(text);
  } else if (response.body !== null) for await (const bytes of response.body) reading.push(bytes);
  reading.isClosed = true;
}

async function* served(play: Play): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for (const step of play.case.serve) {
    if (isWrite(step)) {
      const text = typeof step === 'string' ? step : '';
      play.writes.push({ at: performance.now(), text });
      yield typeof step === 'string' ? encoder.encode(step) : step;
    } else if ('until' in step) {
      if (!(await play.reading.has(step.until, HELD_BACK_MS))) play.heldBack.push(step.until);
    } else if ('ifUsageAsked' in step) {
      const options = objectOf(play.requests.at(-1)?.body?.stream_options);
      if (options.include_usage === true) yield encoder.encode(step.ifUsageAsked);
    } else if ('waitMs' in step) await setTimeout(step.waitMs);
    else {
      const bytes = encoder.encode(step.repeat);
      for (let sent = 0; sent < step.bytes; sent += bytes.length) {
        yield bytes;
        if (step.everyMs !== undefined) await setTimeout(step.everyMs);
      }
    }
  }
}

function isWrite(step: Step): step is string | Uint8Array {
  return typeof step === 'string' || step instanceof Uint8Array;
}
