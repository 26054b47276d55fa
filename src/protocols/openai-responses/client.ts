/** OpenAI's Responses as a client's dialect (I1-I5). */
import { ok } from '../../shared/result.ts';
import type { ClientProtocol } from '../shared/client-protocol.ts';
import { responsesError } from './client-errors.ts';
import { readResponsesRequest } from './client-request.ts';
import { ResponsesWriter } from './client-writer.ts';
import { ResponsesJsonWriter } from './json-writer.ts';
import { responsesPassthrough } from './passthrough.ts';
import type { ResponsesSession } from './request-session.ts';

export const responses: ClientProtocol<ResponsesSession> = {
  id: 'responses',
  passthrough: responsesPassthrough,
  // openai-node's accumulator throws on an event that it does not know.
  takesVendorEvents: false,
  readRequest: (body) => ok(readResponsesRequest(body)),
  streamWriter: (session, options) => new ResponsesWriter(session, options),
  jsonWriter: (session, options) => new ResponsesJsonWriter(session, options),
  errorResponse: responsesError,
};
