/** Tests what the live view keeps of a stream (D6). */
import { describe, expect, test } from 'vitest';
import { PROTOCOLS } from '../../src/dashboard/page/views/live/protocols.ts';
import { Run } from '../../src/dashboard/page/views/live/run.ts';

const MAX_FRAMES = 5000;
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_PARTS = 1000;
const MAX_TEXT = 1_000_000;

/** The run of a stream with these frames. */
async function runOf(frames: Iterable<string>): Promise<Run> {
  const encoder = new TextEncoder();
  const pending = frames[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { value, done } = pending.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`data: ${value}\n\n`));
    },
  });
  const run = new Run('m', PROTOCOLS.chat, () => undefined);
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
