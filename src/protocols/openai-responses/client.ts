/** OpenAI's Responses as a client protocol. */
import { ok } from '../../shared/result.ts';
import type { ClientProtocol } from '../shared/client-protocol.ts';
import { responsesError } from './client-errors.ts';
import { readResponsesRequest } from './client-request.ts';
import { ResponsesWriter } from './client-writer.ts';
import { ResponsesJsonWriter } from './json-writer.ts';
import { responsesPassthrough } from './passthrough.ts';
import type { ResponsesSession } from './session.ts';

export const responses: ClientProtocol<ResponsesSession> = {
  id: 'responses',
  passthrough: responsesPassthrough,
  // openai-node throws on events that it does not know.
  takesVendorEvents: false,
  // What can't be translated may still pass to a provider of this protocol, so no request is an error here.
  readRequest: (body) => ok(readResponsesRequest(body)),
  streamWriter: (session, options) => new ResponsesWriter(session, options),
  jsonWriter: (session, options) => new ResponsesJsonWriter(session, options),
  errorResponse: responsesError,
};
