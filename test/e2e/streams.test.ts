/** Tests streams over HTTP: each event is sent at once (F4), and every upstream failure is reported in frames (F2, E2). */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chat, contentOf, DONE, errorOf, finishesOf, framesOf, jsonOf, streamedChat } from './client.ts';
import { type Gateway, startGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';
const WHOLE = 'A weir holds the river back just enough that every boat may pass in turn. 🌊';
const HALF = 'A weir holds the river back just enough';

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ pace: 1 });
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function streamed(model: string) {
  const response = await gateway.post(CHAT, streamedChat(model));
  return { response, text: await response.text() };
}

describe('an upstream whose stream ends in an unusual way', () => {
  test.each([
    ['no-done', 'stop'],
    ['no-finish', null],
    ['double-done', 'stop'],
    ['gzip', 'stop'],
    ['text-plain', 'stop'],
    ['json', 'stop'],
  ])('F2 C8: %s: the complete text, one finish, one [DONE]; the record is finished', async (fault, word) => {
    const { response, text } = await streamed(`deepseek/deepseek-chat:${fault}`);
    expect(response.status).toBe(200);
    expect(contentOf(text)).toBe(WHOLE);
    expect(finishesOf(text)).toEqual(['stop']);
    const frames = framesOf(text);
    expect(frames.filter((frame) => frame === DONE)).toHaveLength(1);
    expect(frames.at(-1)).toBe(DONE);
    expect(text).not.toContain('"error"');
    const record = await gateway.record(response);
    expect(record).toMatchObject({ status: 'finished', finish_reason: word, completion_tokens: 16 });
    expect(record.estimated).toBe(false);
  });
});

test('C8 after-finish: output after a finish is sent, with one finish after it', async () => {
  const { response, text } = await streamed('deepseek/deepseek-chat:after-finish');
  expect(contentOf(text)).toBe(`${WHOLE}A`);
  expect(finishesOf(text)).toEqual(['stop']);
  expect(await gateway.record(response)).toMatchObject({ status: 'finished', finish_reason: 'stop' });
});

const TRUNCATED = 'DeepSeek ended the stream before the answer was complete';
const NOT_JSON = 'DeepSeek sent a line that is not a JSON chunk';
const TOO_LARGE = 'DeepSeek sent an event larger than 1048576 bytes';
const REPORTED = 'DeepSeek: Insufficient resources';

describe('an upstream that fails midway', () => {
  test.each([
    ['cut', 'upstream_truncated', TRUNCATED],
    ['junk', 'upstream_invalid', NOT_JSON],
    ['half-json', 'upstream_invalid', NOT_JSON],
    ['big-event', 'upstream_event_too_large', TOO_LARGE],
    ['endless-line', 'upstream_event_too_large', TOO_LARGE],
    ['endless-event', 'upstream_event_too_large', TOO_LARGE],
    ['error-event', 'server_overloaded', REPORTED],
    ['error-data', 'server_overloaded', REPORTED],
    ['error-string', 'upstream_error', REPORTED],
    ['error-choices', 'server_overloaded', REPORTED],
  ])(
    'F2 E2: %s: the text so far, one error frame of code %s, [DONE]; the record is failed',
    async (fault, code, message) => {
      const { response, text } = await streamed(`deepseek/deepseek-chat:${fault}`);
      expect(response.status).toBe(200);
      expect(contentOf(text)).toBe(HALF);
      expect(finishesOf(text)).toEqual([]);
      const error = { message, type: 'server_error', param: null, code };
      expect(framesOf(text).slice(-2)).toEqual([`data: ${JSON.stringify({ error })}`, DONE]);
      expect(text.split('"error"')).toHaveLength(2);
      const record = await gateway.record(response);
      expect(record).toMatchObject({
        status: 'failed',
        error_code: code,
        finish_reason: null,
        estimated: true,
      });
    },
  );

  test('F2 E2: reset: the output before the broken connection, one error frame, [DONE]', async () => {
    const { response, text } = await streamed('deepseek/deepseek-chat:reset');
    expect(HALF.startsWith(contentOf(text))).toBe(true);
    const [errorFrame, done] = framesOf(text).slice(-2);
    expect(errorFrame).toMatch(
      /^data: \{"error":\{"message":"DeepSeek [a-z ]+","type":"server_error","param":null,"code":"upstream_truncated"\}\}$/,
    );
    expect(done).toBe(DONE);
    expect(await gateway.record(response)).toMatchObject({
      status: 'failed',
      error_code: 'upstream_truncated',
    });
  });

  test('C8 E2: a finish that means failure is an error frame, and its usage is metered', async () => {
    const { response, text } = await streamed('deepseek/deepseek-chat-busy');
    expect(contentOf(text)).toBe('The answer begins well, but then');
    expect(finishesOf(text)).toEqual([]);
    const word = 'insufficient_system_resource';
    const error = { message: `DeepSeek stopped: ${word}`, type: 'server_error', param: null, code: word };
    expect(framesOf(text).slice(-2)).toEqual([`data: ${JSON.stringify({ error })}`, DONE]);
    expect(await gateway.record(response)).toMatchObject({ finish_reason: word, completion_tokens: 6 });
  });

  test.each(['endless-line', 'endless-event'])('B1: %s: the upstream is cancelled', async (fault) => {
    const requestCount = gateway.simulator.requests.length;
    await streamed(`openai/gpt-4o-mini:${fault}`);
    expect(await (await gateway.simulator.request(requestCount)).closed).toBe('disconnected');
  });
});

