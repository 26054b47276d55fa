/** Generates the upstream streams of the bench, modelled on recordings: thousands of frames, the same bytes every time. */
import { seeded } from '../test/random.ts';
import { anthropicEnd, anthropicStart, anthropicText, ENVELOPE_EVENTS } from './anthropic-stream.ts';
import { converseEnd, converseStart, converseText } from './converse-stream.ts';
import { geminiEnd, geminiStart, geminiText } from './gemini-stream.ts';
import {
  RESPONSES_ENVELOPE_EVENTS,
  responsesEnd,
  responsesStart,
  responsesText,
} from './responses-stream.ts';

export const STREAM_NAMES = [
  'deepseek',
  'mistral',
  'xerotier',
  'reasoning',
  'tools',
  'anthropic',
  'gemini',
  'responses',
  'converse',
] as const;
export type StreamName = (typeof STREAM_NAMES)[number];
/** The streams of the paced section. */
export const PACED_STREAMS = ['deepseek', 'anthropic', 'gemini', 'responses', 'converse'] as const;
export type PacedStream = (typeof PACED_STREAMS)[number];

/** An event's data before serialization. */
export type Data = Readonly<Record<string, unknown>>;

/** Words as models send them: short, most with a leading space, some with characters that are long in JSON or UTF-8. */
const WORDS = [
  ...[
    ' the',
    ' water',
    ' is',
    ' held',
    ' back',
    ' by',
    ' a',
    ' weir',
    ',',
    ' and',
    ' passes',
    ' on',
    '.',
    ' so',
  ],
  ...[
    ' every',
    ' boat',
    ' may',
    ' go',
    ' in',
    ' turn',
    ' river',
    'ing',
    ' at',
    ' last',
    ' 42',
    ' lock',
    'ed',
  ],
  ...['\n\n', ' "so"', ' né', '—', ' C:\\weir', ' 🌊', '\t'],
];
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';
const USAGE = {
  prompt_tokens: 11,
  completion_tokens: 5000,
  total_tokens: 5011,
  prompt_tokens_details: { cached_tokens: 0 },
};
const DEEPSEEK = {
  id: 'e626f326-1f18-4dca-aad2-0f60d3d57075',
  object: 'chat.completion.chunk',
  created: 1780944343,
  model: 'deepseek-v4-flash',
  system_fingerprint: 'fp_8b330d02d0_prod0820_fp8_kvcache_20260402',
};
const MISTRAL = {
  id: '548ed34ecc7f4a6aa69187e16761bf0c',
  object: 'chat.completion.chunk',
  created: 1787150060,
  model: 'mistral-small-latest',
};
const XEROTIER = {
  id: 'chatcmpl-abc123',
  object: 'chat.completion.chunk',
  created: 1706123456,
  model: 'llama-3.1-8b',
  service_tier: null,
  system_fingerprint: null,
};

/** One in this many events is a vendor event. */
const VENDOR_EVERY = 20;
const ARGUMENTS_OF_A_CALL = 50;

/** The messages of the stream of Converse with this number of events. {@link streamText} has the same texts as chat. */
export function converseWire(events: number): Buffer[] {
  const chat = [...eventsOf('converse', events)].slice(1, -1);
  const random = seeded(events + 1);
  const texts = chat.map((event) => converseText(textOf(event), padding(random)));
  return [converseStart(), ...texts, converseEnd()];
}

function textOf({ choices }: Data): string {
  const [first] = choices as readonly { readonly delta: { readonly content: string } }[];
  return first?.delta.content ?? '';
}

/** A complete stream with this number of events, not counting `[DONE]`, as an upstream sends it. */
export function streamText(name: StreamName, events: number): string {
  if (name === 'anthropic') return anthropicStream(events);
  if (name === 'gemini') return geminiStream(events);
  if (name === 'responses') return responsesStream(events);
  return [...eventsOf(name, events)].map(dataEvent).join('') + DONE_EVENT;
}

function geminiStream(events: number): string {
  const random = seeded(events);
  const texts = Array.from({ length: events - 2 }, (_, at) => geminiText(word(random), at + 2));
  return geminiStart() + texts.join('') + geminiEnd();
}

function responsesStream(events: number): string {
  const random = seeded(events);
  const texts = Array.from({ length: events - RESPONSES_ENVELOPE_EVENTS }, () => word(random));
  const deltas = texts.map((text, at) => responsesText(text, at, padding(random)));
  return responsesStart() + deltas.join('') + responsesEnd(texts.join(''), texts.length);
}

function anthropicStream(events: number): string {
  const random = seeded(events);
  const texts = Array.from({ length: events - ENVELOPE_EVENTS }, () => anthropicText(word(random), random));
  return anthropicStart() + texts.join('') + anthropicEnd();
}

export const DONE_EVENT = 'data: [DONE]\n\n';

export function dataEvent(data: Data): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

function* eventsOf(name: StreamName, events: number): Generator<Data> {
  const random = seeded(events);
  yield eventAt(name, 0, random);
  for (let at = 1; at < events - 1; at++) yield eventAt(name, at, random, at === events - 2);
  yield finishOf(name);
}

