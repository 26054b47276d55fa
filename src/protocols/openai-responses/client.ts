/** OpenAI's Responses as a client protocol. */
import type { ClientProtocol } from '../shared/client-protocol.ts';
import { responsesError } from './client-errors.ts';
import { readResponsesRequest } from './client-request.ts';
import { ResponsesWriter } from './client-writer.ts';
import { ResponsesJsonWriter } from './json-writer.ts';
import { responsesPassthrough } from './passthrough.ts';
import type { KeptState, ResponsesSession } from './session.ts';

/** @param kept what the gateway keeps of the response; null: nothing */
export function responsesClient(kept: KeptState | null): ClientProtocol<ResponsesSession> {
  return {
    id: 'responses',
    passthrough: responsesPassthrough(kept),
    // openai-node throws on events that it does not know.
    takesVendorEvents: false,
    readRequest: (body) => readResponsesRequest(body, kept),
    streamWriter: (session, options) => new ResponsesWriter(session, options),
    jsonWriter: (session, options) => new ResponsesJsonWriter(session, options),
    errorResponse: responsesError,
  };
}

/** Requests of which the gateway keeps nothing. */
export const responses = responsesClient(null);
