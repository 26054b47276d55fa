/** Tests merging usage reports, and the usage object that a client receives (U3, U5). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { billedUsage, countUsage, mergeUsage, type UsageReport } from '../../src/canonical/usage.ts';

/** The estimate for an output with text. */
const NOT_ESTIMATED = {
  prompt: () => expect.unreachable('the prompt was reported'),
  completion: () => 12,
};

describe('mergeUsage', () => {
  test.each<[name: string, reports: UsageReport[], merged: UsageReport]>([
    [
      'running totals: the highest, and no sum',
      [{ completion: 1 }, { completion: 5 }, { completion: 5 }],
      { completion: 5 },
    ],
    [
      'a zero after a number: takes nothing back',
      [
        { prompt: 7, cached: 3 },
        { prompt: 5, cached: 0 },
      ],
      { prompt: 7, cached: 3 },
    ],
    ['a count missing after a number: the number stays', [{ prompt: 7 }, {}], { prompt: 7 }],
    [
      'pieces: put together',
      [{ prompt: 7 }, { completion: 2 }, { reasoning: 1 }],
      { prompt: 7, completion: 2, reasoning: 1 },
    ],
    ['a zero alone: is reported', [{}, { cached: 0 }], { cached: 0 }],
    ['nothing at all: stays absent', [{}, {}], {}],
  ])('U5 %s', (_, reports, merged) => {
    expect(reports.reduce(mergeUsage, {})).toEqual(merged);
  });

  const count = fc.option(fc.nat(1000), { nil: undefined });
  const report: fc.Arbitrary<UsageReport> = fc.record({
    prompt: count,
    completion: count,
    total: count,
    cached: count,
    cacheWrite: count,
    reasoning: count,
    promptAudio: count,
    completionAudio: count,
    acceptedPrediction: count,
    rejectedPrediction: count,
    cost: count,
  });

  test('A5 a report of the latest counts replaces higher ones, and keeps those that it lacks', () => {
    const merged = mergeUsage(
      { prompt: 169, completion: 4, cached: 9 },
      { prompt: 79, completion: 9, isLatest: true },
    );
    expect(merged).toMatchObject({ prompt: 79, completion: 9, cached: 9 });
  });

  test('U5 any reports in any order: each count is its highest, or absent if no report has it', () => {
    fc.assert(
      fc.property(fc.array(report, { minLength: 1, maxLength: 6 }), (reports) => {
        const highest = (field: Exclude<keyof UsageReport, 'isLatest' | 'isUpperBound' | 'extraBilled'>) => {
          const reported = reports.flatMap((one) => one[field] ?? []);
          return reported.length === 0 ? undefined : Math.max(...reported);
        };
        const merged = reports.reduce(mergeUsage, {});
        const expected: UsageReport = {
          prompt: highest('prompt'),
          completion: highest('completion'),
          total: highest('total'),
          cached: highest('cached'),
          cacheWrite: highest('cacheWrite'),
          reasoning: highest('reasoning'),
          promptAudio: highest('promptAudio'),
          completionAudio: highest('completionAudio'),
          acceptedPrediction: highest('acceptedPrediction'),
          rejectedPrediction: highest('rejectedPrediction'),
          cost: highest('cost'),
        };
        expect(merged).toEqual(expected);
        expect(reports.toReversed().reduce(mergeUsage, {})).toEqual(merged);
      }),
      { seed: 20261121 },
    );
  });
});

