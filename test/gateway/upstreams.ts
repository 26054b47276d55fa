/** Upstreams by script, and a gateway in memory before them: every way in which one can fail, and a clock that the test advances. */
import type { GatewayPorts } from '../../src/gateway.ts';
import type { UsageRecord } from '../../src/metering/record.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';

/** The runtime's own pipes, which Node does not have. They copy, as those do. */
class CopyingStream extends TransformStream<Uint8Array, Uint8Array> {
  constructor() {
    super({ transform: (bytes, controller) => controller.enqueue(bytes.slice()) });
  }
}
Object.assign(globalThis, { IdentityTransformStream: CopyingStream, FixedLengthStream: CopyingStream });

/** What an upstream does with one request. */
export type Behavior =
  | {
      readonly kind: 'refuse';
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: string;
      /** What follows the body's last piece, where that is not its end. */
      readonly ending?: 'cut' | 'hang';
    }
  /** An answer of this type, in these pieces; then its end, a cut, or nothing. */
  | {
      readonly kind: 'answer';
      readonly type: string;
      readonly pieces: readonly (string | Uint8Array)[];
      readonly ending?: 'end' | 'cut' | 'hang';
    }
  /** An event stream whose bytes a test writes. */
  | { readonly kind: 'stream'; readonly body: ReadableStream<Uint8Array> }
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'hang' };

/** A request that an upstream received, and how it ended. */
export interface UpstreamRequest {
  readonly model: string;
  readonly provider: string;
  readonly url: string;
  readonly body: JsonObject;
  readonly headers: Headers;
  /** Its request was aborted, or its answer's body was cancelled. */
  isCancelled: boolean;
  /** Its answer's last piece was taken. */
  isOver: boolean;
}

const EVENTS = 'text/event-stream';
export const ROLE = event({ role: 'assistant', content: '' });
export const DONE = 'data: [DONE]\n\n';

export function event(delta: object, finish_reason: string | null = null, more: object = {}): string {
  return `data: ${JSON.stringify({ id: 'up', choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`;
}

/** A request's timer of the runtime's is set for so long at most. */
export const TIMER_MS = 10_000;

export const USAGE = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };

/** A complete response, streamed if the client requests it. */
export function answerWith(text: string, usage: object = USAGE): Script {
  return (isStreamed) =>
    isStreamed
      ? sse(ROLE, event({ content: text }), event({}, 'stop', { usage }), DONE)
      : json({
          choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
          usage,
        });
}

export function sse(...pieces: string[]): Behavior {
  return { kind: 'answer', type: EVENTS, pieces };
}

/** The usage that Bedrock's Converse reports in tests. */
export const CONVERSE_USAGE = { inputTokens: 5, outputTokens: 3, totalTokens: 8 };

/** A complete response of Bedrock's Converse. */
export function converseAnswer(
  content: readonly object[] = [{ text: 'Here.' }],
  stopReason = 'end_turn',
): Behavior {
  return json({ output: { message: { role: 'assistant', content } }, stopReason, usage: CONVERSE_USAGE });
}

export function json(answer: object): Behavior {
  return { kind: 'answer', type: 'application/json', pieces: [JSON.stringify(answer)] };
}

export function refuse(status: number, error: object = {}, headers: Record<string, string> = {}): Behavior {
  return { kind: 'refuse', status, headers, body: JSON.stringify({ error: { message: 'no', ...error } }) };
}

/** A behavior, or one that depends on whether the client requests a stream. */
export type Script = Behavior | ((isStreamed: boolean) => Behavior);

type Behaviors = Readonly<Record<string, readonly Script[]>>;

const ENV = {
  AUTH: 'open',
  DEEPSEEK_API_KEY: 'key-of-deepseek',
  MISTRAL_API_KEY: 'key-of-mistral',
  OPENAI_API_KEY: 'key-of-openai',
  DEEPSEEK_BASE_URL: 'https://deepseek',
  MISTRAL_BASE_URL: 'https://mistral',
  OPENAI_BASE_URL: 'https://openai',
  RETRIES: '0',
  // Without a turn between, a heartbeat waits to be taken.
  HEARTBEAT_SECONDS: '0',
};

export class RoutedGateway {
  readonly clock = new FakeClock();
  readonly requests: UpstreamRequest[] = [];
  readonly gateway: LimitedGateway;
  /** Called within each request to an upstream. */
  onRequest = () => {};
  readonly #behaviors: Map<string, Script[]>;

