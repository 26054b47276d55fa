/** Generates envelopes of frames: members in any order, duplicate, unknown or escaped, around one text or several. */

/** Whole numbers from 0 below `limit`. */
export type Random = (limit: number) => number;
type Member = readonly [key: string, value: string];

/** Placeholders in an envelope: the text, a second text, padding. They are not JSON, so nothing else equals them. */
export const TEXT = '\u0001T';
export const BESIDE = '\u0001B';
export const PADDING = '\u0001P';

const KEYS = [
  'content',
  'text',
  'reasoning',
  'reasoning_content',
  'refusal',
  'p',
  'obfuscation',
  'summary',
  'type',
  'object',
];
const SCALARS = ['null', '0', '1', '-0', '1e3', 'true', '""', '[]', '{}', `"${TEXT}"`, `"${BESIDE}"`];

export function pick<T>(random: Random, from: readonly T[]): T {
  const picked = from[random(from.length)];
  if (picked === undefined) throw new Error('There is nothing to pick from');
  return picked;
}

/** An object of these members in some order, with a few additional, duplicate or escaped ones. */
function object(random: Random, members: readonly Member[]): string {
  const all = [...members];
  if (random(6) === 0) all.splice(random(all.length + 1), 0, [pick(random, KEYS), pick(random, SCALARS)]);
  if (random(12) === 0) all.splice(random(all.length + 1), 0, [pick(random, all)[0], pick(random, SCALARS)]);
  if (random(6) === 0) all.sort(() => random(3) - 1);
  const space = random(12) === 0 ? ' ' : '';
  const written = all.map(
    ([key, value]) => `"${random(20) === 0 ? escaped(random, key) : key}":${space}${value}`,
  );
  return `{${written.join(`,${space}`)}}`;
}

/** The same key, one of its characters as an escape. */
function escaped(random: Random, key: string): string {
  const at = random(key.length);
  const code = key.charCodeAt(at).toString(16).padStart(4, '0');
  return `${key.slice(0, at)}\\u${code}${key.slice(at + 1)}`;
}

function some(random: Random, share: number, ...members: readonly Member[]): Member[] {
  return random(100) < share ? [...members] : [];
}

/** An event with placeholders for its texts. */
export function envelope(random: Random, isText: boolean): string {
  const choice = object(random, [
    ['index', pick(random, ['0', '0', '0', '1', '2', 'null', '200'])],
    isText ? ['text', `"${TEXT}"`] : ['delta', delta(random)],
    ...some(random, 40, ['finish_reason', 'null']),
    ...some(random, 30, ['logprobs', 'null']),
    ...some(random, 10, ['message', object(random, [['content', `"${BESIDE}"`]])]),
  ]);
  return object(random, [
    ...some(random, 60, ['id', '"c-1"']),
    ...some(random, 50, [
      'object',
      pick(random, ['"chat.completion.chunk"', '"chunk"', '"text"', `"${BESIDE}"`]),
    ]),
    ...some(random, 15, ['type', pick(random, ['"chunk"', `"${BESIDE}"`])]),
    ...some(random, 40, ['created', '1700000000']),
    ...some(random, 50, ['model', '"m"']),
    ...some(random, 15, ['meta', object(random, [[pick(random, KEYS), `"${BESIDE}"`]])]),
    ['choices', `[${choice}]`],
    ...some(random, 15, ['usage', 'null']),
    ...some(random, 15, [pick(random, ['p', 'obfuscation']), `"${PADDING}"`]),
  ]);
}

function delta(random: Random): string {
  switch (random(8)) {
    case 0:
      return object(random, [['reasoning_content', `"${TEXT}"`]]);
    case 1:
      return object(random, [
        ['content', 'null'],
        ['reasoning', `"${TEXT}"`],
        ['reasoning_details', details(random)],
      ]);
    case 2:
      return object(random, [['content', `[${part(random, 'text')}]`]]);
    case 3:
      return object(random, [
        ['content', `[${part(random, 'thinking')}]`],
        ['reasoning_content', `"${BESIDE}"`],
      ]);
    case 4:
      return object(random, [
        ['content', `"${TEXT}"`],
        ['reasoning', `"${TEXT}"`],
        ['reasoning_content', `"${TEXT}"`],
      ]);
    default:
      return object(random, [['content', `"${TEXT}"`]]);
  }
}

function details(random: Random): string {
  const key = pick(random, ['text', 'summary']);
  return `[${object(random, [['type', `"reasoning.${key}"`], [key, `"${pick(random, [TEXT, BESIDE])}"`], ...some(random, 50, ['index', '0'])])}]`;
}

function part(random: Random, type: string): string {
  const inner =
    random(2) === 0
      ? `"${TEXT}"`
      : `[${object(random, [
          ['type', '"text"'],
          ['text', `"${TEXT}"`],
        ])}]`;
  return object(random, [
    ['type', `"${type}"`],
    [type, type === 'text' ? `"${TEXT}"` : inner],
  ]);
}
