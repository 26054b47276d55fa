/** The memory of the isolate that requests for kept responses take: leased before the stored text is read, released when it is sent. */
import type { RequestBody } from '../http/request.ts';
import { JSON_TYPE } from '../http/respond.ts';
import { disconnection } from '../shared/disconnection.ts';
import { type Lease, type LeaseMemory, SMALL_BYTES, SMALL_LEASE } from '../stream/memory.ts';

/** What a request holds: its own body, and what it continues. */
export class RequestMemory {
  readonly #leaseMemory: LeaseMemory;
  readonly #leases: { readonly lease: Lease; readonly bytes: number }[];
  #isReleased = false;

  /** @param own the body. Its work ends here, because the request waits for others. */
  constructor({ lease, bytes }: RequestBody, leaseMemory: LeaseMemory) {
    lease.endWork();
    this.#leaseMemory = leaseMemory;
    this.#leases = [{ lease, bytes }];
  }

  get isReleased(): boolean {
    return this.#isReleased;
  }

  /** @returns false if there was no room in time */
  async add(bytes: number): Promise<boolean> {
    if (bytes === 0) return true;
    const lease = await this.#leaseMemory(bytes);
    if (lease === null) return false;
    lease.markReceived();
    this.#leases.push({ lease, bytes });
    if (this.#isReleased) lease.release();
    return !this.#isReleased;
  }

  /** All of them as one. The largest takes the turn to work. */
  get lease(): Lease {
    const [first] = this.#leases.toSorted((a, b) => b.bytes - a.bytes);
    return { ...(first?.lease ?? SMALL_LEASE), release: () => this.release() };
  }

  release(): void {
    this.#isReleased = true;
    for (const { lease } of this.#leases) lease.release();
  }
}

type StoredText<Field extends string> = { readonly [Name in Field]: string | null } & {
  readonly chars: number;
};

interface LeasedText<Stored> {
  readonly stored: Stored;
  readonly json: string;
  readonly lease: Lease;
}

/**
 * Reads a stored text: a small one by one call, a larger one by a second call after its memory is leased.
 * @returns null where there is none
 */
export async function readLeased<Field extends string, Stored extends StoredText<Field>>(
  read: (maxChars: number) => Promise<Stored | null>,
  field: Field,
  leaseMemory: LeaseMemory,
): Promise<LeasedText<Stored> | 'no memory' | null> {
  const small = await read(SMALL_BYTES);
  if (small === null) return null;
  if (small[field] !== null) return { stored: small, json: small[field], lease: SMALL_LEASE };
  const lease = await leaseMemory(small.chars);
  if (lease === null) return 'no memory';
  try {
    // A response that runs may have grown.
    const stored = await read(Number.POSITIVE_INFINITY);
    const json = stored?.[field] ?? null;
    if (stored !== null && json !== null) return { stored, json, lease };
  } catch (error) {
    lease.release();
    throw error;
  }
  lease.release();
  return null;
}

/** What a slow client takes at once, in UTF-16 units. */
const SLICE_CHARS = 64 * 1024;

/** Sends JSON, and releases its memory at its end, or if the client leaves. A client that stalls loses it to others, as one that sends does. */
export function leasedResponse(
  json: string,
  headers: Readonly<Record<string, string>>,
  lease: Lease,
): Response {
  const own = { headers: { 'content-type': JSON_TYPE, ...headers } };
  if (lease === SMALL_LEASE) return new Response(json, own);
  const encoder = new TextEncoder();
  let rest: string | null = json;
  let at = 0;
  const end = () => {
    rest = null;
    lease.release();
  };
  const stream = new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        void lease.revoked?.then(() => {
          if (rest === null) return;
          end();
          controller.error(disconnection('The client reads too slowly, and others need the memory'));
        });
      },
      pull: (controller) => {
        if (rest === null) return;
        const to = sliceEnd(rest, at + SLICE_CHARS);
        controller.enqueue(encoder.encode(rest.slice(at, to)));
        at = to;
        if (at < rest.length) return;
        end();
        controller.close();
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, own);
}

/** Not between the two units of one character. */
function sliceEnd(text: string, end: number): number {
  const code = text.charCodeAt(end - 1);
  return end < text.length && code >= 0xd800 && code < 0xdc00 ? end + 1 : Math.min(end, text.length);
}
