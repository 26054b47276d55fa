/** Tests the translation of chat requests for Gemini, by field and by model family (A2, A7, Q4-Q8). */
import { describe, expect, test } from 'vitest';
import { readWrittenLimit } from '../../../src/fitting/output-limit.ts';
import { generateContentPath } from '../../../src/protocols/gemini/request-writer.ts';
import { isObject, type JsonObject } from '../../../src/shared/json.ts';
import { providerNamed, rewrite, send } from '../../request-translation/send.ts';

const HI = [{ role: 'user', content: 'Hi' }];
const STAND_IN = 'skip_thought_signature_validator';

function configOf(model: string, more: JsonObject = {}): JsonObject {
  const { generationConfig } = send('gemini', { model, messages: HI, ...more });
  return isObject(generationConfig) ? generationConfig : {};
}

function contentsOf(messages: readonly JsonObject[], model = 'gemini-3-flash-preview'): unknown {
  return send('gemini', { model, messages }).contents;
}

function call(id: string, more: JsonObject = {}): JsonObject {
  return { id, type: 'function', function: { name: `f_${id}`, arguments: '{"a":1}' }, ...more };
}

describe('A2 thinking, by family', () => {
  test.each<[model: string, effort: string | undefined, thinking: unknown]>([
    ['gemini-3.8-flash', undefined, { includeThoughts: true }],
    ['gemini-3.8-flash', 'none', { thinkingLevel: 'low' }],
    ['gemini-3.8-flash', 'minimal', { includeThoughts: true, thinkingLevel: 'low' }],
    ['gemini-3.7-flash', 'xhigh', { includeThoughts: true, thinkingLevel: 'high' }],
    ['gemini-3.6-flash', 'minimal', { includeThoughts: true, thinkingLevel: 'minimal' }],
    ['gemini-3.5-flash', 'none', { thinkingLevel: 'minimal' }],
    ['models/gemini-3.5-flash-lite', 'medium', { includeThoughts: true, thinkingLevel: 'medium' }],
    ['gemini-3.1-pro-preview', 'minimal', { includeThoughts: true, thinkingLevel: 'low' }],
    ['gemini-3-pro-preview', 'medium', { includeThoughts: true, thinkingLevel: 'low' }],
    ['gemini-3.1-flash-image', 'low', { includeThoughts: true, thinkingLevel: 'minimal' }],
    ['gemini-flash-latest', 'max', { includeThoughts: true, thinkingLevel: 'high' }],
    ['gemini-4-hydrogen', 'low', { includeThoughts: true, thinkingLevel: 'low' }],
    ['gemini-2.5-flash', 'none', { thinkingBudget: 0 }],
    ['gemini-2.5-pro', 'none', { thinkingBudget: 128 }],
    ['gemini-2.5-flash', 'low', { includeThoughts: true, thinkingBudget: 2048 }],
    ['gemini-2.5-flash', 'max', { includeThoughts: true, thinkingBudget: 24_576 }],
    ['gemini-2.5-pro', 'max', { includeThoughts: true, thinkingBudget: 32_768 }],
    ['gemini-2.5-pro', undefined, { includeThoughts: true }],
    // It does not think by default, and refuses includeThoughts then.
    ['gemini-2.5-flash-lite', undefined, undefined],
    ['gemini-2.0-flash', undefined, undefined],
    ['gemini-2.0-flash', 'none', undefined],
  ])('%s, effort %s', (model, reasoning_effort, thinking) => {
    expect(configOf(model, { reasoning_effort }).thinkingConfig).toEqual(thinking);
  });

  test('an unknown effort word is sent unchanged', () => {
    expect(configOf('gemini-3.8-flash', { reasoning_effort: 'galactic' }).thinkingConfig).toEqual({
      includeThoughts: true,
      thinkingLevel: 'galactic',
    });
  });

  test.each([
    [{ thinking: { type: 'enabled', budget_tokens: 5000 } }, { includeThoughts: true, thinkingBudget: 5000 }],
    [{ thinking: { type: 'disabled' } }, { thinkingBudget: 0 }],
    [{ reasoning: { max_tokens: 9000 } }, { includeThoughts: true, thinkingBudget: 9000 }],
    [{ reasoning: { effort: 'low', exclude: true } }, { thinkingBudget: 2048 }],
    // At most the output limit less 1,024; thinking is off if less than 1,024 is left for it.
    [
      { reasoning_effort: 'high', max_tokens: 4096 },
      { includeThoughts: true, thinkingBudget: 3072 },
    ],
    [{ reasoning_effort: 'high', max_tokens: 1500 }, { thinkingBudget: 0 }],
    [{ thinkingConfig: { thinkingBudget: -1 } }, { thinkingBudget: -1 }],
    [{ extra_body: { google: { thinking_config: { thinkingBudget: 7 } } } }, { thinkingBudget: 7 }],
    [{ generationConfig: { thinkingConfig: { thinkingBudget: 8 } } }, { thinkingBudget: 8 }],
  ])('gemini-2.5-flash, %j', (more, thinking) => {
    expect(configOf('gemini-2.5-flash', more).thinkingConfig).toEqual(thinking);
  });

  test('an effort is dropped for a model that does not think', () => {
    const body = { model: 'gemini-2.0-flash', messages: HI, reasoning_effort: 'high' };
    expect(rewrite('gemini', body)).toMatchObject({ kind: 'body', dropped: ['reasoning_effort'] });
  });
});

