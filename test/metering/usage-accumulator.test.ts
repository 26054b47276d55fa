/** Tests the usage accumulator and the estimate of tokens (M2, M3, U5, V3). */
import { describe, expect, test } from 'vitest';
import { estimatePromptTokens } from '../../src/metering/estimate.ts';
import { UsageAccumulator } from '../../src/metering/request-meter.ts';
import { call, choice } from '../stream/parts.ts';

const PROMPT_ESTIMATE = 1_234;

function accumulatorOf(...parts: Parameters<typeof choice>[0][]): UsageAccumulator {
  const accumulator = new UsageAccumulator(() => 0, PROMPT_ESTIMATE);
  for (const one of parts) accumulator.delta(choice(one));
  return accumulator;
}

const completionOf = (accumulator: UsageAccumulator) => accumulator.countUsage().usage.completion_tokens;

describe('UsageAccumulator, tokens', () => {
  test('M3 no reported usage: estimates, marked as such', () => {
    const { usage, estimated } = accumulatorOf({ content: 'Hello' }).countUsage();
    expect(estimated).toBe(true);
    expect(usage.prompt_tokens).toBe(PROMPT_ESTIMATE);
    expect(usage.completion_tokens).toBeGreaterThan(0);
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
  });

  test('M3 reported usage: no estimate', () => {
    const accumulator = accumulatorOf({ content: 'Hello' });
    accumulator.usage({ prompt: 1 });
    accumulator.usage({ completion: 2 });
    expect(accumulator.countUsage()).toMatchObject({
      estimated: false,
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    });
  });

  test('U5 several reports: the highest value of each count', () => {
    const accumulator = accumulatorOf();
    for (const completion of [3, 9, 0]) accumulator.usage({ prompt: 5, completion });
    expect(accumulator.countUsage().usage).toMatchObject({
      prompt_tokens: 5,
      completion_tokens: 9,
      total_tokens: 14,
    });
  });

  test.each([
    ['content', { content: 'word' }],
    ['reasoning', { reasoning: 'word' }],
    ['a refusal', { refusal: 'word' }],
    ['the name of a call', { toolCalls: [call({ name: 'word' })] }],
    ['the arguments of a call', { toolCalls: [call({ arguments: 'word' })] }],
  ])('M3 %s is counted', (_, fields) => {
    expect(completionOf(accumulatorOf(fields))).toBeGreaterThan(0);
  });

  test('M3 without content nothing is counted', () => {
    expect(completionOf(accumulatorOf({ hasRole: true }, { content: '' }))).toBe(0);
  });

  test('M3 a long text has about four characters for each token', () => {
    const text = 'The quick brown fox jumps over the lazy dog. '.repeat(100);
    const tokens = completionOf(accumulatorOf({ content: text }));
    expect(tokens).toBeGreaterThan(text.length / 6);
    expect(tokens).toBeLessThan(text.length / 3);
  });

  test('M3 a text in a wide script has about one token for each character', () => {
    const tokens = completionOf(accumulatorOf({ content: '日本語のテキスト'.repeat(100) }));
    expect(tokens).toBeGreaterThan(400);
    expect(tokens).toBeLessThanOrEqual(800);
  });

  test('M3 there are at least as many tokens as pieces', () => {
    expect(completionOf(accumulatorOf(...Array(50).fill({ content: 'a' })))).toBeGreaterThanOrEqual(50);
  });
});

