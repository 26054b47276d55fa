/** The documented specifics of each provider, one by one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ask,
  asking,
  choicesOf,
  deltasOf,
  INCLUDE_USAGE,
  paths,
  QUESTION,
  stream,
  textIn,
  usageOf,
  WEATHER,
} from './ask.ts';
import { decodeObject, type JsonObject, objectsOf } from './json.ts';
import { createSimulator, type Simulator } from './server.ts';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await createSimulator();
});
afterAll(() => simulator.close());

async function refused(path: string, body: JsonObject): Promise<{ status: number; text: string }> {
  const response = await ask(simulator, { path, body });
  return { status: response.status, text: await response.text() };
}

describe('DeepSeek', () => {
  test('writes JSON with spaces, the role on every chunk, and keeps the connection open with comments', async () => {
    const received = await stream(simulator, paths.deepseek, asking('deepseek-chat'));
    expect(received.comments).toContain(': keep-alive');
    expect(received.text).toContain('data: {"choices": [{"delta": {"content": " weir", "role": "assistant"}');
    expect(
      deltasOf(received)
        .slice(0, -1)
        .every((delta) => delta.role === 'assistant'),
    ).toBe(true);
    expect(usageOf(received)).toMatchObject({ prompt_cache_hit_tokens: 0, prompt_cache_miss_tokens: 5 });
  });

  test('streams reasoning beside null content, and content beside null reasoning', async () => {
    const received = await stream(simulator, paths.deepseek, asking('deepseek-reasoner'));
    expect(deltasOf(received)[1]).toEqual({
      content: null,
      reasoning_content: 'Seventeen',
      role: 'assistant',
    });
    expect(usageOf(received)).toMatchObject({ completion_tokens_details: { reasoning_tokens: 9 } });
  });

  test('refuses what its reference does not allow', async () => {
    const thought = {
      model: 'deepseek-chat',
      messages: [{ role: 'assistant', content: 'x', reasoning_content: 'y' }],
    };
    const prefix = { model: 'deepseek-chat', messages: [{ role: 'assistant', content: 'x', prefix: true }] };
    expect(await refused(paths.deepseek, thought)).toMatchObject({ status: 400 });
    expect(await refused(paths.deepseek, prefix)).toMatchObject({ status: 400 });
    expect(await refused(paths.beta, prefix)).toMatchObject({ status: 200 });
    expect(
      await refused(paths.deepseek, asking('deepseek-chat', { max_completion_tokens: 3 })),
    ).toMatchObject({
      status: 400,
    });
    expect(await refused('/deepseek/completions', { model: 'deepseek-chat', prompt: 'x' })).toMatchObject({
      status: 404,
    });
  });

  test('fills in the middle as text_completion on the beta base', async () => {
    const received = await stream(simulator, paths.deepseekFim, {
      model: 'deepseek-chat',
      prompt: 'def fib(n):',
      suffix: 'end',
    });
    expect(received.chunks[0]).toMatchObject({
      object: 'text_completion',
      choices: [{ text: '    if', finish_reason: null }],
    });
    expect(usageOf(received)).toMatchObject({ prompt_tokens: 3, completion_tokens: 11 });
  });
});

describe('Mistral', () => {
  test('pads with p, and reports usage on the finish chunk or, when requested, on one of its own', async () => {
    const plain = await stream(simulator, paths.mistral, asking('mistral-small-latest'));
    expect(plain.chunks.slice(1).every((chunk) => typeof chunk.p === 'string')).toBe(true);
    expect(plain.chunks.at(-1)).toMatchObject({
      choices: [{ finish_reason: 'stop' }],
      usage: { total_tokens: 17 },
    });
    const asked = await stream(simulator, paths.mistral, {
      ...asking('mistral-small-latest'),
      ...INCLUDE_USAGE,
    });
    expect(asked.chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 17 } });
  });

  test('sends a whole tool call in one chunk, without an index and with an id of nine characters', async () => {
    const received = await stream(
      simulator,
      paths.mistral,
      asking('mistral-small-latest', { tools: [WEATHER] }),
    );
    const [call, ...others] = deltasOf(received).flatMap((delta) => objectsOf(delta.tool_calls));
    expect(others).toEqual([]);
    expect(call).toEqual({
      id: expect.stringMatching(/^\w{9}$/),
      function: { name: 'weather', arguments: '{"city":"Zürich"}' },
    });
  });

  test('sends reasoning as typed parts and text as strings', async () => {
    const received = await stream(simulator, paths.mistral, asking('magistral-medium-latest'));
    const part = { type: 'thinking', thinking: [{ type: 'text', text: 'Two' }] };
    expect(deltasOf(received)[1]?.content).toEqual([part]);
    expect(textIn(received)).toMatch(/^Twenty minutes/);
  });

  test.each([{ tool_choice: 'required' }, { seed: 7 }, { max_completion_tokens: 5 }, { logprobs: true }])(
    'refuses %o in a body with 422 and detail',
    async (more) => {
      const { status, text } = await refused(paths.mistral, asking('mistral-small-latest', more));
      expect([status, objectsOf(decodeObject(text)?.detail)[0]?.loc]).toEqual([
        422,
        ['body', Object.keys(more)[0]],
      ]);
    },
  );

  test('refuses stream_options for FIM and agents, but reports usage there, too', async () => {
    const fim = { model: 'codestral-latest', prompt: 'def mean(values):', suffix: '' };
    const agent = { agent_id: 'ag_sim', messages: QUESTION };
    expect(await refused(paths.codestral, { ...fim, ...INCLUDE_USAGE })).toMatchObject({ status: 422 });
    expect(await refused(paths.agents, { ...agent, ...INCLUDE_USAGE })).toMatchObject({ status: 422 });
    expect(usageOf(await stream(simulator, paths.codestral, fim))).toMatchObject({ total_tokens: 2 + 7 });
    expect(usageOf(await stream(simulator, paths.agents, agent))).toMatchObject({ total_tokens: 5 + 7 });
  });
});

describe('the others', () => {
  test('OpenToken reports usage without being asked, in a chunk without choices', async () => {
    const received = await stream(simulator, paths.opentoken, asking('google/gemini-3-pro'));
    expect(deltasOf(received)[0]).toEqual({ role: 'assistant' });
    expect(received.chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { completion_tokens_details: { reasoning_tokens: 24 } },
    });
  });

  test('Xerotier reports usage on the finish chunk, only when requested, and sends heartbeats and vendor events inline', async () => {
    const quiet = await stream(simulator, paths.xerotier, asking('llama-3.1-8b'));
    expect(quiet.chunks.every((chunk) => chunk.usage === null && chunk.service_tier === null)).toBe(true);
    const received = await stream(simulator, paths.xerotier, {
      ...asking('llama-3.1-8b-deep-think'),
      ...INCLUDE_USAGE,
    });
    expect(received.comments).toEqual([': heartbeat']);
    const vendor = received.chunks.filter((chunk) => chunk.choices === undefined).map((chunk) => chunk.type);
    expect(vendor.filter((type) => type === 'x_deep_think.subtask_completed')).toHaveLength(2);
    expect(received.chunks.at(-1)).toMatchObject({
      choices: [{ finish_reason: 'stop' }],
      usage: { total_tokens: 18 },
    });
  });

  test('Xerotier streams a refusal word by word, with its log probabilities', async () => {
    const received = await stream(
      simulator,
      paths.xerotier,
      asking('llama-3.1-8b-refusal', { logprobs: true, top_logprobs: 1 }),
    );
    expect(deltasOf(received)[1]).toEqual({ refusal: "I'm" });
    const entry = { token: "I'm", logprob: -0.25, bytes: [73, 39, 109] };
    expect(choicesOf(received)[1]?.logprobs).toEqual({
      content: null,
      refusal: [{ ...entry, top_logprobs: [entry] }],
    });
  });

  test('OpenAI names dated models, obfuscates, and sends n choices in turn', async () => {
    const received = await stream(simulator, paths.openai, {
      ...asking('gpt-4o-mini', { n: 2 }),
      ...INCLUDE_USAGE,
    });
    expect(received.chunks[0]).toMatchObject({
      model: 'gpt-4o-mini-2024-07-18',
      service_tier: 'default',
      usage: null,
    });
    expect(
      choicesOf(received)
        .slice(0, 4)
        .map((choice) => choice.index),
    ).toEqual([0, 1, 0, 1]);
    expect(received.chunks.every((chunk) => typeof chunk.obfuscation === 'string')).toBe(true);
    expect(usageOf(received)).toMatchObject({ completion_tokens: 26 });
  });

  test('OpenAI completes text in the legacy form', async () => {
    const body = { model: 'gpt-3.5-turbo-instruct', prompt: 'Below', ...INCLUDE_USAGE };
    const received = await stream(simulator, paths.legacy, body);
    expect(choicesOf(received)[0]).toEqual({
      text: '\n\nBelow',
      index: 0,
      logprobs: null,
      finish_reason: null,
    });
    expect(usageOf(received)).toMatchObject({ prompt_tokens: 1, completion_tokens: 7 });
  });

  test('the compatible provider sends usage in x_groq and reasoning in `reasoning`', async () => {
    const received = await stream(simulator, paths.compatible, asking('openai/gpt-oss-20b'));
    expect(deltasOf(received)[1]).toEqual({ reasoning: 'They', channel: 'analysis' });
    expect(received.chunks.at(-1)).toMatchObject({ x_groq: { usage: { total_tokens: 19 } } });
    expect(received.chunks.some((chunk) => 'usage' in chunk)).toBe(false);
  });
});
