/**
 * Tool results: which call one belongs to, and where its images and files go. They stay in their tool message where the provider accepts
 * them there, and follow it otherwise.
 */

import { MEDIA_PARTS } from '../canonical/media.ts';
import { toolCallId } from '../canonical/tool-call-id.ts';
import { append } from '../shared/append.ts';
import { isObject, type JsonObject, mapList, omit, readArray, readText } from '../shared/json.ts';

/** The types of parts that are moved. About parts of other types the provider decides. */
const MEDIA_TYPES: readonly unknown[] = Object.values(MEDIA_PARTS);

/** A part of a chat message, or a block of a conversation. */
interface Part {
  readonly type?: unknown;
  readonly kind?: unknown;
  readonly text?: unknown;
}

function isText({ kind, type }: Part): boolean {
  return (kind ?? type) === 'text';
}

/** The parts in their order, with texts beside each other as one part. Empty texts are left out, because some providers refuse them. */
export function joinAdjacentTexts<P extends Part>(parts: readonly P[], separator: string): P[] {
  const joined: P[] = [];
  for (const part of parts) {
    const text = isText(part) ? readText(part.text) : undefined;
    const last = joined.at(-1);
    if (isText(part) && text === undefined) continue;
    if (text === undefined || last === undefined || !isText(last)) joined.push(part);
    // The first cache mark of the joined texts stays.
    else joined[joined.length - 1] = { ...part, ...last, text: `${last.text}${separator}${text}` };
  }
  return joined;
}

/** The text of a tool message whose whole result is moved: providers refuse an empty one. */
export const MOVED_RESULT_NOTE = 'The result follows in the next message.';

/**
 * Moves the media of tool messages into the user message behind them, or a new one. It follows all results of the step, because providers
 * accept nothing between a step's calls and their last result.
 * @param accepted the types of parts, besides text, that the provider accepts in a tool message
 */
export function moveMediaBehindResults(
  messages: readonly unknown[],
  accepted: readonly string[],
): readonly unknown[] {
  const ordered: unknown[] = [];
  let media: JsonObject[] = [];
  /** The length of `ordered` at the last tool message. */
  let end = 0;
  const flush = (next?: JsonObject): boolean => {
    const parts = media;
    media = [];
    if (parts.length === 0) return false;
    const isBehind = next?.role === 'user' && end === ordered.length;
    if (isBehind) ordered.push({ ...next, content: [...parts, ...partsOf(next.content)] });
    else ordered.splice(end, 0, { role: 'user', content: parts });
    return isBehind;
  };
  for (const message of messages) {
    if (isObject(message) && message.role === 'tool') {
      const { result, moved } = splitResult(message, accepted);
      ordered.push(result);
      append(media, moved);
      end = ordered.length;
    } else if (isObject(message) && (message.role === 'system' || message.role === 'developer')) {
      // It may stand between two results.
      ordered.push(message);
    } else if (!flush(isObject(message) ? message : undefined)) {
      ordered.push(message);
    }
  }
  flush();
  return ordered;
}

function splitResult(
  message: JsonObject,
  accepted: readonly string[],
): { readonly result: JsonObject; readonly moved: readonly JsonObject[] } {
  const parts = readArray(message.content).filter(isObject);
  const isMoved = ({ type }: JsonObject) => MEDIA_TYPES.includes(type) && !accepted.includes(String(type));
  const moved = parts.filter(isMoved);
  if (moved.length === 0) return { result: message, moved };
  const kept = parts.filter((part) => !isMoved(part));
  return { result: { ...message, content: contentOf(kept) }, moved };
}

/** Texts become one text, which all providers accept. A cache mark needs a part. */
function contentOf(parts: readonly JsonObject[]): unknown {
  const [first, ...others] = joinAdjacentTexts(parts, '\n');
  if (first === undefined) return MOVED_RESULT_NOTE;
  const isPlain = first.type === 'text' && Object.keys(omit(first, 'type', 'text')).length === 0;
  return others.length === 0 && isPlain ? first.text : [first, ...others];
}

/** The parts of a message's content, which may also be a text. */
export function partsOf(content: unknown): readonly unknown[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : readArray(content);
}

interface CallsWithId {
  /** How many other ids came before. */
  readonly position: number;
  readonly names: string[];
  results: number;
}

/** The tool calls of one step, for native APIs that match results by name or position. Several calls may share an id. */
export class StepCalls {
  readonly #calls = new Map<string, CallsWithId>();

  /** Begins the next step: later results belong to its calls. */
  begin(): void {
    this.#calls.clear();
  }

  add(id: string, name: string): void {
    const call = this.#calls.get(id);
    if (call !== undefined) call.names.push(name);
    else this.#calls.set(id, { position: this.#calls.size, names: [name], results: 0 });
  }

  /** The name of the call that a result belongs to. Results of calls with one id come in the order of the calls. */
  matchResult(id: string): string | undefined {
    const call = this.#calls.get(id);
    return call?.names[Math.min(call.results++, call.names.length - 1)];
  }

  /** The position of an id among the calls; an unknown id comes last. */
  positionOf(id: string): number {
    return this.#calls.get(id)?.position ?? this.#calls.size;
  }
}

/**
 * The ids of calls as a provider gets them: each call has one of its own, which its result has, too. Hosts repeat ids that count the calls
 * of a step, or are constants. The first call with an id keeps it, and an id depends on the calls before it alone, so a longer
 * conversation begins with the same bytes (Q16).
 */
export class UniqueCallIds {
  readonly #accepted: (id: string) => string;
  readonly #used = new Set<string>();
  /** The ids that are sent, by those that the client sent. */
  readonly #step = new StepCalls();
  readonly #latest = new Map<string, string>();

  /** @param accepted an id in a form that the provider accepts */
  constructor(accepted: (id: string) => string = (id) => id) {
    this.#accepted = accepted;
  }

  /** Begins the next step: results belong to its calls first. */
  begin(): void {
    this.#step.begin();
  }

  /** The id of the next call. */
  call(given: string): string {
    const id = this.#accepted(given);
    let unique = id;
    for (let i = this.#used.size; this.#used.has(unique); i++) unique = toolCallId(`${id} ${i}`);
    this.#used.add(unique);
    this.#step.add(given, unique);
    this.#latest.set(given, unique);
    return unique;
  }

  /** The id of the next result. Results of calls with one id come in the order of the calls. */
  result(given: string): string {
    return this.#step.matchResult(given) ?? this.#latest.get(given) ?? this.#accepted(given);
  }
}

/** Gives calls of one step that have the same id different ones, and their results, too. Returns the same list if there are none. */
export function withUniqueIdsInSteps(messages: readonly unknown[]): readonly unknown[] {
  let ids = new UniqueCallIds();
  let isInStep = false;
  return mapList(messages, (message) => {
    if (!isObject(message)) return message;
    const isStep = message.role === 'assistant';
    if (isStep && !isInStep) ids = new UniqueCallIds();
    isInStep = isStep;
    if (message.role === 'tool') return withId(message, 'tool_call_id', (id) => ids.result(id));
    if (!isStep || !Array.isArray(message.tool_calls)) return message;
    const calls = mapList(message.tool_calls, (call) =>
      isObject(call) ? withId(call, 'id', (id) => ids.call(id)) : call,
    );
    return calls === message.tool_calls ? message : { ...message, tool_calls: calls };
  });
}

function withId(object: JsonObject, key: string, idOf: (given: string) => string): JsonObject {
  const given = readText(object[key]);
  if (given === undefined) return object;
  const id = idOf(given);
  return id === given ? object : { ...object, [key]: id };
}
