/** OpenAI's chat, text completions and embeddings as client protocols: checks request bodies, and names their writers. */
import { apiError, errorBody } from '../../canonical/error.ts';
import { isObject, type JsonObject } from '../../shared/json.ts';
import { failure, ok } from '../../shared/result.ts';
import type { ClientProtocol } from '../shared/client-protocol.ts';
import { ChatWriter } from './client-writer.ts';
import { ChatJsonWriter } from './json-writer.ts';

/** A check of a request body. */
interface Check {
  readonly param: string;
  readonly message: string;
  readonly isInvalid: (body: JsonObject) => boolean;
}

const MESSAGES: Check = {
  param: 'messages',
  message: 'messages must be a list with at least one message',
  isInvalid: (body) =>
    !Array.isArray(body.messages) || body.messages.length === 0 || !body.messages.every(isObject),
};

const PROMPT: Check = {
  param: 'prompt',
  message: 'prompt must be a text or a list',
  isInvalid: (body) => typeof body.prompt !== 'string' && !Array.isArray(body.prompt),
};

const INPUT: Check = {
  param: 'input',
  message:
    'input must be a text, a list of texts, a list of tokens, or a list of token lists, and not be empty',
  isInvalid: ({ input }) => (typeof input !== 'string' && !Array.isArray(input)) || input.length === 0,
};

const ENCODING: Check = {
  param: 'encoding_format',
  message: 'encoding_format must be float or base64',
  isInvalid: ({ encoding_format }) =>
    !['float', 'base64', undefined, null].some((one) => one === encoding_format),
};

/** Only fields that Weir reads are checked; the provider validates the rest. */
const COMMON: readonly Check[] = [
  {
    param: 'stream',
    message: 'stream must be true or false',
    isInvalid: (body) =>
      body.stream !== undefined && body.stream !== null && typeof body.stream !== 'boolean',
  },
  {
    param: 'stream_options',
    message: 'stream_options must be an object',
    isInvalid: ({ stream_options }) =>
      stream_options !== undefined && stream_options !== null && !isObject(stream_options),
  },
];

/** `/v1/chat/completions` and agent routes. */
export const chat = completionClient('chat', MESSAGES, ...COMMON);
/** Fill-in-the-middle: the request has a prompt, the response has the form of chat. */
export const fim = completionClient('chat', PROMPT, ...COMMON);
/** Its writers are not used: embeddings have no chunks. */
export const embeddings = completionClient('chat', INPUT, ENCODING);
export const completions = completionClient('completions', PROMPT, ...COMMON);

/** The body is the canonical request as it came. The first check that fails is the error. */
function completionClient(id: 'chat' | 'completions', ...checks: readonly Check[]): ClientProtocol<null> {
  return {
    id,
    takesVendorEvents: true,
    readRequest: (body) => {
      const failed = checks.find(({ isInvalid }) => isInvalid(body));
      return failed === undefined
        ? ok({
            fields: body,
            turns: null,
            dropped: [],
            translationError: null,
            isPinned: false,
            session: null,
          })
        : failure(apiError('invalid_request', failed.message, failed.param));
    },
    streamWriter: (_, { errorFrames, maxEventBytes }) => new ChatWriter(errorFrames, maxEventBytes),
    jsonWriter: () => new ChatJsonWriter(),
    errorResponse: (error) => ({ status: error.status, body: errorBody(error) }),
  };
}
