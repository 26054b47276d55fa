/**
 * Tests agents' tool loops of five steps with thinking and parallel calls (Q1-Q6): real clients × strict providers, and conversations that
 * change their provider. Each loop runs at every second model; STEP=1 runs it at all.
 */
import Anthropic from '@anthropic-ai/sdk';
import type OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { oneIn, stepOf } from '../random-run.ts';
import {
  type AiProvider,
  CALLS,
  runByHand,
  runWithAiSdk,
  runWithOpenAI,
  runWithStreamHelper,
  STEPS,
} from './agent-loops.ts';
import { countCalls } from './count-calls.ts';
import { startGateway } from './gateway.ts';
import { MODELS, SIGNING, THROUGH_RESPONSES } from './loop-models.ts';
import {
  runByHand as runMessages,
  runWithAiSdk as runMessagesWithAiSdk,
  runWithToolRunner,
} from './messages-loops.ts';
import { runByHand as runResponses } from './responses/loops.ts';

const gateway = await startGateway();
afterAll(() => gateway[Symbol.asyncDispose]());
const baseURL = `${gateway.url}/v1`;

const ALL = [...MODELS, ...SIGNING];
const modelsOf = (shift: number) => oneIn(stepOf(3, 3), ALL, shift);

/** Expects that no request of the loop was rejected, and that the last one has every call and its result. */
function expectWholeLoop(requestsBefore: number): void {
  const requests = gateway.simulator.requests.slice(requestsBefore);
  expect(requests).toHaveLength(STEPS + 1);
  expect(countCalls(requests.at(-1)?.body ?? {})).toEqual({ calls: CALLS, results: CALLS });
}

describe.each(modelsOf(0))('the openai SDK, runTools streamed, at %s', (model) => {
  test('Q2 Q3 five steps with parallel calls end with a text', async () => {
    const before = gateway.simulator.requests.length;
    const { text, calls } = await runWithOpenAI(baseURL, model);
    expect(calls).toBe(CALLS);
    expect(text).not.toBe('');
    expectWholeLoop(before);
  });
});

describe.each(modelsOf(1))('the openai SDK, its stream helper with an effort, at %s', (model) => {
  test('A7 five steps with parallel calls end with a text, although only part of the reasoning is sent back', async () => {
    const before = gateway.simulator.requests.length;
    const { text, calls } = await runWithStreamHelper(baseURL, model);
    expect(calls).toBe(CALLS);
    expect(text).not.toBe('');
    expectWholeLoop(before);
  });
});

describe.each<[provider: AiProvider, isStreamed: boolean, shift: number]>([
  ['openai-compatible', true, 0],
  ['openai-compatible', false, 1],
  ['deepseek', true, 1],
])('the AI SDK, %s, streamed: %s', (provider, isStreamed, shift) => {
  test.each(modelsOf(shift))('Q2 Q3 %s: five steps with parallel calls end with a text', async (model) => {
    const before = gateway.simulator.requests.length;
    const { text, calls } = await runWithAiSdk(baseURL, model, provider, isStreamed);
    expect(calls).toBe(CALLS);
    expect(text).not.toBe('');
    expectWholeLoop(before);
  });
});

/** For each route: a request with tools of these names, and a prompt that makes the model call the first. */
const ROUTES: Readonly<Record<string, (model: string, names: readonly string[]) => Fields>> = {
  '/v1/chat/completions': (model, names) => ({
    model,
    messages: [{ role: 'user', content: 'steps:1 How high is the river?' }],
    tools: names.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })),
  }),
  '/v1/messages': (model, names) => ({
    model,
    max_tokens: 4096,
    messages: [{ role: 'user', content: 'steps:1 How high is the river?' }],
    tools: names.map((name) => ({ name, input_schema: { type: 'object' } })),
  }),
  '/v1/responses': (model, names) => ({
    model,
    input: 'steps:1 How high is the river?',
    tools: names.map((name) => ({ type: 'function', name, parameters: { type: 'object' } })),
  }),
};

