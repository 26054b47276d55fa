/** Repairs the tool calls of one choice: finds the call of each fragment, and follows its arguments. */
import type { ToolCallDelta } from '../canonical/chunk.ts';
import { mayBePlaceholder, type ToolCallPart } from '../canonical/part.ts';
import type { JsonObject } from '../shared/json.ts';
import { KeyReplacer } from '../shared/json-keys.ts';
import { JsonProgress } from '../shared/json-progress.ts';
import { MAX_TOOL_CALLS } from '../shared/limits.ts';
import { type RawText, TextProgress } from './text-progress.ts';
import type { ChunkContext } from './types.ts';

interface ToolCall {
  /** The client's index: how many calls were sent before it. -1 until then. */
  index: number;
  /** The index that the upstream sent, if any. */
  readonly upstreamIndex: number | undefined;
  /** The upstream's id, or undefined until it sends one. */
  id: string | undefined;
  /** The upstream's name of the tool, or undefined until it sends one. */
  name: string | undefined;
  /** Of a custom tool. Its free text becomes the only argument, which `endArguments` ends. */
  isCustom: boolean;
  /** Something of it came: it has its place among the calls. */
  isQueued: boolean;
  /** Its first fragment, with id, type and name, was sent. */
  isStarted: boolean;
  /** Received before the first fragment could be sent, and sent with it. */
  extraContent: JsonObject | undefined;
  waitingText: string;
  isWhole: boolean;
  progress: JsonProgress;
  /** The arguments, or the input of a custom tool, as they came. */
  text: TextProgress;
  /** The last part has the first piece of the arguments, which may be a placeholder for those that follow. */
  isHeld: boolean;
  /** `dropped`: the arguments began with a placeholder, which was left out. `sent`: with what may have been one, and was sent. */
  placeholder: 'none' | 'dropped' | 'sent';
  /** Arguments followed a placeholder that was sent. */
  isBroken: boolean;
  /** Arguments came before the name. */
  isEarly: boolean;
  /** Writes the client's keys into the arguments; null: the upstream knows the same ones. */
  replacer: KeyReplacer | null;
}

/** The input of a custom tool as the only argument of a function. */
const INPUT_START = '{"input":"';
const INPUT_END = '"}';
const NO_ARGUMENTS = '{}';

/** Arguments that come before the name of their tool, of all calls of an output, in UTF-16 units. */
export const MAX_NAMELESS_CHARS = 256 * 1024;

/** The tool calls of all choices of one output. */
export interface ToolCallCount {
  calls: number;
  /** The arguments that wait for a name, in UTF-16 units. */
  waitingChars: number;
  /** Changes with what decides to which call a fragment belongs, and how it is read. */
  revision: number;
}

/** Repairs the tool calls of one choice: finds the call of each fragment, and sends id, type and name once, first (C7). */
export class ToolCallRepair {
  readonly #makeId: () => string;
  readonly #count: ToolCallCount;
  readonly #names: ReadonlyMap<string, string>;
  readonly #keys: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly #calls: ToolCall[] = [];
  // The newest call of each id and of each upstream index. A search at every fragment would take quadratic time.
  readonly #byId = new Map<string, ToolCall>();
  readonly #byUpstreamIndex = new Map<number, ToolCall>();
  /** The calls that were not sent, in the order in which they came. The first one has no name yet. */
  readonly #queue: ToolCall[] = [];
  /** The ids that the client has. */
  readonly #sentIds = new Set<string>();
  readonly #held: ToolCall[] = [];
  #started = 0;
  #excess: string | null = null;

  /**
   * @param makeId makes the id of a call that the upstream sent without one
   * @param replaced the client's tool names, and keys of arguments, by those that the upstream knows
   */
  constructor(
    makeId: () => string,
    count: ToolCallCount,
    replaced: Pick<ChunkContext, 'toolNames' | 'toolKeys'> = {},
  ) {
    this.#makeId = makeId;
    this.#count = count;
    this.#names = replaced.toolNames ?? new Map();
    this.#keys = replaced.toolKeys ?? new Map();
  }

  /** Whether no call was sent. */
  get isEmpty(): boolean {
    return this.#started === 0;
  }

  /** What the upstream sent too much of, or null. What exceeds a bound is dropped. */
  get excess(): string | null {
    return this.#excess;
  }

  /** Whether a call has no name. It was not sent, and neither were those after it. */
  get isNameless(): boolean {
    return this.#queue.length > 0;
  }

  /** Whether the arguments of a call end within JSON. Empty and otherwise malformed arguments are not. */
  get isCut(): boolean {
    return this.#calls.some(({ progress }) => progress.endsCut);
  }

