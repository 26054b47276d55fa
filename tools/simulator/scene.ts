/** A provider's scene: its routes, its refusals, and the events or the object of its answers. */
import type { IncomingHttpHeaders } from 'node:http';
import { compact, type JsonObject } from './json.ts';

export type Operation = 'chat' | 'responses' | 'completions' | 'fim' | 'agents' | 'models';

/** One request, as far as a scene needs it. The model's name is without its `:fault`. */
export interface Call {
  readonly operation: Operation;
  readonly path: string;
  readonly model: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: JsonObject;
  /** Counts the simulator's requests from 1, so that ids are unique and predictable. */
  readonly serial: number;
}

/** The kind marks the place in the stream for the faults: a cut after half of the pieces, no `[DONE]`, … */
export interface WireEvent {
  readonly kind: 'comment' | 'role' | 'piece' | 'vendor' | 'finish' | 'usage' | 'done';
  readonly text: string;
}

export interface Refusal {
  readonly status: number;
  readonly body: string;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What other APIs have in the body. */
export interface PathWords {
  readonly model: string;
  readonly isStreamed: boolean;
}

export interface Scene {
  readonly id: string;
  /** Its profile's name in `like`, where that is not the id. */
  readonly profile?: string;
  /** What a path says beside the operation, which is a chat; undefined for a path of another scene. */
  readonly readPath?: (path: string) => PathWords | undefined;
  /** Full paths, the base of the provider included. */
  readonly routes: Readonly<Record<string, Operation>>;
  readonly models: readonly string[];
  /** The comment with which the provider keeps a waiting connection open. */
  readonly comment: string;
  /** This provider's error after the head. */
  readonly streamError: JsonObject;
  /** An error in the provider's own form. */
  refusal(status: number, message: string): Refusal;
  /** What a key that is no key gets, where that is not 401. */
  readonly badKey?: Refusal;
  /** Where the credential stands; absent: `authorization: Bearer`. */
  readonly keyOf?: (headers: IncomingHttpHeaders) => string | string[] | undefined;
  /** The documented refusal of this request; undefined where it is valid. */
  check(call: Call): Refusal | undefined;
  stream(call: Call): Iterable<WireEvent>;
  /** The answer to a request without `stream: true`. */
  object(call: Call): string;
  /** The list of its models, where that is not OpenAI's. */
  readonly list?: () => string;
}

/** The second in which every simulated answer was created: fixed, so that tests can compare whole bytes. */
export const CREATED_SECONDS = 1_790_000_000;

export const DONE: WireEvent = { kind: 'done', text: 'data: [DONE]\n\n' };

export function event(kind: WireEvent['kind'], json: string): WireEvent {
  return { kind, text: `data: ${json}\n\n` };
}

export function comment(text: string): WireEvent {
  return { kind: 'comment', text: `: ${text}\n\n` };
}

/** The `{"error":{…}}` form, which all but Mistral use. */
export function openaiRefusal(status: number, error: JsonObject): Refusal {
  return { status, body: compact({ error }) };
}

/** The types that OpenAI's own error bodies name for each status. */
export function errorType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
}

/** Chat and models below `/<id>/v1`. */
export function chatRoutes(id: string): Record<string, Operation> {
  return { [`/${id}/v1/chat/completions`]: 'chat', [`/${id}/v1/models`]: 'models' };
}

export function modelList(scene: Scene): string {
  const data = scene.models.map((id) => ({
    id,
    object: 'model',
    created: CREATED_SECONDS,
    owned_by: scene.id,
  }));
  return compact({ object: 'list', data });
}
