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
import { type ApiError, apiError } from '../canonical/error.ts';
import { type FinishMeaning, type FinishReason, finishMeaning } from '../canonical/finish-reason.ts';
import { toChatLogprobs, toTextLogprobs } from '../canonical/logprobs.ts';
import { type ChoicePart, type ChunkPart, EMPTY_CHOICE, hasText } from '../canonical/part.ts';
import { ReasoningStripper } from '../canonical/reasoning-details.ts';
import { toolCallId } from '../canonical/tool-call-id.ts';
import { brokenToolCall, cutToolCall, failedFinish, namelessToolCall } from '../canonical/upstream-error.ts';
import type { CountedUsage, Usage } from '../canonical/usage.ts';
import type { JsonObject } from '../shared/json.ts';
import type { JsonProgress } from '../shared/json-progress.ts';
import { type ToolCallCount, ToolCallRepair } from './tool-calls.ts';
import type { ChunkContext, OwnName } from './types.ts';

interface ChoiceState {
  readonly toolCalls: ToolCallRepair;
  /** Created for the first details that a policy strips. */
  stripper: ReasoningStripper | null;
  /** The first delta, which has the role, was sent. */
  isStarted: boolean;
  isFinished: boolean;
  /** The upstream hinted that the output reached its limit. */
  isLimited: boolean;
  /** There was text, or a tool call. */
  hasOutput: boolean;
  /** UTF-16 units of the tokens whose logprobs were sent: the next offset in the legacy form. */
  logprobsLength: number;
}

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
  /** A chunk whose tool call may have a placeholder: the next part decides. */
  #waiting: ChatChunk | null = null;
  #isHolding = false;
  #hasSentUsage = false;
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
   * The arguments of a tool call, if a part like this one, which was read last, does nothing but continue them; otherwise null. They are
   * the same until the revision changes.
   */
  argumentsOf({ choices: [choice] }: ChunkPart): JsonProgress | null {
    const call = choice?.toolCalls[0];
    if (choice === undefined || call === undefined) return null;
    return this.#choices.get(choice.index)?.toolCalls.argumentsOf(call) ?? null;
  }

  /** Whether there was no choice yet. */
  get isEmpty(): boolean {
    return this.#choices.size === 0;
  }

  /** Whether the output is complete: there was a choice, and each has its finish reason. */
  get isFinished(): boolean {
    return !this.isEmpty && [...this.#choices.values()].every((choice) => choice.isFinished);
  }

  /** Returns the chunk for a part, or null if the part has nothing new, or if its chunk waits for `takeWaiting`. */
  read(part: ChunkPart): Chunk | null {
    this.#id ??= part.id;
    this.#created ??= part.created;
    this.#model ??= part.model;
    this.#setLabels(part);
    const choices = part.choices.some(hasWhole)
      ? part.choices.map((choice) => this.#withOutput(choice))
      : part.choices;
    this.#meter(part, choices);
    this.#isFailing = part.error !== null;
    this.#isHolding = false;
    const chunk = this.#writeLast(choices);
    if (!this.#isHolding || chunk?.object !== 'chat.completion.chunk') return chunk;
    this.#waiting = chunk;
    this.#revision++;
    return null;
  }

  /**
   * Returns the chunk that waits because of a tool call's placeholder, or null. Call it before anything later is written.
   * @param next the next part, which may replace the placeholder; null at the end
   */
  takeWaiting(next: ChunkPart | null): Chunk | null {
    const waiting = this.#waiting;
    if (waiting === null) return null;
    this.#waiting = null;
    const choices = waiting.choices.flatMap((choice) => {
      const parts = next?.choices.filter(({ index }) => index === choice.index) ?? [];
      const dropped = this.#choices
        .get(choice.index)
        ?.toolCalls.decidePlaceholders(parts.flatMap((part) => part.toolCalls));
      return withoutPlaceholders(choice, dropped ?? new Set());
    });
    return choices.length === 0 ? null : { ...waiting, choices };
  }

  /** At `[DONE]`: returns one chunk that finishes every open choice, or null if there is none. */
  finishOpenChoices(): Chunk | null {
    return this.isFinished ? null : this.#finishAll('stop', [...this.#choices.keys()]);
  }

  /** Returns one chunk that ends every choice that is not finished as one that has reached its limit, or null if there is none. */
  limitOpenChoices(): Chunk | null {
    const requested = Array.from({ length: this.#context.choices }, (_, index) => index);
    return this.#finishAll('length', [...new Set([...this.#choices.keys(), ...requested])]);
  }

  #finishAll(finishWord: string, indexes: readonly number[]): Chunk | null {
    const open = indexes
      .filter((index) => this.#choices.get(index)?.isFinished !== true)
      .sort((a, b) => a - b);
    return open.length === 0
      ? null
      : this.#writeLast(open.map((index) => ({ ...EMPTY_CHOICE, index, finishWord })));
  }

  /** Returns the usage chunk of an output that has ended, or null if the client gets none. */
  usageChunk(): Chunk | null {
    const { usageAt, shape } = this.#context;
    const isLate = usageAt === 'finish_or_end' && !this.#hasSentUsage;
    if (usageAt !== 'end' && !isLate) return null;
    const { usage, estimated } = this.#countUsage();
    if (isLate && estimated) return null;
    return this.#withUsage(shape === 'chat' ? this.#chatChunk([]) : this.#textChunk([]), usage);
  }

  /** Calls `#write`. Adds usage to the chunk of the last finish if it belongs there and was reported by then (U2). */
  #writeLast(parts: readonly ChoicePart[]): Chunk | null {
    const chunk = this.#write(parts);
    const { usageAt } = this.#context;
    const isAtFinish = usageAt === 'finish' || usageAt === 'finish_or_end';
    if (chunk === null || !isAtFinish || this.#hasSentUsage) return chunk;
    if (!this.isFinished || this.#choices.size < this.#context.choices) return chunk;
    const { usage, estimated } = this.#countUsage();
    if (estimated) return chunk;
    this.#hasSentUsage = true;
    return this.#withUsage(chunk, usage);
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

  /** The update, or the whole output where the choice has had none. */
  #withOutput(choice: ChoicePart): ChoicePart {
    const { whole } = choice;
    if (whole === undefined || hasText(choice)) return choice;
    return this.#choices.get(choice.index)?.hasOutput === true ? choice : whole;
  }

  /** Meters the part before a policy removes any of it (C6). What follows a choice's finish does not count. */
  #meter(part: ChunkPart, choices: readonly ChoicePart[]): void {
    const { meter } = this.#context;
    if (part.serviceTier !== undefined) meter.serviceTier(part.serviceTier);
    for (const choice of choices) {
      if (this.#choices.get(choice.index)?.isFinished) continue;
      meter.delta(choice);
      const { finishWord, isAnnounced } = choice;
      if (finishWord !== null && !isAnnounced) meter.finish(finishWord, meaningOf(choice, finishWord));
    }
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
      const choice = state.isFinished ? null : write(part, state);
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
      isStarted: false,
      isFinished: false,
      isLimited: false,
      hasOutput: false,
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
    const finish_reason = this.#finish(part, state);
    const hasUpdate =
      part.content !== '' ||
      reasoning !== '' ||
      part.refusal !== '' ||
      toolCalls.length > 0 ||
      details.length > 0 ||
      logprobs !== null ||
      finish_reason !== null;
    const isFirst = !state.isStarted && (hasUpdate || part.hasRole);
    if (!hasUpdate && !isFirst) return null;
    const delta: Delta = {};
    if (isFirst) delta.role = 'assistant';
    if (part.content !== '' || (isFirst && part.hasContent)) delta.content = part.content;
    if (reasoning !== '') delta.reasoning_content = reasoning;
    if (reasoning !== '' && this.#names('delta.reasoning')) delta.reasoning = reasoning;
    if (part.refusal !== '') delta.refusal = part.refusal;
    if (toolCalls.length > 0) delta.tool_calls = toolCalls;
    if (details.length > 0) delta.reasoning_details = details;
    state.isStarted = true;
    const choice = { index: part.index, delta, logprobs, finish_reason };
    return part.stopSequence === undefined ? choice : { ...choice, stop_sequence: part.stopSequence };
  }

  #textChoice(part: ChoicePart, state: ChoiceState): TextChoice | null {
    this.#toolCalls(part, state);
    const logprobs = part.logprobs === null ? null : toTextLogprobs(part.logprobs, state.logprobsLength);
    for (const token of logprobs?.tokens ?? []) state.logprobsLength += token.length;
    const finish_reason = this.#finish(part, state);
    if (part.content === '' && logprobs === null && finish_reason === null) return null;
    return { index: part.index, text: part.content, logprobs, finish_reason };
  }

  #toolCalls(part: ChoicePart, { toolCalls }: ChoiceState): ToolCallDelta[] {
    const fragments = part.toolCalls.flatMap((call) => toolCalls.read(call));
    if (part.finishWord !== null) {
      const isEnd = isComplete(meaningOf(part, part.finishWord));
      fragments.push(...(isEnd ? toolCalls.endArguments() : toolCalls.startWaiting()));
      // Nothing follows the finish, so nothing replaces a placeholder.
      toolCalls.decidePlaceholders([]);
    }
    this.#isHolding ||= toolCalls.isHolding;
    const { excess } = toolCalls;
    const { name } = this.#context.upstream;
    if (excess !== null) this.#fault = apiError('upstream_invalid', `${name} sent more than ${excess}`);
    return fragments;
  }

  #finish(part: ChoicePart, state: ChoiceState): FinishReason | null {
    state.isLimited ||= part.isLimited === true;
    // A finish word that comes together with an error does not count.
    if (part.finishWord === null || this.#isFailing || this.#fault !== null) return null;
    const reason = this.#judge(meaningOf(part, part.finishWord), part.finishWord, state);
    if (typeof reason === 'object') this.#fault = reason;
    if (typeof reason === 'object' || part.isAnnounced === true) return null;
    state.isFinished = true;
    this.#revision++;
    return reason;
  }

  /** The finish reason by what the choice has, whatever its finish word says; or why it is no finish. */
  #judge(
    meaning: FinishMeaning,
    word: string,
    { toolCalls, isLimited }: ChoiceState,
  ): FinishReason | ApiError {
    const { upstream } = this.#context;
    if (meaning === 'failed') return failedFinish(upstream, word);
    if (meaning === 'length' || meaning === 'content_filter') return meaning;
    if (toolCalls.isNameless) return namelessToolCall(upstream);
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
      id: this.#id ?? `${shape === 'chat' ? 'chatcmpl' : 'cmpl'}-${random()}`,
      created: this.#created ?? now(),
      model: `${provider}/${this.#model ?? model}`,
    };
    return this.#identity;
  }
}

function hasWhole({ whole }: ChoicePart): boolean {
  return whole !== undefined;
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