  /**
   * @param behaviors by model: of the upstream, for each request in order; the last one repeats
   * @param own `random`: what `crypto.randomUUID` would say
   */
  constructor(
    behaviors: Behaviors,
    env: JsonObject = {},
    own: Partial<Pick<GatewayPorts, 'random' | 'tracing'>> = {},
  ) {
    this.#behaviors = new Map(Object.entries(behaviors).map(([model, list]) => [model, [...list]]));
    this.gateway = new LimitedGateway(
      { ...ENV, ...env },
      { fetch: (url, init) => this.#answer(String(url), init), clock: this.clock, ...own },
    );
  }

  /** The requested models, in order. */
  get models(): string[] {
    return this.requests.map(({ model }) => model);
  }

  /** The records, as they were logged. */
  get records(): UsageRecord[] {
    return this.gateway.logged.filter(({ event }) => event === 'request') as unknown as UsageRecord[];
  }

  ask(fields: JsonObject, init: RequestInit = {}, path = '/v1/chat/completions'): Promise<Response> {
    const messages = [{ role: 'user', content: 'Hello' }];
    return this.gateway.post(path, 'x', { messages, ...fields }, init);
  }

  async #answer(url: string, init: RequestInit | undefined): Promise<Response> {
    const body = decodeObject(String(init?.body)) ?? {};
    const model = textOf(body.model ?? body.agent_id) || modelInPath(url);
    const requested: UpstreamRequest = {
      model,
      provider: new URL(url).hostname,
      url,
      body,
      headers: new Headers(init?.headers),
      isCancelled: false,
      isOver: false,
    };
    this.requests.push(requested);
    this.onRequest();
    const { signal } = init ?? {};
    const behaviors = this.#behaviors.get(model) ?? [];
    const next = (behaviors.length > 1 ? behaviors.shift() : behaviors[0]) ?? refuse(404);
    const isStreamed = body.stream === true || url.endsWith('/converse-stream');
    const behavior = typeof next === 'function' ? next(isStreamed) : next;
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => {
        if (!requested.isOver) requested.isCancelled = true;
        reject(new Error('The request was aborted'));
      });
    });
    aborted.catch(() => {});
    if (behavior.kind === 'unreachable') throw new Error('connect ECONNREFUSED 10.0.0.1:443');
    if (behavior.kind === 'hang') return aborted;
    if (behavior.kind === 'stream')
      return new Response(behavior.body, { headers: { 'content-type': EVENTS } });
    if (behavior.kind === 'refuse') {
      const { status, headers = {}, body = '', ending } = behavior;
      const cutOff = ending && bodyOf({ pieces: [body], ending }, requested, aborted);
      return new Response(cutOff ?? body, { status, headers });
    }
    return new Response(bodyOf(behavior, requested, aborted), { headers: { 'content-type': behavior.type } });
  }
}

/** Of Bedrock's own APIs. Gemini's tests have the model nowhere. */
function modelInPath(url: string): string {
  return decodeURIComponent(/\/model\/([^/]+)\/(?:converse|count-tokens)/.exec(url)?.[1] ?? '');
}

function bodyOf(
  { pieces, ending = 'end' }: Pick<Extract<Behavior, { kind: 'answer' }>, 'pieces' | 'ending'>,
  asked: UpstreamRequest,
  aborted: Promise<never>,
): ReadableStream<Uint8Array> {
  const left = [...pieces];
  const encoder = new TextEncoder();
  return new ReadableStream({
    type: 'bytes',
    start(controller) {
      aborted.catch((error: unknown) => {
        if (!asked.isOver) controller.error(error);
      });
    },
    async pull(controller) {
      const piece = left.shift();
      if (piece !== undefined)
        return controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece.slice());
      if (ending === 'hang') return new Promise<void>(() => {});
      asked.isOver = true;
      if (ending === 'cut') return controller.error(new Error('connection reset'));
      controller.close();
      controller.byobRequest?.respond(0);
    },
    cancel() {
      asked.isCancelled = true;
    },
  });
}

/** Advances the clock until the work is done, so that requests that wait look again. */
export async function passing<Value>(clock: FakeClock, work: Promise<Value>): Promise<Value> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    await settle();
    clock.advance(5);
  }
  return done;
}

/** Lets everything go on that can, without time passing. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 40; turn++) await new Promise(setImmediate);
}

/** What a client read: the texts of a stream or of an object, its finishes, and the error that it ended with. */
export interface Got {
  readonly status: number;
  readonly text: string;
  readonly finishes: readonly string[];
  /** The models that chunks name. */
  readonly models: readonly string[];
  readonly ids: readonly string[];
  readonly error: JsonObject | null;
  readonly isDone: boolean;
  readonly headers: Headers;
}

export async function read(response: Response): Promise<Got> {
  const { status, headers } = response;
  const raw = await response.text();
  const isStream = headers.get('content-type')?.startsWith(EVENTS) === true;
  const data = isStream ? raw.split('\n\n').map((frame) => frame.replace(/^data: /, '')) : [raw];
  const objects = data.map((line) => decodeObject(line) ?? {});
  const choices = objects.flatMap(({ choices: list }) => objectsOf(list));
  const failed = objects.find(({ error }) => error !== undefined);
  const texts = choices.map(({ delta, message, text }) => {
    return textOf(objectOf(delta ?? message).content) + textOf(text);
  });
  return {
    status,
    headers,
    text: texts.join(''),
    finishes: choices.map(({ finish_reason }) => textOf(finish_reason)).filter(Boolean),
    models: [...new Set(objects.map(({ model }) => textOf(model)).filter(Boolean))],
    ids: [...new Set(objects.map(({ id }) => textOf(id)).filter(Boolean))],
    error: failed === undefined ? null : objectOf(failed.error),
    isDone: raw.endsWith(DONE),
  };
}
