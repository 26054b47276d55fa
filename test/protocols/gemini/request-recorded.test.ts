/** Tests that a chat request with the same meaning is translated into each recorded Gemini request (A2). */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { isObject, type JsonObject } from '../../../src/shared/json.ts';
import { send } from '../../request-translation/send.ts';

const FOLDER = fileURLToPath(new URL('../../../../shared/streams/', import.meta.url).href);
const note = existsSync(FOLDER) ? '' : ' (skipped: ../shared/streams is not here)';

const system = (content: string) => ({ role: 'system', content });
const user = (content: string) => ({ role: 'user', content });
const fn = (name: string, description: string, properties: JsonObject, required?: readonly string[]) => ({
  type: 'function',
  function: {
    name,
    description,
    parameters: { type: 'object', properties, ...(required === undefined ? {} : { required }) },
  },
});
const called = (id: string, name: string, args: JsonObject) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
});
const result = (tool_call_id: string, value: JsonObject) => ({
  role: 'tool',
  tool_call_id,
  content: JSON.stringify(value),
});
const number = (description: string) => ({ type: 'integer', description });
const text = (description: string) => ({ type: 'string', description });

/** The chat request for each recording, by its name. */
const CHATS: Readonly<Record<string, JsonObject>> = {
  'call-then-empty-stop': {
    model: 'gemini-3-pro-preview',
    messages: [user('What is the capital of the user country? Call the tool')],
    tools: [
      {
        type: 'function',
        function: {
          name: 'get_country',
          description: '',
          parameters: { type: 'object', properties: {}, additionalProperties: false },
        },
      },
    ],
  },
  'code-execution': {
    model: 'gemini-3-flash-preview',
    messages: [
      system('Be concise and always use Python to do calculations no matter how small.'),
      user('what is 65465-6544 * 65464-6+1.02255'),
    ],
    tools: [{ codeExecution: {} }],
  },
  'parallel-calls': {
    model: 'gemini-2.5-pro',
    max_tokens: 4000,
    tool_choice: 'auto',
    messages: [
      system('You are a helpful assistant. Always use both add and multiply at the same time.'),
      user('Add and multiply the number 2 and 3'),
    ],
    tools: ['Add', 'Multiply'].map((verb) =>
      fn(
        verb.toLowerCase(),
        `${verb} two numbers`,
        { a: number('first number'), b: number('second number') },
        ['a', 'b'],
      ),
    ),
  },
  'search-grounding': {
    model: 'gemini-2.5-pro',
    messages: [system('You are a helpful chatbot.'), user('What is the weather in San Francisco today?')],
    web_search_options: {},
  },
  'thoughts-text': {
    model: 'gemini-2.5-pro',
    messages: [system('You are a helpful assistant.'), user('How do I cross the street?')],
    tools: [fn('dummy', '', {})],
  },
  'two-finishes': {
    model: 'gemini-2.5-flash',
    max_completion_tokens: 2000,
    temperature: 0,
    messages: [
      user(
        'You must call the code execution tool twice as two separate executions. Execution 1: run only print(6 * 7). Then, after seeing that number, Execution 2: run only print(6 * 7 + 100). Never combine them. Finally reply with exactly: résultats ✅ <first> et <second>.',
      ),
    ],
    tools: [{ codeExecution: {} }],
  },
  'usage-shrinks': {
    model: 'gemini-2.0-flash',
    messages: [
      system('You are a helpful chatbot.'),
      user('What is the temperature of the capital of France?'),
      called('pyd_ai_0e1a07b3c2b64d2ab3ad2efbe18e1b97', 'get_capital', { country: 'France' }),
      result('pyd_ai_0e1a07b3c2b64d2ab3ad2efbe18e1b97', { return_value: 'Paris' }),
      called('pyd_ai_98b25d994c5648df82f683188629229d', 'get_temperature', { city: 'Paris' }),
      result('pyd_ai_98b25d994c5648df82f683188629229d', { return_value: '30°C' }),
    ],
    tools: [
      fn('get_capital', 'Get the capital of a country.', { country: text('The country name.') }, ['country']),
      fn('get_temperature', 'Get the temperature in a city.', { city: text('The city name.') }, ['city']),
    ],
  },
  'vertex-partial-args': {
    model: 'gemini-3-pro-preview',
    messages: [
      user(
        'get the current weather in NewYorkCity in celsius, the country should be USA, the purpose is to know what to wear today.',
      ),
    ],
    toolConfig: { functionCallingConfig: { streamFunctionCallArguments: true } },
    tools: [
      {
        type: 'function',
        function: {
          name: 'getCurrentWeather',
          description: 'Get the current weather in a city',
          parameters: {
            type: 'object',
            properties: {
              country: {
                anyOf: [
                  { type: 'string', description: 'The country to get the weather for' },
                  { type: 'null' },
                ],
                description: 'The country to get the weather for',
              },
              location: { type: 'string', description: 'The location to get the weather for' },
              purpose: { type: 'string', description: 'Discribes the purpose of asking the weather' },
              unit: { type: 'string', enum: ['C', 'F'] },
            },
            required: ['location', 'unit', 'country'],
          },
        },
      },
    ],
  },
};

/** A body without nulls, defaults and the role of the instruction, and with one name for both schema fields. */
function meaning(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => meaning(item));
  if (!isObject(value)) return key === 'type' && typeof value === 'string' ? value.toLowerCase() : value;
  const entries = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const isIgnored =
      member === null ||
      (name === 'thought' && member === false) ||
      (name === 'mode' && member === 'AUTO') ||
      (name === 'role' && key === 'systemInstruction') ||
      // Weir sets it for every model that thinks; the deployment's policy decides whether thoughts are shown.
      name === 'thinkingConfig' ||
      name === 'responseModalities';
    const own = /^parameters(_json_schema|JsonSchema)?$/.test(name) ? 'schema' : name;
    const read = meaning(member, own);
    const isEmpty = isObject(read) && Object.keys(read).length === 0;
    const isNothing = isEmpty && ['generationConfig', 'toolConfig', 'functionCallingConfig'].includes(name);
    return isIgnored || isNothing ? [] : [[own, read]];
  });
  return Object.fromEntries(entries);
}

test.skipIf(note !== '').each(Object.entries(CHATS))(
  `A2 gemini--%s.request.json: a chat request with the same meaning is translated into it${note}`,
  (name, chat) => {
    const recorded: unknown = JSON.parse(readFileSync(`${FOLDER}gemini--${name}.request.json`, 'utf8'));
    expect(meaning(send('gemini', chat))).toEqual(meaning(recorded));
  },
);
