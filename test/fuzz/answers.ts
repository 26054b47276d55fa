/**
 * Generates responses of a hostile upstream: valid and invalid events, mutated, compressed, truncated, reset or
 * hanging, with unusual heads.
 */
import { gzipSync } from 'node:zlib';
import type { Answer } from '../hostile/harness/answer.ts';
import { gzipOf } from '../hostile/harness/bytes.ts';
import { chunk, delta, failure, usage } from './frames.ts';
import {
  anyJson,
  anyString,
  chance,
  costlyJson,
  cutUp,
  mostly,
  mutate,
  pick,
  type Random,
  someOf,
} from './random.ts';

const MAX_EVENTS = 40;
const STATUSES = [
  201, 204, 206, 301, 302, 304, 307, 400, 401, 402, 403, 404, 408, 413, 418, 422, 429, 500, 502, 503, 504,
  522, 529,
];
const TYPES = [
  'text/html',
  'text/plain',
  'application/json',
  'text/event-stream',
  'application/octet-stream',
  '',
];
const HEADERS = [
  ...[
    'set-cookie: a=b',
    'retry-after: 1',
    `retry-after: ${'9'.repeat(3000)}`,
    'x-ratelimit-limit-requests: \xff',
    'location: http://127.0.0.1/',
  ],
  ...[
    'access-control-allow-origin: *',
    'x-weir-provider: other',
    'content-disposition: attachment',
    'x-request-id: theirs',
    'connection: close',
  ],
];

/** @param isStreamed whether the request is for a stream */
export function makeAnswer(random: Random, isStreamed: boolean): Answer {
  if (chance(random, 2)) return garbage(random);
  const isStream = chance(random, 90) ? isStreamed : !isStreamed;
  const text = Buffer.from(isStream ? eventStream(random) : plainText(random));
  const bytes = chance(random, 15) ? mutate(random, text) : text;
  const type = chance(random, 92)
    ? isStream
      ? 'text/event-stream'
      : 'application/json'
    : pick(random, TYPES);
  const status = chance(random, 88) ? 200 : pick(random, STATUSES);
  const headers = [`content-type: ${type}`, ...HEADERS.filter(() => chance(random, 4))];
  const [encoding, pieces] = packed(random, bytes);
  if (encoding !== '') headers.push(`content-encoding: ${encoding}`);
  return {
    head: `HTTP/1.1 ${status} X\r\n${headers.map((line) => `${line}\r\n`).join('')}`,
    pieces,
    framing: pick(random, [
      'chunks',
      'chunks',
      'chunks',
      'chunks',
      'length',
      'length',
      'long length',
      'close',
    ]),
    ending: pick(random, [
      ...Array.from({ length: 12 }, () => 'whole' as const),
      'cut',
      'cut',
      'reset',
      'hang',
    ]),
    pauseMs: chance(random, 70) || pieces.length > 100 ? 0 : random(60),
  };
}

function packed(random: Random, bytes: Uint8Array): [encoding: string, pieces: readonly Uint8Array[]] {
  const kind = random(100);
  if (kind < 6) return ['gzip', cutUp(random, gzipSync(bytes))];
  if (kind < 8) return [pick(random, ['gzip', 'br', 'deflate', 'zip']), cutUp(random, bytes)];
  if (kind < 10) {
    const unit = Buffer.from(
      pick(random, ['\n', ': c\n', 'data:\n\n', 'data: {}\n\n', '\0', 'a']).repeat(10_000),
    );
    return ['gzip', gzipOf(bytes, unit, random(400))];
  }
  return ['', cutUp(random, bytes)];
}

