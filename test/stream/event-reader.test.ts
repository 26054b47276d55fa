/** Tests the event reader: the end of a stream, its errors and its vendor events. */
import { describe, expect, test } from 'vitest';
import { UsageAccumulator } from '../../src/metering/request-meter.ts';
import { EventReader } from '../../src/stream/event-reader.ts';
import { MORE, DONE as OUTPUT_DONE, type UpstreamProtocol } from '../../src/stream/types.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import {
  type Conversion,
  type Converted,
  convertObject,
  convertStream,
  optionsOf,
} from '../contract/convert.ts';

import { choice, part } from './parts.ts';

const CHAT: Conversion = { provider: 'xerotier', route: 'chat', model: 'm', usageChunk: false };
const PASS: Conversion = { ...CHAT, policies: { ...DEFAULT_POLICIES, vendorEvents: ['*'] } };

const encoder = new TextEncoder();
const deltaFrame = (delta: object, finish: string | null = null, more: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;
const HELLO = deltaFrame({ content: 'Hello' });
const STOP = deltaFrame({}, 'stop');
const DONE = 'data: [DONE]\n\n';

function convert(text: string, conversion = CHAT): Converted {
  return convertStream([encoder.encode(text)], conversion);
}

/** The frames' data, parsed if it is JSON. */
function framesOf(text: string): unknown[] {
  const frames = text.split('\n\n').filter((frame) => frame !== '');
  return frames.map((frame) =>
    frame === 'data: [DONE]' ? '[DONE]' : JSON.parse(frame.slice('data: '.length)),
  );
}

const codeOf = (text: string, conversion?: Conversion) => convert(text, conversion).error?.code ?? null;

describe('EventReader, the end', () => {
  test.each([
    ['[DONE] and a choice unfinished', HELLO + DONE, null],
    ['every choice finished, no [DONE]', HELLO + STOP, null],
    ['no [DONE], a choice unfinished', HELLO, 'upstream_truncated'],
    [
      'no [DONE], one of two choices unfinished',
      HELLO + deltaFrame({}, 'stop').replace('"index":0', '"index":1'),
      'upstream_truncated',
    ],
    ['nothing at all', '', 'upstream_truncated'],
    ['comments alone', ': hi\n\n', 'upstream_truncated'],
    ['[DONE] alone', DONE, 'upstream_truncated'],
    [
      'usage without a choice, and [DONE]',
      `data: {"choices":[],"usage":{"prompt_tokens":3}}\n\n${DONE}`,
      'upstream_truncated',
    ],
    [
      'a vendor event that does not pass, and [DONE]',
      `data: {"type":"x_ask_user.question"}\n\n${DONE}`,
      null,
    ],
    ['half a JSON after every finish', `${HELLO}${STOP}data: {"choi`, null],
    ['half a JSON before the finish', `${HELLO}data: {"choi`, 'upstream_truncated'],
    ['half a [DONE] before the finish', `${HELLO}data: [DON`, 'upstream_truncated'],
    ['[DONE] without its line end', `${HELLO}data: [DONE]`, null],
  ])('F2 E2 %s: the expected error code', (_, text, code) => {
    expect(codeOf(text)).toBe(code);
  });

  test.each(['[DONE]', ' [DONE] ', '\t[DONE]\t'])(
    'S3 %j: is the end, and what follows is not read',
    (done) => {
      const { text, accumulator } = convert(
        `${HELLO}data:${done}\n\n${deltaFrame({ content: 'more' })}data: {\n\n`,
      );
      expect(text).toContain('"finish_reason":"stop"');
      expect(text).not.toContain('more');
      expect(accumulator.countUsage().usage.completion_tokens).toBe(
        convert(HELLO).accumulator.countUsage().usage.completion_tokens,
      );
    },
  );

  test('F2 an output that ends within a read: nothing after it is read', () => {
    const contents: unknown[] = [];
    const writer = { chunk: (chunk: unknown) => contents.push(chunk) > 0, vendor: () => {} };
    const reader = new EventReader(optionsOf(CHAT, new UsageAccumulator(() => 0, 0)), writer);
    expect(reader.push(encoder.encode(HELLO + STOP + DONE + HELLO))).toBe(OUTPUT_DONE);
    expect(contents).toHaveLength(2);
  });

  test('U2 the usage chunk of a stream that failed: is not sent', () => {
    const conversion = { ...CHAT, usageChunk: true };
    expect(convert(HELLO, conversion).text).not.toContain('"usage"');
    expect(convert(HELLO + STOP, conversion).text.match(/"usage"/g)).toHaveLength(1);
  });
});

describe('EventReader, errors', () => {
  test.each([
    ['an error object', 'data: {"error":{"message":"no","code":"c"}}\n\n', 'c'],
    ['an error text', 'data: {"error":"no"}\n\n', 'upstream_error'],
    ['an object of type error', 'data: {"object":"error","message":"no","code":40}\n\n', '40'],
    ['an event named error with JSON', 'event: error\ndata: {"message":"no","type":"t"}\n\n', 't'],
    ['an event named error with text', 'event: error\ndata: no\n\n', 'upstream_error'],
    ['a line that is not JSON', 'data: no\n\n', 'upstream_invalid'],
    ['JSON that is not an object', 'data: [1]\n\n', 'upstream_invalid'],
    ['a detail', 'data: {"detail":"no"}\n\n', 'upstream_error'],
  ])('E2 %s: one error frame and [DONE], and nothing is read after it', (_, event, code) => {
    const { text, error } = convert(`${HELLO}${event}${deltaFrame({ content: 'more' })}${STOP}${DONE}`);
    expect(error?.code).toBe(code);
    expect(framesOf(text).slice(1)).toEqual([
      { error: { message: error?.message, type: 'server_error', param: null, code } },
      '[DONE]',
    ]);
  });

  test.each([
    ['an error that is null', deltaFrame({ content: 'a' }, null, { error: null })],
    ['a named event that is not for the client', 'event: ping\ndata: now\n\n'],
    ['an object without choices', 'data: {"object":"ping"}\n\n'],
    ['choices that are null', 'data: {"choices":null}\n\n'],
  ])('E2 %s: is not an error', (_, event) => {
    expect(codeOf(`${HELLO}${event}${STOP}${DONE}`)).toBeNull();
  });

  test('E2 an error together with choices: their deltas are sent first, without a finish', () => {
    const { text } = convert(
      HELLO + deltaFrame({ content: 'last' }, 'stop', { error: { message: 'no' } }) + DONE,
    );
    expect(framesOf(text).slice(1)).toMatchObject([
      { choices: [{ delta: { content: 'last' }, finish_reason: null }] },
      { error: { message: 'Xerotier: no' } },
      '[DONE]',
    ]);
  });

  test('E3 ERROR_FRAMES=event: only the error has an event line, before its data line', () => {
    const policies = { ...DEFAULT_POLICIES, errorFrames: 'event' } as const;
    const { text } = convert(`${HELLO}data: {"error":"no"}\n\n`, { ...CHAT, policies });
    expect(text.match(/^event: .*$/gm)).toEqual(['event: error']);
    expect(text).toContain('\n\nevent: error\ndata: {"error":{"message":"Xerotier: no"');
  });

  test('B1 an event larger than the bound: a specific code, and a message with the bound', () => {
    const { error } = convert(HELLO + deltaFrame({ content: 'a'.repeat(300) }), {
      ...CHAT,
      maxEventBytes: 200,
    });
    expect(error).toMatchObject({
      code: 'upstream_event_too_large',
      message: 'Xerotier sent an event larger than 200 bytes',
    });
  });
});

describe('EventReader, vendor events', () => {
  const VENDOR = '{"type": "x_a.b",  "n":1.0}';
  const TASK = 'x_deep_think.subtask_completed';

  test("V1 V2 passed: the upstream's bytes, as one data frame, in order", () => {
    const { text } = convert(`${HELLO}data: ${VENDOR}\n\n${STOP}${DONE}`, PASS);
    expect(text.split('\n\n')[1]).toBe(`data: ${VENDOR}`);
  });

  test('V2 passed in several data lines and with a name: one data line, after its event line', () => {
    const { text } = convert('event: x_a.b\ndata: {"a":\ndata: 1}\n\n', PASS);
    expect(text.split('\n\n')[0]).toBe('event: x_a.b\ndata: {"a":1}');
  });

  test.each([
    ['x_a.b', `event: x_a.b\ndata: ${VENDOR}`],
    ['x_of.another', `event: x_of.another\ndata: ${VENDOR}`],
    ['message', `data: ${VENDOR}`],
    ['error', `data: ${VENDOR}`],
    ['ping', `data: ${VENDOR}`],
  ])(
    'V2 F1 a vendor event by its type, under the name %s: an event line where the name begins with x_',
    (name, frame) => {
      const { text, error } = convert(`${HELLO}event: ${name}\ndata: ${VENDOR}\n\n${STOP}`, PASS);
      expect(text.split('\n\n')[1]).toBe(frame);
      expect(error).toBeNull();
    },
  );

  test('V2 globs: an event is matched by its type, or by its name if it has no type', () => {
    const policies = { ...DEFAULT_POLICIES, vendorEvents: ['x_a.*'] };
    const events = [
      'event: x_a.name\ndata: {"n":1}\n\n',
      'event: x_b\ndata: {"n":2}\n\n',
      'event: x_b\ndata: {"type":"x_a.type","n":3}\n\n',
      'event: x_a.name\ndata: {"type":"x_b","n":4}\n\n',
    ];
    const { text } = convert(events.join('') + HELLO + STOP, { ...CHAT, policies });
    expect([...text.matchAll(/"n":(\d)/g)].map(([, n]) => n)).toEqual(['1', '3']);
  });

  test('V2 V3 stripped: not sent, but counted', () => {
    const { text, accumulator } = convert(
      `${HELLO}data: ${VENDOR}\n\nevent: x_c\ndata: no JSON\n\n${STOP}${DONE}`,
    );
    expect(text).not.toContain('x_');
    expect(accumulator.vendorEvents).toBe(2);
  });

  test('V1 a type that begins with x_ in an event with choices: a chunk, not a vendor event', () => {
    const { text, accumulator } = convert(deltaFrame({ content: 'a' }, 'stop', { type: 'x_a.b' }));
    expect(text).toContain('"content":"a"');
    expect(accumulator.vendorEvents).toBe(0);
  });

  test('V1 a type that does not begin with x_: not a vendor event, and never passed', () => {
    const { text, accumulator } = convert(`${HELLO}data: {"type":"ax_b"}\n\n${STOP}`, PASS);
    expect([text.includes('ax_b'), accumulator.vendorEvents]).toEqual([false, 0]);
  });

  test.each([
    ['a chunk', '{"choices":[{"index":0,"delta":{"content":"raw"}}]}'],
    ['an error', '{"error":{"message":"raw"}}'],
  ])('C1 E2 an event named x_ that looks like %s: never reaches the client as one', (_, json) => {
    const { text } = convert(`${HELLO}event: x_a\ndata: ${json}\n\n${STOP}${DONE}`, PASS);
    expect(text).not.toContain(json);
  });

  test('V3 the tokens of sub-tasks: summed, even if the events do not pass', () => {
    const task = (input: number, output: number) =>
      `data: ${JSON.stringify({ type: TASK, input_tokens: input, output_tokens: output })}\n\n`;
    for (const conversion of [CHAT, PASS]) {
      expect(convert(task(1, 2) + task(3, 4) + STOP, conversion).accumulator.vendorTokens).toBe(10);
    }
  });
});

describe('EventReader.readResponse', () => {
  const answer = (value: unknown, toStream: boolean) =>
    convertObject(encoder.encode(JSON.stringify(value)), CHAT, toStream);
  const WHOLE = {
    id: 'i',
    choices: [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: 'stop' }],
  };

  test('F2 a non-streaming response for a client that streams: its chunk and [DONE]', () => {
    expect(framesOf(answer(WHOLE, true).text)).toMatchObject([
      { id: 'i', choices: [{ delta: { role: 'assistant', content: 'a' }, finish_reason: 'stop' }] },
      '[DONE]',
    ]);
  });

  test('C8 a non-streaming response without a finish: gets stop', () => {
    const { text } = answer({ choices: [{ message: { content: 'a' } }] }, false);
    expect(JSON.parse(text)).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
  });

  test('A5 E2 R5 a non-streaming response with text and an error: nothing is sent, and its usage counts', () => {
    const usage = { prompt_tokens: 5, completion_tokens: 2 };
    const failed = answer({ ...WHOLE, usage, error: { message: 'no', code: 'mine' } }, true);
    expect(failed.error).toMatchObject({ code: 'mine' });
    expect(failed.text).not.toContain('"content"');
    expect(failed.accumulator.countReported().usage).toMatchObject({ ...usage, total_tokens: 7 });
  });

  test('E2 a non-streaming response without a choice: upstream_invalid', () => {
    expect(answer({ choices: [] }, true).error?.code).toBe('upstream_invalid');
  });
});

