/** Repairs the tool calls of one choice: finds the call of each fragment, and follows its arguments. */
import type { ToolCallDelta } from '../canonical/chunk.ts';
import { mayBePlaceholder, type ToolCallPart } from '../canonical/part.ts';
import type { JsonObject } from '../shared/json.ts';
import { JsonProgress } from '../shared/json-progress.ts';
import { MAX_TOOL_CALLS } from '../shared/limits.ts';

interface ToolCall {
  readonly index: number;
  /** The index that the upstream sent, if any. It may differ from `index`. */
  readonly upstreamIndex: number | undefined;
  /** The upstream's id, or undefined until it sends one. */
  id: string | undefined;
  hasName: boolean;
  /** Of a custom tool. Its free text becomes the only argument, which `endArguments` ends. */
  isCustom: boolean;
  /** Its first fragment, with id, type and name, was sent. */
  isStarted: boolean;
  /** Received before the first fragment could be sent, and sent with it. */
  extraContent: JsonObject | undefined;
  progress: JsonProgress;
  /** The last part has the first piece of the arguments, which may be a placeholder for those that follow. */
  isHeld: boolean;
  /** `dropped`: the arguments began with a placeholder, which was left out. `sent`: with what may have been one, and was sent. */
  placeholder: 'none' | 'dropped' | 'sent';
  /** Arguments followed a placeholder that was sent. */
  isBroken: boolean;
}

/** The input of a custom tool as the only argument of a function. */
const INPUT_START = '{"input":"';
const INPUT_END = '"}';
const NO_ARGUMENTS = '{}';

/** The tool calls of all choices of one output. */
export interface ToolCallCount {
  calls: number;
  /** Changes with what decides to which call a fragment belongs, and how it is read. */
  revision: number;
}

/** Repairs the tool calls of one choice: finds the call of each fragment, and sends id, type and name once, first (C7). */
export class ToolCallRepair {
  readonly #makeId: () => string;
  readonly #count: ToolCallCount;
  readonly #names: ReadonlyMap<string, string>;
  readonly #calls: ToolCall[] = [];
  // The newest call of each id and of each upstream index. A search at every fragment would take quadratic time.
  readonly #byId = new Map<string, ToolCall>();
  readonly #byUpstreamIndex = new Map<number, ToolCall>();
  readonly #indexes = new Set<number>();
  /** The ids that the client has. */
  readonly #sentIds = new Set<string>();
  readonly #held: ToolCall[] = [];
  #nextIndex = 0;
  #isEmpty = true;
  #isOverBound = false;

  /**
   * @param makeId makes the id of a call that the upstream sent without one
   * @param names the client's tool names by the names that the upstream knows
   */
  constructor(makeId: () => string, count: ToolCallCount, names: ReadonlyMap<string, string> = new Map()) {
    this.#makeId = makeId;
    this.#count = count;
    this.#names = names;
  }

  /** Whether no call was sent. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  /** Whether the upstream started more than {@link MAX_TOOL_CALLS} calls. The further ones are dropped. */
  get isOverBound(): boolean {
    return this.#isOverBound;
  }

  /** Whether the arguments of a call end within JSON. Empty and otherwise malformed arguments are not. */
  get isCut(): boolean {
    return this.#calls.some(({ progress }) => progress.endsCut);
  }

