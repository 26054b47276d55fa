/** Tests the timers in workerd: heartbeats, the idle timeout, the deadline, and the response head (H3, T1 to T3). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { AccessTeam } from '../attribution/access-team.ts';
import { chat, contentOf, DONE, errorOf, finishesOf, framesOf, streamedChat } from './client.ts';
import { type Gateway, startGateway, type Vars } from './gateway.ts';
import { CLOCKS_OFF, event, many, replayOf, type Scenario } from './scenarios.ts';

const CHAT = '/v1/chat/completions';
const HEARTBEAT = ': heartbeat';
const HALF = 'A weir holds the river back just enough';
const WHOLE = `${HALF} that every boat may pass in turn. 🌊`;

/**
 * The time limits. A busy machine can stop a process for two seconds: what an upstream sends before a limit must still
 * arrive before it.
 */
const LIMIT_SECONDS = 3;

const IDLE = {
  message: `DeepSeek sent nothing for ${LIMIT_SECONDS} seconds`,
  type: 'stream_idle_timeout',
  param: null,
  code: 'stream_idle_timeout',
};
const LATE = {
  message: `DeepSeek did not finish within ${LIMIT_SECONDS} seconds`,
  type: 'timeout_error',
  param: null,
  code: 'timeout',
};

const COMMENT = ': waiting\n\n';
const STOP = event('', 'stop');
const END = `${DONE}\n\n`;

/** The simulator's responses for models of these names. None lasts longer than a test may. */
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'first-then-nothing': { chunks: [event('Hello')], ending: 'hang' },
  'comments-then-words': {
    chunks: [...many(COMMENT, 8), event('one '), event('two'), STOP, END],
    gapMs: 500,
  },
  'first-then-comments': { chunks: [event('Hello'), ...many(COMMENT, 400)], gapMs: 50 },
  'half-a-line-for-ever': { chunks: [event('Hello'), 'data: {"', ...many('x', 400)], gapMs: 50 },
  'words-for-ever': { chunks: many(event('word '), 400), gapMs: 50 },
  'with-pauses': { chunks: [event('one '), event('two '), event('three'), STOP, END], gapMs: 400 },
};

let gateway: Gateway;

