/** Citations of a chat provider, and answers of images alone, as the official SDKs see them (C11, C12). */
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { CLIENTS, gatewayFetch, see, UPSTREAMS, type UpstreamName } from './sdk-clients.ts';
import { type Behavior, DONE, event, json, sse } from './upstreams.ts';

const CITED = [
  {
    type: 'url_citation',
    url_citation: { start_index: 0, end_index: 5, title: 'A', url: 'https://a.example' },
  },
  {
    type: 'url_citation',
    url_citation: { start_index: 0, end_index: 5, title: 'B', url: 'https://b.example' },
  },
];

function whole(message: object): Behavior {
  const choice = { index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' };
  return json({ id: 'up', model: 'm', choices: [choice] });
}

const ANSWERS: readonly (readonly [name: string, behavior: Behavior])[] = [
  [
    'in a chunk of their own',
    sse(
      event({ role: 'assistant', content: 'Hello' }),
      event({ annotations: CITED }),
      event({}, 'stop'),
      DONE,
    ),
  ],
  [
    'beside the text and the finish',
    sse(event({ role: 'assistant', content: 'Hello', annotations: CITED }, 'stop'), DONE),
  ],
  [
    'in the first chunk',
    sse(
      event({ role: 'assistant', annotations: CITED }),
      event({ content: 'Hello' }),
      event({}, 'stop'),
      DONE,
    ),
  ],
  ['in an answer that is not streamed', whole({ content: 'Hello', annotations: CITED })],
];

describe('C11 the citations of a chat provider', () => {
  const cases = ANSWERS.flatMap(([name, behavior]) =>
    [true, false].map((stream) => ({ name, behavior, stream })),
  );
  test.each(cases)('$name, to a chat client, streamed: $stream', async ({ behavior, stream }) => {
    const openai = new OpenAI({
      apiKey: 'x',
      baseURL: 'https://weir.example/v1',
      maxRetries: 0,
      fetch: gatewayFetch(behavior),
    });
    const body = { model: UPSTREAMS.chat, messages: [{ role: 'user' as const, content: 'Hi' }] };
    const { choices } = stream
      ? await openai.chat.completions.stream(body).finalChatCompletion()
      : await openai.chat.completions.create(body);
    expect(choices[0]?.message).toMatchObject({ content: 'Hello', annotations: CITED });
  });

  test.each(Object.keys(CLIENTS))('the text reaches %s as before', async (client) => {
    for (const [, behavior] of ANSWERS)
      expect(await see(client, 'chat', behavior)).toMatchObject({ text: 'Hello' });
  });

  test('an empty list is none', async () => {
    const behavior = sse(event({ role: 'assistant', content: 'Hello', annotations: [] }, 'stop'), DONE);
    const response = await gatewayFetch(behavior)('https://weir.example/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify({
        model: UPSTREAMS.chat,
        messages: [{ role: 'user', content: 'Hi' }],
        stream: true,
      }),
    });
    expect(await response.text()).not.toContain('annotations');
  });
});

const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
const gemini = (...parts: object[]) =>
  sse(`data: ${JSON.stringify({ candidates: [{ content: { parts }, finishReason: 'STOP' }] })}\n\n`);
const INLINE = { inlineData: { mimeType: 'image/png', data: 'AAAA' } };

const ALONE: readonly (readonly [name: string, upstream: UpstreamName, behavior: Behavior])[] = [
  [
    'a list of images',
    'chat',
    sse(event({ role: 'assistant', content: '', images: [IMAGE] }), event({}, 'stop'), DONE),
  ],
  ['typed content', 'chat', sse(event({ role: 'assistant', content: [IMAGE] }, 'stop'), DONE)],
  ['an answer that is not streamed', 'chat', whole({ content: null, images: [IMAGE] })],
  ['an image of Gemini', 'gemini', gemini(INLINE)],
  ['an image of Gemini behind a thought', 'gemini', gemini({ text: 'Hm', thought: true }, INLINE)],
];

describe('C12 images alone are an error, which says so', () => {
  test.each(ALONE.flatMap((one) => Object.keys(CLIENTS).map((client) => [...one, client] as const)))(
    '%s, at %s, to $3',
    async (_, upstream, behavior, client) => {
      expect(await see(client, upstream, behavior)).toEqual({
        error: expect.stringContaining('images alone'),
      });
    },
  );

  test.each(Object.keys(CLIENTS))('beside a text, they are left out: %s', async (client) => {
    const text = whole({ content: 'Hello', images: [IMAGE] });
    expect(await see(client, 'chat', text)).toMatchObject({ text: 'Hello' });
    expect(await see(client, 'gemini', gemini({ text: 'Hello' }, INLINE))).toMatchObject({ text: 'Hello' });
  });
});
