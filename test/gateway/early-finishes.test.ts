/** Tests what follows a finish (C8): output, repetitions, usage and errors, as every client's SDK sees it. */
import { describe, expect, test } from 'vitest';
import { MAX_FINISH_WAIT_MS } from '../../src/stream/relay.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { fedBody } from '../stream/stream-bench.ts';
import { CLIENTS, see } from './sdk-clients.ts';
import {
  type Behavior,
  DONE,
  event,
  json,
  ROLE,
  RoutedGateway,
  read,
  settle,
  sse,
  USAGE,
} from './upstreams.ts';

const NAMES = Object.keys(CLIENTS);

const call = (index: number, id: string, name: string, args: string) => ({
  tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }],
});
const usage = `data: ${JSON.stringify({ id: 'up', choices: [], usage: USAGE })}\n\n`;
const F = ['f', '{"a":1}'];
const G = ['g', '{"b":2}'];

interface Case {
  readonly name: string;
  readonly events: readonly string[];
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly (readonly string[])[];
  /** The finish of a chat client. */
  readonly finish?: string;
}

const TWO_CALLS: Partial<Case> = { calls: [F, G], finish: 'tool_calls' };

const CASES: readonly Case[] = [
  {
    name: 'a finish after each parallel call (Together)',
    events: [
      event(call(0, 'c1', 'f', '{"a":1}'), 'tool_calls'),
      event(call(1, 'c2', 'g', '{"b":2}'), 'tool_calls'),
    ],
    ...TWO_CALLS,
  },
  {
    name: 'a finish after each call in pieces',
    events: [
      event(call(0, 'c1', 'f', '{"a"')),
      event({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }, 'tool_calls'),
      event(call(1, 'c2', 'g', '')),
      event({ tool_calls: [{ index: 1, function: { arguments: '{"b":2}' } }] }, 'tool_calls'),
      usage,
    ],
    ...TWO_CALLS,
  },
  {
    name: 'a finish on every piece of a call',
    events: [
      event(call(0, 'c1', 'f', '{"a"'), 'tool_calls'),
      event({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }, 'tool_calls'),
    ],
    calls: [F],
    finish: 'tool_calls',
  },
  {
    name: 'calls that all have one id and one index',
    events: [event(call(0, 'c', 'f', '{"a":1}'), 'stop'), event(call(0, 'c', 'g', '{"b":2}'), 'stop')],
    ...TWO_CALLS,
  },
  {
    name: 'a call after the finish of a text',
    events: [ROLE, event({ content: 'Look' }, 'stop'), event(call(0, 'c1', 'f', '{"a":1}'), 'tool_calls')],
    text: 'Look',
    calls: [F],
    finish: 'tool_calls',
  },
  {
    name: 'stop on every chunk',
    events: ['The ', 'answer ', 'is ', '436.'].map((content) => event({ content }, 'stop')),
    text: 'The answer is 436.',
    finish: 'stop',
  },
  {
    name: 'stop on the reasoning, before the text',
    events: [
      event({ role: 'assistant', reasoning_content: 'think' }, 'stop'),
      event({ content: 'The answer is 436.' }),
      event({}, 'stop'),
      usage,
    ],
    reasoning: 'think',
    text: 'The answer is 436.',
    finish: 'stop',
  },
  {
    name: 'a finish on the first chunk, and none later',
    events: [event({ role: 'assistant' }, 'length'), event({ content: 'a' }), event({ content: 'b' })],
    text: 'ab',
    finish: 'length',
  },
  {
    name: 'two words: the last one counts',
    events: [event({ content: 'a' }, 'length'), event({}, 'stop')],
    text: 'a',
    finish: 'stop',
  },
  {
    name: 'an empty chunk between the finish and more text',
    events: [event({ content: 'a' }, 'stop'), event({}), event({ content: 'b' }, 'stop')],
    text: 'ab',
    finish: 'stop',
  },
  {
    name: 'the same piece twice',
    events: [event({ content: 'ha' }, 'stop'), event({ content: 'ha' }, 'stop')],
    text: 'haha',
    finish: 'stop',
  },
  {
    name: 'the whole text again',
    events: [
      ...['Wat', 'er \u00e9', '\n"\ud83c\udf0a"'].map((content) => event({ content })),
      event({}, 'stop'),
      event({ role: 'assistant', content: 'Water \u00e9\n"\ud83c\udf0a"' }),
      event({}, 'stop'),
    ],
    text: 'Water \u00e9\n"\ud83c\udf0a"',
    finish: 'stop',
  },
  {
    name: 'a text of the same length that is another one',
    events: [
      ...['The ', 'ans', 'wer ', 'is ', '43', '6.'].map((content) => event({ content })),
      event({}, 'stop'),
      event({ content: 'The answer is 437.' }, 'stop'),
    ],
    text: 'The answer is 436.The answer is 437.',
    finish: 'stop',
  },
  {
    name: 'the calls again, with their ids',
    events: [
      event(call(0, 'c1', 'f', '{"a":1}')),
      event(call(1, 'c2', 'g', '{"b":2}'), 'tool_calls'),
      event(call(0, 'c1', 'f', '{"a":1}'), 'tool_calls'),
      event(call(1, 'c2', 'g', '{"b":2}')),
      usage,
    ],
    ...TWO_CALLS,
  },
];

