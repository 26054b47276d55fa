/** What was sent of each item of a response's output, so that the final forms of items and parts add only what is missing. */
import { MAX_PLACEHOLDER_CHARS, mayBePlaceholder, type TextCount } from '../../canonical/part.ts';
import { objectOf, readArray, readCount, readText } from '../../shared/json.ts';

/** The kinds of text that an item has. `thoughts`: reasoning in `content`; `summary`: in `summary`. */
export type TextKind = 'text' | 'refusal' | 'summary' | 'thoughts';

/** A text in its final form. */
export interface FinalText {
  readonly kind: TextKind;
  /** Its index in the item's `content` or `summary`. */
  readonly index: number;
  readonly text: string;
  readonly logprobs: readonly unknown[];
  /** What was sent of it, in UTF-16 units. Absent: what was sent under its index. */
  readonly sentUnits?: number;
}

/** Items and texts that are followed. Of further ones only what comes as a delta is sent. */
const MAX_FOLLOWED = 4096;

/** A text of an item. An item may begin again at the same index, so `start` is what was sent before it began. */
export interface SentText extends TextCount {
  start: number;
  /** The length of its final form, or null; and its hash. */
  finalUnits: number | null;
  finalHash: number;
  /** Its final form, of which the rest may have come under another index: the final item decides. */
  undecided: FinalText | null;
  /** What came with the beginning, and is not sent yet: deltas may repeat it, or continue it. */
  announced: FinalText | null;
  readonly isFollowed: boolean;
  /** A client on the passthrough has its part's beginning, the text itself in a beginning, its end, its part's end. */
  isAdded: boolean;
  isShown: boolean;
  isTextDone: boolean;
  isPartDone: boolean;
}

const NOT_PASSED = { isAdded: false, isShown: false, isTextDone: false, isPartDone: false };

/** An item, as far as it was sent. */
export class SentItem {
  readonly #texts = new Map<string, SentText>();
  readonly #isFollowed: () => boolean;
  /** The item was announced, or its final form was read. */
  isOpen = false;
  /** Its final form was read. */
  isDone = false;
  id: string | undefined;
  /** A client on the passthrough has its beginning, with this id. */
  isAdded = false;
  addedId: string | undefined;
  /** On the passthrough nothing is added to its events. */
  isPassedAsIs = false;

  /** @param isFollowed whether one text more is followed */
  constructor(isFollowed: () => boolean) {
    this.#isFollowed = isFollowed;
  }

  /** Whether anything of it came. */
  get hasBegun(): boolean {
    return this.isOpen || this.isAdded || this.isPassedAsIs;
  }

  /** The count of one of its texts. */
  count(kind: TextKind, index: number): SentText {
    const key = `${kind} ${index}`;
    const itemText = this.#texts.get(key) ?? this.#texts.get(kind);
    if (itemText !== undefined) return itemText;
    const isFollowed = this.#isFollowed();
    const made = {
      units: 0,
      start: 0,
      finalUnits: null,
      finalHash: 0,
      undecided: null,
      announced: null,
      isFollowed,
      ...NOT_PASSED,
    };
    this.#texts.set(isFollowed ? key : kind, made);
    return made;
  }

