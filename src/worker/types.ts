/** What a Worker that mounts Weir gives and gets: options with hooks, and handlers (W2). Nothing here needs ambient types. */
import type { UsageRecord } from '../metering/record.ts';
import type { SettingOptions } from '../settings/options.ts';
import type { WorkerBatch, WorkerContext, WorkerRequest, WorkerResponse } from './runtime.ts';

/** A caller that the host has identified itself. */
export interface Identity {
  /** Under which usage is recorded, after `host_`: 1 to 36 of `A-Z a-z 0-9 _ -` as they are, any other text, and 16 hex digits, as the head of its SHA-256. */
  readonly id: string;
  /** Globs over the model addresses that it may use, such as `deepseek/*`; absent: all. */
  readonly models?: readonly string[] | undefined;
}

export interface RequestFacts<Env> {
  readonly env: Env;
  /** As in the answer's `x-request-id`, and in the record. */
  readonly requestId: string;
}

export interface WeirOptions<Env = unknown> extends SettingOptions {
  /**
   * Asked once about each request for Weir, but for `/health`, preflights and whatever bears the admin token.
   * An identity is who calls, a Response is the answer; nothing leaves it to `AUTH`. What it throws is logged, and answered with a
   * 500. To read the body it reads that of `request.clone()`.
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
  /** Told of each request that was sent to an upstream, once it has ended, in `waitUntil`. What it throws is logged. */
  readonly onRecord?: ((record: UsageRecord, facts: RequestFacts<Env>) => unknown) | undefined;
}

/** A Worker's handlers. None needs its `this`. */
export interface Weir<Env = unknown> {
  /** Answers every request, and never rejects: what is wrong inside is a 500, and the log has the reason. */
  readonly fetch: (request: WorkerRequest, env: Env, ctx: WorkerContext) => Promise<WorkerResponse>;
  /** Settles the records that come through `USAGE_QUEUE` (L6). Rejects where the settings are wrong, so that they come again. */
  readonly queue: (batch: WorkerBatch, env: Env) => Promise<void>;
  /** Brings in records whose ledger could not be reached (L5): once a day is enough. */
  readonly scheduled: (controller: unknown, env: Env) => Promise<void>;
}
