/** Tests responses and faults of a third-party mock upstream, `@copilotkit/aimock`, with the SDK of each client protocol. */
import Anthropic from '@anthropic-ai/sdk';
import { LLMock } from '@copilotkit/aimock';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RecordSummary } from '../../src/metering/record.ts';
import { decodeObject } from '../../tools/simulator/json.ts';
import { sampleOf } from '../random-run.ts';
import { type Gateway, startGateway } from './gateway.ts';

const TEXT = 'Über die Wehrkrone fließt “ruhig” das Wasser, naïvely: 水は流れる 👩🏽‍🔬.';
const THOUGHT = 'Count the drops first.';
const CALL = { name: 'get_weather', arguments: '{"city":"Zürich","days":[1,2]}' };
/** Each upstream reads its own field names. */
const USAGE = {
  ...{ prompt_tokens: 11, completion_tokens: 23, total_tokens: 34 },
  ...{ input_tokens: 11, output_tokens: 23 },
  ...{ promptTokenCount: 11, candidatesTokenCount: 23, totalTokenCount: 34 },
};
const TOOL = {
  name: CALL.name,
  description: 'The weather of a city',
  parameters: {
    type: 'object' as const,
    properties: { city: { type: 'string' }, days: { type: 'array', items: { type: 'integer' } } },
  },
};

const UPSTREAMS = ['openai', 'anthropic', 'gemini'] as const;

let gateway: Gateway;
let mock: LLMock;

