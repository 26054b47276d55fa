/** The parts of the Workers runtime that the package's declarations name: structural, so that they need no ambient types of a project's. */

/** The runtime's global class of this name where the project has types for it, Cloudflare's or the DOM's; else the fallback. */
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

/** The third argument of a Worker's handlers. */
export interface WorkerContext {
  waitUntil(work: Promise<unknown>): void;
  passThroughOnException?(): void;
}

/** A batch of a queue's messages. */
export interface WorkerBatch {
  readonly messages: readonly WorkerMessage[];
}

export interface WorkerMessage {
  readonly body: unknown;
  ack(): void;
  retry(options?: { delaySeconds?: number }): void;
}