function garbage(random: Random): Answer {
  const bytes = pick(random, [
    Buffer.from('HTTP/1.1 200\r\n'),
    Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'),
    Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef'),
    Buffer.from(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}\r\n\r\n`),
    Buffer.from('220 mail.example.com ESMTP\r\n'),
    Buffer.from(
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}',
    ),
    Buffer.alloc(5000, 0),
    Buffer.alloc(0),
  ]);
  return {
    head: '',
    pieces: [bytes],
    framing: 'raw',
    ending: pick(random, ['cut', 'reset', 'hang']),
    pauseMs: 0,
  };
}

function eventStream(random: Random): string {
  let text = chance(random, 3) ? '\ufeff' : '';
  const usual = `data: ${chunk(random)}\n\n`;
  for (let count = random(MAX_EVENTS); count > 0; count--) {
    if (chance(random, 50)) text += usual.replace('"a"', anyString(random));
    else text += event(random);
  }
  if (chance(random, 3)) text += usual.repeat(1 + random(4000));
  if (chance(random, 75))
    text += `data: {"choices":[{"index":0,"delta":{},"finish_reason":${mostly(random, '"stop"', '"length"', '"error"')}}]}\n\n`;
  if (chance(random, 30)) text += `data: {"choices":[],"usage":${usage(random)}}\n\n`;
  return chance(random, 75) ? `${text}data: [DONE]\n\n` : text;
}

function event(random: Random): string {
  switch (random(16)) {
    case 0:
      return pick(random, [
        ': comment\n\n',
        ':\n',
        'retry: 1\n\n',
        'id: 7\n',
        '\n\n\n',
        'data\n\n',
        'data:\n\n',
        'nonsense\n\n',
      ]);
    case 1:
      return `event: ${pick(random, ['error', 'message', 'x_a', 'ping', ''])}\ndata: ${anyJson(random)}\n\n`;
    case 2:
      return `data: {"error":${mostly(random, failure(random), anyString(random))}}\n\n`.repeat(
        chance(random, 25) ? 1 : 0,
      );
    case 3:
      return `data: ${someOf(random, [
        ['type', mostly(random, '"x_a.b"', '"x_chat.metadata"')],
        ['usage', usage(random), 50],
        ['text', anyString(random), 50],
      ])}\n\n`;
    case 4:
      return chance(random, 15) ? `data: ${anyJson(random)}\n\n` : '';
    case 5:
      return chance(random, 15)
        ? `data: {"choices":[{"index":0,"delta":{"content":"a"},"x":${costlyJson(random)}}]}\n\n`
        : '';
    case 6:
      return (
        `data: ${chunk(random)}`.replaceAll(',', ',\ndata: ') + pick(random, ['\n\n', '\r\n\r\n', '\r\r'])
      );
    default:
      return `data: ${chunk(random)}${pick(random, ['\n\n', '\n\n', '\n\n', '\r\n\r\n', '\r\r'])}`;
  }
}

function plainText(random: Random): string {
  if (chance(random, 5))
    return pick(random, [
      '',
      '{',
      'null',
      '[]',
      '<html><title>502 Bad Gateway</title></html>',
      anyJson(random),
    ]);
  if (chance(random, 10)) return `{"error":${mostly(random, failure(random), anyString(random))}}`;
  const message = delta(random)
    .replace(/^\{/, chance(random, 90) ? '{"role":"assistant",' : '{')
    .replace(/,\}$/, '}');
  const one = someOf(random, [
    ['index', mostly(random, '0')],
    ['message', message],
    ['text', mostly(random, '"a"'), 30],
    ['finish_reason', mostly(random, '"stop"', '"length"', 'null')],
    ['logprobs', chance(random, 10) ? costlyJson(random) : 'null', 20],
  ]);
  return someOf(random, [
    ['id', mostly(random, '"c-1"', anyString(random)), 90],
    ['object', mostly(random, '"chat.completion"'), 90],
    ['created', mostly(random, '1700000000'), 90],
    ['model', mostly(random, '"m"', anyString(random)), 90],
    ['choices', mostly(random, `[${one}]`, `[${one},${one}]`)],
    ['usage', mostly(random, usage(random)), 90],
    ['x', chance(random, 20) ? costlyJson(random) : anyJson(random), 10],
  ]);
}
