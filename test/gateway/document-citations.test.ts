/** What an answer cites of the request's own documents, from Claude and from Converse, to Messages clients (I10). */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAnthropic } from '@ai-sdk/anthropic';
import Anthropic from '@anthropic-ai/sdk';
import { generateText } from 'ai';
import { describe, expect, test } from 'vitest';
import { checkMessages } from '../../tools/conformance/contract/check-messages.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf } from '../../tools/simulator/json.ts';
import { pick, randomOf } from '../fuzz/random.ts';
import { runsOf, SEED } from '../random-run.ts';
import { event } from '../stream/eventstream-messages.ts';
import { frame } from './sdk-clients.ts';
import {
  CONVERSE_USAGE,
  converseAnswer,
  json,
  RoutedGateway,
  read,
  type Script,
  settle,
  sse,
} from './upstreams.ts';

const MODEL = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';
const CONVERSE = {
  AWS_KEY: 'k',
  PROVIDERS: {
    aws: { base_url: 'https://aws.example', api_key: 'AWS_KEY', like: 'bedrock', api: 'bedrock-converse' },
  },
};
/** An alias that sets a field: the request is translated. */
const CLAUDE = {
  ANTHROPIC_API_KEY: 'k',
  ANTHROPIC_BASE_URL: 'https://anthropic',
  ALIASES: { cited: [{ model: 'anthropic/claude-opus-5-5', set: { metadata: { user_id: 'a' } } }] },
};

const citations = { enabled: true };
const FACTS = { type: 'text', media_type: 'text/plain', data: 'Ruby is of 1993. It is red.' };
const PAPER = { type: 'base64', media_type: 'application/pdf', data: 'QUJD' };
const PARTS = { type: 'content', content: ['One.', 'Two.'].map((text) => ({ type: 'text', text })) };
const document = (source: object, more: object = { citations }) => ({ type: 'document', source, ...more });
const QUESTION = { type: 'text', text: 'When?' };
const user = (...content: object[]) => ({ role: 'user', content: [...content, QUESTION] });
const DOCUMENTS = [
  document(FACTS, { title: 'The facts.txt', citations }),
  document(PAPER),
  document(PARTS, { title: 'parts', citations }),
];

// The same answer in both forms: a text that cites nothing, one that cites two places, and one more.

interface Piece {
  readonly text: string;
  /** Of each place: the document, its start and its end. */
  readonly places?: readonly (readonly [type: Kind, document: unknown, start: unknown, end: unknown])[];
}

type Kind = 'char' | 'page' | 'chunk';

const AWS_NAMES = { char: 'documentChar', page: 'documentPage', chunk: 'documentChunk' };
const CLAUDE_NAMES = {
  char: ['char_location', 'start_char_index', 'end_char_index'],
  page: ['page_location', 'start_page_number', 'end_page_number'],
  chunk: ['content_block_location', 'start_block_index', 'end_block_index'],
} as const;

const ANSWER: readonly Piece[] = [
  { text: 'It says: ' },
  {
    text: 'Ruby is of 1993',
    places: [
      ['char', 0, 0, 16],
      ['page', 1, 2, 3],
    ],
  },
  { text: ', and red', places: [['chunk', 2, 1, 2]] },
  { text: '.' },
];

function awsCitation([kind, documentIndex, start, end]: NonNullable<Piece['places']>[number]) {
  return {
    location: { [AWS_NAMES[kind]]: { documentIndex, start, end } },
    sourceContent: [{ text: 'Cited ' }, { text: 'text.' }],
    title: 'of AWS',
  };
}

function claudeCitation([kind, document_index, start, end]: NonNullable<Piece['places']>[number]) {
  const [type, from, to] = CLAUDE_NAMES[kind];
  return {
    type,
    cited_text: 'Cited text.',
    document_index,
    document_title: 'of Claude',
    [from]: start,
    [to]: end,
    file_id: null,
  };
}

type Order = 'citations first' | 'text first';