/** 93 characters, like the names that Claude Code gives to tools of MCP servers. */
const LONG_NAMES = ['gauge', 'flows'].map((name) => `mcp__plugin_river_${'-'.repeat(69)}_${name}`);

describe.each([
  'openai/gpt-4o-mini',
  'deepseek/deepseek-flash',
  'mistral/mistral-small-latest',
  'groq/openai/gpt-oss-120b',
  'openrouter/moonshotai/kimi-k2.5',
  'gemini-compatible/gemini-3-flash',
  'gemini/gemini-3-flash-preview',
])('Q1 tools with names of 93 characters and the same beginning, at %s', (model) => {
  test.each(
    Object.keys(ROUTES).flatMap((path) => [
      [path, true],
      [path, false],
    ]),
  )(
    '%s, streamed %s: a short name at the provider, the original name at the client',
    async (path, stream) => {
      const at = gateway.simulator.requests.length;
      const body = ROUTES[String(path)]?.(model, LONG_NAMES) ?? {};
      const text = await (await gateway.post(String(path), { ...body, stream })).text();
      const { path: asked, body: sent } = await gateway.simulator.request(at);
      expect(text).toMatch(new RegExp(`"name": ?"${LONG_NAMES[0]}"`));
      // In passthrough, the request is unchanged.
      const isPassed = asked.endsWith('/responses');
      expect(JSON.stringify(sent).includes(LONG_NAMES[0] ?? '')).toBe(isPassed);
      if (!isPassed) expect(text).not.toMatch(/"mcp__plugin_river_-+_\w{9}"/);
    },
  );

  test('the openai SDK’s tool runner completes its steps with them', async () => {
    const { text, calls } = await runWithOpenAI(baseURL, model, [], { names: LONG_NAMES });
    expect(calls).toBe(CALLS);
    expect(text).not.toBe('');
  });
});

describe('Q2 the reasoning of the steps', () => {
  test.each([
    ['deepseek/deepseek-flash', (message: Fields) => textOf(message.reasoning_content)],
    ['cerebras/gpt-oss-120b', (message: Fields) => textOf(message.reasoning)],
    ['openrouter/moonshotai/kimi-k2.5', (message: Fields) => textOf(message.reasoning)],
    ['xai/grok-4.3', (message: Fields) => textOf(message.reasoning_content)],
    ['compatible/openai/gpt-oss-20b', (message: Fields) => textOf(message.reasoning)],
  ])('%s: is sent back complete, in its own field', async (model, read) => {
    await runWithAiSdk(baseURL, model, 'openai-compatible', true);
    const messages = objectsOf(gateway.simulator.requests.at(-1)?.body?.messages);
    const steps = messages.filter(({ tool_calls }) => Array.isArray(tool_calls));
    expect(steps.map(read).filter((text) => text.split(' ').length > 2)).toHaveLength(STEPS);
  });
});

describe('A7 A9 the thinking of the steps at Anthropic', () => {
  test.each([
    ['anthropic/claude-haiku-4-5', true],
    ['anthropic/claude-haiku-4-5', false],
    ['anthropic/claude-sonnet-5', true],
    ['anthropic/claude-opus-5-5', true],
    ['anthropic/claude-opus-5-5', false],
  ])(
    '%s, streamed %s: is sent back complete and first in every step, is never turned off, and the history is cached',
    async (model, isStreamed) => {
      const before = gateway.simulator.requests.length;
      await runByHand(baseURL, model, isStreamed);
      const bodies = gateway.simulator.requests.slice(before).map(({ body }) => body ?? {});
      expect(bodies.map(({ thinking }) => objectOf(thinking).type)).not.toContain(undefined);
      expect(bodies.map(({ cache_control }) => cache_control)).not.toContain(undefined);
      const turns = objectsOf(bodies.at(-1)?.messages).filter(({ role }) => role === 'assistant');
      expect(turns).toHaveLength(STEPS);
      for (const { content } of turns) expect(objectsOf(content)[0]).toMatchObject({ type: 'thinking' });
      const texts = turns.map(({ content }) => textOf(objectsOf(content)[0]?.thinking));
      expect(texts.filter((text, step) => text.endsWith(`(step ${step + 1})`))).toHaveLength(STEPS);
    },
  );
});