  /** What was sent of one kind, since the item began, or of all items at this index. */
  units(kind: TextKind, sinceStart: boolean): number {
    let sum = 0;
    for (const { units, start } of this.#of(kind)) sum += sinceStart ? units - start : units;
    return sum;
  }

  /** Another item begins at the same index. */
  restart(): void {
    this.isOpen = false;
    this.isDone = false;
    for (const text of this.#texts.values())
      Object.assign(text, NOT_PASSED, { start: text.units, finalUnits: null, undecided: null });
  }

  /** A text that came with the beginning of its item or part. */
  announce(text: FinalText): void {
    const sent = this.count(text.kind, text.index);
    sent.isShown = true;
    if (sent.isFollowed && sent.units === sent.start) sent.announced = text;
  }

  /**
   * The texts that were announced, and came in no other form.
   * @param finals the texts of the final item: of their kinds nothing else counts
   */
  announced(finals: readonly FinalText[] = []): readonly FinalText[] {
    return [...this.#texts.values()].flatMap((text) => {
      const { announced } = text;
      if (announced !== null && lengthOf(finals, announced.kind) > 0) text.announced = null;
      return text.announced === null || this.isSentOtherwise(text.announced.kind) ? [] : [text.announced];
    });
  }

  /** What precedes a delta: the announced text, unless the delta begins to repeat it. */
  before(sent: SentText, delta: string): string {
    const { announced } = sent;
    if (announced === null || delta === '') return '';
    sent.announced = null;
    return announced.text.startsWith(delta) ? '' : announced.text;
  }

  /** The rest of a text beyond what was sent, which counts as sent from now on. */
  rest({ kind, index, text, sentUnits }: Omit<FinalText, 'logprobs'>): string {
    const sent = this.count(kind, index);
    if (!sent.isFollowed) return '';
    const rest = (text || (sent.announced?.text ?? '')).slice(sentUnits ?? sent.units - sent.start);
    sent.announced = null;
    sent.units += rest.length;
    return rest;
  }

  /**
   * Whether the rest of a text that is done may have come under another index: another text of this index is done, or an equal one of
   * another index, or there are pieces that no final form has, and together they are not longer than it. The final item decides.
   */
  mayBeElsewhere(final: FinalText): boolean {
    const { kind, index, text } = final;
    const { length } = text;
    const sent = this.count(kind, index);
    const own = sent.units - sent.start;
    const hash = hashOf(text, length);
    const isSame = sent.finalUnits === length && sent.finalHash === hash;
    if (isSame) return false;
    const astray = this.#astray(kind);
    const mayBeSplit = length > own && astray > own && length >= astray;
    const isRepeated = own === 0 && !sent.isAdded && this.#isDone(kind, length, hash);
    if (sent.finalUnits !== null || isRepeated || mayBeSplit) {
      sent.undecided = final;
      return true;
    }
    sent.finalUnits = length;
    sent.finalHash = hash;
    return false;
  }

  /** Whether an equal text is done. */
  #isDone(kind: TextKind, units: number, hash: number): boolean {
    for (const { finalUnits, finalHash } of this.#of(kind))
      if (finalUnits === units && finalHash === hash) return true;
    return false;
  }

  /** The texts that no final item has decided, and of which something is missing by all that came. */
  undecided(): readonly FinalText[] {
    return [...this.#texts.values()].flatMap(({ undecided, isAdded, finalUnits: own }) => {
      if (undecided === null) return [];
      const { kind, text } = undecided;
      const isKnown = this.#isDone(kind, text.length, hashOf(text, text.length));
      const isRepeated = isKnown && (!isAdded || own !== null);
      let units = text.length;
      for (const { finalUnits } of this.#of(kind)) units += finalUnits ?? 0;
      return isRepeated || units <= this.units(kind, true) ? [] : [undecided];
    });
  }

  /** What was sent of a kind beyond the final forms so far. It includes the texts that are not done. */
  #astray(kind: TextKind): number {
    let sum = 0;
    for (const { units, start, finalUnits } of this.#of(kind)) {
      sum += Math.max(0, units - start - (finalUnits ?? 0));
    }
    return sum;
  }

  *#of(kind: TextKind): Generator<SentText> {
    for (const [key, text] of this.#texts) if (key.split(' ', 1)[0] === kind) yield text;
  }

  /** Whether reasoning of the other kind was sent, and none of this one. */
  isSentOtherwise(kind: TextKind): boolean {
    const other = OTHER_REASONING[kind];
    return other !== undefined && this.units(kind, true) === 0 && this.units(other, true) > 0;
  }

  /** Those texts of the final item of whose kind something is missing. */
  missing(texts: readonly FinalText[]): readonly FinalText[] {
    const kinds = [...new Set(texts.map(({ kind }) => kind))];
    return kinds.flatMap((kind) => {
      const isMissing = !this.isSentOtherwise(kind) && lengthOf(texts, kind) > this.units(kind, true);
      return isMissing
        ? this.#inOrder(
            texts.filter((text) => text.kind === kind),
            kind,
          )
        : [];
    });
  }

  /** The texts of a kind. Where a piece came under an index that is not its own, what was sent is the beginning of all of them. */
  #inOrder(texts: readonly FinalText[], kind: TextKind): readonly FinalText[] {
    for (const text of this.#of(kind)) text.finalUnits = 0;
    for (const { index, text } of texts) this.count(kind, index).finalUnits = text.length;
    if (this.#astray(kind) === 0) return texts;
    let left = this.units(kind, true);
    return texts.map((text) => {
      const sentUnits = Math.min(left, text.text.length);
      left -= sentUnits;
      return { ...text, sentUnits };
    });
  }
}

/** Some servers stream reasoning as one kind, and repeat it as the other. */
const OTHER_REASONING: { readonly [K in TextKind]?: TextKind } = { summary: 'thoughts', thoughts: 'summary' };

/** The length of all texts of a kind, in UTF-16 units. */
export function lengthOf(texts: readonly FinalText[], kind: TextKind): number {
  return texts.reduce((sum, one) => sum + (one.kind === kind ? one.text.length : 0), 0);
}

/** All items that are not followed. */
function othersOf(): SentItem {
  const others = new SentItem(() => false);
  others.isPassedAsIs = true;
  return others;
}

/** The items of an output, by `output_index`: some servers change an item's id within the item. */
export class SentItems {
  readonly #items = new Map<unknown, SentItem>();
  /** Counts what comes of the items that are not followed. */
  readonly #others = othersOf();
  readonly #ids = new Set<string>();
  /** The index of each id that came with one. */
  readonly #indexes = new Map<string, number>();
  #followed = 0;

