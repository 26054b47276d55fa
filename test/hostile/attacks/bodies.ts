/** The hostile clients' request bodies, by name. */
import { repeated } from '../harness/bytes.ts';
import { growLists, growTexts } from '../scaling/grow.ts';
import { SAMPLES } from '../scaling/samples.ts';
import { MIB } from './frames.ts';
import { COSTLY } from './requests.ts';

/** Just below the size limit of a request body. */
const LARGE = 10 * MIB - 4096;

const START = '{"model":"openai/ok","stream":true,';
const MESSAGES = '"messages":[{"role":"user","content":"x"}]';

function around(before: string, middle: Buffer, after: string): Uint8Array[] {
  return [Buffer.from(before), middle, Buffer.from(after)];
}

function nested(open: string, close: string): Uint8Array[] {
  const levels = Math.floor(LARGE / (open.length + close.length));
  const text = Buffer.concat([repeated(open, levels), Buffer.from('1'), repeated(close, levels)]);
  return around(`${START}${MESSAGES},"metadata":`, text, '}');
}

function many(item: string): Uint8Array[] {
  return around(
    `${START}"messages":[`,
    repeated(`${item},`, Math.floor(LARGE / (item.length + 1)) - 1),
    `${item}]}`,
  );
}

function flat(unit: string, start = ''): Uint8Array[] {
  const text = repeated(unit, Math.floor(LARGE / Buffer.byteLength(unit)) - 64);
  return around(`${START}"messages":[{"role":"user","content":"${start}`, text, '"}]}');
}

/** Below the limit of values. */
function manyMessages(): Uint8Array[] {
  const item = '{"role":"user","content":"x"}';
  return around(`${START}"messages":[`, repeated(`${item},`, 80_000), `${item}]}`);
}

/** A model of an upstream that refuses each body and names what it has. */
export const NAMING = 'names-back';
/** Bodies of each protocol for it, and for one that refuses in few words, by name: with a text or with many entries. */
export const REFUSED = SAMPLES.flatMap((sample) =>
  sample.route !== 'chat'
    ? []
    : [growTexts, growLists].flatMap((grow) => {
        const growths = grow(sample.body).filter(({ name }) => /messages|input|system/.test(name));
        const growth = growths[growths.length >> 1];
        return growth === undefined ? [] : [{ sample, growth, name: `${sample.name}: ${growth.name}` }];
      }),
);

function refusedBodies(model: string, stream: boolean) {
  return REFUSED.map(({ name, growth }) => [
    `${name} ${model} ${stream}`,
    () => {
      const grown = growth.body(growth.max);
      return [Buffer.from(JSON.stringify({ ...Object(grown), model: `openai/${model}`, stream }))];
    },
  ]);
}

export const BODIES: Readonly<Record<string, () => readonly Uint8Array[]>> = {
  // The upstream rejects them, after the gateway's work is done.
  ...Object.fromEntries(
    Object.entries(COSTLY).map(([name, { provider, body }]) => [
      name,
      () => [Buffer.from(JSON.stringify({ model: `${provider}/refused`, ...body() }))],
    ]),
  ),
  ...Object.fromEntries(
    [NAMING, 'refused-shortly'].flatMap((model) =>
      [true, false].flatMap((stream) => refusedBodies(model, stream)),
    ),
  ),
  'nested-lists': () => nested('[', ']'),
  'nested-objects': () => nested('{"a":', '}'),
  'empty-objects': () => many('{}'),
  numbers: () => many('0'),
  'flat-text': () => flat('x'),
  'flat-escapes': () => flat('\\n'),
  'flat-cjk': () => flat('水'),
  // One wide character makes the engine store each character of the string in two bytes.
  'flat-wide': () => flat('x', '水'),
  'many-messages': manyMessages,
  'never-closed': () => [repeated('[{"a":', Math.floor(LARGE / 6))],
  'open-string': () => [Buffer.from('{"a":"'), repeated('\\"', LARGE / 2)],
};