describe('an upstream whose error comes first', () => {
  test.each([
    ['deepseek/deepseek-chat:html', 502, 'upstream_invalid'],
    ['deepseek/deepseek-chat:empty', 502, 'upstream_truncated'],
    ['deepseek/deepseek-chat:redirect', 502, 'upstream_error'],
    ['openai/gpt-4o-mini:error-first', 502, 'upstream_error'],
    ['xerotier/llama-3.1-8b:error-first', 504, 'timeout'],
  ])('H3 E1: %s: no stream, but status %d and code %s', async (model, status, code) => {
    const response = await gateway.post(CHAT, streamedChat(model));
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const refused = await errorOf(response);
    expect([refused.status, refused.error.code]).toEqual([status, code]);
    expect(await gateway.record(response)).toMatchObject({ status: 'failed', error_code: code });
  });

  test('E1 H2: a redirect is not followed, so that the credential is sent nowhere else', async () => {
    await streamed('openai/gpt-4o-mini:redirect');
    expect(gateway.simulator.requests.map(({ path }) => path)).not.toContain('/elsewhere');
  });
});

describe('a non-streaming response', () => {
  test.each(['cut', 'reset', 'html', 'empty', 'redirect'])(
    'E1: %s: an error of status 502, and a failed record',
    async (fault) => {
      const response = await gateway.post(CHAT, chat(`mistral/mistral-small-latest:${fault}`));
      const { status, error } = await errorOf(response);
      expect(status).toBe(502);
      expect(error).toMatchObject({ type: 'server_error', message: expect.stringMatching(/^Mistral /) });
      expect(await gateway.record(response)).toMatchObject({ status: 'failed', error_code: error.code });
    },
  );

  test.each(['gzip', 'json'])('%s: the complete text', async (fault) => {
    const response = await gateway.post(CHAT, chat(`deepseek/deepseek-chat:${fault}`));
    const { choices } = await jsonOf(response);
    expect(choices).toMatchObject([
      { message: { role: 'assistant', content: WHOLE }, finish_reason: 'stop' },
    ]);
  });
});

describe('each event at once', () => {
  /** An upstream that sends the bytes that the test writes. */
  async function startUpstream() {
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      server.emit('asked', response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('The upstream has no port');
    return {
      url: `http://127.0.0.1:${address.port}`,
      asked: async (): Promise<ServerResponse> => (await once(server, 'asked'))[0],
      [Symbol.asyncDispose]: async () => {
        server.closeAllConnections();
        server.close();
      },
    };
  }

  function event(content: string, finish_reason: string | null): string {
    return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`;
  }

  test('F4 H3: the client has each event before the upstream sends the next one, also one sent in two halves', async () => {
    await using upstream = await startUpstream();
    await gateway.set({ OPENAI_BASE_URL: upstream.url, HEARTBEAT_SECONDS: '0' });
    const requested = upstream.asked();
    const posted = gateway.post(CHAT, streamedChat('openai/by-hand'));
    const sender = await requested;
    const words = ['one ', 'two ', 'three ', 'Zürich ', '🌊'];
    let response: Response | undefined;
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    for (const [at, word] of words.entries()) {
      const bytes = Buffer.from(event(word, at === words.length - 1 ? 'stop' : null));
      const half = at % 2 === 0 ? bytes.length : Math.floor(bytes.length / 2);
      sender.write(bytes.subarray(0, half));
      if (half < bytes.length) sender.write(bytes.subarray(half));
      // The head comes with the first event. A gateway that waits for the next one would hang here.
      response ??= await posted;
      reader ??= response.body?.getReader();
      const { value } = (await reader?.read()) ?? {};
      expect(contentOf(Buffer.from(value ?? []).toString())).toBe(word);
    }
    sender.end('data: [DONE]\n\n');
    const { value } = (await reader?.read()) ?? {};
    expect(Buffer.from(value ?? []).toString()).toBe(`${DONE}\n\n`);
    expect((await reader?.read())?.done).toBe(true);
  });
});
