/** Anthropic's Messages as a client's dialect: its SDKs and Claude Code (I1-I3). */
import type { Client } from '../shared/client-protocol.ts';
import { errorAnswer } from './client-errors.ts';
import { readRequest } from './client-request.ts';
import { MessageWriter } from './client-writer.ts';
import { MessageBuilder } from './json-writer.ts';
import { lane } from './passthrough.ts';

export const messages: Client<null> = {
  id: 'messages',
  lane,
  takesVendorEvents: false,
  read: readRequest,
  openStream: (_, options) => new MessageWriter(options),
  openWhole: (_, options) => new MessageBuilder(options),
  error: errorAnswer,
};
