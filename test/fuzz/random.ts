/** Random choices, and JSON from a grammar: any type anywhere, duplicate keys, texts that break naive readers. */
import { seeded } from '../random.ts';

/** Returns an integer from 0 to below `limit`. */
export type Random = (limit: number) => number;

/** The same sequence for the same seed and case number. */
export function randomOf(seed: number, number: number): Random {
  const next = seeded(seed * 1_000_003 + number);
  return (limit) => Math.floor(next() * limit);
}

export function pick<T>(random: Random, from: readonly T[]): T {
  const picked = from[random(from.length)];
  if (picked === undefined) throw new Error('The list is empty');
  return picked;
}

/** True with this probability in percent. */
export function chance(random: Random, percent: number): boolean {
  return random(100) < percent;
}

/** JSON strings, with their quotes. */
const STRINGS = [
  ...[
    '""',
    '"a"',
    '"Hello there"',
    '" é水🌊"',
    '"\\ud800"',
    '"\\u0000"',
    '"\\n\\r\\t\\b"',
    '"\\"\\\\\\/"',
    '"\u2028"',
    '"\ufeff"',
  ],
  ...[
    '"null"',
    '"true"',
    '"__proto__"',
    '"[DONE]"',
    '"data: "',
    '"error"',
    '"stop"',
    '"x_a.b"',
    '"\\u0001\\u001f\\u007f"',
  ],
  ...[
    '"text"',
    '"thinking"',
    '"function"',
    '"tool_calls"',
    '"assistant"',
    '"user"',
    '"chat.completion.chunk"',
    '"weir\u00a4text"',
  ],
];
const NUMBERS = [
  '0',
  '1',
  '-1',
  '-0',
  '1.5',
  '1e999',
  '-1e-7',
  '9007199254740993',
  '1700000000123',
  '4294967296',
  '200',
  '503',
];
const WORDS = ['null', 'true', 'false'];
const KEYS = [
  ...[
    'a',
    'content',
    'text',
    'role',
    'type',
    'index',
    'id',
    'name',
    'function',
    'arguments',
    'error',
    'message',
    'code',
    'param',
  ],
  ...[
    'choices',
    'delta',
    'usage',
    'object',
    'model',
    'stream',
    '__proto__',
    'constructor',
    'toString',
    'toJSON',
    '',
    'x_groq',
  ],
];

/** The JSON text of any value. */
export function anyJson(random: Random, depth = 3): string {
  const kind = random(depth > 0 ? 10 : 6);
  if (kind < 3) return pick(random, STRINGS);
  if (kind < 5) return pick(random, NUMBERS);
  if (kind < 6) return pick(random, WORDS);
  const items = Array.from({ length: random(4) }, () => anyJson(random, depth - 1));
  if (kind < 8) return `[${items.join(',')}]`;
  return `{${items.map((item) => `"${pick(random, KEYS)}":${item}`).join(',')}}`;
}

export function anyString(random: Random): string {
  if (chance(random, 3))
    return `"${pick(random, ['x', 'é', '\\u0001', '\\ud800', '水']).repeat(1 + random(3000))}"`;
  return pick(random, STRINGS);
}

/** Mostly one of the usual values, sometimes any JSON. */
export function mostly(random: Random, ...usual: readonly string[]): string {
  return chance(random, 12) ? anyJson(random) : pick(random, usual);
}

/** Like {@link mostly}, but with unusual values so rarely that most requests reach the upstream. */
export function nearly(random: Random, ...usual: readonly string[]): string {
  return chance(random, 2) ? anyJson(random) : pick(random, usual);
}

/** An object with some of these members, sometimes duplicated, reordered or with unknown ones. */
export function someOf(
  random: Random,
  members: readonly (readonly [key: string, value: string, percent?: number])[],
): string {
  const chosen = members
    .filter(([, , percent = 100]) => chance(random, percent))
    .map(([key, value]) => `"${key}":${value}`);
  if (chance(random, 5)) chosen.push(`"${pick(random, KEYS)}":${anyJson(random, 2)}`);
  if (chance(random, 3) && chosen[0] !== undefined) chosen.push(chosen[0]);
  if (chance(random, 5)) chosen.reverse();
  return `{${chosen.join(chance(random, 5) ? ' , ' : ',')}}`;
}

/** JSON that takes more work than its size suggests. */
export function costlyJson(random: Random): string {
  const times = 1 + random(chance(random, 10) ? 400_000 : 20_000);
  const [open = '', close = ''] = pick(random, [
    ['[', ']'],
    ['{"1":', '}'],
    ['[{"a":', '}]'],
  ]);
  switch (random(4)) {
    case 0:
      return `${open.repeat(times)}1${close.repeat(times)}`;
    case 1:
      return `[${'{},'.repeat(times)}{}]`;
    case 2:
      return `"${pick(random, ['x', '\\n', '水', '\\u0001', '\\"', 'weir '])}"`.replace(
        /[^"].*[^"]|[^"]/,
        (unit) => unit.repeat(times),
      );
    default:
      return `{${Array.from({ length: times % 5000 }, (_, i) => `"${i}":${i}`).join(',')}}`;
  }
}

const JUNK = [
  '\n',
  '\r',
  '\n\n',
  '\0',
  '\ufeff',
  '"',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '\\',
  'data: ',
  'event: error\n',
  '0\r\n\r\n',
  'null',
];

/** Edits some bytes: flips, removes, duplicates or inserts them. */
export function mutate(random: Random, bytes: Uint8Array): Uint8Array {
  let changed = bytes;
  for (let edits = 1 + random(3); edits > 0; edits--) {
    const at = random(changed.length + 1);
    const length = 1 + random(chance(random, 50) ? 4 : 200);
    const [before, piece, after] = [
      changed.subarray(0, at),
      changed.subarray(at, at + length),
      changed.subarray(at + length),
    ];
    const junk = Buffer.from(pick(random, JUNK));
    const parts = [
      [before, after],
      [before, piece, piece, after],
      [before, junk, piece, after],
      [before, piece.map((byte) => byte ^ (1 << random(8))), after],
      [before, Uint8Array.of(0xff, 0xc0, 0x80), after],
    ];
    changed = Buffer.concat(pick(random, parts));
  }
  return changed;
}

/** Splits bytes into pieces of random sizes. */
export function cutUp(random: Random, bytes: Uint8Array): Uint8Array[] {
  const longest = pick(random, [1 + Math.ceil(bytes.length / 50), 100, 4096, 65_536, bytes.length + 1]);
  const least = Math.ceil(bytes.length / MAX_PIECES);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + least + random(longest);
    pieces.push(bytes.subarray(at, end));
    at = end;
  }
  return pieces;
}

const MAX_PIECES = 2000;