  /** Whether a placeholder and what followed it do not form JSON. */
  get isBroken(): boolean {
    return this.#calls.some(
      ({ isBroken, placeholder, progress }) =>
        isBroken || (placeholder === 'dropped' && !progress.isComplete),
    );
  }

  /** Returns the canonical fragment, or null if the part has nothing to send. */
  read(part: ToolCallPart): ToolCallDelta | null {
    const call = this.#find(part) ?? this.#start(part);
    if (call === undefined) return null;
    const { arguments: text } = part;
    if (part.isCustom === true && !call.hasName && !call.isCustom) {
      call.isCustom = true;
      this.#count.revision++;
    }
    if (call.isCustom) return this.#readInput(part, call);
    if (!call.progress.hasBegun && part.isWhole !== true && mayBePlaceholder(text)) {
      call.isHeld = true;
      this.#held.push(call);
    }
    call.isBroken ||= call.placeholder === 'sent' && text.trimStart().startsWith('{');
    call.progress.push(text);
    call.hasName ||= part.name !== undefined;
    if (call.id === undefined && part.id !== undefined) this.#setId(call, part.id);
    if (call.isStarted) {
      if (text === '' && part.extraContent === undefined) return null;
      return {
        index: call.index,
        function: { arguments: text },
        ...extraContent(part.extraContent),
      };
    }
    call.extraContent ??= part.extraContent;
    // The first fragment that is sent must have the name. One with only an id or an index waits for the next.
    if (part.name === undefined && part.arguments === '') return null;
    call.isStarted = true;
    this.#isEmpty = false;
    const { name = '' } = part;
    return {
      index: call.index,
      id: this.#idFor(call),
      type: 'function',
      function: { name: this.#names.get(name) ?? name, arguments: text },
      ...extraContent(call.extraContent),
    };
  }

  /**
   * The arguments that a part continues which has just been read, if the next part like it does nothing but continue them; otherwise null.
   * They are the same until the revision changes.
   */
  argumentsOf(part: ToolCallPart): JsonProgress | null {
    const { name, isCustom, isWhole, extraContent } = part;
    const isPlain =
      name === undefined && isCustom === undefined && isWhole === undefined && extraContent === undefined;
    const call = isPlain ? this.#find(part) : undefined;
    if (call === undefined || !call.isStarted || call.isCustom || call.isHeld) return null;
    // What follows a placeholder that was sent is read as a text.
    return call.placeholder === 'sent' ? null : call.progress;
  }

  /** Whether there is a call of a custom tool, of which nothing shows whether its input is complete. */
  get hasInputs(): boolean {
    return this.#calls.some(({ isCustom }) => isCustom);
  }

  /**
   * At the finish: the fragments that end the arguments of custom tools' calls, and those of the calls of which nothing followed a
   * dropped placeholder.
   */
  endArguments(): readonly ToolCallDelta[] {
    return this.#calls.flatMap((call): readonly ToolCallDelta[] => {
      const { index, isCustom, isStarted, placeholder, progress } = call;
      if (isCustom && isStarted && !progress.isComplete) {
        progress.push(INPUT_END);
        return [{ index, function: { arguments: INPUT_END }, custom: { input: '' } }];
      }
      if (placeholder !== 'dropped' || progress.hasBegun) return [];
      progress.push(NO_ARGUMENTS);
      return [{ index, function: { arguments: NO_ARGUMENTS } }];
    });
  }

  #readInput(part: ToolCallPart, call: ToolCall): ToolCallDelta | null {
    const { name, arguments: input } = part;
    call.hasName ||= name !== undefined;
    if (call.id === undefined && part.id !== undefined) this.#setId(call, part.id);
    if (!call.isStarted && name === undefined) return null;
    const end = part.isWhole === true && !call.progress.isComplete ? INPUT_END : '';
    const text = (call.isStarted ? '' : INPUT_START) + JSON.stringify(input).slice(1, -1) + end;
    call.progress.push(text);
    if (call.isStarted) {
      return text === '' ? null : { index: call.index, function: { arguments: text }, custom: { input } };
    }
    call.isStarted = true;
    this.#isEmpty = false;
    const callName = this.#names.get(name ?? '') ?? name ?? '';
    return {
      index: call.index,
      id: this.#idFor(call),
      type: 'function',
      function: { name: callName, arguments: text },
      custom: { name: callName, input },
    };
  }

  /** Whether a fragment of the last part has a placeholder, which the next part may replace. */
  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /**
   * Decides on the placeholders of the last part.
   * @param next the fragments of the next part
   * @returns the indexes of the calls whose placeholder is dropped, because other arguments follow it, or one of the same part
   */
  decidePlaceholders(next: readonly ToolCallPart[]): ReadonlySet<number> {
    const held = this.#held.splice(0);
    if (held.length > 0) this.#count.revision++;
    const isReplaced = next.some((part) => {
      return part.arguments.trimStart().startsWith('{') && this.#find(part)?.isHeld === true;
    });
    for (const call of held) {
      call.isHeld = false;
      call.placeholder = isReplaced ? 'dropped' : 'sent';
      if (isReplaced) call.progress = new JsonProgress();
    }
    return new Set(isReplaced ? held.map(({ index }) => index) : []);
  }

  /** The call that a fragment continues, or undefined if it starts a new one. */
  #find(part: ToolCallPart): ToolCall | undefined {
    const sameId = part.id === undefined ? undefined : this.#byId.get(part.id);
    if (part.index === undefined) return part.id === undefined ? this.#lastFor(part) : sameId;
    if (sameId?.upstreamIndex === part.index) return sameId;
    const sameIndex = this.#byUpstreamIndex.get(part.index);
    const differs = part.id !== undefined && sameIndex?.id !== undefined && part.id !== sameIndex.id;
    // Some upstreams send index 0 for every parallel call, with a name. Others send a new id with every fragment, without one.
    const isNext =
      part.name !== undefined && (differs || (sameIndex !== undefined && beginsAnew(part, sameIndex)));
    return isNext ? undefined : sameIndex;
  }

  /** Two calls with one id could not be told apart in the next request: the later one gets an id of its own. */
  #idFor(call: ToolCall): string {
    const id = call.id === undefined || this.#sentIds.has(call.id) ? this.#makeId() : call.id;
    this.#sentIds.add(id);
    return id;
  }

  /** For a fragment with neither index nor id: the last call, unless both have a name. */
  #lastFor(part: ToolCallPart): ToolCall | undefined {
    const last = this.#calls.at(-1);
    return last?.hasName && part.name !== undefined ? undefined : last;
  }

  #start(part: ToolCallPart): ToolCall | undefined {
    if (this.#count.calls >= MAX_TOOL_CALLS) {
      this.#isOverBound = true;
      return undefined;
    }
    // An index out of bounds still distinguishes calls, but is not sent to the client.
    const isUsable =
      part.index !== undefined && part.index < MAX_TOOL_CALLS && !this.#indexes.has(part.index);
    const index = isUsable ? part.index : this.#nextIndex;
    const call: ToolCall = {
      index,
      upstreamIndex: part.index,
      id: undefined,
      hasName: false,
      isCustom: false,
      isStarted: false,
      extraContent: undefined,
      progress: new JsonProgress(),
      isHeld: false,
      placeholder: 'none',
      isBroken: false,
    };
    this.#count.calls++;
    this.#count.revision++;
    this.#calls.push(call);
    this.#indexes.add(index);
    this.#nextIndex = Math.max(this.#nextIndex, index + 1);
    if (part.index !== undefined) this.#byUpstreamIndex.set(part.index, call);
    return call;
  }

  #setId(call: ToolCall, id: string): void {
    call.id = id;
    this.#count.revision++;
    this.#byId.set(id, call);
  }
}

/** Ollama sends parallel calls under one index and without ids: other arguments begin where those of the call are complete. */
function beginsAnew(part: ToolCallPart, { id, hasName, isHeld, progress }: ToolCall): boolean {
  if (part.id !== undefined || id !== undefined || !hasName || isHeld) return false;
  return progress.isComplete && part.arguments.trimStart().startsWith('{');
}

function extraContent(value: JsonObject | undefined): { readonly extra_content?: JsonObject } {
  return value === undefined ? {} : { extra_content: value };
}
