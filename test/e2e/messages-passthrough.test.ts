/** Tests passthrough of Messages to Anthropic: requests and events change only in the model and the credential (N1, N2). */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, describe, expect, test } from 'vitest';
import { checkMessages } from '../../tools/conformance/contract/check-messages.ts';
import { refusal } from '../../tools/simulator/anthropic-check.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf } from '../../tools/simulator/json.ts';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../tools/simulator/server.ts';
import { readRecordings, recordingsNote } from '../contract/recordings.ts';
import { wholeRecord } from './client.ts';
import { startGateway } from './gateway.ts';
import { CALLS, runByHand, runWithAiSdk, runWithToolRunner, STEPS } from './messages-loops.ts';
import { CLOCKS_OFF } from './scenarios.ts';

/** The recorded streams of Anthropic's own API, by their names. */
const RECORDED = new Map(
  readRecordings()
    .filter(({ protocol, kind }) => protocol === 'anthropic' && kind === 'sse')
    .map(({ name, text }) => [name, text] as const),
);
const TRUNCATED = 'truncated-after-the-first-text';

/** Whether Anthropic has lost the thread of the next request. It keeps one for five minutes. */
let isThreadLost = false;

function replay({ body }: RecordedRequest): Replay | undefined {
  if (isThreadLost && objectOf(body?.thread).type === 'continue') {
    isThreadLost = false;
    const { status, body: json } = refusal(404, 'No usable Thread state was found', 'thread_not_found');
    return { status, headers: { 'content-type': 'application/json' }, chunks: [Buffer.from(json)] };
  }
  const [, name] = /^replay-(.+)$/.exec(String(body?.model)) ?? [];
  if (name === undefined) return undefined;
  const text = RECORDED.get(name) ?? '';
  if (name !== TRUNCATED) return { chunks: [Buffer.from(text)] };
  const recording = RECORDED.get('anthropic--text.sse') ?? '';
  const end = recording.indexOf('\n\n', recording.indexOf('text_delta')) + 2;
  return { chunks: [Buffer.from(recording.slice(0, end))] };
}

/** The model in the recorded text, which is also the name of an alias. */
const OWN_NAME = 'claude-sonnet-4-20250514';
const ALIASES = JSON.stringify({
  [OWN_NAME]: 'anthropic/replay-anthropic--text.sse',
  either: ['anthropic/claude-haiku-4-5', 'anthropic/claude-sonnet-5'],
});

const gateway = await startGateway({ replay, vars: { ...CLOCKS_OFF, ALIASES } });
afterAll(() => gateway[Symbol.asyncDispose]());
const client = new Anthropic({ apiKey: 'unused', baseURL: gateway.url, maxRetries: 0 });

const MESSAGES = [{ role: 'user' as const, content: 'Hello there' }];

async function send(body: JsonObject, headers: Record<string, string> = {}) {
  const before = gateway.simulator.requests.length;
  const response = await gateway.post(
    '/v1/messages',
    { max_tokens: 64, messages: MESSAGES, ...body },
    { headers },
  );
  const text = await response.text();
  return { response, text, upstream: gateway.simulator.requests[before] };
}

/** A recording with LF line ends, up to the end of the message. */
function wholeOf(name: string): string {
  const recording = (RECORDED.get(name) ?? '').replaceAll('\r\n', '\n');
  return recording.slice(0, recording.indexOf('\n\n', recording.indexOf('event: message_stop')) + 2);
}

/** The data of the first event, and the bytes after it. */
function withoutStart(text: string): [start: JsonObject, rest: string] {
  const [, json = '', rest = ''] = /^event: message_start\ndata: (.*)\n\n([\s\S]*)$/.exec(text) ?? [];
  return [decodeObject(json) ?? {}, rest];
}

