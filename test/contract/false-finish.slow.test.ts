/**
 * Cuts every recorded stream with tool calls after each event and appends false finishes: no client sees a complete call that is not (C8).
 * After each event it tries one in three finishes, after the next one the others; STEP=1 tries all.
 */
import { describe, expect, test } from 'vitest';
import { UsageAccumulator } from '../../src/metering/request-meter.ts';
import { MessagesWriter } from '../../src/protocols/anthropic-messages/client-writer.ts';
import { MessagesJsonWriter } from '../../src/protocols/anthropic-messages/json-writer.ts';
import { messagesPassthrough } from '../../src/protocols/anthropic-messages/passthrough.ts';
import { anthropicMessages } from '../../src/protocols/anthropic-messages/upstream-reader.ts';
import { gemini } from '../../src/protocols/gemini/upstream-reader.ts';
import { ChatWriter } from '../../src/protocols/openai-chat/client-writer.ts';
import { ChatJsonWriter } from '../../src/protocols/openai-chat/json-writer.ts';
import { openaiChat } from '../../src/protocols/openai-chat/upstream-reader.ts';
import { ResponsesWriter } from '../../src/protocols/openai-responses/client-writer.ts';
import { ResponsesJsonWriter } from '../../src/protocols/openai-responses/json-writer.ts';
import { responsesPassthrough } from '../../src/protocols/openai-responses/passthrough.ts';
import { type ResponsesSession, writeEcho } from '../../src/protocols/openai-responses/session.ts';
import { openaiResponses } from '../../src/protocols/openai-responses/upstream-reader.ts';
import type { WriterOptions } from '../../src/protocols/shared/client-protocol.ts';
import { EventReader } from '../../src/stream/event-reader.ts';
import { type JsonWriter, MORE, type StreamWriter, type UpstreamProtocol } from '../../src/stream/types.ts';
import { eventsOf } from '../../tools/conformance/contract/content.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  listOf,
  objectOf,
  parseJson,
  textOf,
} from '../../tools/conformance/contract/json.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import { stepOf } from '../random-run.ts';
import { optionsOf, REQUEST_ID } from './convert.ts';
import { framed, readRecordings, recordingsNote } from './recordings.ts';

const STEP = stepOf(5, 5);
const encoder = new TextEncoder();
const decoder = new TextDecoder();

type Name = 'openai' | 'anthropic' | 'gemini' | 'responses';

const PROTOCOLS: Readonly<Record<Name, UpstreamProtocol>> = {
  openai: openaiChat,
  anthropic: anthropicMessages,
  gemini,
  responses: openaiResponses,
};

const DONE = 'data: [DONE]\n\n';
const bare = (event: object) => `data: ${JSON.stringify(event)}\n\n`;
const named = (type: string, members: object = {}) => `event: ${type}\n${bare({ type, ...members })}`;
const chatFinish = (finish_reason: string, more: object = {}) =>
  bare({ id: 'x', choices: [{ index: 0, delta: {}, finish_reason, ...more }] }) + DONE;
/** Providers' own words for their limit, which a relay sends beside a finish word that says something else. */
const NATIVE_LIMITS = [
  'length',
  'max_tokens',
  'MAX_TOKENS',
  'max_output_tokens',
  'model_length',
  'model_context_window_exceeded',
];
const messageEnd = (stop_reason: string) =>
  named('message_delta', { delta: { stop_reason }, usage: {} }) + named('message_stop');

/** An item of a Responses output, as far as its arguments have come. */
interface Item {
  readonly index: number;
  readonly item: JsonObject;
  json: string;
}

/** The false ends of each protocol, for the events so far. */
const ENDS: Readonly<Record<Name, readonly ((events: string) => string)[]>> = {
  openai: [
    () => chatFinish('tool_calls'),
    () => chatFinish('stop'),
    () => chatFinish('eos'),
    () => DONE,
    ...NATIVE_LIMITS.map(
      (native_finish_reason, at) => () =>
        chatFinish(at % 2 === 0 ? 'tool_calls' : 'stop', { native_finish_reason }),
    ),
  ],
  anthropic: [
    () => messageEnd('tool_use'),
    () => messageEnd('end_turn'),
    () =>
      [0, 1, 2, 3].map((index) => named('content_block_stop', { index })).join('') + messageEnd('tool_use'),
    () => named('message_stop'),
    () => DONE,
    ...['max_tokens', 'model_context_window_exceeded', 'pause_turn', 'refusal'].map(
      (reason) => () => messageEnd(reason),
    ),
  ],
  gemini: [
    ...['STOP', 'MAX_TOKENS'].map(
      (finishReason) => () => bare({ candidates: [{ content: { parts: [] }, finishReason, index: 0 }] }),
    ),
    () => DONE,
  ],
  responses: [
    () => completed([]),
    (events) => completed(endedCalls(events)),
    (events) =>
      callsIn(events)
        .map(({ index, item, json }) => {
          const done = { ...item, arguments: json, status: 'completed' };
          return named('response.output_item.done', { output_index: index, item: done });
        })
        .join('') + completed([]),
    () => DONE,
    ...['max_output_tokens', 'max_messages', 'content_filter'].flatMap((reason) => {
      const limit = { incomplete_details: { reason } };
      return [
        (events: string) => completed(endedCalls(events), limit),
        (events: string) => completed(endedCalls(events), { ...limit, status: 'incomplete' }),
      ];
    }),
  ],
};