/** Converse's answer, streamed and not. */
function ofConverse(pieces: readonly Piece[], order: Order = 'citations first'): Script {
  const delta = (contentBlockIndex: number, of: object) =>
    event('contentBlockDelta', { contentBlockIndex, delta: of });
  const blocks = pieces.flatMap(({ text, places = [] }, index) => {
    const cited = places.map((place) => delta(index, { citation: awsCitation(place) }));
    const said = [...text].map((letter) => delta(index, { text: letter }));
    const both = order === 'text first' ? [...said, ...cited] : [...cited, ...said];
    return [...both, event('contentBlockStop', { contentBlockIndex: index })];
  });
  const whole = pieces.map(({ text, places = [] }) =>
    places.length === 0
      ? { text }
      : { citationsContent: { content: [{ text }], citations: places.map(awsCitation) } },
  );
  return (isStreamed) =>
    isStreamed
      ? {
          kind: 'answer',
          type: 'application/vnd.amazon.eventstream',
          pieces: [
            event('messageStart', { role: 'assistant' }),
            ...blocks,
            event('messageStop', { stopReason: 'end_turn' }),
            event('metadata', { usage: CONVERSE_USAGE }),
          ],
        }
      : converseAnswer(whole);
}

/** Claude's answer, streamed and not. */
function ofClaude(pieces: readonly Piece[], order: Order = 'citations first'): Script {
  const delta = (index: number, of: object) => frame('content_block_delta', { index, delta: of });
  const blocks = pieces.map(({ text, places = [] }, index) => {
    const cited = places.map((place) =>
      delta(index, { type: 'citations_delta', citation: claudeCitation(place) }),
    );
    const said = [...text].map((letter) => delta(index, { type: 'text_delta', text: letter }));
    const both = order === 'text first' ? [...said, ...cited] : [...cited, ...said];
    const content_block = { type: 'text', text: '', ...(places.length === 0 ? {} : { citations: [] }) };
    return [
      frame('content_block_start', { index, content_block }),
      ...both,
      frame('content_block_stop', { index }),
    ].join('');
  });
  const usage = { input_tokens: 5, output_tokens: 3 };
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'claude', content: [], usage };
  const whole = pieces.map(({ text, places }) => ({
    type: 'text',
    text,
    citations: places?.map(claudeCitation) ?? null,
  }));
  return (isStreamed) =>
    isStreamed
      ? sse(
          frame('message_start', { message }),
          ...blocks,
          frame('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
          frame('message_stop', {}),
        )
      : json({ ...message, content: whole, stop_reason: 'end_turn' });
}

interface Upstream {
  readonly model: string;
  /** The upstream's name of the model. */
  readonly name: string;
  readonly env: JsonObject;
  readonly answer: (pieces: readonly Piece[], order?: Order) => Script;
}

const UPSTREAMS: Readonly<Record<string, Upstream>> = {
  Converse: { model: `aws/${MODEL}`, name: MODEL, env: CONVERSE, answer: ofConverse },
  'Claude, translated': { model: 'cited', name: 'claude-opus-5-5', env: CLAUDE, answer: ofClaude },
};

function gatewayOf({ name, env }: Upstream, script: Script) {
  const routed = new RoutedGateway({ [name]: [script] }, env);
  const fetch = (url: string | URL | Request, init?: RequestInit) => {
    const { pathname, search } = new URL(url instanceof Request ? url.url : url);
    return routed.gateway.fetch(pathname + search, '', { ...init, signal: null });
  };
  return { routed, fetch };
}

type Content = readonly { readonly text?: string; readonly citations?: unknown }[];

/** What Anthropic's SDK makes of it, streamed and not. */
async function seenBy(upstream: Upstream, pieces: readonly Piece[], messages: object[], order?: Order) {
  const { fetch, routed } = gatewayOf(upstream, upstream.answer(pieces, order));
  const client = new Anthropic({ apiKey: 'x', baseURL: 'https://weir.example', maxRetries: 0, fetch });
  const request = {
    model: upstream.model,
    max_tokens: 99,
    messages: messages as Anthropic.MessageParam[],
  };
  const streamed = await client.messages.stream(request).finalMessage();
  const whole = await client.messages.create(request);
  await settle();
  const blocksOf = (content: Content) => content.map(({ text, citations }) => ({ text, citations }));
  return {
    streamed: blocksOf(streamed.content as Content),
    whole: blocksOf(whole.content as Content),
    routed,
  };
}

const place = (kind: Kind, index: number, title: string | null, start: number, end: number) => ({
  ...claudeCitation([kind, index, start, end]),
  document_title: title,
});
const FIRST = place('char', 0, 'The facts.txt', 0, 16);
const EXPECTED = [
  { text: 'It says: ', citations: [] },
  { text: 'Ruby is of 1993', citations: [FIRST, place('page', 1, null, 2, 3)] },
  { text: ', and red', citations: [place('chunk', 2, 'parts', 1, 2)] },
  { text: '.', citations: [] },
];

