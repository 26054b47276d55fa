/** Bedrock's Converse through the whole gateway: which models it serves, what is sent, what comes back, and what fails. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { MAX_FINISH_WAIT_MS } from '../../src/stream/relay.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import {
  converseMessages,
  converseNote,
  converseRecordings,
  readConverse,
} from '../contract/reference-converse.ts';
import { readSettings } from '../settings/read-settings.ts';
import { event, joined, message } from '../stream/eventstream-messages.ts';
import { CLIENTS, gatewayFetch } from './sdk-clients.ts';
import {
  converseAnswer as answer,
  type Behavior,
  CONVERSE_USAGE,
  json,
  RoutedGateway,
  read,
  refuse,
  settle,
} from './upstreams.ts';

const ENV = { AWS_BEARER_TOKEN_BEDROCK: 'key-of-aws', AWS_REGION: 'eu-central-1' };
const RUNTIME = 'https://bedrock-runtime.eu-central-1.amazonaws.com';
const NOVA = 'us.amazon.nova-micro-v1:0';
const KIMI = 'moonshot.kimi-k2-thinking';
const MISTRAL = 'mistral.mistral-large-2402-v1:0';
/** All models by Converse. */
const ENTRY = {
  base_url: 'https://aws.example',
  api_key: 'AWS_KEY',
  like: 'bedrock',
  api: 'bedrock-converse',
};
const ENTRY_ENV = { AWS_KEY: 'k', PROVIDERS: { aws: ENTRY } };
const CLAUDE = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';

const EVENTS = 'application/vnd.amazon.eventstream';
const START = event('messageStart', { role: 'assistant' });
const STOP = event('messageStop', { stopReason: 'end_turn' });
const METADATA = event('metadata', { usage: CONVERSE_USAGE });

function stream(...pieces: Uint8Array[]): Behavior {
  return { kind: 'answer', type: EVENTS, pieces };
}

function delta(contentBlockIndex: number, of: object): Uint8Array {
  return event('contentBlockDelta', { contentBlockIndex, delta: of });
}

function end(contentBlockIndex: number): Uint8Array {
  return event('contentBlockStop', { contentBlockIndex });
}

const HELLO = stream(START, delta(0, { text: 'Here.' }), end(0), STOP, METADATA);

/** The beginning of a message, with a right checksum. */
function prelude(length: number, headersLength: number): Uint8Array {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt32BE(length, 0);
  bytes.writeUInt32BE(headersLength, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
  return bytes;
}

const EMPTY = joined(Array.from({ length: 1000 }, () => message({}, '')));
const TORN = event('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'no' } }).with(60, 0);

const WHOLE = answer();
const answerBoth = (isStreamed: boolean) => (isStreamed ? HELLO : WHOLE);

interface Asked {
  readonly model?: string;
  readonly env?: JsonObject;
  readonly path?: string;
  readonly headers?: Record<string, string>;
}

/** The request that AWS gets for the client's. */
async function sent(fields: JsonObject, { model = NOVA, env = ENV, path, headers = {} }: Asked = {}) {
  const routed = new RoutedGateway({ [model]: [answerBoth] }, env);
  const provider = env === ENV ? 'bedrock' : 'aws';
  const response = await routed.ask({ model: `${provider}/${model}`, ...fields }, { headers }, path);
  const got = await read(response);
  await settle();
  const request = routed.requests[0];
  return { got, request, body: request?.body ?? {}, record: routed.records[0], routed };
}

const ofEntry = (model: string): Asked => ({ model, env: ENTRY_ENV });

describe('W8 Converse, its models', () => {
  test.each([
    NOVA,
    'amazon.nova-2-lite-v1:0',
    'us.meta.llama4-maverick-17b-instruct-v1:0',
    'meta.llama3-2-1b-instruct-v1:0',
    'mistral.mistral-7b-instruct-v0:2',
    'us.deepseek.r1-v1:0',
    'qwen.qwen3-32b-v1:0',
    'cohere.command-r-v1:0',
    'us.writer.palmyra-x4-v1:0',
    KIMI,
    'arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/a1b2',
  ])('%s: is called by its name in the path, streamed and not, with the key as bearer', async (model) => {
    const id = encodeURIComponent(model);
    const streamed = await sent({ stream: true }, { model });
    expect(streamed.got).toMatchObject({ status: 200, text: 'Here.', finishes: ['stop'], isDone: true });
    expect(streamed.request?.url).toBe(`${RUNTIME}/model/${id}/converse-stream`);
    expect(streamed.request?.headers.get('accept')).toBe(EVENTS);
    const whole = await sent({}, { model });
    expect(whole.got).toMatchObject({ status: 200, text: 'Here.', finishes: ['stop'] });
    expect(whole.request?.url).toBe(`${RUNTIME}/model/${id}/converse`);
    expect(whole.request?.headers.get('accept')).toBe('application/json');
    for (const { request } of [streamed, whole]) {
      expect(request?.headers.get('authorization')).toBe('Bearer key-of-aws');
      expect(Object.keys(request?.body ?? {})).toEqual(['messages']);
    }
  });

  test('BEDROCK_BASE_URL replaces the host alone', async () => {
    const env = { ...ENV, BEDROCK_BASE_URL: 'https://proxy.example/' };
    const routed = new RoutedGateway({ [NOVA]: [answerBoth] }, env);
    await read(await routed.ask({ model: `bedrock/${NOVA}` }));
    expect(routed.requests[0]?.url).toBe(`https://proxy.example/model/${encodeURIComponent(NOVA)}/converse`);
  });

  test.each([CLAUDE, 'openai.gpt-oss-120b-1:0', NOVA, 'my-model'])(
    'an entry with api bedrock-converse: %s is called by Converse',
    async (model) => {
      const { got, request } = await sent({ stream: true }, ofEntry(model));
      expect(got.text).toBe('Here.');
      expect(request?.url).toBe(`https://aws.example/model/${encodeURIComponent(model)}/converse-stream`);
    },
  );

  test.each<[entry: JsonObject, message: string]>([
    [{ api: 'bedrock-converse' }, 'api can be bedrock-converse only with "like": "bedrock"'],
    [{ like: 'openai', api: 'bedrock-converse' }, 'api can be bedrock-converse only with "like": "bedrock"'],
    [
      { like: 'bedrock', guardrailConfig: {} },
      'guardrailConfig needs "like": "bedrock" and "api": "bedrock-converse"',
    ],
    [
      { like: 'bedrock', api: 'bedrock-converse', guardrailConfig: 'g' },
      'guardrailConfig must be an object with guardrailIdentifier and guardrailVersion',
    ],
  ])('an entry %j: is misconfigured', (entry, text) => {
    const settings = readSettings({ PROVIDERS: { aws: { base_url: 'https://aws.example', ...entry } } });
    expect(settings).toMatchObject({ problems: [{ setting: 'PROVIDERS', message: `aws: ${text}` }] });
  });
});

const note = converseNote;
const WHOLE_FOLDER = join(import.meta.dirname, '..', '..', '..', 'shared', 'streams', 'whole');
const wholes = existsSync(WHOLE_FOLDER)
  ? readdirSync(WHOLE_FOLDER)
      .filter((name) => /^bedrock--.*\.json$/.test(name) && !name.endsWith('.request.json'))
      .map((name) => [name, decodeObject(readFileSync(join(WHOLE_FOLDER, name), 'utf8')) ?? {}] as const)
  : [];

const FINISHES: Readonly<Record<string, readonly [chat: string, messages: string, responses: string]>> = {
  end_turn: ['stop', 'end_turn', 'completed'],
  tool_use: ['tool_calls', 'tool_use', 'completed'],
  max_tokens: ['length', 'max_tokens', 'max_output_tokens'],
  guardrail_intervened: ['content_filter', 'refusal', 'content_filter'],
};

const GEMINI_FINISHES: Readonly<Record<string, string>> = {
  ...{ stop: 'STOP', tool_calls: 'STOP', length: 'MAX_TOKENS', content_filter: 'SAFETY' },
};

function finishFor(client: string, stopReason: string): string | undefined {
  const [chat, messages, responses] = FINISHES[stopReason] ?? [];
  if (client.startsWith('chat')) return chat;
  if (client.startsWith('Gemini')) return GEMINI_FINISHES[chat ?? ''];
  return client.startsWith('Messages') ? messages : responses;
}

describe.skipIf(note !== '')(`A10 recordings of Converse through the official SDKs${note}`, () => {
  describe.each(converseRecordings().map(({ name, bytes }) => [name, bytes] as const))('%s', (_, bytes) => {
    const messages = converseMessages(bytes);
    const expected = readConverse(messages, 'bedrock').choices.get(0);
    const stop = textOf(messages.find(({ type }) => type === 'messageStop')?.payload.stopReason);

    test.each(Object.entries(CLIENTS))('%s: reads what was recorded', async (client, readAs) => {
      const pieces = [bytes.subarray(0, 777), bytes.subarray(777)];
      const behavior: Behavior = { kind: 'answer', type: EVENTS, pieces };
      const seen = await readAs(gatewayFetch(behavior, { env: ENV, model: NOVA }), `bedrock/${NOVA}`);
      const { text, reasoning, calls, finish } = seen;
      expect({ text, reasoning, calls: calls.map(([name, args]) => [name, JSON.parse(args)]) }).toEqual({
        text: expected?.text,
        reasoning: expected?.reasoning,
        calls: expected?.toolCalls.map((call) => [call.name, JSON.parse(call.arguments)]),
      });
      expect(finish).toBe(finishFor(client, stop));
    });
  });

  describe.each(wholes)('%s', (_, response) => {
    const blocks = objectsOf(objectOf(objectOf(response.output).message).content);
    const calls = blocks
      .map(({ toolUse }) => objectOf(toolUse))
      .filter(({ name, type }) => name !== undefined && type !== 'server_tool_use');

    test.each(Object.entries(CLIENTS))('%s: reads what was recorded', async (client, readAs) => {
      const seen = await readAs(gatewayFetch(json(response), { env: ENV, model: NOVA }), `bedrock/${NOVA}`);
      const cited = (block: JsonObject) => objectsOf(objectOf(block.citationsContent).content);
      const text = blocks.flatMap((block) => [block, ...cited(block)]).map((block) => textOf(block.text));
      const thoughts = blocks.map(({ reasoningContent }) =>
        objectOf(objectOf(reasoningContent).reasoningText),
      );
      expect(seen.text).toBe(text.join(''));
      expect(seen.reasoning).toBe(thoughts.map((thought) => textOf(thought.text)).join(''));
      expect(seen.calls.map(([name, args]) => [name, JSON.parse(args)])).toEqual(
        calls.map(({ name, input }) => [name, input]),
      );
      expect(seen.finish).toBe(finishFor(client, textOf(response.stopReason)));
    });
  });
});

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const TOOLS = [
  { type: 'function', function: { name: 'weather', description: 'Says it', parameters: SCHEMA } },
];
const SPEC = { toolSpec: { name: 'weather', description: 'Says it', inputSchema: { json: SCHEMA } } };
const call = (id: string) => ({
  role: 'assistant',
  content: '',
  tool_calls: [{ id, type: 'function', function: { name: 'weather', arguments: '{"city":"Paris"}' } }],
});
const result = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content });