describe('A2 generationConfig and other fields', () => {
  test('renames limits, sampling, stops, seed, penalties and choices', () => {
    const more = {
      max_completion_tokens: 99,
      temperature: 0.3,
      top_p: 0.9,
      top_k: 40,
      stop: ['a', '', 'b'],
      seed: 7,
      presence_penalty: 0.5,
      frequency_penalty: -0.5,
      n: 2,
      logprobs: true,
      top_logprobs: 3,
    };
    expect(configOf('gemini-2.5-flash', { ...more, reasoning_effort: 'none' })).toEqual({
      temperature: 0.3,
      topP: 0.9,
      topK: 40,
      seed: 7,
      presencePenalty: 0.5,
      frequencyPenalty: -0.5,
      candidateCount: 2,
      responseLogprobs: true,
      logprobs: 3,
      stopSequences: ['a', 'b'],
      maxOutputTokens: 99,
      thinkingConfig: { thinkingBudget: 0 },
    });
  });

  test('Q4 default values are not sent', () => {
    const body = {
      model: 'gemini-2.0-flash',
      messages: HI,
      n: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      logprobs: false,
      store: false,
      tool_choice: 'auto',
      parallel_tool_calls: true,
      response_format: { type: 'text' },
      modalities: ['text'],
      stream: true,
      stream_options: { include_usage: true },
      service_tier: 'auto',
      stop: null,
      user: null,
      usage: { include: true },
    };
    expect(rewrite('gemini', body, 'refuse')).toEqual({
      kind: 'body',
      body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
      dropped: [],
      changed: [],
    });
  });

  test('drops sampling that the newest models ignore', () => {
    const body = { model: 'gemini-3.8-flash', messages: HI, temperature: 0.2, top_p: 0.9 };
    expect(rewrite('gemini', body)).toMatchObject({ dropped: ['temperature', 'top_p'] });
    expect(configOf('gemini-3.8-flash', { temperature: 0.2 }).temperature).toBeUndefined();
    expect(configOf('gemini-3.5-flash', { temperature: 0.2 }).temperature).toBe(0.2);
  });

  test('Q5 drops fields about the request', () => {
    const body = {
      model: 'gemini-2.5-flash',
      messages: HI,
      user: 'u',
      store: true,
      parallel_tool_calls: false,
      tools: [TOOL],
    };
    expect(rewrite('gemini', body)).toMatchObject({
      dropped: ['tools.function.strict', 'user', 'store', 'parallel_tool_calls'],
    });
    expect(rewrite('gemini', body, 'refuse')).toMatchObject({
      kind: 'error',
      error: { param: 'tools.function.strict' },
    });
  });

  test.each([
    ['logit_bias', { 1: 5 }],
    ['prediction', { type: 'content', content: 'x' }],
    ['modalities', ['text', 'audio']],
    ['audio', { voice: 'x' }],
  ])('Q6 Q8 %s is unsupported: refused, or dropped if the caller allows it', (field, value) => {
    const body = { model: 'gemini-2.5-flash', messages: HI, [field]: value };
    expect(rewrite('gemini', body)).toMatchObject({
      kind: 'error',
      error: { status: 400, code: 'unsupported_parameter', param: field },
    });
    expect(rewrite('gemini', body, 'drop')).toMatchObject({ kind: 'body', dropped: [field] });
  });

  test('Q8 fields that the family refuses are sent, or dropped if the caller allows it', () => {
    const body = { model: 'gemini-3.8-flash', messages: HI, n: 2, presence_penalty: 1 };
    expect(rewrite('gemini', body)).toMatchObject({
      dropped: [],
      body: { generationConfig: { candidateCount: 2 } },
    });
    expect(rewrite('gemini', body, 'drop')).toMatchObject({ dropped: ['presence_penalty', 'n'] });
  });

  test("Q7 Google's own fields are sent in camel case, unknown ones unchanged", () => {
    const sent = send('gemini', {
      model: 'gemini-2.0-flash',
      messages: HI,
      safety_settings: [{ category: 'c', threshold: 't' }],
      cached_content: 'cachedContents/1',
      generation_config: { mediaResolution: 'MEDIA_RESOLUTION_LOW' },
      from_tomorrow: { a: 1 },
      service_tier: 'flex',
    });
    expect(sent).toEqual({
      safetySettings: [{ category: 'c', threshold: 't' }],
      cachedContent: 'cachedContents/1',
      from_tomorrow: { a: 1 },
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      generationConfig: { mediaResolution: 'MEDIA_RESOLUTION_LOW' },
      serviceTier: 'flex',
    });
  });

  test("G2 the limit of a key holds against Google's own fields", () => {
    const more = {
      max_tokens: 100,
      generationConfig: { maxOutputTokens: 9999, candidateCount: 8 },
      serviceTier: 'priority',
    };
    const sent = send('gemini', { model: 'gemini-2.0-flash', messages: HI, ...more });
    expect(sent).toMatchObject({ generationConfig: { maxOutputTokens: 100 } });
    expect(JSON.stringify(sent)).not.toMatch(/candidateCount|serviceTier/);
    const request = providerNamed('gemini').endpoints.chat?.request;
    expect(request && readWrittenLimit(request, sent)).toBe(100);
  });

  test.each([
    [{ type: 'json_object' }, { responseMimeType: 'application/json' }],
    [
      {
        type: 'json_schema',
        json_schema: { name: 'x', schema: { $schema: 's', type: 'object', additionalProperties: false } },
      },
      {
        responseMimeType: 'application/json',
        responseJsonSchema: { type: 'object', additionalProperties: false },
      },
    ],
  ])('a response format: %j', (response_format, config) => {
    expect(configOf('gemini-2.0-flash', { response_format })).toEqual(config);
  });
});

