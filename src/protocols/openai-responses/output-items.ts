/** The items of a Responses answer, in the order of their first news: one is open at a time, and what comes between waits for it (I4). */
import type { ChatChoice, ToolCallDelta } from '../../canonical/chunk.ts';
import type { FinishReason } from '../../canonical/finish-reason.ts';
import { type ChatLogprobs, sizeOfLogprobs } from '../../canonical/logprobs.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import type { ReasoningState } from '../shared/reasoning-state.ts';
import { CallItem } from './call-item.ts';
import type { EventSink } from './client-events.ts';
import type { OpenText } from './item.ts';
import { MessageItem } from './message-item.ts';
import { ReasoningItem } from './reasoning-item.ts';
import type { ResponsesSession } from './request-session.ts';

/** OpenAI's bound on a call's id: https://platform.openai.com/docs/api-reference/responses (2026-11-22). */
const MAX_CALL_ID_CHARS = 64;

/** What an item or a part of one costs beside its text, in UTF-16 units, about. */
const ENTRY_CHARS = 256;

/** What a delta says of one item. */
type News =
  | { readonly of: 'reasoning'; readonly text: string }
  | { readonly of: 'text'; readonly text: string; readonly logprobs: ChatLogprobs | null }
  | { readonly of: 'refusal'; readonly text: string }
  | { readonly of: 'call'; readonly call: Call; readonly text: string };

/** A call, under the id that the client gets. */
interface Call {
  readonly id: string;
  readonly name: string;
}

type Open =
  | { readonly of: 'reasoning'; readonly item: ReasoningItem }
  | { readonly of: 'message'; readonly item: MessageItem }
  | { readonly of: 'call'; readonly call: Call; readonly item: CallItem };

export interface OutputOptions {
  /** What is the same in the ids of the items. */
  readonly base: string;
  readonly session: ResponsesSession;
  /** The id of the provider whose answer it is. */
  readonly maker: string;
  readonly events: EventSink | null;
}

export class OutputItems {
  readonly #options: OutputOptions;
  /** Items that are closed, as JSON. */
  readonly #items: string[] = [];
  readonly #calls = new Map<number, Call>();
  readonly #callIds = new Set<string>();
  /** Calls whose item was opened. */
  readonly #begun = new Set<string>();
  #open: Open | null = null;
  /** What comes while a call is open that is not whole: the news of one item in one list. */
  readonly #waiting: News[][] = [];
  readonly #waitingCalls = new Map<Call, News[]>();
  /** What the upstream wants back, and no open item can have. */
  #tokens: ReasoningState[] = [];
  /** What the last news was of: any other begins an item or a part. */
  #last: News['of'] | null = null;
  /** What is held, in UTF-16 units, about. */
  heldChars = 0;
  /** Changes with the place that texts go to. */
  revision = 0;

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  /** Where a piece of text goes that needs no other event, or null. */
  get openText(): OpenText | null {
    return this.#open?.item.openText ?? null;
  }

  /** The items as JSON, without brackets; one that is still open as it stands. */
  get json(): string {
    return [...this.#items, ...(this.#open === null ? [] : [this.#open.item.snapshot()])].join(',');
  }

  /** An update of the answer's one choice. */
  add({ delta, logprobs, finish_reason }: ChatChoice): void {
    const place = this.openText;
    this.heldChars += sizeOfLogprobs(logprobs);
    const { reasoning_content = '', reasoning_details = [], content = '', refusal = '' } = delta;
    if (reasoning_content !== '') this.#take({ of: 'reasoning', text: reasoning_content });
    for (const detail of reasoning_details) this.#addToken({ detail });
    // Those of a call's tokens have no place.
    const hasLogprobs = logprobs?.content != null && this.#open?.of === 'message';
    if (content !== '' || hasLogprobs) this.#take({ of: 'text', text: content, logprobs });
    if (refusal !== '') this.#take({ of: 'refusal', text: refusal });
    for (const fragment of delta.tool_calls ?? []) this.#addCall(fragment);
    if (finish_reason !== null) this.#finish(finish_reason);
    if (this.openText !== place) this.revision++;
  }

  #addCall(fragment: ToolCallDelta): void {
    if ('id' in fragment) this.#calls.set(fragment.index, this.#callOf(fragment.id, fragment.function.name));
    const call = this.#calls.get(fragment.index);
    if (call === undefined) return;
    const { extra_content } = fragment;
    if (extra_content !== undefined) this.#addToken({ call: call.id, extra_content });
    this.#take({ of: 'call', call, text: fragment.function.arguments });
  }

