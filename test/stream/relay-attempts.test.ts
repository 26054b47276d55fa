/** Tests a stream with several attempts: what is held, what is discarded, and what ends the stream (R5). */
import { describe, expect, test } from 'vitest';
import { apiError } from '../../src/canonical/error.ts';
import { UsageAccumulator } from '../../src/metering/request-meter.ts';
import { MAX_HELD_OUTPUT_BYTES } from '../../src/stream/relay.ts';
import type { TimerLimits } from '../../src/stream/timers.ts';
import { failed, type Outcome } from '../../src/stream/types.ts';
import { optionsOf } from '../contract/convert.ts';
import { FakeClock } from './fake-clock.ts';
import {
  bodyOf,
  CHAT,
  DONE,
  decoder,
  type EmptyEnd,
  encoder,
  fedBody,
  HELLO,
  type Run,
  readAll,
  run,
  STOP,
  settle,
  TestAttempt,
  type Turn,
} from './stream-bench.ts';

const ROLE = 'data: {"id":"held","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n';
const ERROR = 'data: {"error":{"message":"no","type":"rate_limit_error"}}\n\n';
const DOWN = apiError('upstream_unreachable', 'OpenAI could not be reached');

/** A turn that records what it is told, and returns a given end. */
function attemptOf(end: (outcome: Outcome) => EmptyEnd) {
  const reported: unknown[] = [];
  const turn: Turn = {
    onOutput: () => void reported.push('output'),
    onEmptyEnd: (outcome) => {
      reported.push(outcome.kind === 'failed' ? outcome.failure.error.code : outcome.kind);
      return end(outcome);
    },
  };
  return { turn, reported };
}

const replaced = (): EmptyEnd => 'replaced';
const over = (outcome: Outcome): EmptyEnd => outcome;

/** A stream whose first attempt may be replaced. */
function start(first: Turn, body?: ReadableStream<Uint8Array>, limits: Partial<TimerLimits> = {}) {
  const clock = new FakeClock();
  return run(body, limits, clock, undefined, first);
}

function next({ stream, clock }: Run, turn: Turn, model = 'second') {
  return new TestAttempt(
    stream,
    optionsOf({ ...CHAT, model }, new UsageAccumulator(() => 0, 0)),
    turn,
    clock,
  );
}

/** Every way in which an attempt ends before its output. */
const EARLY_ENDS: readonly (readonly [name: string, texts: readonly string[], code: string])[] = [
  ['an error as its first event', [ERROR], 'rate_limit_error'],
  ['an error after a role', [ROLE, ERROR], 'rate_limit_error'],
  ['an error in the same read as a role', [ROLE + ERROR], 'rate_limit_error'],
  ['a cut after comments and a role', [': queued\n\n', ROLE], 'upstream_truncated'],
  ['no event at all', [], 'upstream_truncated'],
  ['a line that is no JSON', [ROLE, 'data: <html>\n\n'], 'upstream_invalid'],
  [
    'a finish that means failure',
    ['data: {"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]}\n\n'],
    'insufficient_system_resource',
  ],
];

