/** OpenAI's Responses as a client's dialect (I1-I5). */
import type { Client } from '../client.ts';
import { responsesError } from './errors.ts';
import { lane } from './lane.ts';
import { readResponsesRequest } from './read-request.ts';
import { ResponsesBuilder } from './responses-builder.ts';
import { ResponsesWriter } from './responses-writer.ts';
import type { ResponsesSession } from './session.ts';

export const responses: Client<ResponsesSession> = {
  id: 'responses',
  lane,
  // openai-node's accumulator throws on an event that it does not know.
  takesVendorEvents: false,
  read: readResponsesRequest,
  openStream: (session, options) => new ResponsesWriter(session, options),
  openWhole: (session, options) => new ResponsesBuilder(session, options),
  error: responsesError,
};