  /**
   * The key of an event's item. Some servers send the index with some events of an item only: the others have its id.
   * @param isNew the item begins with the event
   * @returns its index, or its id if no event has an index for it
   */
  keyOf(event: EventItem, isNew = false): unknown {
    const key = itemKey(event);
    if (typeof key === 'string') return this.#indexes.get(key) ?? key;
    const id = readText(event.item_id) ?? readText(objectOf(event.item).id);
    if (typeof key !== 'number' || id === undefined) return key;
    const known = this.#indexes.get(id);
    if (known === key) return key;
    // An index that no item has.
    if (!isNew && known !== undefined && this.#isOpen(known) && this.#items.get(key)?.hasBegun !== true)
      return known;
    if (!this.#indexes.has(id) && this.#indexes.size >= MAX_FOLLOWED) return key;
    this.#indexes.set(id, key);
    // What came with its id alone is its.
    const item = this.#items.get(id);
    if (item !== undefined && !this.#items.has(key)) {
      this.#items.set(key, item);
      this.#items.delete(id);
    }
    return key;
  }

  /** The item at an index, or with an id if the server sends no index. */
  at(key: unknown): SentItem {
    const item = this.#items.get(key);
    if (item !== undefined) return item;
    if (!this.#isFollowed()) return this.#others;
    const made = new SentItem(() => this.#isFollowed());
    this.#items.set(key, made);
    return made;
  }

  #isOpen(key: unknown): boolean {
    const item = this.#items.get(key);
    return item?.hasBegun === true && !item.isDone;
  }

  /** All items. */
  get all(): Iterable<SentItem> {
    return this.#items.values();
  }

  /** Whether a finished item with this id came before. */
  isRepeated(id: string): boolean {
    if (this.#ids.has(id)) return true;
    if (this.#isFollowed()) this.#ids.add(id);
    return false;
  }

  #isFollowed(): boolean {
    return ++this.#followed <= MAX_FOLLOWED;
  }

  /** What was sent of one kind. */
  units(kind: TextKind): number {
    let sum = this.#others.units(kind, false);
    for (const item of this.#items.values()) sum += item.units(kind, false);
    return sum;
  }
}

/** What an event says of its item. */
export type EventItem = Readonly<{ output_index?: unknown; item_id?: unknown; item?: unknown }>;

/** The index of an event's item, or its id if the server sends no index. */
export function itemKey({ output_index, item_id, item }: EventItem): unknown {
  return readCount(output_index) ?? readText(item_id) ?? readText(objectOf(item).id);
}

/** The texts of a complete item. */
export function textsOf(item: unknown): FinalText[] {
  const { type, content, summary } = objectOf(item);
  const texts = (parts: unknown, kind: TextKind) =>
    readArray(parts).flatMap((part, index) => partText(part, index, kind) ?? []);
  return type === 'reasoning'
    ? [...texts(content, 'thoughts'), ...texts(summary, 'summary')]
    : texts(content, 'text');
}

/** The text of a complete part, or of the event that has it. */
export function partText(part: unknown, index: number, kind: TextKind): FinalText | null {
  const { refusal, text, logprobs } = objectOf(part);
  const refused = readText(refusal);
  if (refused !== undefined) return { kind: 'refusal', index, text: refused, logprobs: [] };
  const written = readText(text);
  return written === undefined ? null : { kind, index, text: written, logprobs: readArray(logprobs) };
}

/** What was sent of a call's arguments. Only their length and a hash are kept. */
export class SentArguments {
  length = 0;
  /** A client on the passthrough has them in the item's beginning, or in their own last event. */
  isShown = false;
  isDone = false;
  #hash = 0;
  /** The text, while it may be a placeholder. */
  #start = '';
  /** What came with the beginning of the call, and is not sent yet: deltas may repeat it, or continue it. */
  #announced = '';

  announce(text: string): void {
    if (mayBePlaceholder(text)) return;
    this.isShown = true;
    this.#announced = text;
  }

  /** What precedes a delta: the announced arguments, unless the delta begins to repeat them. */
  before(delta: string): string {
    const announced = this.#announced;
    if (announced === '' || delta === '') return '';
    this.#announced = '';
    return announced.startsWith(delta) ? '' : announced;
  }

  add(text: string): void {
    if (this.#isPlaceholder && text.trimStart().startsWith('{')) {
      // The normalizer drops the placeholder.
      this.length = 0;
      this.#hash = 0;
      this.#start = '';
    }
    this.#hash = hashOf(text, text.length, this.#hash);
    this.length += text.length;
    if (this.length <= MAX_PLACEHOLDER_CHARS) this.#start += text;
  }

  get #isPlaceholder(): boolean {
    return this.length <= MAX_PLACEHOLDER_CHARS && mayBePlaceholder(this.#start);
  }

  /** The rest of the complete arguments, which counts as sent from now on. Empty if they are others than those that were sent. */
  rest(text: string): string {
    const final = text || this.#announced;
    this.#announced = '';
    if (this.#isPlaceholder && final.length > this.length && !final.startsWith(this.#start)) {
      this.add(final);
      return final;
    }
    const isExtended = final.length > this.length && hashOf(final, this.length) === this.#hash;
    const rest = isExtended ? final.slice(this.length) : '';
    this.add(rest);
    return rest;
  }
}

/** A hash of the text up to an index, which continues the hash of an earlier text. */
function hashOf(text: string, end: number, before = 0): number {
  let hash = before;
  for (let i = 0; i < end; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash;
}
