/** Tests the simple reader of upstream streams with small examples. */
import { describe, expect, test } from 'vitest';
import { emptyChoice } from '../../tools/conformance/contract/content.ts';
import type { JsonObject } from '../../tools/conformance/contract/json.ts';
import { DETAIL, SIGNATURE } from './check-samples.ts';
import { readUpstream } from './reference-reader.ts';
import { calling, deltaEvent, done, upstream } from './reference-samples.ts';

/** Choice 0 of a stream that contains these deltas, without its empty fields. */
function first(...deltas: JsonObject[]) {
  return upstream(...deltas.map((delta) => deltaEvent(delta)), done).choices.get(0);
}

function callsOf(...values: JsonObject[]) {
  return upstream(...values, done)
    .choices.get(0)
    ?.toolCalls.map(({ id, name, arguments: args }) => [id, name, args]);
}

describe('readUpstream, framing', () => {
  test('CRLF, a BOM, comments, no space, no last blank line: all events are read', () => {
    const content = readUpstream(
      '\uFEFF: hi\r\ndata:{"choices":[{"delta":{"content":"a"}}]}\r\n\r\ndata: {"choices":\r\ndata: [{"delta":{"content":"b"},"finish_reason":"stop"}]}',
      'sse',
    );
    expect(content.choices.get(0)).toEqual({ ...emptyChoice(), text: 'ab', finish: 'stop' });
    expect(content).toMatchObject({ error: null, done: false });
  });

  test('[DONE] with white space around it: it ends the content', () => {
    const content = upstream(deltaEvent({ content: 'a' }), 'data:  [DONE] ', deltaEvent({ content: 'b' }));
    expect(content.done).toBe(true);
    expect(content.choices.get(0)?.text).toBe('a');
  });

  test('JSON lines: each line is an event', () => {
    const text =
      '{"choices":[{"index":0,"delta":{"content":"a"}}]}\n{"choices":[{"index":0,"finish_reason":"stop"}]}\n';
    expect(readUpstream(text, 'jsonl').choices.get(0)).toMatchObject({ text: 'a', finish: 'stop' });
  });
});

describe('readUpstream, content', () => {
  test('reasoning under both names: reasoning_content unless it is empty', () => {
    const deltas = [
      { reasoning_content: 'a', reasoning: 'x' },
      { reasoning_content: '', reasoning: 'b' },
      { reasoning: 'c' },
    ];
    expect(first(...deltas)?.reasoning).toBe('abc');
  });

  test('typed content parts: thinking is reasoning, text is text, others are dropped', () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'a' }] };
    const content = [
      thinking,
      { type: 'thinking', thinking: 'b' },
      { type: 'text', text: 'c' },
      { type: 'image' },
    ];
    expect(first({ content })).toMatchObject({ reasoning: 'ab', text: 'c' });
  });

  test('text beside a delta: the delta counts, once', () => {
    expect(
      upstream({ choices: [{ index: 0, text: '2', delta: { content: '2' } }] }, done).choices.get(0)?.text,
    ).toBe('2');
    expect(upstream({ choices: [{ index: 0, text: '2' }] }, done).choices.get(0)?.text).toBe('2');
  });

  test('refusal and logprobs of both shapes: they are read', () => {
    const chat = deltaEvent({ refusal: 'no' }, { logprobs: { content: [{}, {}], refusal: [{}] } });
    const text = deltaEvent({}, { logprobs: { tokens: ['a'] } });
    expect(upstream(chat, text, done).choices.get(0)).toMatchObject({ refusal: 'no', logprobTokens: 4 });
  });

  test('reasoning details: all of them, in their order, without entries that are not objects', () => {
    const deltas = [
      { reasoning_details: [DETAIL, 'x'] },
      { reasoning_details: [SIGNATURE] },
      { reasoning_details: {} },
    ];
    expect(first(...deltas)?.details).toEqual([DETAIL, SIGNATURE]);
  });

  test('a choice without index: its place in the list is its index', () => {
    const content = upstream({ choices: [{ delta: { content: 'a' } }, { delta: { content: 'b' } }] }, done);
    expect([...content.choices.values()].map(({ text }) => text)).toEqual(['a', 'b']);
  });

  test('content after a finish: it is read, and the last finish counts', () => {
    const content = upstream(
      deltaEvent({ content: 'a' }, { finish_reason: 'eos' }),
      deltaEvent({ content: 'b' }, { finish_reason: 'stop' }),
    );
    expect(content.choices.get(0)).toEqual({ ...emptyChoice(), text: 'ab', finish: 'stop' });
  });

  test('content after a finish that usage has followed: an error', () => {
    const content = upstream(
      deltaEvent({ content: 'a' }, { finish_reason: 'stop' }),
      { choices: [], usage: { prompt_tokens: 1 } },
      deltaEvent({ content: 'b' }),
    );
    expect(content).toMatchObject({ error: 'output after the end of a choice' });
  });

  test('the whole text after a finish: it is dropped, as a repetition', () => {
    const content = upstream(
      deltaEvent({ content: 'a' }),
      deltaEvent({ content: 'b' }, { finish_reason: 'stop' }),
      deltaEvent({ content: 'ab' }),
      done,
    );
    expect(content.choices.get(0)).toEqual({ ...emptyChoice(), text: 'ab', finish: 'stop' });
  });

  test('vendor events of both forms: they are neither content nor an error', () => {
    const content = upstream(
      { type: 'x_a', error: { message: 'm' } },
      'event: x_b\ndata: junk',
      deltaEvent({ content: 'a' }),
      done,
    );
    expect(content).toMatchObject({ error: null, done: true });
    expect(content.choices.size).toBe(1);
  });
});

