/** The calls from the gateway to the objects of responses, and from an object to the gateway that runs its response. */
import type { Caller } from '../auth/caller.ts';
import type { ApiError } from '../canonical/error.ts';
import type { ChargedRecord } from '../metering/record.ts';
import type { KeptState } from '../protocols/openai-responses/session.ts';
import { callOnce, callTwice } from '../shared/durable-objects.ts';

/** The Durable Object namespace of `ResponseObject` (`WEIR_RESPONSES`). */
export interface ResponseNamespace {
  /** @param name a response's id, or {@link indexName} */
  getByName(name: string): ResponseStub;
}

/** The calls to an object. For a caller who does not own the response, there is no response. */
export interface ResponseStub extends IndexCalls {
  /** Starts a background run. Returns when the request is sent upstream, or is refused before. */
  start(request: StartRequest): Promise<Started>;
  /** Stores a response that a client has received. */
  put(response: FinishedResponse): Promise<void>;
  /**
   * The current response.
   * @param maxChars a larger one is returned without its JSON
   */
  read(owner: string, maxChars: number): Promise<StoredResponse | null>;
  /**
   * The own input items.
   * @param maxChars larger ones are returned without their JSON
   */
  input(owner: string, maxChars: number): Promise<StoredInput | null>;
  /** Ends a background run. Further calls change nothing. */
  cancel(owner: string): Promise<Cancelled>;
  /**
   * Deletes everything, after ending a background run.
   * @param owner null: the admin, who deletes only a response that is unreadable
   * @returns whether there was a response
   */
  remove(owner: string | null): Promise<boolean>;
  /**
   * Why what is stored for this owner cannot be read; null: it can, or nothing is stored.
   * @param owner null: the admin
   */
  unreadable(owner: string | null): Promise<string | null>;
  /**
   * The items that a later request continues.
   * @param maxChars a larger conversation is returned without items
   */
  conversation(owner: string, maxChars: number): Promise<Conversation | null>;
  /**
   * The items with these ids; null: there is no such response.
   * @param maxChars if the items are larger together, they are returned without JSON
   */
  items(owner: string, ids: readonly string[], maxChars: number): Promise<readonly FoundItem[] | null>;
  /** The sizes of the items with these ids that it has, in UTF-16 units of JSON; null: there is no such response. */
  itemChars(
    owner: string,
    ids: readonly string[],
  ): Promise<readonly (readonly [id: string, chars: number])[] | null>;
  /**
   * GET with the headers {@link OWNER_HEADER} and {@link AFTER_HEADER}: the events above that number. 404: there is no such response;
   * 429: it has as many readers as it may have.
   */
  fetch(request: Request): Promise<Response>;
}

/** The calls to the index of what a key keeps. Only the objects that {@link indexName} names have one. */
interface IndexCalls {
  /** Takes the place of a response, if its owner's limits have room for it. A repeated call changes nothing. */
  claimKept(claim: Claim): Promise<ClaimResult>;
  /** Sets what a run has stored at its end. Without a claim nothing changes. */
  settleKept(settled: SettledResponse): Promise<void>;
  /** Gives the place of a response back. A repeated call changes nothing. */
  releaseKept(id: string): Promise<void>;
  /** What an owner keeps. */
  keptSums(owner: string): Promise<KeptSums>;
  /** The rows of a user or of these owners, expired ones too, in the order of their ids, from the one after `after`: at most 1,000. */
  keptOfUser(
    users: readonly string[],
    owners: readonly string[],
    after: string,
  ): Promise<readonly KeptOfUser[]>;
}

/** The object with the index of an owner's key. No response has such an id. */
export function indexName(owner: string): string {
  return `key/${owner.replace(USER_OF_OWNER, '')}`;
}

/** An owner that is a user of a key has a digest after the id of the key. */
const USER_OF_OWNER = / [0-9a-f]{64}$/;

/** A kept response of a user. */
export interface KeptOfUser {
  readonly id: string;
  readonly owner: string;
}

