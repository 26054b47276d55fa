/** Anthropic's Messages as a client's dialect: its SDKs and Claude Code (I1-I3). */
import type { Client } from '../client.ts';
import { errorAnswer } from './errors.ts';
import { lane } from './lane.ts';
import { MessageBuilder } from './message-builder.ts';
import { MessageWriter } from './message-writer.ts';
import { readRequest } from './read-request.ts';

export const messages: Client<null> = {
  id: 'messages',
  lane,
  takesVendorEvents: false,
  read: readRequest,
  openStream: (_, options) => new MessageWriter(options),
  openWhole: (_, options) => new MessageBuilder(options),
  error: errorAnswer,
};
