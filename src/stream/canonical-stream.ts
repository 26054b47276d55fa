/** The one TransformStream around an answer's synchronous chain (every further stream would cost as much as all the work). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { type AnswerOptions, AnswerReader } from './answer-reader.ts';
import { FrameWriter } from './frame-writer.ts';

/** How a stream ended: whole, failed with the error that its client saw, or left by its client. */
export type StreamEnd =
  | { readonly kind: 'finished' }
  | { readonly kind: 'failed'; readonly error: ApiError }
  | { readonly kind: 'cancelled' };

export interface CanonicalStream {
  /** What the client gets. */
  readonly readable: ReadableStream<Uint8Array>;
  /** Resolves once, when the stream has ended whichever way and the upstream is let go; never rejects. */
  readonly ended: Promise<StreamEnd>;
}

export interface CanonicalStreamOptions extends AnswerOptions {
  /** Called with the size of each write, in bytes. */
  readonly onWrite: (bytes: number) => void;
}

const encoder = new TextEncoder();

/**
 * Turns an upstream's event stream into the canonical one. A slow client slows the upstream down: the TransformStream
 * asks for the next read only when the last one's output was taken (T5).
 */
export function canonicalStream(
  body: ReadableStream<Uint8Array>,
  options: CanonicalStreamOptions,
): CanonicalStream {
  const writer = new FrameWriter(options.policies.errorFrames);
  const settled = Promise.withResolvers<StreamEnd>();
  let failure: ApiError | null = null;
  let isCancelled = false;
  const reader = new AnswerReader(options, {
    chunk: (chunk) => writer.chunk(chunk),
    vendor: (json) => writer.vendor(json),
    end: (error) => {
      failure = error;
      writer.end(error);
    },
  });

  /** The last net: whatever JSON the engine itself gives up on (nesting without end) still ends in an error frame. */
  function attempt(step: () => void): void {
    try {
      step();
    } catch {
      reader.fail(
        apiError('upstream_invalid', `${options.context.upstream.name} sent an event that can't be read`),
      );
    }
  }

  /** Sends what the last step yielded; an answer that is over takes its upstream with it. */
  function send(controller: TransformStreamDefaultController<Uint8Array>): void {
    const text = writer.take();
    if (text !== '') {
      const bytes = encoder.encode(text);
      options.onWrite(bytes.length);
      controller.enqueue(bytes);
    }
    if (!reader.isOver) return;
    controller.terminate();
    settled.resolve(failure === null ? { kind: 'finished' } : { kind: 'failed', error: failure });
  }

  let controller: TransformStreamDefaultController<Uint8Array> | undefined;
  const transform = new TransformStream<Uint8Array, Uint8Array>({
    start(own) {
      controller = own;
    },
    transform(bytes, own) {
      attempt(() => reader.push(bytes));
      send(own);
    },
    flush(own) {
      attempt(() => reader.end());
      send(own);
    },
    // The client left. The pipe then finds its writable broken, and lets the upstream go.
    cancel() {
      isCancelled = true;
      settled.resolve({ kind: 'cancelled' });
    },
  });

  // The readable must outlive an upstream that breaks: its error is not handed on but said in a frame (E2).
  const piped = body.pipeTo(transform.writable, { preventAbort: true }).catch(() => {
    if (controller === undefined || reader.isOver || isCancelled) return;
    reader.fail(apiError('upstream_truncated', `${options.context.upstream.name} broke the connection`));
    send(controller);
  });
  return { readable: transform.readable, ended: piped.then(() => settled.promise) };
}
