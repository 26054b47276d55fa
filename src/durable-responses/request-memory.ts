/** The memory of the isolate that requests for kept responses take: granted before the stored text is read, released when it is sent. */
import type { RequestBody } from '../http/request.ts';
import { JSON_TYPE } from '../http/respond.ts';
import { disconnection } from '../shared/disconnection.ts';
import { type MemoryGrant, SMALL_BYTES, SMALL_GRANT, type TakeMemory } from '../stream/memory.ts';

/** What a request holds: its own body, and what it continues. */
export class RequestMemory {
  readonly #takeMemory: TakeMemory;
  readonly #grants: { readonly grant: MemoryGrant; readonly bytes: number }[];
  #isReleased = false;

  /** @param own the body. Its work ends here, because the request waits for others. */
  constructor({ grant, bytes }: RequestBody, takeMemory: TakeMemory) {
    grant.endWork();
    this.#takeMemory = takeMemory;
    this.#grants = [{ grant, bytes }];
  }

  get isReleased(): boolean {
    return this.#isReleased;
  }

  /** @returns false if there was no room in time */
  async add(bytes: number): Promise<boolean> {
    if (bytes === 0) return true;
    const grant = await this.#takeMemory(bytes);
    if (grant === null) return false;
    grant.markReceived();
    this.#grants.push({ grant, bytes });
    if (this.#isReleased) grant.release();
    return !this.#isReleased;
  }

  /** All of them as one. The largest takes the turn to work. */
  get grant(): MemoryGrant {
    const [first] = this.#grants.toSorted((a, b) => b.bytes - a.bytes);
    return { ...(first?.grant ?? SMALL_GRANT), release: () => this.release() };
  }

  release(): void {
    this.#isReleased = true;
    for (const { grant } of this.#grants) grant.release();
  }
}

type StoredText<Field extends string> = { readonly [Name in Field]: string | null } & {
  readonly chars: number;
};

interface GrantedText<Stored> {
  readonly stored: Stored;
  readonly json: string;
  readonly grant: MemoryGrant;
}

/**
 * Reads a stored text: a small one by one call, a larger one by a second call after its memory is granted.
 * @returns null where there is none
 */
export async function readGranted<Field extends string, Stored extends StoredText<Field>>(
  read: (maxChars: number) => Promise<Stored | null>,
  field: Field,
  takeMemory: TakeMemory,
): Promise<GrantedText<Stored> | 'no memory' | null> {
  const small = await read(SMALL_BYTES);
  if (small === null) return null;
  if (small[field] !== null) return { stored: small, json: small[field], grant: SMALL_GRANT };
  const grant = await takeMemory(small.chars);
  if (grant === null) return 'no memory';
  try {
    // A response that runs may have grown.
    const stored = await read(Number.POSITIVE_INFINITY);
    const json = stored?.[field] ?? null;
    if (stored !== null && json !== null) return { stored, json, grant };
  } catch (error) {
    grant.release();
    throw error;
  }
  grant.release();
  return null;
}

/** What a slow client takes at once, in UTF-16 units. */
const SLICE_CHARS = 64 * 1024;

/**
 * Sends JSON, and releases its memory at its end, or if the client leaves. A client that stalls loses it to others, as
 * one that sends does.
 */
export function grantedResponse(
  json: string,
  headers: Readonly<Record<string, string>>,
  grant: MemoryGrant,
): Response {
  const responseInit = { headers: { 'content-type': JSON_TYPE, ...headers } };
  if (grant === SMALL_GRANT) return new Response(json, responseInit);
  const encoder = new TextEncoder();
  let rest: string | null = json;
  let at = 0;
  const end = () => {
    rest = null;
    grant.release();
  };
  const stream = new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        void grant.revoked?.then(() => {
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
  return new Response(stream, responseInit);
}

/** Not between the two units of one character. */
function sliceEnd(text: string, end: number): number {
  const code = text.charCodeAt(end - 1);
  return end < text.length && code >= 0xd800 && code < 0xdc00 ? end + 1 : Math.min(end, text.length);
}