describe('UsageAccumulator, other fields', () => {
  test('M2 firstTokenAt is the time of the first text', () => {
    let now = 100;
    const accumulator = new UsageAccumulator(() => now++, 0);
    accumulator.delta(choice({ hasRole: true, content: '' }));
    expect(accumulator.firstTokenAt).toBeNull();
    accumulator.delta(choice({ reasoning: 'a' }));
    accumulator.delta(choice({ content: 'b' }));
    expect(accumulator.firstTokenAt).toBe(100);
  });

  test('M2 finishWord is the first finish reason of the upstream, with its meaning', () => {
    const accumulator = accumulatorOf();
    expect(accumulator.finishWord).toBeNull();
    accumulator.finish('model_length', 'length');
    accumulator.finish('stop', 'stop');
    expect([accumulator.finishWord, accumulator.finishMeaning]).toEqual(['model_length', 'length']);
  });

  test.each<
    [name: string, reports: Parameters<UsageAccumulator['vendor']>[0][], events: number, tokens: number]
  >([
    [
      'tasks: summed',
      [
        { kind: 'add', tokens: 3 },
        { kind: 'add', tokens: 4 },
      ],
      2,
      7,
    ],
    [
      'totals: the highest counts',
      [
        { kind: 'total', tokens: 9 },
        { kind: 'total', tokens: 4 },
      ],
      2,
      9,
    ],
    [
      'a total above the tasks: includes them',
      [
        { kind: 'add', tokens: 3 },
        { kind: 'total', tokens: 9 },
      ],
      2,
      9,
    ],
    [
      'a total below the tasks: the tasks count',
      [
        { kind: 'total', tokens: 2 },
        { kind: 'add', tokens: 3 },
      ],
      2,
      3,
    ],
    ['events without tokens are counted', [null, null], 2, 0],
  ])('V3 %s', (_, reports, events, tokens) => {
    const accumulator = accumulatorOf();
    for (const one of reports) accumulator.vendor(one);
    expect([accumulator.vendorEvents, accumulator.vendorTokens]).toEqual([events, tokens]);
  });
});

describe('estimatePromptTokens', () => {
  const user = (content: unknown) => ({ messages: [{ role: 'user', content }] });
  const text = 'Some words that a model reads. '.repeat(20);

  test.each([
    ['a message', user(text)],
    ['typed parts of a message', user([{ type: 'text', text }])],
    ['a prompt', { prompt: text }],
    ['a suffix', { suffix: text }],
    ['tools', { tools: [{ function: { description: text } }] }],
    ['the system text of Messages', { system: [{ type: 'text', text }], messages: [] }],
    ['a text document of Messages', user([{ type: 'document', source: { type: 'text', data: text } }])],
    ['the instructions of Responses', { instructions: text }],
    ['an item of Responses', { input: [{ role: 'user', content: [{ type: 'input_text', text }] }] }],
  ])('M3 %s counts by its length', (_, body) => {
    const tokens = estimatePromptTokens(body);
    expect(tokens).toBeGreaterThan(text.length / 8);
    expect(tokens).toBeLessThan(text.length / 2);
  });

  test('M3 fields that no model reads are not counted', () => {
    expect(estimatePromptTokens({ model: text, user: text, metadata: { text } })).toBe(0);
    expect(estimatePromptTokens({})).toBe(0);
  });

  test('M3 an inline image is not counted by its length', () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(100_000)}` } };
    expect(estimatePromptTokens(user([image]))).toBeLessThan(100);
  });

  test.each([
    [
      'an image of Messages',
      user([{ type: 'image', source: { type: 'base64', data: 'A'.repeat(100_000) } }]),
    ],
    ['a signature', user([{ type: 'thinking', thinking: '', signature: 'A'.repeat(100_000) }])],
    ['encrypted reasoning', { input: [{ type: 'reasoning', encrypted_content: 'A'.repeat(100_000) }] }],
  ])('M3 %s is not counted by its length', (_, body) => {
    expect(estimatePromptTokens(body)).toBeLessThan(100);
  });

  test('M3 a text that begins with `data:` counts by its length', () => {
    const words = `data:${text}`;
    expect(estimatePromptTokens(user(words))).toBeGreaterThan(text.length / 8);
    expect(estimatePromptTokens(user([{ type: 'text', text: words }]))).toBeGreaterThan(text.length / 8);
    expect(estimatePromptTokens({ prompt: words })).toBeGreaterThan(text.length / 8);
  });

  test('M3 a text after thousands of spaces counts by its length', () => {
    const long = text.repeat(1000);
    const tokens = estimatePromptTokens(user(' '.repeat(4096) + long));
    expect(tokens).toBeGreaterThan(long.length / 8);
    expect(tokens).toBeLessThan(long.length / 2);
  });

  test('M3 a very long text: tokens in proportion to its length', () => {
    const one = estimatePromptTokens({ prompt: text.repeat(10) });
    const ten = estimatePromptTokens({ prompt: text.repeat(100) });
    expect(ten / one).toBeGreaterThan(9.5);
    expect(ten / one).toBeLessThan(10.5);
  });

  test('M3 a body nested deeper than the call stack does not throw', () => {
    const deep = JSON.parse('['.repeat(50_000) + '"a"' + ']'.repeat(50_000));
    expect(estimatePromptTokens(user(deep))).toBeGreaterThan(0);
  });
});
