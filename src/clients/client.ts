/** A client's dialect: it reads the route's requests into the canonical one, and writes the canonical answer in its own form. */
import type { ApiError } from '../canonical/error.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { StreamWriter, WholeBuilder } from '../stream/answer-sink.ts';

/** What a record calls it. */
type ClientId = 'chat' | 'completions' | 'messages';

/** What the writers of one answer may know beside the request. */
export interface WriterOptions {
  /** Whether an error's data line has `event: error` before it, where the dialect leaves that open (E3). */
  readonly errorFrames: 'data' | 'event';
  /** Bounds an upstream's event, and so what is written at once and what may wait for its turn (B1). */
  readonly maxEventBytes: number;
  readonly requestId: string;
  /** Estimated (M3). */
  readonly promptTokens: number;
}

export type ClientRequest<Session> =
  | {
      readonly kind: 'request';
      /** The canonical request: a body of OpenAI's chat completions, or of the route's own shape. */
      readonly body: JsonObject;
      /** Names of what it lacks of the client's body (Q5). */
      readonly dropped: readonly string[];
      /** What the answer's writers must know of the request. It lives as long as the answer: nothing of the prompt. */
      readonly session: Session;
    }
  | { readonly kind: 'error'; readonly error: ApiError };

/** An error in the place of an answer, as the client's dialect has it. */
export interface ErrorAnswer {
  readonly status: number;
  readonly body: string;
}

export interface Client<Session> {
  readonly id: ClientId;
  /** Whether vendor events have a place in its streams (V2). */
  readonly takesVendorEvents: boolean;
  /** Reads and checks a request's body: an invalid one is an error that says what to do. */
  read(body: JsonObject): ClientRequest<Session>;
  openStream(session: Session, options: WriterOptions): StreamWriter;
  openWhole(session: Session, options: WriterOptions): WholeBuilder;
  /** An error before the head. */
  error(error: ApiError, requestId: string): ErrorAnswer;
}

/** What writes the answer to one request: its client, whose session is not the gateway's business. */
export interface AnsweringClient extends Pick<Client<unknown>, 'id' | 'takesVendorEvents' | 'error'> {
  openStream(options: WriterOptions): StreamWriter;
  openWhole(options: WriterOptions): WholeBuilder;
}

export function answeringClient<Session>(client: Client<Session>, session: Session): AnsweringClient {
  return {
    id: client.id,
    takesVendorEvents: client.takesVendorEvents,
    error: (error, requestId) => client.error(error, requestId),
    openStream: (options) => client.openStream(session, options),
    openWhole: (options) => client.openWhole(session, options),
  };
}
