/** The upper bound of a prompt's tokens, compared with the counts of real providers. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  MAX_PROMPT_TOKENS,
  maxPromptTokens,
  maxSearches,
} from '../../../src/ledger/limits/usage-upper-bound.ts';
import type { JsonObject } from '../../../tools/simulator/json.ts';
import { decodeObject } from '../../../tools/simulator/json.ts';

const STREAMS = fileURLToPath(new URL('../../../../shared/streams/', import.meta.url).href);
const note = existsSync(STREAMS) ? '' : ' (skipped: ../shared/streams is not here)';

function bound(body: JsonObject, imageTokens?: number): number {
  return maxPromptTokens(body, JSON.stringify(body), imageTokens === undefined ? {} : { imageTokens }).tokens;
}

function user(...content: JsonObject[]): JsonObject {
  return { messages: [{ role: 'user', content }] };
}

/** The highest count of prompt tokens in a stream of any protocol. Anthropic reports cached tokens separately. */
function reportedTokens(stream: string): number {
  const highest = (names: string) =>
    Math.max(
      0,
      ...[...stream.matchAll(new RegExp(`"(?:${names})\\\\?":\\s*(\\d+)`, 'g'))].map(([, n]) => Number(n)),
    );
  return (
    highest('prompt_tokens|input_tokens|promptTokenCount') +
    highest('cache_read_input_tokens|cache_creation_input_tokens')
  );
}

interface Recorded {
  readonly name: string;
  readonly body: JsonObject;
  readonly reported: number;
}

function readRecorded(): Recorded[] {
  if (note !== '') return [];
  const files = readdirSync(STREAMS);
  return files
    .filter((file) => file.endsWith('.request.json'))
    .map((file) => {
      const name = file.slice(0, -'.request.json'.length);
      const stream = files.find((other) => other.startsWith(`${name}.`) && other !== file) ?? file;
      const body = decodeObject(readFileSync(STREAMS + file, 'utf8')) ?? {};
      return { name, body, reported: reportedTokens(readFileSync(STREAMS + stream, 'utf8')) };
    });
}

describe.skipIf(note !== '')(`G2 maxPromptTokens of a recorded request${note}`, () => {
  test.each(readRecorded())(
    '$name: is not below the $reported tokens that were counted',
    ({ body, reported }) => {
      expect(reported).toBeGreaterThan(0);
      expect(bound(body)).toBeGreaterThanOrEqual(reported);
    },
  );
});

test.runIf(note !== '')(`G2 maxPromptTokens is not compared with recordings${note}`, () => {
  expect(readRecorded()).toEqual([]);
});

describe('G9 what a prompt is likely to have', () => {
  const likely = (body: JsonObject) => maxPromptTokens(body, JSON.stringify(body)).likelyTokens;
  const search = { type: 'web_search' };
  const plain = { messages: [{ role: 'user', content: 'word '.repeat(2000) }] };

  test('with a search: half the bytes and the results of one search, though it may be read many times', () => {
    const body = { ...plain, tools: [search, { type: 'namespace', name: 'files', tools: [] }] };
    expect(bound(body)).toBe(MAX_PROMPT_TOKENS);
    expect(likely(body)).toBeGreaterThan(5000 + 8000);
    expect(likely(body)).toBeLessThan(5000 + 8000 + 1300);
  });

  test.each<[string, JsonObject]>([
    ['a tool that runs code', { tools: [search, { type: 'code_interpreter' }] }],
    ['a stored response', { tools: [search], previous_response_id: 'resp_1' }],
    [
      'a file',
      { tools: [search], messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }] },
    ],
  ])('with %s beside it: all that it may have', (_, fields) => {
    expect(likely({ ...plain, ...fields })).toBe(MAX_PROMPT_TOKENS);
  });
});

