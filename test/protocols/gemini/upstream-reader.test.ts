/** What peers get wrong in Gemini's streams, each a test (studies/dialects.md 3.8), and what no recording shows (A3-A7). */
import { describe, expect, test } from 'vitest';
import { type Conversion, type Converted, convertObject, convertStream } from '../../contract/convert.ts';
import type { JsonObject } from '../../contract/json.ts';
import { readClient } from '../../contract/plain-reading.ts';

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
const said = (parts: JsonObject[], finishReason?: string, more: JsonObject = {}) =>
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

describe('3.8 calls', () => {
  test('#2 A7 a signature stands on the call’s first fragment, marked as Gemini’s', () => {
    const converted = convert(
      said([call({ name: 'f', args: {} }, 's1'), call({ name: 'g', args: {} })], 'STOP'),
    );
    expect(
      readClient(converted.text)
        .choices.get(0)
        ?.toolCalls.map(({ extra }) => extra),
    ).toEqual([{ google: { thought_signature: 's1' }, weir: { provider: 'gemini' } }, null]);
  });

  test.each([
    ['in the call’s own event', [said([call({ name: 'f', args: { a: 1 } })], 'STOP')]],
    [
      '#6 in the next, beside an empty text',
      [said([call({ name: 'f', args: { a: 1 } })]), said([{ text: '' }], 'STOP')],
    ],
    ['#6 before it, and again', [said([], 'STOP'), said([call({ name: 'f', args: { a: 1 } })], 'STOP')]],
  ])('#5 C8 a STOP %s: one call, and tool_calls', (_, events) => {
    expect(read(...events)).toMatchObject({
      finish: 'tool_calls',
      toolCalls: [{ name: 'f', arguments: '{"a":1}' }],
    });
  });

  test('#8 C7 calls without ids: ids of one form, none twice and none over 40 characters; one that is given is kept', () => {
    const calls = [{ name: 'f' }, { name: 'f' }, { name: 'g', id: 'own' }].map((one) =>
      call({ ...one, args: {} }, 'x'.repeat(900)),
    );
    const ids = read(said(calls, 'STOP'))?.toolCalls.map(({ id }) => id) ?? [];
    expect(new Set(ids).size).toBe(3);
    expect(ids[2]).toBe('own');
    for (const id of ids.slice(0, 2)) expect(id).toMatch(/^\w{1,40}$/);
  });

  test('C7 two calls with one id: two calls, each with its own arguments', () => {
    const calls = [1, 2].map((a) => call({ id: 'x', name: 'f', args: { a } }));
    const found = read(said(calls, 'STOP'))?.toolCalls ?? [];
    expect(found.map((one) => one.arguments)).toEqual(['{"a":1}', '{"a":2}']);
    expect(found[0]?.id).toBe('x');
    expect(found[1]?.id).not.toBe('x');
  });

  test('A3 an empty call where none is open is none', () => {
    expect(read(said([{ text: 'a' }, call({})], 'STOP'))).toMatchObject({ finish: 'stop', toolCalls: [] });
  });
});

