/** Tests the documented specifics of each provider. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import { createSimulator, type Simulator } from './server.ts';
import {
  chatBody,
  choicesOf,
  deltasOf,
  INCLUDE_USAGE,
  paths,
  QUESTION,
  sendRequest,
  stream,
  textIn,
  usageOf,
  WEATHER,
} from './test-requests.ts';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await createSimulator();
});
afterAll(() => simulator.close());

describe('DeepSeek', () => {
  test('writes JSON with spaces, the role on every chunk, and keeps the connection open with comments', async () => {
    const received = await stream(simulator, paths.deepseek, chatBody('deepseek-chat'));
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
    const received = await stream(simulator, paths.deepseek, chatBody('deepseek-reasoner'));
    expect(deltasOf(received)[1]).toEqual({
      content: null,
      reasoning_content: 'Seventeen',
      role: 'assistant',
    });
    expect(usageOf(received)).toMatchObject({ completion_tokens_details: { reasoning_tokens: 9 } });
  });

  test('thinks by default with the current models, and not if thinking is disabled', async () => {
    const received = await stream(simulator, paths.deepseek, chatBody('deepseek-flash'));
    expect(deltasOf(received)[0]).toEqual({ content: null, reasoning_content: '', role: 'assistant' });
    expect(usageOf(received)).toMatchObject({
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 8 },
    });
    for (const more of [{ thinking: { type: 'disabled' } }, { reasoning_effort: 'none' }]) {
      const quiet = await stream(simulator, paths.deepseek, chatBody('deepseek-flash', more));
      expect(quiet.text).not.toContain('reasoning');
      expect(usageOf(quiet)).toMatchObject({ completion_tokens: 11 });
    }
  });

  test('supports FIM as text_completion on the beta base URL', async () => {
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
  test('pads with p, and reports unrequested usage on the finish chunk', async () => {
    const plain = await stream(simulator, paths.mistral, chatBody('mistral-small-latest'));
    expect(plain.chunks.slice(1).every((chunk) => typeof chunk.p === 'string')).toBe(true);
    expect(plain.chunks.at(-1)).toMatchObject({
      choices: [{ finish_reason: 'stop' }],
      usage: { total_tokens: 17 },
    });
  });

  test('mistral-small-latest reasons when the effort is high', async () => {
    const effort = { reasoning_effort: 'high' };
    const received = await stream(simulator, paths.mistral, chatBody('mistral-small-latest', effort));
    expect(deltasOf(received)[1]?.content).toEqual([
      { type: 'thinking', thinking: [{ type: 'text', text: 'One' }] },
    ]);
    expect(usageOf(received)).toMatchObject({ completion_tokens: 19 });
  });

  test('sends a complete tool call in one chunk, without an index and with an id of nine characters', async () => {
    const received = await stream(
      simulator,
      paths.mistral,
      chatBody('mistral-small-latest', { tools: [WEATHER] }),
    );
    const [call, ...others] = deltasOf(received).flatMap((delta) => objectsOf(delta.tool_calls));
    expect(others).toEqual([]);
    expect(call).toEqual({
      id: expect.stringMatching(/^\w{9}$/),
      function: { name: 'weather', arguments: '{"city":"Zürich"}' },
    });
  });

  test('sends reasoning as typed parts and text as strings', async () => {
    const received = await stream(simulator, paths.mistral, chatBody('magistral-medium-latest'));
    const part = { type: 'thinking', thinking: [{ type: 'text', text: 'Two' }] };
    expect(deltasOf(received)[1]?.content).toEqual([part]);
    expect(textIn(received)).toMatch(/^Twenty minutes/);
  });

  test('reports usage for FIM and agents too', async () => {
    const fim = { model: 'codestral-latest', prompt: 'def mean(values):', suffix: '' };
    const agent = { agent_id: 'ag_sim', messages: QUESTION };
    expect(usageOf(await stream(simulator, paths.codestral, fim))).toMatchObject({ total_tokens: 2 + 7 });
    expect(usageOf(await stream(simulator, paths.agents, agent))).toMatchObject({ total_tokens: 5 + 7 });
  });
});

describe('the others', () => {
  test('OpenToken reports unrequested usage in a chunk without choices', async () => {
    const received = await stream(simulator, paths.opentoken, chatBody('google/gemini-3-pro'));
    expect(deltasOf(received)[0]).toEqual({ role: 'assistant' });
    expect(received.chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { completion_tokens_details: { reasoning_tokens: 24 } },
    });
  });

  test('Xerotier reports usage on the finish chunk, only when requested, and sends heartbeats and vendor events inline', async () => {
    const quiet = await stream(simulator, paths.xerotier, chatBody('llama-3.1-8b'));
    expect(quiet.chunks.every((chunk) => chunk.usage === null && chunk.service_tier === null)).toBe(true);
    const received = await stream(simulator, paths.xerotier, {
      ...chatBody('llama-3.1-8b-deep-think'),
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
      chatBody('llama-3.1-8b-refusal', { logprobs: true, top_logprobs: 1 }),
    );
    expect(deltasOf(received)[1]).toEqual({ refusal: "I'm" });
    const entry = { token: "I'm", logprob: -0.25, bytes: [73, 39, 109] };
    expect(choicesOf(received)[1]?.logprobs).toEqual({
      content: null,
      refusal: [{ ...entry, top_logprobs: [entry] }],
    });
  });

  test('OpenAI reports dated model names, pads with obfuscation, and interleaves n choices', async () => {
    const received = await stream(simulator, paths.openai, {
      ...chatBody('gpt-4o-mini', { n: 2 }),
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

  test('OpenAI has legacy completions', async () => {
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
    const received = await stream(simulator, paths.compatible, chatBody('openai/gpt-oss-20b'));
    expect(deltasOf(received)[1]).toEqual({ reasoning: 'They', channel: 'analysis' });
    expect(received.chunks.at(-1)).toMatchObject({ x_groq: { usage: { total_tokens: 19 } } });
    expect(received.chunks.some((chunk) => 'usage' in chunk)).toBe(false);
  });

  test('Cerebras omits empty keys, and sends reasoning in `reasoning`', async () => {
    const received = await stream(simulator, paths.cerebras, {
      ...chatBody('gpt-oss-120b'),
      ...INCLUDE_USAGE,
    });
    expect(choicesOf(received).slice(0, 2)).toEqual([
      { delta: { role: 'assistant' }, index: 0 },
      { delta: { reasoning: 'A' }, index: 0 },
    ]);
    expect(received.chunks.at(-1)).toMatchObject({ time_info: {}, usage: { total_tokens: 20 } });
  });

  test('xAI counts reasoning only in the total', async () => {
    const received = await stream(simulator, paths.xai, { ...chatBody('grok-4.3'), ...INCLUDE_USAGE });
    expect(deltasOf(received)[1]).toEqual({ reasoning_content: 'Water' });
    expect(usageOf(received)).toMatchObject({ prompt_tokens: 5, completion_tokens: 7, total_tokens: 19 });
  });

  test('Gemini signs the first call of a step, sends it in one piece without index, and finishes with stop', async () => {
    const body = chatBody('gemini-3-flash', { tools: [WEATHER, WEATHER] });
    const calls = deltasOf(await stream(simulator, paths['gemini-compatible'], body)).flatMap((delta) =>
      objectsOf(delta.tool_calls),
    );
    expect(calls).toMatchObject([
      { extra_content: { google: { thought_signature: expect.any(String) } }, type: 'function' },
      { type: 'function', function: { arguments: '{"city":"Zürich"}' } },
    ]);
    expect(calls.some((call) => 'index' in call)).toBe(false);
    expect(calls[1]).not.toHaveProperty('extra_content');
  });

  test.each([
    ['google/gemini-3-flash-preview', { type: 'reasoning.encrypted', data: expect.any(String), index: 0 }],
    ['anthropic/claude-haiku-4.5', { type: 'reasoning.text', signature: expect.any(String), index: 0 }],
  ])(
    'OpenRouter: %s streams reasoning in pieces, then its signature; the non-streaming response is the same',
    async (model, signed) => {
      const body = chatBody(model, { tools: [WEATHER], reasoning_effort: 'high' });
      const received = await stream(simulator, paths.openrouter, body);
      const details = deltasOf(received).flatMap((delta) => objectsOf(delta.reasoning_details));
      expect(details[0]).toMatchObject({ type: 'reasoning.text', index: 0 });
      expect(details.at(-1)).toMatchObject(signed);
      const whole = await (await sendRequest(simulator, { path: paths.openrouter, body })).text();
      const message = objectOf(objectsOf(decodeObject(whole)?.choices)[0]?.message);
      const merged = objectsOf(message.reasoning_details);
      expect(merged.at(-1)).toMatchObject(details.at(-1) ?? {});
      expect(textOf(merged[0]?.text)).toBe(details.map((detail) => textOf(detail.text)).join(''));
      expect(message.reasoning).toBe(merged[0]?.text);
    },
  );
});

const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, at: { type: 'object', properties: { days: { type: 'integer' } } } },
  additionalProperties: false,
};
const EXAMPLE = { city: 'Zürich', at: { days: 7 } };
const NATIVE = [{ role: 'user', parts: [{ text: 'x' }] }];

test.each<[form: string, path: string, body: JsonObject, answer: JsonObject]>([
  [
    'a chat schema',
    paths.openai,
    chatBody('gpt-4o-mini', { response_format: { type: 'json_schema', json_schema: { schema: SCHEMA } } }),
    EXAMPLE,
  ],
  [
    'a chat object',
    paths.mistral,
    chatBody('mistral-small-latest', { response_format: { type: 'json_object' } }),
    { answer: expect.stringContaining('weir') },
  ],
  [
    'a Responses schema',
    '/openai/v1/responses',
    { model: 'gpt-4o-mini', input: 'x', text: { format: { type: 'json_schema', schema: SCHEMA } } },
    EXAMPLE,
  ],
  [
    "Gemini's schema",
    '/gemini/v1beta/models/gemini-3-flash-preview:generateContent',
    {
      contents: NATIVE,
      generationConfig: { responseMimeType: 'application/json', responseJsonSchema: SCHEMA },
    },
    EXAMPLE,
  ],
])('%s makes the output JSON that matches', async (_, path, body, answer) => {
  const headers = { 'x-goog-api-key': 'sim-test' };
  const text = await (await sendRequest(simulator, { path, body, headers })).text();
  const { choices, output, candidates } = decodeObject(text) ?? {};
  const said = [
    ...objectsOf(choices).map(({ message }) => objectOf(message).content),
    ...objectsOf(output).flatMap(({ content }) => objectsOf(content).map((part) => part.text)),
    ...objectsOf(candidates).map(({ content }) =>
      objectsOf(objectOf(content).parts)
        .map((part) => textOf(part.text))
        .join(''),
    ),
  ];
  expect(
    said.map((one) => decodeObject(textOf(one))),
    text,
  ).toEqual([answer]);
});

test.each([
  ['openai', paths.openai, 'gpt-4o-mini', 13],
  ['deepseek', paths.deepseek, 'deepseek-chat', 16],
])('%s: a non-streaming response has a log probability for each token', async (_, path, model, tokens) => {
  const body = chatBody(model, { logprobs: true, top_logprobs: 2 });
  const text = await (await sendRequest(simulator, { path, body })).text();
  const [choice] = objectsOf(decodeObject(text)?.choices);
  const entries = objectsOf(objectOf(choice?.logprobs).content);
  expect(entries).toHaveLength(tokens);
  expect(entries[0]?.top_logprobs).toHaveLength(2);
});

/** The fields of the recorded objects: openai--responses-text and deepseek--responses-api-text, 2026-06 and 2026-08. */
const FIELDS = [
  ...['id', 'object', 'created_at', 'status', 'background', 'completed_at', 'error', 'frequency_penalty'],
  ...['incomplete_details', 'instructions', 'max_output_tokens', 'max_tool_calls', 'model', 'moderation'],
  ...['output', 'parallel_tool_calls', 'presence_penalty', 'previous_response_id', 'prompt_cache_key'],
  ...['prompt_cache_retention', 'reasoning', 'safety_identifier', 'service_tier', 'store', 'temperature'],
  ...['text', 'tool_choice', 'tools', 'top_logprobs', 'top_p', 'truncation', 'usage', 'user', 'metadata'],
];

test.each([
  ['openai', '/openai/v1/responses', 'gpt-4o-mini', FIELDS],
  ['deepseek', '/deepseek/responses', 'deepseek-flash', [...FIELDS, 'content_filters']],
])('%s: a Response has all fields of a recorded one', async (_, path, model, fields) => {
  const text = await (await sendRequest(simulator, { path, body: { model, input: 'x' } })).text();
  expect(Object.keys(decodeObject(text) ?? {}).sort()).toEqual([...fields].sort());
});

test('DeepSeek sends reasoning in a Responses stream as reasoning_text parts, and stores nothing', async () => {
  const body = { model: 'deepseek-flash', input: 'x', stream: true };
  const text = await (await sendRequest(simulator, { path: '/deepseek/responses', body })).text();
  expect(text).toContain('event: response.reasoning_text.delta');
  expect(text).toContain('"store":false');
  expect(text).not.toContain('encrypted_content');
});