type Fields = ReturnType<typeof objectOf>;

/** A loop of a client, and whether it sends encrypted reasoning back. */
type ClientLoop = readonly [
  client: string,
  keepsReasoning: boolean,
  loop: (model: string, isStreamed: boolean) => Promise<Loop>,
];

describe('models whose chat refuses tools', () => {
  const anthropic = new Anthropic({ apiKey: 'unused', baseURL: gateway.url, maxRetries: 0 });
  const loops: readonly ClientLoop[] = [
    ['openai, runTools', false, (model, isStreamed) => runWithOpenAI(baseURL, model, [], { isStreamed })],
    ['openai, by hand', true, (model, isStreamed) => runByHand(baseURL, model, isStreamed)],
    [
      '@ai-sdk/openai, chat()',
      false,
      (model, isStreamed) => runWithAiSdk(baseURL, model, 'openai.chat', isStreamed),
    ],
    [
      '@ai-sdk/openai-compatible',
      false,
      (model, isStreamed) => runWithAiSdk(baseURL, model, 'openai-compatible', isStreamed),
    ],
    ['@anthropic-ai/sdk, by hand', true, (model, isStreamed) => runMessages(anthropic, model, isStreamed)],
    [
      '@anthropic-ai/sdk, toolRunner',
      true,
      (model, isStreamed) => runWithToolRunner(anthropic, model, isStreamed),
    ],
    [
      '@ai-sdk/anthropic',
      true,
      (model, isStreamed) => runMessagesWithAiSdk(baseURL, 'unused', model, isStreamed),
    ],
  ];
  // The tests' xAI is a server that is like xAI's: it has Responses only if its entry says so.
  beforeAll(() => {
    const base_url = `${gateway.simulator.url}/xai/v1`;
    const grok = { base_url, api_key: 'COMPATIBLE_SECRET', like: 'xai', responses: true };
    return gateway.set({ PROVIDERS: JSON.stringify({ grok }) });
  });
  afterAll(() => gateway.set({}));
  const models = [...THROUGH_RESPONSES, 'grok/grok-4.3'];
  const cases = models.flatMap((model) => [[model, true] as const, [model, false] as const]);

  describe.each(loops)('%s', (_, keepsReasoning, loop) => {
    test.each(cases)(
      'O3 O5 O6 O8 %s, streamed %s: five steps through Responses, and the provider’s cache grows with each',
      async (model, isStreamed) => {
        const before = gateway.simulator.requests.length;
        const responsesBefore = requestLines().length;
        const { text, calls } = await loop(model, isStreamed);
        expect(calls).toBe(CALLS);
        expect(text).not.toBe('');
        expectWholeLoop(before);
        const requests = gateway.simulator.requests.slice(before);
        expect(requests.map(({ path }) => path.endsWith('/responses'))).not.toContain(false);
        const inputs = requests.map(({ body }) => JSON.stringify(body?.input));
        for (const [step, input] of inputs.slice(1).entries()) {
          expect(input.startsWith(inputs[step]?.slice(0, -1) ?? '-')).toBe(true);
        }
        const last = objectsOf(requests.at(-1)?.body?.input);
        expect(last.filter(({ type }) => type === 'reasoning')).toHaveLength(keepsReasoning ? STEPS : 0);
        await gateway.logged(() => requestLines().length >= responsesBefore + STEPS + 1);
        const lines = requestLines().slice(responsesBefore);
        expect(lines.map(({ changed }) => changed ?? [])).toEqual([
          [],
          ...Array.from({ length: STEPS }, () => (keepsReasoning ? [] : ['reasoning'])),
        ]);
        expect(lines.map(({ attempts }) => objectsOf(attempts).map(({ api }) => api))).toEqual(
          Array.from({ length: STEPS + 1 }, () => ['responses']),
        );
        const cached = lines.map(({ cached_tokens }) => Number(cached_tokens));
        expect(cached.slice(1)).toEqual([...new Set(cached.slice(1))].sort((a, b) => a - b));
        expect(cached[1]).toBeGreaterThan(0);
      },
    );
  });

  test.each(['anthropic/claude-sonnet-5', 'gemini/gemini-3.8-flash', 'deepseek/deepseek-flash'])(
    'O5 a conversation begun at %s goes on there, and back: nothing of one provider’s reasoning goes to the other',
    async (first) => {
      for (const model of THROUGH_RESPONSES) {
        let { messages } = await runByHand(baseURL, first, true);
        for (const next of [model, first, model]) {
          const before = gateway.simulator.requests.length;
          const after = await runByHand(baseURL, next, true, messages);
          expect(after.text).not.toBe('');
          messages = after.messages;
          for (const { path, text } of gateway.simulator.requests.slice(before)) {
            if (!path.endsWith('/responses')) expect(text).not.toContain('gAAAAsim');
          }
        }
      }
    },
  );

  test.each([true, false])(
    'O2 gpt-9-test, streamed %s: a model that nobody knows works on its first request, and is remembered',
    async (stream) => {
      // A reload forgets what refusals taught.
      await gateway.set({});
      const messages = [{ role: 'user', content: 'Hello' }];
      const paths: string[] = [];
      for (let i = 0; i < 2; i++) {
        const before = gateway.simulator.requests.length;
        const response = await gateway.post('/v1/chat/completions', {
          model: 'openai/gpt-9-test',
          messages,
          stream,
        });
        expect(response.status).toBe(200);
        expect(response.headers.get('x-weir-api')).toBe('responses');
        expect(await response.text()).toContain('river');
        paths.push(...gateway.simulator.requests.slice(before).map(({ path }) => path));
      }
      expect(paths).toEqual(['/openai/v1/chat/completions', '/openai/v1/responses', '/openai/v1/responses']);
    },
  );

  function requestLines(): Fields[] {
    return gateway
      .logs()
      .map((line) => decodeObject(line) ?? {})
      .filter(({ event }) => event === 'request');
  }
});

