/** Google's `generateContent`: `candidates[].content.parts`, whose finish is the last one said (A3). */
import type { UpstreamError } from '../../canonical/error.ts';
import { type ChoicePart, type ChunkPart, EMPTY_CHOICE, EMPTY_PART, readName } from '../../canonical/part.ts';
import { tagProvider } from '../../canonical/provider-tag.ts';
import { findUpstreamError } from '../../canonical/upstream-error.ts';
import { isObject, type JsonObject, objectOf, readArray, readCount, readText } from '../../shared/json.ts';
import { MAX_CHOICES } from '../../shared/limits.ts';
import type { ProtocolReader, UpstreamProtocol } from '../../stream/types.ts';
import { GeminiCalls } from './upstream-calls.ts';
import { readGeminiLogprobs } from './upstream-logprobs.ts';
import { readGeminiUsage } from './upstream-usage.ts';

export const gemini: UpstreamProtocol = { open: (_, provider) => new GeminiReader(provider) };

/** OpenAI's names of Google's tiers. */
const TIERS: ReadonlyMap<string, string> = new Map([['standard', 'default']]);

/** What is remembered of a candidate. */
interface Candidate {
  /** The last finish word said, or null. */
  finish: string | null;
  /** It said something: text, thoughts or calls. */
  hasContent: boolean;
  readonly calls: GeminiCalls;
}

function queriesIn({ webSearchQueries }: JsonObject): string[] {
  return readArray(webSearchQueries).flatMap((query) => readText(query) || []);
}

class GeminiReader implements ProtocolReader {
  readonly #maker: string;
  readonly #candidates = new Map<number, Candidate>();
  /** Of Google Search: each is billed once, and an empty one is none (https://ai.google.dev/gemini-api/docs/google-search, 2026-11-22). */
  readonly #queries = new Set<string>();
  /** Why the prompt was blocked, or null. */
  #blocked: string | null = null;
  /** Signatures of texts and thoughts so far. */
  #signatures = 0;

  /** @param maker the id of the provider, to which its signatures go back (A7) */
  constructor(maker: string) {
    this.#maker = maker;
  }

