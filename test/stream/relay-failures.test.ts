/** Tests how the client's stream fails: before its headers with a status, after them with a frame, and only once. */
import { describe, expect, test } from 'vitest';
import { apiError } from '../../src/canonical/error.ts';
import { bodyOf, DONE, decoder, fedBody, HELLO, readAll, run, STOP, settle } from './stream-bench.ts';

const ERROR = 'data: {"error":{"message":"no","type":"rate_limit_error"}}\n\n';

describe('ClientStream, the headers', () => {
  test('H3 the first output: opens the stream without an error', async () => {
    const { body, feed } = fedBody();
    const { heads } = run(body);
    feed(': queued\n\n');
    await settle();
    expect(heads).toEqual([]);
    feed(HELLO);
    await settle();
    expect(heads).toEqual([null]);
  });

  test('H3 T1 a heartbeat before any output: opens the stream, even if the upstream has not responded', async () => {
    const { readable, heads, clock } = run(undefined, { heartbeatMs: 100 });
    clock.advance(99);
    await settle();
    expect(heads).toEqual([]);
    clock.advance(1);
    await settle();
    expect(heads).toEqual([null]);
    expect(decoder.decode((await readable.getReader().read()).value)).toBe(': heartbeat\n\n');
  });

  test.each([
    ['an error in a data line', ERROR],
    ['an event named error', 'event: error\ndata: {"message":"no","type":"rate_limit_error"}\n\n'],
  ])("H3 E1 %s before any output: no byte, and the upstream's error decides the status", async (_, text) => {
    const { stream, written, ends } = run(bodyOf(text));
    const head = await stream.opened;
    expect(head).toMatchObject({
      failure: { upstreamError: { message: 'no', type: 'rate_limit_error' } },
    });
    await settle();
    expect(written).toEqual([]);
    expect(ends).toMatchObject([{ outcome: { kind: 'failed', reason: 'body' }, isOpen: false }]);
  });

  test('H3 an error after a chunk in the same read: is not first, so both are sent', async () => {
    const { readable, stream } = run(bodyOf(HELLO + ERROR));
    expect(await stream.opened).toBeNull();
    const got = await readAll(readable);
    expect(got).toContain('Hello');
    expect(got.endsWith(`"code":"rate_limit_error"}}\n\n${DONE}`)).toBe(true);
  });

  test('H3 fail before the headers: the error is the response, and no byte is written', async () => {
    const { stream, answer, written, ends } = run();
    answer.fail(apiError('upstream_unreachable', 'OpenAI could not be reached'));
    expect(await stream.opened).toMatchObject({
      failure: { error: { code: 'upstream_unreachable' }, upstreamError: null },
    });
    await settle();
    expect(written).toEqual([]);
    expect(ends).toMatchObject([{ outcome: { kind: 'failed', reason: 'no_response' }, isOpen: false }]);
  });
});

describe('ClientStream, timeouts', () => {
  test.each([
    ['T2', { idleTimeoutMs: 2_500 }, 'idle', 'stream_idle_timeout', 'OpenAI sent nothing for 2.5 seconds'],
    ['T3', { deadlineMs: 1_500 }, 'deadline', 'timeout', 'OpenAI did not finish within 1.5 seconds'],
  ])('%s during a stream: its frame and [DONE], ended as timed out, upstream cancelled', async (...row) => {
    const [, limits, reason, code, message] = row;
    const { body, feed, counts } = fedBody();
    const { readable, clock, stream } = run(body, limits);
    const got = readAll(readable);
    feed(HELLO);
    await settle();
    clock.advance(2_500);
    expect((await got).split('\n\n').slice(1)).toEqual([
      expect.stringContaining(`{"error":{"message":"${message}"`),
      'data: [DONE]',
      '',
    ]);
    expect(await stream.ended).toMatchObject({
      outcome: { kind: 'failed', reason, failure: { error: { code } } },
      isOpen: true,
    });
    await settle();
    expect([counts.cancels, clock.running]).toEqual([1, 0]);
  });

  test('T3 before the upstream has responded: the error is the response, and a later body is cancelled', async () => {
    const { body, counts } = fedBody();
    const { stream, answer, clock } = run(undefined, { deadlineMs: 100 });
    clock.advance(100);
    expect(await stream.opened).toMatchObject({ failure: { error: { code: 'timeout', status: 504 } } });
    expect(await stream.ended).toMatchObject({ outcome: { reason: 'deadline' }, isOpen: false });
    void answer.pump(body);
    await settle();
    expect(counts.cancels).toBe(1);
  });

  test('T2 comments of a queue: postpone the idle timeout, but not after the first event', async () => {
    const { body, feed } = fedBody();
    const { readable, clock, ends } = run(body, { idleTimeoutMs: 100 });
    void readAll(readable);
    for (const text of [': queued\n\n', HELLO, ': still here\n\n']) {
      clock.advance(60);
      feed(text);
      await settle();
    }
    expect(ends).toEqual([]);
    clock.advance(40);
    await settle();
    expect(ends).toMatchObject([{ outcome: { reason: 'idle' } }]);
  });

  test('T3 a finished stream: no timer is left', async () => {
    const { readable, clock } = run(bodyOf(HELLO + STOP + DONE), { deadlineMs: 100, heartbeatMs: 10 });
    await readAll(readable);
    expect(clock.running).toBe(0);
  });
});

