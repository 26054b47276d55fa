/** Tests what the live view keeps of a stream, and how it reads each client protocol (D6). */
import { describe, expect, test } from 'vitest';
import { PROTOCOLS, type Protocol } from '../../src/dashboard/page/views/live/protocols.ts';
import { Run } from '../../src/dashboard/page/views/live/run.ts';

const MAX_FRAMES = 5000;
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_PARTS = 1000;
const MAX_TEXT = 1_000_000;

/** The run of a stream with these frames. */
async function runOf(frames: Iterable<string>, protocol: Protocol = PROTOCOLS.chat): Promise<Run> {
  const encoder = new TextEncoder();
  const pending = frames[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { value, done } = pending.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`data: ${value}\n\n`));
    },
  });
  const run = new Run('m', protocol, () => undefined);
  await run.start({ stream: async () => new Response(body) }, 'hi', {});
  return run;
}

const chunk = (delta: object, finish_reason: string | null = null) =>
  JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] });

describe('D6 a long stream', () => {
  test('frames, parts and text are kept up to a limit; all are counted, and the end is read', async () => {
    const count = 6000;
    const run = await runOf(
      (function* () {
        for (let n = 0; n < count; n++)
          yield chunk({ [n % 2 === 0 ? 'content' : 'reasoning_content']: 'x'.repeat(1500) });
        yield chunk({ tool_calls: [{ index: 0, function: { name: 'f', arguments: '{}' } }] }, 'tool_calls');
        yield '[DONE]';
      })(),
    );
    expect(run.frameCount).toBe(count + 2);
    expect(run.frames.length).toBeLessThanOrEqual(MAX_FRAMES);
    expect(run.frames.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(MAX_BYTES);
    expect(run.parts.length).toBeLessThanOrEqual(MAX_PARTS);
    expect(run.parts.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(MAX_TEXT);
    expect([run.isCut, run.phase, run.finish]).toEqual([true, 'done', 'tool_calls']);
  });

  test('the bytes of kept frames have a limit, too', async () => {
    const run = await runOf(
      (function* () {
        for (let n = 0; n < 12; n++) yield chunk({ content: '', filler: 'y'.repeat(1024 * 1024) });
        yield '[DONE]';
      })(),
    );
    expect(run.frameCount).toBe(13);
    expect(run.frames.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(MAX_BYTES);
    expect([run.isCut, run.phase]).toEqual([true, 'done']);
  });

  test('one frame above 4 MiB is counted whole, and kept in part at most', async () => {
    const size = 5 * 1024 * 1024;
    const run = await runOf([chunk({ content: 'a' }), chunk({ content: 'z'.repeat(size) }), '[DONE]']);
    expect(run.frameCount).toBe(3);
    expect(run.bytes).toBeGreaterThan(size);
    expect(run.frames.every(({ text }) => text.length <= 4 * 1024 * 1024)).toBe(true);
    expect(run.parts.map(({ text }) => text)).toEqual(['a']);
  });

  test('errors without end: the first is kept, and no more parts than the limit', async () => {
    const error = JSON.stringify({ error: { message: 'no', code: 'upstream_error' } });
    const run = await runOf(Array.from({ length: 3000 }, () => error));
    expect(run.parts.length).toBeLessThanOrEqual(MAX_PARTS + 1);
    expect(run.parts[0]).toMatchObject({ kind: 'error', text: 'no' });
    expect(run.phase).toBe('failed');
  });

  test('a short stream is kept whole', async () => {
    const run = await runOf([chunk({ content: 'a' }), chunk({ content: 'b' }, 'stop'), '[DONE]']);
    expect(run.isCut).toBe(false);
    expect(run.frames.map(({ kind }) => kind)).toEqual(['text', 'text', 'done']);
    expect(run.parts.map(({ text }) => text)).toEqual(['ab']);
  });
});

describe('D6 the client protocols', () => {
  const event = (fields: object) => JSON.stringify(fields);
  const texts = (run: Run) => run.parts.map(({ kind, title, text }) => [kind, title, text]);

  test('a message: thinking, text, a call, the usage of its start and its end', async () => {
    const block = (index: number, content_block: object, ...deltas: object[]) => [
      event({ type: 'content_block_start', index, content_block }),
      ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta })),
    ];
    const usage = { input_tokens: 5, cache_read_input_tokens: 20, cache_creation_input_tokens: 3 };
    const run = await runOf(
      [
        event({ type: 'message_start', message: { usage: { ...usage, output_tokens: 1 } } }),
        event({ type: 'ping' }),
        ...block(0, { type: 'thinking', thinking: '' }, { thinking: 'hm' }, { signature: 'x' }),
        ...block(1, { type: 'text', text: '' }, { text: 'a' }, { text: 'b' }),
        ...block(2, { type: 'tool_use', name: 'f' }, { partial_json: '{"c":' }, { partial_json: '1}' }),
        event({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } }),
        event({ type: 'message_stop' }),
      ],
      PROTOCOLS.messages,
    );
    expect(texts(run)).toEqual([
      ['reasoning', 'Reasoning', 'hm'],
      ['text', 'Text', 'ab'],
      ['tool', 'f', '{"c":1}'],
    ]);
    expect(run.usage).toMatchObject({ prompt_tokens: 28, completion_tokens: 9 });
    expect(run.usage?.prompt_tokens_details).toEqual({ cached_tokens: 20, cache_write_tokens: 3 });
    expect([run.phase, run.finish, run.frames.at(-1)?.kind]).toEqual(['done', 'tool_use', 'done']);
  });

  const delta = (type: string, text: string, output_index = 0) =>
    event({ type: `response.${type}.delta`, output_index, delta: text });

  test.each([
    [{ status: 'completed' }, 'completed'],
    [{ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }, 'max_output_tokens'],
  ])('a response: reasoning, text, a call, and the usage at its end (%j)', async (ending, finish) => {
    const usage = {
      ...{ input_tokens: 30, output_tokens: 9, total_tokens: 39 },
      ...{ input_tokens_details: { cached_tokens: 20 }, output_tokens_details: { reasoning_tokens: 4 } },
    };
    const run = await runOf(
      [
        event({ type: 'response.created', response: { status: 'in_progress', usage: null, error: null } }),
        delta('reasoning_summary_text', 'hm'),
        delta('output_text', 'a', 1),
        delta('output_text', 'b', 1),
        event({
          ...{ type: 'response.output_item.added', output_index: 2 },
          item: { type: 'function_call', name: 'f' },
        }),
        delta('function_call_arguments', '{}', 2),
        event({ type: `response.${ending.status}`, response: { ...ending, usage, error: null } }),
        '[DONE]',
      ],
      PROTOCOLS.responses,
    );
    expect(texts(run)).toEqual([
      ['reasoning', 'Reasoning', 'hm'],
      ['text', 'Text', 'ab'],
      ['tool', 'f', '{}'],
    ]);
    expect(run.usage).toMatchObject({ prompt_tokens: 30, completion_tokens: 9, total_tokens: 39 });
    expect([run.phase, run.finish]).toEqual(['done', finish]);
  });

  test.each([
    ['chat', [chunk({ content: 'a' }), event({ error: { code: 'c', message: 'no' } }), '[DONE]']],
    ['messages', [event({ type: 'error', error: { type: 'c', message: 'no' } })]],
    [
      'responses',
      [
        event({ type: 'error', error: { code: 'c', message: 'no' } }),
        event({ type: 'response.failed', response: { error: { code: 'c', message: 'no' } } }),
        '[DONE]',
      ],
    ],
    ['responses', [event({ type: 'error', code: 'c', message: 'no' }), '[DONE]']],
    ['gemini', [event({ error: { status: 'c', message: 'no' } })]],
  ] as const)('%s: an error in the stream is shown once', async (name, frames) => {
    const run = await runOf(frames, PROTOCOLS[name]);
    expect(texts(run).filter(([kind]) => kind === 'error')).toEqual([['error', 'c', 'no']]);
    expect(run.phase).toBe('failed');
  });

  test.each([
    ['chat', chunk({ content: 'a' }), 'no [DONE]'],
    ['messages', event({ type: 'content_block_delta', delta: { text: 'a' } }), 'no message_stop'],
    ['responses', delta('output_text', 'a'), 'no response.completed'],
    ['gemini', event({ candidates: [{ content: { parts: [{ text: 'a' }] } }] }), 'no finishReason'],
  ] as const)('%s: a stream without its last frame is an error', async (name, frame, title) => {
    const run = await runOf([frame], PROTOCOLS[name]);
    expect(texts(run)).toEqual([
      ['text', 'Text', 'a'],
      ['error', title, 'The stream ended without its last frame.'],
    ]);
  });
});