describe('a conversation that changes its provider', () => {
  /** The last model of each provider. */
  const oneEach = [...new Map(ALL.map((model) => [model.split('/')[0], model])).values()];
  test.each(modelsOf(0))('Q2 Q3 A7 begun at %s: continues at every other provider', async (first) => {
    const begun = await runByHand(baseURL, first, false);
    for (const next of oneEach) {
      // The simulator counts the steps of the complete history, so the second task ends at once.
      const { text } = await runWithOpenAI(baseURL, next, begun.messages);
      expect(text).not.toBe('');
    }
  });

  const unsigned = [...new Map(MODELS.map((model) => [model.split('/')[0], model])).values()];
  test.each(modelsOf(1))(
    'Q2 Q3 A7 within a task, after two steps at %s: the other providers finish it',
    async (first) => {
      const begun = await runByHand(baseURL, first, false);
      const calling = begun.messages.flatMap((message, i) =>
        'tool_calls' in message && message.tool_calls ? [i] : [],
      );
      const unfinished = begun.messages.slice(0, calling[2]);
      for (const next of unsigned.filter((model) => model !== first)) {
        const result = await continueTask(next, unfinished);
        expect(result).toBe('tool_calls');
      }
    },
  );

  /** One more turn on a history that ends with a tool result: the model continues with its steps. */
  async function continueTask(
    model: string,
    messages: readonly OpenAI.ChatCompletionMessageParam[],
  ): Promise<string> {
    const tools = ['gauge', 'forecast'].map((name) => ({
      type: 'function',
      function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } } } },
    }));
    const response = await gateway.post('/v1/chat/completions', { model, tools, messages });
    const answer = objectOf(await response.json());
    const [choice] = objectsOf(answer.choices);
    return textOf(choice?.finish_reason);
  }
});

