/** A client's dialect: it reads the route's requests into the canonical one, and writes the canonical answer in its own form. */
import type { ApiError } from '../../canonical/error.ts';
import type { Policies } from '../../canonical/policies.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { JsonWriter, PassthroughProtocol, StreamWriter } from '../../stream/types.ts';

/** What a record calls it. */
type ClientId = 'chat' | 'completions' | 'messages' | 'responses';

/** What the writers of one answer may know beside the request. */
export interface WriterOptions {
  /** Whether an error's data line has `event: error` before it, where the dialect leaves that open (E3). */
  readonly errorFrames: 'data' | 'event';
  /** Bounds an upstream's event, and so what is written at once and what may wait for its turn (B1). */
  readonly maxEventBytes: number;
  readonly requestId: string;
  /** Estimated (M3). */
  readonly promptTokens: number;
  /** The model as the caller named it. */
  readonly model: string;
  /** The current time in seconds. */
  readonly now: () => number;
}

/** Besides, who answers, and what of the answer a client gets. */
export interface PassthroughOptions extends WriterOptions {
  /** The provider's id. */
  readonly provider: string;
  readonly reasoning: Policies['reasoning'];
}

export type ClientRequest<Session> =
  | {
      readonly kind: 'request';
      /** The canonical request: a body of OpenAI's chat completions, or of the route's own shape. */
      readonly body: JsonObject;
      /** Names of what it lacks of the client's body (Q5). */
      readonly dropped: readonly string[];
      /** Why it can be asked of no provider but those that speak the client's own dialect; null: it can be of any. */
      readonly onlyNative: ApiError | null;
      /** It goes on with what one target alone keeps: it is asked of no other (N2). */
      readonly isPinned: boolean;
      /** What the answer's writers must know of the request. It lives as long as the answer: nothing of the prompt. */
      readonly session: Session;
    }
  | { readonly kind: 'error'; readonly error: ApiError };

/** An error in the place of an answer, as the client's dialect has it. */
export interface ErrorAnswer {
  readonly status: number;
  readonly body: string;
}

/** What a dialect has where the provider speaks it, too: requests and events then pass as they are (N1). */
export interface Passthrough {
  readonly protocol: PassthroughProtocol;
  /** The field that limits an answer's length (G2). */
  readonly outputLimit: string;
  /** Of the names of what a chat does not take, those that may add to the prompt without a bound (G2). */
  readonly promptParts: RegExp;
  /** Whether a body lets the provider compact its context, which is billed as a request of its own (G2). */
  compacts(body: JsonObject): boolean;
  /** The field that asks for an answer outside of this request, whose usage is never seen; absent: the dialect has none. */
  readonly detached?: string;
  /** Headers that pass, beside those that always do (H2): the client's on the way up, and the upstream's on the way down. */
  readonly requestHeaders: readonly string[];
  readonly responseHeaders: readonly string[];
  /**
   * The body without Weir's own tagged tokens, which its provider does not know: itself where it has none (I7). Null where it can't
   * go without them: it is translated then.
   */
  withoutTokens(body: JsonObject): JsonObject | null;
  /** Writes events as they come but for the model's name and what a policy leaves out, and in Weir's words what an upstream can't tell. */
  openStream(options: PassthroughOptions): StreamWriter;
  /** The same for a whole answer. */
  writeWhole(answer: JsonObject, options: PassthroughOptions): JsonObject;
}

export interface ClientProtocol<Session> {
  readonly id: ClientId;
  readonly passthrough?: Passthrough;
  /** Whether vendor events have a place in its streams (V2). */
  readonly takesVendorEvents: boolean;
  /** Reads and checks a request's body: an invalid one is an error that says what to do. */
  read(body: JsonObject): ClientRequest<Session>;
  openStream(session: Session, options: WriterOptions): StreamWriter;
  openWhole(session: Session, options: WriterOptions): JsonWriter;
  /** An error before the head. */
  error(error: ApiError, requestId: string): ErrorAnswer;
}

/** What writes the answer to one request: its client, whose session is not the gateway's business. */
export interface AnsweringClient extends Pick<ClientProtocol<unknown>, 'id' | 'takesVendorEvents' | 'error'> {
  readonly passthrough: Passthrough | null;
  openStream(options: WriterOptions): StreamWriter;
  openWhole(options: WriterOptions): JsonWriter;
}

export function answeringClient<Session>(client: ClientProtocol<Session>, session: Session): AnsweringClient {
  return {
    id: client.id,
    passthrough: client.passthrough ?? null,
    takesVendorEvents: client.takesVendorEvents,
    error: (error, requestId) => client.error(error, requestId),
    openStream: (options) => client.openStream(session, options),
    openWhole: (options) => client.openWhole(session, options),
  };
}
