/** The public types of the package: options, hooks and handlers. They need no ambient types of the project that uses them. */
import type { UsageRecord } from './metering/record.ts';
import type { SettingOptions } from './settings/options.ts';
import type { FeatureName } from './settings/table.ts';

/**
 * A part of Weir that a Worker can leave out. `ledger()` of `weir-gateway/ledger`, `attribution()`, `durableResponses()`, `privacy()`,
 * `dashboard()` and `origin()` create them.
 */
export interface Feature<Name extends FeatureName = FeatureName> {
  readonly name: Name;
}

/** Options of `weir()`: the features, every setting, and two hooks. */
export interface WeirOptions<Env = unknown, Features extends readonly Feature[] = readonly Feature[]>
  extends SettingOptions {
  /**
   * The parts besides the core. Default: none. A setting of a feature that is not listed is an error, and a key with limits that no
   * feature enforces is refused.
   */
  readonly features?: Features | undefined;
  /**
   * Identifies the caller, or responds itself. Called once for each request to Weir, except for `/health`, CORS preflights and
   * requests with the admin token.
   *
   * Return an identity for a caller that you know, a `Response` to respond yourself, or nothing to let `auth` decide. If it
   * throws, the error is logged and the client gets a 500. To read the body, use `request.clone()`.
   */
  readonly onRequest?:
    | ((
        request: WorkerRequest,
        facts: RequestFacts<Env>,
      ) =>
        | Identity
        | WorkerResponse
        | null
        | undefined
        | Promise<Identity | WorkerResponse | null | undefined>)
    | undefined;
  /**
   * Called with the usage record of each request that was sent to a provider, after the request has ended. It runs in
   * `waitUntil`. If it throws, the error is logged. It is called at least once for a record: after a crash in the middle of a background
   * response it may be called again with the same `request_id`.
   */
  readonly onRecord?: ((record: UsageRecord, facts: RequestFacts<Env>) => unknown) | undefined;
}

/** A caller that the host Worker has identified. */
export interface Identity {
  /**
   * The caller's id. Usage is recorded under it, with the prefix `host_`: as it is if it has 1 to 36 of the characters
   * `A-Z a-z 0-9 _ -`, otherwise as the first 16 hex digits of its SHA-256. An id of 16 hex digits is also hashed.
   */
  readonly id: string;
  /** Globs of the model addresses that the caller may use, such as `deepseek/*`. Default: all. */
  readonly models?: readonly string[] | undefined;
  /** The user of its records, and of the responses that are kept for it. Default: the user that Cloudflare Access or the request names. */
  readonly user?: string | null | undefined;
}

/** What a hook gets besides the request or the record. */
export interface RequestFacts<Env> {
  readonly env: Env;
  /** The request's id, as in the response header `x-request-id` and in the usage record. */
  readonly requestId: string;
}

/** What `weir()` returns: the handlers of a Worker, and the classes of its Durable Objects. */
export interface Weir<Env = unknown, Features extends readonly Feature[] = readonly Feature[]>
  extends Handlers<Env> {
  /**
   * Export them from your Worker: `export const { LedgerObject, ResponseObject } = gateway.objects`. Objects run with the options and
   * hooks of this gateway.
   */
  readonly objects: ObjectsOf<Features[number]['name'], Env>;
}

/** The classes of the listed features. */
type ObjectsOf<Name extends FeatureName, Env> = ('ledger' extends Name
  ? {
      /** The Durable Object of a gateway key: its limits, and its records where `ledger` is `object`. Bound as `WEIR_LEDGER`. */
      readonly LedgerObject: DurableObjectClass<Env>;
    }
  : unknown) &
  ('durableResponses' extends Name
    ? {
        /** The Durable Object of a kept response. Bound as `WEIR_RESPONSES`. */
        readonly ResponseObject: DurableObjectClass<Env>;
      }
    : unknown);

/** The class of a Durable Object. The runtime creates its objects. */
type DurableObjectClass<Env = unknown> = new (state: never, env: Env) => object;

/** The handlers of a Worker. They do not use `this`. */
export interface Handlers<Env = unknown> {
  /** Responds to every request and never rejects. An internal failure is logged, and the response is a 500. */
  readonly fetch: (request: WorkerRequest, env: Env, ctx: WorkerContext) => Promise<WorkerResponse>;
  /**
   * Stores the usage records that arrive through `USAGE_QUEUE`, for `ledger()`. Rejects without that feature and if settings are invalid,
   * so that the queue retries.
   */
  readonly queue: (batch: WorkerBatch, env: Env) => Promise<void>;
  /**
   * Stores usage records whose ledger object was unreachable before, and on Mondays sends the weekly summary, for
   * `ledger()`. Run it once a day with the controller.
   */
  readonly scheduled: (controller: unknown, env: Env) => Promise<void>;
}

/** The runtime's global class of this name if the project has types for it, Cloudflare's or the DOM's; otherwise the fallback. */
type GlobalClass<Name extends string, Fallback> = typeof globalThis extends {
  readonly [N in Name]: { readonly prototype: infer Instance };
}
  ? Instance
  : Fallback;

interface AnyRequest {
  readonly method: string;
  readonly url: string;
  clone(): AnyRequest;
  text(): Promise<string>;
}

interface AnyResponse {
  readonly status: number;
  text(): Promise<string>;
}

export type WorkerRequest = GlobalClass<'Request', AnyRequest>;
export type WorkerResponse = GlobalClass<'Response', AnyResponse>;

/** The third argument of a Worker's `fetch`. */
export interface WorkerContext {
  waitUntil(work: Promise<unknown>): void;
  passThroughOnException?(): void;
}

/** A batch of messages from a queue. */
export interface WorkerBatch {
  readonly messages: readonly WorkerMessage[];
}

/** A message from a queue. */
export interface WorkerMessage {
  readonly body: unknown;
  ack(): void;
  retry(options?: { delaySeconds?: number }): void;
}