const TOOL = {
  type: 'function',
  function: {
    name: 'f',
    description: 'd',
    strict: true,
    parameters: {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { a: { $ref: '#/$defs/a' } },
      additionalProperties: false,
      $defs: { a: { const: 1 } },
    },
  },
};

describe('A2 tools', () => {
  test('sends schemas as JSON Schema without $schema, all functions in one entry, other tools unchanged', () => {
    const bare = { type: 'function', function: { name: 'g' } };
    const sent = send('gemini', { model: 'm', messages: HI, tools: [TOOL, { googleSearch: {} }, bare] });
    const { $schema: _, ...parametersJsonSchema } = TOOL.function.parameters;
    expect(sent.tools).toEqual([
      { functionDeclarations: [{ name: 'f', description: 'd', parametersJsonSchema }, { name: 'g' }] },
      { googleSearch: {} },
    ]);
  });

  test.each<[choice: unknown, config: unknown]>([
    ['auto', undefined],
    ['none', { mode: 'NONE' }],
    ['required', { mode: 'ANY' }],
    [
      { type: 'function', function: { name: 'f' } },
      { mode: 'ANY', allowedFunctionNames: ['f'] },
    ],
    [
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
      },
      { mode: 'VALIDATED', allowedFunctionNames: ['f'] },
    ],
  ])('tool_choice %j', (tool_choice, functionCallingConfig) => {
    const { toolConfig } = send('gemini', { model: 'm', messages: HI, tools: [TOOL], tool_choice });
    expect(toolConfig).toEqual(functionCallingConfig === undefined ? undefined : { functionCallingConfig });
  });

  test('Q1 legacy functions become tools, and their messages results', () => {
    const sent = send('gemini', {
      model: 'gemini-2.5-flash',
      functions: [{ name: 'f' }],
      messages: [
        ...HI,
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: 'ok' },
      ],
    });
    expect(sent.tools).toEqual([{ functionDeclarations: [{ name: 'f' }] }]);
    expect(sent.contents).toMatchObject([
      { role: 'user' },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { output: 'ok' } } }] },
    ]);
  });
});