describe('readUpstream, tool calls', () => {
  test('fragments by index: they are joined', () => {
    expect(
      callsOf(
        calling({ index: 0, id: 'a', function: { name: 'f', arguments: '' } }),
        calling(
          { index: 1, id: 'b', function: { name: 'g', arguments: '{}' } },
          { index: 0, id: '', function: { arguments: '{"x"' } },
        ),
        calling({ index: 0, id: null, function: { name: null, arguments: ':1}' } }),
      ),
    ).toEqual([
      ['a', 'f', '{"x":1}'],
      ['b', 'g', '{}'],
    ]);
  });

  test('no index: the known id, a new id, or the last call', () => {
    expect(
      callsOf(
        calling({ id: 'a', function: { name: 'f', arguments: '1' } }, { function: { arguments: '2' } }),
        calling({ id: 'b', function: { name: 'g' } }, { id: 'a', function: { arguments: '3' } }),
        calling({ function: { name: 'h', arguments: {} } }),
      ),
    ).toEqual([
      ['a', 'f', '123'],
      ['b', 'g', ''],
      ['', 'h', '{}'],
    ]);
  });

  test('two calls under one index: another id with a name begins another call', () => {
    expect(
      callsOf(
        calling({ index: 0, id: 'a', function: { name: 'f', arguments: '1' } }),
        calling(
          { index: 0, id: 'b', function: { name: 'f', arguments: '2' } },
          { index: 0, function: { arguments: '3' } },
        ),
      ),
    ).toEqual([
      ['a', 'f', '1'],
      ['b', 'f', '23'],
    ]);
  });

  test('another id without a name: it begins no other call', () => {
    const fragments = [
      calling({ index: 0, id: 'a', function: { name: 'f', arguments: '1' } }),
      calling({ index: 0, id: 'b', function: { arguments: '2' } }),
    ];
    expect(callsOf(...fragments)).toEqual([['a', 'f', '12']]);
  });

  test('extra_content: only the first of a call', () => {
    const [one, other] = [{ google: { thought_signature: 'a' } }, { google: { thought_signature: 'b' } }];
    const content = upstream(
      calling({ index: 0, id: 'a', function: { name: 'f', arguments: '' }, extra_content: one }),
      calling({ index: 0, function: { arguments: '{}' }, extra_content: other }),
      calling({ index: 1, id: 'b', function: { name: 'f', arguments: '{}' }, extra_content: 'x' }),
      done,
    );
    expect(content.choices.get(0)?.toolCalls.map(({ extra }) => extra)).toEqual([one, null]);
  });

  test('"null" for an id, and a legacy function_call: calls without an id', () => {
    expect(callsOf(calling({ index: 0, id: 'null', function: { name: 'f', arguments: '' } }))).toEqual([
      ['', 'f', ''],
    ]);
    const legacy = [
      deltaEvent({ function_call: { name: 'f', arguments: '{' } }),
      deltaEvent({ function_call: { arguments: '}' } }),
    ];
    expect(callsOf(...legacy)).toEqual([['', 'f', '{}']]);
  });
});

describe('readUpstream, failures', () => {
  const cases: [name: string, event: JsonObject | string, error: string][] = [
    ['an error object', { error: { message: 'm' } }, 'm'],
    ['an error text', { error: 'm' }, 'm'],
    ['an error event', 'event: error\ndata: {"message":"m"}', 'm'],
    ["Mistral's error object", { object: 'error', message: 'm' }, 'm'],
    ['a line that is not JSON', 'data: {"choices', 'a line that is not a JSON object'],
    [
      'a finish that is an error',
      deltaEvent({ content: 'b' }, { finish_reason: 'error' }),
      'finish_reason error',
    ],
  ];
  test.each(cases)('%s: the content ends with it', (_name, event, error) => {
    const content = upstream(deltaEvent({ content: 'a' }), event, deltaEvent({ content: 'x' }), done);
    expect(content).toMatchObject({ error, done: false });
    expect(content.choices.get(0)?.text).toMatch(/^ab?$/);
  });

  test('an error for a finish after the finish: it is a repeat, and dropped', () => {
    const content = upstream(
      deltaEvent({}, { finish_reason: 'stop' }),
      deltaEvent({}, { finish_reason: 'error' }),
      done,
    );
    expect(content).toMatchObject({ error: null, done: true });
  });

  test('an error together with choices: their content counts, their finish does not', () => {
    const content = upstream({
      ...deltaEvent({ content: 'a' }, { finish_reason: 'stop' }),
      error: { message: 'm' },
    });
    expect(content.choices.get(0)).toMatchObject({ text: 'a', finish: null });
  });

  test('an end without finish or [DONE]: an error. With either: none', () => {
    expect(upstream(deltaEvent({ content: 'a' })).error).not.toBeNull();
    expect(upstream({ choices: [] }).error).not.toBeNull();
    expect(upstream(deltaEvent({ content: 'a' }), done).error).toBeNull();
    expect(upstream(deltaEvent({ content: 'a' }, { finish_reason: 'stop' })).error).toBeNull();
  });
});