describe('countUsage', () => {
  test('U3 everything reported: every key in order, and nothing is estimated', () => {
    const reported = {
      prompt: 20,
      completion: 2,
      total: 22,
      cached: 5,
      reasoning: 6,
      promptAudio: 7,
      completionAudio: 8,
      acceptedPrediction: 9,
      rejectedPrediction: 10,
      cacheWrite: 11,
    };
    const counted = countUsage(reported, NOT_ESTIMATED);
    expect(counted.estimated).toBe(false);
    expect(JSON.stringify(counted.usage)).toBe(
      '{"prompt_tokens":20,"completion_tokens":2,"total_tokens":22,' +
        '"prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":11,"audio_tokens":7},' +
        '"completion_tokens_details":{"reasoning_tokens":6,"audio_tokens":8,"accepted_prediction_tokens":9,' +
        '"rejected_prediction_tokens":10}}',
    );
  });

  test.each<[name: string, reported: UsageReport, details: object]>([
    ['no detail', {}, {}],
    ['a zero', { cached: 0 }, { prompt_tokens_details: { cached_tokens: 0 } }],
    [
      'tokens written to a cache alone',
      { cacheWrite: 1 },
      { prompt_tokens_details: { cache_write_tokens: 1 } },
    ],
    [
      'a detail of the completion alone',
      { reasoning: 2 },
      { completion_tokens_details: { reasoning_tokens: 2 } },
    ],
  ])(
    'U3 %s reported: there is that count, and neither a null nor an empty object',
    (_, reported, details) => {
      const { usage } = countUsage({ prompt: 1, completion: 2, ...reported }, NOT_ESTIMATED);
      expect(usage).toEqual({ prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, ...details });
    },
  );

  test('U3 M3 nothing reported: the sums are estimates, every other count is absent and not 0', () => {
    expect(countUsage({}, { prompt: () => 30, completion: () => 12 })).toEqual({
      estimated: true,
      usage: { prompt_tokens: 30, completion_tokens: 12, total_tokens: 42 },
    });
  });

  test.each<[name: string, reported: UsageReport, sums: number[], estimated: boolean]>([
    ['no total: prompt and completion added', { prompt: 3, completion: 4 }, [3, 4, 7], false],
    ['no prompt: total less completion', { completion: 4, total: 7 }, [3, 4, 7], false],
    ['no completion: total less prompt', { prompt: 3, total: 7 }, [3, 4, 7], false],
    ['a total smaller than its part: no difference is taken', { prompt: 9, total: 7 }, [9, 12, 21], true],
    [
      'a total with a part that cannot be read: the sum',
      { prompt: 1151, total: 1116 },
      [1151, 12, 1163],
      true,
    ],
    [
      'a total below its parts, which another report had: the sum',
      { prompt: 9, completion: 4, total: 11 },
      [9, 4, 13],
      false,
    ],
    [
      'a total above its parts, with tokens of neither: as it is',
      { prompt: 9, completion: 4, total: 20 },
      [9, 4, 20],
      false,
    ],
    ['the total alone: both parts estimated, and their sum', { total: 7 }, [30, 12, 42], true],
    ['the prompt alone: the completion estimated', { prompt: 3 }, [3, 12, 15], true],
    ['zeros beside a text: both estimated', { prompt: 0, completion: 0, total: 0 }, [30, 12, 42], true],
    ['a prompt and no completion beside a text: estimated', { prompt: 3, completion: 0 }, [3, 12, 15], true],
    ['and a total of the prompt alone: left out', { prompt: 3, completion: 0, total: 3 }, [3, 12, 15], true],
    ['and a total with more: the difference', { prompt: 3, completion: 0, total: 7 }, [3, 4, 7], false],
    ['a completion and no prompt beside a text: estimated', { prompt: 0, completion: 4 }, [30, 4, 34], true],
    [
      'a total of zero beside both parts: their sum',
      { prompt: 3, completion: 4, total: 0 },
      [3, 4, 7],
      false,
    ],
  ])('U3 M3 an output with text, and reported is %s', (_, reported, sums, estimated) => {
    const counted = countUsage(reported, { prompt: () => 30, completion: () => 12 });
    const { prompt_tokens, completion_tokens, total_tokens } = counted.usage;
    expect([prompt_tokens, completion_tokens, total_tokens]).toEqual(sums);
    expect(counted.estimated).toBe(estimated);
  });

  test('M3 zeros of an output without text: are kept', () => {
    const counted = countUsage({ prompt: 0, completion: 0 }, { prompt: () => 30, completion: () => 0 });
    expect(counted).toEqual({
      estimated: false,
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    });
  });
});

describe('U3 a prompt with more cached tokens than tokens', () => {
  const counts = (reported: UsageReport) => {
    const { usage, isUpperBound } = countUsage({ completion: 8, ...reported }, NOT_ESTIMATED);
    const { cached_tokens, cache_write_tokens } = usage.prompt_tokens_details ?? {};
    const { priced_prompt } = billedUsage(usage, reported);
    return { prompt: usage.prompt_tokens, cached_tokens, cache_write_tokens, isUpperBound, priced_prompt };
  };

  test('reads above the prompt (Azure’s Grok): bounded for the client, and priced beside the prompt', () => {
    expect(counts({ prompt: 7, cached: 161 })).toEqual({
      prompt: 7,
      cached_tokens: 7,
      cache_write_tokens: undefined,
      isUpperBound: true,
      priced_prompt: { tokens: 168, cached: 161, cacheWrite: 0 },
    });
  });

  test('the same tokens read and written (OpenRouter’s Gemini): the prompt has them once, and both are priced', () => {
    expect(counts({ prompt: 2168, cached: 2161, cacheWrite: 2161 })).toEqual({
      prompt: 2168,
      cached_tokens: 2161,
      cache_write_tokens: 7,
      isUpperBound: true,
      priced_prompt: { tokens: 4322, cached: 2161, cacheWrite: 2161 },
    });
  });

  test('with other billed tokens: those are priced, too', () => {
    const extraBilled = { prompt: 10, completion: 1, cached: 4, cacheWrite: 2, cacheWriteLong: 0 };
    expect(counts({ prompt: 7, cached: 161, extraBilled }).priced_prompt).toEqual({
      tokens: 178,
      cached: 165,
      cacheWrite: 2,
    });
  });

  test.each<UsageReport>([
    { prompt: 168, cached: 161 },
    { prompt: 168, cached: 100, cacheWrite: 68 },
    { prompt: 5, cached: 0 },
  ])('%j agree with each other: as reported, and no upper bound', (reported) => {
    expect(counts(reported)).toEqual({
      prompt: reported.prompt,
      cached_tokens: reported.cached,
      cache_write_tokens: reported.cacheWrite,
      isUpperBound: undefined,
      priced_prompt: undefined,
    });
  });
});