describe('A2 conversations', () => {
  test('leading system messages become the instruction, later ones the user’s; messages of one role become one turn', () => {
    const { contents, systemInstruction } = send('gemini', {
      model: 'm',
      messages: [
        { role: 'system', content: 'A' },
        { role: 'developer', content: [{ type: 'text', text: 'B' }] },
        { role: 'user', content: 'C' },
        { role: 'user', content: 'D' },
        { role: 'assistant', content: 'E' },
        { role: 'assistant', content: '' },
        { role: 'system', content: 'F' },
        { role: 'user', content: 'G' },
      ],
    });
    expect(systemInstruction).toEqual({ parts: [{ text: 'A' }, { text: 'B' }] });
    expect(contents).toEqual([
      { role: 'user', parts: [{ text: 'C' }, { text: 'D' }] },
      { role: 'model', parts: [{ text: 'E' }] },
      { role: 'user', parts: [{ text: 'F' }, { text: 'G' }] },
    ]);
  });

  test('media: data inline, URIs by reference, audio by its format', () => {
    const content = [
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
      { type: 'image_url', image_url: { url: 'https://example.org/a.jpg?x=1', detail: 'high' } },
      { type: 'image_url', image_url: { url: 'https://example.org/picture' } },
      { type: 'input_audio', input_audio: { data: 'UklG', format: 'wav' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBE' } },
      { type: 'file', file: { file_id: 'https://generativelanguage.googleapis.com/v1beta/files/x' } },
      { type: 'video_url', video_url: { url: 'https://youtu.be/x' } },
      { type: 'document_url', document_url: 'https://example.org/b.pdf', document_name: 'b' },
      { type: 'file', file: { file_url: 'https://example.org/c.pdf' } },
    ];
    expect(contentsOf([{ role: 'user', content }])).toEqual([
      {
        role: 'user',
        parts: [
          { inlineData: { mimeType: 'image/png', data: 'iVBO' } },
          { fileData: { mimeType: 'image/jpeg', fileUri: 'https://example.org/a.jpg?x=1' } },
          { fileData: { fileUri: 'https://example.org/picture' } },
          { inlineData: { mimeType: 'audio/wav', data: 'UklG' } },
          { inlineData: { mimeType: 'application/pdf', data: 'JVBE' } },
          { fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/x' } },
          { fileData: { fileUri: 'https://youtu.be/x' } },
          { fileData: { fileUri: 'https://example.org/b.pdf' } },
          { fileData: { mimeType: 'application/pdf', fileUri: 'https://example.org/c.pdf' } },
        ],
      },
    ]);
  });

  test.each([
    [{ type: 'file', file: { file_id: 'file-abc' } }, 'file'],
    [{ type: 'hologram', hologram: {} }, 'hologram'],
  ])('Q6 Q8 an unsupported part is refused, or dropped if the caller allows it: %j', (part, type) => {
    const body = { model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, part] }] };
    expect(rewrite('gemini', body)).toMatchObject({ kind: 'error', error: { param: 'messages' } });
    expect(rewrite('gemini', body, 'drop')).toMatchObject({ dropped: [`messages.content.${type}`] });
  });

  test('Q5 drops names and cache marks', () => {
    const marks = { cache_control: { type: 'ephemeral' }, prompt_cache_breakpoint: { mode: 'explicit' } };
    const content = [{ type: 'text', text: 'a', ...marks }];
    const body = { model: 'm', messages: [{ role: 'user', name: 'Bo', content }] };
    expect(rewrite('gemini', body)).toMatchObject({
      dropped: [
        'messages.name',
        'messages.content.cache_control',
        'messages.content.prompt_cache_breakpoint',
      ],
    });
  });

  test.each(['scale', 'fast'])('Q5 drops the tier %s, which Google does not have', (service_tier) => {
    const rewritten = rewrite('gemini', { model: 'm', messages: HI, service_tier });
    expect(rewritten).toMatchObject({ kind: 'body', dropped: ['service_tier'] });
    expect(JSON.stringify(rewritten)).not.toContain('serviceTier');
  });

  test('results are objects in one turn, in the order of their calls and with their names, before the user’s text', () => {
    const contents = contentsOf([
      ...HI,
      { role: 'assistant', content: 'Both.', tool_calls: [call('a'), call('b'), call('c')] },
      { role: 'tool', tool_call_id: 'b', content: '{"x":1}' },
      { role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: '[1]' }] },
      { role: 'tool', tool_call_id: 'a', content: 'plain' },
      { role: 'user', content: 'Go on' },
    ]);
    expect(contents).toMatchObject([
      {},
      { role: 'model', parts: [{ text: 'Both.' }, {}, {}, {}] },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'a', name: 'f_a', response: { output: 'plain' } } },
          { functionResponse: { id: 'b', name: 'f_b', response: { x: 1 } } },
          { functionResponse: { id: 'c', name: 'f_c', response: { output: '[1]' } } },
          { text: 'Go on' },
        ],
      },
    ]);
  });

  test.each([
    ['gemini-3-flash-preview', [{ functionResponse: { parts: [{ inlineData: {} }] } }]],
    ['gemini-2.5-flash', [{ functionResponse: {} }, { inlineData: {} }]],
  ])('%s: an image of a result is inside it, or beside it', (model, parts) => {
    const content = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } }];
    const messages = [
      ...HI,
      { role: 'assistant', tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content },
    ];
    expect(contentsOf(messages, model)).toMatchObject([{}, {}, { parts }]);
  });

  test.each([
    ['', {}],
    ['{"n":12345678901234567890}', '{"n":12345678901234567890}'],
    ['[1]', { arguments: '[1]' }],
    ['{"truncated":', { arguments: '{"truncated":' }],
  ])('Q11 arguments %j become an object', (text, args) => {
    const message = {
      role: 'assistant',
      tool_calls: [{ id: 'a', function: { name: 'f', arguments: text } }],
    };
    const json = JSON.stringify(contentsOf([...HI, message], 'gemini-2.5-flash'));
    expect(json).toContain(`"args":${typeof args === 'string' ? args : JSON.stringify(args)}`);
  });
});

