/** One Responses answer as it is put together: its items, and the response object that tells how it stands. */
import type { ChatChunk } from '../../canonical/chunk.ts';
import type { FinishReason } from '../../canonical/finish-reason.ts';
import type { Usage } from '../../canonical/usage.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import type { StreamError } from './client-errors.ts';
import type { EventSink } from './client-events.ts';
import { OutputItems } from './output-items.ts';
import type { ResponsesSession } from './request-session.ts';

/** Why an answer that was not whole ended, in Responses' words. */
const INCOMPLETE: { readonly [R in FinishReason]?: string } = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

/** What an upstream says of its own response. */
export interface UpstreamResponse {
  readonly id?: string | undefined;
  /** Seconds. */
  readonly created?: number | undefined;
  readonly model?: string | undefined;
}

interface ResponsesAnswerOptions {
  readonly session: ResponsesSession;
  readonly writer: Pick<WriterOptions, 'requestId' | 'model' | 'now'>;
  /** Of a response that its upstream wrote itself. */
  readonly known?: UpstreamResponse;
  readonly events: EventSink | null;
}

export class ResponseObject {
  readonly #options: ResponsesAnswerOptions;
  readonly #base: string;
  readonly #id: string;
  readonly output: OutputItems;
  readonly #created: number;
  #model: string;
  #serviceTier: string;
  #usage: Usage | null = null;
  #finish: FinishReason | null = null;

  /** @param first the answer's first chunk, or null where it failed before there was one */
  constructor(options: ResponsesAnswerOptions, first: ChatChunk | null) {
    const { session, writer, known = {}, events } = options;
    const { requestId, model, now } = writer;
    this.#options = options;
    this.#base = requestId.replaceAll('-', '');
    this.#id = known.id ?? `resp_${this.#base}`;
    this.#created = known.created ?? first?.created ?? now();
    this.#model = known.model ?? first?.model ?? model;
    this.#serviceTier = first?.service_tier ?? session.serviceTier;
    this.output = new OutputItems({
      idBase: `${this.#base}_`,
      session,
      provider: this.#model.split('/', 1)[0] ?? '',
      events,
    });
  }

  add({ model, service_tier, choices, usage }: ChatChunk): void {
    this.#model = model;
    this.#serviceTier = service_tier ?? this.#serviceTier;
    this.#usage = usage ?? this.#usage;
    for (const choice of choices) {
      // A Responses answer is one: further choices were not asked for. One chunk may hold several pieces of the one.
      if (choice.index !== 0) continue;
      this.#finish ??= choice.finish_reason;
      this.output.add(choice);
    }
  }

  /** The whole answer's object: `completed` or `incomplete`. */
  get ending(): { readonly status: 'completed' | 'incomplete'; readonly json: string } {
    const reason = this.#finish === null ? undefined : INCOMPLETE[this.#finish];
    const status = reason === undefined ? 'completed' : 'incomplete';
    return { status, json: this.#json(status, { reason, hasOutput: true }) };
  }

  get inProgress(): string {
    return this.#json('in_progress', { hasOutput: false });
  }

  /** The object with what there is of the answer. */
  failed({ code, message }: StreamError): string {
    return this.#json('failed', { hasOutput: true, error: { code, message } });
  }

  #json(
    status: string,
    how: {
      readonly hasOutput: boolean;
      readonly reason?: string | undefined;
      readonly error?: { readonly code: string; readonly message: string };
    },
  ): string {
    const { session, writer } = this.#options;
    const completedAt = status === 'completed' ? Math.max(writer.now(), this.#created) : null;
    const head = {
      id: this.#id,
      object: 'response',
      created_at: this.#created,
      status,
      completed_at: completedAt,
      error: how.error ?? null,
      incomplete_details: how.reason === undefined ? null : { reason: how.reason },
      model: this.#model,
      service_tier: this.#serviceTier,
      usage: how.hasOutput && this.#usage !== null ? writeUsage(this.#usage) : null,
    };
    const output = how.hasOutput ? this.output.json : '';
    return `${JSON.stringify(head).slice(0, -1)},"output":[${output}],${session.echo}}`;
  }
}

/** The two details are always there: clients with a schema demand them, and 0 is what they know for none. */
function writeUsage({
  prompt_tokens,
  completion_tokens,
  total_tokens,
  prompt_tokens_details,
  completion_tokens_details,
  cost,
}: Usage) {
  const cache_write_tokens = prompt_tokens_details?.cache_write_tokens;
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: {
      cached_tokens: prompt_tokens_details?.cached_tokens ?? 0,
      ...(cache_write_tokens === undefined ? {} : { cache_write_tokens }),
    },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: completion_tokens_details?.reasoning_tokens ?? 0 },
    total_tokens,
    ...(cost === undefined ? {} : { cost }),
  };
}
