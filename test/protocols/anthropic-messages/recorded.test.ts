/** Tests every recorded stream, written for clients of Messages: valid events, nothing lost, the same bytes for any chunking. */
import { describe, expect, test } from 'vitest';
import { UsageAccumulator } from '../../../src/metering/request-meter.ts';
import { messages } from '../../../src/protocols/anthropic-messages/client.ts';
import { EventReader } from '../../../src/stream/event-reader.ts';
import { MORE } from '../../../src/stream/types.ts';
import { checkMessages } from '../../../tools/conformance/contract/check-messages.ts';
import {
  isObject,
  type JsonObject,
  listOf,
  objectOf,
  parseJson,
  textOf,
} from '../../../tools/conformance/contract/json.ts';
import { DEFAULT_POLICIES } from '../../canonical/default-policies.ts';
import { type Conversion, convertStream, cut, optionsOf } from '../../contract/convert.ts';
import { recordingsNote } from '../../contract/recordings.ts';
import { readMessage } from '../../contract/reference-message.ts';
import { SOURCES } from './recorded-source.ts';

const encoder = new TextEncoder();

/** The non-streaming message, or null if the response failed. */
function build(bytes: Uint8Array, conversion: Conversion): JsonObject | null {
  const builder = messages.jsonWriter(null, WRITER_OPTIONS);
  const reader = new EventReader(optionsOf(conversion, new UsageAccumulator(() => 0, 0)), builder);
  const pushed = reader.push(bytes);
  const outcome = pushed === MORE ? reader.end() : pushed;
  return outcome.kind === 'done' ? objectOf(parseJson(builder.take())) : null;
}

const WRITER_OPTIONS = {
  errorFrames: 'data',
  maxEventBytes: 1024 * 1024,
  requestId: 'r',
  promptTokens: 1,
  model: 'm',
  now: () => 1,
} as const;

/** The frames with parsed JSON, because the fast path may keep the upstream's own escapes (F1). */
function valuesOf(text: string): unknown[] {
  return text.split('\n\n').map((frame) => {
    const [head = '', json] = frame.split('\ndata: ');
    return json === undefined ? frame : [head, JSON.parse(json)];
  });
}

const STOPS: ReadonlyMap<string, string> = new Map([
  ['length', 'max_tokens'],
  ['model_length', 'max_tokens'],
  ['max_tokens', 'max_tokens'],
  ['pause_turn', 'max_tokens'],
  ['content_filter', 'refusal'],
]);

/** The signature of their last text follows it. */
const LAST_TEXT_SIGNED = ['gemini--code-execution.sse'];

