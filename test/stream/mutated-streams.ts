/** Generates streams of nearly identical frames: a fixture's frames, changed in their JSON, their lines or their bytes. */

import type { Conversion } from '../contract/convert.ts';
import { conversionOf } from '../contract/expectation.ts';
import { fixtures } from '../contract/fixtures.ts';
import { seeded } from '../random.ts';

/** Whole numbers from 0 below `limit`. */
type Random = (limit: number) => number;

export interface MutatedStream {
  readonly conversion: Conversion;
  /** The stream's bytes as they are read. */
  readonly reads: readonly Uint8Array[];
}

const FRAMES_A_STREAM = 40;
/** Shares of a hundred frames. Most bytes stay unchanged, because invalid JSON ends the stream. */
const PLAIN = 60;
const CHANGED_JSON = 33;
const CHANGED_LINES = 6;

const encoder = new TextEncoder();

const TEXTS = [
  ...[' the', ' weir', 'ing', '\\n', '\\"', '\\\\', '\\u00e9', '\\ud83c\\udf0a', '\\ud800', ' é', '—', '🌊'],
  ...['', '[DONE]', 'data: ', '"},', '\\"},\\"logprobs\\":null', '{\\"content\\":\\"x\\"}', 'x'.repeat(60)],
  ...[
    '\\"finish_reason\\":\\"stop\\"',
    '\\/',
    '\\b\\f\\t',
    'weir\u00a4text',
    'weir\u00a4padding',
    '\u007f',
    '\u2028',
  ],
  ...[
    'weir\\u00a4text',
    'thinking',
    'text',
    'error',
    'content',
    'index',
    'choices',
    'reasoning.text',
    'stop',
  ],
];
const VALUES = [
  ...[
    'null',
    '""',
    '"x"',
    '0',
    '1',
    '-1',
    '1.5e3',
    'true',
    '[]',
    '{}',
    '"assistant"',
    '"stop"',
    '"tool_calls"',
  ],
  ...[
    '[{"index":0}]',
    '{"content":"y"}',
    '[{"type":"text","text":"y"}]',
    '{"content":[{"token":"y","logprob":-1}]}',
    '{"prompt_tokens":1}',
    '"c-2"',
  ],
  ...[
    '"error"',
    '"STOP"',
    '{"candidatesTokenCount":7}',
    '{"blockReason":"SAFETY"}',
    '"text"',
    '"thinking"',
    '[{"type":"reasoning.text","text":"y"}]',
    '[{"data":"y","text":"y"}]',
  ],
];
const KEYS = [
  ...['content', 'reasoning_content', 'reasoning', 'text', 'role', 'refusal', 'tool_calls', 'function_call'],
  ...['delta', 'message', 'choices', 'index', 'finish_reason', 'logprobs', 'usage', 'error', 'id', 'object'],
  ...['created', 'model', 'system_fingerprint', 'service_tier', 'type', 'p', 'obfuscation', 'x_groq', 'any'],
  ...['reasoning_details', 'summary', 'signature', 'data', 'thinking', 'detail'],
];
const GEMINI_KEYS = [
  ...['usageMetadata', 'candidatesTokenCount', 'promptTokenCount', 'totalTokenCount', 'thoughtsTokenCount'],
  ...['toolUsePromptTokenCount', 'finishReason', 'thought', 'thoughtSignature', 'parts', 'promptFeedback'],
];
const LINES = [
  ...[
    ': a comment\n',
    'event: message\n',
    'event: content_block_delta\n',
    'event: error\n',
    'event: x_named\n',
    'id: 7\n',
    'retry: 10\n',
    '\n',
    '\r\n',
    '\r',
  ],
  ...['data: {"type":"x_research.reading"}\n\n', 'data\n', 'data:\n', 'data: {}\n\n', '\ufeff', ' \n'],
];

interface Base {
  readonly conversion: Conversion;
  readonly first: Framed;
  /** Events that contain a text. */
  readonly texts: readonly Framed[];
  /** The end of its events. */
  readonly end: string;
}

/** An event's data, and the lines before it. */
interface Framed {
  readonly head: string;
  readonly data: string;
}

const COUNTS = ['0', '1', '7', '42', '99', '1234567890'];
/** Mostly invalid JSON, which ends a stream. */
const NO_COUNTS = ['007', '1.5', '1e3', '-1', '12345678901234567', 'null', '"7"'];
const HAS_CRLF = /\r\n\r\n/;

const HOLDS_TEXT = /"(?:content|reasoning_content|reasoning|text|thinking)": ?"(?:[^"\\]|\\.)+"/;