describe('3.8 finishes', () => {
  test.each([
    ['STOP', 'stop'],
    ['A_WORD_OF_TOMORROW', 'stop'],
    ['MAX_TOKENS', 'length'],
    ...[
      ...['SAFETY', 'RECITATION', 'LANGUAGE', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'],
      ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION', 'IMAGE_OTHER'],
    ].map((word) => [word, 'content_filter']),
    ['OTHER', 'stop'],
  ])('#11 A4 %s behind a text: %s, and the record keeps the word', (word, finish) => {
    const converted = convert(said([{ text: 'a' }], word));
    expect(readClient(converted.text).choices.get(0)?.finish).toBe(finish);
    expect(converted.accumulator.finishWord).toBe(word);
  });

  test.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'NO_IMAGE', 'OTHER'])(
    '#3 A4 A5 %s in the place of an answer: an error and no finish, and its tokens count',
    (word) => {
      const converted = convert(said([], word, usage({ promptTokenCount: 21, totalTokenCount: 21 })));
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
  ])('#4 A4 a prompt blocked for %s: content_filter, with its usage', (blockReason) => {
    const counts = usage({ promptTokenCount: 9, totalTokenCount: 9 });
    const converted = convert(event({ promptFeedback: { blockReason }, ...counts }));
    expect(readClient(converted.text).choices.get(0)).toMatchObject({ text: '', finish: 'content_filter' });
    expect(converted.accumulator.countUsage()).toMatchObject({
      estimated: false,
      usage: { prompt_tokens: 9 },
    });
    expect(converted.accumulator.finishWord).toBe(blockReason);
  });

  test('A3 a finish that is taken back by what follows: the last one counts', () => {
    expect(read(said([{ text: 'a' }], 'STOP'), said([{ text: 'b' }], 'MAX_TOKENS'))).toMatchObject({
      text: 'ab',
      finish: 'length',
    });
  });
});