describe.skipIf(recordingsNote !== '')(`I3 recorded streams as Messages${recordingsNote}`, () => {
  describe.each(SOURCES)('%s', (name, { text: upstream, read, conversion }) => {
    const bytes = encoder.encode(upstream);
    const { text, error } = convertStream([bytes], conversion);
    const client = readMessage(text);
    const sent = read.choices.get(0);

    test('I3 the events are valid and in order', () => {
      expect(checkMessages(text)).toEqual([]);
    });

    test('I3 the client receives the text, the reasoning and the calls that the upstream sent', () => {
      expect(client.text).toBe((sent?.text ?? '') + (sent?.refusal ?? ''));
      expect(client.reasoning).toBe(sent?.reasoning ?? '');
      const calls = sent?.toolCalls ?? [];
      expect(client.calls.map(({ name, arguments: json }) => [name, json])).toEqual(
        calls.map(({ name, arguments: json }) => [name, json]),
      );
      for (const [i, call] of calls.entries()) if (call.id !== '') expect(client.calls[i]?.id).toBe(call.id);
    });

    test('I3 the stop reason and the reported usage', () => {
      expect(client.error !== null).toBe(error !== null);
      if (error !== null) return;
      const [, sequence] = /"stop_sequence":\s*"((?:[^"\\]|\\.)+)"/.exec(upstream) ?? [];
      expect(text.includes(`"stop_sequence":"${sequence}"`)).toBe(sequence !== undefined);
      const word = STOPS.get(sent?.finish ?? '') ?? (client.calls.length > 0 ? 'tool_use' : undefined);
      expect(client.stop).toBe(word ?? (sequence === undefined ? 'end_turn' : 'stop_sequence'));
      const { prompt, completion, cached, cacheWrite } = read.usage ?? {};
      if (prompt == null || completion == null) return;
      expect(client.usage).toMatchObject({
        input_tokens: Math.max(0, prompt - (cached ?? 0) - (cacheWrite ?? 0)),
        output_tokens: completion,
      });
      expect(client.usage?.cache_read_input_tokens).toBe(cached == null ? null : Math.min(cached, prompt));
    });

    test('I7 reasoning states are complete and tagged with the provider, except that of a last text', () => {
      const sealed = (sent?.details ?? []).filter(({ signature, data }) => signature ?? data);
      const opaque = LAST_TEXT_SIGNED.includes(name) ? sealed.slice(0, -1) : sealed;
      const details = client.tokens.filter(({ call }) => call === undefined);
      expect(details.map(({ detail }) => detail)).toEqual(
        opaque.map((detail) => {
          const { text: _text, ...rest } = detail;
          return detail.data === undefined ? rest : detail;
        }),
      );
      const extras = (sent?.toolCalls ?? []).filter(({ extra }) => extra !== null);
      const calls = client.tokens.filter(({ call }) => call !== undefined);
      expect(calls.map(({ extra_content }) => extra_content)).toEqual(extras.map(({ extra }) => extra));
      for (const { provider } of client.tokens) expect(textOf(provider)).toBe(conversion.provider);
    });

    test('I1 the non-streaming message has the same blocks, stop reason and usage', () => {
      const json = build(bytes, conversion);
      if (error !== null) return expect(json).toBeNull();
      const blocks = listOf(json?.content).map(objectOf);
      const textsOf = (key: string) => blocks.map((block) => textOf(block[key])).join('');
      expect([textsOf('text'), textsOf('thinking')]).toEqual([client.text, client.reasoning]);
      const calls = blocks.filter(({ type }) => type === 'tool_use');
      expect(calls.map(({ name, input }) => [name, input])).toEqual(
        client.calls.map(({ name, arguments: json }) => [
          name,
          isObject(parseJson(json)) ? parseJson(json) : {},
        ]),
      );
      expect(json?.stop_reason).toBe(client.stop);
      expect(json?.usage).toMatchObject(client.usage ?? {});
    });

    test('S1 reads of 7 bytes give the same bytes', () => {
      expect(convertStream(cut(bytes, 7), conversion).text).toBe(text);
    });

    test('F4 the fast path writes the same as the slow path', () => {
      expect(valuesOf(text)).toEqual(
        valuesOf(convertStream([bytes], { ...conversion, fastPath: false }).text),
      );
    });

    test('I3 a stream truncated after any event stays valid and has no message_stop', () => {
      const end = upstream.includes('\r\n') ? '\r\n\r\n' : '\n\n';
      const events = upstream.split(end);
      const step = Math.max(1, Math.floor(events.length / 24));
      for (let count = 1; count < events.length; count += step) {
        const part = events.slice(0, count).join(end);
        const converted = convertStream([encoder.encode(part + end)], conversion);
        expect(checkMessages(converted.text)).toEqual([]);
        expect(readMessage(converted.text).error !== null).toBe(converted.error !== null);
      }
    });

    test('C6 I7 stripped reasoning has no text, and only states that need no text', () => {
      const policies = { ...DEFAULT_POLICIES, reasoning: 'strip' } as const;
      const stripped = convertStream([bytes], { ...conversion, policies }).text;
      expect(checkMessages(stripped)).toEqual([]);
      const { reasoning, tokens } = readMessage(stripped);
      expect(reasoning).toBe('');
      const ofTexts = (sent?.details ?? []).filter(
        ({ signature, data, text }) => data === undefined && signature !== undefined && (text ?? '') !== '',
      );
      expect(tokens).toHaveLength(client.tokens.length - ofTexts.length);
    });
  });
});
