/** Tests where the images of tool results go, for every provider: into their result, or behind all results of the step (Q15). */
import { describe, expect, test } from 'vitest';
import { PROFILES, PROVIDERS } from '../../src/providers/index.ts';
import { moveMediaBehindResults } from '../../src/request-translation/tool-results.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { call, providerNamed, sendFromOther, sendMessages } from './send.ts';
import { writeRequest } from './write-request.ts';

const NOTE = 'The result follows in the next message.';
const USER = { role: 'user', content: 'Look' };
const CALLS = { role: 'assistant', content: 'c', tool_calls: [call('callNr001'), call('callNr002')] };
const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } };
const OTHER = { type: 'image_url', image_url: { url: 'data:image/png;base64,R0lG' } };
const text = (value: string) => ({ type: 'text', text: value });
const result = (id: string, content: unknown): JsonObject => ({ role: 'tool', tool_call_id: id, content });

const FIRST = result('callNr001', [text('a'), IMAGE]);
const SECOND = result('callNr002', [OTHER]);
const STEP = [USER, CALLS, FIRST, SECOND];

/** The items that OpenAI's Responses get, and what changed. */
function sendResponses(body: JsonObject) {
  const { responses, name: provider, id: providerId } = providerNamed('openai');
  if (responses === undefined) throw new Error('OpenAI has no Responses');
  const model = String(body.model);
  const options = { model, provider, providerId, unsupported: 'auto', promptCache: 'off' } as const;
  const written = writeRequest(
    responses.endpoint.request,
    { fields: body, turns: null },
    { ...options, isFromOtherProtocol: true },
  );
  if (written.kind === 'error') throw new Error(written.error.message);
  return written.value;
}

/** The chat providers that accept images in tool messages. */
const ACCEPTING = ['openrouter', 'moonshot'];
/** Those that are known to refuse or to ignore them there. */
const REFUSING = ['openai', 'deepseek', 'cerebras'];
const CHAT_PROVIDERS = [...PROFILES, ...PROVIDERS]
  .filter(({ endpoints }) => endpoints.chat?.request.kind === 'chat')
  .map(({ id }) => (id === 'gemini' ? 'like gemini' : id));