function completed(output: readonly JsonObject[], more: object = {}): string {
  const response = { id: 'r', object: 'response', model: 'm', status: 'completed', output, ...more };
  return named(response.status === 'completed' ? 'response.completed' : 'response.incomplete', { response });
}

function endedCalls(events: string): JsonObject[] {
  return callsIn(events).map(({ item, json }) => ({ ...item, arguments: json, status: 'completed' }));
}

function callsIn(text: string): Item[] {
  const calls: Item[] = [];
  for (const { data } of eventsOf(text)) {
    const { type, item, output_index, delta } = objectOf(parseJson(data));
    const own = objectOf(item);
    if (type === 'response.output_item.added' && own.type === 'function_call') {
      calls.push({ index: Number(output_index), item: own, json: '' });
    }
    if (type !== 'response.function_call_arguments.delta') continue;
    const call = calls.find(({ index }) => index === output_index);
    if (call !== undefined) call.json += textOf(delta);
  }
  return calls;
}

const OPTIONS: WriterOptions = {
  errorFrames: 'data',
  maxEventBytes: 1024 * 1024,
  requestId: REQUEST_ID,
  promptTokens: 1,
  model: 'openai/m',
  now: () => 1,
};

/** A complete call as a client sees it. */
type Call = readonly [name: string, json: string];

/** The complete calls of what a client got. Null: it got no complete output. */
type ReadCalls = (text: string) => readonly Call[] | null;

interface Client {
  readonly open: () => StreamWriter | JsonWriter;
  readonly read: ReadCalls;
  /** Where it is passthrough. */
  readonly only?: Name;
}

const streamed = (read: (events: readonly JsonObject[]) => readonly Call[] | null) => (text: string) =>
  read([...eventsOf(text)].map(({ data }) => objectOf(parseJson(data))));

const chatEvents = streamed((events) => {
  const calls = new Map<Json | undefined, [string, string]>();
  let finish = '';
  for (const event of events) {
    if ('error' in event) return null;
    const choice = objectOf(listOf(event.choices)[0]);
    finish ||= textOf(choice.finish_reason);
    for (const fragment of listOf(objectOf(choice.delta).tool_calls).map(objectOf)) {
      const { name, arguments: json } = objectOf(fragment.function);
      const call = calls.get(fragment.index) ?? [textOf(name), ''];
      call[1] += textOf(json);
      calls.set(fragment.index, call);
    }
  }
  return isComplete(finish) ? [...calls.values()] : null;
});

function chatObject(text: string): readonly Call[] | null {
  const { message, finish_reason } = objectOf(listOf(objectOf(parseJson(text)).choices)[0]);
  if (!isComplete(textOf(finish_reason))) return null;
  return listOf(objectOf(message).tool_calls).map((call) => {
    const { name, arguments: json } = objectOf(objectOf(call).function);
    return [textOf(name), textOf(json)];
  });
}

/** Blocks that ended count if the stream fails after them: Anthropic's helper calls them finished. */
const messageEvents = streamed((events) => {
  const calls: { -readonly [I in keyof Call]: Call[I] }[] = [];
  const ended: Call[] = [];
  const blocks = new Map<Json | undefined, Call>();
  let stop = '';
  for (const { type, index, content_block, delta } of events) {
    if (type === 'error') return ended;
    const block = objectOf(content_block);
    if (block.type === 'tool_use') {
      const call: [string, string] = [textOf(block.name), inputOf(block.input)];
      calls.push(call);
      blocks.set(index, call);
    }
    const { partial_json, stop_reason } = objectOf(delta);
    const last = calls.at(-1);
    if (last !== undefined) last[1] += textOf(partial_json);
    const call = blocks.get(index);
    if (type === 'content_block_stop' && call !== undefined) ended.push(call);
    stop ||= textOf(stop_reason);
  }
  if (!events.some(({ type }) => type === 'message_stop')) return ended;
  return isComplete(stop) ? calls : null;
});

function inputOf(input: Json | undefined): string {
  return isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : '';
}

function messageObject(text: string): readonly Call[] | null {
  const { content, stop_reason } = objectOf(parseJson(text));
  if (!isComplete(textOf(stop_reason))) return null;
  const blocks = listOf(content).map(objectOf);
  return blocks.flatMap(({ type, name, input }) =>
    type === 'tool_use' ? [[textOf(name), inputOf(input)] as const] : [],
  );
}

/** Items that are done count, however the response ends: clients run their calls. */
const responseEvents = streamed((events) => {
  const items = events.flatMap(({ type, item, response }) =>
    type === 'response.output_item.done'
      ? [item]
      : type === 'response.completed'
        ? listOf(objectOf(response).output)
        : [],
  );
  return callsOf(items);
});