describe('G2 maxPromptTokens', () => {
  test('is never below the bytes of the texts, in any script', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
        const bytes = new TextEncoder().encode(a + b).length;
        const body = {
          messages: [
            { role: 'user', content: a },
            { role: 'user', content: [{ type: 'text', text: b }] },
          ],
        };
        expect(bound(body)).toBeGreaterThanOrEqual(bytes);
      }),
    );
  });

  test.each(['é', '中', '😀', '\n'])('a long text of %j: is not below its bytes', (character) => {
    const content = character.repeat(5000);
    const bytes = new TextEncoder().encode(content).length;
    expect(bound({ messages: [{ role: 'user', content }] })).toBeGreaterThanOrEqual(bytes);
  });

  test('an empty prompt: leaves room for what a provider adds', () => {
    expect(bound({})).toBeGreaterThan(735);
  });

  test('grows with tools by twice their size', () => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
    const bytes = JSON.stringify(tools).length;
    expect(bound({ tools }) - bound({})).toBeGreaterThanOrEqual(2 * bytes);
  });

  test('counts an image as the most tokens of an image at the provider, not by its bytes', () => {
    const small = user({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } });
    const large = user({ type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(1e6)}` } });
    expect(bound(small)).toBe(bound(large));
    expect(bound(small, 50_000) - bound(small)).toBe(50_000 - 16_384);
    const asMistral = user({ type: 'image_url', image_url: `data:image/png;base64,${'A'.repeat(1e6)}` });
    expect(bound(asMistral)).toBeLessThan(100_000);
  });

  test.each([
    ['a file by its id', user({ type: 'file', file: { file_id: 'f' } })],
    ['a document by its address', user({ type: 'document_url', document_url: 'https://a.example/b.pdf' })],
    ['an image by its address', user({ type: 'image_url', image_url: { url: 'https://a.example/b.png' } })],
    ['a video by its address', user({ type: 'video_url', video_url: { url: 'https://a.example/b.mp4' } })],
    ['a part of an unknown kind', user({ type: 'hologram', of: 'a cat' })],
    ['a tool that the provider runs', { tools: [{ type: 'web_search' }] }],
    ['a search', { web_search_options: {} }],
    ['what a cache holds', { cached_content: 'cachedContents/1' }],
    ["what an endpoint's own words hold", { extra_body: { google: { cached_content: 'cachedContents/1' } } }],
    ['an agent with instructions of its own', { agent_id: 'a' }],
    ['a prompt that is kept', { prompt: { id: 'pmpt_1' } }],
    ['a response that is gone on with', { previous_response_id: 'resp_1' }],
    ['a conversation that is kept', { conversation: 'conv_1' }],
    ['a container', { container: { skills: [] } }],
    ['servers of tools', { mcp_servers: [{ url: 'https://a.example' }] }],
  ])('of %s: is the largest context window', (_, body) => {
    expect(bound(body)).toBe(MAX_PROMPT_TOKENS);
  });

  test.each([
    ['a file', user({ type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } })],
    ['a sound', user({ type: 'input_audio', input_audio: { data: 'AAAA' } })],
    ['a document', user({ type: 'document_url', document_url: 'data:application/pdf;base64,AAAA' })],
    [
      'a video called an image',
      user({ type: 'image_url', image_url: { url: 'data:video/mp4;base64,AAAA' } }),
    ],
  ])('of %s in the body, whose tokens its bytes do not bound: is the largest context window', (_, body) => {
    expect(bound(body)).toBe(MAX_PROMPT_TOKENS);
  });

  test.each([
    ['an image in the input of embeddings', { input: [{ image: 'https://a.example/b.png' }] }],
    ['an image in an unknown field', { images: ['https://a.example/b.png'], messages: [] }],
    ['an address in an unknown field', { image: 'https://a.example/b.png', messages: [] }],
    ['content that is an object', { messages: [{ role: 'user', content: { url: 'https://a.example' } }] }],
    [
      'content that is a list in a list',
      { messages: [{ role: 'user', content: [[{ type: 'text', text: 'a' }]] }] },
    ],
    ["Ollama's images", { messages: [{ role: 'user', content: 'Hi', images: ['https://a.example/b.png'] }] }],
    [
      'an image beside the text of a part',
      user({ type: 'text', text: 'a', image_url: { url: 'https://a.example/b' } }),
    ],
    [
      'an image within thinking',
      user({ type: 'thinking', thinking: [{ type: 'image_url', image_url: { url: 'x' } }] }),
    ],
    [
      'a result of a tool with an image',
      { messages: [{ role: 'tool', tool_call_id: 'c', content: [{ type: 'image', source: {} }] }] },
    ],
    ['a flag that may add results of a search', { messages: [], enable_search: true }],
    ['a number of an unknown field', { messages: [], context_chunks: 8 }],
    ['a template of its own', { messages: [], chat_template: '{% for i in range(99999) %}x{% endfor %}' }],
    ['documents for a template', { messages: [], chat_template_kwargs: { documents: [{ text: 'a' }] } }],
    ['a prediction with an image', { messages: [], prediction: { content: [{ type: 'image_url' }] } }],
    ['an address in a mark', user({ type: 'text', text: 'a', cache_control: { href: 'https://a.example' } })],
    [
      'an unknown member of a call',
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'c', blob: 'AAAA' }] }] },
    ],
    ['messages that are no list', { messages: { role: 'user', content: 'Hi' } }],
    ['a message that is no object', { messages: ['https://a.example/b.png'] }],
  ])('of %s, a shape that is not known: is the largest context window', (_, body: JsonObject) => {
    expect(bound(body)).toBe(MAX_PROMPT_TOKENS);
  });

  test('of every known shape: follows from its bytes', () => {
    const body: JsonObject = {
      model: 'm',
      messages: [
        {
          role: 'system',
          content: [{ type: 'text', text: 'Be brief', cache_control: { type: 'ephemeral' } }],
        },
        { role: 'user', name: 'ada', content: ['Hi', { text: 'there' }] },
        {
          role: 'assistant',
          content: null,
          prefix: true,
          reasoning_content: 'Well',
          reasoning_details: [
            { type: 'reasoning.text', text: 'W', signature: 's', format: 'anthropic-claude-v1', index: 0 },
          ],
          thinking_blocks: [{ type: 'thinking', thinking: 'W', signature: 's' }],
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"image_url":1}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: '{"a":1}' },
        {
          role: 'assistant',
          content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'W' }], signature: 's' }],
        },
      ],
      tools: [
        {
          type: 'function',
          function: { name: 'f', parameters: { properties: { image_url: { type: 'string' } } } },
        },
      ],
      response_format: { type: 'json_object' },
      stop: ['end'],
      temperature: 0.5,
      min_p: 0.1,
      enable_search: false,
      chat_template_kwargs: { enable_thinking: false },
      prediction: { type: 'content', content: [{ type: 'text', text: 'W' }] },
      user: 'u',
      metadata: { a: 'b' },
      stream_options: { include_usage: true },
    };
    expect(bound(body)).toBeLessThan(4000);
    expect(bound({ model: 'm', input: [[1, 2], [3]] })).toBeLessThan(2000);
    expect(bound({ model: 'm', prompt: ['Once', 'upon'], suffix: 'end' })).toBeLessThan(2000);
  });

  test('of a random value in any place that has something of a media part: is the largest context window', () => {
    const part = fc.constantFrom<JsonObject>(
      { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
      { type: 'input_image', image_url: 'https://a.example/b.png' },
      { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } },
      { inline_data: { mime_type: 'video/mp4', data: 'AAAA' } },
      { file_data: { file_uri: 'gs://a' } },
      { type: 'video_url', video_url: { url: 'https://a.example/b.mp4' } },
      { image: 'https://a.example/b.png' },
      { href: 'https://a.example/b.png' },
      { blob: 'AAAA' },
      { of: [{ asset: 7 }] },
    );
    const { wrapped } = fc.letrec((tie) => ({
      wrapped: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        part,
        fc.tuple(tie('wrapped')).map((list) => list),
        fc
          .tuple(
            fc.constantFrom('content', 'text', 'thinking', 'parts', 'x', 'image_url', 'refusal'),
            tie('wrapped'),
          )
          .map(([name, inner]) => ({ [name]: inner })),
      ),
    }));
    const place = fc.constantFrom<(value: never) => JsonObject>(
      (value) => ({ messages: [{ role: 'user', content: value }] }),
      (value) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }, value] }] }),
      (value) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: value }] }] }),
      (value) => ({ messages: [{ role: 'user', content: [{ type: 'thinking', thinking: value }] }] }),
      (value) => ({ messages: [{ role: 'user', content: 'Hi', images: value }] }),
      (value) => ({ messages: [{ role: 'assistant', content: 'Hi', tool_calls: [value] }] }),
      (value) => ({ messages: [{ role: 'assistant', content: 'Hi', annotations: value }] }),
      (value) => ({ messages: [value] }),
      (value) => ({ messages: value }),
      (value) => ({ input: [value] }),
      (value) => ({ prompt: [value] }),
      (value) => ({ messages: [], extra: value }),
    );
    fc.assert(
      fc.property(wrapped, place, (value, put) => {
        const body = put(value as never);
        const isImage = JSON.stringify(body).includes('data:image/');
        expect(bound(body)).toBeGreaterThanOrEqual(isImage ? 0 : MAX_PROMPT_TOKENS);
      }),
    );
  });

  test('an allowance for what is added is left out where nothing is', () => {
    const body = { input: 'Hello' };
    const json = JSON.stringify(body);
    const { tokens } = maxPromptTokens(body, json, { addedTokens: 0 });
    expect(maxPromptTokens(body, json).tokens - tokens).toBe(1024);
  });

  test('is at most one context window for each prompt', () => {
    expect(bound({ prompt: 'a'.repeat(3 * MAX_PROMPT_TOKENS) })).toBe(MAX_PROMPT_TOKENS);
    const two = ['a'.repeat(2 * MAX_PROMPT_TOKENS), 'b'.repeat(2 * MAX_PROMPT_TOKENS)];
    expect(bound({ prompt: two })).toBe(2 * MAX_PROMPT_TOKENS);
  });
});

test.each<[what: string, body: JsonObject, searches: number | null]>([
  ['no tools', {}, 0],
  ["the caller's own tools", { tools: [{ type: 'function', function: { name: 'web_search' } }] }, 0],
  [
    "Claude's with max_uses",
    { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }] },
    8,
  ],
  ["Claude's without", { tools: [{ type: 'web_search_20260209', name: 'web_search' }] }, null],
  ["Responses'", { tools: [{ type: 'web_search' }] }, null],
  ["Responses' with max_tool_calls", { tools: [{ type: 'web_search_preview' }], max_tool_calls: 3 }, 3],
  ["xAI's", { tools: [{ type: 'x_search' }] }, null],
  ["Google's", { tools: [{ googleSearch: {} }] }, null],
  ['options of a chat', { web_search_options: {} }, null],
])('G2 searches that %s allows: %s', (_, body, searches) => {
  expect(maxSearches(body)).toBe(searches);
});

describe('G2 a model with a known context window', () => {
  const WINDOW = 200_000;
  const inWindow = (body: JsonObject) =>
    maxPromptTokens(body, JSON.stringify(body), { window: WINDOW }).tokens;
  const pdf = { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } };

  test('a file, whose pages the body does not show, is bounded by the window', () => {
    expect(inWindow(user(pdf))).toBe(WINDOW);
    expect(bound(user(pdf))).toBe(MAX_PROMPT_TOKENS);
  });

  test('a longer text is bounded by the window', () => {
    expect(inWindow(user({ type: 'text', text: 'a'.repeat(2 * WINDOW) }))).toBe(WINDOW);
  });

  test.each<[string, JsonObject]>([
    ['a tool of the provider', { tools: [{ type: 'web_search' }] }],
    ['MCP servers', { mcp_servers: [] }],
    ['an unknown field', { rounds: { most: 9 } }],
  ])('%s: the provider may read several times, and the window is no bound', (_, fields) => {
    expect(inWindow({ ...user(pdf), ...fields })).toBe(MAX_PROMPT_TOKENS);
  });
});
