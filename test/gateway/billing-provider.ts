/**
 * A scripted provider that bills as providers' documents say, with no code of Weir's. It reads a body in the dearest documented way,
 * and bills an answer whose reader has left up to its limit.
 */
import {
  decodeObject,
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  textOf,
} from '../../tools/simulator/json.ts';

/** How one request is answered. Shares are from 0 to 1 of what there may be. */
export interface Behavior {
  readonly kind: 'answer' | 'refuse' | 'error' | 'empty' | 'cut' | 'hang';
  /** Of the output's limit. */
  readonly outputShare: number;
  /** Of the output: thought before any text, and not shown. */
  readonly hiddenShare: number;
  /** Of what is not in the body: files, addresses, kept context, images. */
  readonly unseenShare: number;
  /** Tokens a byte of text. */
  readonly density: number;
  /** Whether it says what it used: at the end, with the beginning and on the way, or not at all. */
  readonly usage: 'end' | 'running' | 'none';
}

export interface Bill {
  readonly model: string;
  readonly body: JsonObject;
  readonly tokens: number;
  /** 10^-9 US dollars. */
  readonly nano: number;
}

/** US dollars a million tokens, as the pages had them on 2026-11-22. */
interface Rates {
  readonly prompt: number;
  /** Where a body asks for a cache, which may take all of the prompt: for five minutes, and for an hour. */
  readonly write?: number;
  readonly longWrite?: number;
  readonly output: number;
  /** How many times as much a token costs in the tier `priority`; absent: twice. */
  readonly priority?: number;
  readonly reasons: boolean;
  readonly image: number;
  /** The documented context window in tokens: a longer prompt is refused. */
  readonly window?: number;
}

const RATES: Readonly<Record<string, Rates>> = {
  // $0.25 and $1.00 in the tier `priority`: https://openai.com/api-priority-processing/
  'gpt-4o-mini': { prompt: 0.15, output: 0.6, priority: 5 / 3, reasons: false, image: 48_169 },
  'gpt-3.5-turbo-instruct': { prompt: 1.5, output: 2, reasons: false, image: 0 },
  'gpt-5': { prompt: 1.25, output: 10, reasons: true, image: 48_169 },
  // https://platform.claude.com/docs/en/models (2026-11-23)
  'claude-opus-5': {
    ...{ prompt: 5, write: 6.25, longWrite: 10, output: 25, reasons: true, image: 5120 },
    window: 1_000_000,
  },
  'claude-sonnet-4-5': { prompt: 3, write: 3.75, longWrite: 6, output: 15, reasons: true, image: 5120 },
  'gemini-2.5-flash': { prompt: 0.3, output: 2.5, reasons: true, image: 16_512 },
  llama: { prompt: 1, output: 2, reasons: false, image: 16_384 },
  'qwen/qwen-max': { prompt: 1.6, output: 6.4, reasons: true, image: 16_384 },
  'qwen/qwen-max:online': { prompt: 1.6, output: 6.4, reasons: true, image: 16_384 },
};

/** The price of the base URL's own models, for `PRICES`. */
export const OWN_PRICES = [
  { provider: 'own', models: ['llama'], since: '2026-01-01', currency: 'USD', input: 1, output: 2 },
  { provider: 'router', models: ['qwen/*'], since: '2026-01-01', currency: 'USD', input: 1.6, output: 6.4 },
];

/** The context window where none is documented. */
const CONTEXT = 1_900_000;
/** Of an answer without a limit. */
const MODEL_LIMIT = 60_000;
/** Of output that is really written; the rest is billed alone. */
const MAX_SHOWN_CHARS = 600;

const encoder = new TextEncoder();

export class BillingProvider {
  readonly #stops: boolean;
  readonly bills: Bill[] = [];
  /** What the next requests meet, in order. */
  behaviors: Behavior[] = [];
  asked = 0;

  /** @param stops an answer whose reader has left is billed as far as it was written */
  constructor({ stops = false } = {}) {
    this.#stops = stops;
  }

  get nano(): number {
    return this.bills.reduce((sum, { nano }) => sum + nano, 0);
  }

  get tokens(): number {
    return this.bills.reduce((sum, { tokens }) => sum + tokens, 0);
  }