function setUp(vars: Vars): void {
  beforeAll(async () => {
    gateway = await startGateway({ replay: replayOf(SCENARIOS), vars: { ...CLOCKS_OFF, ...vars } });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());
}

/** Sends a request and reads the response to its end; also returns the request that reached the upstream. */
async function ask(body: JsonObject) {
  const requestCount = gateway.simulator.requests.length;
  const response = await gateway.post(CHAT, body);
  const text = await response.clone().text();
  return { response, text, upstream: await gateway.simulator.request(requestCount) };
}

function frame(error: JsonObject): string {
  return `data: ${JSON.stringify({ error })}`;
}

/** Splits off the last heartbeats and the frames after them. */
function endOf(text: string) {
  const frames = framesOf(text);
  const ending = frames.splice(frames.lastIndexOf(HEARTBEAT) + 1);
  const firstBeat = frames.indexOf(HEARTBEAT);
  const beats = firstBeat < 0 ? [] : frames.splice(firstBeat);
  return { before: frames, beats, ending };
}

describe(`T1 T2: heartbeats of 0.3 s, an idle timeout of ${LIMIT_SECONDS} s`, () => {
  setUp({ HEARTBEAT_SECONDS: '0.3', IDLE_TIMEOUT_SECONDS: String(LIMIT_SECONDS) });

  test.each(['hang', 'stall-head'])(
    '%s: only heartbeats, then the idle error and [DONE]; timed_out, and the upstream is cancelled',
    async (fault) => {
      const { response, text, upstream } = await ask(streamedChat(`deepseek/deepseek-chat:${fault}`));
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
      const { before, beats, ending } = endOf(text);
      // Weir's heartbeats don't postpone the timeout, so there is no time for an eleventh.
      expect(beats.length).toBeGreaterThanOrEqual(1);
      expect(beats.length).toBeLessThanOrEqual(10);
      expect([before, new Set(beats), ending]).toEqual([[], new Set([HEARTBEAT]), [frame(IDLE), DONE]]);
      expect(await upstream.closed).toBe('disconnected');
      const record = await gateway.record(response);
      expect(record).toMatchObject({
        status: 'timed_out',
        error_code: 'stream_idle_timeout',
        completion_tokens: 0,
        first_token_ms: null,
        bytes_out: Buffer.byteLength(text),
        estimated: true,
      });
      expect(record.total_ms).toBeGreaterThanOrEqual(LIMIT_SECONDS * 1000);
      expect(record.prompt_tokens).toBeGreaterThan(0);
    },
  );

  test('stall-mid: the text so far, heartbeats, the idle error, [DONE]; timed_out with estimated tokens', async () => {
    const { response, text, upstream } = await ask(streamedChat('deepseek/deepseek-chat:stall-mid'));
    const { before, beats, ending } = endOf(text);
    expect(contentOf(`${before.join('\n\n')}\n\n`)).toBe(HALF);
    expect(finishesOf(text)).toEqual([]);
    expect(beats.length).toBeGreaterThanOrEqual(1);
    expect(beats.length).toBeLessThanOrEqual(10);
    expect([new Set(beats), ending]).toEqual([new Set([HEARTBEAT]), [frame(IDLE), DONE]]);
    expect(await upstream.closed).toBe('disconnected');
    const record = await gateway.record(response);
    expect(record).toMatchObject({ status: 'timed_out', error_code: 'stream_idle_timeout', estimated: true });
    expect(record.completion_tokens).toBeGreaterThanOrEqual(8);
    expect(record.completion_tokens).toBeLessThan(16);
  });

  test('F3: comments postpone the timeout before the first event, and none is forwarded', async () => {
    const { response, text } = await ask(streamedChat('openai/comments-then-words'));
    expect(contentOf(text)).toBe('one two');
    const frames = framesOf(text);
    expect(frames[0]).toBe(HEARTBEAT);
    expect(new Set(frames.filter((one) => one.startsWith(':')))).toEqual(new Set([HEARTBEAT]));
    expect(text).not.toContain('"error"');
    const record = await gateway.record(response);
    expect(record).toMatchObject({ status: 'finished', completion_tokens: 2 });
    expect(record.total_ms).toBeGreaterThan(LIMIT_SECONDS * 1000);
  });

  test.each(['first-then-comments', 'half-a-line-for-ever'])(
    '%s: after the first event only events postpone the timeout',
    async (name) => {
      const { response, text, upstream } = await ask(streamedChat(`openai/${name}`));
      expect(contentOf(text)).toBe('Hello');
      const { ending } = endOf(text);
      expect(ending).toEqual([
        frame({ ...IDLE, message: `OpenAI sent nothing for ${LIMIT_SECONDS} seconds` }),
        DONE,
      ]);
      expect(await upstream.closed).toBe('disconnected');
      expect(await gateway.record(response)).toMatchObject({ status: 'timed_out' });
    },
  );

  test('drip: a response that arrives byte by byte is complete, and its record is finished', async () => {
    const { response, text } = await ask(streamedChat('deepseek/deepseek-chat:drip'));
    expect(contentOf(text)).toBe(WHOLE);
    expect(framesOf(text).at(-1)).toBe(DONE);
    expect(await gateway.record(response)).toMatchObject({ status: 'finished', completion_tokens: 16 });
  });

  test('T1 with-pauses: heartbeats are between the frames, never within one', async () => {
    const { text } = await ask(streamedChat('openai/with-pauses'));
    const frames = framesOf(text);
    expect(contentOf(text)).toBe('one two three');
    expect(frames.filter((one) => one === HEARTBEAT).length).toBeGreaterThanOrEqual(2);
    expect(frames.every((one) => one === HEARTBEAT || one.startsWith('data: '))).toBe(true);
    expect(frames.at(-1)).toBe(DONE);
  });
});

describe(`T3: a deadline of ${LIMIT_SECONDS} s`, () => {
  setUp({ HEARTBEAT_SECONDS: '0.3', DEADLINE_SECONDS: String(LIMIT_SECONDS) });

  test('words-for-ever: the text so far, then the deadline error and [DONE], although the upstream is still sending', async () => {
    const { response, text, upstream } = await ask(streamedChat('openai/words-for-ever'));
    expect(contentOf(text)).toMatch(/^(word )+$/);
    const late = { ...LATE, message: `OpenAI did not finish within ${LIMIT_SECONDS} seconds` };
    expect(framesOf(text).slice(-2)).toEqual([frame(late), DONE]);
    expect(text.split('"error"')).toHaveLength(2);
    expect(await upstream.closed).toBe('disconnected');
    const record = await gateway.record(response);
    expect(record).toMatchObject({ status: 'timed_out', error_code: 'timeout', estimated: true });
    expect(record.total_ms).toBeGreaterThanOrEqual(LIMIT_SECONDS * 1000);
  });

  test.each(['hang', 'stall-head', 'stall-mid'])(
    '%s: with no idle timeout the deadline ends the stream',
    async (fault) => {
      const { response, text, upstream } = await ask(streamedChat(`deepseek/deepseek-chat:${fault}`));
      expect(endOf(text).ending).toEqual([frame(LATE), DONE]);
      expect(await upstream.closed).toBe('disconnected');
      expect(await gateway.record(response)).toMatchObject({ status: 'timed_out', error_code: 'timeout' });
    },
  );

  test.each(['hang', 'stall-head', 'stall-mid'])(
    'E1 a non-streaming request, %s: 504, timed_out, and the upstream is cancelled',
    async (fault) => {
      const { response, upstream } = await ask(chat(`deepseek/deepseek-chat:${fault}`));
      expect(await errorOf(response)).toEqual({ status: 504, error: LATE });
      expect(await upstream.closed).toBe('disconnected');
      expect(await gateway.record(response)).toMatchObject({ status: 'timed_out', error_code: 'timeout' });
    },
  );

  test('E1 a non-streaming request whose upstream streams forever: 504, and timed_out', async () => {
    const { response, upstream } = await ask(chat('openai/words-for-ever'));
    expect((await errorOf(response)).status).toBe(504);
    expect(await upstream.closed).toBe('disconnected');
    const record = await gateway.record(response);
    expect(record).toMatchObject({ status: 'timed_out', estimated: true });
    expect(record.completion_tokens).toBeGreaterThan(0);
  });

  test('bodies that stall, many at once: 408, and no upstream is called', async () => {
    const requestCount = gateway.simulator.requests.length;
    const stalled = Array.from({ length: 20 }, async (_, at) => {
      const start = (body: ReadableStreamDefaultController) => body.enqueue(Buffer.from('{"model":"openai/'));
      // Node requires `duplex` for a streamed body; the Workers types lack it.
      const init = { method: 'POST', body: new ReadableStream({ start }), duplex: 'half' };
      return errorOf(await gateway.fetch(at % 2 === 0 ? CHAT : '/v1/fim/completions', init));
    });
    const error = {
      message: `The request's body did not arrive within ${LIMIT_SECONDS} seconds`,
      type: 'timeout_error',
      param: null,
      code: 'request_timeout',
    };
    for (const answer of await Promise.all(stalled)) expect(answer).toEqual({ status: 408, error });
    expect(gateway.simulator.requests).toHaveLength(requestCount);
    expect(gateway.logs().join()).not.toContain('internal_error');
  });

  test('Y3 keys of Cloudflare Access that hang: 503 for all requests within the limit, after one read, also if its client leaves', async () => {
    await using team = await AccessTeam.start();
    team.state = 'hang';
    await gateway.set({ ...CLOCKS_OFF, ...team.settings, AUTH: 'access' });
    const client = new AbortController();
    const body = chat('openai/words-for-ever');
    const post = (init: RequestInit) => gateway.post(CHAT, body, { headers: team.headers(), ...init });
    const left = post({ signal: client.signal }).catch(() => null);
    await expect.poll(() => team.reads).toBe(1);
    const waiting = [post({}), post({}), post({})];
    client.abort();
    expect(await left).toBeNull();
    for (const response of await Promise.all(waiting))
      expect(await errorOf(response)).toMatchObject({ status: 503, error: { code: 'access_unreachable' } });
    expect(team.reads).toBeLessThanOrEqual(2);
    team.state = 'up';
    const recovered = () => gateway.post('/v1/messages/count_tokens', body, { headers: team.headers() });
    await expect.poll(async () => (await recovered()).status, { interval: 500 }).toBe(200);
  });
});