/** The text blocks of a stream. */
function blocksIn(text: string): JsonObject[] {
  const blocks: { type: string; text: string; citations: JsonObject[] }[] = [];
  for (const one of text.split('\n\n')) {
    const { type, delta } = decodeObject(one.replace(/^event: .*\ndata: /, '')) ?? {};
    const { text: piece = '', citation } = objectOf(delta);
    if (type === 'content_block_start') blocks.push({ type: 'text', text: '', citations: [] });
    const last = blocks.at(-1);
    if (type !== 'content_block_delta' || last === undefined) continue;
    last.text += String(piece);
    if (citation !== undefined) last.citations.push(objectOf(citation));
  }
  return blocks;
}

describe.each(Object.entries(UPSTREAMS))('I10 %s', (_, upstream) => {
  test(`random answers (SEED=${SEED}): every stream keeps the protocol, and has the blocks of the answer, as one that is not streamed`, async () => {
    const random = randomOf(SEED, 0);
    for (let round = 0; round < runsOf(8, 200); round++) {
      const pieces = Array.from({ length: 1 + random(6) }, (): Piece => {
        const kinds = Array.from({ length: random(3) }, () => pick<Kind>(random, ['char', 'page', 'chunk']));
        const places = kinds.map((kind) => [kind, random(4), random(9), random(9)] as const);
        return {
          text: pick(random, ['Ä', 'b \u2028', 'Cde', ' ']),
          ...(places.length === 0 ? {} : { places }),
        };
      });
      const answer = upstream.answer(pieces, pick<Order>(random, ['citations first', 'text first']));
      const { routed } = gatewayOf(upstream, answer);
      const messages = [user(...DOCUMENTS)] as JsonObject[];
      const fields = { model: upstream.model, max_tokens: 9, messages };
      const stream = await routed.ask({ ...fields, stream: true }, {}, '/v1/messages');
      const text = await stream.text();
      const whole = decodeObject(await (await routed.ask(fields, {}, '/v1/messages')).text());
      const titles = ['The facts.txt', null, 'parts'];
      const expected = pieces.map((piece) => ({
        type: 'text',
        text: piece.text,
        citations: (piece.places ?? []).flatMap(([kind, index, start, end]) => {
          const title = titles[Number(index)];
          return title === undefined ? [] : [place(kind, Number(index), title, Number(start), Number(end))];
        }),
      }));
      const seed = `SEED=${SEED}, round ${round}`;
      expect(checkMessages(text), seed).toEqual([]);
      expect(objectsOf(whole?.content), seed).toEqual(expected);
      expect(blocksIn(text), seed).toEqual(expected);
    }
  });

  test.each<Order>(['citations first', 'text first'])(
    'each text block has its citations, which name the client’s documents, streamed and not, %s',
    async (order) => {
      const { streamed, whole } = await seenBy(upstream, ANSWER, [user(...DOCUMENTS)], order);
      expect(whole).toEqual(EXPECTED);
      expect(streamed).toEqual(EXPECTED);
    },
  );

  test('the documents of all messages are counted, also those that are sent as a text', async () => {
    const history = [
      user(document(FACTS, {})),
      { role: 'assistant', content: 'In 1993.' },
      user(document(FACTS, { title: 'facts', citations })),
    ];
    const pieces: Piece[] = [{ text: 'Red.', places: [['char', 0, 17, 27]] }];
    const { streamed, whole } = await seenBy(upstream, pieces, history);
    for (const content of [streamed, whole])
      expect(content).toEqual([{ text: 'Red.', citations: [place('char', 1, 'facts', 17, 27)] }]);
  });

  test.each<[string, NonNullable<Piece['places']>[number]]>([
    ['a document that the request does not have', ['char', 3, 0, 5]],
    ['no document', ['char', undefined, 0, 5]],
    ['an index that is no number', ['char', '0', 0, 5]],
    ['a negative index', ['page', -1, 0, 5]],
    ['no start', ['char', 0, undefined, 5]],
    ['an end that is no number', ['chunk', 2, 0, 'x']],
  ])('a citation of %s is left out, and its text is whole', async (_name, wrong) => {
    const pieces: Piece[] = [{ text: 'Red.', places: [wrong, ['char', 0, 0, 16]] }, { text: ' Yes.' }];
    const { streamed, whole } = await seenBy(upstream, pieces, [user(...DOCUMENTS)]);
    for (const content of [streamed, whole]) {
      expect(content).toEqual([
        { text: 'Red.', citations: [FIRST] },
        { text: ' Yes.', citations: [] },
      ]);
    }
  });

  test('of documents behind one in a result no index is known: their citations are left out', async () => {
    const history = [
      user(document(FACTS, { title: 'The facts.txt', citations })),
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [document(PAPER, {})] }],
      },
      user(document(FACTS)),
    ];
    const pieces: Piece[] = [
      { text: 'A', places: [['char', 0, 0, 16]] },
      { text: 'B', places: [['char', 1, 0, 16]] },
      { text: 'C', places: [['char', 2, 0, 16]] },
    ];
    const { streamed, whole } = await seenBy(upstream, pieces, history);
    for (const content of [streamed, whole]) {
      expect(content).toEqual([
        { text: 'A', citations: [FIRST] },
        { text: 'B', citations: [] },
        { text: 'C', citations: [] },
      ]);
    }
  });

  test('of documents behind one in a system text no index is known', async () => {
    const system = [document(FACTS, {})] as JsonObject[];
    const { routed } = gatewayOf(upstream, upstream.answer([{ text: 'A', places: [['char', 0, 0, 16]] }]));
    const messages = [user(document(FACTS))] as JsonObject[];
    const fields = { model: upstream.model, max_tokens: 9, system, messages };
    const answer = decodeObject(await (await routed.ask(fields, {}, '/v1/messages')).text());
    expect(answer?.content).toEqual([{ type: 'text', text: 'A', citations: [] }]);
  });

  test('a request without documents to cite: the text is one block, as before', async () => {
    const { streamed, whole } = await seenBy(upstream, ANSWER, [user(document(FACTS, {}))]);
    const [text] = [ANSWER.map((piece) => piece.text).join('')];
    for (const content of [streamed, whole]) expect(content).toEqual([{ text, citations: [] }]);
  });

  test('chat, Responses and Gemini clients get the text alone', async () => {
    const file = { filename: 'p.pdf', file_data: 'data:application/pdf;base64,QUJD' };
    const part = { type: 'file', file, citations };
    const { routed } = gatewayOf(upstream, upstream.answer(ANSWER));
    for (const stream of [true, false]) {
      const messages = [{ role: 'user', content: [part, QUESTION] }];
      const body = await (await routed.ask({ model: upstream.model, stream, messages })).text();
      expect(body).not.toMatch(/cit(?:ed|ation)|begins_block|annotations/);
    }
    const messages = [{ role: 'user', content: [part, QUESTION] }];
    const got = await read(await routed.ask({ model: upstream.model, messages }));
    expect(got.text).toBe('It says: Ruby is of 1993, and red.');
  });

  test('AI SDK accepts them, and makes its sources of those in documents that it knows', async () => {
    const pieces: Piece[] = [{ text: 'In 1993.', places: [['page', 0, 1, 2]] }];
    const { fetch } = gatewayOf(upstream, upstream.answer(pieces));
    const anthropic = createAnthropic({ apiKey: 'x', baseURL: 'https://weir.example/v1', fetch });
    const { text, sources } = await generateText({
      model: anthropic(upstream.model),
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'file',
              data: 'QUJD',
              mediaType: 'application/pdf',
              filename: 'p.pdf',
              providerOptions: { anthropic: { citations } },
            },
            { type: 'text', text: 'When?' },
          ],
        },
      ],
    });
    expect(text).toBe('In 1993.');
    expect(sources).toMatchObject([
      {
        sourceType: 'document',
        providerMetadata: { anthropic: { citedText: 'Cited text.', startPageNumber: 1 } },
      },
    ]);
  });

  test('the answer in the next request: one text again, without its citations', async () => {
    const { routed } = await seenBy(upstream, ANSWER, [
      user(...DOCUMENTS),
      { role: 'assistant', content: EXPECTED.map((block) => ({ type: 'text', ...block })) },
      user(),
    ]);
    const [, answered] = objectsOf(routed.requests[0]?.body.messages);
    expect(objectsOf(answered?.content).map(({ text, citations: cited }) => ({ text, cited }))).toEqual([
      { text: 'It says: Ruby is of 1993, and red.', cited: undefined },
    ]);
  });
});

