/** Repairs the tool calls of one choice: which call a fragment belongs to, and what only its first fragment contains (C7). */
import type { ToolCallDelta } from '../canonical/chunk.ts';
import type { ToolCallPart } from '../canonical/part.ts';
import type { JsonObject } from '../shared/json.ts';
import { MAX_TOOL_CALLS } from '../shared/limits.ts';

interface Call {
  readonly index: number;
  /** The upstream's own index, where it sends one: not always the same. */
  readonly upstreamIndex: number | undefined;
  /** The upstream's id, or undefined while it gave none. */
  id: string | undefined;
  named: boolean;
  /** Its first fragment was sent, with id, type and name. */
  announced: boolean;
  /** What came before the first fragment could be sent, and goes with it. */
  extraContent: JsonObject | undefined;
}

/** Calls that an answer has begun, in whichever choice. */
export interface CallCount {
  calls: number;
}

export class ToolCallRepair {
  readonly #makeId: () => string;
  readonly #count: CallCount;
  readonly #names: ReadonlyMap<string, string>;
  readonly #calls: Call[] = [];
  // The newest call of each id and of each upstream index: a search at every fragment would cost the square of the calls.
  readonly #byId = new Map<string, Call>();
  readonly #byUpstreamIndex = new Map<number, Call>();
  readonly #indexes = new Set<number>();
  #nextIndex = 0;
  #isEmpty = true;
  #isOverBound = false;

  /**
   * @param makeId gives the id of a call that came without one
   * @param count counts the calls of all choices of the answer
   * @param names tools' names as the client has them, by those that the upstream has for them
   */
  constructor(makeId: () => string, count: CallCount, names: ReadonlyMap<string, string> = new Map()) {
    this.#makeId = makeId;
    this.#count = count;
    this.#names = names;
  }

  /** No call was sent. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  /** The upstream began more calls than an answer may have: those beyond the bound are dropped. */
  get isOverBound(): boolean {
    return this.#isOverBound;
  }

  /** The canonical fragment, or null where this one contains nothing new. */
  read(part: ToolCallPart): ToolCallDelta | null {
    const call = this.#find(part) ?? this.#open(part);
    if (call === undefined) return null;
    call.named ||= part.name !== undefined;
    if (call.id === undefined && part.id !== undefined) this.#nameCall(call, part.id);
    if (call.announced) {
      if (part.arguments === '' && part.extraContent === undefined) return null;
      return {
        index: call.index,
        function: { arguments: part.arguments },
        ...extraContent(part.extraContent),
      };
    }
    call.extraContent ??= part.extraContent;
    // A fragment with nothing but an id or an index is kept back, because the name must be on the first one sent.
    if (part.name === undefined && part.arguments === '') return null;
    call.announced = true;
    this.#isEmpty = false;
    const { name = '' } = part;
    return {
      index: call.index,
      id: call.id ?? this.#makeId(),
      type: 'function',
      function: { name: this.#names.get(name) ?? name, arguments: part.arguments },
      ...extraContent(call.extraContent),
    };
  }

  /** The call that a fragment goes on with, or undefined where it begins a new one. */
  #find(part: ToolCallPart): Call | undefined {
    const sameId = part.id === undefined ? undefined : this.#byId.get(part.id);
    if (part.index === undefined) return part.id === undefined ? this.#lastOpenTo(part) : sameId;
    if (sameId?.upstreamIndex === part.index) return sameId;
    const sameIndex = this.#byUpstreamIndex.get(part.index);
    const differs = part.id !== undefined && sameIndex?.id !== undefined && part.id !== sameIndex.id;
    // Some send index 0 for every parallel call, others make up an id for every fragment: a name distinguishes the two.
    return differs && part.name !== undefined ? undefined : sameIndex;
  }

  /** Neither index nor id: the last call, but for a name where that one has its own. */
  #lastOpenTo(part: ToolCallPart): Call | undefined {
    const last = this.#calls.at(-1);
    return last?.named && part.name !== undefined ? undefined : last;
  }

  #open(part: ToolCallPart): Call | undefined {
    if (this.#count.calls >= MAX_TOOL_CALLS) {
      this.#isOverBound = true;
      return undefined;
    }
    // An index out of bounds serves to distinguish calls, but is none that a client could count with.
    const isUsable =
      part.index !== undefined && part.index < MAX_TOOL_CALLS && !this.#indexes.has(part.index);
    const index = isUsable ? part.index : this.#nextIndex;
    const call: Call = {
      index,
      upstreamIndex: part.index,
      id: undefined,
      named: false,
      announced: false,
      extraContent: undefined,
    };
    this.#count.calls++;
    this.#calls.push(call);
    this.#indexes.add(index);
    this.#nextIndex = Math.max(this.#nextIndex, index + 1);
    if (part.index !== undefined) this.#byUpstreamIndex.set(part.index, call);
    return call;
  }

  #nameCall(call: Call, id: string): void {
    call.id = id;
    this.#byId.set(id, call);
  }
}

function extraContent(value: JsonObject | undefined): { readonly extra_content?: JsonObject } {
  return value === undefined ? {} : { extra_content: value };
}
