/** Turns canonical parts into the chunks of one output: adds what each chunk must have, repairs tool calls, skips empty chunks. */
import type {
  ChatChoice,
  ChatChunk,
  Chunk,
  Delta,
  TextChoice,
  TextChunk,
  ToolCallDelta,
} from '../canonical/chunk.ts';
import { Citations } from '../canonical/citations.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { type FinishMeaning, type FinishReason, finishMeaning } from '../canonical/finish-reason.ts';
import { toChatLogprobs, toTextLogprobs } from '../canonical/logprobs.ts';
import { type ChoicePart, type ChunkPart, EMPTY_CHOICE, hasText } from '../canonical/part.ts';
import { ReasoningStripper } from '../canonical/reasoning-details.ts';
import { toolCallId } from '../canonical/tool-call-id.ts';
import {
  brokenToolCall,
  cutToolCall,
  failedFinish,
  imagesAlone,
  namelessToolCall,
  outputAfterFinish,
} from '../canonical/upstream-error.ts';
import type { CountedUsage, Usage } from '../canonical/usage.ts';
import { flatText, type JsonObject } from '../shared/json.ts';
import { type RawText, TextProgress } from './text-progress.ts';
import { type ToolCallCount, ToolCallRepair } from './tool-calls.ts';
import type { ChunkContext, OwnName } from './types.ts';

interface ChoiceState {
  readonly toolCalls: ToolCallRepair;
  /** Created for the first details that a policy strips. */
  stripper: ReasoningStripper | null;
  /** Created for the first source that the choice cites. */
  citations: Citations | null;
  /** The first delta, which has the role, was sent. */
  isStarted: boolean;
  /** `held`: its finish waits for what follows it. */
  finish: 'none' | 'held' | 'sent';
  /** The last finish word, also of a finish that more output followed. */
  lastFinish: Pick<ChoicePart, 'finishWord' | 'finishMeaning' | 'stopSequence'> | null;
  /** The text of each member, as far as it was sent. */
  readonly sent: { readonly [Member in TextMember]: TextProgress };
  /** The upstream hinted that the output reached its limit. */
  isLimited: boolean;
  /** There was text, or a tool call. */
  hasOutput: boolean;
  /** There was content, a refusal or a tool call. */
  hasAnswer: boolean;
  /** There was an image, which is not passed on. */
  hasImage: boolean;
  /** UTF-16 units of the tokens whose logprobs were sent: the next offset in the legacy form. */
  logprobsLength: number;
}

/** The members of a delta with text. */
const TEXT_MEMBERS = ['content', 'reasoning', 'refusal'] as const;
type TextMember = (typeof TEXT_MEMBERS)[number];

/** Repeated on every chunk once the upstream has sent them. */
interface Labels {
  readonly service_tier: string | undefined;
  readonly system_fingerprint: string | undefined;
}

/** Equal on every chunk of one output. */
interface OutputIdentity {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

/** The state of one output. Each part that is read becomes at most one chunk. */
export class Normalizer {
  readonly #context: ChunkContext;
  readonly #choices = new Map<number, ChoiceState>();
  #identity: OutputIdentity | undefined;
  #id: string | undefined;
  #created: number | undefined;
  #model: string | undefined;
  #labels: Labels = { service_tier: undefined, system_fingerprint: undefined };
  #fault: ApiError | null = null;
  #isFailing = false;
  /** A chunk with a tool call that may have a placeholder, or with a finish: what follows decides. */
  #waiting: Chunk | null = null;
  #isHolding = false;
  /** A finish of the part that is read may be followed by more output. */
  #mayGoOn = false;
  #hasSentUsage = false;
  /** The usage that was reported with the last finish, while it waits. */
  #finishUsage: Usage | null = null;
  /** The provider's index of the choice that has index 0: another one only where one choice was requested. */
  #firstIndex: number | null = null;
  /** The sources of all choices. Created for the first one. */
  #citations: Citations | null = null;
  readonly #citationCount = { citations: 0, chars: 0 };
  /** No further choice begins: the output has ended. */
  #hasEnded = false;
  readonly #toolCallCount: ToolCallCount = { calls: 0, waitingChars: 0, revision: 0 };
  #revision = 0;