describe('A11 Converse, requests', () => {
  test('system, settings, stop sequences and tools: have their places', async () => {
    const { body, got } = await sent({
      messages: [
        { role: 'system', content: 'Be brief' },
        { role: 'user', content: 'Hello' },
      ],
      ...{ max_tokens: 64, temperature: 0.5, top_p: 0.9, stop: ['END', ''], top_k: 10, user: 'u' },
      tools: TOOLS,
      tool_choice: 'required',
    });
    expect(body).toEqual({
      messages: [{ role: 'user', content: [{ text: 'Hello' }] }],
      system: [{ text: 'Be brief' }],
      inferenceConfig: { maxTokens: 64, temperature: 0.5, topP: 0.9, stopSequences: ['END'] },
      toolConfig: { tools: [SPEC], toolChoice: { any: {} } },
      additionalModelRequestFields: { inferenceConfig: { topK: 10 } },
    });
    expect(got.headers.get('x-weir-dropped')).toBeNull();
  });

  test.each<[choice: unknown, expected: unknown]>([
    ['auto', undefined],
    ['required', { any: {} }],
    [{ type: 'function', function: { name: 'weather' } }, { tool: { name: 'weather' } }],
  ])('tool_choice %j: %j', async (tool_choice, expected) => {
    const { body } = await sent({ tools: TOOLS, tool_choice: tool_choice as JsonObject });
    expect(objectOf(body.toolConfig).toolChoice).toEqual(expected);
  });

  test('tool_choice none: no tools, unless the history has calls', async () => {
    expect((await sent({ tools: TOOLS, tool_choice: 'none' })).body.toolConfig).toBeUndefined();
    const messages = [{ role: 'user', content: 'Hi' }, call('t1'), result('t1', 'Rain')];
    const { body } = await sent({ messages, tools: TOOLS, tool_choice: 'none' });
    expect(body.toolConfig).toEqual({ tools: [SPEC] });
  });

  test('calls and results: alternate, results first, and empty texts are not sent', async () => {
    const { body } = await sent({
      messages: [
        { role: 'user', content: '' },
        {
          role: 'user',
          content: [
            { type: 'text', text: ' ' },
            { type: 'text', text: 'Hi' },
          ],
        },
        call('tooluse_a-b'),
        { role: 'user', content: 'And?' },
        result('tooluse_a-b', ''),
      ],
      tools: TOOLS,
    });
    expect(body.messages).toEqual([
      { role: 'user', content: [{ text: 'Hi' }] },
      {
        role: 'assistant',
        content: [{ toolUse: { toolUseId: 'tooluse_a-b', name: 'weather', input: { city: 'Paris' } } }],
      },
      {
        role: 'user',
        content: [
          { toolResult: { toolUseId: 'tooluse_a-b', content: [{ text: '(no output)' }] } },
          { text: 'And?' },
        ],
      },
    ]);
  });

  test('a history with calls and no tools: the tools of the history, reported', async () => {
    const messages = [{ role: 'user', content: 'Hi' }, call('t1'), result('t1', 'Rain')];
    const { body, got } = await sent({ messages });
    expect(body.toolConfig).toEqual({
      tools: [{ toolSpec: { name: 'weather', inputSchema: { json: { type: 'object', properties: {} } } } }],
    });
    expect(got.headers.get('x-weir-changed')).toBe('tools');
    const orphan = await sent({ messages: [{ role: 'user', content: 'Hi' }, result('t1', 'Rain')] });
    expect(objectsOf(objectOf(orphan.body.toolConfig).tools)).toHaveLength(1);
  });

  test('a conversation that begins with the assistant, and one of a system message alone: have a message of the user', async () => {
    const first = await sent({
      messages: [
        { role: 'assistant', content: 'Hi' },
        { role: 'user', content: 'Yes?' },
      ],
    });
    expect(objectsOf(first.body.messages).map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    const alone = await sent({ messages: [{ role: 'system', content: 'Be brief' }] });
    expect(alone.body).toEqual({ messages: [{ role: 'user', content: [{ text: 'Be brief' }] }] });
  });

  test('a failed result of Messages: has its status; where the family takes none it says so alone', async () => {
    const fields = {
      max_tokens: 64,
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'toolu_1', is_error: true, content: 'No such city' }],
        },
      ],
      tools: [{ name: 'weather', input_schema: SCHEMA }],
    };
    const resultOf = ({ body }: { body: JsonObject }) =>
      objectOf(objectsOf(objectsOf(body.messages)[2]?.content)[0]?.toolResult);
    const content = [{ text: 'Error: No such city' }];
    expect(resultOf(await sent(fields, { path: '/v1/messages' }))).toMatchObject({
      status: 'error',
      content,
    });
    const writer = await sent(fields, { path: '/v1/messages', model: 'us.writer.palmyra-x4-v1:0' });
    expect(resultOf(writer)).toEqual({ toolUseId: 'toolu_1', content });
  });

  test('ids of calls: nine letters and digits for Mistral’s models, others as they came where AWS takes them', async () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      call('functions.weather:0'),
      result('functions.weather:0', 'Rain'),
    ];
    const ids = async (model: string) => {
      const { body } = await sent({ messages, tools: TOOLS }, { model });
      const blocks = objectsOf(body.messages).flatMap(({ content }) => objectsOf(content));
      return blocks.flatMap(({ toolUse, toolResult }) => {
        const { toolUseId } = objectOf(toolUse ?? toolResult);
        return toolUseId === undefined ? [] : [toolUseId];
      });
    };
    expect(await ids(KIMI)).toEqual(['functions.weather:0', 'functions.weather:0']);
    const [id, other] = await ids(MISTRAL);
    expect(id).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(other).toBe(id);
  });

  test('a choice of one tool at a model without such a choice: that tool alone, and any', async () => {
    const other = { type: 'function', function: { name: 'other', parameters: SCHEMA } };
    const fields = {
      tools: [...TOOLS, other],
      tool_choice: { type: 'function', function: { name: 'weather' } },
    };
    const { body } = await sent(fields, { model: MISTRAL });
    expect(body.toolConfig).toEqual({ tools: [SPEC], toolChoice: { any: {} } });
  });

  test('Nova’s schemas: references are written out, also one that contains itself', async () => {
    const parameters = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/A' } },
      $defs: { A: { type: 'object', properties: { b: { $ref: '#/$defs/A' }, c: { type: 'string' } } } },
    };
    const fields = { tools: [{ type: 'function', function: { name: 'f', parameters } }] };
    const schemaOf = async (model: string) => {
      const { toolConfig } = (await sent(fields, { model })).body;
      return objectOf(objectOf(objectsOf(objectOf(toolConfig).tools)[0]?.toolSpec).inputSchema).json;
    };
    expect(await schemaOf(NOVA)).toEqual({
      type: 'object',
      properties: { a: { type: 'object', properties: { b: { type: 'object' }, c: { type: 'string' } } } },
    });
    expect(await schemaOf('meta.llama3-2-1b-instruct-v1:0')).toEqual(parameters);
  });

  test('images, documents and videos: as data, with names in AWS’s alphabet that differ, and a text beside them', async () => {
    const file = (filename: string, type = 'application/pdf') => ({
      type: 'file',
      file: { filename, file_data: `data:${type};base64,QUJD` },
    });
    const { body } = await sent({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url: 'data:image/jpg;base64,QUJD' } },
            file('Bericht_2026 (é)  v1.2.pdf'),
            file('Bericht_2026 (é)  v1.2.pdf'),
            file('???', 'text/x-log'),
            { type: 'video_url', video_url: { url: 's3://bucket/film.mp4' } },
          ],
        },
      ],
    });
    const source = { bytes: 'QUJD' };
    expect(objectsOf(body.messages)[0]?.content).toEqual([
      { image: { format: 'jpeg', source } },
      { document: { format: 'pdf', name: 'Bericht-2026 (e) v1-2', source } },
      { document: { format: 'pdf', name: 'Bericht-2026 (e) v1-2 (2)', source } },
      { document: { format: 'txt', name: 'document', source } },
      { video: { format: 'mp4', source: { s3Location: { uri: 's3://bucket/film.mp4' } } } },
      { text: 'See the attached document.' },
    ]);
  });

  const facts = { type: 'text', media_type: 'text/plain', data: 'Ruby is of 1993.' };
  const paper = { type: 'base64', media_type: 'application/pdf', data: 'QUJD' };
  const citations = { enabled: true };
  const ofMessages = (...content: object[]): JsonObject => ({
    max_tokens: 64,
    messages: [{ role: 'user', content: [...content, { type: 'text', text: 'When?' }] as JsonObject[] }],
  });

  test('documents of Messages that are to be cited: with citations at Claude, a text as the text alone, with its context', async () => {
    const fields = ofMessages(
      { type: 'document', title: 'facts', context: 'A wiki.', source: facts, citations },
      { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'A' }] }, citations },
      { type: 'document', title: 'p.pdf', source: paper, context: 'Old.', citations },
      { type: 'document', title: 'q', source: paper, citations: { enabled: false } },
      { type: 'document', source: facts },
    );
    const { body, got } = await sent(fields, { ...ofEntry(CLAUDE), path: '/v1/messages' });
    expect(objectsOf(body.messages)[0]?.content).toEqual([
      {
        document: {
          format: 'txt',
          name: 'facts',
          source: { text: facts.data },
          context: 'A wiki.',
          citations,
        },
      },
      { document: { format: 'txt', name: 'document', source: { content: [{ text: 'A' }] }, citations } },
      { document: { format: 'pdf', name: 'p', source: { bytes: 'QUJD' }, context: 'Old.', citations } },
      { document: { format: 'pdf', name: 'q', source: { bytes: 'QUJD' } } },
      { text: facts.data },
      { text: 'When?' },
    ]);
    expect(got.headers.get('x-weir-dropped')).toBeNull();
  });

  test.each([
    ['us.anthropic.claude-3-7-sonnet-20250219-v1:0', true],
    ['global.anthropic.claude-opus-5-5', true],
    ['anthropic.claude-3-haiku-20240307-v1:0', false],
    [NOVA, false],
    ['meta.llama3-2-1b-instruct-v1:0', false],
  ])(
    '%s, citations of a document are sent: %s; otherwise they are reported as dropped',
    async (model, isSent) => {
      const fields = ofMessages(
        { type: 'document', title: 'facts', source: facts, citations },
        { type: 'document', title: 'p', source: paper, citations },
      );
      const { body, got } = await sent(fields, { ...ofEntry(model), path: '/v1/messages' });
      const blocks = objectsOf(objectsOf(body.messages)[0]?.content);
      expect(got.headers.get('x-weir-dropped')).toBe(isSent ? null : 'messages.content.citations');
      expect(blocks.map(({ document }) => objectOf(document).citations)).toEqual(
        isSent ? [citations, citations, undefined] : blocks.map(() => undefined),
      );
      if (!isSent) expect(blocks[0]).toEqual({ text: `facts\n${facts.data}` });
    },
  );

  test.each([true, false])(
    'a document to be cited in a result, a system text or of another format, alone: %s: dropped, reported',
    async (isAlone) => {
      const document = { type: 'document', source: facts, citations };
      const sheet = { ...document, source: { ...paper, media_type: 'text/csv' } };
      const content = isAlone ? [document] : [document, sheet];
      const messages = [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }] },
      ];
      const asked = { ...ofEntry(CLAUDE), path: '/v1/messages' };
      const bodies: JsonObject[] = [
        { max_tokens: 64, messages },
        { max_tokens: 64, system: [document] as JsonObject[], messages: messages.slice(0, 1) },
        ofMessages(sheet),
      ];
      for (const fields of bodies) {
        const { body, got } = await sent(fields, asked);
        expect(got.status).toBe(200);
        expect(JSON.stringify(body)).not.toContain('citations');
        expect(got.headers.get('x-weir-dropped')).toContain('messages.content.citations');
      }
    },
  );

  test.each([
    [400, "This model doesn't support citations."],
    [400, 'Citations are not supported in tool result documents.'],
    [
      400,
      "This model doesn't support the toolConfig.toolChoice.tool field. Remove toolConfig.toolChoice.tool and try again.",
    ],
    [400, "This model doesn't support documents."],
  ])('a refusal of what Weir never changes: %s "%s", once, in its words', async (status, message) => {
    const refused = { kind: 'refuse', status, body: JSON.stringify({ message }) } as const;
    const routed = new RoutedGateway({ [CLAUDE]: [refused] }, ENTRY_ENV);
    const fields = ofMessages({ type: 'document', title: 'facts', source: facts, citations });
    const tools = [{ name: 'look', input_schema: { type: 'object' } }];
    const asked = { model: `aws/${CLAUDE}`, ...fields, tools, tool_choice: { type: 'tool', name: 'look' } };
    const response = await routed.ask(asked as JsonObject, {}, '/v1/messages');
    const { error } = decodeObject(await response.text()) ?? {};
    expect([response.status, objectOf(error).type, routed.requests.length]).toEqual([
      400,
      'invalid_request_error',
      1,
    ]);
    expect(textOf(objectOf(error).message)).toBe(`aws: ${message}`);
  });

  test('a file of a client of chat that is to be cited: with citations at Claude', async () => {
    const file = { filename: 'p.pdf', file_data: 'data:application/pdf;base64,QUJD' };
    const messages = [{ role: 'user', content: [{ type: 'file', file, citations }] }];
    const { body } = await sent({ messages }, ofEntry(CLAUDE));
    expect(objectOf(objectsOf(objectsOf(body.messages)[0]?.content)[0]?.document).citations).toEqual(
      citations,
    );
  });

  test.each(['deepseek/deepseek-chat', 'openai/gpt-5', 'gemini/gemini-3-flash-preview'])(
    '%s, which has no citations of documents: they are reported as dropped',
    async (model) => {
      const env = { DEEPSEEK_API_KEY: 'k', OPENAI_API_KEY: 'k', GEMINI_API_KEY: 'k' };
      const name = model.split('/')[1] ?? '';
      const routed = new RoutedGateway({ [name]: [json({})], '': [json({})] }, env);
      const fields = ofMessages({ type: 'document', title: 'facts', source: facts, citations });
      const response = await routed.ask({ model, ...fields }, {}, '/v1/messages');
      expect(response.headers.get('x-weir-dropped')).toContain('messages.content.citations');
      expect(JSON.stringify(routed.requests[0]?.body)).not.toContain('citations');
    },
  );

  test('a file to be cited in a result of a client of chat, at a provider without citations: reported as dropped', async () => {
    const routed = new RoutedGateway({ '': [json({})] }, { GEMINI_API_KEY: 'k' });
    const file = { filename: 'p.pdf', file_data: 'data:application/pdf;base64,QUJD' };
    const messages = [
      { role: 'user', content: 'Hi' },
      call('t1'),
      { role: 'tool', tool_call_id: 't1', content: [{ type: 'file', file, citations }] },
    ];
    const response = await routed.ask({ model: 'gemini/gemini-3-flash-preview', messages });
    expect(response.headers.get('x-weir-dropped')).toBe('messages.content.citations');
    expect(JSON.stringify(routed.requests[0]?.body)).toContain('QUJD');
  });

  test('an image at an address, which AWS does not fetch: refused by its name', async () => {
    const content = [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }];
    const { got } = await sent({ messages: [{ role: 'user', content }] });
    expect([got.status, got.error?.param]).toEqual([400, 'messages.content.image_url']);
  });

  test('cache marks: become cachePoints where the family has them, with their time at Claude alone', async () => {
    const cache_control = { type: 'ephemeral', ttl: '1h' };
    const fields = {
      max_tokens: 64,
      system: [{ type: 'text', text: 'Be brief', cache_control }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Long', cache_control },
            { type: 'text', text: 'Hi' },
          ],
        },
      ],
      tools: [{ name: 'weather', input_schema: SCHEMA, cache_control }],
    };
    const path = '/v1/messages';
    const spec = { toolSpec: { name: 'weather', inputSchema: { json: SCHEMA } } };
    const hour = { cachePoint: { type: 'default', ttl: '1h' } };
    const claude = await sent(fields, { ...ofEntry(CLAUDE), path });
    expect(claude.body).toMatchObject({
      system: [{ text: 'Be brief' }, hour],
      messages: [{ role: 'user', content: [{ text: 'Long' }, hour, { text: 'Hi' }] }],
      toolConfig: { tools: [spec, hour] },
    });
    const plain = { cachePoint: { type: 'default' } };
    const nova = await sent(fields, { path });
    expect(nova.body).toMatchObject({
      system: [{ text: 'Be brief' }, plain],
      messages: [{ role: 'user', content: [{ text: 'Long' }, plain, { text: 'Hi' }] }],
      toolConfig: { tools: [spec] },
    });
    expect(nova.got.headers.get('x-weir-dropped')).toContain('tools.cache_control');
    const llama = await sent(fields, { path, model: 'meta.llama3-2-1b-instruct-v1:0' });
    expect(JSON.stringify(llama.body)).not.toContain('cachePoint');
    expect(llama.got.headers.get('x-weir-dropped')).toContain('messages.content.cache_control');
  });

  test('the mark of a blank text: is a cachePoint behind what precedes it', async () => {
    const blank = { type: 'text', text: '\n', cache_control: { type: 'ephemeral' } };
    const messages = [{ role: 'user', content: [blank, { type: 'text', text: 'Long' }, blank] }];
    const { body } = await sent({ messages }, ofEntry(CLAUDE));
    const point = { cachePoint: { type: 'default' } };
    expect(body.messages).toEqual([{ role: 'user', content: [{ text: 'Long' }, point] }]);
  });

  test.each([
    ['a table at Claude', 'text/csv', CLAUDE, [{ text: 'See the attached document.' }]],
    ['a PDF at Claude', 'application/pdf', CLAUDE, []],
    ['a table at Nova', 'text/csv', 'us.amazon.nova-lite-v1:0', []],
  ])(
    'a marked document, %s: a text is before the cachePoint where it is refused behind the document',
    async (_, type, model, between) => {
      const file = { filename: 'a', file_data: `data:${type};base64,QUJD` };
      const document = { type: 'file', file, cache_control: { type: 'ephemeral' } };
      const messages = [{ role: 'user', content: [document, { type: 'text', text: 'Hi' }] }];
      const { body } = await sent({ messages }, ofEntry(model));
      const content = objectsOf(objectsOf(body.messages)[0]?.content);
      expect(content).toEqual([
        { document: expect.anything() },
        ...between,
        { cachePoint: { type: 'default' } },
        { text: 'Hi' },
      ]);
    },
  );

  test.each([
    ['anthropic.claude-3-haiku-20240307-v1:0', undefined],
    ['us.anthropic.claude-3-7-sonnet-20250219-v1:0', { type: 'default' }],
    ['us.anthropic.claude-sonnet-4-20250514-v1:0', { type: 'default' }],
    [CLAUDE, { type: 'default', ttl: '1h' }],
    ['global.anthropic.claude-opus-5-5', { type: 'default', ttl: '1h' }],
  ])('%s: a mark of an hour is %j', async (model, expected) => {
    const text = { type: 'text', text: 'Long', cache_control: { type: 'ephemeral', ttl: '1h' } };
    const { body } = await sent({ messages: [{ role: 'user', content: [text] }] }, ofEntry(model));
    expect(objectsOf(objectsOf(body.messages)[0]?.content)[1]?.cachePoint).toEqual(expected);
  });

  test('response formats: outputConfig with the schema as a text', async () => {
    const json_schema = { name: 'City', description: 'A city', schema: SCHEMA, strict: true };
    const { body } = await sent({ response_format: { type: 'json_schema', json_schema } });
    expect(body.outputConfig).toEqual({
      textFormat: {
        type: 'json_schema',
        structure: { jsonSchema: { name: 'City', schema: JSON.stringify(SCHEMA), description: 'A city' } },
      },
    });
    const { got } = await sent({ response_format: { type: 'json_object' } });
    expect([got.status, got.error?.param]).toEqual([400, 'response_format']);
  });

  test.each<[model: string, effort: string, expected: unknown, dropped: string | null]>([
    [
      'amazon.nova-2-lite-v1:0',
      'high',
      { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } },
      null,
    ],
    ['amazon.nova-2-lite-v1:0', 'none', { reasoningConfig: { type: 'disabled' } }, null],
    ['openai.gpt-oss-120b-1:0', 'xhigh', { reasoning_effort: 'high' }, null],
    [NOVA, 'high', undefined, 'reasoning_effort'],
    [CLAUDE, 'high', { thinking: { type: 'enabled', budget_tokens: expect.any(Number) } }, null],
    [
      'us.anthropic.claude-opus-5-5-v1:0',
      'high',
      expect.objectContaining({
        output_config: { effort: 'high' },
        thinking: expect.objectContaining({ type: 'adaptive' }),
      }),
      null,
    ],
  ])('%s, effort %s: %j', async (model, reasoning_effort, expected, dropped) => {
    const { body, got } = await sent({ reasoning_effort }, ofEntry(model));
    expect(body.additionalModelRequestFields).toEqual(expected);
    expect(got.headers.get('x-weir-dropped')).toBe(dropped);
  });

  test('a budget of thinking at Claude: below the limit, which is always sent', async () => {
    const { body } = await sent({ reasoning_effort: 'high' }, ofEntry(CLAUDE));
    const { maxTokens } = objectOf(body.inferenceConfig);
    const { thinking } = objectOf(body.additionalModelRequestFields);
    expect(Number(maxTokens)).toBeGreaterThan(Number(objectOf(thinking).budget_tokens));
  });

  test.each([
    ['flex', { type: 'flex' }],
    ['priority', { type: 'priority' }],
    ['auto', undefined],
    ['default', { type: 'default' }],
  ])('service_tier %s: %j', async (service_tier, expected) => {
    expect((await sent({ service_tier })).body.serviceTier).toEqual(expected);
  });

  test('Converse’s own fields and parts pass; an unknown field is refused by its name', async () => {
    const own = {
      ...{ additionalModelRequestFields: { x: 1 }, performanceConfig: { latency: 'optimized' } },
      ...{ requestMetadata: { team: 'a' }, additionalModelResponseFieldPaths: ['/stop_sequence'] },
    };
    const guarded = { guardContent: { text: { text: 'Hi', qualifiers: ['query'] } } };
    const { body } = await sent({ ...own, messages: [{ role: 'user', content: [guarded] }] });
    expect(body).toEqual({ ...own, messages: [{ role: 'user', content: [guarded] }] });
    const { got } = await sent({ odd_field: 1 });
    expect([got.status, got.error?.param]).toEqual([400, 'odd_field']);
  });

  test('a tool of Converse’s own passes', async () => {
    const tools = [...TOOLS, { systemTool: { name: 'nova_grounding' } }];
    const { body } = await sent({ tools }, { model: 'amazon.nova-2-lite-v1:0' });
    expect(objectOf(body.toolConfig).tools).toEqual([SPEC, { systemTool: { name: 'nova_grounding' } }]);
  });
});

