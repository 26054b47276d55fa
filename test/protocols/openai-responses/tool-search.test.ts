/** Tests Codex's search for its deferred tools, which the client runs (I4): its call, its output, and the found tools. */
import { describe, expect, test } from 'vitest';
import { readResponsesRequest } from '../../../src/protocols/openai-responses/client-request.ts';
import { ResponsesJsonWriter } from '../../../src/protocols/openai-responses/json-writer.ts';
import { isObject, type JsonObject, readArray } from '../../../src/shared/json.ts';
import { checkResponses } from '../../../tools/conformance/contract/check-responses.ts';
import { DONE, event, json, ROLE, RoutedGateway, sse } from '../../gateway/upstreams.ts';
import { STRICT_NAMES, sentTo } from '../../request-translation/strict-providers.ts';
import { args, call, finish, write } from './chunks.ts';
import { sessionOf, WRITER_OPTIONS } from './run.ts';

const SEARCH = {
  type: 'tool_search',
  execution: 'client',
  description: 'Finds tools',
  parameters: { type: 'object', properties: { query: { type: 'string' }, limit: { type: 'number' } } },
};
const PATCH = { type: 'custom', name: 'patch', description: 'Patches' };
const FOUND = [
  {
    type: 'namespace',
    name: 'mcp__cal__',
    description: 'A calendar',
    tools: [
      { type: 'function', name: 'list_events', parameters: { type: 'object' } },
      { type: 'function', name: 'add_event', parameters: { type: 'object' } },
    ],
  },
  { type: 'function', name: 'weather', parameters: { type: 'object' } },
];
const HISTORY = [
  { role: 'user', content: 'What is on today?' },
  { type: 'tool_search_call', call_id: 'call_s', execution: 'client', arguments: { query: 'calendar' } },
  { type: 'tool_search_output', call_id: 'call_s', tools: FOUND },
];
const CALLED = [
  { type: 'function_call', call_id: 'call_l', namespace: 'mcp__cal__', name: 'list_events', arguments: '{}' },
  { type: 'function_call_output', call_id: 'call_l', output: 'nothing' },
];

function read(body: JsonObject) {
  const result = readResponsesRequest({ model: 'p/m', ...body });
  if (result.kind === 'error') throw new Error(result.error.message);
  const { fields, turns, dropped, session, translationError } = result.value;
  expect(translationError).toBeNull();
  const tools = readArray(fields.tools).filter(isObject);
  return {
    tools,
    names: tools.map((tool) => isObject(tool.function) && tool.function.name),
    turns,
    dropped,
    session,
    fields,
  };
}

describe('I4 a search for tools that the client runs', () => {
  test('is a function', () => {
    const { tools, dropped } = read({ input: 'Hi', tools: [SEARCH, PATCH] });
    const { description, parameters } = SEARCH;
    expect(tools[0]).toEqual({
      type: 'function',
      function: { name: 'tool_search', description, parameters },
    });
    expect(tools).toHaveLength(2);
    expect(dropped).toEqual([]);
  });

  test('without parameters: a query', () => {
    const { tools } = read({ input: 'Hi', tools: [{ type: 'tool_search', execution: 'client' }] });
    expect(tools).toMatchObject([{ function: { parameters: { required: ['query'] } } }]);
  });

  test('its call and its output are a call and a result, and the found tools can be called', () => {
    const { names, turns, dropped, session } = read({ input: [...HISTORY, ...CALLED], tools: [SEARCH] });
    expect(dropped).toEqual([]);
    expect(names).toEqual(['tool_search', 'mcp__cal__list_events', 'mcp__cal__add_event', 'weather']);
    expect(turns).toMatchObject([
      { role: 'user' },
      {
        role: 'assistant',
        blocks: [{ kind: 'tool_call', id: 'call_s', name: 'tool_search', input: '{"query":"calendar"}' }],
      },
      {
        blocks: [
          {
            kind: 'tool_result',
            id: 'call_s',
            content: [
              'Found the tool mcp__cal__list_events: it can be called now.',
              'Found the tool mcp__cal__add_event: it can be called now.',
              'Found the tool weather: it can be called now.',
            ].join('\n'),
          },
        ],
      },
      { role: 'assistant', blocks: [{ kind: 'tool_call', name: 'mcp__cal__list_events' }] },
      { blocks: [{ kind: 'tool_result', content: 'nothing' }] },
    ]);
    expect(session?.tools.get('mcp__cal__list_events')).toEqual({
      kind: 'function',
      namespace: 'mcp__cal__',
      name: 'list_events',
    });
  });

  test('an output without tools says that none was found', () => {
    const input = [
      ...HISTORY.slice(0, 2),
      { type: 'tool_search_output', call_id: 'call_s', execution: 'client', tools: [] },
    ];
    expect(JSON.stringify(read({ input }).turns)).toContain('No tool was found.');
  });

  test('a choice of it is a choice of the function', () => {
    const { fields } = read({ input: 'Hi', tools: [SEARCH], tool_choice: { type: 'tool_search' } });
    expect(fields.tool_choice).toEqual({ type: 'function', function: { name: 'tool_search' } });
  });

  test('a search that OpenAI runs is dropped and reported, as before', () => {
    const input = [
      { role: 'user', content: 'Hi' },
      { type: 'tool_search_call', call_id: null, execution: 'server', arguments: {} },
      { type: 'tool_search_output', call_id: null, execution: 'server', tools: FOUND },
    ];
    const { names, dropped } = read({ input, tools: [{ type: 'tool_search' }, PATCH] });
    expect(names).toEqual(['patch']);
    expect(dropped).toEqual(['input.tool_search_call', 'input.tool_search_output', 'tools.tool_search']);
  });

  test.each(STRICT_NAMES)('%s takes the request of each step', (name) => {
    for (const input of [HISTORY.slice(0, 1), HISTORY, [...HISTORY, ...CALLED]]) {
      const { body, dropped, refusal } = sentTo(name, 'responses', { input, tools: [SEARCH, PATCH] });
      expect({ dropped, refusal }).toEqual({ dropped: [], refusal: null });
      expect(JSON.stringify(body.tools)).toContain('tool_search');
    }
  });

  test.each(STRICT_NAMES)('Q16 %s: a later step begins with the bytes of the step before', (name) => {
    const sentWith = (input: readonly unknown[]) => {
      const { body } = sentTo(name, 'responses', { input, tools: [SEARCH, PATCH] });
      const turns = readArray(body.messages ?? body.input ?? body.contents).map((turn) =>
        JSON.stringify(turn),
      );
      return { tools: JSON.stringify(body.tools), turns };
    };
    const [first, searched, called] = [HISTORY.slice(0, 1), HISTORY, [...HISTORY, ...CALLED]].map(sentWith);
    expect(searched?.turns.slice(0, first?.turns.length)).toEqual(first?.turns);
    expect(called?.turns.slice(0, searched?.turns.length)).toEqual(searched?.turns);
    // What a search found is behind the other tools, and stays.
    expect(called?.tools).toBe(searched?.tools);
  });
});

