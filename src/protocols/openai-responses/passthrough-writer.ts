/** Writes an upstream's Responses events as they came; a stream that fails ends with numbers and a response that go on from them (N2). */
import type { Chunk } from '../../canonical/chunk.ts';
import { isObject, type JsonObject, readCount, readText } from '../../shared/json.ts';
import type { FrameBuffer } from '../../stream/buffers.ts';
import type { StreamFailure, StreamWriter } from '../../stream/types.ts';
import type { PassthroughOptions } from '../shared/client-protocol.ts';
import { PassthroughWriter } from '../shared/passthrough-writer.ts';
import { streamErrorOf } from './client-errors.ts';
import { DONE_FRAME, eventFrame, HEARTBEAT_FRAME } from './client-events.ts';
import { isReasoningText, writeEvent, writeResponse } from './passthrough-event.ts';
import { EMPTY_SESSION } from './request-session.ts';
import { ResponseObject, type UpstreamResponse } from './response-object.ts';

export class ResponsesPassthroughWriter implements StreamWriter {
  readonly #options: PassthroughOptions;
  readonly #passing: PassthroughWriter;
  /** The client's next one. */
  #nextNumber = 0;
  /** Events that it did not get. */
  #dropped = 0;
  /** What the events said of their response. */
  #response: UpstreamResponse | null = null;

  constructor(options: PassthroughOptions) {
    this.#options = options;
    const form = {
      heartbeat: () => HEARTBEAT_FRAME,
      failure: (failure: StreamFailure) => this.#failure(failure),
    };
    this.#passing = new PassthroughWriter(form, options.maxEventBytes);
  }

  get output(): FrameBuffer {
    return this.#passing.output;
  }

  /** With a changed number a frame is none that could be copied. */
  get revision(): number {
    return Math.min(this.#dropped, 1);
  }

  readonly event = (name: string, data: string, event: JsonObject): boolean => {
    if (this.#options.reasoning === 'strip' && isReasoningText(event)) {
      this.#dropped++;
      return true;
    }
    const { sequence_number, response } = event;
    const number = readCount(sequence_number);
    this.#nextNumber = (number === undefined ? this.#nextNumber : number - this.#dropped) + 1;
    if (isObject(response)) this.#response = readResponse(writeResponse(response, this.#options));
    return this.#passing.event(name, writeEvent(data, event, this.#dropped, this.#options));
  };

  chunk(): boolean {
    return true;
  }

  vendor(): void {}

  end(failure: StreamFailure | null): void {
    this.#passing.end(failure);
  }

  heartbeat(isHeld: boolean): void {
    this.#passing.heartbeat(isHeld);
  }

  restart(): void {
    this.#passing.restart();
    this.#nextNumber = 0;
    this.#dropped = 0;
    this.#response = null;
  }

  textFrame(chunk: Chunk): string | null {
    return this.#dropped === 0 ? this.#passing.textFrame(chunk) : null;
  }

  /** Its number is not read: the protocol counts events one by one. */
  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    this.#nextNumber++;
    this.#passing.splice(literals, source, from, to);
  }

  /** Nothing of the answer is held here: the response that failed is without its items. */
  #failure(failure: StreamFailure): string {
    const error = streamErrorOf(failure);
    const known = this.#response ?? {};
    const answer = new ResponseObject(
      { session: EMPTY_SESSION, writer: this.#options, events: null, known },
      null,
    );
    const first = this.#nextNumber === 0 ? this.#beginning(answer) : '';
    const told = this.#frame('error', `"error":${JSON.stringify(error)}`);
    return first + told + this.#frame('response.failed', `"response":${answer.failed(error)}`) + DONE_FRAME;
  }

  /** Under a head that a heartbeat sent there may be no event yet. */
  #beginning(answer: ResponseObject): string {
    const response = `"response":${answer.inProgress}`;
    return this.#frame('response.created', response) + this.#frame('response.in_progress', response);
  }

  #frame(type: string, members: string): string {
    return eventFrame(type, members, this.#nextNumber++);
  }
}

function readResponse({ id, created_at, model }: JsonObject): UpstreamResponse {
  return { id: readText(id), created: readCount(created_at), model: readText(model) };
}