  /** With an id that clients take: each of its own, and no longer than OpenAI's. */
  #callOf(id: string, name: string): Call {
    const isFit = id.length <= MAX_CALL_ID_CHARS && !this.#callIds.has(id);
    const own = isFit ? id : toolCallId(`${id} ${this.#callIds.size}`);
    this.#callIds.add(own);
    return { id: own, name };
  }

  #addToken(token: ReasoningState): void {
    this.heldChars += ENTRY_CHARS + JSON.stringify(token).length;
    const open = this.#open;
    if (open?.of === 'reasoning' && !open.item.isSealed) open.item.addToken(token);
    else this.#tokens.push(token);
  }

  #take(news: News): void {
    this.heldChars += news.text.length + (news.of === this.#last ? 0 : ENTRY_CHARS);
    this.#last = news.of;
    if (this.#isOpenFor(news)) {
      this.#tell(news);
      this.#goOn();
    } else if (this.#isBlocked) this.#wait(news);
    else this.#begin(news);
  }

  /** The open call has not come to its end: closed now, it would be cut. */
  get #isBlocked(): boolean {
    return this.#open?.of === 'call' && !this.#open.item.isWhole;
  }

  /** Whether the open item is the one that the news is of. */
  #isOpenFor(news: News): boolean {
    const open = this.#open;
    if (open === null) return false;
    if (open.of === 'call') return news.of === 'call' && news.call === open.call;
    if (open.of === 'reasoning') return news.of === 'reasoning' && !open.item.isSealed;
    return news.of === 'text' || news.of === 'refusal';
  }

  #wait(news: News): void {
    const found = this.#waitingFor(news);
    if (found !== undefined) return void found.push(...joined(found.pop(), news));
    const entry = [news];
    this.#waiting.push(entry);
    if (news.of === 'call') this.#waitingCalls.set(news.call, entry);
  }

  /** A call's news find it wherever it waits; text behind a call is another item than the text before it. */
  #waitingFor(news: News): News[] | undefined {
    if (news.of === 'call') return this.#waitingCalls.get(news.call);
    const last = this.#waiting.at(-1);
    return last?.[0]?.of === news.of ? last : undefined;
  }

  /** Those that waited have their turn, as far as nothing before them is unfinished. */
  #goOn(): void {
    while (this.#waiting.length > 0 && !this.#isBlocked) this.#beginWaiting();
  }

  #beginWaiting(): void {
    for (const news of this.#waiting.shift() ?? []) {
      if (news.of === 'call') this.#waitingCalls.delete(news.call);
      if (this.#isOpenFor(news)) this.#tell(news);
      else this.#begin(news);
    }
  }

  /** Closes the open item, and opens the one that the news is of. */
  #begin(news: News): void {
    // What comes behind the end of a call that was closed is no part of its arguments.
    if (news.of === 'call' && this.#begun.has(news.call.id)) return;
    this.#close(false);
    this.#flushTokens();
    this.#open = this.#make(news);
    this.#tell(news);
  }

  #make(news: News): Open {
    const { base, session, events } = this.#options;
    const place = { base, index: this.#items.length };
    if (news.of === 'reasoning') return { of: 'reasoning', item: this.#makeReasoning() };
    if (news.of !== 'call') return { of: 'message', item: new MessageItem(place, events) };
    const { call } = news;
    this.#begun.add(call.id);
    const origin = session.tools.get(call.name) ?? {
      kind: 'function',
      name: call.name,
      namespace: undefined,
    };
    return { of: 'call', call, item: new CallItem(place, call.id, origin, events) };
  }

  #makeReasoning(): ReasoningItem {
    const { base, session, maker, events } = this.#options;
    const place = { base, index: this.#items.length };
    return new ReasoningItem(place, { maker, isAlwaysEncrypted: session.wantsEncrypted }, events);
  }

  #tell(news: News): void {
    const open = this.#open;
    if (open?.of === 'reasoning') open.item.addText(news.text);
    else if (open?.of === 'call') open.item.addArguments(news.text);
    else if (news.of === 'refusal') open?.item.addRefusal(news.text);
    else open?.item.addText(news.text, news.of === 'text' ? news.logprobs : null);
  }

  #close(isCut: boolean): void {
    const open = this.#open;
    if (open === null) return;
    const json = open.item.close(isCut);
    this.#options.events?.event('output_item.done', `"output_index":${this.#items.length},"item":${json}`);
    this.#items.push(json);
    this.#open = null;
  }

  /** What belongs to no text, or to a call, is reasoning of its own. */
  #flushTokens(): void {
    if (this.#tokens.length === 0) return;
    const item = this.#makeReasoning();
    for (const token of this.#tokens) item.addToken(token);
    this.#tokens = [];
    this.#open = { of: 'reasoning', item };
    this.#close(false);
  }

  #finish(reason: FinishReason): void {
    const isCut = reason === 'length' || reason === 'content_filter';
    while (this.#waiting.length > 0) {
      this.#close(isCut);
      this.#beginWaiting();
    }
    this.#close(isCut);
    this.#flushTokens();
  }
}

/** Two pieces of what waits as one, where nothing stands beside their texts: an entry for each would cost more than they do. */
function joined(last: News | undefined, next: News): News[] {
  if (last === undefined) return [next];
  const isBare = [last, next].every((news) => news.of !== 'text' || news.logprobs === null);
  return isBare ? [{ ...last, text: last.text + next.text }] : [last, next];
}
