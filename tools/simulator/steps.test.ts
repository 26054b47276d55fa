/** Tests agent loops with each provider: messages are sent back unchanged, and the next step is rejected if they were changed. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import { basePaths } from './scenes.ts';
import { createSimulator, type Simulator } from './server.ts';
import { paths, sendRequest, WEATHER } from './test-requests.ts';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await createSimulator();
});
afterAll(() => simulator.close());

type At = keyof typeof paths;
interface Loop {
  readonly status: number;
  readonly messages: readonly JsonObject[];
  /** The ids of each step's calls. */
  readonly ids: readonly string[][];
}

/** Sends requests until a response has no tool call or is an error. `keep` turns a message into the one that is sent back. */
async function loop(
  at: At,
  model: string,
  more: JsonObject = {},
  keep = (message: JsonObject) => message,
): Promise<Loop> {
  const messages: JsonObject[] = [{ role: 'user', content: 'Which lock is free? steps:5' }];
  const ids: string[][] = [];
  for (;;) {
    const body = { model, messages, tools: [WEATHER], ...more };
    const response = await sendRequest(simulator, { path: paths[at], body });
    const answer = decodeObject(await response.text());
    const message = objectOf(objectsOf(answer?.choices)[0]?.message);
    if (response.status === 200) messages.push(keep(message));
    const calls = objectsOf(message.tool_calls);
    if (calls.length === 0) return { status: response.status, messages, ids };
    ids.push(calls.map((call) => textOf(call.id)));
    for (const { id } of calls) messages.push({ role: 'tool', tool_call_id: id, content: 'free' });
  }
}

function without(...keys: readonly string[]) {
  return (message: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(message).filter(([key]) => !keys.includes(key)));
}

const MODELS: readonly (readonly [at: At, model: string, more: JsonObject])[] = [
  ['deepseek', 'deepseek-flash', {}],
  ['deepseek', 'deepseek-v4-pro', {}],
  ['deepseek', 'deepseek-chat', {}],
  ['mistral', 'mistral-small-latest', { reasoning_effort: 'high' }],
  ['mistral', 'codestral-latest', {}],
  ['openai', 'gpt-4o-mini', {}],
  ['opentoken', 'google/gemini-3-flash', {}],
  ['xerotier', 'llama-3.1-8b', {}],
  ['compatible', 'openai/gpt-oss-20b', {}],
  ['groq', 'openai/gpt-oss-120b', {}],
  ['cerebras', 'zai-glm-4.7', {}],
  ['openrouter', 'google/gemini-3-flash-preview', {}],
  ['openrouter', 'anthropic/claude-haiku-4.5', { reasoning_effort: 'high' }],
  ['openrouter', 'moonshotai/kimi-k2.5', {}],
  ['gemini-compatible', 'gemini-3-flash', {}],
  ['xai', 'grok-4.3', {}],
];

describe('steps:5', () => {
  test.each(MODELS)(
    '%s %s: two calls, then one per turn, each with its own id, then text',
    async (at, model, more) => {
      const { status, messages, ids } = await loop(at, model, more);
      expect([status, ids.map((step) => step.length)]).toEqual([200, [2, 1, 1, 1, 1]]);
      expect(new Set(ids.flat()).size).toBe(6);
      expect(messages).toHaveLength(1 + 5 + 6 + 1);
      expect(messages.at(-1)?.content).toBeTruthy();
    },
  );

  test('a reasoning model reasons in every step, and each thought names its step', async () => {
    const { messages } = await loop('deepseek', 'deepseek-flash');
    const thoughts = messages.map((message) => textOf(message.reasoning_content)).filter(Boolean);
    expect(thoughts).toHaveLength(6);
    expect(thoughts.slice(0, 5).every((thought, at) => thought.endsWith(`(step ${at + 1})`))).toBe(true);
  });

  test('parallel_tool_calls: false: one call in the first turn too', async () => {
    const { ids } = await loop('openai', 'gpt-4o-mini', { parallel_tool_calls: false });
    expect(ids.map((step) => step.length)).toEqual([1, 1, 1, 1, 1]);
  });

  test.each<[At, string, string[]]>([
    ['deepseek', 'deepseek-flash', ['reasoning_content']],
    ['openrouter', 'google/gemini-3-flash-preview', ['reasoning_details']],
    ['openrouter', 'anthropic/claude-haiku-4.5', ['reasoning_details']],
  ])('%s %s: rejects the second step without %s', async (at, model, keys) => {
    // Claude signs only requested thinking.
    const effort = model.includes('claude') ? { reasoning_effort: 'high' } : {};
    const { status, ids } = await loop(at, model, effort, without(...keys));
    expect([status, ids]).toEqual([400, [expect.any(Array)]]);
  });

  test('gemini gemini-3-flash: rejects calls without their signature', async () => {
    const keep = (message: JsonObject): JsonObject => ({
      ...message,
      tool_calls: objectsOf(message.tool_calls).map(without('extra_content')),
    });
    expect((await loop('gemini-compatible', 'gemini-3-flash', {}, keep)).status).toBe(400);
  });

  test('openrouter: rejects a signature whose text was changed', async () => {
    const keep = (message: JsonObject): JsonObject => ({
      ...message,
      reasoning_details: objectsOf(message.reasoning_details).map((detail) => ({ ...detail, text: 'x' })),
    });
    expect(
      (await loop('openrouter', 'anthropic/claude-haiku-4.5', { reasoning_effort: 'high' }, keep)).status,
    ).toBe(400);
  });
});