const GUARDRAIL = { guardrailIdentifier: 'g-1', guardrailVersion: '1', trace: 'enabled' };

describe('W8 Converse, guardrails', () => {
  const input = { messages: undefined, input: 'Hi' };
  test.each<[name: string, path: string | undefined, fields: JsonObject]>([
    ['chat', undefined, {}],
    ['Messages', '/v1/messages', { max_tokens: 64 }],
    ['Responses', '/v1/responses', input],
  ])('a client of %s: guardrailConfig of its body is sent', async (_, path, fields) => {
    const asked = path === undefined ? {} : { path };
    const { body } = await sent({ ...fields, guardrailConfig: GUARDRAIL }, asked);
    expect(body.guardrailConfig).toEqual(GUARDRAIL);
  });

  test('a client of Gemini: guardrailConfig of its body is sent', async () => {
    const routed = new RoutedGateway({ [NOVA]: [answerBoth] }, ENV);
    const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
    const path = `/v1beta/models/bedrock/${NOVA}:generateContent`;
    const response = await routed.ask({ contents, guardrailConfig: GUARDRAIL }, {}, path);
    expect([response.status, routed.requests[0]?.body.guardrailConfig]).toEqual([200, GUARDRAIL]);
  });

  test('an entry’s is sent with each request, and no request has another', async () => {
    const env = { ...ENTRY_ENV, PROVIDERS: { aws: { ...ENTRY, guardrailConfig: GUARDRAIL } } };
    const guarded = await sent({}, { model: NOVA, env });
    expect(guarded.body.guardrailConfig).toEqual(GUARDRAIL);
    const same = await sent({ guardrailConfig: GUARDRAIL }, { model: NOVA, env });
    expect(same.body.guardrailConfig).toEqual(GUARDRAIL);
    const { got, routed } = await sent(
      { guardrailConfig: { ...GUARDRAIL, guardrailIdentifier: 'none' } },
      { model: NOVA, env },
    );
    expect([got.status, got.error?.param, routed.requests.length]).toEqual([400, 'guardrailConfig', 0]);
  });

  test('an alias’s is sent', async () => {
    const env = {
      ...ENV,
      ALIASES: { safe: { model: `bedrock/${NOVA}`, set: { guardrailConfig: GUARDRAIL } } },
    };
    const routed = new RoutedGateway({ [NOVA]: [answerBoth] }, env);
    await read(await routed.ask({ model: 'safe' }));
    expect(routed.requests[0]?.body.guardrailConfig).toEqual(GUARDRAIL);
  });

  test.each<[model: string, path: string | undefined, fields: JsonObject]>([
    [`bedrock/${CLAUDE}`, undefined, {}],
    [`bedrock/${CLAUDE}`, '/v1/messages', { max_tokens: 64 }],
    ['bedrock/openai.gpt-oss-120b', undefined, {}],
    ['deepseek/deepseek-chat', undefined, {}],
    ['deepseek/deepseek-chat', '/v1/messages', { max_tokens: 64 }],
    ['bedrock/openai.gpt-oss-120b', '/v1/responses', input],
  ])('%s at %s, which cannot take it: a 400 by its name, and no request', async (model, path, fields) => {
    const routed = new RoutedGateway({}, ENV);
    const response = await routed.ask({ model, ...fields, guardrailConfig: GUARDRAIL }, {}, path);
    const text = await response.text();
    expect([response.status, routed.requests.length]).toEqual([400, 0]);
    expect(text).toContain('guardrailConfig');
  });

  test.each(['deepseek/deepseek-chat', `bedrock/${CLAUDE}`, 'gemini/gemini-3-flash-preview'])(
    '%s, called by a client of Gemini: a 400 by its name, and no request',
    async (model) => {
      const routed = new RoutedGateway({}, { ...ENV, GEMINI_API_KEY: 'k' });
      const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
      const path = `/v1beta/models/${model}:generateContent`;
      const response = await routed.ask({ contents, guardrailConfig: GUARDRAIL }, {}, path);
      const text = await response.text();
      expect([response.status, routed.requests.length]).toEqual([400, 0]);
      expect(text).toContain('guardrailConfig');
    },
  );

  test('a value that is no object: a 400 by its name', async () => {
    const { got } = await sent({ guardrailConfig: 'g-1' });
    expect([got.status, got.error?.param]).toEqual([400, 'guardrailConfig']);
  });

  test('a server that is not known gets it as it came', async () => {
    const env = { PROVIDERS: { own: { base_url: 'https://own.example' } } };
    const routed = new RoutedGateway({ m: [json({ choices: [] })] }, env);
    await read(await routed.ask({ model: 'own/m', guardrailConfig: GUARDRAIL }));
    expect(routed.requests[0]?.body.guardrailConfig).toEqual(GUARDRAIL);
  });
});