  readonly fetch = async (input: Request | string, init?: RequestInit): Promise<Response> => {
    this.asked++;
    const url = new URL(String(input));
    const body = decodeObject(String(init?.body)) ?? {};
    const behavior = this.behaviors.shift() ?? DEFAULT_PLAY;
    const model = /models\/([^:]+):/.exec(url.pathname)?.[1] ?? textOf(body.model);
    const rates = RATES[model];
    if (rates === undefined) return Response.json({ error: { message: 'No such model' } }, { status: 404 });
    if (behavior.kind === 'refuse') return Response.json({ error: { message: 'busy' } }, { status: 503 });
    if (!isTaken(url, model, body))
      return Response.json({ error: { message: 'Unknown field' } }, { status: 400 });
    const use = useOf(body, behavior, rates);
    const api = url.pathname.endsWith('/messages')
      ? MESSAGES
      : url.pathname.endsWith('/responses')
        ? RESPONSES
        : url.pathname.includes('enerateContent')
          ? GEMINI
          : url.pathname.endsWith('/chat/completions')
            ? CHAT
            : TEXT;
    const signal = init?.signal ?? null;
    const reported = behavior.usage === 'none' ? null : use;
    if (behavior.kind === 'error') {
      const error = api.error(reported);
      // An error is billed where it says what was used.
      if (error.usage !== undefined) this.#bill(model, body, use, rates);
      return Response.json(error);
    }
    // What is answered is billed, also where the reader leaves.
    this.#bill(model, body, use, rates);
    const left = () => this.#stops || this.#bill(model, body, { ...use, prompt: 0, output: use.rest }, rates);
    if (behavior.kind === 'hang') {
      left();
      return hang(signal);
    }
    const isStream = body.stream === true || url.pathname.includes('stream');
    if (behavior.kind === 'empty') return Response.json(api.empty(reported));
    if (!isStream) return Response.json(api.whole(use, reported));
    const events = api.events(use, reported, behavior.usage === 'running');
    if (behavior.kind !== 'cut') return streamOf(events, signal, left);
    left();
    return streamOf(events.slice(0, 1), signal, () => {});
  };

  #bill(model: string, body: JsonObject, { prompt, output, cache }: Use, rates: Rates): void {
    const { prompt: plain, write = plain, longWrite = write } = rates;
    const rate = { none: plain, short: write, long: longWrite }[cache];
    const factor =
      (body.speed === 'fast' ? 2 : 1) *
      (body.inference_geo === 'us' ? 1.1 : 1) *
      (body.service_tier === 'priority' || body.serviceTier === 'priority' ? (rates.priority ?? 2) : 1);
    const nano = Math.floor((prompt * rate + output * rates.output) * 1000 * factor);
    this.bills.push({ model, body, tokens: prompt + output, nano });
  }
}

/** Fields that OpenAI and Anthropic refuse, as their documents say of every unknown one. */
const FOREIGN = [
  ...['n_predict', 'n_cmpl', 'max_new_tokens', 'generation_config', 'generationConfig', 'extra_body'],
  ...['system_instruction', 'cached_content', 'plugins', 'web_search_options'],
];
const GEMINI_FIELDS = [
  ...['contents', 'systemInstruction', 'system_instruction', 'tools', 'toolConfig', 'safetySettings'],
  ...['cachedContent', 'cached_content', 'generationConfig', 'generation_config', 'serviceTier'],
];

function isTaken({ hostname, pathname }: URL, model: string, body: JsonObject): boolean {
  const has = (field: string) => body[field] !== undefined;
  if (hostname === 'generativelanguage.googleapis.com') {
    return Object.keys(body).every((field) => GEMINI_FIELDS.includes(field));
  }
  if (hostname === 'api.openai.com') {
    const isResponses = pathname.endsWith('/responses');
    const others = [
      'speed',
      'inference_geo',
      'container',
      'cache_control',
      ...(isResponses ? [] : ['max_output_tokens']),
    ];
    return ![...FOREIGN, ...others].some(has);
  }
  if (hostname !== 'api.anthropic.com') return true;
  const { speed = 'standard', inference_geo: place = 'global' } = body;
  const isFast = speed === 'fast' && model === 'claude-opus-5';
  const isPlaced = place === 'us' && model === 'claude-opus-5';
  const isKnown = (speed === 'standard' || isFast) && (place === 'global' || isPlaced);
  return isKnown && ![...FOREIGN, 'n', 'max_output_tokens', 'prediction'].some(has) && !has('service_tier');
}

