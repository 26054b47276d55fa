/** The dialects in which the soak's clients speak: what each asks, and what its answer must be, by the protocol's own checker and reading. */

import { check } from '../../test/contract/check.ts';
import { checkMessages } from '../../test/contract/check-messages.ts';
import { readClient } from '../../test/contract/plain-reading.ts';
import { readMessage } from '../../test/contract/read-message.ts';
import { checkResponses, eventsIn } from '../../test/protocols/openai-responses/check.ts';
import { decodeObject, type JsonObject, numberOf, objectOf, textOf } from '../simulator/json.ts';

/** What a client reads in an answer. */
export interface Heard {
  readonly text: string;
  readonly reasoning: string;
  /** Null where the answer does not say it. */
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly hasError: boolean;
}

export interface Spoken {
  readonly path: string;
  readonly body: (model: string) => JsonObject;
  /** Each piece of text or reasoning in its stream. */
  readonly piece: RegExp;
  readonly faults: (text: string, stream: StreamKind) => string[];
  readonly hear: (text: string) => Heard;
  /** Whether the body is an error as the protocol has it before the head. */
  readonly isError: (body: JsonObject) => boolean;
}

interface StreamKind {
  readonly provider: string;
  /** A stream whose client left ends anywhere. */
  readonly isWhole: boolean;
  /** The provider speaks the protocol itself, so that the events are its own. */
  readonly isLane: boolean;
}

export type DialectName = 'chat' | 'completions' | 'messages' | 'responses';

const PROMPT = 'Hello there';
/** The simulator counts words. */
export const PROMPT_TOKENS = 2;
const MESSAGES = [{ role: 'user', content: PROMPT }];
const ASK_USAGE = { stream: true, stream_options: { include_usage: true } };

export const DIALECTS: Readonly<Record<DialectName, Spoken>> = {
  chat: {
    path: '/v1/chat/completions',
    body: (model) => ({ model, messages: MESSAGES, ...ASK_USAGE }),
    piece: /"(?:content|reasoning_content)":"[^"]/g,
    faults: chatFaults('chat'),
    hear: hearChat,
    isError: isOpenAiError,
  },
  completions: {
    path: '/v1/completions',
    body: (model) => ({ model, prompt: PROMPT, ...ASK_USAGE }),
    piece: /"text":"[^"]/g,
    faults: chatFaults('text'),
    hear: hearChat,
    isError: isOpenAiError,
  },
  messages: {
    path: '/v1/messages',
    body: (model) => ({ model, max_tokens: 4096, messages: MESSAGES, stream: true }),
    piece: /"type":"(?:text|thinking)_delta"/g,
    faults: (text, { isWhole }) => {
      const faults = checkMessages(isWhole ? text : wholeFrames(text));
      return isWhole ? faults : faults.filter((fault) => !fault.startsWith('neither message_stop nor error'));
    },
    hear: hearMessages,
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
    hear: hearResponses,
    isError: isOpenAiError,
  },
};

function wholeFrames(text: string): string {
  return text.slice(0, text.lastIndexOf('\n\n') + 2);
}

function chatFaults(shape: 'chat' | 'text'): Spoken['faults'] {
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

/** What a provider's own stream has otherwise than Open Responses: the keys of its response, items that are whole at once. */
const OWN_WAYS = /^response\.\w+ \(\d+\): response |: \w[\w ]* is no key of it$|: it is not in progress$/;

function responsesFaults(text: string, { isWhole, isLane }: StreamKind): string[] {
  const faults = checkResponses(isWhole ? text : wholeFrames(text), isWhole);
  if (!isLane) return faults;
  // The passthrough holds no text that it could repeat where the answer failed; a provider's own end has no `[DONE]`.
  const ending = text.includes('"type":"response.failed"')
    ? /^the output /
    : /^\[DONE\] is not the last frame$/;
  return faults.filter((fault) => !OWN_WAYS.test(fault) && !ending.test(fault));
}

function hearChat(stream: string): Heard {
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

function hearMessages(stream: string): Heard {
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

/** By its deltas: that the ending repeats them is the checker's. */
function hearResponses(stream: string): Heard {
  const events = eventsIn(stream);
  const said = (type: string) =>
    events.map((event) => (event.type === `response.${type}.delta` ? textOf(event.delta) : '')).join('');
  const usage = objectOf(objectOf(events.at(-1)?.response).usage);
  return {
    text: said('output_text'),
    reasoning: said('reasoning_summary_text'),
    promptTokens: numberOf(usage.input_tokens) ?? null,
    completionTokens: numberOf(usage.output_tokens) ?? null,
    hasError: events.some(({ type }) => type === 'error'),
  };
}

function isOpenAiError(body: JsonObject): boolean {
  const { message, type, code } = objectOf(body.error);
  return [message, type, code].every((word) => textOf(word) !== '');
}

/** What is wrong with a refusal before the head, or null. */
export function refusalFault({ isError }: Spoken, status: number, text: string): string | null {
  const body = decodeObject(text);
  const isRight = status >= 500 && body !== undefined && isError(body);
  return isRight ? null : `no error of its protocol: ${status} ${text.slice(0, 160)}`;
}
