/** Anthropic's Messages as a client's dialect: its SDKs and Claude Code (I1-I3). */
import type { ClientProtocol } from '../shared/client-protocol.ts';
import { errorAnswer } from './client-errors.ts';
import { readRequest } from './client-request.ts';
import { MessagesWriter } from './client-writer.ts';
import { MessagesJsonWriter } from './json-writer.ts';
import { messagesPassthrough } from './passthrough.ts';

export const messages: ClientProtocol<null> = {
  id: 'messages',
  passthrough: messagesPassthrough,
  takesVendorEvents: false,
  readRequest: readRequest,
  streamWriter: (_, options) => new MessagesWriter(options),
  jsonWriter: (_, options) => new MessagesJsonWriter(options),
  errorResponse: errorAnswer,
};
