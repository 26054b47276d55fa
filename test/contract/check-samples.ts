/** Parts of valid streams, which the checker's tests join and then break. */
import type { Expectation } from '../../tools/conformance/contract/check.ts';
import type { Json, JsonObject } from '../../tools/conformance/contract/json.ts';

export const expected: Expectation = {
  shape: 'chat',
  provider: 'deepseek',
  usage: 'finish',
  vendorEvents: 'strip',
  errorFrames: 'data',
};

export const DONE = 'data: [DONE]\n\n';
export const HEARTBEAT = ': heartbeat\n\n';
export const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 3,
  total_tokens: 15,
  prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 4, audio_tokens: 1 },
  completion_tokens_details: {
    reasoning_tokens: 2,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
};
export const LOGPROBS = {
  content: [
    {
      token: 'é',
      logprob: -0.5,
      bytes: [195, 169],
      top_logprobs: [{ token: 'é', logprob: -0.5, bytes: null }],
    },
  ],
  refusal: null,
};
export const TEXT_LOGPROBS = {
  tokens: ['a'],
  token_logprobs: [-0.5],
  top_logprobs: [{ a: -0.5 }],
  text_offset: [0],
};

export function dataFrame(value: Json): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

export function chunk(choices: Json[], more: JsonObject = {}): string {
  return dataFrame({
    id: 'chatcmpl-0001',
    object: 'chat.completion.chunk',
    created: 1_800_000_000,
    model: 'deepseek/deepseek-chat',
    service_tier: 'default',
    system_fingerprint: 'fp_1',
    choices,
    ...more,
  });
}

export function choice(delta: JsonObject, more: JsonObject = {}): JsonObject {
  return { index: 0, delta, logprobs: null, finish_reason: null, ...more };
}

/** A chunk of one choice. */
export function deltaChunk(delta: JsonObject, more: JsonObject = {}): string {
  return chunk([choice(delta, more)]);
}

export function textChunk(text: string, more: JsonObject = {}): string {
  return textFrame([{ index: 0, text, logprobs: null, finish_reason: null, ...more }]);
}

function textFrame(choices: Json[], more: JsonObject = {}): string {
  return dataFrame({
    id: 'cmpl-0001',
    object: 'text_completion',
    created: 1_800_000_000,
    model: 'deepseek/deepseek-chat',
    system_fingerprint: 'fp_1',
    choices,
    ...more,
  });
}

export function callFragment(index: number, id: string, args: string): JsonObject {
  return { index, id, type: 'function', function: { name: 'get_weather', arguments: args } };
}

export function laterFragment(index: number, args: string): JsonObject {
  return { index, function: { arguments: args } };
}

export function errorFrame(message: string, more: JsonObject = {}): string {
  return dataFrame({
    error: { message, type: 'server_error', param: null, code: 'upstream_truncated', ...more },
  });
}

export const OPEN = deltaChunk({ role: 'assistant', content: '' });
export const HELLO = deltaChunk({ content: 'Hello' });
export const STOP = deltaChunk({}, { finish_reason: 'stop' });
export const STOP_WITH_USAGE = chunk([choice({}, { finish_reason: 'stop' })], { usage: USAGE });
export const USAGE_CHUNK = chunk([], { usage: USAGE });
export const TEXT_USAGE_CHUNK = textFrame([], { usage: USAGE });
export const ERROR = errorFrame('DeepSeek ended the stream before the answer was complete');
export const VENDOR = 'data: {"type": "x_research.searching", "name":"web_search"}\n\n';
/** Reasoning as OpenRouter sends it: pieces of text, and the signature after the last piece. */
export const DETAIL = { type: 'reasoning.text', text: 'Hm', index: 0 };
export const SIGNATURE = { type: 'reasoning.text', signature: 'EsQBCk', index: 0 };
export const CALLS = [
  OPEN,
  deltaChunk({ tool_calls: [callFragment(0, 'call_1', '')] }),
  deltaChunk({ tool_calls: [laterFragment(0, '{"city":')] }),
  deltaChunk({ tool_calls: [laterFragment(0, '"Gda\\u0144sk"}'), callFragment(1, 'call_2', '{}')] }),
  deltaChunk({}, { finish_reason: 'tool_calls' }),
  DONE,
];

export type Case = [name: string, frames: string[], more?: Partial<Expectation>];

/** A complete stream with the given frames in the middle. */
export function around(...frames: string[]): string[] {
  return [OPEN, ...frames, STOP, DONE];
}