const FINISHES: Readonly<Record<string, readonly string[]>> = {
  stop: ['stop', 'end_turn', 'completed', 'STOP'],
  tool_calls: ['tool_calls', 'tool_use', 'completed', 'STOP'],
  length: ['length', 'max_tokens', 'max_output_tokens', 'MAX_TOKENS'],
};

describe.each(CASES)('C8 $name', ({ events, text = '', reasoning = '', calls = [], finish = '' }) => {
  const expected = { text, reasoning, calls, finish: expect.toBeOneOf([...(FINISHES[finish] ?? [])]) };

  test.each(NAMES)('%s: all output, one finish', async (client) => {
    expect(await see(client, 'chat', sse(...events, DONE))).toMatchObject(expected);
    expect(await see(client, 'chat', sse([...events, DONE].join('')))).toMatchObject(expected);
  });
});

describe('C8 output without a finish of its own', () => {
  test.each(NAMES)('%s: text after a finish, then the end of the body: truncated', async (client) => {
    const behavior = sse(event({ content: 'a' }, 'stop'), event({ content: 'b' }));
    expect(await see(client, 'chat', behavior)).toEqual({
      error: expect.stringContaining('before the answer was'),
    });
  });

  test.each(NAMES)('%s: a call that is cut at the finish, and goes on no more: truncated', async (client) => {
    const behavior = sse(event(call(0, 'c1', 'f', '{"a":'), 'tool_calls'), DONE);
    expect(await see(client, 'chat', behavior)).toEqual({
      error: expect.stringContaining('before its arguments'),
    });
  });

  test.each(NAMES)('%s: an error after a finish: it is the end', async (client) => {
    const behavior = sse(
      event({ content: 'a' }, 'stop'),
      'data: {"error":{"message":"Out of memory"}}\n\n',
      DONE,
    );
    expect(await see(client, 'chat', behavior)).toEqual({ error: expect.stringContaining('Out of memory') });
  });
});

const PROVIDERS = JSON.stringify({
  own: { base_url: 'https://own' },
  silent: { base_url: 'https://silent', stream_usage: false },
  router: { like: 'openrouter', base_url: 'https://router' },
  grok: { like: 'xai', base_url: 'https://grok' },
});
const OPENTOKEN = { OPENTOKEN_API_KEY: 'x', OPENTOKEN_BASE_URL: 'https://opentoken' };

