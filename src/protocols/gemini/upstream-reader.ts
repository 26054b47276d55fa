/** Reads Gemini's `generateContent` responses into canonical parts. */
import { MAX_CITATIONS, type Source, sourceOf } from '../../canonical/citations.ts';
import type { UpstreamError } from '../../canonical/error.ts';
import { type Logprobs, readLogprobs } from '../../canonical/logprobs.ts';
import { type ChoicePart, type ChunkPart, EMPTY_CHOICE, EMPTY_PART, readName } from '../../canonical/part.ts';
import { tagProvider } from '../../canonical/reasoning-details.ts';
import { findUpstreamError, unfinished } from '../../canonical/upstream-error.ts';
import type { UsageReport } from '../../canonical/usage.ts';
import { GOOGLE_FORMAT } from '../../request-translation/messages.ts';
import { isObject, type JsonObject, objectOf, readArray, readCount, readText } from '../../shared/json.ts';
import { MAX_CHOICES } from '../../shared/limits.ts';
import type { ProtocolReader, UpstreamProtocol } from '../../stream/types.ts';
import { enumName } from './enums.ts';
import { GeminiCalls } from './upstream-calls.ts';

export const gemini: UpstreamProtocol = {
  id: 'generate_content',
  open: (_, provider) => new GeminiReader(provider),
};

/** Google's tiers that have another name at OpenAI. Vertex AI reports them as `trafficType`: pydantic/pydantic-ai, recorded 2026-03. */
const TIERS: ReadonlyMap<string, string> = new Map([
  ['standard', 'default'],
  ['on_demand_flex', 'flex'],
  ['on_demand_priority', 'priority'],
]);

/** The tier of a response. Undefined: none is reported, or the traffic is of no special tier, such as `ON_DEMAND`. */
function tierOf({ serviceTier, trafficType }: JsonObject): string | undefined {
  const tier = readName(serviceTier)?.toLowerCase();
  return TIERS.get(tier ?? readName(trafficType)?.toLowerCase() ?? '') ?? tier;
}

/** "If empty, the model has not stopped generating tokens": https://ai.google.dev/api/generate-content#candidate (2026-11). */
const UNFINISHED = unfinished('without a finishReason');

/** The state of a candidate between events. */
interface Candidate {
  /** The last finish word, or null. */
  finish: string | null;
  /** It had text, thoughts or calls. */
  hasContent: boolean;
  readonly calls: GeminiCalls;
}

class GeminiReader implements ProtocolReader {
  readonly #provider: string;
  readonly #candidates = new Map<number, Candidate>();
  /**
   * Queries of Google Search: each is billed once, empty ones are not
   * (https://ai.google.dev/gemini-api/docs/google-search, 2026-11-22).
   */
  readonly #queries = new Set<string>();
  /** Why the prompt was blocked, or null. */
  #blockReason: string | null = null;
  /** The number of signatures of texts and thoughts so far. */
  #signatures = 0;

  /** @param provider the id of the provider, which is kept with its signatures */
  constructor(provider: string) {
    this.#provider = provider;
  }

