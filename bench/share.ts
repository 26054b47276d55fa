/** Counts the share of text frames that take the fast path, for each provider. */

import { responsesPassthrough } from '../src/protocols/openai-responses/passthrough.ts';
import { openaiResponses } from '../src/protocols/openai-responses/upstream-reader.ts';
import type { WriterOptions } from '../src/protocols/shared/client-protocol.ts';
import { type Conversion, convertStream, cut } from '../test/contract/convert.ts';
import { seeded } from '../test/random.ts';
import { anthropicEnd, anthropicStart, anthropicText } from './anthropic-stream.ts';
import { geminiEnd, geminiStart, geminiText } from './gemini-stream.ts';
import { responsesEnd, responsesStart, responsesText } from './responses-stream.ts';
import { type Data, DONE_EVENT, dataEvent, padding, word } from './streams.ts';

const EVENTS = 2000;
const READ_BYTES = 4096;
const BASE = { id: 'chatcmpl-7', object: 'chat.completion.chunk', created: 1780944343, model: 'm' };
const OBFUSCATED = { service_tier: 'default', system_fingerprint: 'fp_86f87dc6f1' };

function choices(delta: Data, rest: Data = {}): readonly Data[] {
  return [{ index: 0, delta, ...rest, finish_reason: null }];
}

/** A text frame of each provider, as in its recorded streams. OpenRouter's has the role in each frame, and reasoning twice. */
const TEXT_FRAMES = {
  deepseek: (content) => ({ ...BASE, choices: choices({ content }, { logprobs: null }), usage: null }),
  mistral: (content, random) => ({ ...BASE, choices: choices({ content }), p: padding(random) }),
  opentoken: (content) => ({ ...BASE, choices: choices({ content }) }),
  xerotier: (content) => ({ ...BASE, service_tier: null, choices: choices({ content }), usage: null }),
  openai: (content, random) => ({
    ...BASE,
    ...OBFUSCATED,
    choices: choices({ content }, { logprobs: null }),
    usage: null,
    obfuscation: padding(random),
  }),
  groq: (content) => ({
    ...BASE,
    system_fingerprint: 'fp_1',
    choices: choices({ content }, { logprobs: null }),
  }),
  openrouter: (content) => ({
    ...BASE,
    provider: 'Venice',
    choices: choices({ role: 'assistant', content }),
  }),
  'openrouter reasoning': (text) => {
    const reasoning_details = [{ type: 'reasoning.text', text, format: 'unknown', index: 0 }];
    const delta = { content: '', role: 'assistant', reasoning: text, reasoning_details };
    return { ...BASE, provider: 'ModelRun', choices: choices(delta, { native_finish_reason: null }) };
  },
} satisfies Record<string, (content: string, random: () => number) => Data>;

/** The frames of a stream. */
interface Shape {
  readonly start: string;
  readonly end: string;
  readonly frame: (text: string, random: () => number, at: number) => string;
  /** Default: the client and the provider speak chat. */
  readonly conversion?: Pick<Conversion, 'protocol' | 'openWriter'>;
}

const OPENING = dataEvent({ ...BASE, choices: choices({ role: 'assistant', content: '' }) });

const CHAT_SHAPES = Object.entries(TEXT_FRAMES).map(([name, frameOf]): [string, Shape] => [
  name,
  { start: OPENING, end: DONE_EVENT, frame: (text, random) => dataEvent(frameOf(text, random)) },
]);

const RESPONSES: Shape = {
  start: responsesStart(),
  end: responsesEnd(),
  frame: (text, random, at) => responsesText(text, at, padding(random)),
};

/** By provider name and variant. */
export const TEXT_STREAMS: readonly (readonly [name: string, Shape])[] = [
  ...CHAT_SHAPES,
  ['anthropic', { start: anthropicStart(), end: anthropicEnd(), frame: (text) => anthropicText(text) }],
  [
    'gemini',
    {
      start: geminiStart(),
      end: geminiEnd(),
      frame: (text, random) => geminiText(text, Math.floor(random() * EVENTS)),
    },
  ],
  ['openai responses as chat', { ...RESPONSES, conversion: { protocol: openaiResponses } }],
  [
    'openai responses passthrough',
    {
      ...RESPONSES,
      conversion: {
        protocol: openaiResponses,
        openWriter: (options: WriterOptions) =>
          responsesPassthrough(null).streamWriter({ ...options, provider: 'openai', reasoning: 'pass' }),
      },
    },
  ],
];

/** From 0 to 1. */
export function fastShare(name: string, shape: Shape): number {
  const random = seeded(EVENTS);
  const frames = Array.from({ length: EVENTS }, (_, at) => shape.frame(word(random), random, at));
  const bytes = new TextEncoder().encode(shape.start + frames.join('') + shape.end);
  const [provider = name] = name.split(' ');
  const requested = { provider, route: 'chat', model: 'm', usageChunk: false, ...shape.conversion } as const;
  return convertStream([...cut(bytes, READ_BYTES)], requested).copiedEvents / EVENTS;
}
