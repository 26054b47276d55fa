/** Tests how messages are rewritten for each provider: ids, roles, content, and closed schemas (Q1, Q3-Q5). */
import { describe, expect, test } from 'vitest';
import { toolCallId } from '../../src/canonical/tool-call-id.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { call, rewrite, send, sendMessages, TOOL } from './send.ts';

const HI = { role: 'user', content: 'Hi' };

describe('Q3 tool-call ids', () => {
  test('Q3 Mistral, ids of other providers: the same hash in the call and in its result', () => {
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

  test.each(['deepseek', 'openai', 'groq', 'openrouter', 'tolerant'])(
    'Q3 %s: every id is accepted',
    (provider) => {
      const messages = [
        { role: 'assistant', content: 'c', tool_calls: [call('call_00_abc')] },
        { role: 'tool', tool_call_id: 'call_00_abc', content: '1' },
      ];
      expect(sendMessages(provider, messages)).toEqual(messages);
    },
  );
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
    'like gemini',
    'together',
    'ollama',
  ])('Q1 %s: developer is system', (provider) => {
    expect(sendMessages(provider, [{ role: 'developer', content: 'be' }, HI])).toEqual([
      { role: 'system', content: 'be' },
      HI,
    ]);
  });

  test.each(['openai', 'groq', 'openrouter', 'tolerant'])(
    'Q1 %s: developer is sent unchanged',
    (provider) => {
      expect(sendMessages(provider, [{ role: 'developer', content: 'be' }])).toEqual([
        { role: 'developer', content: 'be' },
      ]);
    },
  );

  test('Q1 DeepSeek, lists of text parts: joined where it refuses lists, unchanged for a user', () => {
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
    const tool = { role: 'tool', tool_call_id: 't', content };
    expect(sendMessages('deepseek', [tool])).toEqual([{ ...tool, content: 'a\nb' }]);
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

  test('Q1 Mistral, files: a data URL becomes a document, an uploaded file keeps its id', () => {
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

  test('Q1 a refusal of an earlier turn: text at providers without refusals, unchanged at OpenAI', () => {
    const message = { role: 'assistant', content: null, refusal: 'I will not' };
    expect(sendMessages('mistral', [message, HI])).toEqual([
      { role: 'assistant', content: 'I will not' },
      HI,
    ]);
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

  test.each(['mistral', 'groq', 'cerebras', 'fireworks', 'like gemini'])(
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
  ])('Q5 %s: %j of a user message are dropped and reported', (provider, dropped) => {
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

  test('messages and parts that are not objects: sent unchanged', () => {
    for (const provider of ['mistral', 'deepseek', 'openai', 'tolerant']) {
      const messages: unknown[] = ['text', 7, null, { role: 'user', content: ['x', null] }, { role: 9 }];
      expect(send(provider, { messages }).messages).toEqual(messages);
    }
  });
});

describe('Q1 late system messages, as Claude Code sends them', () => {
  const system = (content: unknown) => ({ role: 'system', content });
  const user = (content: unknown) => ({ role: 'user', content });
  const said = { role: 'assistant', content: 'Yes' };
  const calling = { role: 'assistant', content: 'c', tool_calls: [call('aaaaaaaaa'), call('bbbbbbbbb')] };
  const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: '1' });
  const LATE = ['mistral', 'codestral', 'deepseek', 'vllm', 'sglang', 'llamacpp', 'ollama'];
  const place = (provider: string, messages: readonly JsonObject[], model = 'm') =>
    sendMessages(provider, messages, { model });

  test.each(LATE)('%s: one after a user message is joined with it', (provider) => {
    const messages = [system('Be'), user('Hi'), system('Env')];
    expect(place(provider, messages)).toEqual([system('Be'), user('Hi\n\nEnv')]);
  });

  test.each(LATE)('%s: the beginning of a growing conversation does not change', (provider) => {
    const first = [
      system('Be'),
      user('Hi'),
      system('Env'),
      calling,
      result('aaaaaaaaa'),
      result('bbbbbbbbb'),
    ];
    const turns = [first, [...first, system('Hurry')], [...first, system('Hurry'), said, system('Now'), HI]];
    const sent = turns.map((messages) => JSON.stringify(place(provider, messages)).slice(0, -1));
    expect(sent[1]?.startsWith(sent[0] ?? '-')).toBe(true);
    expect(sent[2]?.startsWith(sent[1] ?? '-')).toBe(true);
  });

  test.each(LATE)(
    '%s: one after or between tool results becomes a user message after all of them',
    (provider) => {
      const messages = [HI, calling, result('aaaaaaaaa'), system('Env'), result('bbbbbbbbb'), said];
      expect(place(provider, messages)).toMatchObject([
        HI,
        { role: 'assistant' },
        { role: 'tool', tool_call_id: 'aaaaaaaaa' },
        { role: 'tool', tool_call_id: 'bbbbbbbbb' },
        user('Env'),
        { role: 'assistant', content: 'Yes' },
      ]);
    },
  );

  test.each(LATE)('%s: several before a user message are joined with it, parts stay parts', (provider) => {
    const part = { type: 'text', text: 'B' };
    const late = (parts: readonly JsonObject[]) => [
      HI,
      said,
      system('A'),
      { role: 'developer', content: parts },
    ];
    expect(place(provider, [...late([part, part]), user('C')]).slice(2)).toEqual([
      user([{ type: 'text', text: 'A' }, part, part, { type: 'text', text: 'C' }]),
    ]);
  });

  test.each(LATE)('Q16 %s: a cache mark on one does not change the text that is joined', (provider) => {
    const marked = [{ type: 'text', text: 'B', cache_control: { type: 'ephemeral' } }];
    const [before] = place(provider, [user('A'), system(marked)]);
    expect(place(provider, [user('A'), system('B')])).toEqual([user('A\n\nB')]);
    expect([before]).toMatchObject([{ role: 'user', content: [{ type: 'text', text: 'A\n\nB' }] }]);
  });

  test.each(LATE)('%s: of system messages alone the last becomes the user’s', (provider) => {
    expect(place(provider, [system('A'), system('B')])).toEqual([system('A'), user('B')]);
  });

  test.each([
    ['vllm', 'm', 1],
    ['ollama', 'm', 1],
    ['fireworks', 'accounts/fireworks/models/qwen3p8-27b', 1],
    ['cerebras', 'qwen-3.8-27b', 1],
    ['groq', 'qwen/qwen3-32b', 1],
    ['together', 'Qwen/Qwen3.8-27B', 1],
    ['openrouter', 'qwen/qwen3.8-27b', 1],
    ['tolerant', 'Qwen3.8-27B', 1],
    ['mistral', 'mistral-small-latest', 2],
    ['tolerant', 'gpt-5', 2],
  ])('%s, %s: %d leading ones are accepted', (provider, model, leading) => {
    const sent = place(provider, [system('A'), system('B'), HI], model);
    expect(sent).toEqual(leading === 1 ? [system('A\n\nB'), HI] : [system('A'), system('B'), HI]);
  });

  test.each([
    ['openai', 'gpt-4o-mini'],
    ['xai', 'grok-4.3'],
    ['groq', 'openai/gpt-oss-120b'],
    ['openrouter', 'anthropic/claude-haiku-4.5'],
    ['tolerant', 'gpt-5'],
  ])('%s, %s: accepted anywhere', (provider, model) => {
    const messages = [HI, system('Env'), said, system('Now')];
    expect(place(provider, messages, model)).toEqual(messages);
  });
});

describe('Q1 Mistral, a conversation that ends with an assistant message', () => {
  const said = { role: 'assistant', content: 'Once' };

  test.each(['mistral', 'codestral'])('%s: is marked as a prefix', (provider) => {
    expect(sendMessages(provider, [HI, said])).toEqual([HI, { ...said, prefix: true }]);
  });

  test('one that is not last, is empty, has tool calls or its own prefix is sent unchanged', () => {
    const last = (message: JsonObject) => sendMessages('mistral', [HI, said, HI, message]);
    const calls = { role: 'assistant', content: 'c', tool_calls: [call('aaaaaaaaa')] };
    for (const message of [HI, { role: 'assistant', content: '' }, calls, { ...said, prefix: false }]) {
      expect(last(message)).toEqual([HI, said, HI, message]);
    }
  });

  test('DeepSeek, which does not continue it: sent unchanged', () => {
    expect(sendMessages('deepseek', [HI, said])).toEqual([HI, said]);
  });
});
