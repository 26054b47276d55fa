/** The soak's client protocols: the request of each, and how its responses are read and checked. */

import { readMessage } from '../../test/contract/reference-message.ts';
import { readClient } from '../../test/contract/reference-reader.ts';
import { check } from '../conformance/contract/check.ts';
import { checkMessages } from '../conformance/contract/check-messages.ts';
import { checkResponses, eventsIn } from '../conformance/contract/check-responses.ts';
import { decodeObject, type JsonObject, numberOf, objectOf, textOf } from '../simulator/json.ts';

/** The output that a client reads from a response. */
export interface ReadOutput {
  readonly text: string;
  readonly reasoning: string;
  /** Null if not reported. */
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly hasError: boolean;
}

export interface ClientProtocol {
  readonly path: string;
  readonly body: (model: string) => JsonObject;
  /** Matches each piece of text or reasoning in a stream. */
  readonly piece: RegExp;
  readonly faults: (text: string, stream: StreamKind) => string[];
  readonly read: (text: string) => ReadOutput;
  /** Whether the body is an error response of the protocol. */
  readonly isError: (body: JsonObject) => boolean;
}

interface StreamKind {
  readonly provider: string;
  /** False if the client disconnected: the stream may end anywhere. */
  readonly isWhole: boolean;
  /** Client and provider use the same protocol, so the events are the provider's. */
  readonly isPassthrough: boolean;
}

export type ProtocolName = 'chat' | 'completions' | 'messages' | 'responses';

const PROMPT = 'Hello there';
/** The simulator counts words. */
export const PROMPT_TOKENS = 2;
const MESSAGES = [{ role: 'user', content: PROMPT }];
const ASK_USAGE = { stream: true, stream_options: { include_usage: true } };

export const PROTOCOLS: Readonly<Record<ProtocolName, ClientProtocol>> = {
  chat: {
    path: '/v1/chat/completions',
    body: (model) => ({ model, messages: MESSAGES, ...ASK_USAGE }),
    piece: /"(?:content|reasoning_content)":"[^"]/g,
    faults: chatFaults('chat'),
    read: readChat,
    isError: isOpenAiError,
  },
  completions: {
    path: '/v1/completions',
    body: (model) => ({ model, prompt: PROMPT, ...ASK_USAGE }),
    piece: /"text":"[^"]/g,
    faults: chatFaults('text'),
    read: readChat,
    isError: isOpenAiError,
  },
  messages: {
    path: '/v1/messages',
    body: (model) => ({ model, max_tokens: 4096, messages: MESSAGES, stream: true }),
    piece: /"type":"(?:text|thinking)_delta"/g,
    faults: (text, { isWhole, isPassthrough }) => {
      const faults = checkMessages(isWhole ? text : wholeFrames(text), isPassthrough);
      return isWhole ? faults : faults.filter((fault) => !fault.startsWith('neither message_stop nor error'));
    },
    read: readMessages,
    isError: (body) => {
      const { type, message } = objectOf(body.error);
      return body.type === 'error' && textOf(type) !== '' && textOf(message) !== '';
    },
  },
  responses: {
    path: '/v1/responses',
    body: (model) => ({ model, input: PROMPT, stream: true }),
    piece: /"type":"response\.(?:output_text|reasoning_summary_text)\.delta"/g,
    faults: responsesFaults,
    read: readResponses,
    isError: isOpenAiError,
  },
};

function wholeFrames(text: string): string {
  return text.slice(0, text.lastIndexOf('\n\n') + 2);
}

function chatFaults(shape: 'chat' | 'text'): ClientProtocol['faults'] {
  return (text, { provider, isWhole }) =>
    check(Buffer.from(text), {
      shape,
      provider,
      usage: 'end',
      vendorEvents: 'strip',
      errorFrames: 'data',
      clientLeft: !isWhole,
    });
}

/** How provider streams differ from Open Responses: keys of the response, items without deltas. */
const PROVIDER_DIFFERENCES =
  /^response\.\w+ \(\d+\): response |: \w[\w ]* is no key of it$|: it is not in progress$/;

function responsesFaults(text: string, { isWhole, isPassthrough }: StreamKind): string[] {
  const faults = checkResponses(isWhole ? text : wholeFrames(text), isWhole);
  if (!isPassthrough) return faults;
  // The passthrough keeps no text to repeat after a failure, and provider streams have no `[DONE]`.
  const ending = text.includes('"type":"response.failed"')
    ? /^the output /
    : /^\[DONE\] is not the last frame$/;
  return faults.filter((fault) => !PROVIDER_DIFFERENCES.test(fault) && !ending.test(fault));
}

function readChat(stream: string): ReadOutput {
  const { choices, usage, error } = readClient(stream);
  const { text = '', reasoning = '' } = choices.get(0) ?? {};
  return {
    text,
    reasoning,
    promptTokens: usage?.prompt ?? null,
    completionTokens: usage?.completion ?? null,
    hasError: error !== null,
  };
}

function readMessages(stream: string): ReadOutput {
  const { text, reasoning, usage, error } = readMessage(stream);
  const ofCache = ['cache_read_input_tokens', 'cache_creation_input_tokens'];
  const cached = ofCache.reduce((sum, name) => sum + (numberOf(usage?.[name]) ?? 0), 0);
  const input = numberOf(usage?.input_tokens);
  return {
    text,
    reasoning,
    promptTokens: input === undefined ? null : input + cached,
    completionTokens: numberOf(usage?.output_tokens) ?? null,
    hasError: error !== null,
  };
}

/** Reads the deltas. The checker compares them with the repetition at the end. */
function readResponses(stream: string): ReadOutput {
  const events = eventsIn(stream);
  const said = (type: string) =>
    events.map((event) => (event.type === `response.${type}.delta` ? textOf(event.delta) : '')).join('');
  const usage = objectOf(objectOf(events.at(-1)?.response).usage);
  return {
    text: said('output_text'),
    reasoning: said('reasoning_summary_text') + said('reasoning_text'),
    promptTokens: numberOf(usage.input_tokens) ?? null,
    completionTokens: numberOf(usage.output_tokens) ?? null,
    hasError: events.some(({ type }) => type === 'error'),
  };
}

function isOpenAiError(body: JsonObject): boolean {
  const { message, type, code } = objectOf(body.error);
  return [message, type, code].every((word) => textOf(word) !== '');
}

/** The problem of an error response, or null. */
export function refusalFault({ isError }: ClientProtocol, status: number, text: string): string | null {
  const body = decodeObject(text);
  const isRight = status >= 500 && body !== undefined && isError(body);
  return isRight ? null : `not an error of the protocol: ${status} ${text.slice(0, 160)}`;
}
