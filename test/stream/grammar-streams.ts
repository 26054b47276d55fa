/** Generates streams by a grammar: envelopes that repeat, and texts that equal keys, discriminators or the fast path's marks. */
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import type { Conversion } from '../contract/convert.ts';
import { seeded } from '../random.ts';
import { BESIDE, envelope, PADDING, pick, type Random, TEXT } from './grammar-envelopes.ts';

export interface GrammarStream {
  readonly conversion: Conversion;
  readonly reads: readonly Uint8Array[];
}

const FRAMES = 24;
/** Shares of a hundred frames. */
const SAME_ENVELOPE = 75;
const OTHER_ENVELOPE = 88;

const encoder = new TextEncoder();

/** JSON strings without their quotes that a naive search would misread. */
const TEXTS = [
  ...[
    'a',
    ' weir',
    'x'.repeat(40),
    'é水🌊',
    '\\n\\t',
    '\\"',
    '\\\\',
    '\\u0061',
    '\\ud83c\\udf0a',
    '\\ud800',
    '\\/',
    '',
    ' ',
  ],
  ...[
    'text',
    'thinking',
    'error',
    'chunk',
    'content',
    'delta',
    'index',
    'object',
    'type',
    'choices',
    'reasoning',
    'stop',
  ],
  ...[
    'reasoning.text',
    'chat.completion.chunk',
    'assistant',
    'null',
    '0',
    'id',
    'm',
    'c-1',
    'summary',
    'role',
  ],
  ...[
    'weir\u00a4text',
    'weir\\u00a4text',
    '\\u0077eir\u00a4text',
    'weir\u00a4weir\u00a4 7',
    'weir\u00a4padding',
    'weir\u00a4',
  ],
  ...[
    '{\\"content\\":\\"a\\"}',
    '\\"content\\":\\"',
    '"},{"',
    'data: ',
    '[DONE]',
    '\\u000a\\u000adata: [DONE]',
    '\u2028',
    '\u007f',
  ],
];
/** Text that ends or breaks a string too early. */
const BROKEN = ['"', '\\', '\\u12', '\t', '\u0000', '\\x', 'a","b":"c'];
const PROVIDERS = ['compatible', 'openai', 'mistral', 'deepseek', 'xerotier', 'openrouter', 'groq'];

export function grammarStream(seed: number): GrammarStream {
  const next = seeded(seed);
  const random: Random = (limit) => Math.floor(next() * limit);
  const isText = random(8) === 0;
  const envelopes = [envelope(random, isText), envelope(random, isText)];
  const texts = [pick(random, TEXTS), pick(random, TEXTS), pick(random, TEXTS)];
  let stream =
    random(2) === 0
      ? 'data: {"id":"c-1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
      : '';
  for (let i = 0; i < FRAMES; i++) {
    const text = random(3) === 0 ? pick(random, texts) : pick(random, TEXTS);
    const beside = random(3) === 0 ? text : pick(random, random(3) === 0 ? TEXTS : texts);
    const kind = random(100);
    if (kind < SAME_ENVELOPE) stream += frame(random, envelopes[0] ?? '', text, beside);
    else if (kind < OTHER_ENVELOPE) stream += frame(random, envelopes[1] ?? '', text, beside);
    else stream += oddFrame(random, envelopes[0] ?? '', isText, text, beside);
  }
  return {
    conversion: conversionOf(random, isText),
    reads: [...cutAnywhere(random, encoder.encode(stream + end(random)))],
  };
}

function conversionOf(random: Random, isText: boolean): Conversion {
  const policies = {
    ...DEFAULT_POLICIES,
    reasoning: random(4) === 0 ? ('strip' as const) : ('pass' as const),
    usageChunk: pick(random, ['finish', 'on_request', 'always'] as const),
  };
  return {
    provider: isText ? 'openai' : pick(random, PROVIDERS),
    route: isText ? 'completions' : 'chat',
    model: 'm',
    usageChunk: random(2) === 0,
    choices: 1 + random(3),
    policies,
    ...(random(10) === 0 ? { maxEventBytes: 150 + random(400) } : {}),
  };
}

function fill(random: Random, data: string, text: string, beside: string): string {
  const padding = 'x'.repeat(random(9));
  return data
    .replaceAll(TEXT, () => text)
    .replaceAll(BESIDE, () => beside)
    .replaceAll(PADDING, () => padding);
}

function frame(random: Random, data: string, text: string, beside: string): string {
  return `data: ${fill(random, data, text, beside)}\n\n`;
}

/** A frame that changes how later ones are read, or ends the stream. */
function oddFrame(random: Random, data: string, isText: boolean, text: string, beside: string): string {
  const filled = fill(random, data, text, beside);
  switch (random(14)) {
    case 0:
      return frame(random, data, pick(random, BROKEN), beside);
    case 1:
      return `data: {"choices":[{"index":${random(3)},"delta":{},"finish_reason":"${pick(random, ['stop', 'length', 'error', 'eos'])}"}]}\n\n`;
    case 2:
      return `data: {"choices":[],"usage":{"prompt_tokens":${random(9)},"completion_tokens":${random(9)}}}\n\n`;
    case 3:
      return `data: {"choices":[{"index":${random(2)},"delta":{"tool_calls":[{"index":0,"id":"call","function":{"name":"f","arguments":"{}"}}]}}]}\n\n`;
    case 4:
      return random(4) === 0 ? `data: {"error":{"message":"${beside}"}}\n\n` : ': comment\n\n';
    case 5:
      return `data: ${filled.replace(/\]\}$/, ',{"index":1,"delta":{"content":"b"},"text":"b"}]}')}\n\n`;
    case 6:
      return `event: ${pick(random, ['message', 'x_named', ''])}\ndata: ${filled}\n\n`;
    case 7:
      return `data: ${filled.replace(',', ',\ndata: ')}\n\n`;
    case 8:
      return `data: ${filled}${pick(random, ['\r\n\r\n', '\r\r', '\n\r\n', '\n \n\n'])}`;
    case 9:
      return `data: ${filled.replace('{', '{"system_fingerprint":"f","service_tier":"t",')}\n\n`;
    case 10:
      return `data: {"type":"${pick(random, ['x_a.b', 'error', 'chunk'])}","text":"${beside}"}\n\n`;
    case 11:
      return `data:${filled}\n\n`;
    case 12:
      return `data: ${filled.replace('"index":0', '"index":1').replace('"c-1"', '"c-2"')}\n\n`;
    default:
      return `data: ${isText ? filled : filled.replace('"delta"', '"logprobs":{"content":[{"token":"a","logprob":-1}]},"delta"')}\n\n`;
  }
}

function end(random: Random): string {
  const finish = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
  return pick(random, ['data: [DONE]\n\n', `${finish}data: [DONE]\n\n`, finish, '']);
}

function* cutAnywhere(random: Random, bytes: Uint8Array): Generator<Uint8Array> {
  const longest = pick(random, [3, 40, 400, 4096, 100_000]);
  for (let at = 0; at < bytes.length; ) {
    const to = at + 1 + random(longest);
    yield bytes.subarray(at, to);
    at = to;
  }
}
