/** Writes canonical chunks as Gemini's responses: the elements of a stream, and the one object of a request that does not stream. */
import type { Chunk, Delta } from '../../canonical/chunk.ts';
import type { ChatLogprobs } from '../../canonical/logprobs.ts';
import type { Usage } from '../../canonical/usage.ts';
import type { JsonObject } from '../../shared/json.ts';
import { MAX_RESPONSE_BYTES } from '../../shared/limits.ts';
import type { FrameBuffer } from '../../stream/buffers.ts';
import type { JsonWriter, StreamFailure, StreamWriter } from '../../stream/types.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import {
  ClientCandidate,
  joinParts,
  logprobsResult,
  openCandidate,
  promptFeedback,
  usageMetadata,
} from './client-candidates.ts';
import { errorElement } from './client-errors.ts';
import { type ClientForm, Elements, type GeminiSession, jsonIn } from './client-form.ts';

type ResponseOptions = Pick<WriterOptions, 'maxEventBytes' | 'requestId' | 'promptTokens'>;

/** What both writers collect of an output. */
class Output {
  readonly #form: ClientForm;
  readonly #options: ResponseOptions;
  readonly #session: GeminiSession;
  readonly #candidates = new Map<number, ClientCandidate>();
  /** The canonical model, whose provider made the reasoning states. */
  model = '';
  usage: Usage | null = null;

  constructor(form: ClientForm, session: GeminiSession, options: ResponseOptions) {
    this.#form = form;
    this.#session = session;
    this.#options = options;
  }

  candidate(index: number): ClientCandidate {
    const known = this.#candidates.get(index);
    if (known !== undefined) return known;
    const created = new ClientCandidate(index, {
      ...this.#session,
      maxReasoningChars: this.#options.maxEventBytes,
    });
    this.#candidates.set(index, created);
    return created;
  }

  get heldChars(): number {
    let chars = 0;
    for (const { heldChars } of this.#candidates.values()) chars += heldChars;
    return chars;
  }

  /** The JSON of a response or of an element. */
  json(candidates: readonly JsonObject[], feedback: JsonObject | null = null): string {
    return jsonIn(this.#form, {
      ...(feedback === null ? { candidates } : { promptFeedback: feedback }),
      usageMetadata: usageMetadata(this.usage, this.#options.promptTokens),
      modelVersion: this.model,
      responseId: this.#options.requestId,
    });
  }

  /** @param before the parts of each candidate that were not sent */
  last(
    before?: ReadonlyMap<number, readonly JsonObject[]>,
    logprobs?: ReadonlyMap<number, readonly ChatLogprobs[]>,
  ): string {
    const provider = this.model.slice(0, Math.max(0, this.model.indexOf('/')));
    const feedback = promptFeedback([...this.#candidates.values()], this.usage);
    const candidates = Array.from(this.#candidates, ([index, candidate]) => {
      const ofIndex = logprobs?.get(index);
      const probabilities = ofIndex === undefined ? {} : { logprobsResult: logprobsResult(ofIndex) };
      return { ...candidate.last(provider, before?.get(index)), ...probabilities };
    });
    return this.json(candidates, feedback);
  }
}

/** Writes one stream. The calls and the finish are in its last element, with the whole usage. */
export class GeminiWriter implements StreamWriter {
  readonly #create: () => Output;
  readonly #session: GeminiSession;
  readonly #options: ResponseOptions;
  readonly #elements: Elements;
  #response: Output;
  #revision = 0;

  constructor(form: ClientForm, session: GeminiSession, options: ResponseOptions) {
    this.#create = () => new Output(form, session, options);
    this.#session = session;
    this.#options = options;
    this.#elements = new Elements(form, options.maxEventBytes);
    this.#response = this.#create();
  }

  get output(): FrameBuffer {
    return this.#elements.output;
  }

  get revision(): number {
    return this.#revision;
  }

  chunk(chunk: Chunk): boolean {
    if (chunk.object !== 'chat.completion.chunk') return true;
    const response = this.#response;
    response.model = chunk.model;
    const candidates: JsonObject[] = [];
    for (const choice of chunk.choices) {
      const parts = response.candidate(choice.index).read(choice);
      if (parts.length > 0 || choice.logprobs !== null)
        candidates.push(openCandidate(choice.index, parts, choice.logprobs));
    }
    const fits = candidates.length === 0 || this.#elements.write(response.json(candidates));
    response.usage = chunk.usage ?? response.usage;
    return fits && response.heldChars <= this.#options.maxEventBytes;
  }

  /** Clients would take it for a response without candidates. */
  vendor(): void {}

  end(failure: StreamFailure | null): void {
    const last = failure === null ? this.#response.last() : errorElement(failure, this.#options.requestId);
    this.#elements.write(last);
    this.#elements.end();
  }

  heartbeat(): void {
    this.#elements.heartbeat();
  }

  restart(): void {
    this.#response = this.#create();
    this.#elements.restart();
    this.#revision++;
  }

  textFrame(chunk: Chunk): string | null {
    if (chunk.object !== 'chat.completion.chunk') return null;
    const [choice, ...others] = chunk.choices;
    if (
      choice === undefined ||
      others.length > 0 ||
      choice.finish_reason !== null ||
      choice.logprobs !== null
    )
      return null;
    const parts = this.#partsFor(choice.delta);
    if (parts === null) return null;
    return parts.length === 0
      ? ''
      : this.#elements.frame(this.#response.json([openCandidate(choice.index, parts, null)]));
  }

  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    this.output.splice(literals, source, from, to);
  }

  /** The parts of a delta with only one text that nothing has to keep: none for a thought that is not shown. Otherwise null. */
  #partsFor({ content, reasoning_content, ...rest }: Delta): readonly JsonObject[] | null {
    if (Object.keys(rest).length > 0) return null;
    if (reasoning_content === undefined) return content === undefined ? null : [{ text: content }];
    if (this.#session.hasTools || content !== undefined) return null;
    return this.#session.showsThoughts ? [{ text: reasoning_content, thought: true }] : [];
  }
}

/** Collects the chunks of one output into a response. */
export class GeminiJsonWriter implements JsonWriter {
  readonly #response: Output;
  readonly #parts = new Map<number, JsonObject[]>();
  readonly #logprobs = new Map<number, ChatLogprobs[]>();
  #chars = 0;

  constructor(form: ClientForm, session: GeminiSession, options: ResponseOptions) {
    this.#response = new Output(form, session, options);
  }

  get heldChars(): number {
    return this.#chars;
  }

  chunk(chunk: Chunk): boolean {
    if (chunk.object !== 'chat.completion.chunk') return true;
    this.#response.model = chunk.model;
    this.#response.usage = chunk.usage ?? this.#response.usage;
    for (const choice of chunk.choices) {
      const { index, delta, logprobs } = choice;
      const parts = this.#parts.get(index) ?? [];
      this.#parts.set(index, parts);
      joinParts(parts, this.#response.candidate(index).read(choice));
      if (logprobs !== null) {
        const all = this.#logprobs.get(index) ?? [];
        all.push(logprobs);
        this.#logprobs.set(index, all);
      }
      this.#chars += JSON.stringify([delta, logprobs]).length;
    }
    return this.#chars <= MAX_RESPONSE_BYTES;
  }

  /** A response has no vendor events. */
  vendor(): void {}

  take(): string {
    return this.#response.last(this.#parts, this.#logprobs);
  }
}