describe('N1 requests', () => {
  test('the body is unchanged except for the model, with unknown fields and blocks; version and betas pass', async () => {
    const sent = {
      system: [
        { type: 'text', text: 'x-anthropic-billing-header: cc', cache_control: { type: 'ephemeral' } },
      ],
      context_management: { edits: [] },
      metadata: { user_id: '{"device":"d"}' },
      messages: [
        { role: 'user', content: 'a' },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'b' },
            { type: 'fallback', from: 'x' },
          ],
        },
        { role: 'user', content: [{ type: 'text', text: 'c', cache_control: { type: 'ephemeral' } }] },
      ],
    };
    const headers = {
      'anthropic-beta': 'a-1,b-2',
      'anthropic-version': '2023-06-02',
      'x-api-key': 'the-callers',
    };
    const { upstream } = await send({ ...sent, model: 'anthropic/replay-none' }, headers);
    expect(upstream?.body).toEqual({ max_tokens: 64, ...sent, model: 'replay-none' });
    expect(upstream?.headers).toMatchObject({
      'anthropic-beta': 'a-1,b-2',
      'anthropic-version': '2023-06-02',
    });
    expect(upstream?.headers['x-api-key']).toMatch(/^sim-anthropic/);
  });

  test('a thread passes', async () => {
    const { upstream } = await send({ model: 'anthropic/replay-none', thread: { type: 'create' } });
    expect(upstream?.body?.thread).toEqual({ type: 'create' });
  });
});