describe('C8 F4 the wait of a finish', () => {
  const hanging = (...pieces: string[]): Behavior => ({
    kind: 'answer',
    type: 'text/event-stream',
    pieces,
    ending: 'hang',
  });

  /** Reads what comes until nothing more does. */
  async function open(behavior: Behavior) {
    const gateway = new RoutedGateway({ a: [behavior] }, { PROVIDERS });
    const { body } = await gateway.ask({ model: 'own/a', stream: true });
    const got = { text: '' };
    void body?.pipeThrough(new TextDecoderStream()).pipeTo(
      new WritableStream({
        write(piece) {
          got.text += piece;
        },
      }),
    );
    await settle();
    return { gateway, got };
  }

  test('nothing follows: the finish is sent after its limit, once', async () => {
    const { gateway, got } = await open(hanging(event({ content: 'a' }), event({}, 'stop')));
    gateway.clock.advance(MAX_FINISH_WAIT_MS - 1);
    await settle();
    expect(got.text).not.toContain('"stop"');
    gateway.clock.advance(1);
    await settle();
    expect(got.text.split('"stop"')).toHaveLength(2);
    expect(got.text).not.toContain('[DONE]');
  });

  test('[DONE] in the same read: nothing waits, and no timer runs', async () => {
    const { gateway, got } = await open(sse(event({ content: 'a' }), event({}, 'stop') + DONE));
    expect(got.text).toContain('"stop"');
    expect(got.text.endsWith(DONE)).toBe(true);
    expect(gateway.records).toMatchObject([{ status: 'finished' }]);
  });

  test.each([true, false])(
    'new output after the limit: upstream_invalid, streamed: %j',
    async (isStreamed) => {
      const { body, feed } = fedBody();
      const gateway = new RoutedGateway({ a: [{ kind: 'stream', body }] }, { PROVIDERS });
      const asked = gateway.ask({ model: 'own/a', stream: isStreamed }).then(read);
      await settle();
      feed(event({ content: 'a' }, 'stop'));
      await settle();
      gateway.clock.advance(MAX_FINISH_WAIT_MS);
      await settle();
      feed(event({ content: 'b' }));
      expect((await asked).error).toMatchObject({ code: 'upstream_invalid' });
      expect(gateway.records).toMatchObject([{ error_code: 'upstream_invalid' }]);
    },
  );

  test.each(['stop', null])('new output after usage: upstream_invalid (%s)', async (word) => {
    const behavior = sse(event({ content: 'a' }, 'stop'), usage, event({ content: 'b' }, word), DONE);
    const gateway = new RoutedGateway({ a: [behavior] }, { PROVIDERS });
    const got = await read(await gateway.ask({ model: 'own/a', stream: true }));
    expect(got).toMatchObject({
      text: 'a',
      finishes: ['stop'],
      error: { code: 'upstream_invalid' },
      isDone: true,
    });
  });

  test('M the record has the last finish word', async () => {
    const behavior = sse(event({ content: 'a' }, 'eos'), event({ content: 'b' }, 'length'), DONE);
    const gateway = new RoutedGateway({ a: [behavior] }, { PROVIDERS });
    await (await gateway.ask({ model: 'own/a', stream: true })).text();
    expect(gateway.records).toMatchObject([{ status: 'finished', finish_reason: 'length' }]);
  });
});

