/** Runs every recorded Responses stream through the stream core into chat and completions: complete, split, and truncated (A3, A7, N2). */
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { openaiResponses } from '../../src/protocols/openai-responses/upstream-reader.ts';
import { check } from '../../tools/conformance/contract/check.ts';
import { eventsOf } from '../../tools/conformance/contract/content.ts';
import { objectOf, parseJson } from '../../tools/conformance/contract/json.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import { type Conversion, convertObject, convertStream, cut } from './convert.ts';
import { expectationOf } from './expectation.ts';
import { framed, readRecordings, recordingsNote } from './recordings.ts';
import { differences, readClient } from './reference-reader.ts';
import { readResponseObject, readResponsesStream } from './reference-responses.ts';

const encoder = new TextEncoder();
const CONVERSION: Conversion = {
  provider: 'openai',
  route: 'chat',
  model: 'asked-for',
  usageChunk: true,
  protocol: openaiResponses,
};

const named = readRecordings()
  .filter(({ protocol }) => protocol === 'responses')
  .map((recording) => [recording.name, framed(recording)] as const);

function brokenRules(text: string, conversion: Conversion): string[] {
  return check(encoder.encode(text), expectationOf(conversion));
}

function jsonOf(text: string): unknown[] {
  return text.split('\n\n').map((frame) => objectOf(parseJson(frame.slice('data: '.length))));
}

describe.skipIf(recordingsNote !== '')(`recorded Responses streams${recordingsNote}`, () => {
  test('there are some', () => {
    expect(named.length).toBeGreaterThan(10);
  });

  describe.each(named)('%s', (_, upstream) => {
    const bytes = encoder.encode(upstream);
    const { text } = convertStream([bytes], CONVERSION);
    const read = readResponsesStream(upstream, 'openai');

    test('A3 A7 the contract holds, and the client receives what the provider sent, and nothing else', () => {
      expect(brokenRules(text, CONVERSION)).toEqual([]);
      expect(differences(read, readClient(text))).toEqual([]);
    });

    test('C6 A7 reasoning that is stripped: encrypted data stays', () => {
      const policies = { ...DEFAULT_POLICIES, reasoning: 'strip' } as const;
      const client = convertStream([bytes], { ...CONVERSION, policies }).text;
      expect(differences(read, readClient(client), { reasoning: 'strip' })).toEqual([]);
    });

    test.each([1, 7, 64])('S1 cut into reads of %d bytes: the client gets the same bytes', (size) => {
      expect(convertStream(cut(bytes, size), CONVERSION).text).toBe(text);
    });

    test('A8 O9 the fast path writes what the normal path writes', () => {
      expect(jsonOf(text)).toEqual(jsonOf(convertStream([bytes], { ...CONVERSION, fastPath: false }).text));
    });

    test('E2 truncated after any event: an error after the start of the complete output', () => {
      const ends = [...upstream.matchAll(/\r?\n\r?\n/g)].map(({ index, 0: end }) => index + end.length);
      const whole = readClient(text).choices.get(0);
      for (const end of ends.slice(0, -1)) {
        const cutShort = convertStream([encoder.encode(upstream.slice(0, end))], CONVERSION);
        if (read.error === null) expect(cutShort.error?.code).toBe('upstream_truncated');
        expect(brokenRules(cutShort.text, CONVERSION)).toEqual([]);
        const got = readClient(cutShort.text).choices.get(0);
        expect((whole?.text ?? '').startsWith(got?.text ?? '')).toBe(true);
        expect((whole?.reasoning ?? '').startsWith(got?.reasoning ?? '')).toBe(true);
        for (const [i, call] of (got?.toolCalls ?? []).entries()) {
          const { id, name, arguments: json = '' } = whole?.toolCalls[i] ?? {};
          expect([id, name, json.startsWith(call.arguments)]).toEqual([call.id, call.name, true]);
        }
      }
    });

    test('A3 its last response as a non-streaming response reads the same', () => {
      if (read.error !== null) return;
      const { response } = objectOf(parseJson([...eventsOf(upstream)].at(-1)?.data ?? ''));
      const object = encoder.encode(JSON.stringify(response));
      const whole = readResponseObject(objectOf(response), 'openai');
      expect(differences(whole, readClient(convertObject(object, CONVERSION, true).text))).toEqual([]);
    });

    test('O7 O8 the openai SDK reads it through chat as it reads the recording itself: text, calls, finish, usage', async () => {
      const chat = await readWithChat(text).catch(() => null);
      expect(chat).toEqual(await readWithResponses(upstream));
      expect(chat === null).toBe(read.error !== null);
    });

    test('C10 as legacy completions: the text and its finish', () => {
      const conversion: Conversion = { ...CONVERSION, route: 'completions' };
      const client = convertStream([bytes], conversion).text;
      expect(brokenRules(client, conversion)).toEqual([]);
      const choice = readClient(client).choices.get(0);
      expect(choice?.text ?? '').toBe(read.choices.get(0)?.text);
      expect((choice?.finish ?? null) === null).toBe(read.error !== null);
    });
  });
});

/** The `openai` package with one recorded stream as the response of every request. */
function sdkOf(stream: string): OpenAI {
  const headers = { 'content-type': 'text/event-stream' };
  return new OpenAI({
    apiKey: 'unused',
    maxRetries: 0,
    fetch: async () => new Response(stream, { headers }),
  });
}

/** A finished response as its SDK reads it; null: it failed. */
async function readWithResponses(stream: string) {
  const response = await sdkOf(stream)
    .responses.stream({ model: 'm', input: 'x' })
    .finalResponse()
    .catch(() => null);
  if (response === null || response.status === 'failed') return null;
  const { output, usage, incomplete_details } = response;
  const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []));
  const calls = output.flatMap((item) =>
    item.type === 'function_call' ? [[item.call_id, item.name, item.arguments]] : [],
  );
  const reason = { max_output_tokens: 'length', content_filter: 'content_filter' }[
    String(incomplete_details?.reason)
  ];
  return {
    text: parts.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
    refusal: parts.map((part) => (part.type === 'refusal' ? part.refusal : '')).join(''),
    calls,
    finish: reason ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
    usage: [
      usage?.input_tokens,
      usage?.output_tokens,
      usage?.total_tokens,
      usage?.input_tokens_details.cached_tokens,
      usage?.output_tokens_details.reasoning_tokens,
    ],
  };
}

/** The same of a chat stream. */
async function readWithChat(stream: string) {
  let usage: OpenAI.CompletionUsage | undefined;
  const chunks = await sdkOf(stream).chat.completions.create({ model: 'm', messages: [], stream: true });
  let [text, refusal, finish] = ['', '', ''];
  const calls: [id: string, name: string, json: string][] = [];
  for await (const chunk of chunks) {
    usage = chunk.usage ?? usage;
    for (const { delta, finish_reason } of chunk.choices) {
      text += delta.content ?? '';
      refusal += delta.refusal ?? '';
      finish = finish_reason ?? finish;
      for (const { index, id, function: fn } of delta.tool_calls ?? []) {
        const call = calls[index] ?? ['', '', ''];
        calls[index] = [id ?? call[0], fn?.name ?? call[1], call[2] + (fn?.arguments ?? '')];
      }
    }
  }
  return {
    text,
    refusal,
    calls,
    finish,
    usage: [
      usage?.prompt_tokens,
      usage?.completion_tokens,
      usage?.total_tokens,
      usage?.prompt_tokens_details?.cached_tokens,
      usage?.completion_tokens_details?.reasoning_tokens,
    ],
  };
}