describe('ClientStream, an upstream that breaks', () => {
  test.each([
    ['between events', HELLO],
    ['within an event', `${HELLO}data: {"choices":[{"ind`],
  ])('E2 E4 the connection breaks %s: an error frame and [DONE], without the reason', async (_, text) => {
    const { body, feed, fail } = fedBody();
    const { readable, ends } = run(body);
    const all = readAll(readable);
    feed(text);
    await settle();
    fail();
    const got = await all;
    expect(got).toContain('Hello');
    expect(got.endsWith(`"code":"upstream_truncated"}}\n\n${DONE}`)).toBe(true);
    expect(got).not.toContain('10.0.0.1');
    await settle();
    expect(ends).toMatchObject([
      { outcome: { kind: 'failed', failure: { error: { code: 'upstream_truncated' } } } },
    ]);
  });

  test('E1 the connection breaks before its first byte: the error is the response', async () => {
    const { body, fail } = fedBody();
    const { stream } = run(body);
    fail();
    expect(await stream.opened).toMatchObject({
      failure: { error: { code: 'upstream_truncated', status: 502 } },
    });
    expect(await stream.ended).toMatchObject({ outcome: { kind: 'failed', reason: 'body' }, isOpen: false });
  });

  test('T5 the connection breaks while the client does not read: earlier output is sent, then the error', async () => {
    const { body, feed, fail } = fedBody();
    const { readable } = run(body);
    feed(HELLO);
    await settle();
    fail();
    await settle();
    expect(await readAll(readable)).toMatch(/Hello.*\n\n.*upstream_truncated.*\n\ndata: \[DONE\]\n\n$/);
  });

  test('E2 the body ends with a choice unfinished: an error frame, and the same error in `ended`', async () => {
    const { readable, stream } = run(bodyOf(HELLO));
    expect(await readAll(readable)).toContain('"code":"upstream_truncated"');
    expect(await stream.ended).toMatchObject({
      outcome: { kind: 'failed', failure: { error: { code: 'upstream_truncated' } } },
      isOpen: true,
    });
  });

  test('E2 an error during an open stream: nothing after it is sent, and the upstream is cancelled', async () => {
    const { body, feed, counts } = fedBody();
    const { readable, stream } = run(body);
    const all = readAll(readable);
    feed(HELLO);
    await settle();
    feed(ERROR + HELLO);
    expect((await all).match(/Hello/g)).toHaveLength(1);
    expect(await stream.ended).toMatchObject({ outcome: { kind: 'failed', reason: 'body' }, isOpen: true });
    await settle();
    expect(counts.cancels).toBe(1);
  });

  test.each([
    [
      'arguments',
      (deep: string) => `{"tool_calls":[{"index":0,"function":{"name":"f","arguments":${deep}}}]}`,
    ],
    ['content', (deep: string) => `{"content":${deep}}`],
  ])('E2 JSON nested deeper than any stack in %s: no throw, one end, [DONE]', async (_, deltaOf) => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    const event = `data: {"choices":[{"index":0,"delta":${deltaOf(deep)}}]}\n\n`;
    const { readable, ends } = run(bodyOf(HELLO, event, STOP, DONE));
    const got = await readAll(readable);
    expect(got.match(/\[DONE\]/g)).toHaveLength(1);
    await settle();
    expect(ends).toMatchObject([{ outcome: { kind: got.includes('{"error":') ? 'failed' : 'done' } }]);
  });
});
