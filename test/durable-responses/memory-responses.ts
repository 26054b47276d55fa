/** Objects of responses in memory, for tests of the routes without a runtime. They keep responses of the foreground. */
import { DurableResponse } from '../../src/durable-responses/durable-response.ts';
import { KeptIndex } from '../../src/durable-responses/kept-index.ts';
import type { ResponseNamespace, ResponseStub } from '../../src/durable-responses/response-calls.ts';
import { MemoryStorage } from './memory-storage.ts';

export class MemoryResponses implements ResponseNamespace {
  /** Every call, as `<method> <id>`. */
  readonly calls: string[] = [];
  /** The owners of what is stored. */
  readonly owners: string[] = [];
  readonly #objects = new Map<string, DurableResponse>();
  readonly #indexes = new Map<string, KeptIndex>();
  readonly #storages = new Map<string, MemoryStorage>();
  readonly logged: Readonly<Record<string, unknown>>[] = [];
  /** With it no response can be stored. */
  putError: Error | null = null;
  /** The status with which background requests are refused; null: they fail. */
  startRefusal: number | null = null;
  /** So many calls fail, as calls to an object that is reset do. */
  resets = 0;
  /** Calls with this name never return. */
  hanging = '';
  /** Storing waits for it. */
  putAfter: Promise<void> = Promise.resolve();
  /** Moves the clock, in ms. */
  later = 0;

  getByName(name: string): ResponseStub {
    const object = this.#objects.get(name) ?? this.#create(name);
    this.#objects.set(name, object);
    // As an RPC does, each call copies its arguments and its result.
    const call = async <Value>(method: string, run: () => Value | Promise<Value>): Promise<Value> => {
      this.calls.push(`${method} ${name}`);
      if (this.resets-- > 0) throw new Error('The object was reset');
      if (this.hanging === method) return new Promise(() => {});
      return structuredClone(await run());
    };
    const index = this.#indexes.get(name) ?? new KeptIndex(this.#portsOf(name));
    this.#indexes.set(name, index);
    return {
      claimKept: (claim) => call('claimKept', () => index.claim(claim)),
      settleKept: (settled) => call('settleKept', () => index.settle(settled)),
      releaseKept: (id) => call('releaseKept', () => index.release(id)),
      keptSums: (owner) => call('keptSums', () => index.sums(owner)),
      keptOfUser: (users, owners, after) => call('keptOfUser', () => index.ofUser(users, owners, after)),
      start: () => {
        this.calls.push(`start ${name}`);
        if (this.startRefusal === null) return Promise.reject(new Error('No runs in these tests'));
        return Promise.resolve({ kind: 'refused', status: this.startRefusal, headers: [], body: '{}' });
      },
      put: (response) => {
        if (this.putError !== null) return Promise.reject(this.putError);
        this.owners.push(response.owner);
        return call('put', async () => {
          await this.putAfter;
          return object.put(structuredClone(response));
        });
      },
      read: (owner, maxChars) => call('read', () => object.read(owner, maxChars)),
      input: (owner, maxChars) => call('input', () => object.input(owner, maxChars)),
      itemChars: (owner, ids) => call('itemChars', () => object.itemChars(owner, ids)),
      cancel: (owner) => call('cancel', () => object.cancel(owner)),
      remove: (owner) => call('remove', () => object.remove(owner)),
      unreadable: (owner) => call('unreadable', () => object.unreadable(owner)),
      conversation: (owner, maxChars) => call('conversation', () => object.conversation(owner, maxChars)),
      items: (owner, ids, maxChars) => call('items', () => object.items(owner, ids, maxChars)),
      fetch: async ({ headers }) => {
        const events = object.events(headers.get('x-weir-owner') ?? '', Number(headers.get('x-weir-after')));
        if (events === 'busy') return new Response(null, { status: 429 });
        return new Response(events, { status: events === null ? 404 : 200 });
      },
    };
  }

  /** The storage of an index. */
  indexOf(name: string): { readonly storage: MemoryStorage } {
    const storage = this.#storages.get(name);
    if (storage === undefined)
      throw new Error(`No index ${name} in ${[...this.#storages.keys()].join(', ')}`);
    return { storage };
  }

  /** Runs the alarms of all objects. */
  async alarm(): Promise<void> {
    for (const object of this.#objects.values()) await object.alarm();
  }

  /** Replaces a text in the stored facts of a response, and starts its object anew. */
  change(name: string, from: string, to: string): void {
    this.#storages
      .get(name)
      ?.exec('UPDATE response SET value = replace(value, ?, ?) WHERE at = -1', from, to);
    this.#objects.delete(name);
  }

  #portsOf(name: string) {
    const storage = this.#storages.get(name) ?? new MemoryStorage();
    this.#storages.set(name, storage);
    return {
      sql: storage,
      transaction: (write: () => void) => storage.transaction(write),
      now: () => Date.now() + this.later,
      setAlarm: async () => {},
      getAlarm: async () => 0,
      deleteAll: async () => storage.clear(),
    };
  }

  #create(name: string): DurableResponse {
    const fail = () => {
      throw new Error('No runs in these tests');
    };
    return new DurableResponse({
      ...this.#portsOf(name),
      exchange: { run: fail, queued: fail, interrupted: fail, writeRecord: fail },
      settleKept: fail,
      startTimer: () => () => {},
      restart: () => {},
      waitUntil: () => {},
      log: (entry) => this.logged.push(entry),
    });
  }
}
