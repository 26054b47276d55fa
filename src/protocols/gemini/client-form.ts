/** The forms in which Gemini's clients read a response: one object, server-sent events, or a JSON array that is written as it streams. */

import type { JsonObject } from '../../shared/json.ts';
import { FrameBuffer } from '../../stream/buffers.ts';
import { frameData } from '../../stream/sse-frame.ts';
import { withEnumNumbers } from './enums.ts';

/** What the writers need to know of a request. */
export interface GeminiSession {
  /** The client wants to see thoughts. */
  readonly showsThoughts: boolean;
  /** A further step may follow, with which a provider may want the thoughts back. */
  readonly hasTools: boolean;
}

export interface ClientForm {
  readonly kind: 'json' | 'events' | 'array';
  /** Enums are numbers: `$alt=json;enum-encoding=int`. */
  readonly hasEnumNumbers: boolean;
}

export const JSON_FORM: ClientForm = { kind: 'json', hasEnumNumbers: false };

/** The form that a path's method and the query name. */
export function formOf(isStreamed: boolean, query: URLSearchParams): ClientForm {
  const alts = [...query.getAll('alt'), ...query.getAll('$alt')].join(';').split(';');
  return {
    kind: !isStreamed ? 'json' : alts.includes('sse') ? 'events' : 'array',
    hasEnumNumbers: alts.includes('enum-encoding=int'),
  };
}

/** Google ends lines so. */
const EVENT_END = '\r\n\r\n';
const DATA = 'data: ';
const HEARTBEAT = `: heartbeat${EVENT_END}`;

/** Writes the elements of one stream. */
export class Elements {
  readonly output: FrameBuffer;
  readonly #isArray: boolean;
  #hasBegun = false;

  constructor({ kind }: ClientForm, maxEventBytes: number) {
    this.#isArray = kind === 'array';
    this.output = new FrameBuffer(maxEventBytes, this.#isArray ? '\n' : EVENT_END);
  }

  /** @returns false if it is larger than a frame may be: nothing was written */
  write(json: string): boolean {
    if (!this.#isArray) return this.output.frame(DATA, frameData(json));
    const head = this.#hasBegun ? ',\r\n' : '[';
    this.#hasBegun = true;
    return this.output.frame(head, json);
  }

  /** The text of a frame that follows others; null: it would be the first. */
  frame(json: string): string | null {
    if (!this.#isArray) return `${DATA}${json}${EVENT_END}`;
    return this.#hasBegun ? `,\r\n${json}\n` : null;
  }

  /** Ends the stream. An array without elements is one, too. */
  end(): void {
    if (this.#isArray) this.output.text(this.#hasBegun ? ']\n' : '[]\n');
  }

  /** A comment, or white space of JSON. */
  heartbeat(): void {
    this.output.text(this.#isArray ? ' ' : HEARTBEAT);
  }

  restart(): void {
    this.#hasBegun = false;
  }
}

/** The JSON of a response or an element. */
export function jsonIn({ hasEnumNumbers }: ClientForm, response: JsonObject): string {
  return JSON.stringify(hasEnumNumbers ? withEnumNumbers(response) : response);
}