describe('R5 an attempt that ends before its output', () => {
  test.each(EARLY_ENDS)(
    '%s: nothing of it is sent, and the next one is whole',
    async (_name, texts, code) => {
      const first = attemptOf(replaced);
      const tested = start(first.turn, bodyOf(...texts));
      await settle();
      expect([first.reported, tested.written, tested.heads]).toEqual([[code], [], []]);
      const second = attemptOf(over);
      void next(tested, second.turn).pump(bodyOf(ROLE.replace('held', 'next'), HELLO, STOP, DONE));
      const got = await readAll(tested.readable);
      expect(got.match(/"id":"\w+"/g)).toEqual(Array(3).fill('"id":"next"'));
      expect(got).toContain('"model":"openai/second"');
      expect(got.match(/"role":"assistant"/g)).toHaveLength(1);
      expect(got.endsWith(DONE)).toBe(true);
      expect([first.reported, second.reported, tested.ends]).toEqual([
        [code],
        ['output'],
        [{ outcome: { kind: 'done' }, isOpen: true }],
      ]);
    },
  );

  test.each(EARLY_ENDS)(
    '%s, none left: the error is the head, and no byte is sent',
    async (_name, texts, code) => {
      const { turn, reported } = attemptOf(over);
      const { heads, written, ends } = start(turn, bodyOf(...texts));
      await settle();
      expect([reported, written]).toEqual([[code], []]);
      expect(heads).toMatchObject([{ failure: { error: { code } } }]);
      expect(ends).toMatchObject([{ outcome: { kind: 'failed', reason: 'body' }, isOpen: false }]);
    },
  );

  test.each(EARLY_ENDS)(
    '%s, after a heartbeat: it commits the 200 but not the answer, and the next one follows it',
    async (_name, texts) => {
      const { body, feed, close } = fedBody();
      const tested = start(attemptOf(replaced).turn, body, { heartbeatMs: 100 });
      tested.clock.advance(100);
      await settle();
      expect(tested.heads).toEqual([null]);
      for (const text of texts) feed(text);
      close();
      await settle();
      void next(tested, attemptOf(over).turn).pump(bodyOf(HELLO, STOP, DONE));
      const got = await readAll(tested.readable);
      expect(got.startsWith(': heartbeat\n\ndata: {"id":')).toBe(true);
      expect(got).not.toContain('"held"');
      expect(got).not.toContain('error');
    },
  );

  test('after a heartbeat the last error is a frame', async () => {
    const { body, feed } = fedBody();
    const tested = start(attemptOf(replaced).turn, body, { heartbeatMs: 100 });
    tested.clock.advance(100);
    feed(ERROR);
    await settle();
    const last = next(tested, attemptOf(over).turn);
    last.fail(DOWN);
    expect(await readAll(tested.readable)).toMatch(
      /^: heartbeat\n\ndata: \{"error":\{.*"upstream_unreachable"\}\}\n\ndata: \[DONE\]\n\n$/,
    );
    expect(tested.ends).toMatchObject([{ outcome: { kind: 'failed', reason: 'no_response' }, isOpen: true }]);
  });

  test('the stream ends with the outcome that the runner decides', async () => {
    const failure = { error: { ...DOWN, message: 'two were tried' }, upstreamError: null };
    const tested = start(attemptOf(() => failed(failure)).turn, bodyOf(ERROR));
    await settle();
    expect(tested.heads).toMatchObject([{ failure }]);
  });

  test('its upstream is cancelled, and later bytes of it are ignored', async () => {
    const { body, feed, counts } = fedBody();
    const first = attemptOf(replaced);
    const tested = start(first.turn, body);
    feed(ROLE);
    await settle();
    tested.answer.fail(DOWN);
    await settle();
    expect(counts.cancels).toBe(1);
    const answer = next(tested, attemptOf(over).turn);
    tested.answer.fail(DOWN);
    await tested.answer.sendResponse({ choices: [{ message: { content: 'late' }, finish_reason: 'stop' }] });
    void answer.pump(bodyOf(HELLO, STOP, DONE));
    expect(await readAll(tested.readable)).not.toContain('late');
    expect(first.reported).toEqual(['upstream_unreachable']);
  });
});

/** The first event with output, and the position of its text. */
const OUTPUTS: readonly (readonly [name: string, delta: string])[] = [
  ['content', '{"content":"Hello"}'],
  ['reasoning', '{"reasoning_content":"Hello"}'],
  ['a refusal', '{"refusal":"Hello"}'],
  ["a tool call's name", '{"tool_calls":[{"index":0,"id":"c","function":{"name":"Hello","arguments":""}}]}'],
  [
    "a custom tool's name",
    '{"tool_calls":[{"index":0,"id":"c","type":"custom","custom":{"name":"Hello","input":""}}]}',
  ],
];