/** The first event has the role, and the last one before the finish ends a call's arguments. */
function eventAt(name: StreamName, at: number, random: () => number, isLast = false): Data {
  const isFirst = at === 0;
  const content = isFirst ? '' : word(random);
  const role = isFirst ? { role: 'assistant' } : {};
  if (name === 'mistral') {
    const choices = [{ index: 0, delta: { ...role, content }, finish_reason: null }];
    return isFirst ? { ...MISTRAL, choices } : { ...MISTRAL, choices, p: padding(random) };
  }
  if (name === 'xerotier') {
    if (at % VENDOR_EVERY === VENDOR_EVERY - 1) return vendorEvent(at);
    return { ...XEROTIER, choices: [choice({ ...role, content }, null)], usage: null };
  }
  if (name === 'reasoning') {
    return deepseek({ ...role, content: null, reasoning_content: content }, null, null);
  }
  if (name === 'tools' && !isFirst)
    return deepseek({ tool_calls: [fragment(at - 1, content, isLast)] }, null, null);
  return deepseek({ ...role, content }, null, null);
}

/** A text event of a paced stream. That of Converse has the same texts as chat. */
export function pacedEvent(stream: PacedStream, content: string): string {
  if (stream === 'gemini') return geminiText(content);
  if (stream === 'responses') return responsesText(content);
  return stream === 'anthropic' ? anthropicText(content) : dataEvent(deepseek({ content }, null, null));
}

export function pacedStart(stream: PacedStream): string {
  if (stream === 'anthropic') return anthropicStart();
  if (stream === 'gemini') return geminiStart();
  if (stream === 'responses') return responsesStart();
  return dataEvent(deepseek({ role: 'assistant', content: '' }, null, null));
}

export function pacedEnd(stream: PacedStream): string {
  if (stream === 'gemini') return geminiEnd();
  if (stream === 'responses') return responsesEnd();
  return stream === 'anthropic' ? anthropicEnd() : dataEvent(finishOf('deepseek')) + DONE_EVENT;
}

/** The response of the requests section: one event with all text, or one object. */
export function oneFrameText(): string {
  return dataEvent(deepseek({ role: 'assistant', content: 'Hello' }, 'stop', USAGE)) + DONE_EVENT;
}

export function wholeAnswer(): string {
  const message = { role: 'assistant', content: 'Hello' };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }];
  return JSON.stringify({ ...DEEPSEEK, object: 'chat.completion', choices, usage: USAGE });
}

/** The error of refused requests. */
export const REFUSAL =
  'The maximum context length of this model is 131072 tokens. You requested 140000 tokens (139000 in the messages, 1000 in the completion).';

const MESSAGE_CHARS = 2000;

/** The messages of an agent's conversation, of about this many bytes. */
export function conversation(bytes: number): readonly object[] {
  const random = seeded(bytes);
  const messages: object[] = [];
  for (let written = 0; written < bytes; ) {
    let content = '';
    while (content.length < MESSAGE_CHARS && written + content.length < bytes)
      content += WORDS[Math.floor(random() * WORDS.length)] ?? '';
    messages.push({ role: messages.length % 2 === 0 ? 'user' : 'assistant', content });
    written += Buffer.byteLength(content);
  }
  return messages;
}

function finishOf(name: StreamName): Data {
  if (name === 'mistral') {
    const choices = [{ index: 0, delta: { content: '' }, finish_reason: 'stop' }];
    return { ...MISTRAL, choices, usage: USAGE, p: 'abcde' };
  }
  if (name === 'xerotier') return { ...XEROTIER, choices: [choice({}, 'stop')], usage: USAGE };
  return deepseek({ content: '' }, name === 'tools' ? 'tool_calls' : 'stop', USAGE);
}

function deepseek(delta: Data, finish: string | null, usage: Data | null): Data {
  return { ...DEEPSEEK, choices: [choice(delta, finish)], usage };
}

function choice(delta: Data, finish: string | null): Data {
  return { index: 0, delta, logprobs: null, finish_reason: finish };
}

/** Consecutive tool calls, each in fragments of its arguments, a JSON object of one text. */
function fragment(at: number, text: string, isLast: boolean): Data {
  const index = Math.floor(at / ARGUMENTS_OF_A_CALL);
  const place = at % ARGUMENTS_OF_A_CALL;
  if (place > 0) {
    const before = place === 1 ? '{"text":"' : '';
    const after = isLast || place === ARGUMENTS_OF_A_CALL - 1 ? '"}' : '';
    return { index, function: { arguments: before + JSON.stringify(text).slice(1, -1) + after } };
  }
  return { index, id: `call_00_${index}`, type: 'function', function: { name: 'weather', arguments: '' } };
}

function vendorEvent(at: number): Data {
  if (at % (2 * VENDOR_EVERY) === VENDOR_EVERY - 1) {
    return {
      type: 'x_research.reading',
      name: 'fetch_url',
      arguments: '{"url":"https://example.org/weirs"}',
    };
  }
  return { type: 'x_deep_think.subtask_completed', subtask_index: at, input_tokens: 120, output_tokens: 45 };
}

export function word(random: () => number): string {
  return WORDS[Math.floor(random() * WORDS.length)] ?? '';
}

export function padding(random: () => number): string {
  return ALPHABET.slice(0, 1 + Math.floor(random() * ALPHABET.length));
}