describe('A11 Converse, reasoning that goes back', () => {
  const redacted = Buffer.from('EtkECkgIBxABGAIqQ').toString('base64');
  const raw = Buffer.from([0xff, 0xfe, 1, 2]).toString('base64');
  const reasoning = [
    { reasoningContent: { reasoningText: { text: 'Well', signature: 'sig==' } } },
    { reasoningContent: { redactedContent: redacted } },
    { reasoningContent: { redactedContent: raw } },
  ];
  const toolUse = { toolUse: { toolUseId: 'tooluse_1', name: 'weather', input: { city: 'Paris' } } };
  const streamed = stream(
    START,
    ...[delta(0, { reasoningContent: { text: 'We' } }), delta(0, { reasoningContent: { text: 'll' } })],
    ...[delta(0, { reasoningContent: { signature: 'sig==' } }), end(0)],
    ...[delta(1, { reasoningContent: { redactedContent: redacted } }), end(1)],
    ...[delta(2, { reasoningContent: { redactedContent: raw } }), end(2)],
    event('contentBlockStart', {
      contentBlockIndex: 3,
      start: { toolUse: { toolUseId: 'tooluse_1', name: 'weather' } },
    }),
    ...[delta(3, { toolUse: { input: '{"city":"Paris"}' } }), end(3)],
    event('messageStop', { stopReason: 'tool_use' }),
    METADATA,
  );
  const whole = answer([...reasoning, toolUse], 'tool_use');

  /** The assistant's message of the next request, whose client has sent back what it got. */
  async function nextTurn(client: string, isStreamed: boolean) {
    const routed = new RoutedGateway({ [CLAUDE]: [isStreamed ? streamed : whole, WHOLE] }, ENTRY_ENV);
    const model = `aws/${CLAUDE}`;
    if (client === 'chat') {
      const fields = { model, tools: TOOLS, stream: isStreamed };
      const text = await (await routed.ask(fields)).text();
      const objects = isStreamed
        ? text.split('\n\n').map((frame) => decodeObject(frame.replace(/^data: /, '')) ?? {})
        : [decodeObject(text) ?? {}];
      const parts = objects
        .flatMap(({ choices }) => objectsOf(choices))
        .map(({ delta: d, message: m }) => objectOf(d ?? m));
      const reasoning_details = parts.flatMap((part) => objectsOf(part.reasoning_details));
      const messages = [
        { role: 'user', content: 'Hi' },
        { ...call('tooluse_1'), reasoning_details },
        result('tooluse_1', 'Rain'),
      ];
      await read(await routed.ask({ model, tools: TOOLS, messages }));
    } else if (client === 'Messages') {
      const tools = [{ name: 'weather', input_schema: SCHEMA }];
      const fields = { model, tools, max_tokens: 9000, stream: isStreamed };
      const text = await (await routed.ask(fields, {}, '/v1/messages')).text();
      const content = isStreamed ? blocksOfStream(text) : objectsOf(decodeObject(text)?.content);
      const results = content
        .filter(({ type }) => type === 'tool_use')
        .map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'Rain' }));
      const messages = [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content },
        { role: 'user', content: results },
      ];
      await read(await routed.ask({ ...fields, stream: false, messages }, {}, '/v1/messages'));
    } else if (client === 'Gemini') {
      const path = `/v1beta/models/${model}:${isStreamed ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
      const fields = {
        tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: SCHEMA }] }],
        generationConfig: { thinkingConfig: { includeThoughts: true } },
        ...{ model: undefined, messages: undefined },
      };
      const user = { role: 'user', parts: [{ text: 'Hi' }] };
      const text = await (await routed.ask({ ...fields, contents: [user] }, {}, path)).text();
      const events = text
        .replaceAll('\r\n', '\n')
        .split(isStreamed ? '\n\n' : '\0')
        .map((event) => decodeObject(event.replace(/^data: /, '')) ?? {});
      const parts = events
        .flatMap(({ candidates }) => objectsOf(candidates))
        .flatMap(({ content }) => objectsOf(objectOf(content).parts));
      const { name, id } = objectOf(
        parts.find(({ functionCall }) => functionCall !== undefined)?.functionCall,
      );
      const answered = { functionResponse: { name, id, response: { output: 'Rain' } } };
      const contents = [user, { role: 'model', parts }, { role: 'user', parts: [answered] }];
      await read(
        await routed.ask({ ...fields, contents }, {}, path.replace(/:stream.*/, ':generateContent')),
      );
    } else {
      const tools = [{ type: 'function', name: 'weather', parameters: SCHEMA }];
      const fields = {
        model,
        tools,
        store: false,
        include: ['reasoning.encrypted_content'],
        messages: undefined,
      };
      const text = await (
        await routed.ask({ ...fields, input: 'Hi', stream: isStreamed }, {}, '/v1/responses')
      ).text();
      const done = isStreamed
        ? objectOf(
            decodeObject(
              text
                .split('\n\n')
                .findLast((frame) => frame.includes('response.completed'))
                ?.replace(/^[^{]*/, '') ?? '',
            )?.response,
          )
        : (decodeObject(text) ?? {});
      const items = objectsOf(done.output);
      const outputs = items
        .filter(({ type }) => type === 'function_call')
        .map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'Rain' }));
      const input = [{ role: 'user', content: 'Hi' }, ...items, ...outputs];
      await read(await routed.ask({ ...fields, input }, {}, '/v1/responses'));
    }
    await settle();
    const messages = objectsOf(routed.requests.at(-1)?.body.messages);
    return messages.find(({ role }) => role === 'assistant')?.content;
  }

  describe.each(['chat', 'Messages', 'Responses', 'Gemini'])('%s', (client) => {
    test.each([true, false])(
      'streamed: %s, signed and redacted content comes back exact',
      async (isStreamed) => {
        expect(await nextTurn(client, isStreamed)).toEqual([...reasoning, toolUse]);
      },
    );
  });

  test.each<[model: string, expected: unknown]>([
    [KIMI, [{ reasoningContent: { reasoningText: { text: 'Well' } } }, toolUse]],
    ['us.deepseek.r1-v1:0', [toolUse]],
    [NOVA, [toolUse]],
  ])('%s: reasoning without a signature', async (model, expected) => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { ...call('tooluse_1'), reasoning_content: 'Well' },
      result('tooluse_1', 'Rain'),
    ];
    const { body } = await sent({ messages, tools: TOOLS }, { model });
    expect(objectsOf(body.messages)[1]?.content).toEqual(expected);
  });
});

/** The content of a Messages stream. */
function blocksOfStream(text: string): JsonObject[] {
  const blocks: Record<string, JsonObject[string]>[] = [];
  for (const frame of text.split('\n\n')) {
    const data = decodeObject(frame.replace(/^event: .*\ndata: /, '')) ?? {};
    const { type, index, content_block, delta: d } = data;
    if (type === 'content_block_start') blocks[Number(index)] = { ...objectOf(content_block), json: '' };
    const block = blocks[Number(index)];
    if (type !== 'content_block_delta' || block === undefined) continue;
    const { thinking, signature, text: piece, partial_json } = objectOf(d);
    if (typeof thinking === 'string') block.thinking = textOf(block.thinking) + thinking;
    if (typeof signature === 'string') block.signature = signature;
    if (typeof piece === 'string') block.text = textOf(block.text) + piece;
    if (typeof partial_json === 'string') block.json = textOf(block.json) + partial_json;
  }
  return blocks.map(({ json: args, ...block }) =>
    block.type === 'tool_use' ? { ...block, input: decodeObject(textOf(args)) ?? {} } : block,
  );
}

/** A body that stops at null until the promise resolves. */
function heldStream(given: readonly (Uint8Array | null)[], promise: Promise<void>): ReadableStream {
  const pieces = [...given];
  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      const piece = pieces.shift();
      if (piece === null) return promise.then(() => this.pull?.(controller));
      if (piece === undefined) {
        controller.close();
        return controller.byobRequest?.respond(0);
      }
      controller.enqueue(piece.slice());
    },
  });
}

describe('A10 Converse, counts, usage and failures', () => {
  test.each<[tier: string | undefined, factor: number]>([
    [undefined, 1],
    ['default', 1],
    ['flex', 0.5],
    ['priority', 1.75],
  ])('the cost of an answer of the tier %s: %s times the standard one', async (type, factor) => {
    const metadata = event('metadata', {
      usage: CONVERSE_USAGE,
      ...(type === undefined ? {} : { serviceTier: { type } }),
    });
    const routed = new RoutedGateway(
      { [KIMI]: [stream(START, delta(0, { text: 'Hi' }), end(0), STOP, metadata)] },
      ENV,
    );
    await read(await routed.ask({ model: `bedrock/${KIMI}`, stream: true }));
    await settle();
    expect(routed.records[0]?.cost_nanos).toBe((5 * 600 + 3 * 2500) * factor);
  });

  test('the cost of a cache: reads have their rate, and what an hour keeps its own, below a profile', async () => {
    const usage = {
      ...{
        inputTokens: 10,
        outputTokens: 0,
        totalTokens: 3010,
        cacheReadInputTokens: 1000,
        cacheWriteInputTokens: 2000,
      },
      cacheDetails: [
        { inputTokens: 500, ttl: '1h' },
        { inputTokens: 1500, ttl: '5m' },
      ],
    };
    const cached = json({
      output: { message: { role: 'assistant', content: [{ text: 'Hi' }] } },
      ...{ stopReason: 'end_turn', usage: { ...usage, outputTokens: 1 } },
    });
    const model = 'global.anthropic.claude-haiku-4-5';
    const env = {
      ...ENTRY_ENV,
      PROVIDERS: { aws: { ...ENTRY, models: { [model]: 'anthropic/claude-haiku-4-5' } } },
    };
    const routed = new RoutedGateway({ [model]: [cached] }, env);
    await read(await routed.ask({ model: `aws/${model}` }));
    await settle();
    expect(routed.records[0]).toMatchObject({
      ...{ prompt_tokens: 3010, cached_tokens: 1000, cache_write_tokens: 2000, cache_write_long_tokens: 500 },
      cost_nanos: 10 * 1000 + 1000 * 100 + 1500 * 1250 + 500 * 2000 + 5000,
    });
  });

  test('counts: the bare name of a profile’s model is asked, with what the prompt has', async () => {
    const routed = new RoutedGateway({}, ENV);
    const response = await routed.ask(
      { model: `bedrock/${NOVA}`, max_tokens: 64, system: 'Be brief' },
      {},
      '/v1/messages/count_tokens',
    );
    expect(response.status).toBe(200);
    expect(routed.requests.map(({ url }) => url)).toEqual([
      `${RUNTIME}/model/${encodeURIComponent('amazon.nova-micro-v1:0')}/count-tokens`,
    ]);
    expect(routed.requests.map(({ body }) => body)).toEqual([
      {
        input: {
          converse: {
            messages: [{ role: 'user', content: [{ text: 'Hello' }] }],
            system: [{ text: 'Be brief' }],
          },
        },
      },
    ]);
    expect(response.headers.get('x-weir-estimated')).toBe('true');
  });

  test('U2 metadata behind messageStop: its usage is on the finish of a client that did not request any', async () => {
    const routed = new RoutedGateway({ [NOVA]: [HELLO] }, ENV);
    const text = await (await routed.ask({ model: `bedrock/${NOVA}`, stream: true })).text();
    await settle();
    const finishes = text.split('\n\n').filter((frame) => frame.includes('"finish_reason":"stop"'));
    expect(finishes).toHaveLength(1);
    expect(finishes[0]).toContain('"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}');
    expect(routed.records[0]).toMatchObject({ prompt_tokens: 5, completion_tokens: 3, estimated: false });
  });

  test.each([
    ['comes within the limit: its usage is on the finish', MAX_FINISH_WAIT_MS - 1, true],
    ['comes later: the finish does not wait longer, and the record has the usage', MAX_FINISH_WAIT_MS, false],
  ])('U2 T1 metadata that %s', async (_, silence, isOnFinish) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const body = heldStream([START, delta(0, { text: 'Hi' }), end(0), STOP, null, METADATA], promise);
    const routed = new RoutedGateway({ [NOVA]: [{ kind: 'stream', body }] }, ENV);
    const response = await routed.ask({ model: `bedrock/${NOVA}`, stream: true });
    const frames: string[] = [];
    const reading = (async () => {
      for await (const bytes of response.body ?? []) frames.push(new TextDecoder().decode(bytes));
    })();
    await settle();
    routed.clock.advance(silence);
    await settle();
    expect(frames.join('').includes('"finish_reason":"stop"')).toBe(!isOnFinish);
    resolve();
    await reading;
    await settle();
    const finish = frames
      .join('')
      .split('\n\n')
      .find((frame) => frame.includes('"finish_reason":"stop"'));
    expect(finish?.includes('"prompt_tokens":5')).toBe(isOnFinish);
    expect(routed.records[0]).toMatchObject({ prompt_tokens: 5, completion_tokens: 3, estimated: false });
  });

  test.each<[name: string, ending: 'end' | 'cut']>([
    ['ends', 'end'],
    ['breaks', 'cut'],
  ])(
    'a stream that %s between messageStop and metadata: complete, and charged by an estimate that is marked',
    async (_, ending) => {
      const pieces = [START, delta(0, { text: 'Hello there' }), end(0), STOP];
      const cutOff: Behavior = { kind: 'answer', type: EVENTS, pieces, ending };
      const routed = new RoutedGateway({ [NOVA]: [cutOff] }, ENV);
      const got = await read(await routed.ask({ model: `bedrock/${NOVA}`, stream: true }));
      await settle();
      expect(got).toMatchObject({ text: 'Hello there', finishes: ['stop'], isDone: true, error: null });
      expect(routed.records[0]).toMatchObject({ status: 'finished', estimated: true });
      expect(routed.records[0]?.completion_tokens).toBeGreaterThan(0);
    },
  );

  test('T1 T2 a silence of 125 s within a call: heartbeats, and the whole call; after four minutes an error', async () => {
    const begin = event('contentBlockStart', {
      contentBlockIndex: 0,
      start: { toolUse: { toolUseId: 't', name: 'weather' } },
    });
    const last = [
      delta(0, { toolUse: { input: '{}' } }),
      end(0),
      event('messageStop', { stopReason: 'tool_use' }),
      METADATA,
    ];
    for (const [silence, isWhole] of [
      [125_000, true],
      [235_000, true],
      [250_000, false],
    ] as const) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const body = heldStream([START, begin, null, ...last], promise);
      const routed = new RoutedGateway(
        { [NOVA]: [{ kind: 'stream', body }] },
        { ...ENV, HEARTBEAT_SECONDS: '15', DEADLINE_SECONDS: '0' },
      );
      const text = routed.ask({ model: `bedrock/${NOVA}`, stream: true }).then((response) => response.text());
      await settle();
      for (let at = 0; at < silence; at += 5000) {
        routed.clock.advance(5000);
        await settle();
      }
      resolve();
      const got = await text;
      expect(got.split(': heartbeat').length).toBeGreaterThan(5);
      expect(got.includes('"finish_reason":"tool_calls"')).toBe(isWhole);
      expect(got.includes('stream_idle_timeout')).toBe(!isWhole);
    }
  });

  test('a stream without messageStop: truncated', async () => {
    const routed = new RoutedGateway({ [NOVA]: [stream(START, delta(0, { text: 'Hello' }), end(0))] }, ENV);
    const got = await read(await routed.ask({ model: `bedrock/${NOVA}`, stream: true }));
    expect([got.finishes, got.error?.code]).toEqual([[], 'upstream_truncated']);
  });

  describe.each(Object.entries(CLIENTS))('%s', (_, readAs) => {
    test.each(['model_overheated', 'END_TURN', 'tool_use_denied', 'x'.repeat(300)])(
      'C8 the stopReason %s, which is not known, behind a text: no success, but an error, streamed or not',
      async (stopReason) => {
        const streamed = [
          START,
          delta(0, { text: 'Hi' }),
          end(0),
          event('messageStop', { stopReason }),
          METADATA,
        ];
        const behaviors = [stream(...streamed), answer([{ text: 'Hi' }], stopReason)];
        for (const behavior of behaviors) {
          const seen = readAs(gatewayFetch(behavior, { env: ENV, model: NOVA }), `bedrock/${NOVA}`);
          await expect(seen).rejects.toThrow();
        }
      },
    );

    test('C8 an unknown stopReason behind a whole call: the call is not handed on as a success', async () => {
      const toolUse = { toolUseId: 't', name: 'weather', input: {} };
      const behavior = answer([{ toolUse }], 'tool_use_denied');
      const seen = readAs(gatewayFetch(behavior, { env: ENV, model: NOVA }), `bedrock/${NOVA}`);
      await expect(seen).rejects.toThrow();
    });
  });

  test.each([true, false])(
    'C8 streamed: %s, an unknown stopReason: is recorded as failed',
    async (isStreamed) => {
      const pieces = [
        START,
        delta(0, { text: 'Hi' }),
        end(0),
        event('messageStop', { stopReason: 'odd' }),
        METADATA,
      ];
      const behavior = isStreamed ? stream(...pieces) : answer([{ text: 'Hi' }], 'odd');
      const routed = new RoutedGateway({ [NOVA]: [behavior] }, ENV);
      await (await routed.ask({ model: `bedrock/${NOVA}`, stream: isStreamed })).text();
      await settle();
      expect(routed.records).toMatchObject([{ status: 'failed' }]);
    },
  );

  test.each([
    ['throttlingException', 429],
    ['serviceUnavailableException', 503],
    ['internalServerException', 502],
    ['modelStreamErrorException', 502],
  ])('S5 %s before any output: the next target answers; alone it is a %s', async (type, status) => {
    const exception = message(
      { ':message-type': 'exception', ':exception-type': type, ':content-type': 'application/json' },
      '{"message":"Not now"}',
    );
    const routed = new RoutedGateway({ [NOVA]: [stream(START, exception)], [KIMI]: [HELLO] }, ENV);
    const alone = await routed.ask({ model: `bedrock/${NOVA}`, stream: true });
    expect(alone.status).toBe(status);
    const both = await read(
      await routed.ask({ model: `bedrock/${NOVA}`, models: [`bedrock/${KIMI}`], stream: true }),
    );
    expect(both).toMatchObject({ status: 200, text: 'Here.' });
  });

  test.each([
    [403, 'The security token included in the request is invalid.', 502, 'upstream_credential'],
    [400, 'The provided model identifier is invalid.', 400, 'model_not_found'],
    [
      404,
      'This model version has reached the end of its life. Please refer to the AWS documentation for more details.',
      404,
      'model_not_found',
    ],
    [429, 'Too many requests, please wait before trying again.', 429, 'rate_limited'],
    [424, 'The model returned the following errors: try again', 502, 'upstream_error', 'provider'],
    [408, 'Model is timed out in processing the request.', 504, 'timeout', 'provider'],
    [503, 'Bedrock is unable to process your request.', 503, 'upstream_overloaded', 'provider'],
  ] as const)('a refusal %s "%s": %s %s', async (status, text, expected, code, fault?: string) => {
    const refused = { kind: 'refuse', status, body: JSON.stringify({ message: text }) } as const;
    const routed = new RoutedGateway({ [NOVA]: [refused] }, ENV);
    const got = await read(await routed.ask({ model: `bedrock/${NOVA}`, stream: true }));
    await settle();
    expect([got.status, got.error?.code]).toEqual([expected, code]);
    if (fault !== undefined) expect(routed.records[0]).toMatchObject({ fault });
  });

  describe('C11 citations', () => {
    const place = {
      location: { documentChar: { documentIndex: 0, start: 0, end: 5 } },
      ...{ sourceContent: [{ text: 'Ruby.' }], title: 'facts' },
    };
    const page = { location: { web: { url: 'https://example.com/a', domain: 'example.com' } } };
    const cited = (citation: object) => [
      stream(START, ...[delta(0, { text: 'Here.' }), delta(0, { citation }), end(0)], STOP, METADATA),
      answer([{ citationsContent: { content: [{ text: 'Here.' }], citations: [citation] } }]),
    ];

    test.each(Object.keys(CLIENTS))('%s: the text that cites a document is whole', async (client) => {
      for (const behavior of cited(place)) {
        const seen = await CLIENTS[client]?.(
          gatewayFetch(behavior, { env: ENV, model: NOVA }),
          `bedrock/${NOVA}`,
        );
        expect(seen).toMatchObject({ text: 'Here.', finish: finishFor(client, 'end_turn') });
      }
    });

    test.each([
      [
        'a page',
        page,
        [{ start_index: 0, end_index: 5, title: 'example.com', url: 'https://example.com/a' }],
      ],
      ['a place in the client’s document, which has no address', place, []],
    ])('%s: is an annotation of chat if it has an address', async (_, citation, expected) => {
      const list = expected.map((url_citation) => ({ type: 'url_citation', url_citation }));
      const [streamed, whole] = cited(citation);
      const routed = new RoutedGateway({ [NOVA]: [streamed ?? WHOLE, whole ?? WHOLE] }, ENV);
      const text = await (await routed.ask({ model: `bedrock/${NOVA}`, stream: true })).text();
      const frames = text.split('\n\n').map((frame) => decodeObject(frame.replace(/^data: /, '')) ?? {});
      const deltas = frames.flatMap(({ choices }) => objectsOf(choices)).map((one) => objectOf(one.delta));
      expect(deltas.flatMap(({ annotations }) => objectsOf(annotations))).toEqual(list);
      const { choices } = decodeObject(await (await routed.ask({ model: `bedrock/${NOVA}` })).text()) ?? {};
      expect(objectsOf(objectOf(objectsOf(choices)[0]?.message).annotations)).toEqual(list);
    });
  });

  test('an answer as JSON to a streamed request, and a stream to another: both are read', async () => {
    const routed = new RoutedGateway({ [NOVA]: [WHOLE, HELLO] }, ENV);
    const first = await read(await routed.ask({ model: `bedrock/${NOVA}`, stream: true }));
    expect(first).toMatchObject({ text: 'Here.', isDone: true });
    const second = await read(await routed.ask({ model: `bedrock/${NOVA}` }));
    expect(second).toMatchObject({ status: 200, text: 'Here.', finishes: ['stop'] });
  });

  test.each<[name: string, attack: readonly Uint8Array[], code: string]>([
    ['a length of 4 GB', [prelude(0xffff_ffff, 0)], 'upstream_event_too_large'],
    ['headers of 4 GB', [prelude(0xffff_ffff, 0xffff_ff00)], 'upstream_event_too_large'],
    ['headers longer than their message', [prelude(100, 99)], 'upstream_invalid'],
    [
      'headers without end',
      [prelude(900_000, 100_000), ...Array.from({ length: 20 }, () => new Uint8Array(40_000).fill(7))],
      'upstream_truncated',
    ],
    ['a damaged message', [TORN], 'upstream_invalid'],
    ['100,000 messages with nothing in them', Array.from({ length: 100 }, () => EMPTY), 'upstream_truncated'],
  ])('B1 S4 %s: the output before it, and an error', async (_, attack, code) => {
    const routed = new RoutedGateway({ [NOVA]: [stream(START, delta(0, { text: 'Hi' }), ...attack)] }, ENV);
    const answered = routed.ask({ model: `bedrock/${NOVA}`, stream: true }).then(read);
    for (let turn = 0; turn < 50; turn++) {
      await settle();
      // A stream without output yields to others.
      routed.clock.advance(1);
    }
    expect(await answered).toMatchObject({ text: 'Hi', finishes: [], error: { code } });
  });

  test('a page in the place of an answer: an error', async () => {
    const routed = new RoutedGateway({ [NOVA]: [refuse(502, { message: 'Bad gateway' })] }, ENV);
    expect((await routed.ask({ model: `bedrock/${NOVA}`, stream: true })).status).toBe(502);
  });
});