describe('REASONING=strip', () => {
  beforeAll(() => gateway.set({ REASONING: 'strip' }));

  const anthropic = new Anthropic({ apiKey: 'unused', baseURL: gateway.url, maxRetries: 0 });
  const loops: readonly (readonly [
    client: string,
    loop: (model: string, isStreamed: boolean) => Promise<Loop>,
  ])[] = [
    ['chat', (model, isStreamed) => runByHand(baseURL, model, isStreamed)],
    ['Messages', (model, isStreamed) => runMessages(anthropic, model, isStreamed)],
    ['Responses', (model, isStreamed) => runResponses(baseURL, model, isStreamed)],
  ];

  describe.each(loops)('a client of %s', (client, loop) => {
    const shift = loops.findIndex(([name]) => name === client);
    test.each(
      [...modelsOf(shift), 'openai/o4-mini'].map((model, i) => [model, (i + shift) % 2 === 0] as const),
    )(
      'C6 A7 N1 %s, streamed %s: five steps end with a text, and none is rejected',
      async (model, isStreamed) => {
        const before = gateway.simulator.requests.length;
        const { text, calls } = await loop(model, isStreamed);
        expect(text).not.toBe('');
        expect(calls).toBe(CALLS);
        expect(gateway.simulator.requests.slice(before)).toHaveLength(STEPS + 1);
      },
    );

    test.each(['anthropic/claude-haiku-4-5', 'anthropic/claude-sonnet-5', 'anthropic/claude-opus-5-5'])(
      'C6 A7 %s: its thoughts are sent back in every step, by their signatures only, and are never turned off',
      async (model) => {
        const before = gateway.simulator.requests.length;
        await loop(model, true);
        const bodies = gateway.simulator.requests.slice(before).map(({ body }) => body ?? {});
        for (const { thinking } of bodies) expect(thinking).toMatchObject({ display: 'omitted' });
        const turns = objectsOf(bodies.at(-1)?.messages).filter(({ role }) => role === 'assistant');
        expect(turns).toHaveLength(STEPS);
        for (const { content } of turns) {
          expect(objectsOf(content)[0]).toMatchObject({ type: 'thinking', thinking: '' });
        }
      },
    );
  });

  test.each(['/v1/chat/completions', '/v1/messages', '/v1/responses'])(
    'C6 %s: no text of the reasoning, streaming or non-streaming, with any provider',
    async (path) => {
      for (const model of ['anthropic/claude-haiku-4-5', 'deepseek/deepseek-flash', 'xai/grok-4.3']) {
        for (const stream of [true, false]) {
          const prompt = { messages: [{ role: 'user', content: 'Hi' }], input: 'Hi', max_tokens: 8192 };
          const thinking = { type: 'enabled', budget_tokens: 2048 };
          const { messages, input, max_tokens } = prompt;
          const requested = {
            '/v1/chat/completions': { messages, reasoning_effort: 'high' },
            '/v1/messages': { messages, max_tokens, thinking },
            '/v1/responses': { input, reasoning: { effort: 'high', summary: 'auto' } },
          }[path];
          const response = await gateway.post(path, { model, stream, ...requested });
          const text = await response.text();
          expect(response.status).toBe(200);
          expect(text).not.toMatch(
            /thinking_delta|reasoning_content|reasoning_summary_text|reasoning_text|Gates first/,
          );
        }
      }
    },
  );
});

interface Loop {
  readonly text: string;
  readonly calls: number;
}
