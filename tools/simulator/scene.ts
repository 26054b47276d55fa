/** The interface of a simulated provider (a scene): routes, errors, and the events or object of its responses. */
import type { IncomingHttpHeaders } from 'node:http';
import { compact, type JsonObject } from './json.ts';
import type { RecordedRequest } from './recorded-request.ts';

export type Operation =
  | 'chat'
  | 'count'
  | 'embeddings'
  | 'responses'
  | 'completions'
  | 'fim'
  | 'agents'
  | 'models';

/** The parts of a request that a scene needs. The model's name has no `:fault`. */
export interface Call {
  readonly operation: Operation;
  readonly path: string;
  readonly model: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: JsonObject;
  /** The part of the prompt that the provider reads from its cache; absent: the system messages. */
  readonly cachedShare?: number;
  /** Counts the simulator's requests from 1, so that ids are unique and predictable. */
  readonly serial: number;
}

/** The faults use `kind` to find their place in the stream: truncation after half of the pieces, no `[DONE]`, … */
export interface WireEvent {
  readonly kind: 'comment' | 'role' | 'piece' | 'vendor' | 'finish' | 'usage' | 'done';
  readonly text: string;
  /** In place of the text: a message of AWS's event stream. */
  readonly bytes?: Uint8Array;
}

export interface Refusal {
  readonly status: number;
  readonly body: string;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Values in the path that other APIs have in the body. */
export interface PathWords {
  readonly model: string;
  readonly isStreamed: boolean;
  /** Absent: a chat. */
  readonly operation?: Operation;
}

export interface Scene {
  readonly id: string;
  /** The profile's name in `like`, if it differs from the id. */
  readonly profile?: string;
  /** Reads the values in a chat path; undefined for a path of another scene. */
  readonly readPath?: (path: string) => PathWords | undefined;
  /** Full paths, including the provider's base path. */
  readonly routes: Readonly<Record<string, Operation>>;
  readonly models: readonly string[];
  /** Models in its list that embed and do not chat. */
  readonly embeddingModels?: readonly string[];
  /** The comment that keeps a waiting connection open. */
  readonly comment: string;
  /** The provider's error within a stream. */
  readonly streamError: JsonObject;
  /** An error in the provider's own form. */
  refusal(status: number, message: string): Refusal;
  /** The response to an invalid key, if it is not a 401. */
  readonly badKey?: Refusal;
  /** Reads the credential; absent: from `authorization: Bearer`. */
  readonly keyOf?: (headers: IncomingHttpHeaders) => string | string[] | undefined;
  /** Judges a request that has more than a key, such as a signature. `unsigned`: its key says who sends it. */
  readonly judgeSignature?: (
    request: RecordedRequest,
    origin: string,
  ) => Promise<Refusal | 'accepted' | 'unsigned'>;
  /** The documented error for this request; undefined if the request is valid. */
  check(call: Call): Refusal | undefined;
  stream(call: Call): Iterable<WireEvent>;
  /** The response to a request without `stream: true`. */
  object(call: Call): string;
  /** The list of models, if its form is not OpenAI's. */
  readonly list?: () => string;
}

/** The creation time of every simulated response, in seconds: fixed, so that tests can compare bytes. */
export const CREATED_SECONDS = 1_790_000_000;

export const DONE: WireEvent = { kind: 'done', text: 'data: [DONE]\n\n' };

export function event(kind: WireEvent['kind'], json: string): WireEvent {
  return { kind, text: `data: ${json}\n\n` };
}

export function comment(text: string): WireEvent {
  return { kind: 'comment', text: `: ${text}\n\n` };
}

/** The form `{"error":{…}}`, which all providers except Mistral use. */
export function openaiRefusal(status: number, error: JsonObject): Refusal {
  return { status, body: compact({ error }) };
}

/** The error type in OpenAI's error bodies for each status. */
export function errorType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
}

/** The chat and models routes below `/<id>/v1`. */
export function chatRoutes(id: string): Record<string, Operation> {
  return { [`/${id}/v1/chat/completions`]: 'chat', [`/${id}/v1/models`]: 'models' };
}

export function modelList(scene: Scene): string {
  const data = [...scene.models, ...(scene.embeddingModels ?? [])].map((id) => ({
    id,
    object: 'model',
    created: CREATED_SECONDS,
    owned_by: scene.id,
  }));
  return compact({ object: 'list', data });
}