const DEFAULT_PLAY: Behavior = {
  kind: 'answer',
  outputShare: 1,
  hiddenShare: 0,
  unseenShare: 0.5,
  density: 0.5,
  usage: 'end',
};

interface Use {
  readonly prompt: number;
  readonly output: number;
  /** What is made besides, where the reader has left. */
  readonly rest: number;
  readonly cache: 'none' | 'short' | 'long';
  readonly speed?: string;
  readonly place?: string;
  readonly tier?: string;
  readonly text: string;
  readonly hidden: number;
}

function useOf(body: JsonObject, behavior: Behavior, rates: Rates): Use {
  const text = promptBytes(body) * behavior.density;
  const media = mediaIn(body);
  const { window = CONTEXT } = rates;
  const unseen = media.unseen ? behavior.unseenShare * window : 0;
  const prompt = Math.floor(
    Math.min(window, text + 100 + media.images * behavior.unseenShare * rates.image + unseen),
  );
  const all = Math.max(1, Math.floor(limitOf(body) * behavior.outputShare));
  const hidden = rates.reasons ? Math.floor(all * behavior.hiddenShare) : 0;
  const shown = '!'.repeat(Math.max(1, Math.min(MAX_SHOWN_CHARS, all - hidden)));
  const answers = answersOf(body);
  // A model without hidden thoughts writes all that it bills: no more than is shown here.
  const each = rates.reasons ? all : Math.min(all, shown.length);
  const wrong = body.prediction === undefined ? 0 : bytesOf(body.prediction);
  const { speed, inference_geo, service_tier } = body;
  return {
    prompt,
    output: (each + wrong) * answers,
    rest: (all - each) * answers,
    cache: cacheOf(body),
    ...(typeof speed === 'string' && { speed }),
    ...(typeof inference_geo === 'string' && { place: inference_geo }),
    ...(typeof service_tier === 'string' && { tier: service_tier }),
    text: shown,
    hidden,
  };
}

function cacheOf(body: JsonObject): Use['cache'] {
  const json = JSON.stringify(body);
  if (!json.includes('"cache_control"')) return 'none';
  return json.includes('"ttl":"1h"') ? 'long' : 'short';
}

function bytesOf(value: Json): number {
  return encoder.encode(typeof value === 'string' ? value : JSON.stringify(value)).length;
}

/** The words of a body that a model reads: data of media count by what they are. */
function promptBytes(body: JsonObject): number {
  let bytes = 0;
  const fields = ['messages', 'prompt', 'suffix', 'tools', 'input', 'instructions', 'system', 'contents'];
  const open: Json[] = [...fields, 'systemInstruction'].map((field) => body[field] ?? null);
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === 'string')
      bytes += value.startsWith('data:') || value.length > 5000 ? 0 : bytesOf(value);
    else if (Array.isArray(value)) open.push(...value);
    else if (isObject(value)) open.push(...Object.values(value).map((one) => one ?? null));
  }
  return bytes;
}

const KEPT = [
  'previous_response_id',
  'conversation',
  'container',
  'plugins',
  'cachedContent',
  'cached_content',
  'thread',
];

function mediaIn(body: JsonObject): { readonly images: number; readonly unseen: boolean } {
  const json = JSON.stringify(body);
  const images = json.match(/data:image\/|"mimeType":"image\/|"media_type":"image\//g)?.length ?? 0;
  // An address is fetched, whatever part it stands in; other data than an image's may hold any number of tokens.
  const isFetched = /"(?:url|image_url|file_url|fileUri|file_uri|document_url|file_data)":"https?:/.test(
    json,
  );
  const isFile =
    /"file_id":|"(?:mimeType|media_type)":"(?!image\/|text\/)[a-z]+\/|data:(?!image\/|text\/)[a-z]+\/|"input_audio"/.test(
      json,
    );
  const isKept = KEPT.some((field) => body[field] !== undefined) || isObject(body.prompt ?? null);
  const isSearching =
    textOf(body.model).endsWith(':online') || /"web_search|"googleSearch"|"extra_body"/.test(json);
  return { images, unseen: isFetched || isFile || isKept || isSearching };
}

