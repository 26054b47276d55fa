/** Tests what becomes of a conversation at each provider: reasoning, ids, content, roles, and closed schemas (Q1-Q5). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/canonical/json.ts';
import { toolCallId } from '../../src/canonical/tool-call-id.ts';
import { call, rewrite, send, sendMessages, TOOL } from './send.ts';

const CALLING = { role: 'assistant', content: 'c', tool_calls: [call('aaaaaaaaa')] };
const THINKING_PART = { type: 'thinking', thinking: [{ type: 'text', text: 'why' }], closed: true };

describe('Q2 reasoning goes back in the provider’s own form', () => {
  const FORMS: readonly (readonly [provider: string, model: string, sent: JsonObject])[] = [
    ['deepseek', 'deepseek-flash', { reasoning_content: 'why' }],
    ['cerebras', 'm', { reasoning: 'why' }],
    ['openrouter', 'm', { reasoning: 'why' }],
    ['xai', 'm', { reasoning_content: 'why' }],
    ['fireworks', 'm', { reasoning_content: 'why' }],
    ['moonshot', 'kimi-k3', { reasoning_content: 'why' }],
    ['zai', 'm', { reasoning_content: 'why' }],
    ['sglang', 'm', { reasoning_content: 'why' }],
    ['llamacpp', 'm', { reasoning_content: 'why' }],
    ['groq', 'm', {}],
    ['openai', 'm', {}],
    ['gemini', 'm', {}],
    ['mistral', 'mistral-large-latest', {}],
  ];
  const SOURCES: readonly (readonly [name: string, fields: JsonObject])[] = [
    ['reasoning_content', { reasoning_content: 'why' }],
    ['reasoning', { reasoning: 'why' }],
    ['thinking_blocks', { thinking_blocks: [{ type: 'thinking', thinking: 'why', signature: 's' }] }],
  ];

  test.each(FORMS)('Q2 %s, %s: sent as %j, whichever name the client used', (provider, model, sent) => {
    for (const [, fields] of SOURCES) {
      expect(sendMessages(provider, [{ role: 'assistant', content: 'c', ...fields }], { model })).toEqual([
        { role: 'assistant', content: 'c', ...sent },
      ]);
    }
  });

  test.each(['tolerant', 'vllm', 'ollama', 'together'])('Q2 %s: sent under both names', (provider) => {
    expect(sendMessages(provider, [{ role: 'assistant', content: 'c', reasoning_content: 'why' }])).toEqual([
      { role: 'assistant', content: 'c', reasoning: 'why', reasoning_content: 'why' },
    ]);
  });

  test('Q2 Mistral, a reasoning model: typed thinking before the text, and as it was where it already is', () => {
    const model = 'mistral-small-latest';
    expect(
      sendMessages('mistral', [{ role: 'assistant', content: 'c', reasoning_content: 'why' }], { model }),
    ).toEqual([{ role: 'assistant', content: [THINKING_PART, { type: 'text', text: 'c' }] }]);
    const typed = { role: 'assistant', content: [THINKING_PART, { type: 'text', text: 'c' }] };
    expect(sendMessages('mistral', [typed], { model })).toEqual([typed]);
    const beside = { role: 'assistant', content: '', reasoning: 'why', tool_calls: CALLING.tool_calls };
    expect(sendMessages('mistral', [beside], { model })).toEqual([
      { role: 'assistant', content: [THINKING_PART], tool_calls: CALLING.tool_calls },
    ]);
  });

  test('Q2 typed thinking at a provider without it: becomes its reasoning, and the rest of the content stays', () => {
    const typed = { role: 'assistant', content: [THINKING_PART, { type: 'text', text: 'c' }] };
    expect(sendMessages('deepseek', [typed])).toEqual([
      { role: 'assistant', content: 'c', reasoning_content: 'why' },
    ]);
    expect(sendMessages('mistral', [typed], { model: 'mistral-large-latest' })).toEqual([
      { role: 'assistant', content: [{ type: 'text', text: 'c' }] },
    ]);
    expect(sendMessages('groq', [{ role: 'assistant', content: [THINKING_PART] }])).toEqual([
      { role: 'assistant', content: '' },
    ]);
  });

  test.each<[name: string, model: string, more: JsonObject, isFilled: boolean]>([
    ['tools, thinking by default', 'deepseek-flash', { tools: [TOOL] }, true],
    ['tools, thinking asked for', 'deepseek-flash', { tools: [TOOL], thinking: { type: 'enabled' } }, true],
    ['tools, thinking off', 'deepseek-flash', { tools: [TOOL], thinking: { type: 'disabled' } }, false],
    ['tools, effort none', 'deepseek-flash', { tools: [TOOL], reasoning_effort: 'none' }, false],
    ['tools, a forced one', 'deepseek-flash', { tools: [TOOL], tool_choice: 'required' }, false],
    ['no tools', 'deepseek-flash', {}, false],
    ['an empty list of tools', 'deepseek-flash', { tools: [] }, false],
    ['the retired chat model', 'deepseek-chat', { tools: [TOOL] }, false],
  ])('Q2 DeepSeek, %s: every assistant message without reasoning gets ""', (_, model, more, isFilled) => {
    const messages = [{ role: 'user', content: 'u' }, { role: 'assistant', content: 'a' }, CALLING];
    const filled = isFilled ? { reasoning_content: '' } : {};
    expect(sendMessages('deepseek', messages, { model, ...more })).toEqual([
      { role: 'user', content: 'u' },
      { role: 'assistant', content: 'a', ...filled },
      { ...CALLING, ...filled },
    ]);
  });

  test('Q2 DeepSeek, the retired reasoner without tools: reasoning is left out, as its documents demanded', () => {
    const message = { role: 'assistant', content: 'a', reasoning_content: 'why' };
    const model = 'deepseek-reasoner';
    expect(sendMessages('deepseek', [message], { model })).toEqual([{ role: 'assistant', content: 'a' }]);
    expect(sendMessages('deepseek', [message], { model, tools: [TOOL] })).toEqual([message]);
  });

  test('Q2 Moonshot: an absent and an empty reasoning become a space, which counts as one', () => {
    const model = 'kimi-k2.6';
    for (const fields of [{}, { reasoning_content: '' }]) {
      expect(sendMessages('moonshot', [{ ...CALLING, ...fields }], { model })).toEqual([
        { ...CALLING, reasoning_content: ' ' },
      ]);
    }
    const off = { model, thinking: { type: 'disabled' } };
    expect(sendMessages('moonshot', [CALLING], off)).toEqual([CALLING]);
  });

  const DETAILS = [{ type: 'reasoning.text', text: 'why', signature: 's' }];
  const EXTRA = { google: { thought_signature: 's' } };

  test.each(['deepseek', 'mistral', 'openai', 'groq', 'cerebras', 'xai', 'fireworks', 'moonshot', 'zai'])(
    'A7 %s: has no use for signatures, and gets none',
    (provider) => {
      const message = {
        ...CALLING,
        reasoning_details: DETAILS,
        tool_calls: [call('aaaaaaaaa', { extra_content: EXTRA })],
      };
      const sent = JSON.stringify(sendMessages(provider, [message]));
      expect(sent).not.toContain('reasoning_details');
      expect(sent).not.toContain('extra_content');
    },
  );

  test('A7 the text of details: is reasoning where the provider takes no details', () => {
    const message = { role: 'assistant', content: 'c', reasoning_details: DETAILS };
    expect(sendMessages('deepseek', [message])).toEqual([
      { role: 'assistant', content: 'c', reasoning_content: 'why' },
    ]);
  });

  test('A7 OpenRouter: details and extra content go back as they came', () => {
    const message = {
      ...CALLING,
      reasoning_content: 'why',
      reasoning_details: DETAILS,
      tool_calls: [call('a', { extra_content: EXTRA })],
    };
    const { reasoning_content, ...rest } = message;
    expect(sendMessages('openrouter', [message])).toEqual([{ ...rest, reasoning: reasoning_content }]);
  });

  test('A7 Gemini: a signature goes back; the first call of a message without one gets the documented stand-in', () => {
    const model = 'gemini-3-flash';
    const stand = { google: { thought_signature: 'skip_thought_signature_validator' } };
    const calls = (...ids: string[]) => ({
      role: 'assistant',
      content: 'c',
      tool_calls: ids.map((id) => call(id)),
    });
    expect(sendMessages('gemini', [calls('a', 'b')], { model })).toEqual([
      { ...calls('a', 'b'), tool_calls: [call('a', { extra_content: stand }), call('b')] },
    ]);
    const signed = { ...calls(), tool_calls: [call('a', { extra_content: EXTRA }), call('b')] };
    expect(sendMessages('gemini', [signed], { model })).toEqual([signed]);
    expect(sendMessages('gemini', [calls('a')], { model: 'gemini-2.5-flash' })).toEqual([calls('a')]);
  });

  test('A7 Gemini 3 at OpenRouter: the stand-in is a detail with the id of the first call; a signed message stays', () => {
    const model = 'google/gemini-3-flash-preview';
    const message = { role: 'assistant', content: 'c', tool_calls: [call('a'), call('b')] };
    const detail = {
      type: 'reasoning.encrypted',
      data: 'skip_thought_signature_validator',
      format: 'google-gemini-v1',
      index: 0,
      id: 'a',
    };
    expect(sendMessages('openrouter', [message], { model })).toEqual([
      { ...message, reasoning_details: [detail] },
    ]);
    const signed = { ...message, reasoning_details: [{ type: 'reasoning.encrypted', data: 's' }] };
    expect(sendMessages('openrouter', [signed], { model })).toEqual([signed]);
    expect(sendMessages('openrouter', [message], { model: 'anthropic/claude-haiku-4.5' })).toEqual([message]);
  });
});

describe('Q3 tool-call ids', () => {
  test('Q3 Mistral, ids of other providers: one hash in the call and in its result', () => {
    const messages = [
      { role: 'assistant', content: 'c', tool_calls: [call('call_00_abc'), call('Abc123xyz')] },
      { role: 'tool', tool_call_id: 'call_00_abc', content: '1' },
      { role: 'tool', tool_call_id: 'Abc123xyz', content: '2' },
    ];
    const hash = toolCallId('call_00_abc');
    expect(hash).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(sendMessages('mistral', messages)).toEqual([
      { role: 'assistant', content: 'c', tool_calls: [call(hash), call('Abc123xyz')] },
      { role: 'tool', tool_call_id: hash, content: '1' },
      { role: 'tool', tool_call_id: 'Abc123xyz', content: '2' },
    ]);
  });

  test.each(['deepseek', 'openai', 'groq', 'openrouter', 'tolerant'])('Q3 %s: takes any id', (provider) => {
    const messages = [
      { role: 'assistant', content: 'c', tool_calls: [call('call_00_abc')] },
      { role: 'tool', tool_call_id: 'call_00_abc', content: '1' },
    ];
    expect(sendMessages(provider, messages)).toEqual(messages);
  });
});

describe('Q1 roles and content', () => {
  test.each([
    'deepseek',
    'mistral',
    'cerebras',
    'xai',
    'fireworks',
    'moonshot',
    'zai',
    'gemini',
    'together',
    'ollama',
  ])('Q1 %s: developer is system', (provider) => {
    expect(sendMessages(provider, [{ role: 'developer', content: 'be' }])).toEqual([
      { role: 'system', content: 'be' },
    ]);
  });

  test.each(['openai', 'groq', 'openrouter', 'tolerant'])('Q1 %s: knows developer', (provider) => {
    expect(sendMessages(provider, [{ role: 'developer', content: 'be' }])).toEqual([
      { role: 'developer', content: 'be' },
    ]);
  });

  test('Q1 DeepSeek, lists of text parts: one text where it refuses lists, as they are for a user', () => {
    const content = [
      { type: 'text', text: 'a', annotations: [] },
      { type: 'text', text: 'b' },
    ];
    const roles = ['system', 'assistant', 'user'];
    expect(
      sendMessages(
        'deepseek',
        roles.map((role) => ({ role, content })),
      ),
    ).toEqual([
      { role: 'system', content: 'a\nb' },
      { role: 'assistant', content: 'a\nb' },
      { role: 'user', content },
    ]);
    const tool = {
      role: 'tool',
      tool_call_id: 't',
      content: [{ type: 'image_url', image_url: { url: 'u' } }],
    };
    expect(sendMessages('deepseek', [tool])).toEqual([tool]);
  });

  test.each<[message: JsonObject, content: unknown]>([
    [{ tool_calls: [call('a')] }, ''],
    [{ tool_calls: [call('a')], content: null }, null],
    [{ content: null }, ''],
    [{}, ''],
    [{ refusal: 'no' }, ''],
  ])('Q1 DeepSeek, an assistant message %j: content is %j', (message, content) => {
    expect(sendMessages('deepseek', [{ role: 'assistant', ...message }])).toMatchObject([{ content }]);
  });

  test('Q1 Mistral, files: a data URL is a document, an uploaded file keeps its id', () => {
    const content = [
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
      { type: 'file', file: { file_id: 'f-1' } },
      { type: 'text', text: 'read', cache_control: { type: 'ephemeral' } },
    ];
    const rewritten = rewrite('mistral', { messages: [{ role: 'user', content }] });
    expect(rewritten).toMatchObject({
      body: {
        messages: [
          {
            role: 'user',
            content: [
              {
                type: 'document_url',
                document_url: 'data:application/pdf;base64,AA==',
                document_name: 'a.pdf',
              },
              { type: 'file', file_id: 'f-1' },
              { type: 'text', text: 'read' },
            ],
          },
        ],
      },
      dropped: ['messages.content.cache_control'],
    });
    expect(sendMessages('openai', [{ role: 'user', content: content.slice(0, 2) }])).toEqual([
      { role: 'user', content: content.slice(0, 2) },
    ]);
  });

  test('Q1 Mistral, a tool without parameters: gets an empty schema', () => {
    expect(send('mistral', { tools: [{ type: 'function', function: { name: 'f' } }] })).toEqual({
      tools: [TOOL],
    });
    expect(send('groq', { tools: [{ type: 'function', function: { name: 'f' } }] })).toEqual({
      tools: [{ type: 'function', function: { name: 'f' } }],
    });
  });

  test('Q1 a refusal of an earlier answer: its text where refusals are unknown, itself at OpenAI', () => {
    const message = { role: 'assistant', content: null, refusal: 'I will not' };
    expect(sendMessages('mistral', [message])).toEqual([{ role: 'assistant', content: 'I will not' }]);
    expect(sendMessages('openai', [message])).toEqual([message]);
  });
});

describe('Q4 Q5 closed message schemas', () => {
  const ANSWERED = {
    role: 'assistant',
    content: 'a',
    refusal: null,
    annotations: [],
    audio: null,
    parsed: { a: 1 },
    function_call: null,
    tool_calls: [call('aaaaaaaaa', { index: 0, extra_content: { google: {} } })],
    reasoning_details: [],
  };

  test.each(['mistral', 'groq', 'cerebras', 'fireworks', 'gemini'])(
    'Q4 %s: what an answer carried is dropped in silence',
    (provider) => {
      const rewritten = rewrite(provider, { messages: [ANSWERED] }, 'refuse');
      expect(rewritten).toMatchObject({ kind: 'body', dropped: [], changed: [] });
      const [message] = JSON.parse(JSON.stringify(rewritten)).body.messages;
      expect(Object.keys(message).sort()).toEqual(['content', 'role', 'tool_calls']);
    },
  );

  test.each<[provider: string, dropped: readonly string[]]>([
    ['mistral', ['messages.name', 'messages.metadata', 'messages.cache_control']],
    ['groq', ['messages.name', 'messages.metadata', 'messages.cache_control']],
    ['cerebras', ['messages.metadata', 'messages.cache_control']],
    ['openai', ['messages.metadata', 'messages.cache_control']],
    ['deepseek', []],
    ['openrouter', []],
    ['tolerant', []],
  ])('Q5 %s: of a user message %j are dropped and reported', (provider, dropped) => {
    const message = {
      role: 'user',
      content: 'u',
      name: 'ada',
      metadata: {},
      cache_control: { type: 'ephemeral' },
    };
    expect(rewrite(provider, { messages: [message, message] })).toMatchObject({ kind: 'body', dropped });
  });

  test('Q8 refuse: a name in a message is refused at Mistral', () => {
    expect(
      rewrite('mistral', { messages: [{ role: 'user', content: 'u', name: 'ada' }] }, 'refuse'),
    ).toMatchObject({
      kind: 'error',
      error: { code: 'unsupported_parameter', param: 'messages.name' },
    });
  });

  test('messages and parts that are not objects: sent on as they are', () => {
    for (const provider of ['mistral', 'deepseek', 'openai', 'tolerant']) {
      const messages: unknown[] = ['text', 7, null, { role: 'user', content: ['x', null] }, { role: 9 }];
      expect(send(provider, { messages }).messages).toEqual(messages);
    }
  });
});
