/** Tests on which chunk the normalizer sends usage (U1, U2): a separate one, the one with the last finish, or none. */
import { describe, expect, test } from 'vitest';
import type { ChunkPart } from '../../src/canonical/part.ts';
import type { UsageReport } from '../../src/canonical/usage.ts';
import type { ChunkContext } from '../../src/stream/types.ts';
import { bench, choice, part } from './parts.ts';

const USAGE: UsageReport = { prompt: 1, completion: 2 };
const SUMS = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };

const text = (index = 0, usage: UsageReport | null = null) =>
  part([choice({ index, content: 'a' })], { usage });
const stop = (index = 0, usage: UsageReport | null = null) =>
  part([choice({ index, finishWord: 'stop' })], { usage });
const report = (usage: UsageReport) => part([], { usage });

/** The usage of each part's chunk: `none` if the chunk has none, null if there is no chunk. */
function usagesOf(context: Partial<ChunkContext>, ...parts: ChunkPart[]) {
  const { normalizer } = bench(context);
  const chunks = parts.map((one) => normalizer.read(one));
  return [...chunks, normalizer.finishOpenChoices(), normalizer.usageChunk()].map((chunk) =>
    chunk === null ? null : (chunk.usage ?? 'none'),
  );
}

describe('Normalizer, usage at the end', () => {
  test('U1 usageChunk: no choices, usage last, and the fields of every other chunk', () => {
    const { normalizer } = bench();
    normalizer.read(part([choice({ content: 'a' })], { id: 'i', serviceTier: 't', usage: USAGE }));
    const chunk = normalizer.usageChunk();
    expect(Object.keys(chunk ?? {}).at(-1)).toBe('usage');
    expect(chunk).toMatchObject({ id: 'i', service_tier: 't', choices: [], usage: SUMS });
  });

  test('U1 C10 usageChunk in the text shape: no service_tier', () => {
    const { normalizer } = bench({ shape: 'text' });
    normalizer.read(part([choice({ content: 'a' })], { id: 'i', serviceTier: 't', usage: USAGE }));
    const written: object = JSON.parse(JSON.stringify(normalizer.usageChunk()));
    expect(Object.keys(written)).toEqual(['id', 'object', 'created', 'model', 'choices', 'usage']);
  });

  test('U1 only on a separate chunk, whenever it was reported', () => {
    expect(usagesOf({ usageAt: 'end' }, text(0, USAGE), stop(0, USAGE))).toEqual([
      'none',
      'none',
      null,
      SUMS,
    ]);
    expect(usagesOf({ usageAt: 'end' }, stop(), report(USAGE))).toEqual(['none', null, null, SUMS]);
  });

  test('U5 usage after the last finish: still counts', () => {
    const { normalizer, accumulator } = bench();
    normalizer.read(stop());
    expect(normalizer.read(part([choice()], { usage: USAGE }))).toBeNull();
    expect(accumulator.countUsage()).toMatchObject({ estimated: false, usage: { total_tokens: 3 } });
  });
});

describe('Normalizer, usage on the finish', () => {
  const finish = { usageAt: 'finish' } as const;

  test.each<[name: string, parts: ChunkPart[], usages: unknown[]]>([
    ['with the finish', [text(), stop(0, USAGE)], ['none', SUMS, null, null]],
    ['before the finish', [text(0, USAGE), stop()], ['none', SUMS, null, null]],
    ['in an event of its own before it', [text(), report(USAGE), stop()], ['none', null, SUMS, null, null]],
    ['in two pieces', [text(0, { prompt: 1 }), stop(0, { completion: 2 })], ['none', SUMS, null, null]],
    ['as a total and a part', [stop(0, { total: 3, prompt: 1 })], [SUMS, null, null]],
    ['after the finish', [text(), stop(), report(USAGE)], ['none', 'none', null, null, null]],
    [
      'again after the finish',
      [stop(0, USAGE), stop(0, { prompt: 9, completion: 9 })],
      [SUMS, null, null, null],
    ],
    ['before [DONE], without a finish', [text(), report(USAGE)], ['none', null, SUMS, null]],
    ['not at all', [text(), stop()], ['none', 'none', null, null]],
    ['without its completion', [text(), stop(0, { prompt: 1 })], ['none', 'none', null, null]],
    ['without its prompt', [text(), stop(0, { completion: 2 })], ['none', 'none', null, null]],
    ['as a total alone', [text(), stop(0, { total: 3 })], ['none', 'none', null, null]],
  ])(
    'U2 usage reported %s: on the chunk of the last finish, never estimated, never twice',
    (_, parts, usages) => {
      expect(usagesOf(finish, ...parts)).toEqual(usages);
    },
  );

  test('U2 zeros are sent', () => {
    const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    expect(usagesOf(finish, stop(0, { prompt: 0, completion: 0 }))).toEqual([zeros, null, null]);
  });

  test('U2 the keys of that chunk: usage last', () => {
    expect(Object.keys(bench(finish).normalizer.read(stop(0, USAGE)) ?? {}).at(-1)).toBe('usage');
    expect(
      Object.keys(bench({ ...finish, shape: 'text' }).normalizer.read(stop(0, USAGE)) ?? {}).at(-1),
    ).toBe('usage');
  });

  test('U2 two choices requested: on the second finish, even if the second began after the first had finished', () => {
    const two = { ...finish, choices: 2 };
    expect(usagesOf(two, text(), text(1), stop(0, USAGE), stop(1))).toEqual([
      'none',
      'none',
      'none',
      SUMS,
      null,
      null,
    ]);
    expect(usagesOf(two, text(), stop(0, USAGE), stop(1))).toEqual(['none', 'none', SUMS, null, null]);
    const both = part([choice({ finishWord: 'stop' }), choice({ index: 1, finishWord: 'stop' })], {
      usage: USAGE,
    });
    expect(usagesOf(two, both)).toEqual([SUMS, null, null]);
  });

  test('U2 one choice requested and two sent: after both have finished, if both had begun', () => {
    expect(usagesOf(finish, text(), text(1), stop(0, USAGE), stop(1))).toEqual([
      'none',
      'none',
      'none',
      SUMS,
      null,
      null,
    ]);
  });

  test('U2 an additional choice that begins after the last finish: no second usage', () => {
    expect(usagesOf(finish, stop(0, USAGE), text(1), stop(1))).toEqual([SUMS, 'none', 'none', null, null]);
  });

  test('U2 fewer choices than requested: no usage, because the last finish is unknown', () => {
    expect(usagesOf({ ...finish, choices: 2 }, text(), stop(0, USAGE))).toEqual(['none', 'none', null, null]);
  });

  test('U2 a finish word that means failure: no usage on its chunk', () => {
    const failed = part([choice({ content: 'a', finishWord: 'error' })], { usage: USAGE });
    expect(bench(finish).normalizer.read(failed)).not.toHaveProperty('usage');
  });
});