describe('U2 usage that arrives while a finish waits, to a client that did not request it', () => {
  const usageOf = async (
    model: string,
    pieces: readonly string[],
    env: JsonObject = {},
    agent = 'curl',
    fields: JsonObject = {},
  ) => {
    const gateway = new RoutedGateway({ a: [sse(...pieces)] }, { PROVIDERS, ...OPENTOKEN, ...env });
    const answer = await gateway.ask(
      { model, stream: true, ...fields },
      { headers: { 'user-agent': agent } },
    );
    const chunks = (await answer.text()).split('\n\n').filter((frame) => frame.includes('"usage"'));
    return chunks.map((frame) => JSON.parse(frame.slice('data: '.length)));
  };
  const late = [ROLE, event({ content: 'a' }), event({}, 'stop'), usage, DONE];
  const strict = 'ai-sdk/mistral/4.0.2 runtime/node.js/24';

  test.each(['silent/a', 'router/a', 'grok/a'])('%s: on the chunk of the finish', async (model) => {
    for (const agent of ['curl', strict]) {
      const [chunk, ...others] = await usageOf(model, late, {}, agent);
      expect(others).toEqual([]);
      expect(chunk).toMatchObject({ choices: [{ finish_reason: 'stop' }], usage: USAGE });
    }
    expect(await usageOf(model, late, { USAGE_CHUNK: 'on_request' })).toEqual([]);
  });

  test.each(['own/a', 'openai/a', 'opentoken/a'])(
    '%s: not, as Weir requested it itself, or its profile says so',
    async (model) => {
      expect(await usageOf(model, late)).toEqual([]);
    },
  );

  test('with a second finish: on the last chunk', async () => {
    const pieces = [event({ content: 'a' }, 'stop'), event({ content: 'b' }), event({}, 'stop'), usage, DONE];
    expect(await usageOf('silent/a', pieces)).toMatchObject([
      { choices: [{ finish_reason: 'stop' }], usage: USAGE },
    ]);
  });

  test('on the finish of a chunk that more output follows: on the last finish, once', async () => {
    const pieces = [
      event({ content: 'a' }, 'stop', { usage: USAGE }),
      event({ content: 'b' }, 'stop', { usage: USAGE }),
      DONE,
    ];
    const chunks = await usageOf('own/a', pieces);
    expect(chunks).toMatchObject([{ choices: [{ delta: { content: 'b' }, finish_reason: 'stop' }] }]);
  });

  test.each(['own/a', 'silent/a', 'openai/a', 'router/a'])(
    '%s: in a JSON answer that has one choice twice, on its finish',
    async (model) => {
      const choice = { index: 0, message: { role: 'assistant' }, finish_reason: 'stop' };
      const body = { id: 'a', object: 'chat.completion', choices: [choice, choice], usage: USAGE };
      const gateway = new RoutedGateway({ a: [json(body)] }, { PROVIDERS, ...OPENTOKEN });
      const answer = await gateway.ask({ model, stream: true }, {});
      const frames = (await answer.text()).split('\n\n').filter((frame) => frame.startsWith('data: {'));
      const chunks = frames.map((frame) => JSON.parse(frame.slice('data: '.length)));
      const finished = chunks.filter(
        ({ choices }) => choices.length !== 1 || choices[0].finish_reason !== null,
      );
      expect(finished).toMatchObject([{ choices: [{ finish_reason: 'stop' }], usage: USAGE }]);
    },
  );

  test('of two choices one has no finish before [DONE]: on the finish that it gets there', async () => {
    const second = (text: string) => text.replace('"index":0', '"index":1');
    const pieces = [
      event({ content: 'a' }),
      second(event({ content: 'b' }, null, { usage: USAGE })),
      second(event({}, 'stop')),
      DONE,
    ];
    const chunks = await usageOf('silent/a', pieces, {}, 'curl', { n: 2 });
    expect(chunks).toMatchObject([{ choices: [{ index: 0, finish_reason: 'stop' }], usage: USAGE }]);
  });

  const inFinish = event({ content: 'a' }, 'stop', { usage: USAGE });
  test.each([
    ['own/a', 'with the finish', [inFinish, DONE]],
    ['own/a', 'before it', [event({ content: 'a' }, null, { usage: USAGE }), event({}, 'stop'), DONE]],
    ['own/a', 'with an empty chunk behind it', [inFinish, event({}), DONE]],
    ['silent/a', 'with the finish', [inFinish, DONE]],
    ['silent/a', 'behind it', [event({ content: 'a' }, 'stop'), usage, DONE]],
    ['silent/a', 'and no finish word', [event({ content: 'a' }, null, { usage: USAGE }), DONE]],
  ])(
    'of two choices that were requested at %s one came, usage %s: on its finish',
    async (model, _, pieces) => {
      const chunks = await usageOf(model, pieces, {}, 'curl', { n: 2 });
      expect(chunks).toMatchObject([{ choices: [{ finish_reason: 'stop' }], usage: USAGE }]);
    },
  );
});
