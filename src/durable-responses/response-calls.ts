/** The calls between the gateway and the objects of responses, and what an object needs of the gateway to run a response. */
import type { Caller } from '../auth/caller.ts';
import type { ApiError } from '../canonical/error.ts';
import type { ChargedRecord } from '../metering/record.ts';
import type { KeptState } from '../protocols/openai-responses/session.ts';

/** The Durable Object namespace of `ResponseObject` (`WEIR_RESPONSES`). */
export interface ResponseNamespace {
  /** @param name a response's id */
  getByName(name: string): ResponseStub;
}

/** An object responds to nobody but the owner of its response: for others there is no response. */
export interface ResponseStub {
  /** Starts a background run. Returns when the request was sent upstream, or was refused before. */
  start(request: StartRequest): Promise<Started>;
  /** Stores a response that a client has received. */
  put(response: FinishedResponse): Promise<void>;
  /** The response as it is. */
  read(owner: string): Promise<StoredResponse | null>;
  /** Ends a background run. Further calls change nothing. */
  cancel(owner: string): Promise<Cancelled>;
  /** Deletes everything. A run ends first. @returns whether there was a response */
  remove(owner: string): Promise<boolean>;
  /**
   * What a later request continues.
   * @param maxChars a larger conversation has no items
   */
  conversation(owner: string, maxChars: number): Promise<Conversation | null>;
  /**
   * Of its items those with these ids; null: there is no such response.
   * @param maxChars larger ones, in all, have no JSON
   */
  items(owner: string, ids: readonly string[], maxChars: number): Promise<readonly FoundItem[] | null>;
  /** GET with the headers {@link OWNER_HEADER} and {@link AFTER_HEADER}: the events above that number. */
  fetch(request: Request): Promise<Response>;
}

/** Calls objects a second time after a failure, because every deployment resets each object once. A run is never started twice. */
export function callTwice(objects: ResponseNamespace): ResponseNamespace {
  return {
    getByName: (name) => {
      // Always a new stub: the stub of an object that was reset fails forever.
      const twice = async <Value>(call: (stub: ResponseStub) => Promise<Value>): Promise<Value> => {
        try {
          return await call(objects.getByName(name));
        } catch (error) {
          // A second call would make the overload worse.
          if (error instanceof Error && 'overloaded' in error && error.overloaded === true) throw error;
          return await call(objects.getByName(name));
        }
      };
      return {
        start: (request) => objects.getByName(name).start(request),
        put: (response) => twice((stub) => stub.put(response)),
        read: (owner) => twice((stub) => stub.read(owner)),
        cancel: (owner) => twice((stub) => stub.cancel(owner)),
        remove: (owner) => twice((stub) => stub.remove(owner)),
        conversation: (owner, maxChars) => twice((stub) => stub.conversation(owner, maxChars)),
        items: (owner, ids, maxChars) => twice((stub) => stub.items(owner, ids, maxChars)),
        fetch: (request) => twice((stub) => stub.fetch(request.clone())),
      };
    },
  };
}

/**
 * The bound on what one call sends. Calls have 32 MiB (developers.cloudflare.com/workers/runtime-apis/rpc, 2026-11), in which a text may
 * have two bytes for each character.
 */
export const MAX_CALL_BYTES = 30 * 1024 * 1024;

export const OWNER_HEADER = 'x-weir-owner';
export const AFTER_HEADER = 'x-weir-after';

/** What is stored of a response besides its events. */
export interface Keeping {
  readonly owner: string;
  /** The own input items, without those of earlier responses: a JSON list in UTF-8. */
  readonly input: Uint8Array;
  /** The ids of the earlier responses that this one continues, oldest first. */
  readonly chain: readonly string[];
  /** The size of their items, in UTF-16 units of JSON. */
  readonly earlierChars: number;
  /** How long it is kept after its end, in ms. */
  readonly keptMs: number;
  /** The bound on its events (`RESPONSE_BYTES`). */
  readonly maxBytes: number;
}

export interface StartRequest extends ExchangeRequest, Keeping {}

/** A request that the object runs as the gateway runs one of a client. */
export interface ExchangeRequest {
  readonly requestId: string;
  readonly caller: Caller;
  /** In ms since the epoch. */
  readonly arrivedAt: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The body as it goes on, with the items of earlier responses in its input and without state: JSON in UTF-8. */
  readonly body: Uint8Array;
  readonly kept: KeptState;
}

export type Started =
  /** @param response the response object: JSON text */
  | { readonly kind: 'started'; readonly response: string }
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly headers: readonly (readonly [name: string, value: string])[];
      readonly body: string;
    };

export interface FinishedResponse extends Keeping {
  /** The frames of all events. */
  readonly events: Uint8Array;
}

export interface StoredResponse {
  /** The response object: JSON text. */
  readonly response: string;
  readonly isOver: boolean;
  readonly isBackground: boolean;
}

export type Cancelled =
  | { readonly kind: 'cancelled'; readonly response: string }
  | { readonly kind: 'foreground' }
  | { readonly kind: 'none' };

/** @param json null: all that were found are too large */
export type FoundItem = readonly [id: string, json: string | null];

export interface Conversation {
  readonly chain: readonly string[];
  /** The size of all items up to the end of this response, in UTF-16 units of JSON. */
  readonly chars: number;
  /** JSON lists. */
  readonly input: string;
  readonly output: string;
  /** False while it runs: its output is not complete. */
  readonly isOver: boolean;
}

/** Runs requests inside an object. The gateway implements it. */
export interface Exchange {
  /** Runs a request like one of a client, streamed. @returns the stream, or an error */
  run(request: ExchangeRequest, options: ExchangeOptions): Promise<Response>;
  /** The response object before the first event: JSON text. */
  queued(request: ExchangeRequest, id: string): string;
  /** The record of a run whose object ended before it, as it ends now. It is logged. */
  interrupted(record: ChargedRecord): ChargedRecord;
  /** Writes a record. Repeating it changes nothing. Never rejects. */
  writeRecord(record: ChargedRecord, waitUntil: ExchangeOptions['waitUntil']): Promise<void>;
}

interface ExchangeOptions {
  readonly signal: AbortSignal;
  /** Why the signal was aborted; null: the run was cancelled. */
  readonly abortError: () => ApiError | null;
  readonly waitUntil: (work: Promise<unknown>) => void;
  /** Called before each attempt is sent upstream, with the record to write if the object ends before the run. */
  readonly onSent: (interrupted: ChargedRecord) => void;
  /** Called when the run has ended. Its record is written when the promise resolves. */
  readonly onEnd: (record: ChargedRecord) => Promise<void>;
  readonly onRecordWritten: () => void;
}
