/** What providers cite, and answers of images alone, as the official SDKs see them (C11, C12). */
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { MAX_CITATION_CHARS, MAX_CITATIONS } from '../../src/canonical/citations.ts';
import { CLIENTS, frame, gatewayFetch, see, UPSTREAMS, type UpstreamName } from './sdk-clients.ts';
import { type Behavior, DONE, event, json, RoutedGateway, read, sse, USAGE } from './upstreams.ts';

interface Citation {
  readonly url: string;
  readonly title?: string;
  readonly at?: readonly [start: number, end: number];
}

const cited = ({ url, title = url, at: [start_index, end_index] = [0, 0] }: Citation) => ({
  type: 'url_citation',
  url_citation: { start_index, end_index, title, url },
});
const A = { url: 'https://a.example/1', title: 'A' };
const B = { url: 'https://b.example/2', title: 'B' };
const OWN_A = { ...cited({ ...A, at: [0, 5] }), extra: 'of the provider' };
const OWN_B = cited({ ...B, at: [0, 5] });

/** The text of each answer. */
const TEXT = 'Hello';
const HELLO = event({ role: 'assistant', content: TEXT });
const STOP = event({}, 'stop');
const USAGE_ALONE = { id: 'up', choices: [], usage: USAGE };
const frameOf = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

function whole(message: object, more: object = {}): Behavior {
  const choice = { index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' };
  return json({ id: 'up', model: 'm', choices: [choice], ...more });
}

// Claude

const delta = (index: number, value: object) => frame('content_block_delta', { index, delta: value });
const block = (index: number, content_block: object, ...deltas: object[]) =>
  frame('content_block_start', { index, content_block }) +
  deltas.map((one) => delta(index, one)).join('') +
  frame('content_block_stop', { index });
const FOUND = {
  type: 'web_search_tool_result',
  tool_use_id: 's',
  content: [A, B].map((page) => ({ type: 'web_search_result', ...page, encrypted_content: 'x' })),
};
const SEARCH = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } };
const location = (page: object) => ({
  type: 'web_search_result_location',
  ...page,
  cited_text: 'c',
  encrypted_index: 'x',
});
const says = (text: string) => ({ type: 'text_delta', text });
const cites = (page: object) => ({ type: 'citations_delta', citation: location(page) });
const TEXT_BLOCK = { type: 'text', text: '' };
const message = (...blocks: string[]) =>
  sse(
    frame('message_start', {
      message: { id: 'm', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 1 } },
    }),
    ...blocks,
    frame('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
    frame('message_stop', {}),
  );
const wholeMessage = (...content: object[]) =>
  json({ type: 'message', id: 'm', role: 'assistant', content, stop_reason: 'end_turn' });

// Gemini

const grounded = (parts: readonly object[], ...pages: object[]) => ({
  candidates: [
    {
      content: { parts },
      finishReason: 'STOP',
      groundingMetadata: {
        webSearchQueries: ['q'],
        groundingChunks: pages,
        groundingSupports: [{ segment: { startIndex: 0, endIndex: 5 }, groundingChunkIndices: [0, 0] }],
      },
    },
  ],
});
const web = ({ url: uri, title }: Citation) => ({ web: { uri, title } });

// Responses

const flat = ({ at: [start_index, end_index] = [0, 5], ...page }: Citation) => ({
  type: 'url_citation',
  ...page,
  start_index,
  end_index,
});
const said = (id: string, text: string, ...citations: Citation[]) => ({
  type: 'message',
  id,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: citations.map(flat) }],
});
const complete = (...output: object[]) => ({ id: 'r', object: 'response', status: 'completed', output });
const completed = (...output: object[]) => frame('response.completed', { response: complete(...output) });
const itemDone = (output_index: number, item: object) =>
  frame('response.output_item.done', { output_index, item });
const textDelta = (output_index: number, text: string, more: object = {}) =>
  frame('response.output_text.delta', {
    output_index,
    item_id: `m${output_index}`,
    content_index: 0,
    delta: text,
    ...more,
  });
const added = (output_index: number, citation: Citation, more: object = {}) =>
  frame('response.output_text.annotation.added', {
    output_index,
    item_id: `m${output_index}`,
    content_index: 0,
    annotation_index: 0,
    annotation: flat(citation),
    ...more,
  });
