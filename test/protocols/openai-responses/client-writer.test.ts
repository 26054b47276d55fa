/** Tests Responses streams that no recording has: interleaved calls, custom tools, truncation, bounds. */
import { describe, expect, test } from 'vitest';
import {
  MAX_REPEATED_TEXT_CHARS,
  ResponsesWriter,
} from '../../../src/protocols/openai-responses/client-writer.ts';
import { ResponsesJsonWriter } from '../../../src/protocols/openai-responses/json-writer.ts';
import type { StreamFailure } from '../../../src/stream/types.ts';
import { checkResponses, eventsIn, valuesIn } from '../../../tools/conformance/contract/check-responses.ts';
import { convertStream } from '../../contract/convert.ts';
import { shortestMs } from '../../machine-speed.ts';
import { args, call, delta, FAILURE, finish, takeText, USAGE, write } from './chunks.ts';
import { REQUEST, runStream, sessionOf, WRITER_OPTIONS } from './run.ts';

const encoder = new TextEncoder();

const NO_UPSTREAM_ERROR = {
  message: undefined,
  type: undefined,
  code: undefined,
  param: undefined,
  status: undefined,
};

function typesOf(written: ReturnType<typeof write>): unknown[] {
  return written.items.map(({ type }) => type);
}

describe('I4 one item is open at a time', () => {
  test('fragments that alternate between two calls: the open call streams, the other waits', () => {
    const written = write([
      call(0, 'a', '{"x":'),
      call(1, 'b', '{"y":'),
      args(0, '"}"'),
      args(1, '[1'),
      args(0, '}'),
      args(1, ']}'),
      finish('tool_calls'),
    ]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items).toMatchObject([
      { name: 'a', arguments: '{"x":"}"}', status: 'completed' },
      { name: 'b', arguments: '{"y":[1]}', status: 'completed' },
    ]);
    // The second call opens when the first is complete, not at the finish.
    const added = written.events.findIndex(
      ({ type, output_index }) => type === 'response.output_item.added' && output_index === 1,
    );
    const late = written.events.findIndex(({ delta: piece }) => piece === ']}');
    expect(added).toBeLessThan(late);
  });

  test('text and reasoning after an open call wait, in their order', () => {
    const written = write([
      call(0, 'a', '{'),
      delta({ content: 'x' }),
      delta({ reasoning_content: 'r' }),
      delta({ content: 'y' }),
      args(0, '}'),
      delta({ content: 'z' }),
      finish('tool_calls'),
    ]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(typesOf(written)).toEqual(['function_call', 'message', 'reasoning', 'message']);
    expect(written.items.at(-1)).toMatchObject({ content: [{ text: 'yz' }] });
  });

  test('three calls whose names come first', () => {
    const heads = [0, 1, 2].map((index) => call(index, `t${index}`));
    const rest = [2, 0, 1].map((index) => args(index, `{"n":${index}}`));
    const written = write([...heads, ...rest, finish('tool_calls')]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items.map(({ arguments: text }) => text)).toEqual(['{"n":0}', '{"n":1}', '{"n":2}']);
  });

  test('calls without arguments have {}, also as a delta', () => {
    const written = write([call(0, 'a'), call(1, 'b'), finish('tool_calls')]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items).toMatchObject([{ arguments: '{}' }, { arguments: '{}' }]);
  });

  test('ids that are too long or not unique are replaced', () => {
    const long = 'x'.repeat(65);
    const same = [0, 1].map((index) => call(index, 'a', '{}', { id: 'same' }));
    const written = write([...same, call(2, 'b', '{}', { id: long }), finish('tool_calls')]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items[0]).toMatchObject({ call_id: 'same' });
    for (const item of written.items.slice(1)) expect(item.call_id).toMatch(/^[0-9A-Za-z]{9}$/);
  });

  test('a refusal is a separate part after the text', () => {
    const written = write([
      delta({ content: 'Well' }),
      delta({ refusal: 'No' }),
      delta({ refusal: '.' }),
      finish('stop'),
    ]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items).toMatchObject([
      {
        content: [
          { type: 'output_text', text: 'Well' },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
    ]);
  });

  test('logprobs are in the delta and in the part', () => {
    const content = [
      { token: 'A', logprob: -1, bytes: null, top_logprobs: [{ token: 'B', logprob: null, bytes: [66] }] },
    ];
    const written = write([
      delta({ content: 'A' }, { logprobs: { content, refusal: null } }),
      finish('stop'),
    ]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items).toMatchObject([
      {
        content: [
          {
            logprobs: [
              {
                token: 'A',
                logprob: -1,
                bytes: [],
                top_logprobs: [{ token: 'B', logprob: -9999, bytes: [66] }],
              },
            ],
          },
        ],
      },
    ]);
  });

  test('only the first choice is sent', () => {
    const other = {
      ...delta({ content: 'other' }),
      choices: [{ ...delta({ content: 'other' }).choices[0], index: 1 }],
    };
    const written = write([delta({ content: 'one' }), other as ReturnType<typeof delta>, finish('stop')]);
    expect(written.text).not.toContain('other');
  });

  test('a chunk with several updates of the choice: all count, also the finish', () => {
    const pieces = [delta({ content: 'a' }), delta({ content: 'b' }), finish('length')];
    const choices = pieces.flatMap((piece) => piece.choices);
    const { items, response } = write([{ ...finish('length'), choices }]);
    expect(response.status).toBe('incomplete');
    expect(items).toMatchObject([{ status: 'incomplete', content: [{ text: 'ab' }] }]);
  });
});

describe('I4 custom tools', () => {
  const tools = [
    { type: 'custom', name: 'apply_patch' },
    {
      type: 'namespace',
      name: 'functions',
      description: '',
      tools: [
        { type: 'custom', name: 'exec' },
        { type: 'function', name: 'wait' },
      ],
    },
  ];
  const session = sessionOf({ ...REQUEST, tools });

  test('the input streams without escapes, with the names of the request', () => {
    const json = JSON.stringify({ input: 'a "b"\n\tü \u2028 \ud83d\ude00 \\ \u0001' });
    const pieces = [...json].map((unit) => args(0, unit));
    const written = write([call(0, 'functions__exec'), ...pieces, finish('tool_calls')], { session });
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items).toMatchObject([
      {
        type: 'custom_tool_call',
        name: 'exec',
        namespace: 'functions',
        input: 'a "b"\n\tü \u2028 \ud83d\ude00 \\ \u0001',
        status: 'completed',
      },
    ]);
    const deltas = written.events.filter(({ type }) => type === 'response.custom_tool_call_input.delta');
    expect(deltas.length).toBeGreaterThan(10);
  });

  test.each([
    ['{"patch":"x"}', 'x'],
    ['{"input":{"a":1}}', '{"input":{"a":1}}'],
    ['*** Begin Patch', '*** Begin Patch'],
    ['', ''],
  ])('arguments of another form, %s: the input is %s', (given, input) => {
    const written = write([call(0, 'apply_patch', given), finish('tool_calls')], { session });
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items).toMatchObject([{ input }]);
  });

  test('a call of a function in a namespace has the namespace', () => {
    const written = write([call(0, 'functions__wait', '{}'), finish('tool_calls')], { session });
    expect(written.items).toMatchObject([{ type: 'function_call', name: 'wait', namespace: 'functions' }]);
  });
});

describe('I4 truncated output', () => {
  test.each([
    ['length', 'max_output_tokens'],
    ['content_filter', 'content_filter'],
  ] as const)('%s in a text: the response and the last item are incomplete', (reason, incomplete) => {
    const written = write([delta({ content: 'Wat' }), finish(reason)]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: incomplete },
      completed_at: null,
      output: [{ status: 'incomplete' }],
    });
  });

  test('length within a call: its arguments stay incomplete', () => {
    const written = write([call(0, 'a', '{"x":1}'), call(1, 'b', '{"y'), finish('length')]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items).toMatchObject([
      { status: 'completed' },
      { status: 'incomplete', arguments: '{"y' },
    ]);
  });

  test('a failure: error, response.failed with the output so far, and [DONE]', () => {
    const written = write([delta({ content: 'Wa' }), delta({ content: 'ter' })], { failure: FAILURE });
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.events.at(-2)).toMatchObject({
      type: 'error',
      error: { type: 'server_error', code: 'server_error', message: FAILURE.error.message },
    });
    expect(written.response).toMatchObject({
      status: 'failed',
      error: { code: 'server_error' },
      output: [{ status: 'incomplete', content: [{ text: 'Water' }] }],
    });
  });

  test('a failure after a heartbeat, before the first chunk: a valid stream', () => {
    const writer = new ResponsesWriter(sessionOf(), WRITER_OPTIONS);
    writer.heartbeat();
    writer.end(FAILURE);
    expect(checkResponses(takeText(writer))).toEqual([]);
  });

  test.each([
    ['context_length_exceeded', 'context_length_exceeded'],
    ['rate_limited', 'rate_limit_exceeded'],
    ['overloaded_error', 'server_is_overloaded'],
    ['budget_exceeded', 'insufficient_quota'],
    ['invalid_prompt', 'invalid_prompt'],
    ['bio_policy', 'bio_policy'],
    ['invalid_base64_image', 'invalid_base64_image'],
    ['upstream_truncated', 'server_error'],
    ['invalid_request_error', 'server_error'],
  ])('the code %s becomes %s', (code, expected) => {
    const written = write([], { failure: { ...FAILURE, error: { ...FAILURE.error, code } } });
    expect(written.response).toMatchObject({ error: { code: expected } });
  });

  test.each<[what: string, failure: StreamFailure]>([
    [
      "a 503 with the provider's code, after a heartbeat",
      { ...FAILURE, error: { ...FAILURE.error, status: 503, code: 'invalid_request_error' } },
    ],
    [
      'an error event with the status 529',
      { ...FAILURE, upstreamError: { ...NO_UPSTREAM_ERROR, status: 529, code: '1305' } },
    ],
  ])('%s: server_is_overloaded', (_, failure) => {
    expect(write([], { failure }).response).toMatchObject({ error: { code: 'server_is_overloaded' } });
  });

  test('a failure after any chunk: a valid stream with one end', () => {
    const chunks = [
      delta({ role: 'assistant' }),
      delta({ reasoning_content: 'r' }),
      delta({ content: 'x' }),
      delta({ refusal: 'n' }),
      call(0, 'a', '{'),
      call(1, 'b', '{"y":'),
      delta({ content: 'late' }),
      args(0, '}'),
      args(1, '1}'),
    ];
    for (let length = 0; length <= chunks.length; length++) {
      const written = write(chunks.slice(0, length), { failure: FAILURE });
      expect(checkResponses(written.text), `after ${length} chunks`).toEqual([]);
    }
  });
});

