/** A fake of the runtime's tracing that records each span, its parent, and how often it was ended. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Span, Tracing } from '../../src/tracing/spans.ts';

export interface FakeSpan {
  readonly name: string;
  readonly parent: FakeSpan | null;
  readonly attributes: Record<string, string | number | boolean>;
  /** The message of its error, or null. */
  error: string | null;
  ends: number;
}

export class FakeTracing implements Tracing {
  /** In the order in which they began. */
  readonly spans: FakeSpan[] = [];
  /** In the order in which they ended. */
  readonly ended: FakeSpan[] = [];
  readonly #active = new AsyncLocalStorage<FakeSpan>();
  readonly #isTraced: boolean;

  constructor(isTraced = true) {
    this.#isTraced = isTraced;
  }

  startActiveSpan<T>(name: string, callback: (span: Span) => T): T {
    const span: FakeSpan = {
      name,
      parent: this.#active.getStore() ?? null,
      attributes: {},
      error: null,
      ends: 0,
    };
    this.spans.push(span);
    return this.#active.run(span, () => callback(this.#handle(span)));
  }

  /** The spans that began in this one. */
  below(parent: FakeSpan | undefined): FakeSpan[] {
    return this.spans.filter((span) => span.parent === parent);
  }

  /** The active span, which would be the parent of the runtime's own spans. */
  get active(): FakeSpan | null {
    return this.#active.getStore() ?? null;
  }

  #handle(span: FakeSpan): Span {
    return {
      isTraced: this.#isTraced,
      setAttributes: (attributes) => {
        for (const [name, value] of Object.entries(attributes))
          if (value !== undefined) span.attributes[name] = value;
      },
      setStatus: ({ message }) => {
        span.error = message ?? '';
      },
      end: () => {
        span.ends++;
        this.ended.push(span);
      },
    };
  }
}
