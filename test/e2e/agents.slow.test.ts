/** Tests agents' tool loops of five steps with thinking and parallel calls (Q1-Q6): real clients × strict providers, and conversations that move. */
import Anthropic from '@anthropic-ai/sdk';
import type OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chatOf } from '../../tools/simulator/anthropic-chat.ts';
import { chatMessages } from '../../tools/simulator/gemini-conversation.ts';
import { objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import {
  type AiProvider,
  CALLS,
  runByHand,
  runWithAiSdk,
  runWithOpenAI,
  runWithStreamHelper,
  STEPS,
} from './agent-loops.ts';
import { startGateway } from './gateway.ts';
import { MODELS, SIGNING } from './loop-models.ts';
import { runByHand as runMessages } from './messages-loops.ts';
import { runByHand as runResponses } from './responses/loops.ts';

const gateway = await startGateway();
afterAll(() => gateway[Symbol.asyncDispose]());
const baseURL = `${gateway.url}/v1`;

/** What each upstream was sent in the loop: no request of it was refused, and the last holds every step. */
function expectWholeLoop(requestsBefore: number): void {
  const requests = gateway.simulator.requests.slice(requestsBefore);
  expect(requests).toHaveLength(STEPS + 1);
  const { path = '', body = {} } = requests.at(-1) ?? {};
  const messages = path.startsWith('/anthropic/') ? objectsOf(chatOf(body).messages) : chatMessages(body);
  expect(messages.filter(({ tool_calls }) => Array.isArray(tool_calls))).toHaveLength(STEPS);
  expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(CALLS);
}

describe.each([...MODELS, ...SIGNING])('the openai SDK, runTools streamed, at %s', (model) => {
  test('Q2 Q3 five steps with parallel calls end in an answer', async () => {
    const before = gateway.simulator.requests.length;
    const { text, calls } = await runWithOpenAI(baseURL, model);
    expect(calls).toBe(CALLS);
    expect(text).not.toBe('');
    expectWholeLoop(before);
  });
});

describe.each([...MODELS, ...SIGNING])('the openai SDK, its stream helper with an effort, at %s', (model) => {
  test('A7 five steps with parallel calls end in an answer, though the thoughts come back in part', async () => {
    const before = gateway.simulator.requests.length;
    const { text, calls } = await runWithStreamHelper(baseURL, model);
    expect(calls).toBe(CALLS);
    expect(text).not.toBe('');
    expectWholeLoop(before);
  });
});

describe.each<[provider: AiProvider, isStreamed: boolean]>([
  ['openai-compatible', true],
  ['openai-compatible', false],
  ['deepseek', true],
])('the AI SDK, %s, streamed: %s', (provider, isStreamed) => {
  test.each([...MODELS, ...SIGNING])(
    'Q2 Q3 %s: five steps with parallel calls end in an answer',
    async (model) => {
      const before = gateway.simulator.requests.length;
      const { text, calls } = await runWithAiSdk(baseURL, model, provider, isStreamed);
      expect(calls).toBe(CALLS);
      expect(text).not.toBe('');
      expectWholeLoop(before);
    },
  );
});

/** Over a client's route: the tools of these names in its own form, and a prompt that has the model call the first. */
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

/** 93 characters, as Claude Code makes them of an MCP server's tools. */
const LONG_NAMES = ['gauge', 'flows'].map((name) => `mcp__plugin_river_${'-'.repeat(69)}_${name}`);

describe.each([
  'openai/gpt-4o-mini',
  'deepseek/deepseek-flash',
  'mistral/mistral-small-latest',
  'groq/openai/gpt-oss-120b',
  'openrouter/moonshotai/kimi-k2.5',
  'gemini-compatible/gemini-3-flash',
  'gemini/gemini-3-flash-preview',
])('Q1 tools with names of 93 characters and one beginning, at %s', (model) => {
  test.each(
    Object.keys(ROUTES).flatMap((path) => [
      [path, true],
      [path, false],
    ]),
  )('%s, streamed %s: short at the provider, itself in the answer', async (path, stream) => {
    const at = gateway.simulator.requests.length;
    const body = ROUTES[String(path)]?.(model, LONG_NAMES) ?? {};
    const text = await (await gateway.post(String(path), { ...body, stream })).text();
    const { path: asked, body: sent } = await gateway.simulator.request(at);
    expect(text).toMatch(new RegExp(`"name": ?"${LONG_NAMES[0]}"`));
    // Where client and provider speak one dialect, the request passes as it is.
    const isPassed = asked.endsWith('/responses');
    expect(JSON.stringify(sent).includes(LONG_NAMES[0] ?? '')).toBe(isPassed);
    if (!isPassed) expect(text).not.toMatch(/"mcp__plugin_river_-+_\w{9}"/);
  });

  test('the openai SDK’s tool runner goes through its steps with them', async () => {
    const { text, calls } = await runWithOpenAI(baseURL, model, [], LONG_NAMES);
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
  ])('%s: goes back whole, in its own field', async (model, read) => {
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
    '%s, streamed %s: goes back first and whole in every step, is never turned off, and the history is cached',
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

describe('a conversation that moves', () => {
  const models = [...MODELS, ...SIGNING];
  test.each(models)('Q2 Q3 A7 begun at %s: goes on at every other provider', async (first) => {
    const begun = await runByHand(baseURL, first, false);
    for (const next of models) {
      // The simulator counts the steps of the whole history, so that the second task is answered at once.
      const { text } = await runWithOpenAI(baseURL, next, begun.messages);
      expect(text).not.toBe('');
    }
  });

  test.each(models)(
    'Q2 Q3 A7 within its task, after two steps at %s: the other providers finish it',
    async (first) => {
      const begun = await runByHand(baseURL, first, false);
      const calling = begun.messages.flatMap((message, i) =>
        'tool_calls' in message && message.tool_calls ? [i] : [],
      );
      const unfinished = begun.messages.slice(0, calling[2]);
      for (const next of models.filter((model) => model !== first && !SIGNING.includes(model))) {
        const result = await continueTask(next, unfinished);
        expect(result).toBe('tool_calls');
      }
    },
  );

  /** One more turn on a history that ends in a tool's result: the model goes on with its steps. */
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
  const models = [...MODELS, ...SIGNING, 'openai/o4-mini'];

  describe.each(loops)('a client of %s', (_, loop) => {
    test.each(models.flatMap((model) => [[model, true] as const, [model, false] as const]))(
      'C6 A7 N1 %s, streamed %s: five steps end in an answer, none of them refused',
      async (model, isStreamed) => {
        const before = gateway.simulator.requests.length;
        const { text, calls } = await loop(model, isStreamed);
        expect(text).not.toBe('');
        expect(calls).toBe(CALLS);
        expect(gateway.simulator.requests.slice(before)).toHaveLength(STEPS + 1);
      },
    );

    test.each(['anthropic/claude-haiku-4-5', 'anthropic/claude-sonnet-5', 'anthropic/claude-opus-5-5'])(
      'C6 A7 %s: its thoughts go back in every step, by their signatures alone, and are never turned off',
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
    'C6 %s: no text of the reasoning, streamed or not, at any provider',
    async (path) => {
      for (const model of ['anthropic/claude-haiku-4-5', 'deepseek/deepseek-flash', 'xai/grok-4.3']) {
        for (const stream of [true, false]) {
          const prompt = { messages: [{ role: 'user', content: 'Hi' }], input: 'Hi', max_tokens: 8192 };
          const thinking = { type: 'enabled', budget_tokens: 2048 };
          const { messages, input, max_tokens } = prompt;
          const asked = {
            '/v1/chat/completions': { messages, reasoning_effort: 'high' },
            '/v1/messages': { messages, max_tokens, thinking },
            '/v1/responses': { input, reasoning: { effort: 'high', summary: 'auto' } },
          }[path];
          const response = await gateway.post(path, { model, stream, ...asked });
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