describe('R5 output', () => {
  test.each(OUTPUTS)(
    '%s: what was held goes with it in one write, and nothing takes its place',
    async (...row) => {
      const { body, feed } = fedBody();
      const { turn, reported } = attemptOf(replaced);
      const tested = start(turn, body);
      feed(ROLE);
      await settle();
      expect([reported, tested.written]).toEqual([[], []]);
      feed(`data: {"choices":[{"index":0,"delta":${row[1]}}]}\n\n`);
      await settle();
      expect(reported).toEqual(['output']);
      expect(tested.written).toHaveLength(1);
      feed(ERROR);
      const got = await readAll(tested.readable);
      expect(got).toMatch(/"role":"assistant".*\n\n.*Hello.*\n\ndata: \{"error".*\n\ndata: \[DONE\]\n\n$/);
      expect(reported).toEqual(['output']);
    },
  );

  test.each([
    ['a role', ROLE],
    ['an empty delta', 'data: {"choices":[{"index":0,"delta":{"content":"","reasoning_content":""}}]}\n\n'],
    [
      'a tool call without a name and arguments',
      'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]}}]}\n\n',
    ],
    [
      'a tool call’s arguments before its name',
      'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"arguments":"{"}}]}}]}\n\n',
    ],
    ['a vendor event that is stripped', 'data: {"type":"x_research.step"}\n\n'],
    ['a comment', ': waiting\n\n'],
  ])('%s is none', async (_name, text) => {
    const { turn, reported } = attemptOf(replaced);
    const tested = start(turn, fedBodyWith(text));
    await settle();
    expect([reported, tested.written]).toEqual([[], []]);
  });

  test('a vendor event that passes is output', async () => {
    const { turn, reported } = attemptOf(replaced);
    const options = optionsOf(CHAT, new UsageAccumulator(() => 0, 0));
    const { stream, clock } = start(turn);
    const policies = { ...options.policies, vendorEvents: ['*'] };
    const feed = new TestAttempt(stream, { ...options, policies }, turn, clock);
    void feed.pump(fedBodyWith('data: {"type":"x_research.step"}\n\n'));
    await settle();
    expect(reported).toEqual(['output']);
  });

  test('text and an error in one read: the text is sent, and the error is a frame', async () => {
    const { turn, reported } = attemptOf(replaced);
    const tested = start(turn, bodyOf(ROLE + HELLO + ERROR));
    const got = await readAll(tested.readable);
    expect(got).toContain('Hello');
    expect(got).toContain('"error"');
    expect(reported).toEqual(['output']);
  });

  test('more than 64 KiB before any output: it is sent, and no other attempt follows', async () => {
    const { turn, reported } = attemptOf(replaced);
    const logprobs = Array.from({ length: 4000 }, () => ({
      token: '',
      logprob: 0,
      bytes: null,
      top_logprobs: [],
    }));
    const chunk = { choices: [{ index: 0, delta: {}, logprobs: { content: logprobs } }] };
    const tested = start(turn, fedBodyWith(`data: ${JSON.stringify(chunk)}\n\n`));
    await settle();
    expect(reported).toEqual(['output']);
    expect(tested.written[0]).toBeGreaterThan(MAX_HELD_OUTPUT_BYTES);
  });

  test('a complete output without text: the runner decides whether it is accepted', async () => {
    const empty = [ROLE, STOP, DONE];
    const stands = attemptOf(over);
    expect(await readAll(start(stands.turn, bodyOf(...empty)).readable)).toMatch(
      /"role":"assistant".*\n\n.*"finish_reason":"stop".*\n\ndata: \[DONE\]\n\n$/,
    );
    expect(stands.reported).toEqual(['done']);
    const falls = start(attemptOf(replaced).turn, bodyOf(...empty));
    await settle();
    void next(falls, attemptOf(over).turn).pump(bodyOf(HELLO, STOP, DONE));
    expect((await readAll(falls.readable)).match(/finish_reason":"stop"/g)).toHaveLength(1);
  });
});

describe('R5 R6 time', () => {
  test('T2 the idle timeout ends one attempt, and the next attempt has a new one', async () => {
    const first = attemptOf(replaced);
    const tested = start(first.turn, fedBodyWith(ROLE), { idleTimeoutMs: 1000, heartbeatMs: 0 });
    await settle();
    tested.clock.advance(1000);
    await settle();
    expect(first.reported).toEqual(['stream_idle_timeout']);
    // The idle timeout pauses between attempts.
    tested.clock.advance(5000);
    const { body, feed } = fedBody();
    void next(tested, attemptOf(over).turn).pump(body);
    tested.clock.advance(999);
    feed(HELLO);
    await settle();
    tested.clock.advance(999);
    feed(STOP + DONE);
    expect(await readAll(tested.readable)).toContain('Hello');
    expect(tested.ends).toMatchObject([{ outcome: { kind: 'done' } }]);
  });

  test('T2 the next attempt has the same idle timeout', async () => {
    const tested = start(attemptOf(replaced).turn, bodyOf(ERROR), { idleTimeoutMs: 1000 });
    await settle();
    const last = attemptOf(over);
    void next(tested, last.turn).pump(fedBodyWith(': queued\n\n'));
    await settle();
    tested.clock.advance(1000);
    await settle();
    expect(last.reported).toEqual(['stream_idle_timeout']);
    expect(tested.ends).toMatchObject([{ outcome: { reason: 'idle' } }]);
  });

  test('T2 the last attempt: the stream ends as timed out', async () => {
    const tested = start(attemptOf(over).turn, fedBodyWith(ROLE), { idleTimeoutMs: 1000 });
    await settle();
    tested.clock.advance(1000);
    await settle();
    expect(tested.heads).toMatchObject([{ failure: { error: { code: 'stream_idle_timeout' } } }]);
    expect(tested.ends).toMatchObject([{ outcome: { reason: 'idle' }, isOpen: false }]);
  });

  test.each(['under way', 'given up'])(
    'T3 the deadline ends the stream with one attempt %s',
    async (state) => {
      const { turn, reported } = attemptOf(replaced);
      const { body, feed, counts } = fedBody();
      const tested = start(turn, body, { deadlineMs: 1000 });
      feed(state === 'given up' ? ERROR : ROLE);
      await settle();
      tested.clock.advance(1000);
      await settle();
      expect(tested.heads).toMatchObject([{ failure: { error: { code: 'timeout' } } }]);
      expect(tested.ends).toMatchObject([{ outcome: { reason: 'deadline' }, isOpen: false }]);
      expect(counts.cancels).toBe(1);
      expect(reported).toEqual(state === 'given up' ? ['rate_limit_error'] : []);
      expect(tested.clock.running).toBe(0);
      // An attempt that begins after the end is ignored.
      const late = fedBody();
      void next(tested, turn).pump(late.body);
      await settle();
      expect([late.counts.cancels, tested.written]).toEqual([1, []]);
    },
  );

  test('T4 a client that disconnects between attempts ends the stream', async () => {
    const tested = start(attemptOf(replaced).turn, bodyOf(ERROR), { heartbeatMs: 100 });
    await settle();
    await tested.readable.cancel();
    await settle();
    expect(tested.ends).toMatchObject([{ outcome: { kind: 'cancelled' } }]);
    expect(tested.clock.running).toBe(0);
  });

  test('T1 heartbeats continue between attempts', async () => {
    const tested = start(attemptOf(replaced).turn, bodyOf(ERROR), { heartbeatMs: 100, idleTimeoutMs: 50 });
    await settle();
    tested.clock.advance(100);
    await settle();
    const { value } = await tested.readable.getReader().read();
    expect(decoder.decode(value)).toBe(': heartbeat\n\n');
  });
});

/** A body that sends a text and then nothing. */
function fedBodyWith(text: string): ReadableStream<Uint8Array> {
  let isSent = false;
  return new ReadableStream({
    type: 'bytes',
    pull(controller) {
      if (isSent) return new Promise(() => {});
      isSent = true;
      controller.enqueue(encoder.encode(text));
      return undefined;
    },
  });
}