/** What an owner keeps. */
export interface KeptSums {
  readonly responses: number;
  readonly bytes: number;
}

export interface SettledResponse {
  /** Of the response. */
  readonly id: string;
  readonly bytes: number;
  /** When it is deleted, in ms since the epoch. */
  readonly expiresAt: number;
}

/** A response that is to be kept. */
export interface Claim extends SettledResponse {
  readonly owner: string;
  /** The user of the request as its usage record has it, or null. */
  readonly user: string | null;
  /** The most that the owner may keep. */
  readonly limits: KeptSums;
}

export type ClaimResult =
  | { readonly kind: 'claimed' }
  /** @param sums what the owner keeps already */
  | { readonly kind: 'full'; readonly sums: KeptSums };

/** Objects whose calls are repeated after a failure, except `start`: a run is never started twice. */
export function repeatedCalls(objects: ResponseNamespace): ResponseNamespace {
  return {
    getByName: (name) => {
      const newStub = () => objects.getByName(name);
      return {
        start: (request) => callOnce(() => newStub().start(request)),
        put: (response) => callTwice(newStub, (stub) => stub.put(response)),
        read: (owner, maxChars) => callTwice(newStub, (stub) => stub.read(owner, maxChars)),
        input: (owner, maxChars) => callTwice(newStub, (stub) => stub.input(owner, maxChars)),
        itemChars: (owner, ids) => callTwice(newStub, (stub) => stub.itemChars(owner, ids)),
        cancel: (owner) => callTwice(newStub, (stub) => stub.cancel(owner)),
        remove: (owner) => callTwice(newStub, (stub) => stub.remove(owner)),
        unreadable: (owner) => callTwice(newStub, (stub) => stub.unreadable(owner)),
        conversation: (owner, maxChars) => callTwice(newStub, (stub) => stub.conversation(owner, maxChars)),
        items: (owner, ids, maxChars) => callTwice(newStub, (stub) => stub.items(owner, ids, maxChars)),
        fetch: (request) => callTwice(newStub, (stub) => stub.fetch(request.clone())),
        claimKept: (claim) => callTwice(newStub, (stub) => stub.claimKept(claim)),
        settleKept: (settled) => callTwice(newStub, (stub) => stub.settleKept(settled)),
        releaseKept: (id) => callTwice(newStub, (stub) => stub.releaseKept(id)),
        keptSums: (owner) => callTwice(newStub, (stub) => stub.keptSums(owner)),
        keptOfUser: (users, owners, after) =>
          callTwice(newStub, (stub) => stub.keptOfUser(users, owners, after)),
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

/** What is stored with a response besides its events. */
export interface Keeping {
  readonly owner: string;
  /** The own input items, without those of earlier responses: a JSON list in UTF-8. */
  readonly input: Uint8Array;
  /** The ids of the earlier responses that this one continues, oldest first. */
  readonly chain: readonly string[];
  /** The size of their items, in UTF-16 units of JSON. */
  readonly earlierChars: number;
  /** The size of their texts that every provider reads, in bytes of UTF-8. */
  readonly earlierTextBytes: number;
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
  /** The body for the provider, with the items of earlier responses in its input and without state: JSON in UTF-8. */
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
  /** The response object: JSON text; null: it is larger than was asked for. */
  readonly response: string | null;
  /** Its size, in UTF-16 units. */
  readonly chars: number;
  readonly isOver: boolean;
}

export interface StoredInput {
  /** A JSON list; null: it is larger than was asked for. */
  readonly input: string | null;
  /** Its size, in UTF-16 units. */
  readonly chars: number;
}

export interface Cancelled {
  readonly kind: 'cancelled' | 'foreground' | 'none';
}

/** @param json null: the items that were found are too large together */
export type FoundItem = readonly [id: string, json: string | null];

export interface Conversation {
  readonly chain: readonly string[];
  /** The size of all items up to the end of this response, in UTF-16 units of JSON. */
  readonly chars: number;
  /** The size of their texts that every provider reads, in bytes of UTF-8. */
  readonly textBytes: number;
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