const bases: readonly Base[] = fixtures
  .filter(({ upstreamIsStream }) => upstreamIsStream)
  .flatMap((fixture) => {
    const text = new TextDecoder().decode(fixture.upstream);
    const events = text.split(/\r?\n\r?\n/);
    const framed = events.flatMap(framedOf);
    const texts = framed.filter(({ data }) => HOLDS_TEXT.test(data) && !/"finish_?[rR]eason": ?"/.test(data));
    const [first] = framed;
    if (first === undefined || texts.length === 0) return [];
    return [
      {
        conversion: conversionOf(fixture),
        first,
        texts,
        end: HAS_CRLF.test(text) ? '\r\n\r\n' : '\n\n',
      },
    ];
  });

function framedOf(event: string): Framed[] {
  const [, head = '', data] = /^(event: \w+\n)?data: (\{.*\})$/.exec(event) ?? [];
  return data === undefined ? [] : [{ head, data }];
}

export function mutatedStream(seed: number): MutatedStream {
  const next = seeded(seed);
  const random: Random = (limit) => Math.floor(next() * limit);
  const { conversion, first, texts, end } = pick(random, bases);
  const frame = pick(random, texts);
  let stream = `${first.head}data: ${first.data}${end}`;
  for (let at = 0; at < FRAMES_A_STREAM; at++) {
    const { head, data: plain } = random(4) === 0 ? pick(random, texts) : frame;
    const data = withBlanks(random, head, withCounts(random, withText(random, plain)));
    const kind = random(100);
    if (kind < PLAIN) stream += `${head}data: ${data}${end}`;
    else if (kind < PLAIN + CHANGED_JSON) stream += `${head}data: ${changeJson(random, data)}${end}`;
    else if (kind < PLAIN + CHANGED_JSON + CHANGED_LINES) stream += head + changeLines(random, data);
    else stream += changeBytes(random, `${head}data: ${data}${end}`);
  }
  return {
    conversion,
    reads: [...cutAnywhere(random, encoder.encode(`${stream}data: [DONE]\n\n`))],
  };
}

function pick<T>(random: Random, from: readonly T[]): T {
  const picked = from[random(from.length)];
  if (picked === undefined) throw new Error('There is nothing to pick from');
  return picked;
}

/** Events with names also have spaces before their last brace, and sometimes other white space. */
function withBlanks(random: Random, head: string, data: string): string {
  if (head === '') return data;
  const blanks = random(20) === 0 ? '\t ' : ' '.repeat(random(9));
  return data.replace(/\s*\}$/, `${blanks}}`);
}

/** Replaces the event's first text, or all of them by the same one. */
function withText(random: Random, data: string): string {
  const text = random(3) === 0 ? pick(random, TEXTS) : pick(random, TEXTS) + pick(random, TEXTS);
  const texts = random(2) === 0 ? HOLDS_TEXT : new RegExp(HOLDS_TEXT, 'g');
  return data.replace(texts, (member) => `${member.slice(0, member.indexOf(':') + 1)}"${text}"`);
}

/** Counts that grow, or are invalid. */
function withCounts(random: Random, data: string): string {
  return data.replace(
    /(TokenCount": ?)\d+/g,
    (_, name) => name + pick(random, random(60) === 0 ? NO_COUNTS : COUNTS),
  );
}

/** Still JSON, unless the text itself breaks it. */
function changeJson(random: Random, data: string): string {
  const members = [...data.matchAll(/"\w+": ?(?:"(?:[^"\\]|\\.)*"|[-\d.]+|null|true|false|\[\]|\{\})/g)];
  const member = members.length === 0 ? undefined : pick(random, members);
  if (member === undefined) return data;
  const [text] = member;
  const colon = text.indexOf(':');
  const [head, tail] = [data.slice(0, member.index), data.slice(member.index + text.length)];
  const other = `"${pick(random, random(8) === 0 ? GEMINI_KEYS : KEYS)}":${pick(random, VALUES)}`;
  switch (random(9)) {
    case 0:
      return `${head}${text.slice(0, colon)}:${pick(random, VALUES)}${tail}`;
    case 1:
      return `${head}${text},${other}${tail}`;
    case 2:
      return `${head}${other},${text}${tail}`;
    case 3:
      return `${head}${text.slice(0, colon)}:${pick(random, VALUES)},${text}${tail}`;
    case 4:
      return `${head}${text},${text.slice(0, colon)}:${pick(random, VALUES)}${tail}`;
    case 5:
      return `${head}"\\u00${text.charCodeAt(1).toString(16)}${text.slice(2)}${tail}`;
    case 6:
      return `${head}${text.slice(0, colon + 1)} ${pick(random, ['', ' ', '\t'])}${text.slice(colon + 1)}${tail}`;
    case 7:
      return tail.startsWith(',') ? head + tail.slice(1) : head + other + tail;
    default:
      return `${head}${other}${tail}`;
  }
}

function changeLines(random: Random, data: string): string {
  switch (random(6)) {
    case 0:
      return `${pick(random, LINES)}data: ${data}\n\n`;
    case 1:
      return `data: ${data}\n${pick(random, LINES)}\n`;
    case 2:
      return `data: ${data}\r\n\r\n`;
    case 3:
      return `data:${data}\n\n`;
    case 4:
      return `data: ${data.replace(',', ',\ndata: ')}\n\n`;
    default:
      return `data: ${data}\r\r`;
  }
}

function changeBytes(random: Random, frame: string): string {
  const at = random(frame.length);
  const inserted = random(2) === 0 ? String.fromCharCode(random(128)) : '';
  return frame.slice(0, at) + inserted + frame.slice(at + random(3));
}

function* cutAnywhere(random: Random, bytes: Uint8Array): Generator<Uint8Array> {
  const longest = pick(random, [40, 400, 4096, 100_000]);
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random(longest);
    yield bytes.subarray(at, end);
    at = end;
  }
}