describe('EventReader, a protocol reader with state', () => {
  const text = (content: string) => part([choice({ content })]);
  const finish = part([choice({ finishWord: 'stop' })]);

  /** A reader that sends its finish at the end of the stream, or at an event that marks the end. */
  const LATE: UpstreamProtocol = {
    id: 'chat',
    open: () => {
      let isBegun = false;
      return {
        event: ({ say, last }, name) => {
          if (name === 'ping') return null;
          isBegun = true;
          return last === true ? { ...finish, ends: true } : text(String(say));
        },
        response: () => text('plain'),
        end: () => (isBegun ? finish : null),
      };
    },
  };

  function read(text: string): { contents: string[]; code: string | null } {
    const contents: string[] = [];
    const options = { ...optionsOf(CHAT, new UsageAccumulator(() => 0, 1)), protocol: LATE };
    const reader = new EventReader(options, {
      chunk: (chunk) => {
        if (chunk.object !== 'chat.completion.chunk') return false;
        contents.push(
          ...chunk.choices.map(({ delta, finish_reason }) => delta.content ?? finish_reason ?? ''),
        );
        return true;
      },
      vendor: () => {},
    });
    const pushed = reader.push(encoder.encode(text));
    const outcome = pushed === MORE ? reader.end() : pushed;
    return { contents, code: outcome.kind === 'failed' ? outcome.failure.error.code : null };
  }

  const HI = 'event: text\ndata: {"say":"Hi"}\n\n';

  test.each([
    ['the body ends', HI, { contents: ['Hi', 'stop'], code: null }],
    ['[DONE] comes', `${HI}${DONE}`, { contents: ['Hi', 'stop'], code: null }],
    [
      'an event is the last one: nothing behind it is read',
      `${HI}data: {"last":true}\n\n${HI}`,
      { contents: ['Hi', 'stop'], code: null },
    ],
    ['an event holds nothing', `event: ping\ndata: {}\n\n${HI}`, { contents: ['Hi', 'stop'], code: null }],
    ['no message started', 'event: ping\ndata: {}\n\n', { contents: [], code: 'upstream_truncated' }],
  ])('A3 F2 %s: what the protocol knows only at the end is read', (_, stream, expected) => {
    expect(read(stream)).toEqual(expected);
  });
});

test('V2 F1 a vendor event whose data is a list: does not pass', () => {
  const { text, error } = convert(`event: x_a\ndata: [{"content":503}]\n\n${HELLO}${STOP}${DONE}`, PASS);
  expect(text).not.toContain('503');
  expect(error).toBeNull();
});
