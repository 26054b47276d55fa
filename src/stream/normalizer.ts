/** Makes canonical chunks of what a dialect read: what must be sent once is sent once, a chunk with nothing new is not sent. */
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
import { type ChoicePart, type ChunkPart, EMPTY_CHOICE } from '../canonical/part.ts';
import { ReasoningStripper } from '../canonical/reasoning-details.ts';
import { toolCallId } from '../canonical/tool-call-id.ts';
import { failedFinish } from '../canonical/upstream-error.ts';
import type { CountedUsage } from '../canonical/usage.ts';
import { type CallCount, ToolCallRepair } from './tool-call-repair.ts';
import type { ChunkContext } from './types.ts';

interface ChoiceState {
  readonly toolCalls: ToolCallRepair;
  readonly stripper: ReasoningStripper;
  /** Its role was sent, which its first delta carries. */
  started: boolean;
  finished: boolean;
  /** UTF-16 units of the tokens whose logprobs were sent: the legacy form counts its offsets in them. */
  logprobsLength: number;
}

/** What the upstream calls its service and its build: on every chunk from the first that named it (C1). */
interface Labels {
  readonly service_tier: string | undefined;
  readonly system_fingerprint: string | undefined;
}

/** `id`, `created` and `model` as every chunk of one answer has them (C2). */
interface Identity {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

/** One answer's state. A choice's updates go in as parts, and come out as chunks to be sent. */
export class Normalizer {
  readonly #context: ChunkContext;
  readonly #choices = new Map<number, ChoiceState>();
  #identity: Identity | undefined;
  #id: string | undefined;
  #created: number | undefined;
  #model: string | undefined;
  #labels: Labels = { service_tier: undefined, system_fingerprint: undefined };
  #fault: ApiError | null = null;
  #isFailing = false;
  #hasSentUsage = false;
  readonly #callCount: CallCount = { calls: 0 };
  #revision = 0;

  constructor(context: ChunkContext) {
    this.#context = context;
  }

  /** What in the last part ends the answer as failed: a finish word that means failure, or a bound. */
  get fault(): ApiError | null {
    return this.#fault;
  }

  /** Changes with everything but the text that decides what a later chunk contains: a finish, a service tier, a fingerprint. */
  get revision(): number {
    return this.#revision;
  }

  /** No choice has appeared. */
  get isEmpty(): boolean {
    return this.#choices.size === 0;
  }

  /** The answer is whole: there was a choice, and each has its finish reason. */
  get isFinished(): boolean {
    return !this.isEmpty && [...this.#choices.values()].every((choice) => choice.finished);
  }

  /** The chunk for a part, or null where it contains nothing new (C5). */
  read(part: ChunkPart): Chunk | null {
    this.#id ??= part.id;
    this.#created ??= part.created;
    this.#model ??= part.model;
    this.#setLabels(part);
    this.#meter(part);
    this.#isFailing = part.error !== null;
    return this.#writeLast(part.choices);
  }

  /** `[DONE]` came: every choice that is still open gets its finish (C8), in one chunk, or null where none is. */
  finishOpenChoices(): Chunk | null {
    if (this.isFinished) return null;
    const open = [...this.#choices].filter(([, state]) => !state.finished).sort(([a], [b]) => a - b);
    return this.#writeLast(open.map(([index]) => ({ ...EMPTY_CHOICE, index, finishWord: 'stop' })));
  }

  /** The usage chunk of an answer that has ended, or null where none is due (U1). */
  usageChunk(): Chunk | null {
    const { usageAt, shape } = this.#context;
    if (usageAt !== 'end') return null;
    const { usage } = this.#countUsage();
    return shape === 'chat' ? { ...this.#chatChunk([]), usage } : { ...this.#textChunk([]), usage };
  }

  /** As `#write`; the chunk of the last finish carries the usage that was reported by then, where it is wanted there (U2). */
  #writeLast(parts: readonly ChoicePart[]): Chunk | null {
    const chunk = this.#write(parts);
    if (chunk === null || this.#context.usageAt !== 'finish' || this.#hasSentUsage) return chunk;
    if (!this.isFinished || this.#choices.size < this.#context.choices) return chunk;
    const { usage, estimated } = this.#countUsage();
    if (estimated) return chunk;
    this.#hasSentUsage = true;
    return { ...chunk, usage };
  }

  /** As the meter counts it, with the cost where the request asked for it (P5). */
  #countUsage(): CountedUsage {
    const counted = this.#context.meter.countUsage();
    const cost = this.#context.cost?.() ?? null;
    return cost === null ? counted : { ...counted, usage: { ...counted.usage, cost } };
  }

  #setLabels({ serviceTier, systemFingerprint }: ChunkPart): void {
    const service_tier = serviceTier ?? this.#labels.service_tier;
    const system_fingerprint = systemFingerprint ?? this.#labels.system_fingerprint;
    if (service_tier === this.#labels.service_tier && system_fingerprint === this.#labels.system_fingerprint)
      return;
    this.#labels = { service_tier, system_fingerprint };
    this.#revision++;
  }

  /** Counts what the upstream sent before any policy leaves some of it out (C6); what follows a finish does not count. */
  #meter(part: ChunkPart): void {
    const { meter } = this.#context;
    if (part.serviceTier !== undefined) meter.serviceTier(part.serviceTier);
    for (const choice of part.choices) {
      if (this.#choices.get(choice.index)?.finished) continue;
      meter.delta(choice);
      if (choice.finishWord !== null) meter.finish(choice.finishWord, meaningOf(choice, choice.finishWord));
    }
    // What comes with the last finish is of the whole answer.
    if (part.usage !== null) meter.usage(part.usage);
  }

  #write(parts: readonly ChoicePart[]): Chunk | null {
    return this.#context.shape === 'chat' ? this.#writeChat(parts) : this.#writeText(parts);
  }

  #writeChat(parts: readonly ChoicePart[]): Chunk | null {
    const choices = this.#eachOpenChoice(parts, (part, state) => this.#chatChoice(part, state));
    return choices.length === 0 ? null : this.#chatChunk(choices);
  }

  #writeText(parts: readonly ChoicePart[]): Chunk | null {
    const choices = this.#eachOpenChoice(parts, (part, state) => this.#textChoice(part, state));
    return choices.length === 0 ? null : this.#textChunk(choices);
  }

