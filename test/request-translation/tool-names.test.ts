/** Tests tool names that a provider refuses: short names replace them everywhere in the request (Q1). */
import { describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, readArray } from '../../src/shared/json.ts';
import { rewrite, send } from './send.ts';

const HEAD = `mcp__a-server-with-a-long-name__${'x'.repeat(60)}`;
const [LONG, TWIN] = [`${HEAD}_a`, `${HEAD}_b`];

const fn = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } });
const HI = { role: 'user', content: 'Hi' };
const ID = 'aaaaaaaaa';
const calling = (name: string) => ({
  role: 'assistant',
  content: 'c',
  tool_calls: [{ id: ID, type: 'function', function: { name, arguments: '{}' } }],
});

/** The tool names in the translated body. */
function names(provider: string, tools: readonly string[], more: JsonObject = {}): readonly unknown[] {
  const { tools: sent } = send(provider, { model: 'm', messages: [HI], tools: tools.map(fn), ...more });
  return readArray(sent)
    .flatMap((tool) => readArray(objectOf(tool).functionDeclarations ?? [tool]))
    .map((tool) => objectOf(tool).name ?? objectOf(objectOf(tool).function).name);
}

const OF_64 = /^[a-zA-Z0-9_-]{1,64}$/;
const LIMITED = ['openai', 'deepseek', 'mistral', 'codestral', 'groq', 'openrouter', 'moonshot', 'tolerant'];

describe('Q1 tool names that a provider refuses', () => {
  test.each([...LIMITED, 'gemini', 'like gemini'])(
    '%s: names of more than 64 characters get different short names',
    (provider) => {
      const [a, b, c] = names(provider, [LONG, TWIN, 'plain']);
      expect([a, b]).toEqual([expect.stringMatching(OF_64), expect.stringMatching(OF_64)]);
      expect(a).not.toBe(b);
      expect(c).toBe('plain');
      // The same in every conversation, with any other tools.
      expect(names(provider, ['other', TWIN, LONG])).toEqual(['other', b, a]);
    },
  );

  test('Anthropic accepts up to 128 characters', () => {
    const longest = 'y'.repeat(128);
    expect(names('anthropic', [LONG, longest])).toEqual([LONG, longest]);
    expect(names('anthropic', [`${longest}y`])).toEqual([expect.stringMatching(OF_64)]);
  });

  test.each(['vllm', 'sglang', 'llamacpp', 'ollama'])('%s: every name is accepted', (provider) => {
    expect(names(provider, [LONG, 'a.b', '7zip'])).toEqual([LONG, 'a.b', '7zip']);
  });

  test.each([
    ['openai', 'a.b c', false],
    ['openai', '7zip', true],
    ['gemini', 'a.b:c', true],
    ['gemini', '7zip', false],
    ['gemini', '-x', false],
    ['moonshot', '7zip', false],
    ['anthropic', 'naïve', false],
    ['mistral', 'naïve', false],
    ['deepseek', '日本', false],
  ])('%s, %s: sent unchanged: %s', (provider, name, isTaken) => {
    const [sent] = names(provider, [name]);
    expect(sent).toEqual(isTaken ? name : expect.stringMatching(/^[a-zA-Z][a-zA-Z0-9_-]{1,63}$/));
  });

  test('a short name never equals the name of another tool', () => {
    const [short = ''] = names('openai', [LONG]);
    const [a, b] = names('openai', [LONG, String(short)]);
    expect(b).toBe(short);
    expect(a).not.toBe(short);
    expect(a).toMatch(OF_64);
  });

  test('the replaced names are returned with the request; without any there is no map', () => {
    const [short = ''] = names('openai', [LONG]);
    const body = { model: 'm', messages: [HI], tools: [fn(LONG), fn('plain')] };
    expect(rewrite('openai', body)).toMatchObject({ kind: 'body', toolNames: new Map([[short, LONG]]) });
    expect(rewrite('openai', { ...body, tools: [fn('plain')] })).not.toHaveProperty('toolNames');
  });

  test.each<[place: string, provider: string, fields: JsonObject]>([
    ['a named choice', 'openai', { tool_choice: { type: 'function', function: { name: LONG } } }],
    [
      'a named choice',
      'anthropic',
      {
        tools: [fn(`${LONG}${LONG}`)],
        tool_choice: { type: 'function', function: { name: `${LONG}${LONG}` } },
      },
    ],
    ['a named choice', 'gemini', { tool_choice: { type: 'function', function: { name: LONG } } }],
    [
      'allowed tools',
      'openai',
      {
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: LONG } }] },
        },
      },
    ],
    [
      'allowed tools',
      'gemini',
      {
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: LONG } }] },
        },
      },
    ],
    ['a custom tool', 'openai', { tools: [{ type: 'custom', custom: { name: LONG } }] }],
    ['legacy functions', 'openai', { functions: [{ name: LONG }], function_call: { name: LONG } }],
    ['legacy functions', 'deepseek', { functions: [{ name: LONG }], function_call: { name: LONG } }],
    [
      'a call and its result',
      'openai',
      { messages: [HI, calling(LONG), { role: 'tool', name: LONG, tool_call_id: ID, content: '1' }] },
    ],
    [
      'a call and its result',
      'mistral',
      { messages: [HI, calling(LONG), { role: 'tool', name: LONG, tool_call_id: ID, content: '1' }] },
    ],
    [
      'a call and its result',
      'gemini',
      { messages: [HI, calling(LONG), { role: 'tool', tool_call_id: ID, content: '1' }] },
    ],
    [
      'a legacy call and its result',
      'openai',
      {
        messages: [
          HI,
          { role: 'assistant', content: null, function_call: { name: LONG, arguments: '{}' } },
          { role: 'function', name: LONG, content: '1' },
        ],
      },
    ],
  ])('%s at %s: has the short name', (_, provider, fields) => {
    const sent = JSON.stringify(send(provider, { model: 'gemini-3-flash', messages: [HI], ...fields }));
    expect(sent).not.toContain(LONG);
    expect(sent).toMatch(/mcp__a-server-with-a-long-name__x+_[a-zA-Z0-9]{9}/);
  });

  test('a user’s name, a text and a name inside another type of tool are no tool names', () => {
    const body = {
      model: 'm',
      messages: [{ role: 'user', content: LONG, name: LONG }],
      tools: [{ type: 'hosted', name: LONG }],
    };
    expect(send('tolerant', body)).toEqual(body);
  });
});