test('I10 a document in parts is cited by its parts: it is sent as they are', async () => {
  const sentBy = async (upstream: Upstream) => {
    const { routed } = await seenBy(upstream, ANSWER, [user(document(PARTS, { title: 'parts', citations }))]);
    return objectsOf(objectsOf(routed.requests[0]?.body.messages)[0]?.content)[0];
  };
  const { Converse, 'Claude, translated': Claude } = UPSTREAMS;
  expect([Converse && (await sentBy(Converse)), Claude && (await sentBy(Claude))]).toEqual([
    {
      document: {
        format: 'txt',
        name: 'parts',
        source: { content: [{ text: 'One.' }, { text: 'Two.' }] },
        citations,
      },
    },
    { type: 'document', source: PARTS, title: 'parts', citations },
  ]);
});

test('I10 Claude’s citations of a document in parts, one of which is blank, are left out: they would count other parts', async () => {
  const blank = { type: 'content', content: ['One.', ' ', 'Two.'].map((text) => ({ type: 'text', text })) };
  const { Converse } = UPSTREAMS;
  const pieces: Piece[] = [{ text: 'Two.', places: [['char', 0, 5, 9]] }];
  const seen = Converse && (await seenBy(Converse, pieces, [user(document(blank))]));
  expect(seen?.streamed).toEqual([{ text: 'Two.', citations: [] }]);
});

