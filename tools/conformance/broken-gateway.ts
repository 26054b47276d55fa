/** A gateway that passes chat through and breaks one thing on purpose, so that the suite has something to find. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import type { Gateway } from './play.ts';

/** What it does, and the kind of fault that the suite must name. */
export const BREAKS = {
  'drops an event': 'dropped',
  'sends an event twice': 'doubled',
  'swaps two events': 'reordered',
  'buffers the body': 'held back',
  'holds one event back': 'held back',
  'delays each event': 'over limit',
  'takes all that the provider sends': 'over limit',
  'goes on after a disconnect': 'left running',
  'invents an end': 'hidden failure',
  'loses the end': 'false failure',
  'counts usage twice': 'wrong usage',
  'gives each chunk an id': 'wrong ids',
  'responds to a refusal with 500': 'wrong error',
  'names each end length': 'wrong finish',
} as const;
export type Break = keyof typeof BREAKS;

const DELAY_MS = 180;

/** @param breaks null: it breaks nothing */
export async function startBroken(
  upstream: string,
  breaks: Break | null,
): Promise<Gateway & AsyncDisposable> {
  const server = createServer((request, response) => {
    forward(request, response, upstream, breaks).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The gateway has no port');
  return {
    name: 'Broken gateway',
    version: breaks ?? 'nothing broken',
    url: `http://127.0.0.1:${address.port}/v1`,
    key: 'conformance',
    upstreams: { chat: { model: 'conformance-1' } },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  upstream: string,
  breaks: Break | null,
): Promise<void> {
  const leaving = new AbortController();
  if (breaks !== 'goes on after a disconnect') response.on('close', () => leaving.abort());
  const given = await fetch(upstream + (request.url ?? ''), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: await text(request),
    signal: leaving.signal,
  });
  const status = given.status >= 400 && breaks === 'responds to a refusal with 500' ? 500 : given.status;
  const retry = given.headers.get('retry-after');
  response.writeHead(status, {
    'content-type': given.headers.get('content-type') ?? '',
    ...(retry === null ? {} : { 'retry-after': retry }),
  });
  response.flushHeaders();
  const send = async (event: string) => {
    const isTaken = response.write(event);
    if (!isTaken && breaks !== 'takes all that the provider sends') await once(response, 'drain');
  };
  const mend = new Breaker(breaks);
  try {
    for await (const event of eventsOf(given)) for (const out of await mend.event(event)) await send(out);
  } catch (error) {
    if (breaks !== 'invents an end') throw error;
  }
  for (const out of mend.end()) await send(out);
  response.end();
}

async function* eventsOf({ body }: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body ?? []) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split(/(?<=\n\n)/);
    rest = parts.at(-1)?.endsWith('\n\n') === true ? '' : (parts.pop() ?? '');
    yield* parts;
  }
  if (rest !== '') yield rest;
}

const FINISH = '"finish_reason":"';

/** Changes the events of one stream. */
class Breaker {
  readonly #breaks: Break | null;
  /** Events with output so far. */
  #outputs = 0;
  #held: string[] = [];
  #hasFinish = false;

  constructor(breaks: Break | null) {
    this.#breaks = breaks;
  }

  async event(event: string): Promise<string[]> {
    const isOutput = /"content":"[^"]|"arguments":"[^"]/.test(event);
    if (isOutput) this.#outputs += 1;
    const isFinish = event.includes(FINISH);
    this.#hasFinish ||= isFinish;
    switch (this.#breaks) {
      case 'drops an event':
        return isOutput && this.#outputs === 2 ? [] : [event];
      case 'sends an event twice':
        return isOutput && this.#outputs === 2 ? [event, event] : [event];
      case 'swaps two events':
        if (isOutput && this.#outputs === 1) return this.#hold(event);
        return this.#outputs === 2 ? [event, ...this.#release()] : [event];
      case 'buffers the body':
        return this.#hold(event);
      case 'holds one event back':
        return [...this.#release(), ...this.#hold(event)];
      case 'delays each event':
        await setTimeout(DELAY_MS);
        return [event];
      case 'loses the end':
        return isFinish || event.includes('[DONE]') ? [] : [event];
      case 'counts usage twice':
        return event.includes('"usage":{') ? [event, event] : [event];
      case 'gives each chunk an id':
        return [event.replace(/"id":"chatcmpl-[^"]*"/, `"id":"chatcmpl-${this.#outputs}"`)];
      case 'names each end length':
        return [event.replace(/"finish_reason":"[a-z_]+"/, `${FINISH}length"`)];
      default:
        return [event];
    }
  }

  end(): string[] {
    const isInvented = this.#breaks === 'invents an end' && !this.#hasFinish;
    const finish = `data: {"id":"chatcmpl-c0f1","choices":[{"index":0,"delta":{},${FINISH}stop"}]}\n\ndata: [DONE]\n\n`;
    return [...this.#release(), ...(isInvented ? [finish] : [])];
  }

  #hold(event: string): string[] {
    this.#held.push(event);
    return [];
  }

  #release(): string[] {
    const held = this.#held;
    this.#held = [];
    return held;
  }
}