const FIRST = said('m0', 'Hel', { ...A, at: [0, 3] });
const SECOND = said('m1', 'lo', { ...B, at: [0, 2] });
const IN_TWO = [cited({ ...A, at: [0, 3] }), cited({ ...B, at: [3, 5] })];

interface Case {
  readonly name: string;
  readonly upstream?: UpstreamName;
  readonly behavior: Behavior;
  readonly annotations: readonly object[];
}

const PAGES = [cited(A), cited(B)];
const ADDRESSES = { citations: [A.url, B.url] };
const RESULTS = { search_results: [A, B].map((page) => ({ ...page, date: null })) };

const CASES: readonly Case[] = [
  {
    name: 'annotations in a chunk of their own',
    behavior: sse(HELLO, event({ annotations: [OWN_A, OWN_B] }), STOP, DONE),
    annotations: [OWN_A, OWN_B],
  },
  {
    name: 'annotations beside the text and the finish',
    behavior: sse(event({ role: 'assistant', content: TEXT, annotations: [OWN_A, OWN_B] }, 'stop'), DONE),
    annotations: [OWN_A, OWN_B],
  },
  {
    name: 'one annotation in each chunk before the text (OpenRouter)',
    behavior: sse(
      event({ role: 'assistant', content: '', annotations: [OWN_A] }),
      event({ role: 'assistant', content: '', annotations: [OWN_B] }),
      event({ content: 'Hel' }),
      event({ content: 'lo' }),
      STOP,
      DONE,
    ),
    annotations: [OWN_A, OWN_B],
  },
  {
    name: 'annotations that are repeated with each chunk',
    behavior: sse(
      event({ role: 'assistant', content: 'Hel', annotations: [OWN_A] }),
      event({ content: 'lo', annotations: [OWN_A, OWN_B] }),
      event({ annotations: [OWN_A, OWN_B] }, 'stop'),
      DONE,
    ),
    annotations: [OWN_A, OWN_B],
  },
  {
    name: 'annotations behind the finish',
    behavior: sse(HELLO, STOP, event({ annotations: [OWN_A] }), DONE),
    annotations: [OWN_A],
  },
  {
    name: 'annotations in the message that is repeated beside the last delta',
    behavior: sse(
      HELLO,
      frameOf({
        id: 'up',
        choices: [
          {
            index: 0,
            delta: {},
            message: { role: 'assistant', content: TEXT, annotations: [OWN_A] },
            finish_reason: 'stop',
          },
        ],
      }),
      DONE,
    ),
    annotations: [OWN_A],
  },
  {
    name: 'annotations in the form of Responses',
    behavior: sse(HELLO, event({ annotations: [flat(A)] }, 'stop'), DONE),
    annotations: [cited({ ...A, at: [0, 5] })],
  },
  {
    name: 'an empty list',
    behavior: sse(event({ content: TEXT, annotations: [] }, 'stop'), DONE),
    annotations: [],
  },
  {
    name: 'annotations in an answer that is not streamed',
    behavior: whole({ content: TEXT, annotations: [OWN_A, OWN_B] }),
    annotations: [OWN_A, OWN_B],
  },
  {
    name: 'addresses beside the choices of each chunk, with titles (Perplexity)',
    behavior: sse(
      event({ role: 'assistant', content: 'Hel' }, null, { ...ADDRESSES, ...RESULTS }),
      event({ content: 'lo' }, null, { ...ADDRESSES, ...RESULTS }),
      event({}, 'stop', { ...ADDRESSES, ...RESULTS }),
    ),
    annotations: PAGES,
  },
  {
    name: 'addresses beside the choices, without titles',
    behavior: sse(event({ role: 'assistant', content: TEXT }, 'stop', ADDRESSES), DONE),
    annotations: [cited({ url: A.url }), cited({ url: B.url })],
  },
  {
    name: 'addresses in the first chunk, their titles in the last',
    behavior: sse(
      frameOf({ id: 'up', choices: [], ...ADDRESSES }),
      HELLO,
      STOP,
      frameOf({ ...USAGE_ALONE, search_results: [B, A] }),
      DONE,
    ),
    annotations: PAGES,
  },
  {
    name: 'addresses behind the finish, in a chunk without choices (xAI)',
    behavior: sse(HELLO, STOP, frameOf({ ...USAGE_ALONE, ...ADDRESSES }), DONE),
    annotations: [cited({ url: A.url }), cited({ url: B.url })],
  },
  {
    name: 'addresses behind the finish, without usage',
    behavior: sse(HELLO, STOP, frameOf({ id: 'up', choices: [], ...RESULTS }), DONE),
    annotations: PAGES,
  },
  {
    name: 'addresses in the delta',
    behavior: sse(event({ role: 'assistant', content: TEXT, citations: [A] }, 'stop'), DONE),
    annotations: [cited(A)],
  },
  {
    name: 'addresses in an answer that is not streamed',
    behavior: whole({ content: TEXT }, { ...ADDRESSES, ...RESULTS }),
    annotations: PAGES,
  },
  {
    name: 'addresses in the message of an answer that is not streamed',
    behavior: whole({ content: TEXT, citations: [A.url] }),
    annotations: [cited({ url: A.url })],
  },
  {
    name: 'annotations, and the addresses of the same pages and of one more',
    behavior: sse(HELLO, event({ annotations: [OWN_B] }, 'stop', { ...ADDRESSES, ...RESULTS }), DONE),
    annotations: [OWN_B, cited(A)],
  },
  {
    name: 'citations that are no addresses',
    behavior: sse(
      HELLO,
      event({}, 'stop', { citations: [1, '[1]', null, {}, { url: 'ftp://x' }, ''] }),
      DONE,
    ),
    annotations: [],
  },
  {
    name: 'cited blocks of Claude',
    upstream: 'messages',
    behavior: message(
      block(0, SEARCH),
      block(1, FOUND),
      block(2, TEXT_BLOCK, says('H')),
      block(3, TEXT_BLOCK, cites(A), says('e'), says('l'), says('l'), cites(B)),
      block(4, TEXT_BLOCK, says('o')),
    ),
    annotations: [cited({ ...A, at: [1, 4] }), cited({ ...B, at: [1, 4] })],
  },
  {
    name: 'cited blocks of a Claude that ends no block',
    upstream: 'messages',
    behavior: message(
      frame('content_block_start', { index: 0, content_block: TEXT_BLOCK }),
      delta(0, cites(A)),
      delta(0, says('Hel')),
      frame('content_block_start', { index: 1, content_block: TEXT_BLOCK }),
      delta(1, says('lo')),
      delta(1, cites(B)),
    ),
    annotations: IN_TWO,
  },
  {
    name: 'what Claude has found, and cites nothing of',
    upstream: 'messages',
    behavior: message(block(0, SEARCH), block(1, FOUND), block(2, TEXT_BLOCK, says(TEXT))),
    annotations: PAGES,
  },
  {
    name: 'documents that Claude cites',
    upstream: 'messages',
    behavior: message(
      block(
        0,
        TEXT_BLOCK,
        {
          type: 'citations_delta',
          citation: { type: 'page_location', document_title: 'D', cited_text: 'c' },
        },
        says(TEXT),
      ),
    ),
    annotations: [],
  },
  {
    name: 'cited blocks of a whole message of Claude',
    upstream: 'messages',
    behavior: wholeMessage(
      SEARCH,
      FOUND,
      { type: 'text', text: 'Hel', citations: [location(A)] },
      { type: 'text', text: 'lo', citations: [location(B)] },
    ),
    annotations: IN_TWO,
  },
  {
    name: 'what a whole message of Claude has found',
    upstream: 'messages',
    behavior: wholeMessage(SEARCH, FOUND, { type: 'text', text: TEXT }),
    annotations: PAGES,
  },
  {
    name: 'grounding of Gemini',
    upstream: 'gemini',
    behavior: sse(
      frameOf({ candidates: [{ content: { parts: [{ text: 'Hel' }] } }] }),
      frameOf(grounded([{ text: 'lo' }], web(A), web(B), web(A), { retrievedContext: { uri: 'gs://x' } })),
    ),
    annotations: PAGES,
  },
  {
    name: 'grounding of Gemini behind its finish',
    upstream: 'gemini',
    behavior: sse(
      frameOf({ candidates: [{ content: { parts: [{ text: TEXT }] }, finishReason: 'STOP' }] }),
      frameOf(grounded([], web(A))),
    ),
    annotations: [cited(A)],
  },
  {
    name: 'grounding of a whole answer of Gemini',
    upstream: 'gemini',
    behavior: json(grounded([{ text: TEXT }], web(A), { maps: { uri: B.url, title: 'B' } })),
    annotations: PAGES,
  },
  {
    name: 'citations of Responses as they come',
    upstream: 'responses',
    behavior: sse(
      textDelta(0, 'Hel'),
      added(0, { ...A, at: [0, 3] }),
      itemDone(0, FIRST),
      textDelta(1, 'l'),
      textDelta(1, 'o'),
      added(1, { ...B, at: [0, 2] }),
      itemDone(1, SECOND),
      itemDone(0, FIRST),
      completed(FIRST, SECOND),
    ),
    annotations: IN_TWO,
  },
  {
    name: 'citations of Responses, one with another content index',
    upstream: 'responses',
    behavior: sse(
      textDelta(0, 'Hel'),
      added(0, { ...A, at: [0, 3] }, { content_index: 1 }),
      itemDone(0, FIRST),
      textDelta(1, 'lo'),
      itemDone(1, SECOND),
      completed(FIRST, SECOND),
    ),
    annotations: IN_TWO,
  },
  {
    name: 'citations of Responses in the last event alone',
    upstream: 'responses',
    behavior: sse(textDelta(0, 'Hel'), textDelta(1, 'lo'), completed(FIRST, SECOND)),
    annotations: IN_TWO,
  },
  {
    name: 'files that Responses cite',
    upstream: 'responses',
    behavior: json(
      complete({
        ...said('m0', TEXT),
        content: [
          {
            type: 'output_text',
            text: TEXT,
            annotations: [{ type: 'file_citation', file_id: 'f', filename: 'x', index: 1 }],
          },
        ],
      }),
    ),
    annotations: [],
  },
  {
    name: 'citations of a whole response',
    upstream: 'responses',
    behavior: json(complete(FIRST, SECOND)),
    annotations: IN_TWO,
  },
];

