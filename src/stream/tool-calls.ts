/** Repairs the tool calls of one choice: which call a fragment belongs to, and what only its first fragment says (C7). */
import type { ToolCallDelta } from '../canonical/chunk.ts';
import { MAX_TOOL_CALLS } from '../canonical/limits.ts';
import type { ToolCallPart } from '../canonical/part.ts';

interface Call {
  readonly index: number;
  /** What the upstream calls its index, where it says one: not always the same. */
  readonly upstreamIndex: number | undefined;
  /** The upstream's id, or undefined while it gave none. */
  id: string | undefined;
  named: boolean;
  /** Its first fragment was sent: id, type and name were said. */
  announced: boolean;
}

export class ToolCalls {
  readonly #makeId: () => string;
  readonly #calls: Call[] = [];
  #isOverBound = false;

  /** @param makeId gives the id of a call that came without one */
  constructor(makeId: () => string) {
    this.#makeId = makeId;
  }

  /** No call was sent. */
  get isEmpty(): boolean {
    return !this.#calls.some((call) => call.announced);
  }

  /** The upstream began more calls than an answer may have: those beyond the bound are dropped. */
  get isOverBound(): boolean {
    return this.#isOverBound;
  }

  /** The canonical fragment, or null where this one says nothing new. */
  read(part: ToolCallPart): ToolCallDelta | null {
    const call = this.#find(part) ?? this.#open(part);
    if (call === undefined) return null;
    call.named ||= part.name !== undefined;
    call.id ??= part.id;
    if (call.announced) {
      return part.arguments === '' ? null : { index: call.index, function: { arguments: part.arguments } };
    }
    // A fragment with nothing but an id or an index is kept back, because the name must be on the first one sent.
    if (part.name === undefined && part.arguments === '') return null;
    call.announced = true;
    return {
      index: call.index,
      id: call.id ?? this.#makeId(),
      type: 'function',
      function: { name: part.name ?? '', arguments: part.arguments },
    };
  }

  /** The call that a fragment goes on with, or undefined where it begins a new one. */
  #find(part: ToolCallPart): Call | undefined {
    const sameId = part.id === undefined ? undefined : this.#calls.findLast((call) => call.id === part.id);
    if (part.index === undefined) return part.id === undefined ? this.#lastOpenTo(part) : sameId;
    if (sameId?.upstreamIndex === part.index) return sameId;
    const sameIndex = this.#calls.findLast((call) => call.upstreamIndex === part.index);
    const differs = part.id !== undefined && sameIndex?.id !== undefined && part.id !== sameIndex.id;
    // Some say index 0 of every parallel call, others make up an id for every fragment: a name tells the two apart.
    return differs && part.name !== undefined ? undefined : sameIndex;
  }

  /** Neither index nor id: the last call, but for a name where that one has its own. */
  #lastOpenTo(part: ToolCallPart): Call | undefined {
    const last = this.#calls.at(-1);
    return last?.named && part.name !== undefined ? undefined : last;
  }

  #open(part: ToolCallPart): Call | undefined {
    if (this.#calls.length >= MAX_TOOL_CALLS) {
      this.#isOverBound = true;
      return undefined;
    }
    const isTaken = this.#calls.some((call) => call.index === part.index);
    const next = this.#calls.reduce((index, call) => Math.max(index, call.index + 1), 0);
    const call: Call = {
      index: part.index === undefined || isTaken ? next : part.index,
      upstreamIndex: part.index,
      id: part.id,
      named: false,
      announced: false,
    };
    this.#calls.push(call);
    return call;
  }
}