test('I10 a call between texts: each citation is in the block of its text', async () => {
  const delta = (contentBlockIndex: number, of: object) =>
    event('contentBlockDelta', { contentBlockIndex, delta: of });
  const stop = (contentBlockIndex: number) => event('contentBlockStop', { contentBlockIndex });
  const cited = (documentIndex: number) => ({ citation: awsCitation(['char', documentIndex, 0, 16]) });
  const toolUse = { toolUseId: 'tooluse_1', name: 'look' };
  const answer: Script = () => ({
    kind: 'answer',
    type: 'application/vnd.amazon.eventstream',
    pieces: [
      event('messageStart', { role: 'assistant' }),
      ...[delta(0, cited(0)), delta(0, { text: 'A' }), stop(0)],
      // A block without a text cites for the text before it.
      ...[delta(1, cited(0)), stop(1)],
      event('contentBlockStart', { contentBlockIndex: 2, start: { toolUse } }),
      ...[delta(2, { toolUse: { input: '{"a":1}' } }), stop(2)],
      // A citation of a block that never has a text, and no text before it.
      ...[delta(3, cited(0)), stop(3)],
      event('messageStop', { stopReason: 'tool_use' }),
      event('metadata', { usage: CONVERSE_USAGE }),
    ],
  });
  const { Converse } = UPSTREAMS;
  if (Converse === undefined) throw new Error('no upstream');
  const { fetch } = gatewayOf(Converse, answer);
  const client = new Anthropic({ apiKey: 'x', baseURL: 'https://weir.example', maxRetries: 0, fetch });
  const messages = [user(...DOCUMENTS)] as Anthropic.MessageParam[];
  const { content } = await client.messages
    .stream({ model: Converse.model, max_tokens: 99, messages })
    .finalMessage();
  expect(content).toMatchObject([
    { type: 'text', text: 'A', citations: [FIRST, FIRST] },
    { type: 'tool_use', input: { a: 1 } },
  ]);
});

const RECORDING = join(
  import.meta.dirname,
  ...['..', '..', '..', 'shared', 'streams', 'bedrock', 'bedrock--claude-citation.bin'],
);

test.runIf(existsSync(RECORDING))(
  'I10 the recorded citation of Converse reaches a Messages client',
  async () => {
    const { Converse } = UPSTREAMS;
    if (Converse === undefined) throw new Error('no upstream');
    const pieces = [new Uint8Array(readFileSync(RECORDING))];
    const { fetch } = gatewayOf(Converse, () => ({
      kind: 'answer',
      type: 'application/vnd.amazon.eventstream',
      pieces,
    }));
    const client = new Anthropic({ apiKey: 'x', baseURL: 'https://weir.example', maxRetries: 0, fetch });
    const messages = [user(document(FACTS, { title: 'facts', citations }))] as Anthropic.MessageParam[];
    const { content } = await client.messages
      .stream({ model: Converse.model, max_tokens: 99, messages })
      .finalMessage();
    const cited_text = 'The Ruby programming language was created by Yukihiro Matsumoto in 1993. ';
    expect(content).toEqual([
      {
        type: 'text',
        text: 'Ruby was created by Yukihiro Matsumoto in 1993.',
        citations: [{ ...place('char', 0, 'facts', 0, 73), cited_text }],
      },
    ]);
  },
);
