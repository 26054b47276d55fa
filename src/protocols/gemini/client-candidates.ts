/** Turns deltas into the parts of Gemini's candidates, for the streamed and the non-streaming writer. */
import type { ChatChoice, Delta } from '../../canonical/chunk.ts';
import type { FinishReason } from '../../canonical/finish-reason.ts';
import type { ChatLogprobs } from '../../canonical/logprobs.ts';
import { ReasoningDetails } from '../../canonical/reasoning-details.ts';
import type { Usage } from '../../canonical/usage.ts';
import { argumentsObject } from '../../request-translation/tools.ts';
import { EmbeddedJson, type JsonObject, objectOf } from '../../shared/json.ts';
import { JsonProgress } from '../../shared/json-progress.ts';
import { encodeStateBytes, type ReasoningState } from '../shared/reasoning-state.ts';
import type { GeminiSession } from './client-form.ts';

export interface CandidateOptions extends GeminiSession {
  /** The bound on the reasoning that waits for the finish, in UTF-16 units. */
  readonly maxReasoningChars: number;
}

interface HeldCall {
  readonly id: string;
  readonly name: string;
  text: string;
  readonly progress: JsonProgress;
  state: ReasoningState | null;
}

const FINISHES: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
};

/** One candidate. Its calls are whole only at its finish, and wait for it: a client never runs a call of a cut output. */
export class ClientCandidate {
  readonly #index: number;
  readonly #options: CandidateOptions;
  /** By the index of their fragments. */
  readonly #calls = new Map<number, HeldCall>();
  #details = new ReasoningDetails();
  /** Thoughts that no detail has, for providers that want them back in a loop of tools. */
  #thoughts = '';
  #annotations: readonly JsonObject[] = [];
  #finish: FinishReason | null = null;
  #hasOutput = false;
  #heldChars = 0;
  #reasoningChars = 0;

  constructor(index: number, options: CandidateOptions) {
    this.#index = index;
    this.#options = options;
  }

  /** An estimate of the calls that wait for the finish, in UTF-16 units. */
  get heldChars(): number {
    return this.#heldChars;
  }

  /** A content filter stopped it before there was any output. */
  get isBlocked(): boolean {
    return this.#finish === 'content_filter' && !this.#hasOutput;
  }