describe('3.8 usage', () => {
  test('#7 A5 thoughts are in the completion, once', () => {
    const counts = {
      promptTokenCount: 3,
      candidatesTokenCount: 8,
      thoughtsTokenCount: 6,
      totalTokenCount: 17,
    };
    expect(convert(said([{ text: 'a' }], 'STOP', usage(counts))).accumulator.countUsage().usage).toEqual({
      prompt_tokens: 3,
      completion_tokens: 14,
      total_tokens: 17,
      completion_tokens_details: { reasoning_tokens: 6 },
    });
  });

  test('#9 A5 the first event’s prompt is an estimate: the last one’s counts', () => {
    const events = [
      said([{ text: 'a' }], undefined, usage({ promptTokenCount: 169, totalTokenCount: 169 })),
      said(
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

  test('A5 a last word about the prompt alone, without a candidate: takes nothing back of the answer’s count', () => {
    const events = [
      said(
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

  test('A7 a signature whose empty text was left out (bifrost#6730): goes to the client as that of an empty text', () => {
    const { text } = convert(said([{ text: 'a' }]), said([{ thoughtSignature: 'S' }], 'STOP'));
    expect(text).toContain('"data":"S","id":"weir1:gemini:text-0"');
    const other = convert(said([{ inlineData: {}, thoughtSignature: 'S' }, { text: 'a' }], 'STOP'));
    expect(other.text).not.toContain('"S"');
  });

  test('A5 what a tool of the provider’s read is part of the prompt', () => {
    const counts = {
      promptTokenCount: 3,
      toolUsePromptTokenCount: 40,
      candidatesTokenCount: 2,
      totalTokenCount: 45,
    };
    expect(
      convert(said([{ text: 'a' }], 'STOP', usage(counts))).accumulator.countUsage().usage.prompt_tokens,
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
    const converted = convert(...parts.map((part) => said([part])), said([], 'STOP'));
    return readClient(converted.text)
      .choices.get(0)
      ?.toolCalls.map((one) => one.arguments);
  };

  test('values of every kind, nested: the object that they mean', () => {
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
    ['no end of its own: the finish is one', [begin('f'), piece(at('$.a', text('x'), true))], ['{"a":"x"}']],
    [
      'the next call ends it',
      [begin('f'), piece(at('$.a', text('x'))), begin('g'), call({})],
      ['{"a":"x"}', '{}'],
    ],
    ['a whole call ends it', [begin('f'), call({ name: 'g', args: { b: 1 } })], ['{}', '{"b":1}']],
    [
      'the first piece beside the name',
      [call({ name: 'f', partialArgs: [at('$.a', { boolValue: true })] })],
      ['{"a":true}'],
    ],
    ['a piece without a value', [begin('f'), piece(at('$.a', {}), at('$.b', text('y')))], ['{"b":"y"}']],
    ['__proto__', [begin('f'), piece(at('$.__proto__.a', text('x')))], ['{"__proto__":{"a":"x"}}']],
    [
      'half a pair',
      [begin('f'), piece(at('$.a', text('\ud83d'), true), at('$.a', text('\ude00')))],
      ['{"a":"\\ud83d\\ude00"}'],
    ],
  ])('%s', (_, parts, expected) => {
    expect(argumentsOf(...parts)).toEqual(expected);
  });

  test('its id and signature stand on its first fragment; a text between changes nothing', () => {
    const events = [
      said([call({ name: 'f', id: 'c1', willContinue: true }, 's')]),
      said([piece(at('$.a', text('x'), true))]),
      said([{ text: 'said' }]),
      said([piece(at('$.a', text('y')))]),
      said([call({})], 'STOP'),
    ];
    expect(read(...events)).toMatchObject({
      text: 'said',
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
      'back into an object that has ended',
      piece(at('$.a.b', text('x')), at('$.c', text('y')), at('$.a.d', text('z'))),
    ],
    ['a place of an array before its turn', piece(at('$.a[1]', text('x')))],
    ['an array that is an object', piece(at('$.a.b', text('x')), at('$.a[1]', text('x')))],
    ['a value that has members', piece(at('$.a', text('x')), at('$.a.b', text('x')))],
    ['the arguments themselves', piece(at('$', text('x')))],
    ['an array for the arguments', piece(at('$[0]', text('x')))],
    ['no path', piece(at('a', text('x')))],
    ['a path of another kind', piece(at('$.a[*]', text('x')))],
    ['a path that is too deep', piece(at(deep, text('x')))],
    ['names without end', piece(...names)],
  ])('B1 %s: an error, for the arguments would be wrong', (_, broken) => {
    expect(convert(said([begin('f')]), said([broken]), said([call({})], 'STOP')).error?.code).toBe(
      'upstream_invalid',
    );
  });

  test('cut short: what came is there, and no end is made up', () => {
    const converted = convert(said([begin('f')]), said([piece(at('$.a', text('x'), true))]));
    expect(converted.error?.code).toBe('upstream_truncated');
    expect(readClient(converted.text).choices.get(0)?.toolCalls[0]?.arguments).toBe('{"a":"x');
  });

  test('the empty one that ends it, and no finish: its arguments are whole', () => {
    const converted = convert(said([begin('f')]), said([piece(at('$.a', text('x')))]), said([call({})]));
    expect(converted.error?.code).toBe('upstream_truncated');
    expect(readClient(converted.text).choices.get(0)?.toolCalls[0]?.arguments).toBe('{"a":"x"}');
  });

  test('in a plain answer: whole', () => {
    const answer = {
      responseId: 'r',
      ...candidate([call({ name: 'f', partialArgs: [at('$.a', text('x'), true)] })], 'STOP'),
    };
    const { text: json } = convertObject(encoder.encode(JSON.stringify(answer)), CHAT, false);
    expect(JSON.parse(json)).toMatchObject({
      choices: [
        { finish_reason: 'tool_calls', message: { tool_calls: [{ function: { arguments: '{"a":"x"}' } }] } },
      ],
    });
  });
});

test('P1 queries of Google Search: each is billed once, and empty ones are not', () => {
  const grounded = (webSearchQueries: JsonObject[] | string[]) => ({
    candidates: [{ content: { parts: [{ text: 'a' }] }, index: 0, groundingMetadata: { webSearchQueries } }],
    ...usage({ promptTokenCount: 1, candidatesTokenCount: 1 }),
  });
  const converted = convert(event(grounded(['a', '', 'b'])), event(grounded(['b', 'c'])), said([], 'STOP'));
  expect(converted.accumulator.countBilled().usage).toMatchObject({ searches: 3 });
  expect(convert(said([{ text: 'a' }], 'STOP')).accumulator.countBilled().usage).not.toHaveProperty(
    'searches',
  );
});