beforeAll(async () => {
  mock = await LLMock.create({ host: '127.0.0.1', port: 0, chunkSize: 3 });
  mock.on({ model: 'text' }, { content: TEXT, usage: USAGE });
  mock.on({ model: 'one-at-a-time' }, { content: TEXT, usage: USAGE }, { chunkSize: 1 });
  mock.on({ model: 'thought' }, { content: TEXT, reasoning: THOUGHT, usage: USAGE });
  mock.on({ model: 'uncounted' }, { content: TEXT });
  mock.on({ model: 'call' }, { toolCalls: [CALL], usage: USAGE });
  mock.on({ model: 'text-and-call' }, { content: TEXT, toolCalls: [CALL], usage: USAGE });
  for (const status of [400, 401, 429, 500, 503])
    mock.on({ model: `status-${status}` }, { error: { message: 'The mock refuses' }, status });
  mock.on({ model: 'cut' }, { content: TEXT, usage: USAGE }, { truncateAfterChunks: 5 });
  mock.on({ model: 'cut-call' }, { toolCalls: [CALL], usage: USAGE }, { truncateAfterChunks: 4 });
  mock.on({ model: 'disconnect' }, { content: TEXT, usage: USAGE }, { latency: 20, disconnectAfterMs: 150 });
  for (const fault of ['dropRate', 'malformedRate', 'rateLimitRate', 'disconnectRate'])
    mock.on({ model: `chaos-${fault}` }, { content: TEXT, usage: USAGE }, { chaos: { [fault]: 1 } });
  gateway = await startGateway({
    vars: {
      OPENAI_BASE_URL: `${mock.url}/v1`,
      ANTHROPIC_BASE_URL: mock.url,
      GEMINI_BASE_URL: mock.url,
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await mock.stop();
});

interface Outcome {
  text: string;
  readonly calls: { name: string; arguments: string }[];
  /** The client's protocol marked the response as complete. */
  isWhole: boolean;
  /** The status of the error that the SDK threw; undefined for an error within the stream. */
  status?: number | undefined;
  /** The SDK threw, or received an event that reports a failure. */
  hasFailed: boolean;
  record?: RecordSummary;
}

interface Client {
  readonly name: string;
  readonly stream: (fetch: typeof globalThis.fetch, model: string, outcome: Outcome) => Promise<void>;
  readonly whole: (fetch: typeof globalThis.fetch, model: string, outcome: Outcome) => Promise<void>;
}

function openai(fetch: typeof globalThis.fetch): OpenAI {
  return new OpenAI({ apiKey: 'unused', baseURL: `${gateway.url}/v1`, maxRetries: 0, fetch });
}

function anthropic(fetch: typeof globalThis.fetch): Anthropic {
  return new Anthropic({ apiKey: 'unused', baseURL: gateway.url, maxRetries: 0, fetch });
}

const chatBody = (model: string) => ({
  ...{ model, messages: [{ role: 'user' as const, content: 'Hello there' }] },
  tools: [{ type: 'function' as const, function: TOOL }],
});
const responsesBody = (model: string) => ({
  ...{ model, input: 'Hello there' },
  tools: [{ type: 'function' as const, strict: false, ...TOOL }],
});
const messagesBody = (model: string) => ({
  ...{ model, max_tokens: 1000, messages: [{ role: 'user' as const, content: 'Hello there' }] },
  tools: [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.parameters }],
});

const CLIENTS: readonly Client[] = [
  {
    name: 'chat',
    stream: async (fetch, model, outcome) => {
      const stream = await openai(fetch).chat.completions.create({ ...chatBody(model), stream: true });
      for await (const { choices } of stream) {
        outcome.text += choices[0]?.delta.content ?? '';
        for (const { function: part } of choices[0]?.delta.tool_calls ?? []) {
          if (part?.name) outcome.calls.push({ name: part.name, arguments: '' });
          const call = outcome.calls.at(-1);
          if (call) call.arguments += part?.arguments ?? '';
        }
        if (choices[0]?.finish_reason) outcome.isWhole = true;
      }
    },
    whole: async (fetch, model, outcome) => {
      const { choices } = await openai(fetch).chat.completions.create(chatBody(model));
      outcome.text = choices[0]?.message.content ?? '';
      for (const call of choices[0]?.message.tool_calls ?? [])
        if (call.type === 'function')
          outcome.calls.push({ name: call.function.name, arguments: call.function.arguments });
      outcome.isWhole = choices[0]?.finish_reason !== undefined;
    },
  },
  {
    name: 'Messages',
    stream: async (fetch, model, outcome) => {
      const stream = await anthropic(fetch).messages.create({ ...messagesBody(model), stream: true });
      for await (const event of stream) {
        if (event.type === 'content_block_start' && event.content_block.type === 'tool_use')
          outcome.calls.push({ name: event.content_block.name, arguments: '' });
        if (event.type === 'content_block_delta') {
          const call = outcome.calls.at(-1);
          if (event.delta.type === 'text_delta') outcome.text += event.delta.text;
          if (event.delta.type === 'input_json_delta' && call) call.arguments += event.delta.partial_json;
        }
        if (event.type === 'message_stop') outcome.isWhole = true;
      }
    },
    whole: async (fetch, model, outcome) => {
      const { content, stop_reason } = await anthropic(fetch).messages.create(messagesBody(model));
      for (const block of content) {
        if (block.type === 'text') outcome.text += block.text;
        if (block.type === 'tool_use')
          outcome.calls.push({ name: block.name, arguments: JSON.stringify(block.input) });
      }
      outcome.isWhole = stop_reason !== null;
    },
  },
  {
    name: 'Responses',
    stream: async (fetch, model, outcome) => {
      const stream = await openai(fetch).responses.create({ ...responsesBody(model), stream: true });
      for await (const event of stream) {
        if (event.type === 'response.output_text.delta') outcome.text += event.delta;
        if (event.type === 'response.output_item.done' && event.item.type === 'function_call')
          outcome.calls.push({ name: event.item.name, arguments: event.item.arguments });
        if (event.type === 'response.completed') outcome.isWhole = true;
        if (event.type === 'response.failed' || event.type === 'error') outcome.hasFailed = true;
      }
    },
    whole: async (fetch, model, outcome) => {
      const { output, output_text, status } = await openai(fetch).responses.create(responsesBody(model));
      outcome.text = output_text;
      for (const item of output)
        if (item.type === 'function_call') outcome.calls.push({ name: item.name, arguments: item.arguments });
      outcome.isWhole = status === 'completed';
    },
  },
];

/** Sends a request with a client's SDK; returns what the SDK read, and the record. */
async function ask(client: Client, how: 'stream' | 'whole', model: string): Promise<Outcome> {
  const outcome: Outcome = { text: '', calls: [], isWhole: false, hasFailed: false };
  let answered: Response | undefined;
  const recording: typeof fetch = async (...args) => {
    answered = await fetch(...args);
    return answered;
  };
  try {
    await client[how](recording, model, outcome);
  } catch (error) {
    if (!(error instanceof OpenAI.APIError || error instanceof Anthropic.APIError)) throw error;
    outcome.hasFailed = true;
    outcome.status = error.status;
  }
  if (answered) outcome.record = await gateway.record(answered);
  return outcome;
}

const all = CLIENTS.flatMap((client) => UPSTREAMS.map((upstream) => ({ client, upstream })));
/** Each client and each upstream once. */
const few = CLIENTS.flatMap((client, i) => {
  const upstream = UPSTREAMS[(i + 1) % UPSTREAMS.length];
  return upstream === undefined ? [] : [{ client, upstream }];
});

describe.concurrent.each(sampleOf(few, all))('$client.name at $upstream', ({ client, upstream }) => {
  test.each(['text', 'one-at-a-time', 'thought'])('%s: text and counts are exact', async (model) => {
    for (const how of ['stream', 'whole'] as const) {
      const outcome = await ask(client, how, `${upstream}/${model}`);
      expect(outcome, how).toMatchObject({ text: TEXT, calls: [], isWhole: true, hasFailed: false });
      expect(outcome.record, how).toMatchObject({
        ...{ status: 'finished', estimated: false },
        ...{ prompt_tokens: 11, completion_tokens: 23, total_tokens: 34 },
      });
    }
  });

  // Without counts, the mock's Claude and Gemini report zeros, and its OpenAI an estimate.
  test.skipIf(upstream === 'openai')('a usage of zeros with text is estimated', async () => {
    for (const how of ['stream', 'whole'] as const) {
      const { record } = await ask(client, how, `${upstream}/uncounted`);
      expect(record, how).toMatchObject({ status: 'finished', estimated: true });
      expect(record?.completion_tokens, how).toBeGreaterThan(5);
    }
  });

  test.each([
    ['call', ''],
    ['text-and-call', TEXT],
  ])('%s: the call is complete', async (model, text) => {
    for (const how of ['stream', 'whole'] as const) {
      const { calls, ...outcome } = await ask(client, how, `${upstream}/${model}`);
      expect(outcome, how).toMatchObject({ text, isWhole: true, hasFailed: false });
      expect(calls.map((call) => ({ ...call, arguments: decodeObject(call.arguments) }))).toEqual([
        { ...CALL, arguments: decodeObject(CALL.arguments) },
      ]);
    }
  });

  test.each([
    ['status-400', 400],
    ['status-401', 502],
    ['status-429', 429],
    ['status-500', 502],
    ['status-503', client.name === 'Messages' ? 529 : 503],
    ['chaos-rateLimitRate', 429],
    ['chaos-dropRate', 502],
    ['chaos-malformedRate', 502],
    ['chaos-disconnectRate', 502],
  ])('%s before the response: the SDK throws a %i', async (model, status) => {
    for (const how of ['stream', 'whole'] as const) {
      const outcome = await ask(client, how, `${upstream}/${model}`);
      expect(outcome, how).toMatchObject({ text: '', calls: [], isWhole: false, hasFailed: true, status });
      expect(outcome.record?.status, how).toBe('failed');
    }
  });

  // Gemini's calls come in one piece, which cannot be truncated.
  test.each(['cut', 'disconnect', ...(upstream === 'gemini' ? [] : ['cut-call'])])(
    '%s within the stream: a failure, and never a complete response',
    async (model) => {
      const outcome = await ask(client, 'stream', `${upstream}/${model}`);
      expect(outcome).toMatchObject({ isWhole: false, hasFailed: true });
      expect(TEXT.startsWith(outcome.text)).toBe(true);
      expect(outcome.record?.status).toBe('failed');
    },
  );
});