  /** The parts that need not wait. */
  read({ delta, finish_reason }: Pick<ChatChoice, 'delta' | 'finish_reason'>): JsonObject[] {
    const { content = '', refusal = '', reasoning_content: thought = '' } = delta;
    const text = content + refusal;
    this.#hold(delta);
    this.#finish ??= finish_reason;
    this.#hasOutput ||= text !== '' || thought !== '' || this.#calls.size > 0;
    return [
      ...(thought === '' || !this.#options.showsThoughts ? [] : [{ text: thought, thought: true }]),
      ...(text === '' ? [] : [{ text }]),
    ];
  }

  #hold({ reasoning_content = '', reasoning_details = [], annotations, tool_calls = [] }: Delta): void {
    this.#holdReasoning(reasoning_content, reasoning_details);
    this.#annotations = annotations ?? this.#annotations;
    for (const fragment of tool_calls) {
      const { index, extra_content } = fragment;
      if ('id' in fragment) {
        const { id, function: called } = fragment;
        this.#calls.set(index, {
          id,
          name: called.name,
          text: '',
          progress: new JsonProgress(),
          state: null,
        });
      }
      const call = this.#calls.get(index);
      if (call === undefined) continue;
      if (extra_content !== undefined) call.state = { call: call.id, extra_content };
      call.text += fragment.function.arguments;
      call.progress.push(fragment.function.arguments);
      this.#heldChars += fragment.function.arguments.length + CALL_CHARS;
    }
  }

  /** Providers take a step without its reasoning: more than the bound is not kept. */
  #holdReasoning(text: string, details: readonly JsonObject[]): void {
    const kept = this.#options.hasTools ? text.length : 0;
    this.#reasoningChars += details.length > 0 ? JSON.stringify(details).length : kept;
    if (this.#reasoningChars > this.#options.maxReasoningChars) {
      this.#details = new ReasoningDetails();
      this.#thoughts = '';
    } else if (details.length > 0) this.#details.add(details);
    else if (this.#options.hasTools) this.#thoughts += text;
  }

  /**
   * The candidate as it ends, after the parts that were read.
   * @param provider the id of the provider, which alone can read its reasoning
   */
  last(provider: string, before: readonly JsonObject[] = []): JsonObject {
    const finish = this.#finish ?? 'stop';
    const parts = [
      ...before,
      ...this.#lastParts(provider, finish === 'length' || finish === 'content_filter'),
    ];
    const chunks = this.#annotations.flatMap(({ url_citation }) => {
      const { url, title } = objectOf(url_citation);
      return url === undefined ? [] : [{ web: { uri: url, title } }];
    });
    return {
      content: { parts: parts.length === 0 ? [{ text: '' }] : parts, role: 'model' },
      finishReason: FINISHES[finish],
      index: this.#index,
      ...(chunks.length === 0 ? {} : { groundingMetadata: { groundingChunks: chunks } }),
    };
  }

  /**
   * The calls, without those that the end of the output cut. What providers want back with the step is the signature of its first call,
   * as Google has it: some clients send no thoughts back, and all send the calls.
   */
  #lastParts(provider: string, isTruncated: boolean): JsonObject[] {
    const embedded = new EmbeddedJson();
    const calls = [...this.#calls.values()].filter(({ progress }) => !isTruncated || progress.isComplete);
    const ofStep = this.#statesOfStep(calls.length > 0);
    const parts: JsonObject[] = calls.map(({ id, name, text, state }, at) => {
      const states = [...(at === 0 ? ofStep : []), ...(state === null ? [] : [state])];
      return {
        functionCall: { id, name, args: argumentsObject(text, embedded) },
        ...(states.length === 0 ? {} : { thoughtSignature: encodeStateBytes(provider, states) }),
      };
    });
    if (calls.length > 0 || ofStep.length === 0) return parts;
    return [{ text: '', thoughtSignature: encodeStateBytes(provider, ofStep) }];
  }

  #statesOfStep(hasCalls: boolean): readonly ReasoningState[] {
    if (this.#details.hasOpaqueData) return this.#details.list.map((detail) => ({ detail }));
    return hasCalls && this.#thoughts !== ''
      ? [{ detail: { type: 'reasoning.text', text: this.#thoughts } }]
      : [];
  }
}

/** The estimated size of a fragment besides its text, in UTF-16 units. */
const CALL_CHARS = 64;

/** A candidate with parts, before its end. */
export function openCandidate(
  index: number,
  parts: readonly JsonObject[],
  logprobs: ChatLogprobs | null,
): JsonObject {
  return {
    content: { parts, role: 'model' },
    index,
    ...(logprobs === null ? {} : { logprobsResult: logprobsResult([logprobs]) }),
  };
}

/** Log probabilities in Google's form. */
export function logprobsResult(all: readonly ChatLogprobs[]): JsonObject {
  const entries = all.flatMap(({ content }) => content ?? []);
  const view = ({ token, logprob }: { readonly token: string; readonly logprob: number | null }) => ({
    token,
    ...(logprob === null ? {} : { logProbability: logprob }),
  });
  return {
    topCandidates: entries.map(({ top_logprobs }) => ({ candidates: top_logprobs.map(view) })),
    chosenCandidates: entries.map(view),
  };
}

/** `usageMetadata`: thoughts count beside the candidates. A count that was not reported is absent. */
export function usageMetadata(usage: Usage | null, promptTokens: number): JsonObject {
  if (usage === null) return { promptTokenCount: promptTokens, totalTokenCount: promptTokens };
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details } =
    usage;
  const thoughts = completion_tokens_details?.reasoning_tokens;
  const cached = prompt_tokens_details?.cached_tokens;
  return {
    promptTokenCount: prompt_tokens,
    candidatesTokenCount: Math.max(0, completion_tokens - (thoughts ?? 0)),
    totalTokenCount: total_tokens,
    ...(cached === undefined ? {} : { cachedContentTokenCount: cached }),
    ...(thoughts === undefined ? {} : { thoughtsTokenCount: thoughts }),
  };
}

/** Adds parts to others, with texts of one kind in a row as one. */
export function joinParts(all: JsonObject[], parts: readonly JsonObject[]): void {
  for (const part of parts) {
    const last = all.at(-1);
    const isJoined = last !== undefined && 'text' in last && 'text' in part && last.thought === part.thought;
    if (isJoined) all[all.length - 1] = { ...last, text: `${String(last.text)}${String(part.text)}` };
    else all.push(part);
  }
}

/** The member of a response whose prompt was blocked, in the place of candidates. */
export function promptFeedback(
  candidates: readonly ClientCandidate[],
  usage: Usage | null,
): JsonObject | null {
  const isBlocked = candidates.length > 0 && candidates.every((one) => one.isBlocked);
  return isBlocked && (usage?.completion_tokens ?? 0) === 0 ? { blockReason: 'SAFETY' } : null;
}