function callsOf(items: readonly (Json | undefined)[]): readonly Call[] {
  return items
    .map(objectOf)
    .flatMap(({ type, status, name, arguments: json }) =>
      type === 'function_call' && status !== 'incomplete' ? [[textOf(name), textOf(json)] as const] : [],
    );
}

function responseObject(text: string): readonly Call[] | null {
  const { output, status } = objectOf(parseJson(text));
  return status === 'completed' ? callsOf(listOf(output)) : null;
}

/** The words of all client protocols for an output that is not complete. In passthrough they are the provider's. */
const INCOMPLETE = [
  ...['length', 'content_filter', 'max_tokens', 'refusal'],
  ...['model_context_window_exceeded', 'pause_turn'],
];

function isComplete(finish: string): boolean {
  return finish !== '' && !INCOMPLETE.includes(finish);
}

const passthrough = { ...OPTIONS, provider: 'p', reasoning: DEFAULT_POLICIES.reasoning } as const;

const SESSION: ResponsesSession = {
  echo: writeEcho({}, []),
  tools: new Map(),
  wantsEncrypted: false,
  serviceTier: 'default',
};

const CLIENTS: Readonly<Record<string, Client>> = {
  'chat, streamed': { open: () => new ChatWriter('data', 1024 * 1024), read: chatEvents },
  chat: { open: () => new ChatJsonWriter(), read: chatObject },
  'Messages, streamed': { open: () => new MessagesWriter(OPTIONS), read: messageEvents },
  Messages: { open: () => new MessagesJsonWriter(OPTIONS), read: messageObject },
  'Responses, streamed': { open: () => new ResponsesWriter(SESSION, OPTIONS), read: responseEvents },
  Responses: { open: () => new ResponsesJsonWriter(SESSION, OPTIONS), read: responseObject },
  'Messages passthrough': {
    open: () => messagesPassthrough.streamWriter(passthrough),
    read: messageEvents,
    only: 'anthropic',
  },
  'Responses passthrough': {
    open: () => responsesPassthrough(null).streamWriter(passthrough),
    read: responseEvents,
    only: 'responses',
  },
};

/** What a client gets of a stream; empty if a JSON response failed. */
function run(protocol: UpstreamProtocol, upstream: string, { open }: Client): string {
  const writer = open();
  const options = optionsOf(
    { provider: 'openai', route: 'chat', model: 'm', usageChunk: true, protocol },
    new UsageAccumulator(() => 1, 1),
  );
  const reader = new EventReader(options, writer, 'output' in writer ? writer : null);
  const pushed = reader.push(encoder.encode(upstream));
  const outcome = pushed === MORE ? reader.end() : pushed;
  const failure = outcome.kind === 'failed' ? outcome.failure : null;
  if (!('output' in writer)) return failure === null ? writer.take() : '';
  writer.end(failure);
  return decoder.decode(writer.output.take());
}

function isName(protocol: string): protocol is Name {
  return Object.hasOwn(PROTOCOLS, protocol);
}

const WITH_CALLS = /"tool_calls"|"tool_use"|"functionCall"|"function_call"/;

const recordings = readRecordings().flatMap((recording) => {
  const { name, protocol, text } = recording;
  return isName(protocol) && WITH_CALLS.test(text) ? [[name, protocol, framed(recording)] as const] : [];
});

describe.skipIf(recordingsNote !== '')(`false finishes${recordingsNote}`, () => {
  test('there are recordings with tool calls of every protocol', () => {
    expect(new Set(recordings.map(([, protocol]) => protocol)).size).toBe(4);
  });

  test.each(recordings)('C8 E2 %s (%s), cut after each event', (_, name, upstream) => {
    const ends = [...upstream.matchAll(/\r?\n\r?\n/g)].map(({ index, 0: end }) => index + end.length);
    const clients = Object.entries(CLIENTS).filter(([, { only }]) => only === undefined || only === name);
    for (const [label, client] of clients) {
      const whole = client.read(run(PROTOCOLS[name], upstream, client)) ?? [];
      const known = new Set(whole.map(([tool, json]) => `${tool} ${canonical(json)}`));
      // Of a recording that was truncated itself, only the form of the arguments is known.
      const isKnown = ([tool, json]: Call) =>
        known.has(`${tool} ${canonical(json)}`) || (whole.length === 0 && parseJson(json) !== undefined);
      const wrong: string[] = [];
      for (const [at, end] of ends.entries()) {
        const begun = upstream.slice(0, end);
        for (const [kind, finish] of ENDS[name].entries()) {
          if ((at + kind) % STEP !== 0) continue;
          const calls = client.read(run(PROTOCOLS[name], begun + finish(begun), client)) ?? [];
          for (const call of calls) {
            // A call of which nothing but the name has come looks like one without arguments.
            const isEmpty = ['', '{}'].includes(call[1].trim());
            if (!isEmpty && !isKnown(call)) wrong.push(`event ${at}, end ${kind}: ${call.join(' ')}`);
          }
        }
      }
      expect(wrong, label).toEqual([]);
    }
  });
});

/** Equal for equal JSON. */
function canonical(json: string): string {
  const value = parseJson(json);
  return value === undefined ? json : JSON.stringify(value);
}
