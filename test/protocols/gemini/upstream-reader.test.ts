/** Tests parts of Gemini's streams that other gateways handle wrongly or that no recording shows (A3-A7). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../tools/conformance/contract/json.ts';
import { type Conversion, type Converted, convertObject, convertStream } from '../../contract/convert.ts';
import { readClient } from '../../contract/reference-reader.ts';

const CHAT: Conversion = { provider: 'gemini', route: 'chat', model: 'm', usageChunk: true };
const encoder = new TextEncoder();

const event = (fields: JsonObject) =>
  `data: ${JSON.stringify({ responseId: 'r', modelVersion: 'g', ...fields })}\r\n\r\n`;
const candidate = (parts: JsonObject[], finishReason?: string, more: JsonObject = {}): JsonObject => ({
  candidates: [
    { content: { parts, role: 'model' }, index: 0, ...(finishReason === undefined ? {} : { finishReason }) },
  ],
  ...more,
});
const content = (parts: JsonObject[], finishReason?: string, more: JsonObject = {}) =>
  event(candidate(parts, finishReason, more));
const call = (functionCall: JsonObject, thoughtSignature?: string): JsonObject => ({
  functionCall,
  ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
});
const usage = (counts: JsonObject) => ({ usageMetadata: counts });

function convert(...events: string[]): Converted {
  return convertStream([encoder.encode(events.join(''))], CHAT);
}

const read = (...events: string[]) => readClient(convert(...events).text).choices.get(0);

describe('calls', () => {
  test('A7 a signature is on the call’s first fragment, tagged with the provider', () => {
    const converted = convert(
      content([call({ name: 'f', args: {} }, 's1'), call({ name: 'g', args: {} })], 'STOP'),
    );
    expect(
      readClient(converted.text)
        .choices.get(0)
        ?.toolCalls.map(({ extra }) => extra),
    ).toEqual([{ google: { thought_signature: 's1' }, weir: { provider: 'gemini' } }, null]);
  });

  test.each([
    ['in the event of the call', [content([call({ name: 'f', args: { a: 1 } })], 'STOP')]],
    [
      'in the next event, beside an empty text',
      [content([call({ name: 'f', args: { a: 1 } })]), content([{ text: '' }], 'STOP')],
    ],
    [
      'before the call, and again with it',
      [content([], 'STOP'), content([call({ name: 'f', args: { a: 1 } })], 'STOP')],
    ],
  ])('C8 a STOP %s: one call, and the finish is tool_calls', (_, events) => {
    expect(read(...events)).toMatchObject({
      finish: 'tool_calls',
      toolCalls: [{ name: 'f', arguments: '{"a":1}' }],
    });
  });

  test('C7 calls without ids get unique ids of at most 40 characters; a given id is kept', () => {
    const calls = [{ name: 'f' }, { name: 'f' }, { name: 'g', id: 'own' }].map((one) =>
      call({ ...one, args: {} }, 'x'.repeat(900)),
    );
    const ids = read(content(calls, 'STOP'))?.toolCalls.map(({ id }) => id) ?? [];
    expect(new Set(ids).size).toBe(3);
    expect(ids[2]).toBe('own');
    for (const id of ids.slice(0, 2)) expect(id).toMatch(/^\w{1,40}$/);
  });

  test('C7 a call without a name: the output fails, and the arguments of the next call are not taken for its own', () => {
    const parts = [{ args: { a: 1 } }, { name: 'g', willContinue: true }, { args: { b: 2 } }];
    const calls = parts.map((one) => call(one));
    expect(convert(content(calls, 'STOP')).text).toContain('"code":"upstream_invalid"');
    expect(read(content(calls, 'MAX_TOKENS'))?.toolCalls).toMatchObject([
      { name: 'g', arguments: '{"b":2}' },
    ]);
  });

  test('C7 two calls with one id stay two calls, each with its own arguments', () => {
    const calls = [1, 2].map((a) => call({ id: 'x', name: 'f', args: { a } }));
    const found = read(content(calls, 'STOP'))?.toolCalls ?? [];
    expect(found.map((one) => one.arguments)).toEqual(['{"a":1}', '{"a":2}']);
    expect(found[0]?.id).toBe('x');
    expect(found[1]?.id).not.toBe('x');
  });

  test('A3 an empty call is ignored if no call is open', () => {
    expect(read(content([{ text: 'a' }, call({})], 'STOP'))).toMatchObject({ finish: 'stop', toolCalls: [] });
  });
});

describe('finishes', () => {
  test.each([
    ['STOP', 'stop'],
    ['A_WORD_OF_TOMORROW', 'stop'],
    ['MAX_TOKENS', 'length'],
    ...[
      ...['SAFETY', 'RECITATION', 'LANGUAGE', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'],
      ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION', 'IMAGE_OTHER'],
    ].map((word) => [word, 'content_filter']),
    ['OTHER', 'stop'],
  ])('A4 %s after a text: the finish is %s, and the record keeps the word', (word, finish) => {
    const converted = convert(content([{ text: 'a' }], word));
    expect(readClient(converted.text).choices.get(0)?.finish).toBe(finish);
    expect(converted.accumulator.finishWord).toBe(word);
  });

  test.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'NO_IMAGE', 'OTHER'])(
    'A4 A5 %s without output: an error and no finish, and its tokens are metered',
    (word) => {
      const converted = convert(content([], word, usage({ promptTokenCount: 21, totalTokenCount: 21 })));
      expect(converted.error?.code).toBe(word);
      expect(readClient(converted.text).choices.get(0)?.finish ?? null).toBeNull();
      expect(converted.accumulator.countReported()).toMatchObject({
        estimated: false,
        usage: { prompt_tokens: 21, completion_tokens: 0 },
      });
    },
  );

  test.each([
    'SAFETY',
    'OTHER',
    'BLOCKLIST',
    'PROHIBITED_CONTENT',
    'IMAGE_SAFETY',
    'MODEL_ARMOR',
    'JAILBREAK',
    'NEW_REASON',
  ])('A4 a prompt blocked for %s: content_filter, with its usage', (blockReason) => {
    const counts = usage({ promptTokenCount: 9, totalTokenCount: 9 });
    const converted = convert(event({ promptFeedback: { blockReason }, ...counts }));
    expect(readClient(converted.text).choices.get(0)).toMatchObject({ text: '', finish: 'content_filter' });
    expect(converted.accumulator.countUsage()).toMatchObject({
      estimated: false,
      usage: { prompt_tokens: 9 },
    });
    expect(converted.accumulator.finishWord).toBe(blockReason);
  });

  test('A3 the last of several finishes counts', () => {
    expect(read(content([{ text: 'a' }], 'STOP'), content([{ text: 'b' }], 'MAX_TOKENS'))).toMatchObject({
      text: 'ab',
      finish: 'length',
    });
  });
});

describe('usage', () => {
  test('A5 thoughts are included in the completion, once', () => {
    const counts = {
      promptTokenCount: 3,
      candidatesTokenCount: 8,
      thoughtsTokenCount: 6,
      totalTokenCount: 17,
    };
    expect(convert(content([{ text: 'a' }], 'STOP', usage(counts))).accumulator.countUsage().usage).toEqual({
      prompt_tokens: 3,
      completion_tokens: 14,
      total_tokens: 17,
      completion_tokens_details: { reasoning_tokens: 6 },
    });
  });

  test('A5 the last event’s prompt count replaces the estimate of the first', () => {
    const events = [
      content([{ text: 'a' }], undefined, usage({ promptTokenCount: 169, totalTokenCount: 169 })),
      content(
        [{ text: 'b' }],
        'STOP',
        usage({ promptTokenCount: 79, candidatesTokenCount: 2, totalTokenCount: 81 }),
      ),
    ];
    expect(convert(...events).accumulator.countUsage().usage).toMatchObject({
      prompt_tokens: 79,
      completion_tokens: 2,
    });
  });

  test('A5 a last event with only the prompt’s count keeps the completion’s count', () => {
    const events = [
      content(
        [{ text: 'b' }],
        'STOP',
        usage({ promptTokenCount: 9, candidatesTokenCount: 5, totalTokenCount: 14 }),
      ),
      event(usage({ promptTokenCount: 9, totalTokenCount: 9 })),
    ];
    expect(convert(...events).accumulator.countUsage()).toMatchObject({
      estimated: false,
      usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
    });
  });

  test('A7 a signature without its empty text (bifrost#6730) reaches the client as that of an empty text', () => {
    const { text } = convert(content([{ text: 'a' }]), content([{ thoughtSignature: 'S' }], 'STOP'));
    expect(text).toContain('"data":"S","id":"weir1:gemini:text-0"');
    const other = convert(content([{ inlineData: {}, thoughtSignature: 'S' }, { text: 'a' }], 'STOP'));
    expect(other.text).not.toContain('"S"');
  });

  test('A5 tokens that a provider-run tool read are part of the prompt', () => {
    const counts = {
      promptTokenCount: 3,
      toolUsePromptTokenCount: 40,
      candidatesTokenCount: 2,
      totalTokenCount: 45,
    };
    expect(
      convert(content([{ text: 'a' }], 'STOP', usage(counts))).accumulator.countUsage().usage.prompt_tokens,
    ).toBe(43);
  });
});

describe('A3 calls in pieces (Vertex, streamFunctionCallArguments)', () => {
  const begin = (name: string) => call({ name, willContinue: true });
  const piece = (...partialArgs: JsonObject[]) => call({ partialArgs, willContinue: true });
  const at = (path: string, value: JsonObject, willContinue = false): JsonObject => ({
    jsonPath: path,
    ...value,
    ...(willContinue ? { willContinue } : {}),
  });
  const text = (stringValue: string) => ({ stringValue });

  const argumentsOf = (...parts: JsonObject[]) => {
    const converted = convert(...parts.map((part) => content([part])), content([], 'STOP'));
    return readClient(converted.text)
      .choices.get(0)
      ?.toolCalls.map((one) => one.arguments);
  };

  test('builds nested objects of all value types', () => {
    const parts = [
      begin('f'),
      piece(at('$.who', text('An'), true)),
      piece(at('$.who', text('n "x"\n'), true), at('$.who', text(''))),
      piece(
        at('$.n', { numberValue: -1.5e-7 }),
        at('$.is', { boolValue: false }),
        at('$.none', { nullValue: 'NULL_VALUE' }),
      ),
      piece(at('$.list[0].a', text('one')), at('$.list[0].b[0]', { numberValue: 0 })),
      piece(at('$.list[1].a', text('two')), at('$[\'a.b\']["c]"]', text('odd'))),
      call({}),
    ];
    expect(argumentsOf(...parts)?.map((json) => JSON.parse(json))).toEqual([
      {
        ...{ who: 'Ann "x"\n', n: -1.5e-7, is: false, none: null },
        ...{ list: [{ a: 'one', b: [0] }, { a: 'two' }], 'a.b': { 'c]': 'odd' } },
      },
    ]);
  });

  test.each<[name: string, parts: JsonObject[], expected: string[]]>([
    ['no argument', [begin('f'), call({})], ['{}']],
    [
      'the finish ends it after a piece that announces no more',
      [begin('f'), call({ partialArgs: [at('$.a', text('x'))] })],
      ['{"a":"x"}'],
    ],
    ['only its end has the arguments', [begin('f'), call({ args: { a: 'x' } })], ['{"a":"x"}']],
    [
      'the next call ends it',
      [begin('f'), piece(at('$.a', text('x'))), begin('g'), call({})],
      ['{"a":"x"}', '{}'],
    ],
    ['a complete call ends it', [begin('f'), call({ name: 'g', args: { b: 1 } })], ['{}', '{"b":1}']],
    [
      'the first piece comes with the name',
      [call({ name: 'f', partialArgs: [at('$.a', { boolValue: true })] })],
      ['{"a":true}'],
    ],
    [
      'a piece without a value',
      [begin('f'), piece(at('$.a', {}), at('$.b', text('y'))), call({})],
      ['{"b":"y"}'],
    ],
    ['__proto__', [begin('f'), piece(at('$.__proto__.a', text('x'))), call({})], ['{"__proto__":{"a":"x"}}']],
    [
      'half of a surrogate pair',
      [begin('f'), piece(at('$.a', text('\ud83d'), true), at('$.a', text('\ude00'))), call({})],
      ['{"a":"\\ud83d\\ude00"}'],
    ],
  ])('%s', (_, parts, expected) => {
    expect(argumentsOf(...parts)).toEqual(expected);
  });

  test('id and signature are on the first fragment; a text between the pieces has no effect', () => {
    const events = [
      content([call({ name: 'f', id: 'c1', willContinue: true }, 's')]),
      content([piece(at('$.a', text('x'), true))]),
      content([{ text: 'between' }]),
      content([piece(at('$.a', text('y')))]),
      content([call({})], 'STOP'),
    ];
    expect(read(...events)).toMatchObject({
      text: 'between',
      finish: 'tool_calls',
      toolCalls: [
        { id: 'c1', name: 'f', arguments: '{"a":"xy"}', extra: { google: { thought_signature: 's' } } },
      ],
    });
  });

  const deep = `$${'.a'.repeat(101)}`;
  const names = Array.from({ length: 70 }, (_, i) => at(`$.${'k'.repeat(1000)}${i}`, text('')));

  test.each<[name: string, piece: JsonObject]>([
    ['a key twice', piece(at('$.a', text('x')), at('$.b', text('y')), at('$.a', text('z')))],
    [
      'a key of an object that has ended',
      piece(at('$.a.b', text('x')), at('$.c', text('y')), at('$.a.d', text('z'))),
    ],
    ['an array index that is not the next one', piece(at('$.a[1]', text('x')))],
    ['an index of an object', piece(at('$.a.b', text('x')), at('$.a[1]', text('x')))],
    ['a member of a string', piece(at('$.a', text('x')), at('$.a.b', text('x')))],
    ['a path to the arguments themselves', piece(at('$', text('x')))],
    ['an array as the arguments', piece(at('$[0]', text('x')))],
    ['a path without $', piece(at('a', text('x')))],
    ['a path with a wildcard', piece(at('$.a[*]', text('x')))],
    ['a path that is too deep', piece(at(deep, text('x')))],
    ['too many characters of keys', piece(...names)],
  ])('B1 %s: an error, because the arguments would be wrong', (_, broken) => {
    expect(convert(content([begin('f')]), content([broken]), content([call({})], 'STOP')).error?.code).toBe(
      'upstream_invalid',
    );
  });

  test('truncated: the received pieces are kept, and the JSON is not completed', () => {
    const converted = convert(content([begin('f')]), content([piece(at('$.a', text('x'), true))]));
    expect(converted.error?.code).toBe('upstream_truncated');
    expect(readClient(converted.text).choices.get(0)?.toolCalls[0]?.arguments).toBe('{"a":"x');
  });

  test('an empty call without a finish completes the arguments', () => {
    const converted = convert(
      content([begin('f')]),
      content([piece(at('$.a', text('x')))]),
      content([call({})]),
    );
    expect(converted.error?.code).toBe('upstream_truncated');
    expect(readClient(converted.text).choices.get(0)?.toolCalls[0]?.arguments).toBe('{"a":"x"}');
  });

  test.each<[name: string, parts: JsonObject[], cut: string[]]>([
    ['within a string', [begin('f'), piece(at('$.a', text('x'), true))], ['{"a":"x']],
    [
      'within a string, before another call',
      [begin('f'), piece(at('$.a', text('x'), true)), begin('g'), call({})],
      ['{"a":"x', '{}'],
    ],
    ['after a value', [begin('f'), piece(at('$.a', { numberValue: 1 }))], ['{"a":1']],
    ['before the first value', [begin('f')], ['{']],
  ])('C8 E2 more of the call was announced at the finish, %s: truncated, or length', (_, parts, cut) => {
    const events = parts.map((part) => content([part]));
    const stopped = convert(...events, content([], 'STOP'));
    expect(stopped.error?.code).toBe('upstream_truncated');
    const limited = convert(...events, content([], 'MAX_TOKENS'));
    expect(limited.error).toBeNull();
    const { finish, toolCalls = [] } = readClient(limited.text).choices.get(0) ?? {};
    expect(finish).toBe('length');
    expect(toolCalls.map((one) => one.arguments)).toEqual(cut);
  });

  test('completes the arguments in a non-streaming response', () => {
    const response = {
      responseId: 'r',
      ...candidate([call({ name: 'f', partialArgs: [at('$.a', text('x'))] })], 'STOP'),
    };
    const { text: json } = convertObject(encoder.encode(JSON.stringify(response)), CHAT, false);
    expect(JSON.parse(json)).toMatchObject({
      choices: [
        { finish_reason: 'tool_calls', message: { tool_calls: [{ function: { arguments: '{"a":"x"}' } }] } },
      ],
    });
  });
});

test('P1 counts each query of Google Search once, and no empty one', () => {
  const grounded = (webSearchQueries: JsonObject[] | string[]) => ({
    candidates: [{ content: { parts: [{ text: 'a' }] }, index: 0, groundingMetadata: { webSearchQueries } }],
    ...usage({ promptTokenCount: 1, candidatesTokenCount: 1 }),
  });
  const converted = convert(
    event(grounded(['a', '', 'b'])),
    event(grounded(['b', 'c'])),
    content([], 'STOP'),
  );
  expect(converted.accumulator.countBilled().usage).toMatchObject({ searches: 3 });
  expect(convert(content([{ text: 'a' }], 'STOP')).accumulator.countBilled().usage).not.toHaveProperty(
    'searches',
  );
});