test.each([true, false])(
  'I4 through the gateway (stream: %s): the call comes back as tool_search_call',
  async (stream) => {
    const called = {
      index: 0,
      id: 'c1',
      type: 'function',
      function: { name: 'tool_search', arguments: '{"query":"mail"}' },
    };
    const choice = {
      index: 0,
      message: { role: 'assistant', tool_calls: [called] },
      finish_reason: 'tool_calls',
    };
    const behavior = stream
      ? sse(ROLE, event({ tool_calls: [called] }), event({}, 'tool_calls'), DONE)
      : json({ choices: [choice] });
    const { gateway, requests } = new RoutedGateway({ m: [behavior] });
    const response = await gateway.post('/v1/responses', 'x', {
      model: 'mistral/m',
      stream,
      input: HISTORY,
      tools: [SEARCH],
    });
    const text = await response.text();
    expect(response.headers.get('x-weir-dropped')).toBeNull();
    expect(JSON.stringify(requests[0]?.body.tools)).toContain('mcp__cal__list_events');
    expect(text).toContain(
      '"type":"tool_search_call","status":"completed","call_id":"c1","execution":"client","arguments":{"query":"mail"}}',
    );
  },
);

describe('I4 a call of the search', () => {
  const REQUEST = { model: 'p/m', input: HISTORY, tools: [SEARCH] };
  const CHUNKS = [
    call(0, 'tool_search', '{"que'),
    args(0, 'ry":"mail","limit":2512292042121000001}'),
    call(1, 'mcp__cal__list_events', '{}'),
    finish('tool_calls'),
  ];
  const ITEM = {
    type: 'tool_search_call',
    status: 'completed',
    execution: 'client',
    call_id: 'call_0',
    arguments: { query: 'mail' },
  };

  test('streamed: an item with an object, without events between its beginning and its end', () => {
    const { text, events: all } = write(CHUNKS, { session: sessionOf(REQUEST) });
    expect(checkResponses(text)).toEqual([]);
    const events = all.filter(({ output_index }) => output_index === 0);
    expect(events).toMatchObject([
      { type: 'response.output_item.added', item: { ...ITEM, status: 'in_progress', arguments: {} } },
      { type: 'response.output_item.done', item: ITEM },
    ]);
    expect(events).toHaveLength(2);
    expect(text).toContain('"limit":2512292042121000001');
    expect(JSON.stringify(events)).not.toContain('"name":"tool_search"');
    expect(text).toContain('"name":"list_events","namespace":"mcp__cal__"');
  });

  test('whole: the same item', () => {
    const writer = new ResponsesJsonWriter(sessionOf(REQUEST), WRITER_OPTIONS);
    for (const chunk of CHUNKS) writer.chunk(chunk);
    const { output } = JSON.parse(writer.take());
    expect(output[0]).toMatchObject(ITEM);
    expect(output[1]).toMatchObject({ type: 'function_call', name: 'list_events', namespace: 'mcp__cal__' });
  });
});
