/**
 * The Durable Object class of one response, or of the index of what a key keeps. Its Worker passes the gateway, which runs the requests
 * of background responses.
 */
import { DurableObject } from 'cloudflare:workers';
import { log } from '../http/log.ts';
import { inJurisdiction, type PlaceableNamespace } from '../settings/placement.ts';
import { DurableResponse } from './durable-response.ts';
import { KeptIndex } from './kept-index.ts';
import {
  AFTER_HEADER,
  type Cancelled,
  type Claim,
  type ClaimResult,
  type Conversation,
  type Exchange,
  type FinishedResponse,
  type FoundItem,
  indexName,
  type KeptOfUser,
  type KeptSums,
  OWNER_HEADER,
  type ResponseStub,
  repeatedCalls,
  type SettledResponse,
  type Started,
  type StartRequest,
  type StoredInput,
  type StoredResponse,
} from './response-calls.ts';

/** The class as the Worker exports it. */
type ResponseObjectClass<Env> = new (
  context: DurableObjectState,
  env: Env,
) => DurableObject<Env> & ResponseStub;

/** The environment of the Worker that has the class. */
interface ResponseEnv {
  readonly WEIR_RESPONSES: PlaceableNamespace<ResponseStub>;
}

/**
 * @param exchangeOf the exchange of the gateway with this environment
 * @param ready resolves when that gateway can run requests; null: it can
 */
export function responseObjectClass<Env>(
  exchangeOf: (env: Env) => Exchange,
  ready: (env: Env) => Promise<void> | null,
): ResponseObjectClass<Env> {
  return class ResponseObject extends DurableObject<Env> implements ResponseStub {
    readonly #response: DurableResponse;
    readonly #index: KeptIndex;

    constructor(context: DurableObjectState, env: Env) {
      super(context, env);
      const reading = ready(env);
      if (reading !== null) void context.blockConcurrencyWhile(() => reading);
      const { storage } = context;
      const ports = {
        sql: storage.sql,
        transaction: (write: () => void) => storage.transactionSync(write),
        now: () => Date.now(),
        setAlarm: (at: number) => storage.setAlarm(at),
        getAlarm: () => storage.getAlarm(),
        deleteAll: async () => {
          await storage.deleteAlarm();
          await storage.deleteAll();
        },
      };
      this.#index = new KeptIndex(ports);
      this.#response = new DurableResponse({
        ...ports,
        exchange: exchangeOf(env),
        settleKept: (owner, settled) => {
          const { WEIR_RESPONSES } = env as ResponseEnv; // decode
          const objects = inJurisdiction(WEIR_RESPONSES, context.id.jurisdiction);
          return repeatedCalls(objects).getByName(indexName(owner)).settleKept(settled);
        },
        startTimer: (ms, onFire) => {
          const timer = setTimeout(onFire, ms);
          return () => clearTimeout(timer);
        },
        restart: (reason) => context.abort(reason),
        waitUntil: (work) => context.waitUntil(work),
        log,
      });
    }

    async start(request: StartRequest): Promise<Started> {
      return this.#response.start(request);
    }

    async put(response: FinishedResponse): Promise<void> {
      return this.#response.put(response);
    }

    async read(owner: string, maxChars: number): Promise<StoredResponse | null> {
      return this.#response.read(owner, maxChars);
    }

    async input(owner: string, maxChars: number): Promise<StoredInput | null> {
      return this.#response.input(owner, maxChars);
    }

    async itemChars(
      owner: string,
      ids: readonly string[],
    ): Promise<readonly (readonly [id: string, chars: number])[] | null> {
      return this.#response.itemChars(owner, ids);
    }

    async cancel(owner: string): Promise<Cancelled> {
      return this.#response.cancel(owner);
    }

    async remove(owner: string | null): Promise<boolean> {
      return this.#response.remove(owner);
    }

    async unreadable(owner: string | null): Promise<string | null> {
      return this.#response.unreadable(owner);
    }

    async conversation(owner: string, maxChars: number): Promise<Conversation | null> {
      return this.#response.conversation(owner, maxChars);
    }

    async items(
      owner: string,
      ids: readonly string[],
      maxChars: number,
    ): Promise<readonly FoundItem[] | null> {
      return this.#response.items(owner, ids, maxChars);
    }

    override async fetch({ headers }: Request): Promise<Response> {
      const events = this.#response.events(
        headers.get(OWNER_HEADER) ?? '',
        Number(headers.get(AFTER_HEADER) ?? -1),
      );
      if (events === null) return new Response(null, { status: 404 });
      if (events === 'busy') return new Response(null, { status: 429 });
      return new Response(events, {
        headers: {
          'content-type': 'text/event-stream; charset=utf-8',
          'cache-control': 'no-cache, no-transform',
        },
      });
    }

    async claimKept(claim: Claim): Promise<ClaimResult> {
      return this.#index.claim(claim);
    }

    async settleKept(settled: SettledResponse): Promise<void> {
      this.#index.settle(settled);
    }

    async releaseKept(id: string): Promise<void> {
      this.#index.release(id);
    }

    async keptSums(owner: string): Promise<KeptSums> {
      return this.#index.sums(owner);
    }

    async keptOfUser(
      users: readonly string[],
      owners: readonly string[],
      after: string,
    ): Promise<readonly KeptOfUser[]> {
      return this.#index.ofUser(users, owners, after);
    }

    override async alarm(): Promise<void> {
      await (this.#response.hasStored ? this.#response.alarm() : this.#index.alarm());
    }
  };
}