describe.skipIf(recordingsNote !== '')(`N1 responses${recordingsNote}`, () => {
  test.each([...RECORDED.keys()])(
    '%s: each event is unchanged except for the model, and metered',
    async (name) => {
      const model = `anthropic/replay-${name}`;
      const { response, text } = await send({ model, stream: true });
      const [start, rest] = withoutStart(text);
      const [ownStart, ownRest] = withoutStart(wholeOf(name));
      expect(rest).toBe(ownRest);
      expect(start).toEqual({ ...ownStart, message: { ...objectOf(ownStart.message), model } });
      expect(await gateway.record(response)).toMatchObject({
        status: 'finished',
        client: 'messages',
        estimated: false,
      });
    },
  );

  test("P1 the record has the searches of Claude's usage", async () => {
    const { response } = await send({
      model: 'anthropic/replay-anthropic--web-search-citations.sse',
      stream: true,
    });
    expect(await wholeRecord(gateway, response)).toMatchObject({ searches: 1 });
  });

  test('every byte is unchanged if the requested model is the reported one', async () => {
    const { text } = await send({ model: OWN_NAME, stream: true });
    expect(text).toBe(wholeOf('anthropic--text.sse'));
  });

  test('N2 a truncated stream: the received events, and an error event in Anthropic’s form', async () => {
    const { response, text } = await send({ model: `anthropic/replay-${TRUNCATED}`, stream: true });
    expect(checkMessages(text, true)).toEqual([]);
    expect(text).toMatch(/event: error\ndata: \{"type":"error","error":\{"type":"api_error"[^\n]*\n\n$/);
    expect(await gateway.record(response)).toMatchObject({
      status: 'failed',
      error_code: 'upstream_truncated',
    });
  });

  test('a non-streaming response is unchanged', async () => {
    const { response, text } = await send({ model: 'anthropic/claude-haiku-4-5' });
    expect(decodeObject(text)).toMatchObject({
      id: expect.stringMatching(/^msg_sim/),
      type: 'message',
      // Claude Code sends thinking back only if this is the requested name.
      model: 'anthropic/claude-haiku-4-5',
    });
    expect(await gateway.record(response)).toMatchObject({ completion_tokens: 9, client: 'messages' });
  });
});

describe('J4 @anthropic-ai/sdk 1.12.0, which sends the version 2026-10-21 and its key as Bearer', () => {
  const body = { model: 'anthropic/claude-haiku-4-5', max_tokens: 64, messages: MESSAGES };

  test.each([true, false])('N1 is unchanged except for the credential, streamed: %s', async (isStreamed) => {
    const before = gateway.simulator.requests.length;
    const message = isStreamed
      ? await client.messages.stream(body).finalMessage()
      : await client.messages.create(body);
    expect(message).toMatchObject({ type: 'message', model: body.model, stop_reason: 'end_turn' });
    const upstream = gateway.simulator.requests[before];
    expect(upstream?.headers['anthropic-version']).toBe('2026-10-21');
    expect(upstream?.headers['x-api-key']).toMatch(/^sim-anthropic/);
    expect(upstream?.headers).not.toHaveProperty('authorization');
    expect(upstream?.body).toMatchObject({ max_tokens: 64, messages: MESSAGES });
  });

  test.each<[what: string, more: JsonObject, message: string]>([
    [
      'sampling, even with the default value',
      { temperature: 1 },
      'temperature: Extra inputs are not permitted',
    ],
    [
      'an assistant’s document',
      { messages: [...MESSAGES, { role: 'assistant', content: [{ type: 'document' }] }, ...MESSAGES] },
      'messages.1.content.0: document blocks are not permitted here',
    ],
  ])('N1 what that version refuses is refused in its own words: %s', async (_, more, message) => {
    const headers = { 'x-weir-unsupported': 'refuse' };
    const error = await client.messages
      .create({ ...body, ...more }, { headers })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Anthropic.BadRequestError);
    expect(String(error)).toContain(message);
  });

  test('Z4 N1 a refusal that this version caused: a client of the earlier version keeps its sampling', async () => {
    const { response: learned } = await send(
      { model: body.model, temperature: 0.5 },
      { 'anthropic-version': '2026-10-21' },
    );
    expect([learned.status, learned.headers.get('x-weir-dropped')]).toEqual([200, 'temperature']);
    const { response, upstream } = await send(
      { model: body.model, temperature: 0.5 },
      { 'anthropic-version': '2023-06-01' },
    );
    expect([response.status, upstream?.body?.temperature]).toEqual([200, 0.5]);
  });
});

describe('N1 errors keep their status and message', () => {
  test('an invalid request', async () => {
    const { response, text } = await send({ model: 'anthropic/claude-haiku-4-5', messages: [] });
    expect(response.status).toBe(400);
    expect(objectOf(decodeObject(text)?.error).type).toBe('invalid_request_error');
  });

  test('an unknown model', async () => {
    const { response, text } = await send({ model: 'anthropic/claude-none' });
    expect(response.status).toBe(404);
    expect(text).toContain('model: claude-none');
  });
});

describe.each(['anthropic/claude-haiku-4-5'])('I7 N1 a tool loop with signed thinking at %s', (model) => {
  function expectWholeLoop(before: number): void {
    const requests = gateway.simulator.requests.slice(before);
    expect(requests).toHaveLength(STEPS + 1);
    const sent = objectsOf(requests.at(-1)?.body?.messages);
    const blocks = sent.flatMap(({ content }) => objectsOf(content));
    expect(blocks.filter(({ type }) => type === 'tool_result')).toHaveLength(CALLS);
    expect(blocks.filter(({ type }) => type === 'thinking')).toHaveLength(STEPS);
    expect(JSON.stringify(sent)).not.toContain('weir1:');
  }

  test.each([true, false])('manual, streamed: %s', async (isStreamed) => {
    const before = gateway.simulator.requests.length;
    expect((await runByHand(client, model, isStreamed)).calls).toBe(CALLS);
    expectWholeLoop(before);
  });

  test.each([true, false])('@ai-sdk/anthropic, streamed: %s', async (isStreamed) => {
    const before = gateway.simulator.requests.length;
    expect((await runWithAiSdk(`${gateway.url}/v1`, 'unused', model, isStreamed)).calls).toBe(CALLS);
    expectWholeLoop(before);
  });
});

describe('N1 N2 the SDK’s tool runner, which continues with a thread', () => {
  /** The requests of one loop, which ends in a text after all of its calls. */
  async function run(model: string): Promise<readonly JsonObject[]> {
    const before = gateway.simulator.requests.length;
    const { text, calls } = await runWithToolRunner(client, model);
    expect(calls).toBe(CALLS);
    expect(text).not.toBe('');
    return gateway.simulator.requests.slice(before).map(({ body }) => body ?? {});
  }

  const kindsOf = (bodies: readonly JsonObject[]) => bodies.map(({ thread }) => objectOf(thread).type);

  test.each(['claude-haiku-4-5', 'claude-sonnet-5', 'claude-opus-5-5'])(
    '%s: each turn after the first sends only its results',
    async (model) => {
      const bodies = await run(`anthropic/${model}`);
      expect(kindsOf(bodies)).toEqual(['create', ...Array(STEPS).fill('continue')]);
      for (const body of bodies.slice(1)) {
        expect(objectsOf(body.messages)).toHaveLength(1);
        expect(body).not.toHaveProperty('tools');
      }
    },
  );

  test('a lost thread: Anthropic’s 404 reaches the runner, which sends the whole conversation', async () => {
    isThreadLost = true;
    const bodies = await run('anthropic/claude-haiku-4-5');
    expect(kindsOf(bodies)).toEqual(['create', 'continue', 'create', ...Array(STEPS - 1).fill('continue')]);
    expect(objectsOf(bodies[2]?.messages)).toHaveLength(3);
  });

  test('an alias of several targets: the runner continues without a thread', async () => {
    const bodies = await run('either');
    expect(kindsOf(bodies)).toEqual(Array(STEPS + 1).fill(undefined));
    expect(objectsOf(bodies.at(-1)?.messages)).toHaveLength(1 + 2 * STEPS);
  });

  test('a paused turn continues without a message', async () => {
    const thread = { type: 'continue', previous_message_id: 'msg_paused' };
    const { upstream } = await send({ model: 'anthropic/replay-none', messages: [], thread });
    expect(upstream?.body).toMatchObject({ messages: [], thread });
  });
});

describe('I7 a conversation that changes its provider', () => {
  const tools = [{ name: 'gauge', input_schema: { type: 'object' as const, properties: {} } }];
  const thinking = { type: 'enabled' as const, budget_tokens: 2048 };
  const TASK = { role: 'user' as const, content: 'steps:1 How high is the river?' };

  /** Sends one turn to each of the models: the steps of one tool loop, or a loop for each. */
  async function move(models: readonly string[], text: string | null): Promise<string[]> {
    const messages: Anthropic.MessageParam[] = [TASK];
    const sent: string[] = [];
    for (const model of models) {
      const before = gateway.simulator.requests.length;
      const body = { model, max_tokens: 4096, messages, tools, thinking };
      const { content } = await client.messages.stream(body).finalMessage();
      sent.push(JSON.stringify(gateway.simulator.requests[before]?.body?.messages));
      messages.push({ role: 'assistant', content });
      const results = content
        .filter((block) => block.type === 'tool_use')
        .map(({ id }) => ({ type: 'tool_result' as const, tool_use_id: id, content: '312 cm' }));
      messages.push({ role: 'user', content: results });
      if (text !== null)
        messages.push({ role: 'assistant', content: 'Noted.' }, { role: 'user', content: text });
    }
    return sent;
  }

  const MODELS = ['deepseek/deepseek-flash', 'anthropic/claude-haiku-4-5', 'deepseek/deepseek-flash'];

  test('between turns: no provider receives another’s reasoning state', async () => {
    const sent = await move(MODELS, 'steps:1 And now?');
    for (const messages of sent) expect(messages).not.toContain('weir1:');
  });

  test('within a tool loop: the rest of it is translated', async () => {
    const sent = await move(MODELS.slice(0, 2), null);
    for (const messages of sent) expect(messages).not.toContain('weir1:');
  });
});