  #eachOpenChoice<Choice>(
    parts: readonly ChoicePart[],
    write: (part: ChoicePart, state: ChoiceState) => Choice | null,
  ): Choice[] {
    const choices: Choice[] = [];
    for (const part of parts) {
      const state = this.#state(part.index);
      const choice = state.finished ? null : write(part, state);
      if (choice !== null) choices.push(choice);
    }
    return choices;
  }

  #state(index: number): ChoiceState {
    const known = this.#choices.get(index);
    if (known !== undefined) return known;
    const makeId = () => {
      this.#pin();
      return toolCallId(this.#context.random());
    };
    const toolCalls = new ToolCallRepair(makeId, this.#callCount, this.#context.toolNames);
    const stripper = new ReasoningStripper();
    const state = { toolCalls, stripper, started: false, finished: false, logprobsLength: 0 };
    this.#choices.set(index, state);
    return state;
  }

  #chatChoice(part: ChoicePart, state: ChoiceState): ChatChoice | null {
    const toolCalls = this.#toolCalls(part, state);
    const passesReasoning = this.#context.reasoning === 'pass';
    const reasoning = passesReasoning ? part.reasoning : '';
    const details = passesReasoning ? part.reasoningDetails : state.stripper.strip(part.reasoningDetails);
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
    const isFirst = !state.started && (hasUpdate || part.hasRole);
    if (!hasUpdate && !isFirst) return null;
    const delta: Delta = {};
    if (isFirst) delta.role = 'assistant';
    if (part.content !== '' || (isFirst && part.hasContent)) delta.content = part.content;
    if (reasoning !== '') delta.reasoning_content = reasoning;
    if (part.refusal !== '') delta.refusal = part.refusal;
    if (toolCalls.length > 0) delta.tool_calls = toolCalls;
    if (details.length > 0) delta.reasoning_details = details;
    state.started = true;
    return { index: part.index, delta, logprobs, finish_reason };
  }

  #textChoice(part: ChoicePart, state: ChoiceState): TextChoice | null {
    this.#toolCalls(part, state);
    const logprobs = part.logprobs === null ? null : toTextLogprobs(part.logprobs, state.logprobsLength);
    for (const token of logprobs?.tokens ?? []) state.logprobsLength += token.length;
    const finish_reason = this.#finish(part, state);
    if (part.content === '' && logprobs === null && finish_reason === null) return null;
    return { index: part.index, text: part.content, logprobs, finish_reason };
  }

  #toolCalls(part: ChoicePart, state: ChoiceState): ToolCallDelta[] {
    const fragments: ToolCallDelta[] = [];
    for (const call of part.toolCalls) {
      const fragment = state.toolCalls.read(call);
      if (fragment !== null) fragments.push(fragment);
    }
    if (state.toolCalls.isOverBound) {
      const { name } = this.#context.upstream;
      this.#fault = apiError('upstream_invalid', `${name} sent more tool calls than an answer may have`);
    }
    return fragments;
  }

  #finish(part: ChoicePart, state: ChoiceState): FinishReason | null {
    // What comes with an error is not finished, whatever else it contains.
    if (part.finishWord === null || this.#isFailing || this.#fault !== null) return null;
    const meaning = meaningOf(part, part.finishWord);
    if (meaning === 'failed') {
      this.#fault = failedFinish(this.#context.upstream, part.finishWord);
      return null;
    }
    state.finished = true;
    this.#revision++;
    return meaning === 'stop' && !state.toolCalls.isEmpty ? 'tool_calls' : meaning;
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

  #pin(): Identity {
    const { shape, provider, model, now, random } = this.#context;
    this.#identity ??= {
      id: this.#id ?? `${shape === 'chat' ? 'chatcmpl' : 'cmpl'}-${random()}`,
      created: this.#created ?? now(),
      model: `${provider}/${this.#model ?? model}`,
    };
    return this.#identity;
  }
}

function meaningOf(choice: ChoicePart, word: string): FinishMeaning {
  return choice.finishMeaning ?? finishMeaning(word);
}
