/** OpenAI's chat and text completions as a client's dialect: the request is the canonical one, and so is the answer. */
import { apiError, errorBody } from '../../canonical/error.ts';
import { isObject, type JsonObject } from '../../shared/json.ts';
import type { ClientProtocol, ClientRequest } from '../shared/client-protocol.ts';
import { ChatWriter } from './client-writer.ts';
import { ChatJsonWriter } from './json-writer.ts';

interface Problem {
  readonly param: string;
  readonly message: string;
  readonly isInvalid: (body: JsonObject) => boolean;
}

const MESSAGES: Problem = {
  param: 'messages',
  message: 'messages must be a list with at least one message',
  isInvalid: (body) =>
    !Array.isArray(body.messages) || body.messages.length === 0 || !body.messages.every(isObject),
};

const PROMPT: Problem = {
  param: 'prompt',
  message: 'prompt must be a text or a list',
  isInvalid: (body) => typeof body.prompt !== 'string' && !Array.isArray(body.prompt),
};

/** What only a provider can judge is left to the provider. */
const COMMON: readonly Problem[] = [
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

/** @param problems the first that fits is answered */
function completionClient(id: 'chat' | 'completions', ...problems: readonly Problem[]): ClientProtocol<null> {
  return {
    id,
    takesVendorEvents: true,
    read: (body): ClientRequest<null> => {
      const problem = problems.find(({ isInvalid }) => isInvalid(body));
      return problem === undefined
        ? { kind: 'request', body, dropped: [], onlyNative: null, isPinned: false, session: null }
        : { kind: 'error', error: apiError('invalid_request', problem.message, problem.param) };
    },
    openStream: (_, { errorFrames, maxEventBytes }) => new ChatWriter(errorFrames, maxEventBytes),
    openWhole: () => new ChatJsonWriter(),
    error: (error) => ({ status: error.status, body: errorBody(error) }),
  };
}

/** Chat, and an agent's. */
export const chat = completionClient('chat', MESSAGES, ...COMMON);
/** Fill-in-the-middle: a prompt, answered as chat. */
export const fim = completionClient('chat', PROMPT, ...COMMON);
export const completions = completionClient('completions', PROMPT, ...COMMON);