describe('the status of a reasoning item', () => {
  const thought = delta({ reasoning_content: 'Hm.' });

  test('in progress when it opens, completed when it ends', () => {
    const written = write([thought, delta({ content: 'x' }), finish('stop')]);
    const statusOf = (type: string) =>
      written.events.find((event) => event.type === type && event.output_index === 0)?.item;
    expect(statusOf('response.output_item.added')).toMatchObject({
      type: 'reasoning',
      status: 'in_progress',
    });
    expect(statusOf('response.output_item.done')).toMatchObject({ type: 'reasoning', status: 'completed' });
    expect(written.items[0]).toMatchObject({ type: 'reasoning', status: 'completed' });
  });

  test('a limit reached within the reasoning: incomplete', () => {
    expect(write([thought, finish('length')]).items).toMatchObject([{ status: 'incomplete' }]);
  });

  test('a failure within the reasoning: incomplete', () => {
    const { response } = write([thought], { failure: FAILURE });
    expect(response).toMatchObject({ output: [{ type: 'reasoning', status: 'incomplete' }] });
  });
});

describe('I4 I7 reasoning states', () => {
  const signed = {
    type: 'reasoning.text',
    text: '',
    signature: 's',
    index: 0,
    format: 'anthropic-claude-v1',
    id: 'weir1:p:0',
  };

  test('two signed thoughts are two items, each with its own state', () => {
    const written = write([
      delta({ reasoning_content: 'one' }),
      delta({ reasoning_details: [signed] }),
      delta({ reasoning_content: 'two' }),
      delta({ reasoning_details: [{ ...signed, index: 1, signature: 't' }] }),
      delta({ content: 'x' }),
      finish('stop'),
    ]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items).toMatchObject([
      { summary: [{ text: 'one' }], encrypted_content: expect.stringMatching(/^weir1:p:/) },
      { summary: [{ text: 'two' }], encrypted_content: expect.stringMatching(/^weir1:p:/) },
      { type: 'message' },
    ]);
  });

  test('a redacted thought and a call’s signature: reasoning without text, before the next item', () => {
    const redacted = { type: 'reasoning.encrypted', data: 'd', index: 0, id: 'weir1:p:0' };
    const extra_content = { google: { thought_signature: 'ts' }, weir: { provider: 'p' } };
    const written = write([
      delta({ reasoning_details: [redacted] }),
      delta({ content: 'x' }),
      call(0, 'a', '{}', { extra_content }),
      finish('tool_calls'),
    ]);
    expect(checkResponses(written.text)).toEqual([]);
    expect(typesOf(written)).toEqual(['reasoning', 'message', 'reasoning', 'function_call']);
  });

  test('reasoning without states has encrypted_content if the request includes it: the AI SDK only sends back such items', () => {
    const chunks = [delta({ reasoning_content: 'one' }), finish('stop')];
    expect(write(chunks).items[0]).not.toHaveProperty('encrypted_content');
    const session = sessionOf({ ...REQUEST, include: ['reasoning.encrypted_content'] });
    const written = write(chunks, { session });
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.items).toMatchObject([{ encrypted_content: 'weir1:p:W10' }]);
  });
});