  constructor(context: ChunkContext) {
    this.#context = context;
  }

  /** Why the last part fails the output: its finish word means failure, a tool call is cut, or a bound is exceeded. */
  get fault(): ApiError | null {
    return this.#fault;
  }

  /** Changes with all state that later chunks depend on: a finish, a service tier, a fingerprint, a further tool call. */
  get revision(): number {
    return this.#revision + this.#toolCallCount.revision;
  }

  /**
   * The text, or the arguments of a tool call, if a part like this one, which was read last, does nothing but continue it; otherwise
   * null. It is the same until the revision changes.
   */
  textOf({ choices: [choice] }: ChunkPart): RawText | null {
    const state = choice === undefined ? undefined : this.#choices.get(this.#indexOf(choice));
    if (choice === undefined || state === undefined) return null;
    const [call] = choice.toolCalls;
    if (call !== undefined) return state.toolCalls.argumentsOf(call);
    const member = TEXT_MEMBERS.find((name) => choice[name] !== '');
    return member === undefined ? null : state.sent[member];
  }

  /** Whether there was no choice yet. */
  get isEmpty(): boolean {
    return this.#choices.size === 0;
  }

  /** Whether the output is complete: there was a choice, and each has its finish reason, which may wait. */
  get isFinished(): boolean {
    return !this.isEmpty && [...this.#choices.values()].every((choice) => choice.finish !== 'none');
  }

  /** Whether a chunk with a finish waits. */
  get holdsFinish(): boolean {
    return this.#waiting?.choices.some(({ index }) => this.#choices.get(index)?.finish === 'held') === true;
  }

  /**
   * Returns the chunk for a part, or null if the part has nothing new, or if its chunk waits for `takeWaiting`.
   * @param mayGoOn more output may follow a finish: its chunk waits (C8)
   */
  read(received: ChunkPart, mayGoOn = false): Chunk | null {
    const part = this.#indexed(received);
    this.#mayGoOn = mayGoOn;
    this.#id ??= part.id;
    this.#created ??= part.created;
    this.#model ??= part.model;
    this.#setLabels(part);
    this.#collectCitations(part);
    const choices = this.#updates(part);
    this.#meter(part, choices);
    this.#isFailing = part.error !== null;
    this.#isHolding = false;
    const chunk = this.#writeLast(choices);
    if (this.#waiting !== null && chunk === null) return this.#readBehindFinish(part);
    if (!this.#isHolding || chunk === null) return chunk;
    this.#waiting = chunk;
    this.#finishUsage = this.#reportedUsage();
    this.#revision++;
    return null;
  }

  /** A part without output while a finish waits. A further finish word waits as well, and usage is the last of an output. */
  #readBehindFinish({ choices, usage, error }: ChunkPart): Chunk | null {
    const isLast = usage !== null && error === null && choices.every(({ finishWord }) => finishWord === null);
    // Usage of its own is the end, also where fewer choices came than were requested.
    return isLast ? this.takeWaiting(null, choices.length === 0 ? 'complete' : undefined) : null;
  }

  /**
   * Returns the chunk that waits because of a tool call's placeholder or of a finish, or null. Call it before anything later is written.
   * @param next the next part, which may replace the placeholder, or follow the finish with more output; null if there is none
   * @param end why no part follows any more. `failed`: the output gets no finish. Absent: parts may follow
   */
  takeWaiting(next: ChunkPart | null, end?: 'complete' | 'failed'): Chunk | null {
    this.#hasEnded ||= end === 'complete';
    const isFailed = end === 'failed';
    const waiting = this.#waiting;
    if (waiting === null) return null;
    const following = next === null ? null : this.#indexed(next);
    if (following !== null) this.#collectCitations(following);
    const parts = following === null ? [] : this.#updates(following);
    const holdsFinish = this.holdsFinish;
    if (holdsFinish && next !== null && parts.every((part) => this.#isQuiet(part))) return null;
    this.#waiting = null;
    this.#mayGoOn = false;
    this.#revision++;
    const isChat = waiting.object === 'chat.completion.chunk';
    const chunk = isChat
      ? { ...waiting, choices: waiting.choices.flatMap((one) => this.#decideChat(one, parts, isFailed)) }
      : { ...waiting, choices: waiting.choices.flatMap((one) => this.#decideText(one, parts, isFailed)) };
    const usage = holdsFinish ? this.#takeFinishUsage() : null;
    if (chunk.choices.length === 0) return null;
    return usage === null ? chunk : this.#withUsage(chunk, usage);
  }

  #decideChat(choice: ChatChoice, next: readonly ChoicePart[], isFailed: boolean): ChatChoice[] {
    const { index } = choice;
    const state = this.#state(index);
    const parts = next.filter((part) => part.index === index);
    const isHeld = state.finish === 'held';
    const dropped = state.toolCalls.decidePlaceholders(parts.flatMap((part) => part.toolCalls));
    const [rest] = withoutPlaceholders(choice, dropped);
    if (!isHeld) return rest === undefined ? [] : [rest];
    const { logprobs, delta } = rest ?? { delta: {}, logprobs: null };
    const end = this.#endHeld(state, parts, isFailed);
    if (end === null)
      return Object.keys(delta).length === 0 && logprobs === null ? [] : [{ ...choice, delta, logprobs }];
    const ended = lastDelta(delta, this.#annotations(state), end.fragments);
    const finished = { ...choice, delta: ended, logprobs, finish_reason: end.reason };
    return [{ ...finished, ...stopSequence(state.lastFinish ?? {}) }];
  }

  #decideText(choice: TextChoice, next: readonly ChoicePart[], isFailed: boolean): TextChoice[] {
    const state = this.#state(choice.index);
    if (state.finish !== 'held') return [choice];
    const parts = next.filter(({ index }) => index === choice.index);
    const end = this.#endHeld(state, parts, isFailed);
    if (end !== null) return [{ ...choice, finish_reason: end.reason }];
    return choice.text === '' && choice.logprobs === null ? [] : [choice];
  }

  /** Ends a choice whose finish waits, or returns null: more output follows, or the output has failed. */
  #endHeld(state: ChoiceState, next: readonly ChoicePart[], isFailed: boolean): HeldEnd | null {
    state.finish = 'none';
    if (isFailed) return null;
    if (next.some((part) => isUpdate(part))) {
      this.#context.meter.resumed();
      this.#finishUsage = null;
      return null;
    }
    const part = { ...EMPTY_CHOICE, ...state.lastFinish };
    const fragments = this.#endCalls(part, state);
    const reason = this.#finish(part, state);
    return reason === null ? null : { fragments, reason };
  }

  /** Whether a part has nothing that is sent, but perhaps one more finish word of a choice whose finish waits. */
  #isQuiet(part: ChoicePart): boolean {
    const state = this.#choices.get(part.index);
    if (state === undefined || !state.isStarted || isUpdate(part)) return false;
    return part.finishWord === null || state.finish !== 'none';
  }

  /** At `[DONE]`: returns one chunk that finishes every open choice, or null if there is none. The last finish word counts. */
  finishOpenChoices(): Chunk | null {
    if (this.isFinished) return null;
    return this.#finishAll([...this.#choices.keys()], (index) => {
      return this.#choices.get(index)?.lastFinish ?? { finishWord: 'stop' };
    });
  }

  /** Returns one chunk that ends every choice that is not finished as one that has reached its limit, or null if there is none. */
  limitOpenChoices(): Chunk | null {
    const requested = Array.from({ length: this.#context.choices }, (_, index) => index);
    return this.#finishAll([...new Set([...this.#choices.keys(), ...requested])], () => ({
      finishWord: 'length',
    }));
  }

  #finishAll(
    indexes: readonly number[],
    finishOf: (index: number) => NonNullable<ChoiceState['lastFinish']>,
  ): Chunk | null {
    this.#mayGoOn = false;
    this.#isHolding = false;
    this.#hasEnded = true;
    const open = indexes
      .filter((index) => (this.#choices.get(index)?.finish ?? 'none') === 'none')
      .sort((a, b) => a - b);
    return open.length === 0
      ? null
      : this.#writeLast(open.map((index) => ({ ...EMPTY_CHOICE, index, ...finishOf(index) })));
  }

  /** Returns the usage chunk of an output that has ended, or null if the client gets none. */
  usageChunk(): Chunk | null {
    const { usageAt, shape } = this.#context;
    const isLate = usageAt === 'wait_or_end' && !this.#hasSentUsage;
    if (usageAt !== 'end' && !isLate) return null;
    const { usage, estimated } = this.#countUsage();
    if (isLate && estimated) return null;
    return this.#withUsage(shape === 'chat' ? this.#chatChunk([]) : this.#textChunk([]), usage);
  }

  /** Calls `#write`. Adds usage to the chunk of the last finish if it belongs there and was reported by then (U2). */
  #writeLast(parts: readonly ChoicePart[]): Chunk | null {
    const chunk = this.#write(parts);
    const usage = chunk === null || this.#isHolding ? null : this.#usageOfFinish();
    if (chunk === null || usage === null) return chunk;
    this.#hasSentUsage = true;
    return this.#withUsage(chunk, usage);
  }

  /** The usage for the chunk of the last finish, if it was reported. */
  #usageOfFinish(): Usage | null {
    return this.#isLastFinish ? this.#reportedUsage() : null;
  }

  /** Whether no choice is open. Of the requested ones fewer may have come. */
  get #isLastFinish(): boolean {
    return this.isFinished && (this.#hasEnded || this.#choices.size >= this.#context.choices);
  }

  /** The usage that a finish may have, if it was reported. */
  #reportedUsage(): Usage | null {
    const { usageAt } = this.#context;
    if (usageAt === 'end' || usageAt === 'nowhere' || this.#hasSentUsage) return null;
    const { usage, estimated } = this.#countUsage();
    return estimated ? null : usage;
  }

  /** The usage for the chunk of a finish that has waited: `finish` excludes what was reported after it. */
  #takeFinishUsage(): Usage | null {
    const usage = this.#context.usageAt === 'finish' ? this.#finishUsage : this.#reportedUsage();
    this.#finishUsage = null;
    if (usage === null || !this.#isLastFinish) return null;
    this.#hasSentUsage = true;
    return usage;
  }

  #withUsage(chunk: Chunk, usage: Usage): Chunk {
    const isChat = chunk.object === 'chat.completion.chunk';
    return isChat && this.#names('x_groq.usage')
      ? { ...chunk, usage, x_groq: { usage } }
      : { ...chunk, usage };
  }