describe('Q15 the media of tool results', () => {
  test.each(ACCEPTING)('Q15 %s: an image stays in its result, in its place', (provider) => {
    expect(sendFromOther(provider, { model: 'm', messages: STEP }).body.messages).toMatchObject([
      USER,
      {},
      FIRST,
      SECOND,
    ]);
  });

  const others = [...new Set(CHAT_PROVIDERS)].filter((id) => !ACCEPTING.includes(id));
  test.each(others)('Q15 %s: images follow all results of the step in a user message', (provider) => {
    expect(sendFromOther(provider, { model: 'm', messages: STEP }).body.messages).toMatchObject([
      USER,
      {},
      { role: 'tool', content: 'a' },
      { role: 'tool', content: NOTE },
      { role: 'user', content: [IMAGE, OTHER] },
    ]);
  });

  test.each(REFUSING)('Q15 %s, a chat client: its images move, too', (provider) => {
    expect(sendMessages(provider, STEP)).toMatchObject([
      USER,
      {},
      { content: 'a' },
      { content: NOTE },
      { role: 'user' },
    ]);
  });

  test.each(['tolerant', 'groq', 'xai', 'vllm'])('Q15 %s, a chat client: sent as it came', (provider) => {
    expect(sendMessages(provider, STEP).slice(2)).toEqual([FIRST, SECOND]);
  });

  test('Q15 Moonshot: a file is not accepted in a tool message, and follows it', () => {
    const file = { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBE' } };
    const messages = [USER, CALLS, result('callNr001', [file, IMAGE]), result('callNr002', 'b')];
    expect(sendFromOther('moonshot', { model: 'kimi-k3', messages }).body.messages).toMatchObject([
      USER,
      {},
      { role: 'tool', content: [IMAGE] },
      { role: 'tool', content: 'b' },
      { role: 'user', content: [file] },
    ]);
  });

  test('Q15 OpenAI through Responses: an image stays in its output, and lost reasoning is reported', () => {
    const form = { model: 'gpt-5.6-terra', messages: STEP };
    const { body, changed } = sendResponses(form);
    expect(body.input).toMatchObject([
      { role: 'user' },
      {},
      {},
      {},
      {
        type: 'function_call_output',
        output: [
          { type: 'input_text', text: 'a' },
          { type: 'input_image', image_url: 'data:image/png;base64,iVBO' },
        ],
      },
      { type: 'function_call_output', output: [{ type: 'input_image' }] },
    ]);
    expect(changed).toEqual(['reasoning']);
  });

  test('Q15 Anthropic: an image stays in its tool_result', () => {
    const { body } = sendFromOther('anthropic', { model: 'claude-opus-5', messages: STEP });
    const source = { type: 'base64', media_type: 'image/png', data: 'iVBO' };
    expect(body.messages).toMatchObject([
      {},
      {},
      {
        role: 'user',
        content: [
          { type: 'tool_result', content: [text('a'), { type: 'image', source }] },
          { type: 'tool_result', content: [{ type: 'image' }] },
        ],
      },
    ]);
  });

  const PDF = { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBE' } };
  const AUDIO = { type: 'input_audio', input_audio: { data: 'UklG', format: 'wav' } };
  const AT_URL = { type: 'image_url', image_url: { url: 'https://a.test/b.png' } };

  test('Q15 Gemini 3: images and documents as data stay in the result, other media follow the results', () => {
    const messages = [
      USER,
      CALLS,
      result('callNr001', [IMAGE, PDF]),
      result('callNr002', [AUDIO, AT_URL, text('b')]),
    ];
    const { body } = sendFromOther('gemini', { model: 'gemini-3.8-flash', messages });
    expect(body.contents).toMatchObject([
      {},
      {},
      {
        parts: [
          {
            functionResponse: {
              response: { output: '' },
              parts: [
                { inlineData: { mimeType: 'image/png' } },
                { inlineData: { mimeType: 'application/pdf' } },
              ],
            },
          },
          { functionResponse: { response: { output: 'b' } } },
          { inlineData: { mimeType: 'audio/wav' } },
          { fileData: { fileUri: 'https://a.test/b.png' } },
        ],
      },
    ]);
  });

  test('Q15 Gemini 2.5: images follow the results, and an empty result says so', () => {
    const { body } = sendFromOther('gemini', { model: 'gemini-2.5-flash', messages: STEP });
    expect(body.contents).toMatchObject([
      {},
      {},
      {
        parts: [
          { functionResponse: { response: { output: 'a' } } },
          { functionResponse: { response: { output: NOTE } } },
          { inlineData: { data: 'iVBO' } },
          { inlineData: { data: 'R0lG' } },
        ],
      },
    ]);
  });
});

describe('moveMediaBehindResults', () => {
  const moved = (...messages: readonly unknown[]) => moveMediaBehindResults(messages, []);

  test('the user’s next message has the media first, a string as a text part', () => {
    expect(moved(CALLS, FIRST, { ...USER, name: 'n' })).toEqual([
      CALLS,
      result('callNr001', 'a'),
      { role: 'user', name: 'n', content: [IMAGE, text('Look')] },
    ]);
  });

  test('media of two steps follow their own steps', () => {
    expect(moved(CALLS, FIRST, CALLS, SECOND)).toEqual([
      CALLS,
      result('callNr001', 'a'),
      { role: 'user', content: [IMAGE] },
      CALLS,
      result('callNr002', NOTE),
      { role: 'user', content: [OTHER] },
    ]);
  });

  test('a system message between two results stays there, one behind them follows the media', () => {
    const system = { role: 'system', content: 's' };
    expect(moved(CALLS, FIRST, system, SECOND, system, USER)).toEqual([
      CALLS,
      result('callNr001', 'a'),
      system,
      result('callNr002', NOTE),
      { role: 'user', content: [IMAGE, OTHER] },
      system,
      USER,
    ]);
  });

  test('texts around media become one text, and a cache mark stays on it', () => {
    const cache_control = { type: 'ephemeral' };
    const marked = { ...text('b'), cache_control };
    expect(
      moved(result('x', [text('a'), IMAGE, text('b')]), result('y', [text('a'), IMAGE, marked])),
    ).toEqual([
      result('x', 'a\nb'),
      result('y', [{ ...text('a\nb'), cache_control }]),
      { role: 'user', content: [IMAGE, IMAGE] },
    ]);
  });

  test('without media, every message is the given one', () => {
    const messages = [USER, CALLS, result('a', 'x'), result('b', [text('x'), { type: 'unknown' }]), null, 7];
    const written = moved(...messages);
    expect(written).toHaveLength(messages.length);
    for (const [at, message] of messages.entries()) expect(written[at]).toBe(message);
  });

  test('the input of a step begins with that of the step before it', () => {
    const before = moved(USER, CALLS, FIRST, SECOND);
    const after = moved(USER, CALLS, FIRST, SECOND, CALLS, SECOND);
    expect(after.slice(0, before.length)).toEqual(before);
  });
});
