/** Tests the normalizer's finishes (C8): one for each choice, its reason, and what follows it. */
import { describe, expect, test } from 'vitest';
import type { ChoicePart } from '../../src/canonical/part.ts';
import { bench, call, choice, choicesOf, part } from './parts.ts';

describe('Normalizer.read, the finish', () => {
  const finishOf = (...parts: Partial<ChoicePart>[]) =>
    choicesOf(...parts).map((choices) => choices?.map((one) => one.finish_reason) ?? null);

  test('C8 a finish that was sent: once; a later one is dropped, and more output is a fault and not metered', () => {
    const { normalizer, accumulator } = bench();
    normalizer.read(part([choice({ content: 'a', finishWord: 'length' })]));
    const counted = accumulator.countUsage().usage.completion_tokens;
    expect(normalizer.read(part([choice({ finishWord: 'stop' })]))).toBeNull();
    expect(normalizer.fault).toBeNull();
    expect(normalizer.read(part([choice({ content: 'b' })]))).toBeNull();
    expect(normalizer.fault?.code).toBe('upstream_invalid');
    expect(accumulator.finishWord).toBe('length');
    expect(accumulator.countUsage().usage.completion_tokens).toBe(counted);
  });

  test('C8 a finish that waits: nothing is sent, more output takes it back, and the meter counts it once', () => {
    const { normalizer, accumulator } = bench();
    const held = part([choice({ content: 'a', finishWord: 'length' })]);
    expect(normalizer.read(held, true)).toBeNull();
    expect([normalizer.holdsFinish, normalizer.isFinished, accumulator.finishes]).toEqual([true, true, 1]);
    const next = part([choice({ content: 'b' })]);
    const waited = normalizer.takeWaiting(next);
    expect(waited?.choices).toMatchObject([
      { delta: { role: 'assistant', content: 'a' }, finish_reason: null },
    ]);
    expect([normalizer.isFinished, accumulator.finishes]).toEqual([false, 0]);
    expect(normalizer.read(next, true)?.choices).toMatchObject([{ delta: { content: 'b' } }]);
    const end = part([choice({ finishWord: 'stop' })]);
    expect(normalizer.takeWaiting(end)).toBeNull();
    expect(normalizer.read(end, true)).toBeNull();
    expect(normalizer.takeWaiting(null)?.choices).toMatchObject([{ delta: {}, finish_reason: 'stop' }]);
    expect([accumulator.finishWord, accumulator.finishes]).toEqual(['stop', 1]);
  });

  test('C8 I8 a finish that waits with its stop sequence: both are sent with it, and neither if more follows', () => {
    const { normalizer } = bench();
    normalizer.read(part([choice({ content: 'a', finishWord: 'stop', stopSequence: 'ONE' })]), true);
    const next = part([choice({ content: 'b', finishWord: 'stop', stopSequence: 'TWO' })]);
    expect(normalizer.takeWaiting(next)?.choices[0]).not.toHaveProperty('stop_sequence');
    normalizer.read(next, true);
    expect(normalizer.takeWaiting(null)?.choices[0]).toMatchObject({
      finish_reason: 'stop',
      stop_sequence: 'TWO',
    });
  });

  test('C8 a finish of one of two choices: the other one’s output sends it', () => {
    const { normalizer } = bench({ choices: 2 });
    normalizer.read(part([choice({ content: 'a' }), choice({ index: 1, content: 'b' })]), true);
    normalizer.read(part([choice({ finishWord: 'stop' })]), true);
    const next = part([choice({ index: 1, content: 'c' })]);
    expect(normalizer.takeWaiting(next)?.choices).toMatchObject([{ index: 0, finish_reason: 'stop' }]);
  });

  test('C8 a finish that waits when the output fails: its text is sent, without it', () => {
    const { normalizer } = bench();
    normalizer.read(part([choice({ content: 'a', finishWord: 'stop' })]), true);
    expect(normalizer.takeWaiting(null, 'failed')?.choices).toMatchObject([
      { delta: { content: 'a' }, finish_reason: null },
    ]);
  });

  test.each(['length', 'tool_calls'] as const)(
    'C8 a word that means %s here: so it is reported, and the record keeps the word',
    (finishMeaning) => {
      const { normalizer, accumulator } = bench();
      const chunk = normalizer.read(part([choice({ content: 'a', finishWord: 'OTHER', finishMeaning })]));
      expect(chunk?.choices[0]?.finish_reason).toBe(finishMeaning);
      expect([accumulator.finishWord, accumulator.finishMeaning]).toEqual(['OTHER', finishMeaning]);
    },
  );

  test('C8 a word that means a failure at this provider: no finish', () => {
    const { normalizer } = bench();
    normalizer.read(part([choice({ finishWord: 'OTHER', finishMeaning: 'failed' })]));
    expect([normalizer.isFinished, normalizer.fault?.code]).toEqual([false, 'OTHER']);
  });

  test('C8 a finish before anything else: its delta has the role', () => {
    expect(choicesOf({ finishWord: 'stop' })).toEqual([
      [{ index: 0, delta: { role: 'assistant' }, logprobs: null, finish_reason: 'stop' }],
    ]);
  });

  test('C8 stop after tool calls: tool_calls, only in that choice', () => {
    expect(finishOf({ toolCalls: [call({ name: 'f' })] }, { finishWord: 'stop' })).toEqual([
      [null],
      ['tool_calls'],
    ]);
    const { normalizer } = bench();
    normalizer.read(part([choice({ toolCalls: [call({ name: 'f' })] })]));
    const other = normalizer.read(part([choice({ index: 1, finishWord: 'stop' })]));
    expect(other?.choices[0]?.finish_reason).toBe('stop');
  });

  test('C8 stop after an empty tool-call fragment: stop, because the client received no call', () => {
    expect(finishOf({ content: 'a', toolCalls: [call({})] }, { finishWord: 'stop' })).toEqual([
      [null],
      ['stop'],
    ]);
  });

  test.each([
    ['error', 'upstream_error', 'Provider stopped: error'],
    [
      'insufficient_system_resource',
      'insufficient_system_resource',
      'Provider stopped: insufficient_system_resource',
    ],
  ])(
    'C8 E2 the reason %s: a fault and no finish, and the content beside it is sent',
    (word, code, message) => {
      const { normalizer } = bench();
      const chunk = normalizer.read(part([choice({ content: 'a', finishWord: word })]));
      expect(chunk?.choices).toMatchObject([{ delta: { content: 'a' }, finish_reason: null }]);
      expect(normalizer.fault).toMatchObject({ type: 'server_error', code, message, param: null });
      expect(normalizer.isFinished).toBe(false);
    },
  );

  test('F2 isFinished and isEmpty: every choice that appeared has its finish, and there was one', () => {
    const { normalizer } = bench();
    expect([normalizer.isEmpty, normalizer.isFinished]).toEqual([true, false]);
    normalizer.read(part([choice({ finishWord: 'stop' }), choice({ index: 1, content: 'a' })]));
    expect([normalizer.isEmpty, normalizer.isFinished]).toEqual([false, false]);
    normalizer.read(part([choice({ index: 1, finishWord: 'stop' })]));
    expect(normalizer.isFinished).toBe(true);
  });

  test('C8 finishOpenChoices: one chunk for all open choices, in the order of their indexes, then null', () => {
    const { normalizer } = bench({ choices: 3 });
    normalizer.read(part([choice({ index: 2, content: 'a' })]));
    normalizer.read(part([choice({ index: 1, finishWord: 'length' })]));
    normalizer.read(
      part([choice({ index: 0, toolCalls: [call({ name: 'f' })] })], { systemFingerprint: 'f' }),
    );
    expect(normalizer.finishOpenChoices()).toMatchObject({
      system_fingerprint: 'f',
      choices: [
        { index: 0, delta: {}, finish_reason: 'tool_calls' },
        { index: 2, delta: {}, finish_reason: 'stop' },
      ],
    });
    expect(normalizer.finishOpenChoices()).toBeNull();
  });
});