function request(behavior: Behavior, upstream: UpstreamName, fields: object): Promise<Response> {
  return gatewayFetch(behavior)('https://weir.example/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify({
      model: UPSTREAMS[upstream],
      messages: [{ role: 'user', content: 'Hi' }],
      ...fields,
    }),
  });
}

/** The annotations of each frame that has some. */
async function annotationsIn(response: Response): Promise<readonly (readonly unknown[])[]> {
  const frames = (await response.text()).split('\n\n').filter((one) => one.includes('"annotations"'));
  return frames.flatMap((one) => {
    const { choices } = JSON.parse(one.slice('data: '.length));
    return choices.map((choice: { delta: { annotations: unknown[] } }) => choice.delta.annotations);
  });
}

describe('C11 what a provider cites', () => {
  const cases = CASES.flatMap((one) => [true, false].map((stream) => ({ ...one, stream })));
  test.each(cases)(
    '$name: to a chat client, streamed: $stream',
    async ({ behavior, annotations, stream, upstream = 'chat' }) => {
      const openai = new OpenAI({
        apiKey: 'x',
        baseURL: 'https://weir.example/v1',
        maxRetries: 0,
        fetch: gatewayFetch(behavior),
      });
      const body = { model: UPSTREAMS[upstream], messages: [{ role: 'user' as const, content: 'Hi' }] };
      const { choices } = stream
        ? await openai.chat.completions.stream(body).finalChatCompletion()
        : await openai.chat.completions.create(body);
      const { content, annotations: seen = [] } = choices[0]?.message ?? {};
      expect([content, seen]).toEqual([TEXT, annotations]);
    },
  );

  test.each(CASES)('$name: in one delta', async ({ behavior, annotations, upstream = 'chat' }) => {
    const lists = await annotationsIn(await request(behavior, upstream, { stream: true }));
    expect(lists).toEqual(annotations.length === 0 ? [] : [annotations]);
  });

  // On the passthrough nothing of a citation is read.
  const clientsOf = ({ upstream }: Case) =>
    Object.keys(CLIENTS).filter((client) => !(upstream === 'responses' && client.startsWith('Responses')));
  test.each(CASES.flatMap((one) => clientsOf(one).map((client) => ({ ...one, client }))))(
    '$name: the text reaches $client as before',
    async ({ behavior, upstream = 'chat', client }) => {
      expect(await see(client, upstream, behavior)).toMatchObject({ text: TEXT });
    },
  );

  test('each of two choices has its own, and both have those beside the choices', async () => {
    const choices = [0, 1].map((index) => ({
      index,
      delta: { role: 'assistant', content: 'a', annotations: [index === 0 ? OWN_A : OWN_B] },
      finish_reason: 'stop',
    }));
    const behavior = sse(frameOf({ id: 'up', choices, citations: [A.url] }), DONE);
    expect(await annotationsIn(await request(behavior, 'chat', { stream: true, n: 2 }))).toEqual([
      [OWN_A],
      [OWN_B, cited({ url: A.url })],
    ]);
  });

  test('beside a call, the keys keep their order', async () => {
    const call = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
    const detail = { type: 'reasoning.text', text: 't', index: 0 };
    const behavior = sse(
      event(
        { tool_calls: [call], annotations: [OWN_A], reasoning_details: [detail], content: 'a' },
        'tool_calls',
      ),
      DONE,
    );
    const text = await (await request(behavior, 'chat', { stream: true })).text();
    const keys = Object.keys(JSON.parse(text.split('\n')[0]?.slice('data: '.length) ?? '').choices[0].delta);
    expect(keys).toEqual(['role', 'content', 'annotations', 'tool_calls', 'reasoning_details']);
  });

  test('an output that fails has none', async () => {
    const behavior = sse(HELLO, event({ annotations: [OWN_A] }), frameOf({ error: { message: 'no' } }), DONE);
    const text = await (await request(behavior, 'chat', { stream: true })).text();
    expect(text).toContain('"error"');
    expect(text).not.toContain('annotations');
  });

  const page = (at: number) => `https://p.example/${at}`;
  const many = Array.from({ length: 2 * MAX_CITATIONS }, (_, at) => at);
  test.each([
    ['addresses in one list', { citations: many.map(page) }],
    ['objects', { search_results: many.map((at) => ({ url: page(at), title: 't' })) }],
  ])(`more than ${MAX_CITATIONS} %s: the first ones`, async (_, more) => {
    for (const behavior of [
      sse(HELLO, event({}, 'stop', more), DONE),
      sse(HELLO, ...many.map((at) => event({ annotations: [cited({ url: page(at) })] })), STOP, DONE),
      whole({ content: TEXT }, more),
    ]) {
      const [list] = await annotationsIn(await request(behavior, 'chat', { stream: true }));
      expect(list).toHaveLength(MAX_CITATIONS);
      expect(list?.[1]).toMatchObject({ url_citation: { url: page(1) } });
    }
  });

  test(`more than ${MAX_CITATION_CHARS} characters: those that fit`, async () => {
    const large = { ...OWN_A, content: 'x'.repeat(MAX_CITATION_CHARS / 2) };
    const other = { ...OWN_B, content: 'y'.repeat(MAX_CITATION_CHARS / 2) };
    const behavior = sse(
      HELLO,
      event({ annotations: [large] }),
      event({ annotations: [other, OWN_B] }, 'stop'),
      DONE,
    );
    const [list] = await annotationsIn(await request(behavior, 'chat', { stream: true }));
    expect(list).toEqual([large, OWN_B]);
  });

  test('with a small MAX_EVENT_BYTES, citations that are together too large for a frame: an error, and no finish', async () => {
    const events = many
      .slice(0, 20)
      .map((at) => event({ annotations: [{ ...OWN_A, content: `${at}`.padEnd(900) }] }));
    const gateway = new RoutedGateway(
      { m: [sse(HELLO, ...events, STOP, DONE)] },
      {
        PROVIDERS: JSON.stringify({ tolerant: { base_url: 'https://tolerant', api_key: 'UP_KEY' } }),
        UP_KEY: 'k',
        MAX_EVENT_BYTES: '2048',
      },
    );
    expect(await read(await gateway.ask({ model: UPSTREAMS.chat, stream: true }))).toMatchObject({
      text: TEXT,
      finishes: [],
      error: { code: 'upstream_event_too_large' },
    });
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
