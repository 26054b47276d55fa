/** The interface of a client protocol: reads the requests of its clients, and writes responses and errors in its own form. */
import type { CanonicalRequest } from '../../canonical/conversation.ts';
import type { ApiError } from '../../canonical/error.ts';
import type { Policies } from '../../canonical/policies.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { Result } from '../../shared/result.ts';
import type { JsonWriter, PassthroughProtocol, StreamWriter } from '../../stream/types.ts';
import type { ConvertedEmbeddings } from '../gemini/embeddings.ts';

/**
 * A protocol that clients speak; `routes.ts` names the protocol of each route. Its requests are translated into the canonical request:
 * fields of OpenAI's Chat Completions, and turns. Its writers receive canonical chunks, whatever the provider speaks.
 */
export interface ClientProtocol<Session> {
  /** The protocol's name in usage records. */
  readonly id: 'chat' | 'completions' | 'messages' | 'responses' | 'gemini';
  /** For providers that speak this protocol themselves. Absent: every request is translated. */
  readonly passthrough?: Passthrough;
  /** Whether streams may contain vendor events. False if clients fail on events that they do not know. */
  readonly takesVendorEvents: boolean;
  /** The path names the model, and the body only repeats it. Absent: the body names it. */
  readonly namesModelInPath?: true;
  /** The content type of streams. Absent: that of server-sent events. */
  readonly streamType?: string;
  /** The body where a client may wrap it. Absent: it is never wrapped. */
  unwrapped?(body: JsonObject): JsonObject;
  /** How the client gets embeddings. Absent: in OpenAI's form. */
  readonly embeddings?: EmbeddingsForm;
  /** The client's names of fields, by those of Chat Completions, where an error or a report names another. Absent: they are the same. */
  readonly fieldNames?: Readonly<Record<string, string>>;
  /** Fields of Chat Completions that are left out where a provider does not support them, although they change the output. Absent: none. */
  readonly optionalFields?: readonly string[];
  /**
   * Checks a request's body and translates it into the canonical request. The body is a JSON object whose `model` and `models` are
   * already checked. An error is sent to the client before any upstream is called; its message says what to send instead.
   */
  readRequest(body: JsonObject): Result<ClientRequest<Session>, ApiError>;
  /** Called once for a streamed response. A further attempt calls the writer's `restart`. */
  streamWriter(session: Session, options: WriterOptions): StreamWriter;
  /** Called for each attempt of a non-streaming response. */
  jsonWriter(session: Session, options: WriterOptions): JsonWriter;
  /**
   * The response to a request that fails before any output is sent.
   * @param retryAfterSeconds the wait that its headers state; undefined: none
   */
  errorResponse(error: ApiError, requestId: string, retryAfterSeconds?: number): ErrorResponse;
}

/** A response with vectors, of its text. Null: it has none. */
interface EmbeddingsForm {
  /** Of a provider that speaks the client's protocol. */
  readonly passed: (text: string) => ConvertedEmbeddings | null;
  /** Of one in OpenAI's form. */
  readonly converted: (text: string) => ConvertedEmbeddings | null;
}

/** With a `translationError` it only selects targets and bounds tokens: model, limits, and all text. */
export interface ClientRequest<Session> extends CanonicalRequest {
  /** The paths of the fields that the translation leaves out, for `x-weir-dropped`. */
  readonly dropped: readonly string[];
  /** Why the request can't be translated. Only targets that speak the client's protocol are then tried. Null: every target is. */
  readonly translationError: ApiError | null;
  /** Whether the request continues state that one provider keeps, such as an earlier response. It may then have one target only. */
  readonly isPinned: boolean;
  /** What the writers need to know of the request. It stays in memory until the response ends: keep no part of the prompt in it. */
  readonly session: Session;
}

export interface WriterOptions {
  /** Whether the data line of an error has `event: error` before it. Only protocols without named events read it. */
  readonly errorFrames: 'data' | 'event';
  /** The bound on an upstream's event. It also bounds one write, and the output that waits for its turn. */
  readonly maxEventBytes: number;
  readonly requestId: string;
  /** An estimate. */
  readonly promptTokens: number;
  /** The model as the client named it. */
  readonly model: string;
  /** The current time in seconds. */
  readonly now: () => number;
}

export interface ErrorResponse {
  readonly status: number;
  /** JSON text. */
  readonly body: string;
}

/** How requests and events pass unchanged between a client and a provider that speak the same protocol. */
export interface Passthrough {
  readonly protocol: PassthroughProtocol;
  /** The path of the request's field that limits the output tokens. A key's limits set it. Null: it has none. */
  readonly outputLimitField: string | null;
  /**
   * Matches the paths in `ClientRequest.dropped` whose content the provider adds to the prompt. The length of such a prompt is
   * unknown, so a key with limits reserves the model's whole context for it.
   */
  readonly promptFields: RegExp;
  /** Whether the body lets the provider compact its context. That is billed as a separate request. */
  compactsContext(body: JsonObject): boolean;
  /** Fields that describe the client's installation. They are not sent, because providers refuse or do not need them. */
  readonly clientFields?: readonly string[];
  /** Request headers of the client that are sent upstream, besides those that always are. */
  readonly requestHeaders: readonly string[];
  /** Response headers of the upstream that are sent to the client, besides those that always are. */
  readonly responseHeaders: readonly string[];
  /**
   * The body without what the provider can't read: reasoning states that the gateway encoded, and the gateway's ids of items. Returns
   * the body itself if it has none, and null if the provider would reject the request without them: it is then translated.
   */
  upstreamBody(body: JsonObject, target: PassthroughTarget): JsonObject | null;
  /** The body with each field in one spelling only, because a limit has to be set in one place. Absent: there is only one. */
  limitable?(body: JsonObject): JsonObject;
  /** The body with the provider's name of the model. Absent: it is the field `model`. */
  withModel?(body: JsonObject, model: string): JsonObject;
  /**
   * Writes events as they come, with the model's name replaced and without the reasoning that a policy strips. Heartbeats and failures
   * are the gateway's own.
   */
  streamWriter(options: PassthroughOptions): StreamWriter;
  /** A non-streaming response with the same changes. */
  writeJson(response: JsonObject, options: PassthroughOptions): JsonObject;
}

export interface PassthroughTarget {
  /** The provider's id. */
  readonly provider: string;
  /** Whether the model returns its reasoning encrypted on request. */
  readonly encryptsReasoning: boolean;
  /** Whether the model refuses a step of calls that has no signature. */
  readonly needsSignatures: boolean;
  /** Whether the provider can decrypt this reasoning, as far as its form says. Absent: no form says so. */
  readonly readsReasoning?: (data: string) => boolean;
}

export interface PassthroughOptions extends WriterOptions {
  /** The provider's id. */
  readonly provider: string;
  readonly reasoning: Policies['reasoning'];
  /** The gateway may end the stream as one that has reached its limit. Absent: it does not. */
  readonly mayEnd?: boolean;
}

/** A protocol bound to one request's session, whose type the rest of the gateway does not need. */
export interface BoundProtocol
  extends Pick<ClientProtocol<unknown>, 'id' | 'takesVendorEvents' | 'errorResponse'> {
  readonly passthrough: Passthrough | null;
  readonly embeddings?: EmbeddingsForm | undefined;
  readonly streamType?: string | undefined;
  readonly fieldNames?: ClientProtocol<unknown>['fieldNames'] | undefined;
  readonly optionalFields?: ClientProtocol<unknown>['optionalFields'] | undefined;
  streamWriter(options: WriterOptions): StreamWriter;
  jsonWriter(options: WriterOptions): JsonWriter;
}
