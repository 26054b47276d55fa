/** Tests the client's stream: nothing waits, nothing is buffered without bound, and it ends once. */
import { describe, expect, test } from 'vitest';
import { convertStream } from '../contract/convert.ts';
import {
  bodyOf,
  CHAT,
  DONE,
  decoder,
  encoder,
  endlessBody,
  fedBody,
  HELLO,
  notingBody,
  readAll,
  run,
  STOP,
  settle,
} from './stream-bench.ts';

describe('ClientStream, delivery', () => {
  test('F4 each event: readable before the next read is given', async () => {
    const { body, feed, close } = fedBody();
    const reader = run(body).readable.getReader();
    for (const text of ['one', 'two', 'three']) {
      feed(HELLO.replace('Hello', text));
      expect(decoder.decode((await reader.read()).value)).toContain(`"content":"${text}"`);
    }
    // A finish waits for what follows it.
    feed(STOP);
    close();
    const end = decoder.decode((await reader.read()).value);
    expect(end).toContain('"finish_reason":"stop"');
    expect(end.endsWith(DONE)).toBe(true);
    expect(await reader.read()).toEqual({ done: true, value: undefined });
  });

  test('F4 an event in two reads: readable when its last byte has arrived', async () => {
    const { body, feed } = fedBody();
    const { readable, written } = run(body);
    const read = readable.getReader().read();
    feed(HELLO.slice(0, -1));
    await settle();
    expect(written).toEqual([]);
    feed(HELLO.slice(-1));
    expect(decoder.decode((await read).value)).toContain('Hello');
  });

  test('F2 a complete output: the bytes of the synchronous path, each write reported, ended as finished', async () => {
    const text = HELLO + STOP + DONE;
    const { readable, stream, written, accumulator } = run(bodyOf(text));
    const got = await readAll(readable);
    expect(got).toBe(convertStream([encoder.encode(text)], CHAT).text);
    expect(written.reduce((sum, bytes) => sum + bytes, 0)).toBe(encoder.encode(got).length);
    expect(await stream.ended).toMatchObject({ outcome: { kind: 'done' } });
    expect(accumulator.finishWord).toBe('stop');
  });

  test('S3 [DONE] before the upstream closes: the stream ends and cancels the upstream', async () => {
    const { body, feed, counts } = fedBody();
    const { readable, stream } = run(body);
    feed(HELLO + STOP + DONE);
    expect((await readAll(readable)).endsWith(DONE)).toBe(true);
    expect(await stream.ended).toMatchObject({ outcome: { kind: 'done' } });
    await settle();
    expect(counts.cancels).toBe(1);
  });

  test('F2 a non-streaming response: one chunk, [DONE], ended as finished', async () => {
    const { readable, stream, answer } = run();
    answer.sendResponse({ choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] });
    const got = await readAll(readable);
    expect(got).toMatch(/^data: \{.*"content":"Hello".*"finish_reason":"stop"\}\]\}\n\ndata: \[DONE\]\n\n$/);
    expect(await stream.ended).toMatchObject({ outcome: { kind: 'done' } });
  });
});

describe('ClientStream, a slow client', () => {
  test('T5 the client does not read: the upstream is read only a few times', async () => {
    const { counts, body } = endlessBody();
    const { written } = run(body);
    await settle();
    expect(counts.pulls).toBeLessThanOrEqual(3);
    expect(written.length).toBeLessThanOrEqual(2);
  });

  test('T5 each read by the client: causes one read of the upstream', async () => {
    const { counts, body } = endlessBody();
    const { readable } = run(body);
    await settle();
    const before = counts.pulls;
    const reader = readable.getReader();
    for (let reads = 0; reads < 20; reads++) await reader.read();
    await settle();
    expect(counts.pulls - before).toBeGreaterThanOrEqual(18);
    expect(counts.pulls - before).toBeLessThanOrEqual(22);
    await reader.cancel();
  });

  test('T5 an upstream that fills a read: the next reads have the larger size, and stay there', async () => {
    const { requested, body } = notingBody(['an event', 'an event', 'full', 'an event', 'full', 'an event']);
    const got = await readAll(run(body).readable);
    expect(requested).toEqual([4096, 4096, 4096, 16_384, 16_384, 16_384]);
    expect(got.match(/Hello/g)).toHaveLength(6);
  });

  test('T1 T5 the client does not read: no heartbeats are queued, and reading resumes them', async () => {
    const { body, feed } = fedBody();
    const { readable, written, clock } = run(body, { heartbeatMs: 100 });
    feed(HELLO);
    await settle();
    clock.advance(1_000);
    expect(written).toHaveLength(1);
    const reader = readable.getReader();
    await reader.read();
    await settle();
    clock.advance(100);
    expect(decoder.decode((await reader.read()).value)).toBe(': heartbeat\n\n');
  });
});

describe('ClientStream, a client that disconnects', () => {
  test('T4 cancel while the upstream is silent: ended once as cancelled, and the upstream is cancelled', async () => {
    const { body, feed, counts } = fedBody();
    const { readable, stream, ends } = run(body);
    const reader = readable.getReader();
    feed(HELLO);
    await reader.read();
    await reader.cancel('left');
    expect(await stream.ended).toMatchObject({ outcome: { kind: 'cancelled' } });
    await settle();
    expect(ends).toHaveLength(1);
    expect(counts.cancels).toBe(1);
  });

  test('T4 cancel without a read: the same', async () => {
    const { counts, body } = endlessBody();
    const { readable, stream } = run(body);
    await readable.cancel();
    expect(await stream.ended).toMatchObject({ outcome: { kind: 'cancelled' } });
    await settle();
    expect(counts.cancels).toBe(1);
  });

  test('T4 cancel before the upstream has responded: its later body is cancelled', async () => {
    const { body, counts } = fedBody();
    const { readable, stream, answer } = run();
    await readable.cancel();
    void answer.pump(body);
    await settle();
    expect(counts.cancels).toBe(1);
    expect(await stream.ended).toMatchObject({ outcome: { kind: 'cancelled' } });
  });

  test('T4 cancel: nothing more is written, metered or timed', async () => {
    const { body, feed } = fedBody();
    const { readable, stream, answer, written, accumulator, clock } = run(body, {
      heartbeatMs: 10,
      deadlineMs: 100,
    });
    const reader = readable.getReader();
    feed(HELLO);
    await reader.read();
    const before = [written.length, accumulator.countUsage().usage.completion_tokens];
    await reader.cancel();
    await stream.ended;
    expect(clock.running).toBe(0);
    clock.advance(1_000);
    answer.sendResponse({ choices: [{ message: { content: 'late' }, finish_reason: 'stop' }] });
    await settle();
    expect([written.length, accumulator.countUsage().usage.completion_tokens]).toEqual(before);
  });

  test('T4 cancel after the stream has ended: changes nothing about its end', async () => {
    const { readable, stream, ends } = run(bodyOf(HELLO + STOP + DONE));
    const reader = readable.getReader();
    await reader.read();
    await stream.ended;
    await reader.cancel();
    await settle();
    expect(ends).toMatchObject([{ outcome: { kind: 'done' } }]);
  });
});
