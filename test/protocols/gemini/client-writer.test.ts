/** Tests the streams of Gemini's clients on the fast path: the same elements as on the normal path. */
import { describe, expect, test } from 'vitest';
import { geminiClient } from '../../../src/protocols/gemini/client.ts';
import type { ClientForm, GeminiSession } from '../../../src/protocols/gemini/client-form.ts';
import { parseJson } from '../../../tools/conformance/contract/json.ts';
import { type Conversion, type Converted, convertStream, cut } from '../../contract/convert.ts';
import { recordingsNote } from '../../contract/recordings.ts';
import { SOURCES } from '../anthropic-messages/recorded-source.ts';

const encoder = new TextEncoder();
const EVENTS: ClientForm = { kind: 'events', hasEnumNumbers: false };
const ARRAY: ClientForm = { kind: 'array', hasEnumNumbers: false };
const HIDDEN: GeminiSession = { showsThoughts: false, hasTools: false };
const SHOWN: GeminiSession = { showsThoughts: true, hasTools: false };
const HIDDEN_IN_LOOP: GeminiSession = { showsThoughts: false, hasTools: true };
const CHAT: Conversion = { provider: 'deepseek', route: 'chat', model: 'm', usageChunk: true };

/** The values of the elements, because the fast path may keep the upstream's own escapes. */
function elementsOf({ kind }: ClientForm, text: string): unknown {
  if (kind === 'array') return parseJson(text);
  return text.split('\r\n\r\n').map((one) => (one.startsWith('data: ') ? parseJson(one.slice(6)) : one));
}

/** The result of the fast path, which has the elements of the normal one. */
function compare(
  reads: readonly Uint8Array[],
  given: Conversion,
  form: ClientForm,
  session: GeminiSession,
): Converted {
  const client = geminiClient(form);
  const conversion = {
    ...given,
    openWriter: (options: Parameters<typeof client.streamWriter>[1]) => client.streamWriter(session, options),
  };
  const fast = convertStream(reads, conversion);
  const slow = convertStream(reads, { ...conversion, fastPath: false });
  expect(elementsOf(form, fast.text)).toEqual(elementsOf(form, slow.text));
  expect(fast.error).toEqual(slow.error);
  expect(fast.accumulator.countUsage()).toEqual(slow.accumulator.countUsage());
  expect(slow.copiedEvents).toBe(0);
  return fast;
}

function event(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;
}

function stream(finish: string, ...texts: readonly string[]): Uint8Array {
  const thoughts = Array.from({ length: 100 }, (_, at) => event({ reasoning_content: ` thought ${at}` }));
  const deltas = texts.map((content) => event({ content }));
  return encoder.encode(
    [event({ role: 'assistant', content: '' }), ...thoughts, ...deltas, event({}, finish)].join('') +
      'data: [DONE]\n\n',
  );
}

describe('A8 thoughts for a Gemini client', () => {
  test.each([
    ['events', EVENTS],
    ['an array', ARRAY],
  ])('not shown, in %s, and nothing keeps them: they take the fast path and write nothing', (_, form) => {
    const bytes = stream('stop', 'One', ' two', ' three', ' four');
    for (const size of [40, 333, 100_000]) {
      const { text, copiedEvents } = compare([...cut(bytes, size)], CHAT, form, HIDDEN);
      expect(copiedEvents).toBeGreaterThanOrEqual(98);
      expect(text).not.toContain('thought ');
      expect(text).toContain(' four');
    }
  });

  test('not shown, and the output ends with them: a filter has blocked no prompt', () => {
    const { text } = compare([stream('content_filter')], CHAT, EVENTS, HIDDEN);
    expect(text).not.toContain('promptFeedback');
  });

  test('not shown, but kept for the next step of a loop of tools: the normal path', () => {
    expect(compare([stream('stop')], CHAT, EVENTS, HIDDEN_IN_LOOP).copiedEvents).toBe(0);
  });

  test('not kept: they do not count towards the bound of what is kept', () => {
    const details = [{ type: 'reasoning.encrypted', data: 'opaque', format: 'x', index: 0 }];
    const thoughts = Array.from({ length: 100 }, () => event({ reasoning_content: 'a'.repeat(50) })).join('');
    const signed = event({ reasoning: '', reasoning_details: details });
    const text = `${event({ role: 'assistant' })}${thoughts}${signed}${event({ content: 'Hi' })}${event({}, 'stop')}data: [DONE]\n\n`;
    const router = { ...CHAT, provider: 'openrouter', maxEventBytes: 2000 };
    for (const session of [HIDDEN, SHOWN]) {
      const { text: written } = compare([encoder.encode(text)], router, EVENTS, session);
      expect(written).toContain('thoughtSignature');
    }
  });
});

describe.skipIf(recordingsNote !== '')(`A8 recorded streams for a Gemini client${recordingsNote}`, () => {
  test.each(SOURCES)('%s: the fast path writes what the normal path writes', (_, { text, conversion }) => {
    const bytes = encoder.encode(text);
    for (const session of [HIDDEN, SHOWN]) compare([bytes], conversion, EVENTS, session);
    compare([...cut(bytes, 64)], conversion, ARRAY, HIDDEN);
  });
});
