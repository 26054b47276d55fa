/** A gateway with running budgets whose provider writes as much as a test wants, and stops when its connection is closed. */
import { decodeObject, type JsonObject, objectOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';
import './upstreams.ts';

const encoder = new TextEncoder();
const WORD = 'token ';
export const PROMPT = 7;
export const LIMIT = 30_000;

export type Api = 'chat' | 'messages' | 'responses' | 'gemini';

function data(event: JsonObject): string {
  const name = typeof event.type === 'string' ? `event: ${event.type}\n` : '';
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

/** What the provider reports at the end. */
interface Usage {
  readonly prompt: number;
  /** Default: what it has written. */
  readonly output?: number;
}

/** The events before the text, one with 50 tokens of it, and those after it. */
const eventsOf = (
  prompt: number,
  output: number,
): Readonly<Record<Api, readonly [string, string, string]>> => ({
  chat: [
    data({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { role: 'assistant' } }] }),
    data({
      ...{ id: 'c', object: 'chat.completion.chunk' },
      choices: [{ index: 0, delta: { content: WORD.repeat(50) } }],
    }),
    data({
      ...{ id: 'c', object: 'chat.completion.chunk' },
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
      usage: { prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output },
    }) + 'data: [DONE]\n\n',
  ],
  messages: [
    data({
      type: 'message_start',
      message: {
        ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null },
        usage: { input_tokens: prompt, output_tokens: 1 },
      },
    }) + data({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    data({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: WORD.repeat(50) } }),
    data({ type: 'content_block_stop', index: 0 }) +
      data({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: output } }) +
      data({ type: 'message_stop' }),
  ],
  responses: [
    data({
      type: 'response.created',
      sequence_number: 0,
      response: { id: 'resp_1', object: 'response', status: 'in_progress', model: 'm', output: [] },
    }) +
      data({
        ...{ type: 'response.output_item.added', sequence_number: 1, output_index: 0 },
        item: { id: 'i1', type: 'message', role: 'assistant', status: 'in_progress', content: [] },
      }),
    data({
      ...{ type: 'response.output_text.delta', sequence_number: 2, item_id: 'i1' },
      ...{ output_index: 0, content_index: 0, delta: WORD.repeat(50) },
    }),
    data({
      type: 'response.completed',
      sequence_number: 3,
      response: {
        ...{ id: 'resp_1', object: 'response', status: 'completed', model: 'm' },
        output: [
          {
            ...{ id: 'i1', type: 'message', role: 'assistant', status: 'completed' },
            content: [{ type: 'output_text', text: WORD, annotations: [] }],
          },
        ],
        usage: { input_tokens: prompt, output_tokens: output, total_tokens: prompt + output },
      },
    }),
  ],
  gemini: [
    data({ usageMetadata: { promptTokenCount: prompt } }),
    data({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text: WORD.repeat(50) }] } }] }),
    data({
      candidates: [{ index: 0, content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP' }],
      usageMetadata: {
        ...{ promptTokenCount: prompt, candidatesTokenCount: output, totalTokenCount: prompt + output },
      },
    }),
  ],
});

function apiOf(url: string): Api {
  if (url.endsWith('/messages')) return 'messages';
  if (url.includes(':streamGenerateContent')) return 'gemini';
  return url.endsWith('/responses') ? 'responses' : 'chat';
}

/** A gateway whose provider writes this many tokens for each request, unless its connection is closed. */
export class Running {
  readonly gateway: LimitedGateway;
  /** Tokens that the provider has written for each request. */
  readonly written: number[] = [];
  readonly isCut: boolean[] = [];
  outputTokens = 40_000;
  usage: Usage = { prompt: PROMPT, output: 100 };
  /** Called before the response's head, with the signal that aborts the call. */
  beforeHead: (signal: AbortSignal | null) => Promise<void> = async () => {};
  /** Called before each event with text. */
  beforeEvent: (written: number) => Promise<void> = () => new Promise(setImmediate);

  constructor(settings: JsonObject = {}) {
    this.gateway = new LimitedGateway(
      {
        ANTHROPIC_API_KEY: 'k',
        PROVIDERS: JSON.stringify({
          own: { base_url: 'https://own.example/v1', like: 'llamacpp' },
          host: { base_url: 'https://host.example/v1' },
          stops: { base_url: 'https://stops.example/v1', like: 'llamacpp', stops_on_close: 100 },
          google: { base_url: 'https://google.example', like: 'gemini-native', stops_on_close: 100 },
          'goes-on': { base_url: 'https://goes-on.example/v1', like: 'llamacpp', stops_on_close: false },
        }),
        ...settings,
      },
      {
        fetch: async (input, init) => {
          const signal = init?.signal ?? null;
          await this.beforeHead(signal);
          return this.#respond(apiOf(String(input)), signal);
        },
      },
    );
  }

  #respond(api: Api, signal: AbortSignal | null): Response {
    const at = this.written.push(0) - 1;
    this.isCut.push(false);
    let step = 0;
    const cut = () => {
      this.isCut[at] = true;
    };
    const body = new ReadableStream({
      type: 'bytes',
      start: (controller) => {
        signal?.addEventListener('abort', () => {
          if (this.isCut[at]) return;
          cut();
          controller.error(new Error('aborted'));
        });
      },
      pull: async (controller) => {
        if (step > 0) await this.beforeEvent(this.written[at] ?? 0);
        if (this.isCut[at]) return;
        const written = this.written[at] ?? 0;
        const done = written >= this.outputTokens;
        const [start, text, end] = eventsOf(this.usage.prompt, this.usage.output ?? written)[api];
        const event = step === 0 ? start : done ? end : text;
        const numbered = event.replace('"sequence_number":2', `"sequence_number":${step + 1}`);
        controller.enqueue(encoder.encode(numbered));
        step++;
        if (done) {
          controller.close();
          controller.byobRequest?.respond(0);
        } else if (step > 1) this.written[at] = written + 50;
      },
      cancel: cut,
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  }

  async send(token: string, api: Api, model: string, fields: JsonObject = {}): Promise<Response> {
    if (api === 'gemini') {
      const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];
      const body = { contents, generationConfig: { maxOutputTokens: LIMIT }, ...fields };
      return this.gateway.post(`/v1beta/models/${model}:streamGenerateContent?alt=sse`, token, body);
    }
    const path = { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' }[api];
    const messages = [{ role: 'user', content: 'Hello' }];
    const own =
      api === 'responses' ? { input: 'Hello', max_output_tokens: LIMIT } : { messages, max_tokens: LIMIT };
    return this.gateway.post(path, token, { model, stream: true, ...own, ...fields });
  }

  /** All events of a stream. */
  async events(response: Response): Promise<JsonObject[]> {
    const text = await response.text();
    await this.gateway.idle();
    return [...text.matchAll(/^data: (\{.*\})\r?$/gm)].flatMap(([, json = '']) => {
      const event = decodeObject(json);
      return event === undefined ? [] : [event];
    });
  }

  get calls(): readonly string[] {
    return this.gateway.calls.filter((call) => call === 'reserve' || call.startsWith('settle'));
  }

  /** The log line of the last request. */
  get record(): Readonly<Record<string, unknown>> | undefined {
    return this.gateway.logged.findLast(({ event }) => event === 'request');
  }

  async budget(token: string): Promise<JsonObject> {
    const key = decodeObject(await (await this.gateway.fetch('/v1/key', token)).text());
    return objectOf(key?.budget);
  }
}