/** The highest that any name says, as some server reads it: 0 and texts are no limit. */
function limitOf(body: JsonObject): number {
  const config = { ...objectOf(body.generation_config), ...objectOf(body.generationConfig) };
  const extra = objectOf(objectOf(body.extra_body).google);
  const names = [
    body.n_predict,
    ...[body.max_tokens, body.max_completion_tokens, body.max_output_tokens, body.max_new_tokens],
    ...[config.maxOutputTokens, config.max_output_tokens, extra.max_tokens, extra.max_output_tokens],
    ...[objectOf(body.extra_body).max_tokens],
  ];
  const limits = names.map(Number).filter((limit) => limit > 0);
  const isUnlimited = limits.length === 0 || names.some((name) => name === 0);
  return isUnlimited ? MODEL_LIMIT : Math.max(...limits);
}

function answersOf(body: JsonObject): number {
  const config = { ...objectOf(body.generation_config), ...objectOf(body.generationConfig) };
  const extra = objectOf(objectOf(body.extra_body).google);
  const counts = [
    body.n,
    body.best_of,
    body.n_cmpl,
    config.candidateCount,
    config.candidate_count,
    extra.n,
  ].map(Number);
  return Math.max(1, ...counts.filter((count) => count > 0)) * promptsOf(body);
}

function promptsOf({ prompt }: JsonObject): number {
  return Array.isArray(prompt) ? Math.max(1, prompt.length) : 1;
}

/** One way in which answers are written. */
interface Api {
  error(reported: Use | null): JsonObject;
  /** Whole, and without a word. */
  empty(reported: Use | null): JsonObject;
  whole(use: Use, reported: Use | null): JsonObject;
  events(use: Use, reported: Use | null, isRunning: boolean): string[];
}

const OVERLOADED = { message: 'overloaded', type: 'server_error', code: 'server_error' };

function chatUsage(reported: Use | null): JsonObject {
  if (reported === null) return {};
  const { prompt, output } = reported;
  return { usage: { prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output } };
}

function data(value: JsonObject): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function named(value: JsonObject): string {
  return `event: ${textOf(value.type)}\n${data(value)}`;
}

function chatApi(choice: (text: string | null, finish: string | null, isDelta: boolean) => JsonObject): Api {
  const head = { id: 'up', object: 'chat.completion', created: 1, model: 'm' };
  return {
    error: (reported) => ({ error: OVERLOADED, ...chatUsage(reported) }),
    empty: (reported) => ({ ...head, choices: [], ...chatUsage(reported) }),
    whole: ({ text }, reported) => ({
      ...head,
      choices: [choice(text, 'stop', false)],
      ...chatUsage(reported),
    }),
    events: ({ text }, reported, isRunning) => [
      data({ ...head, choices: [choice(null, null, true)] }),
      data({
        ...head,
        choices: [choice(text, null, true)],
        ...(isRunning && reported !== null ? chatUsage({ ...reported, output: 1 }) : {}),
      }),
      data({ ...head, choices: [choice(null, 'stop', true)] }),
      ...(reported === null ? [] : [data({ ...head, choices: [], ...chatUsage(reported) })]),
      'data: [DONE]\n\n',
    ],
  };
}

const CHAT = chatApi((content, finish_reason, isDelta) => ({
  index: 0,
  [isDelta ? 'delta' : 'message']: { role: 'assistant', ...(content === null ? {} : { content }) },
  finish_reason,
}));
const TEXT = chatApi((text, finish_reason) => ({ index: 0, text: text ?? '', finish_reason }));

function claudeUsage({ prompt, output, cache, speed, place }: Use): JsonObject {
  const isWritten = cache !== 'none';
  return {
    input_tokens: isWritten ? 0 : prompt,
    ...(isWritten && { cache_creation_input_tokens: prompt }),
    ...(cache === 'long' && { cache_creation: { ephemeral_1h_input_tokens: prompt } }),
    output_tokens: output,
    ...(speed !== undefined && { speed }),
    ...(place !== undefined && { inference_geo: place }),
  };
}