test('calls:[…] anywhere in a prompt: these calls, one per turn, and then the text', async () => {
  const calls = [
    { name: 'weather', arguments: { city: 'a]}"' } },
    { name: 'weather', arguments: { city: 'b' } },
    { name: 'not offered', arguments: {} },
  ];
  const prompt = { role: 'user', content: `Go. calls:${JSON.stringify(calls)} Then stop.` };
  const messages: JsonObject[] = [{ role: 'user', content: 'First of all' }, prompt];
  const called: JsonObject[] = [];
  for (;;) {
    const body = { model: 'gpt-4o-mini', messages, tools: [WEATHER] };
    const answer = decodeObject(await (await sendRequest(simulator, { path: paths.openai, body })).text());
    const message = objectOf(objectsOf(answer?.choices)[0]?.message);
    const made = objectsOf(message.tool_calls);
    if (made.length === 0) break;
    called.push(...made.map((call) => objectOf(call.function)));
    messages.push(message, ...made.map(({ id }) => ({ role: 'tool', tool_call_id: id ?? '', content: 'x' })));
  }
  expect(called).toEqual(
    calls.slice(0, 2).map(({ name, arguments: args }) => ({ name, arguments: JSON.stringify(args) })),
  );
});

test('a correction calls the tools with a file up to the one that writes it: none that deletes it or starts a further agent', async () => {
  const tool = (name: string, ...parameters: string[]) => ({
    type: 'function',
    function: {
      name,
      parameters: {
        type: 'object',
        properties: Object.fromEntries(parameters.map((one) => [one, { type: 'string' }])),
      },
    },
  });
  // Those of deepagents 1.14.1, in its order.
  const tools = [
    ...[tool('write_todos', 'todos'), tool('ls', 'path'), tool('read_file', 'file_path', 'offset')],
    ...[tool('write_file', 'file_path', 'content'), tool('edit_file', 'file_path', 'old_string')],
    ...[tool('delete', 'file_path'), tool('task', 'description', 'subagent_type')],
  ];
  const messages: JsonObject[] = [
    { role: 'user', content: 'Correct river.txt: the river is at 312 cm and rising.' },
  ];
  const called: Json[] = [];
  for (;;) {
    const body = { model: 'gpt-4o-mini', messages, tools };
    const answer = decodeObject(await (await sendRequest(simulator, { path: paths.openai, body })).text());
    const message = objectOf(objectsOf(answer?.choices)[0]?.message);
    const [call] = objectsOf(message.tool_calls);
    if (call === undefined) break;
    called.push(objectOf(call.function).name ?? '');
    messages.push(message, { role: 'tool', tool_call_id: call.id ?? '', content: 'done' });
  }
  expect(called).toEqual(['ls', 'read_file', 'write_file']);
});

test.each([
  ['with its id', {}, 200],
  ['without an id', { id: undefined }, 200],
  ['of another account', { id: undefined, encrypted_content: 'gAAAAother' }, 400],
])('Responses: reasoning that is sent back %s', async (_, changes, status) => {
  const path = `${basePaths.openai}/responses`;
  const model = 'o4-mini';
  const first = await sendRequest(simulator, { path, body: { model, input: 'Think', store: false } });
  const [reasoning] = objectsOf(decodeObject(await first.text())?.output);
  expect(reasoning?.type).toBe('reasoning');
  const kept = Object.entries({ ...reasoning, ...changes }).filter(([, value]) => value !== undefined);
  const input = [Object.fromEntries(kept), { role: 'user', content: 'Go on' }];
  expect((await sendRequest(simulator, { path, body: { model, input, store: false } })).status).toBe(status);
});

test('Responses: a custom tool in a namespace of an additional_tools item is called with its input, and its output ends the loop', async () => {
  const path = `${basePaths.openai}/responses`;
  const model = 'gpt-6.1-terra';
  const tools = [{ type: 'namespace', name: 'functions', tools: [{ type: 'custom', name: 'exec' }] }];
  const calls = [{ name: 'functions__exec', arguments: { input: 'text("a]")' } }];
  const input: JsonObject[] = [
    { type: 'additional_tools', role: 'developer', tools },
    { role: 'user', content: `calls:${JSON.stringify(calls)}` },
  ];
  const first = await sendRequest(simulator, { path, body: { model, input, store: false } });
  const output = objectsOf(decodeObject(await first.text())?.output);
  const call = output.at(-1);
  expect(call).toMatchObject({
    type: 'custom_tool_call',
    name: 'exec',
    namespace: 'functions',
    input: 'text("a]")',
  });
  input.push(...output, { type: 'custom_tool_call_output', call_id: call?.call_id ?? '', output: 'a' });
  const second = await sendRequest(simulator, { path, body: { model, input, store: false } });
  expect(objectsOf(decodeObject(await second.text())?.output).at(-1)?.type).toBe('message');
});