  event(event: JsonObject): ChunkPart {
    const candidates = readArray(event.candidates).filter(isObject).slice(0, MAX_CHOICES);
    const feedback = objectOf(event.promptFeedback);
    this.#blockReason = enumName('blockReason', feedback.blockReason) ?? this.#blockReason;
    const usage = isObject(event.usageMetadata) ? event.usageMetadata : null;
    const hasFinish = candidates.some(
      ({ finishReason }) => enumName('finishReason', finishReason) !== undefined,
    );
    const signatures = this.#signatures;
    const queries = candidates.flatMap(searchQueries);
    for (const query of queries) this.#queries.add(query);
    const choices = candidates.map((candidate, position) => this.#choice(candidate, position));
    const hasCandidate = this.#candidates.size > 0;
    return {
      id: readName(event.responseId),
      created: undefined,
      model: readName(event.modelVersion),
      serviceTier: usage === null ? undefined : tierOf(usage),
      systemFingerprint: undefined,
      choices,
      usage: usage === null ? null : { ...readUsage(usage, hasCandidate), ...this.#searches },
      ...(queries.length > 0 && this.#searches),
      error: findUpstreamError(event) ?? this.#brokenCall(),
      ...(hasFinish || this.#signatures > signatures || queries.length > 0 ? { isRemembered: true } : {}),
    };
  }

  get #searches(): { readonly searches?: number } {
    return this.#queries.size === 0 ? {} : { searches: this.#queries.size };
  }

  response(response: JsonObject): ChunkPart {
    const part = this.event(response);
    const end = this.end();
    const ends = new Map(end?.choices.map((choice) => [choice.index, choice]));
    const choices = part.choices.map((choice) => {
      const last = ends.get(choice.index);
      ends.delete(choice.index);
      if (last === undefined) return choice;
      const { finishWord, finishMeaning } = last;
      return { ...choice, toolCalls: [...choice.toolCalls, ...last.toolCalls], finishWord, finishMeaning };
    });
    const error = part.error ?? (this.#isUnfinished ? UNFINISHED : null);
    return { ...part, choices: [...choices, ...ends.values()], error };
  }

  /**
   * The finish is known only at the end: Gemini may send one early and a different one later. A response without any finish is
   * truncated.
   */
  end(): ChunkPart | null {
    const choices: ChoicePart[] = [];
    for (const [index, { finish, hasContent, calls }] of this.#candidates) {
      if (finish === null) continue;
      // `OTHER` without any output is a failure.
      const isFailure = finish === 'OTHER' && !hasContent;
      choices.push({
        ...EMPTY_CHOICE,
        index,
        toolCalls: calls.end(),
        finishWord: finish,
        finishMeaning: isFailure ? 'failed' : undefined,
      });
    }
    if (choices.length === 0 && this.#blockReason !== null) {
      // The meaning is set because some block reasons, such as `OTHER`, mean something else as a finish.
      choices.push({ ...EMPTY_CHOICE, finishWord: this.#blockReason, finishMeaning: 'content_filter' });
    }
    return choices.length === 0 ? null : { ...EMPTY_PART, choices };
  }

  #choice(candidate: JsonObject, position: number): ChoicePart {
    const candidateIndex = readCount(candidate.index);
    const index = candidateIndex === undefined || candidateIndex >= MAX_CHOICES ? position : candidateIndex;
    const state = this.#candidates.get(index) ?? {
      finish: null,
      hasContent: false,
      calls: new GeminiCalls(this.#provider),
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
    const sources = groundingSources(candidate);
    state.finish = enumName('finishReason', candidate.finishReason) ?? state.finish;
    state.hasContent ||= text !== '' || reasoning !== '' || toolCalls.length > 0;
    return {
      index,
      // The role is on every event. An event with nothing else must not count as output, because an error may still follow.
      hasRole: false,
      hasContent: parts.some((part) => part.thought !== true && typeof part.text === 'string'),
      content: text,
      reasoning,
      refusal: '',
      toolCalls,
      reasoningDetails: parts.flatMap((part) => this.#signature(part)),
      logprobs: readGeminiLogprobs(candidate.logprobsResult),
      finishWord: null,
      ...(sources.length === 0 ? {} : { sources }),
      ...(parts.some(hasImage) ? { hasImage: true } : {}),
    };
  }

  get #isUnfinished(): boolean {
    return this.#blockReason === null && [...this.#candidates.values()].some(({ finish }) => finish === null);
  }

  #brokenCall(): UpstreamError | null {
    const isBroken = [...this.#candidates.values()].some(({ calls }) => calls.isBroken);
    if (!isBroken) return null;
    const message = 'The pieces of a tool call’s arguments do not form a JSON object';
    return { message, type: undefined, code: 'upstream_invalid', param: undefined, status: undefined };
  }

  /** The signature of a text, which may be empty, or of a thought. Other parts do not reach the client, so theirs are skipped. */
  #signature(part: JsonObject): JsonObject[] {
    const data = readText(part.thoughtSignature);
    const text = typeof part.text === 'string' || !hasData(part) ? (readText(part.text) ?? '') : undefined;
    if (data === undefined || text === undefined) return [];
    const payload = part.thought === true ? 'thought' : `text-${text.length}`;
    const id = tagProvider({ provider: this.#provider, payload });
    return [{ type: 'reasoning.encrypted', data, id, format: GOOGLE_FORMAT, index: this.#signatures++ }];
  }
}

function hasImage({ inlineData, fileData, thought }: JsonObject): boolean {
  const { mimeType } = objectOf(inlineData, fileData);
  return thought !== true && readText(mimeType)?.startsWith('image/') === true;
}

/**
 * The pages behind the text: `GroundingChunk` of https://ai.google.dev/api/generate-content (2026-11). The places that they are for are
 * left out, because they count bytes of the whole text, which is not kept.
 */
function groundingSources({ groundingMetadata }: JsonObject): readonly Source[] {
  if (!isObject(groundingMetadata)) return [];
  const chunks = readArray(groundingMetadata.groundingChunks).slice(0, MAX_CITATIONS);
  return chunks.filter(isObject).flatMap(({ web, retrievedContext, maps }) => {
    const { uri, title } = objectOf(web, retrievedContext, maps);
    return sourceOf(uri, title) ?? [];
  });
}

function searchQueries({ groundingMetadata }: JsonObject): string[] {
  const { webSearchQueries } = objectOf(groundingMetadata);
  return readArray(webSearchQueries).flatMap((query) => readText(query) || []);
}

/** An empty text may be missing, as in events that a proxy passes on: maximhq/bifrost#6730, 2026-09-01. */
function hasData(part: JsonObject): boolean {
  return Object.keys(part).some((key) => key !== 'thought' && key !== 'thoughtSignature');
}

/**
 * Reads `usageMetadata`. Google counts thoughts beside the candidates' tokens. `totalTokenCount` was the sum of the others in 623 of
 * 623 recorded events, so it is not reported: it could be the sum of earlier counts.
 * @param hasCandidate without a candidate, as for a blocked prompt, the completion is the total less the prompt
 */
function readUsage(usage: JsonObject, hasCandidate: boolean): UsageReport {
  const prompt = sum(usage.promptTokenCount, usage.toolUsePromptTokenCount);
  const completion = sum(usage.candidatesTokenCount, usage.thoughtsTokenCount);
  const total = readCount(usage.totalTokenCount);
  const rest =
    hasCandidate || total === undefined || prompt === undefined ? undefined : Math.max(0, total - prompt);
  return {
    isLatest: true,
    prompt,
    completion: completion ?? rest,
    cached: readCount(usage.cachedContentTokenCount),
    reasoning: readCount(usage.thoughtsTokenCount),
    promptAudio: audioTokens(usage.promptTokensDetails),
    completionAudio: audioTokens(usage.candidatesTokensDetails),
  };
}

function sum(a: unknown, b: unknown): number | undefined {
  const counts = [readCount(a), readCount(b)].filter((count) => count !== undefined);
  return counts.length === 0 ? undefined : counts.reduce((total, count) => total + count, 0);
}

function audioTokens(details: unknown): number | undefined {
  const audio = readArray(details).find(
    (detail) => isObject(detail) && enumName('modality', detail.modality) === 'AUDIO',
  );
  return isObject(audio) ? readCount(audio.tokenCount) : undefined;
}

const encoder = new TextEncoder();

/** Reads `logprobsResult` into the chat form. */
function readGeminiLogprobs(result: unknown): Logprobs | null {
  if (!isObject(result)) return null;
  const tops = readArray(result.topCandidates);
  const content = readArray(result.chosenCandidates).map((chosen, at) => {
    const top = tops[at];
    const candidates = readArray(isObject(top) ? top.candidates : undefined);
    return { ...tokenLogprob(chosen), top_logprobs: candidates.map(tokenLogprob) };
  });
  return readLogprobs({ content });
}

function tokenLogprob(candidate: unknown): JsonObject {
  const { token, logProbability } = objectOf(candidate);
  const bytes = typeof token === 'string' ? [...encoder.encode(token)] : null;
  return { token, logprob: logProbability, bytes };
}