/** A message always reports its usage at its end, and that of the prompt at its beginning. */
const MESSAGES: Api = {
  error: () => ({ type: 'error', error: { type: 'overloaded_error', message: 'overloaded' } }),
  empty: (reported) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    stop_reason: 'end_turn',
    ...(reported && { usage: claudeUsage(reported) }),
  }),
  whole: (use) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: use.text }],
    stop_reason: 'end_turn',
    usage: claudeUsage(use),
  }),
  events: (use) => [
    named({
      type: 'message_start',
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        content: [],
        usage: claudeUsage({ ...use, output: 1 }),
      },
    }),
    named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: use.text } }),
    named({ type: 'content_block_stop', index: 0 }),
    named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: claudeUsage(use) }),
    named({ type: 'message_stop' }),
  ],
};

function responsesUsage(reported: Use | null): JsonObject {
  if (reported === null) return {};
  const { prompt, output } = reported;
  return { usage: { input_tokens: prompt, output_tokens: output, total_tokens: prompt + output } };
}

function response(use: Use, reported: Use | null, status: string): JsonObject {
  const content = [{ type: 'output_text', text: use.text, annotations: [] }];
  const output = status === 'completed' ? [{ id: 'msg_1', type: 'message', role: 'assistant', content }] : [];
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'm',
    status,
    output,
    ...responsesUsage(reported),
  };
}

const RESPONSES: Api = {
  error: (reported) => ({
    id: 'resp_1',
    object: 'response',
    status: 'failed',
    error: OVERLOADED,
    output: [],
    ...responsesUsage(reported),
  }),
  empty: (reported) => ({
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    output: [],
    ...responsesUsage(reported),
  }),
  whole: (use, reported) => response(use, reported, 'completed'),
  events: (use, reported) => [
    named({ type: 'response.created', response: response(use, null, 'in_progress') }),
    named({ type: 'response.output_text.delta', output_index: 0, delta: use.text }),
    named({ type: 'response.completed', response: response(use, reported, 'completed') }),
  ],
};

function geminiUsage(reported: Use | null): JsonObject {
  if (reported === null) return {};
  const { prompt, output, hidden } = reported;
  const thoughts = Math.min(hidden, output);
  return {
    usageMetadata: {
      promptTokenCount: prompt,
      candidatesTokenCount: output - thoughts,
      thoughtsTokenCount: thoughts,
      totalTokenCount: prompt + output,
    },
  };
}

function candidate(text: string, finishReason?: string): JsonObject {
  return {
    responseId: 'r',
    candidates: [
      { index: 0, content: { role: 'model', parts: [{ text }] }, ...(finishReason && { finishReason }) },
    ],
  };
}

const GEMINI: Api = {
  error: () => ({ error: { code: 503, status: 'UNAVAILABLE', message: 'overloaded' } }),
  empty: (reported) => ({ responseId: 'r', candidates: [], ...geminiUsage(reported) }),
  whole: ({ text }, reported) => ({ ...candidate(text, 'STOP'), ...geminiUsage(reported) }),
  events: (use, reported) => [
    data({ ...candidate(use.text.slice(0, 1)), ...geminiUsage(reported && { ...reported, output: 1 }) }),
    data({ ...candidate(use.text.slice(1), 'STOP'), ...geminiUsage(reported) }),
  ],
};

function hang(signal: AbortSignal | null): Promise<Response> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted'))));
}

const FINISH = /"finish_reason":"|"finishReason":"|"stop_reason":"|response\.completed/;

/** One event a pull, so that a reader may leave between two. */
function streamOf(events: readonly string[], signal: AbortSignal | null, onLeft: () => void): Response {
  const queue = [...events];
  let isLeft = false;
  const leave = () => {
    // Behind its finish nothing is made.
    if (queue.some((event) => FINISH.test(event)) && !isLeft) onLeft();
    isLeft = true;
  };
  const body = new ReadableStream({
    type: 'bytes',
    start: (controller) =>
      signal?.addEventListener('abort', () => {
        leave();
        controller.error(new Error('aborted'));
      }),
    pull: async (controller) => {
      await new Promise(setImmediate);
      if (isLeft) return;
      const next = queue.shift();
      if (next !== undefined) return controller.enqueue(encoder.encode(next));
      controller.close();
      controller.byobRequest?.respond(0);
    },
    cancel: leave,
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}