describe('Normalizer, usage on the finish or after it', () => {
  const late = { usageAt: 'wait_or_end' } as const;

  test.each<[name: string, parts: ChunkPart[], usages: unknown[]]>([
    ['with the finish', [text(), stop(0, USAGE)], ['none', SUMS, null, null]],
    ['after the finish', [text(), stop(), report(USAGE)], ['none', 'none', null, null, SUMS]],
    ['with a repeated finish', [text(), stop(), stop(0, USAGE)], ['none', 'none', null, null, SUMS]],
    ['not at all', [text(), stop()], ['none', 'none', null, null]],
    ['without its prompt', [text(), stop(), report({ completion: 2 })], ['none', 'none', null, null, null]],
  ])('U2 usage reported %s: once, never estimated, and the finish does not wait', (_, parts, usages) => {
    expect(usagesOf(late, ...parts)).toEqual(usages);
  });
});

test('U2 usage nowhere: on no chunk, but metered', () => {
  expect(usagesOf({ usageAt: 'nowhere' }, text(), stop(0, USAGE))).toEqual(['none', 'none', null, null]);
  const { normalizer, accumulator } = bench({ usageAt: 'nowhere' });
  normalizer.read(stop(0, USAGE));
  expect(accumulator.countUsage()).toEqual({ estimated: false, usage: SUMS });
});

test('P1 C1 the last service tier is metered, and is not in the usage', () => {
  const { normalizer, accumulator } = bench({ usageAt: 'end' });
  normalizer.read({ ...stop(0, USAGE), serviceTier: 'auto' });
  normalizer.read({ ...stop(0, USAGE), serviceTier: 'flex' });
  expect(accumulator.countBilled().usage).toEqual({ ...SUMS, service_tier: 'flex' });
  expect(normalizer.usageChunk()?.usage).toEqual(SUMS);
});

describe('Normalizer, the cost in the usage', () => {
  const costing = (cost: number | null): Partial<ChunkContext> => ({ cost: () => cost });

  test.each(['end', 'finish'] as const)(
    'P5 asked for, usage at the %s: the cost is its last field',
    (usageAt) => {
      const usages = usagesOf({ usageAt, ...costing(0.5) }, stop(0, USAGE)).filter((usage) => usage !== null);
      expect(JSON.stringify(usages)).toContain(
        '{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"cost":0.5}',
      );
    },
  );

  test('P5 the cost of the usage at that time', () => {
    const cost = () => accumulator.countUsage().usage.total_tokens;
    const { normalizer, accumulator } = bench({ cost });
    normalizer.read(stop(0, USAGE));
    expect(normalizer.usageChunk()?.usage).toEqual({ ...SUMS, cost: 3 });
  });

  test('P5 0 is a cost, and an unknown cost is absent', () => {
    expect(usagesOf({ usageAt: 'end', ...costing(0) }, stop(0, USAGE)).at(-1)).toEqual({ ...SUMS, cost: 0 });
    expect(usagesOf({ usageAt: 'end', ...costing(null) }, stop(0, USAGE)).at(-1)).toEqual(SUMS);
  });

  test('C1 P5 not requested: no cost, even if the upstream reports one', () => {
    expect(usagesOf({ usageAt: 'end' }, stop(0, { ...USAGE, cost: 7 })).at(-1)).toEqual(SUMS);
  });
});