describe('A7 signatures', () => {
  const tagged = (data: string, id: string) => ({
    type: 'reasoning.encrypted',
    data,
    id,
    format: 'google-gemini-v1',
    index: 0,
  });
  const signed = (thought_signature: string, provider?: string) => ({
    extra_content: {
      google: { thought_signature },
      ...(provider === undefined ? {} : { weir: { provider } }),
    },
  });
  const partsOf = (message: JsonObject, model?: string) => {
    const contents = contentsOf([...HI, { role: 'assistant', ...message }], model);
    return Array.isArray(contents) ? contents[1]?.parts : undefined;
  };

  test('each goes back on its call; of parallel calls only the first has one', () => {
    const parts = partsOf({ tool_calls: [call('a', signed('S', 'gemini')), call('b')] });
    expect(parts).toEqual([
      { functionCall: { id: 'a', name: 'f_a', args: { a: 1 } }, thoughtSignature: 'S' },
      { functionCall: { id: 'b', name: 'f_b', args: { a: 1 } } },
    ]);
  });

  test.each([
    ['no', {}],
    ["another provider's", signed('S', 'elsewhere')],
  ])(
    'Gemini 3 gets the documented sentinel for a step with %s signature; older models get none',
    (_, extra) => {
      expect(partsOf({ tool_calls: [call('a', extra), call('b')] })).toMatchObject([
        { thoughtSignature: STAND_IN },
        {},
      ]);
      expect(JSON.stringify(partsOf({ tool_calls: [call('a', extra)] }, 'gemini-2.5-pro'))).not.toContain(
        'Signature',
      );
    },
  );

  test("sends untagged signatures in Google's form: of its compatible endpoint, and of OpenRouter by the call's id", () => {
    expect(partsOf({ tool_calls: [call('a', signed('S'))] })).toMatchObject([{ thoughtSignature: 'S' }]);
    const reasoning_details = [tagged('S', 'a')];
    expect(partsOf({ tool_calls: [call('a')], reasoning_details })).toMatchObject([
      { thoughtSignature: 'S' },
    ]);
  });

  test('a text signature goes back on its text, one of an empty text after it; other providers’ signatures are not sent', () => {
    const message = (id: string) => ({ content: 'A weir.', reasoning_details: [tagged('S', id)] });
    expect(partsOf(message('weir1:gemini:text-0'))).toEqual([
      { text: 'A weir.' },
      { text: '', thoughtSignature: 'S' },
    ]);
    expect(partsOf(message('weir1:gemini:text-7'))).toEqual([{ text: 'A weir.', thoughtSignature: 'S' }]);
    expect(partsOf(message('weir1:gemini:text-2'))).toEqual([
      { text: 'A ', thoughtSignature: 'S' },
      { text: 'weir.' },
    ]);
    expect(partsOf(message('weir1:gemini:thought'))).toEqual([
      { text: '', thought: true, thoughtSignature: 'S' },
      { text: 'A weir.' },
    ]);
    expect(partsOf(message('weir1:anthropic:text-0'))).toEqual([{ text: 'A weir.' }]);
  });

  test('thoughts without a signature are not sent, in any field', () => {
    const message = {
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'text', text: 'A' },
      ],
      reasoning_content: 'hm',
      reasoning_details: [
        { type: 'reasoning.text', text: 'hm', signature: 'S', format: 'anthropic-claude-v1' },
      ],
    };
    expect(partsOf(message)).toEqual([{ text: 'A' }]);
  });

  test('a tagged signature is not sent to another provider', () => {
    const message = { role: 'assistant', content: null, tool_calls: [call('a', signed('S', 'gemini'))] };
    for (const id of ['openrouter', 'like gemini', 'tolerant']) {
      const { messages } = send(id, { model: 'm', messages: [message] });
      expect(JSON.stringify(messages)).not.toContain('"S"');
    }
    const own = { role: 'assistant', content: null, tool_calls: [call('a', signed('S', 'openrouter'))] };
    const { messages } = send('openrouter', { model: 'm', messages: [own] });
    expect(JSON.stringify(messages)).toContain('"extra_content":{"google":{"thought_signature":"S"}}');
  });
});

describe('the path', () => {
  test.each([
    ['gemini-3.8-flash', true, '/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse'],
    ['models/gemini-3.8-flash', false, '/v1beta/models/gemini-3.8-flash:generateContent'],
    ['tunedModels/x', false, '/v1beta/tunedModels/x:generateContent'],
  ])('A1 %s, streamed %s', (model, stream, path) => {
    expect(generateContentPath({ model, stream })).toBe(path);
  });

  test.each(['../files', 'a/../b', 'x?key=1', 'x#y', 'models/../x', ''])(
    'H2 %j as a model is refused',
    (model) => {
      expect(rewrite('gemini', { model, messages: HI })).toMatchObject({
        kind: 'error',
        error: { param: 'model' },
      });
    },
  );
});
