/** How many of a text stream's frames take the fast path, provider by provider: counted, not timed. */
import { convertStream, cut } from '../contract/convert.ts';
import { seeded } from '../random.ts';
import { anthropicEnd, anthropicStart, anthropicText } from './anthropic-stream.ts';
import { geminiEnd, geminiStart, geminiText } from './gemini-stream.ts';
import { type Data, DONE_EVENT, dataEvent, padding, word } from './streams.ts';

const EVENTS = 2000;
const READ_BYTES = 4096;
const BASE = { id: 'chatcmpl-7', object: 'chat.completion.chunk', created: 1780944343, model: 'm' };
const OBFUSCATED = { service_tier: 'default', system_fingerprint: 'fp_86f87dc6f1' };

function choices(delta: Data, rest: Data = {}): readonly Data[] {
  return [{ index: 0, delta, ...rest, finish_reason: null }];
}

export const SHARE_NAMES = [
  'deepseek',
  'mistral',
  'opentoken',
  'xerotier',
  'openai',
  'groq',
  'openrouter',
  'openrouter reasoning',
  'anthropic',
  'gemini',
] as const;
type ShareName = (typeof SHARE_NAMES)[number];
type ChatName = Exclude<ShareName, 'anthropic' | 'gemini'>;

/** A text frame of each, as its recorded streams have it; OpenRouter's has the role each time, and a text twice. */
const TEXT_FRAMES: {
  readonly [N in ChatName]: (content: string, random: () => number) => Data;
} = {
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
};

function geminiFrame(text: string, random: () => number): string {
  return geminiText(text, Math.floor(random() * EVENTS));
}

function chatFrame(name: ChatName) {
  return (text: string, random: () => number) => dataEvent(TEXT_FRAMES[name](text, random));
}

/** From 0 to 1. */
export function fastShare(name: ShareName): number {
  const random = seeded(EVENTS);
  const frame = name === 'anthropic' ? anthropicText : name === 'gemini' ? geminiFrame : chatFrame(name);
  const frames = Array.from({ length: EVENTS }, () => frame(word(random), random));
  const opening = dataEvent({ ...BASE, choices: choices({ role: 'assistant', content: '' }) });
  const own = name === 'anthropic' ? [anthropicStart(), anthropicEnd()] : [geminiStart(), geminiEnd()];
  const [start, end] = name === 'anthropic' || name === 'gemini' ? own : [opening, DONE_EVENT];
  const bytes = new TextEncoder().encode(start + frames.join('') + end);
  const [provider = name] = name.split(' ');
  const asked = { provider, route: 'chat', model: 'm', usageChunk: false } as const;
  return convertStream([...cut(bytes, READ_BYTES)], asked).splicedFrames / EVENTS;
}