  /** Whether the client gets the provider's own name, too. */
  #names(name: OwnName): boolean {
    return this.#context.ownNames?.includes(name) === true;
  }

  /** The meter's usage, with the cost if the request has `usage.include`. */
  #countUsage(): CountedUsage {
    const counted = this.#context.meter.countUsage();
    const cost = this.#context.cost?.() ?? null;
    const usage = cost === null ? counted.usage : { ...counted.usage, cost };
    const cached = usage.prompt_tokens_details?.cached_tokens;
    if (cached === undefined || !this.#names('usage.prompt_cache_hit_tokens')) return { ...counted, usage };
    return { ...counted, usage: { ...usage, prompt_cache_hit_tokens: cached } };
  }

  #setLabels({ serviceTier, systemFingerprint }: ChunkPart): void {
    const service_tier = serviceTier ?? this.#labels.service_tier;
    const system_fingerprint = systemFingerprint ?? this.#labels.system_fingerprint;
    if (service_tier === this.#labels.service_tier && system_fingerprint === this.#labels.system_fingerprint)
      return;
    this.#labels = { service_tier, system_fingerprint };
    this.#revision++;
  }

  /**
   * Keeps what a part cites until the finish. A list in more than one delta would be lost: openai-node 7.55 keeps the last one, and
   * openai-python fails at the second (`accumulate_delta`).
   */
  #collectCitations({ choices, sources }: ChunkPart): void {
    if (sources !== undefined) {
      this.#citations ??= new Citations(this.#citationCount);
      this.#citations.addSources(sources);
    }
    for (const choice of choices) {
      if (isCiting(choice)) this.#citationsOf(choice);
      if (choice.whole !== undefined && isCiting(choice.whole)) this.#citationsOf(choice.whole);
    }
  }

  #citationsOf({ index, annotations, sources }: ChoicePart): void {
    const state = this.#state(index);
    state.citations ??= new Citations(this.#citationCount);
    if (annotations !== undefined) state.citations.add(annotations);
    if (sources !== undefined) state.citations.addSources(sources);
  }

  /** What a choice cites, for its last delta. */
  #annotations({ citations }: ChoiceState): readonly JsonObject[] {
    const all = [citations, this.#citations].filter((one) => one !== null);
    return all.length === 0 ? [] : Citations.join(all);
  }

  /** The part with index 0 for the only choice that was requested: some servers count from 1, and Messages and Responses have no index. */
  #indexed(part: ChunkPart): ChunkPart {
    const [first] = part.choices;
    if (this.#firstIndex === 0 || first === undefined) return part;
    const isAlone = this.#context.choices === 1 && part.choices.every(({ index }) => index === first.index);
    this.#firstIndex ??= isAlone ? first.index : 0;
    if (this.#firstIndex === 0) return part;
    return {
      ...part,
      choices: part.choices.map((choice) => {
        const { whole } = choice;
        const index = this.#indexOf(choice);
        return { ...choice, index, ...(whole === undefined ? {} : { whole: { ...whole, index } }) };
      }),
    };
  }

  /** The index of a choice for the client. One with index 0 that comes later gets the free one. */
  #indexOf({ index }: ChoicePart): number {
    const first = this.#firstIndex ?? 0;
    if (index === first) return 0;
    return index === 0 ? first : index;
  }

  /** The updates of a part as they count. */
  #updates({ choices }: ChunkPart): readonly ChoicePart[] {
    for (const { whole, index } of choices) {
      if (whole === undefined && (this.#choices.get(index)?.lastFinish ?? null) === null) continue;
      return choices.map((choice) => this.#withoutRepeats(this.#withOutput(choice)));
    }
    return choices;
  }

  /** The update without what repeats all that was sent, which some servers send after a finish. */
  #withoutRepeats(choice: ChoicePart): ChoicePart {
    const state = this.#choices.get(choice.index);
    if (state === undefined || state.lastFinish === null) return choice;
    const texts: Partial<Record<TextMember, string>> = {};
    for (const member of TEXT_MEMBERS) {
      const { [member]: sent } = state.sent;
      // A text of one piece may be followed by the same piece.
      if (choice[member] !== '' && sent.pieces > 1 && sent.equals(choice[member])) texts[member] = '';
    }
    const toolCalls = choice.toolCalls.filter((call) => !state.toolCalls.isRepeated(call));
    return { ...choice, ...texts, toolCalls };
  }

  /** The update, or the whole output where the choice has had none. */
  #withOutput(choice: ChoicePart): ChoicePart {
    const { whole } = choice;
    if (whole === undefined || hasText(choice)) return choice;
    return this.#choices.get(choice.index)?.hasOutput === true ? choice : whole;
  }

  /** Meters the part before a policy removes any of it (C6). What follows a finish that was sent does not count. */
  #meter(part: ChunkPart, choices: readonly ChoicePart[]): void {
    const { meter } = this.#context;
    if (part.serviceTier !== undefined) meter.serviceTier(part.serviceTier);
    for (const choice of choices) {
      const { finish = 'none' } = this.#choices.get(choice.index) ?? {};
      if (finish === 'sent') continue;
      meter.delta(choice);
      const { finishWord, isAnnounced } = choice;
      if (finishWord === null || isAnnounced) continue;
      if (finish === 'held') meter.resumed();
      meter.finish(finishWord, meaningOf(choice, finishWord));
    }
    if (part.searches !== undefined) meter.searches(part.searches);
    if (part.usage !== null) meter.usage(part.usage);
    if (part.removedReasoning !== undefined) meter.removedReasoning(part.removedReasoning);
  }

  #write(parts: readonly ChoicePart[]): Chunk | null {
    return this.#context.shape === 'chat' ? this.#writeChat(parts) : this.#writeText(parts);
  }

  #writeChat(parts: readonly ChoicePart[]): Chunk | null {
    const choices = this.#writeOpenChoices(parts, (part, state) => this.#chatChoice(part, state));
    return choices.length === 0 ? null : this.#chatChunk(choices);
  }

  #writeText(parts: readonly ChoicePart[]): Chunk | null {
    const choices = this.#writeOpenChoices(parts, (part, state) => this.#textChoice(part, state));
    return choices.length === 0 ? null : this.#textChunk(choices);
  }

  #writeOpenChoices<Choice>(
    parts: readonly ChoicePart[],
    write: (part: ChoicePart, state: ChoiceState) => Choice | null,
  ): Choice[] {
    const choices: Choice[] = [];
    for (const part of parts) {
      const state = this.#state(part.index);
      state.hasOutput ||= hasText(part);
      state.hasAnswer ||= part.content !== '' || part.refusal !== '' || part.toolCalls.length > 0;
      state.hasImage ||= part.hasImage === true;
      if (state.finish === 'sent' && hasText(part)) this.#fault ??= outputAfterFinish(this.#context.upstream);
      const { finishWord, finishMeaning } = part;
      if (finishWord !== null && part.isAnnounced !== true)
        state.lastFinish = { finishWord, finishMeaning, ...sequenceOf(part) };
      if (state.finish !== 'none') continue;
      state.sent.content.push(part.content);
      state.sent.reasoning.push(part.reasoning);
      state.sent.refusal.push(part.refusal);
      const choice = write(part, state);
      if (choice !== null) choices.push(choice);
    }
    return choices;
  }

  #state(index: number): ChoiceState {
    const choice = this.#choices.get(index);
    if (choice !== undefined) return choice;
    const makeId = () => {
      this.#pin();
      return toolCallId(this.#context.random());
    };
    const toolCalls = new ToolCallRepair(makeId, this.#toolCallCount, this.#context);
    const state: ChoiceState = {
      toolCalls,
      stripper: null,
      citations: null,
      isStarted: false,
      finish: 'none',
      lastFinish: null,
      sent: { content: new TextProgress(), reasoning: new TextProgress(), refusal: new TextProgress() },
      isLimited: false,
      hasOutput: false,
      hasAnswer: false,
      hasImage: false,
      logprobsLength: 0,
    };
    this.#choices.set(index, state);
    return state;
  }

  #chatChoice(part: ChoicePart, state: ChoiceState): ChatChoice | null {
    const toolCalls = this.#toolCalls(part, state);
    const passesReasoning = this.#context.reasoning === 'pass';
    const reasoning = passesReasoning ? part.reasoning : '';
    const details = passesReasoning ? part.reasoningDetails : stripDetails(part.reasoningDetails, state);
    const logprobs = part.logprobs === null ? null : toChatLogprobs(part.logprobs);
    const { beginsBlock, citations } = part;
    const finish_reason = this.#finish(part, state);
    const hasUpdate =
      part.content !== '' ||
      reasoning !== '' ||
      part.refusal !== '' ||
      toolCalls.length > 0 ||
      details.length > 0 ||
      logprobs !== null ||
      beginsBlock === true ||
      citations !== undefined ||
      finish_reason !== null ||
      state.finish === 'held';
    const isFirst = !state.isStarted && (hasUpdate || part.hasRole);
    if (!hasUpdate && !isFirst) return null;
    const delta: Delta = {};
    if (isFirst) delta.role = 'assistant';
    if (part.content !== '' || (isFirst && part.hasContent)) delta.content = part.content;
    if (reasoning !== '') delta.reasoning_content = reasoning;
    if (reasoning !== '' && this.#names('delta.reasoning')) delta.reasoning = reasoning;
    if (part.refusal !== '') delta.refusal = part.refusal;
    const annotations = finish_reason === null ? [] : this.#annotations(state);
    if (annotations.length > 0) delta.annotations = annotations;
    if (beginsBlock === true) delta.begins_block = true;
    if (citations !== undefined) delta.citations = citations;
    if (toolCalls.length > 0) delta.tool_calls = toolCalls;
    if (details.length > 0) delta.reasoning_details = details;
    state.isStarted = true;
    const choice = { index: part.index, delta, logprobs, finish_reason };
    return finish_reason === null ? choice : { ...choice, ...stopSequence(part) };
  }

  #textChoice(part: ChoicePart, state: ChoiceState): TextChoice | null {
    this.#toolCalls(part, state);
    const logprobs = part.logprobs === null ? null : toTextLogprobs(part.logprobs, state.logprobsLength);
    for (const token of logprobs?.tokens ?? []) state.logprobsLength += token.length;
    const finish_reason = this.#finish(part, state);
    const isLast = finish_reason !== null || state.finish === 'held';
    if (part.content === '' && logprobs === null && !isLast) return null;
    state.isStarted = true;
    return { index: part.index, text: part.content, logprobs, finish_reason };
  }

  #toolCalls(part: ChoicePart, state: ChoiceState): ToolCallDelta[] {
    const { toolCalls } = state;
    const fragments = part.toolCalls.flatMap((call) => toolCalls.read(call));
    if (part.finishWord !== null && !this.#mayWait(part)) fragments.push(...this.#endCalls(part, state));
    this.#isHolding ||= toolCalls.isHolding;
    const { excess } = toolCalls;
    const { name } = this.#context.upstream;
    if (excess !== null) this.#fault = apiError('upstream_invalid', `${name} sent more than ${excess}`);
    return fragments;
  }

  /** Nothing follows a finish that does not wait: the fragments that end calls, and no placeholder is replaced. */
  #endCalls(part: ChoicePart, { toolCalls }: ChoiceState): readonly ToolCallDelta[] {
    if (part.finishWord === null) return [];
    const isEnd = isComplete(meaningOf(part, part.finishWord));
    const fragments = isEnd ? toolCalls.endArguments() : toolCalls.startWaiting();
    toolCalls.decidePlaceholders([]);
    return fragments;
  }

  /** Whether the part's finish waits for what follows it. One that means a failure does not. */
  #mayWait(part: ChoicePart): boolean {
    if (!this.#mayGoOn || part.finishWord === null || part.isAnnounced === true) return false;
    return meaningOf(part, part.finishWord) !== 'failed';
  }

  #finish(part: ChoicePart, state: ChoiceState): FinishReason | null {
    state.isLimited ||= part.isLimited === true;
    // A finish word that comes together with an error does not count.
    if (part.finishWord === null || this.#isFailing || this.#fault !== null) return null;
    if (this.#mayWait(part)) {
      state.finish = 'held';
      this.#isHolding = true;
      return null;
    }
    const reason = this.#judge(meaningOf(part, part.finishWord), part.finishWord, state);
    if (typeof reason === 'object') this.#fault = reason;
    if (typeof reason === 'object' || part.isAnnounced === true) return null;
    state.finish = 'sent';
    this.#revision++;
    return reason;
  }

  /** The finish reason by what the choice has, whatever its finish word says; or why it is no finish. */
  #judge(
    meaning: FinishMeaning,
    word: string,
    { toolCalls, isLimited, hasImage, hasAnswer }: ChoiceState,
  ): FinishReason | ApiError {
    const { upstream } = this.#context;
    if (meaning === 'failed') return failedFinish(upstream, word);
    if (meaning === 'length' || meaning === 'content_filter') return meaning;
    if (toolCalls.isNameless) return namelessToolCall(upstream);
    if (hasImage && !hasAnswer) return imagesAlone(upstream);
    if (isLimited && (toolCalls.isCut || toolCalls.isEmpty || toolCalls.hasInputs)) return 'length';
    if (toolCalls.isCut) return cutToolCall(upstream);
    if (toolCalls.isBroken) return brokenToolCall(upstream);
    return toolCalls.isEmpty ? meaning : 'tool_calls';
  }

  #chatChunk(choices: readonly ChatChoice[]): ChatChunk {
    const { id, created, model } = this.#pin();
    const { service_tier, system_fingerprint } = this.#labels;
    return {
      id,
      object: 'chat.completion.chunk',
      created,
      model,
      service_tier,
      system_fingerprint,
      choices,
    };
  }

  #textChunk(choices: readonly TextChoice[]): TextChunk {
    const { id, created, model } = this.#pin();
    const { system_fingerprint } = this.#labels;
    return { id, object: 'text_completion', created, model, system_fingerprint, choices };
  }

  #pin(): OutputIdentity {
    const { shape, provider, model, now, random } = this.#context;
    this.#identity ??= {
      id: this.#id ?? flatText(shape === 'chat' ? 'chatcmpl' : 'cmpl', '-', random()),
      created: this.#created ?? now(),
      model: flatText(provider, '/', this.#model ?? model),
    };
    return this.#identity;
  }
}