  event(event: JsonObject): ChunkPart {
    const candidates = readArray(event.candidates).filter(isObject).slice(0, MAX_CHOICES);
    const feedback = objectOf(event.promptFeedback);
    this.#blocked = readText(feedback.blockReason) ?? this.#blocked;
    const usage = isObject(event.usageMetadata) ? event.usageMetadata : null;
    const tier = readName(usage?.serviceTier)?.toLowerCase();
    const hasFinish = candidates.some(({ finishReason }) => readText(finishReason) !== undefined);
    const signatures = this.#signatures;
    const queries = candidates.flatMap(({ groundingMetadata }) => queriesIn(objectOf(groundingMetadata)));
    for (const query of queries) this.#queries.add(query);
    const choices = candidates.map((candidate, position) => this.#choice(candidate, position));
    const hasAnswer = this.#candidates.size > 0;
    return {
      id: readName(event.responseId),
      created: undefined,
      model: readName(event.modelVersion),
      serviceTier: TIERS.get(tier ?? '') ?? tier,
      systemFingerprint: undefined,
      choices,
      usage: usage === null ? null : { ...readGeminiUsage(usage, hasAnswer), ...this.#searches },
      error: findUpstreamError(event) ?? this.#brokenCall(),
      ...(hasFinish || this.#signatures > signatures || queries.length > 0 ? { isRemembered: true } : {}),
    };
  }

  get #searches(): { readonly searches?: number } {
    return this.#queries.size === 0 ? {} : { searches: this.#queries.size };
  }

  plain(answer: JsonObject): ChunkPart {
    const part = this.event(answer);
    const end = this.end();
    const ends = new Map(end?.choices.map((choice) => [choice.index, choice]));
    const choices = part.choices.map((choice) => {
      const last = ends.get(choice.index);
      ends.delete(choice.index);
      if (last === undefined) return choice;
      const { finishWord, finishMeaning } = last;
      return { ...choice, toolCalls: [...choice.toolCalls, ...last.toolCalls], finishWord, finishMeaning };
    });
    return { ...part, choices: [...choices, ...ends.values()] };
  }

  /** The finish, which may be said early and taken back by what follows; an answer that never said one is not whole. */
  end(): ChunkPart | null {
    const choices: ChoicePart[] = [];
    for (const [index, { finish, hasContent, calls }] of this.#candidates) {
      if (finish === null) continue;
      // It says nothing of why, and there is no answer.
      const isFailure = finish === 'OTHER' && !hasContent;
      choices.push({
        ...EMPTY_CHOICE,
        index,
        toolCalls: calls.end(),
        finishWord: finish,
        finishMeaning: isFailure ? 'failed' : undefined,
      });
    }
    if (choices.length === 0 && this.#blocked !== null) {
      // Some reasons are words that would mean something else as a finish.
      choices.push({ ...EMPTY_CHOICE, finishWord: this.#blocked, finishMeaning: 'content_filter' });
    }
    return choices.length === 0 ? null : { ...EMPTY_PART, choices };
  }

  #choice(candidate: JsonObject, position: number): ChoicePart {
    const given = readCount(candidate.index);
    const index = given === undefined || given >= MAX_CHOICES ? position : given;
    const state = this.#candidates.get(index) ?? {
      finish: null,
      hasContent: false,
      calls: new GeminiCalls(this.#maker),
    };
    this.#candidates.set(index, state);
    const content = objectOf(candidate.content);
    const parts = readArray(content.parts).filter(isObject);
    let text = '';
    let reasoning = '';
    for (const part of parts) {
      if (part.thought === true) reasoning += readText(part.text) ?? '';
      else text += readText(part.text) ?? '';
    }
    const toolCalls = parts.flatMap((part) =>
      isObject(part.functionCall) ? state.calls.read(part, part.functionCall) : [],
    );
    state.finish = readText(candidate.finishReason) ?? state.finish;
    state.hasContent ||= text !== '' || reasoning !== '' || toolCalls.length > 0;
    return {
      index,
      // It is on every event, and on those that hold nothing else it would open an answer that may still be refused.
      hasRole: false,
      hasContent: parts.some((part) => part.thought !== true && typeof part.text === 'string'),
      content: text,
      reasoning,
      refusal: '',
      toolCalls,
      reasoningDetails: parts.flatMap((part) => this.#signature(part)),
      logprobs: readGeminiLogprobs(candidate.logprobsResult),
      finishWord: null,
    };
  }

  #brokenCall(): UpstreamError | null {
    const isBroken = [...this.#candidates.values()].some(({ calls }) => calls.isBroken);
    const message = 'The pieces of a call’s arguments don’t go together';
    return isBroken ? failure(message, 'upstream_invalid') : null;
  }

  /** The signature of a text, be it empty, or of a thought; those of parts that no client gets have nothing to go back with. */
  #signature(part: JsonObject): JsonObject[] {
    const data = readText(part.thoughtSignature);
    const text = typeof part.text === 'string' || !hasData(part) ? (readText(part.text) ?? '') : undefined;
    if (data === undefined || text === undefined) return [];
    const place = part.thought === true ? 'thought' : `text-${text.length}`;
    const id = tagProvider({ provider: this.#maker, payload: place });
    return [{ type: 'reasoning.encrypted', data, id, format: 'google-gemini-v1', index: this.#signatures++ }];
  }
}

/** An empty text may be left out, as some that hand Google's events on do: maximhq/bifrost#6730, 2026-09-01. */
function hasData(part: JsonObject): boolean {
  return Object.keys(part).some((key) => key !== 'thought' && key !== 'thoughtSignature');
}

function failure(message: string, code: string): UpstreamError {
  return { message, type: undefined, code, param: undefined, status: undefined };
}