describe('I4 the output is kept in memory once, within a bound', () => {
  const line = (content: string) =>
    `data: ${JSON.stringify({ id: 'c', created: 1_790_000_000, model: 'm', choices: [{ index: 0, delta: { content } }] })}\n\n`;
  const piece = 'x'.repeat(1000);
  const count = Math.ceil(MAX_REPEATED_TEXT_CHARS / piece.length) + 5;
  const conversion = { provider: 'openai', route: 'chat', model: 'm', usageChunk: true } as const;

  test.each([true, false])('beyond the bound the stream fails with the reason, fast path %s', (fastPath) => {
    const bytes = encoder.encode(line(piece).repeat(count));
    const { text, error } = runStream([bytes], { ...conversion, fastPath });
    expect(error).toMatchObject({ code: 'upstream_event_too_large' });
    expect(checkResponses(text)).toEqual([]);
    const { response } = eventsIn(text).at(-1) ?? {};
    expect(response).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('/v1/chat/completions') },
    });
    // At most one or two frames beyond the bound were written.
    expect(text.split('output_text.delta"').length - 1).toBeLessThan(count - 2);
    expect(convertStream([bytes], conversion).error).toMatchObject({ code: 'upstream_truncated' });
  });
});

describe('the stream', () => {
  test('T1 a heartbeat is a comment, before the first event and between events', () => {
    const writer = new ResponsesWriter(sessionOf(), WRITER_OPTIONS);
    writer.heartbeat();
    writer.chunk(delta({ content: 'x' }));
    writer.heartbeat();
    writer.chunk(finish('stop'));
    writer.chunk(USAGE);
    writer.end(null);
    const text = takeText(writer);
    expect(text.startsWith(': heartbeat\n\nevent: response.created\n')).toBe(true);
    expect(checkResponses(text)).toEqual([]);
  });

  test('R5 after discarded output the numbers and items start from the beginning', () => {
    const writer = new ResponsesWriter(sessionOf(), WRITER_OPTIONS);
    writer.chunk(delta({ role: 'assistant' }));
    const { revision } = writer;
    takeText(writer);
    writer.restart();
    expect(writer.revision).toBeGreaterThan(revision);
    for (const chunk of [delta({ content: 'x' }), finish('stop'), USAGE]) writer.chunk(chunk);
    writer.end(null);
    const text = takeText(writer);
    expect(checkResponses(text)).toEqual([]);
    expect(text).toContain('"text":"x"');
  });

  test.each<[what: string, one: Parameters<typeof delta>[0]]>([
    ['items', { reasoning_content: 'b' }],
    ['parts of one item', { refusal: 'b' }],
  ])('B3 I4 %s of one character: each counts more than its text, so the stream fails early', (_, one) => {
    const writer = new ResponsesWriter(sessionOf(), WRITER_OPTIONS);
    const json = new ResponsesJsonWriter(sessionOf(), WRITER_OPTIONS);
    const chunks = [delta({ content: 'a' }), delta(one)];
    const accepted = ({ chunk }: { chunk: (chunk: ReturnType<typeof delta>) => boolean }) => {
      let count = 0;
      while (count < 100_000 && chunks.every(chunk)) count++;
      return count;
    };
    expect(accepted({ chunk: (chunk) => writer.chunk(chunk) && takeText(writer) !== '' })).toBeLessThan(
      10_000,
    );
    expect(accepted({ chunk: (chunk) => json.chunk(chunk) })).toBeLessThan(50_000);
  });

  test('B3 I4 a waiting call is found in constant time', () => {
    const timeBehind = (waiting: number) => {
      const writer = new ResponsesWriter(sessionOf(), WRITER_OPTIONS);
      writer.chunk(call(0, 'f', '{'));
      for (let i = 0; i < waiting; i++) {
        writer.chunk(delta({ content: 'a' }));
        writer.chunk(delta({ reasoning_content: 'b' }));
      }
      writer.chunk(call(1, 'g', '{'));
      return shortestMs(20, () => {
        for (let i = 0; i < 1000; i++) writer.chunk(args(1, 'x'));
      });
    };
    // A linear search takes some 500 times as long.
    expect(timeBehind(1000)).toBeLessThan(20 * timeBehind(2));
  });

  test('B3 I4 texts that wait for an open call are joined', () => {
    const late = Array.from({ length: 5 }, () => delta({ content: 'x' }));
    const { events, items } = write([call(0, 'f', '{'), ...late, args(0, '}'), finish('stop')]);
    expect(items).toMatchObject([{ type: 'function_call' }, { content: [{ text: 'xxxxx' }] }]);
    expect(events.filter(({ type }) => type === 'response.output_text.delta')).toHaveLength(1);
  });

  test('the fast path copies frames that only differ by their text, and every event has its number', () => {
    const json = (of: object) =>
      `data: ${JSON.stringify({ id: 'c', created: 1_790_000_000, model: 'm', choices: [of] })}\n\n`;
    const texts = Array.from({ length: 30 }, (_, at) => `w${at} "ü"\n`);
    const upstream = [
      ...texts.map((reasoning_content) => json({ index: 0, delta: { reasoning_content } })),
      ...texts.map((content) => json({ index: 0, delta: { content } })),
      json({ index: 0, delta: {}, finish_reason: 'stop' }),
      'data: [DONE]\n\n',
    ].join('');
    const conversion = { provider: 'openai', route: 'chat', model: 'm', usageChunk: true } as const;
    const fast = runStream([encoder.encode(upstream)], conversion);
    const slow = runStream([encoder.encode(upstream)], { ...conversion, fastPath: false });
    expect(fast.copiedEvents).toBeGreaterThan(50);
    expect(checkResponses(fast.text)).toEqual([]);
    expect(valuesIn(fast.text)).toEqual(valuesIn(slow.text));
  });

  test('I4 instructions and tools beyond the bound are not repeated', () => {
    const session = sessionOf({ ...REQUEST, instructions: 'x'.repeat(70_000) });
    const written = write([delta({ content: 'x' }), finish('stop')], { session });
    expect(checkResponses(written.text)).toEqual([]);
    expect(written.response).toMatchObject({ instructions: null, tools: [] });
    const small = write([delta({ content: 'x' }), finish('stop')], {
      session: sessionOf({ ...REQUEST, instructions: 'Be brief', tools: [{ type: 'function', name: 'a' }] }),
    });
    expect(small.response).toMatchObject({
      instructions: 'Be brief',
      tools: [{ name: 'a', parameters: null }],
    });
  });
});