function sequenceOf({ stopSequence }: ChoicePart): Pick<ChoicePart, 'stopSequence'> {
  return stopSequence === undefined ? {} : { stopSequence };
}

function stopSequence({ stopSequence }: Pick<ChoicePart, 'stopSequence'>): Pick<ChatChoice, 'stop_sequence'> {
  return stopSequence === undefined ? {} : { stop_sequence: stopSequence };
}

function isCiting({ annotations, sources }: ChoicePart): boolean {
  return annotations !== undefined || sources !== undefined;
}

/** The last delta of a choice, whose finish has waited, in the order of its keys (C4). */
function lastDelta(
  { tool_calls = [], reasoning_details, ...texts }: Delta,
  annotations: readonly JsonObject[],
  fragments: readonly ToolCallDelta[],
): Delta {
  const calls = [...tool_calls, ...fragments];
  return {
    ...texts,
    ...(annotations.length === 0 ? {} : { annotations }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(reasoning_details === undefined ? {} : { reasoning_details }),
  };
}

interface HeldEnd {
  readonly fragments: readonly ToolCallDelta[];
  readonly reason: FinishReason;
}

/** Whether the part has something for the client besides a finish. */
function isUpdate(part: ChoicePart): boolean {
  return hasText(part) || part.reasoningDetails.length > 0 || part.logprobs !== null;
}

function meaningOf(choice: ChoicePart, word: string): FinishMeaning {
  return choice.finishMeaning ?? finishMeaning(word);
}

function isComplete(meaning: FinishMeaning): boolean {
  return meaning === 'stop' || meaning === 'tool_calls';
}

/** The choice without the arguments of these calls. An empty list if nothing is left. */
function withoutPlaceholders(choice: ChatChoice, indexes: ReadonlySet<number>): ChatChoice[] {
  if (indexes.size === 0) return [choice];
  const { tool_calls = [], ...rest } = choice.delta;
  const calls = tool_calls.flatMap((call): ToolCallDelta[] => {
    if (!indexes.has(call.index)) return [call];
    if ('id' in call) return [{ ...call, function: { ...call.function, arguments: '' } }];
    return call.extra_content === undefined ? [] : [{ ...call, function: { arguments: '' } }];
  });
  const delta = calls.length === 0 ? rest : { ...choice.delta, tool_calls: calls };
  return Object.keys(delta).length === 0 && choice.logprobs === null ? [] : [{ ...choice, delta }];
}

function stripDetails(details: readonly JsonObject[], state: ChoiceState): readonly JsonObject[] {
  if (details.length === 0) return details;
  state.stripper ??= new ReasoningStripper();
  return state.stripper.strip(details);
}