  /** Whether a placeholder and what followed it do not form JSON, or arguments from before the name and what followed those. */
  get isBroken(): boolean {
    return this.#calls.some(
      ({ isBroken, isEarly, placeholder, progress }) =>
        isBroken || (placeholder === 'dropped' && !progress.isComplete) || (isEarly && !progress.isAlone),
    );
  }

  /** Whether the part repeats a whole call that was sent: its id, its name and its arguments. */
  isRepeated({ id, index, name, arguments: text, extraContent }: ToolCallPart): boolean {
    const call = id === undefined ? undefined : this.#byId.get(id);
    if (call?.isStarted !== true || name === undefined || name !== call.name) return false;
    if (extraContent !== undefined || (index !== undefined && index !== call.upstreamIndex)) return false;
    return (call.progress.isComplete || !call.progress.hasBegun) && call.text.equals(text);
  }

  /** Returns the canonical fragments: none if the part has nothing to send, several if calls waited for the name of this one. */
  read(part: ToolCallPart): readonly ToolCallDelta[] {
    if (this.isRepeated(part)) return [];
    const call = this.#find(part) ?? this.#add(part);
    if (call === undefined) return [];
    if (part.isCustom === true && call.name === undefined && !call.isCustom) {
      call.isCustom = true;
      this.#count.revision++;
    }
    if (call.id === undefined && part.id !== undefined) this.#setId(call, part.id);
    if (!call.isStarted) {
      this.#wait(part, call);
      return this.#startNamed();
    }
    const fragment = call.isCustom ? this.#continueInput(part, call) : this.#continue(part, call);
    return fragment === null ? [] : [fragment];
  }

  /**
   * The arguments that a part continues which has just been read, if the next part like it does nothing but continue them; otherwise null.
   * They are the same until the revision changes.
   */
  argumentsOf(part: ToolCallPart): RawText | null {
    const { name, isCustom, isWhole, extraContent } = part;
    const isPlain =
      name === undefined && isCustom === undefined && isWhole === undefined && extraContent === undefined;
    const call = isPlain ? this.#find(part) : undefined;
    if (call === undefined || !call.isStarted || call.isCustom || call.isHeld || call.replacer !== null)
      return null;
    // What follows a placeholder that was sent is read as a text.
    return call.placeholder === 'sent' ? null : new CopiedArguments(call);
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
      if (!isStarted) return [];
      if (isCustom && !progress.isComplete) {
        progress.push(INPUT_END);
        return [{ index, function: { arguments: INPUT_END }, custom: { input: '' } }];
      }
      if (placeholder !== 'dropped' || progress.hasBegun) return [];
      progress.push(NO_ARGUMENTS);
      return [{ index, function: { arguments: NO_ARGUMENTS } }];
    });
  }

  /** At the limit: the first fragments of the calls that waited for the name of another one. A call without a name was cut. */
  startWaiting(): readonly ToolCallDelta[] {
    const named = this.#queue.filter(({ name }) => name !== undefined);
    this.#queue.splice(0, this.#queue.length, ...named);
    return this.#startNamed();
  }

  /** Keeps what came before the first fragment, which must have the name. Calls are sent in the order in which they came. */
  #wait(part: ToolCallPart, call: ToolCall): void {
    const { name, arguments: text, isWhole = false, extraContent } = part;
    call.name ??= name;
    call.isEarly ||= !call.isCustom && call.name === undefined && text !== '';
    call.isWhole ||= isWhole;
    call.extraContent ??= extraContent;
    if (!call.isCustom && text.trimStart().startsWith('{') && mayBePlaceholder(call.waitingText)) {
      call.placeholder = 'dropped';
      call.waitingText = '';
      restart(call);
    }
    call.waitingText += text;
    call.text.push(text);
    if (!call.isCustom) call.progress.push(text);
    const hasCome = call.id !== undefined || call.name !== undefined || call.waitingText !== '';
    if (hasCome && !call.isQueued) {
      call.isQueued = true;
      this.#queue.push(call);
    }
    this.#count.waitingChars += text.length;
    if (this.#count.waitingChars > MAX_NAMELESS_CHARS && this.#queue[0]?.name === undefined) {
      this.#excess = `${MAX_NAMELESS_CHARS} characters of arguments before the name of their tool`;
    }
  }

  /** Sends the calls that have their name, up to the first one without. */
  #startNamed(): readonly ToolCallDelta[] {
    const fragments: ToolCallDelta[] = [];
    for (let call = this.#queue[0]; call?.name !== undefined; call = this.#queue[0]) {
      this.#queue.shift();
      fragments.push(this.#start(call, call.name));
    }
    return fragments;
  }

  #start(call: ToolCall, upstreamName: string): ToolCallDelta {
    const { isCustom, isWhole, waitingText, extraContent } = call;
    call.isStarted = true;
    call.index = this.#started++;
    call.waitingText = '';
    this.#count.waitingChars -= waitingText.length;
    const text = isCustom
      ? INPUT_START + JSON.stringify(waitingText).slice(1, -1) + (isWhole ? INPUT_END : '')
      : waitingText;
    if (isCustom) call.progress.push(text);
    else if (!isWhole && mayBePlaceholder(text)) this.#hold(call);
    const name = this.#names.get(upstreamName) ?? upstreamName;
    const keys = isCustom ? undefined : this.#keys.get(upstreamName);
    if (keys !== undefined) call.replacer = new KeyReplacer(keys);
    return {
      index: call.index,
      id: this.#idFor(call),
      type: 'function',
      function: { name, arguments: call.replacer?.push(text) ?? text },
      ...(isCustom ? { custom: { name, input: waitingText } } : {}),
      ...(extraContent === undefined ? {} : { extra_content: extraContent }),
    };
  }

  #continue(part: ToolCallPart, call: ToolCall): ToolCallDelta | null {
    const { arguments: text, extraContent } = part;
    if (!call.progress.hasBegun && part.isWhole !== true && mayBePlaceholder(text)) this.#hold(call);
    call.isBroken ||= call.placeholder === 'sent' && text.trimStart().startsWith('{');
    call.progress.push(text);
    call.text.push(text);
    const written = call.replacer?.push(text) ?? text;
    if (written === '' && extraContent === undefined) return null;
    const more = extraContent === undefined ? {} : { extra_content: extraContent };
    return { index: call.index, function: { arguments: written }, ...more };
  }

  #continueInput({ arguments: input, isWhole }: ToolCallPart, call: ToolCall): ToolCallDelta | null {
    const end = isWhole === true && !call.progress.isComplete ? INPUT_END : '';
    const text = JSON.stringify(input).slice(1, -1) + end;
    call.progress.push(text);
    call.text.push(input);
    return text === '' ? null : { index: call.index, function: { arguments: text }, custom: { input } };
  }

  #hold(call: ToolCall): void {
    call.isHeld = true;
    this.#held.push(call);
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
      if (isReplaced) restart(call);
    }
    return new Set(isReplaced ? held.map(({ index }) => index) : []);
  }

  /** The call that a fragment continues, or undefined if it starts a new one. */
  #find(part: ToolCallPart): ToolCall | undefined {
    const sameId = part.id === undefined ? undefined : this.#byId.get(part.id);
    const isAnew = sameId !== undefined && part.name !== undefined && beginsAnew(part, sameId);
    if (part.index === undefined) {
      if (part.id === undefined) return this.#lastFor(part);
      return isAnew ? undefined : sameId;
    }
    if (sameId?.upstreamIndex === part.index) return isAnew ? undefined : sameId;
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
    return last?.name !== undefined && part.name !== undefined ? undefined : last;
  }

  #add(part: ToolCallPart): ToolCall | undefined {
    if (this.#count.calls >= MAX_TOOL_CALLS) {
      this.#excess = `${MAX_TOOL_CALLS} tool calls`;
      return undefined;
    }
    const call: ToolCall = {
      index: -1,
      upstreamIndex: part.index,
      id: undefined,
      name: undefined,
      isCustom: false,
      isQueued: false,
      isStarted: false,
      extraContent: undefined,
      waitingText: '',
      isWhole: false,
      progress: new JsonProgress(),
      text: new TextProgress(),
      isHeld: false,
      placeholder: 'none',
      isBroken: false,
      isEarly: false,
      replacer: null,
    };
    this.#count.calls++;
    this.#count.revision++;
    this.#calls.push(call);
    if (part.index !== undefined) this.#byUpstreamIndex.set(part.index, call);
    return call;
  }

  #setId(call: ToolCall, id: string): void {
    call.id = id;
    this.#count.revision++;
    this.#byId.set(id, call);
  }
}

/**
 * Servers that send parallel calls under one index, without ids (Ollama) or with one id for all (llama.cpp): other arguments begin where
 * those of the call are complete.
 */
function beginsAnew(part: ToolCallPart, { id, name, isHeld, placeholder, progress }: ToolCall): boolean {
  if (part.id !== id || name === undefined || isHeld) return false;
  if (id !== undefined && placeholder !== 'none') return false;
  return progress.isComplete && part.arguments.trimStart().startsWith('{');
}

/** What came of its arguments was a placeholder. */
function restart(call: ToolCall): void {
  call.progress = new JsonProgress();
  call.text = new TextProgress();
}

/** The arguments that the fast path copies. */
class CopiedArguments implements RawText {
  readonly #call: ToolCall;

  constructor(call: ToolCall) {
    this.#call = call;
  }

  pushRaw(bytes: Uint8Array, from: number, to: number, units: number): void {
    this.#call.progress.pushRaw(bytes, from, to);
    this.#call.text.pushRaw(bytes, from, to, units);
  }
}
