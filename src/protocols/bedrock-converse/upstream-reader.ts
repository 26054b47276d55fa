/**
 * Reads answers and streams of Bedrock's Converse into canonical parts.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html (2026-11-28)
 */
import { type DocumentCitation, documentCitation } from '../../canonical/citations.ts';
import type { UpstreamError } from '../../canonical/error.ts';
import { isFinishWord } from '../../canonical/finish-reason.ts';
import {
  type ChoicePart,
  type ChunkPart,
  EMPTY_CHOICE,
  EMPTY_PART,
  readName,
  type ToolCallPart,
} from '../../canonical/part.ts';
import { findUpstreamError, unfinished } from '../../canonical/upstream-error.ts';
import type { UsageReport } from '../../canonical/usage.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  readArray,
  readCount,
  readText,
  writeJson,
} from '../../shared/json.ts';
import { MAX_TOOL_CALLS } from '../../shared/limits.ts';
import { EVENT_STREAM } from '../../stream/eventstream-parser.ts';
import type { ProtocolQuirks, ProtocolReader, UpstreamProtocol } from '../../stream/types.ts';
import { BlockCitations } from '../shared/block-citations.ts';
import { readFailure } from './failures.ts';
import { reasoningDetail } from './reasoning.ts';

export const bedrockConverse: UpstreamProtocol = {
  id: 'converse',
  framing: EVENT_STREAM,
  open: ({ documents }, provider) => new ConverseReader(provider, documents),
};

/** An open block with calls in it. Text and reasoning have none, because they begin with their first delta. */
type ConverseBlock =
  /** A call of the client's tool. */
  | { readonly kind: 'call'; readonly index: number; hasArguments: boolean }
  /** A tool that the provider runs, or its result, which no client gets. */
  | { readonly kind: 'server' };

/** Places in documents: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CitationLocation.html (2026-11-29). */
const LOCATIONS = [
  ['documentChar', 'char_location'],
  ['documentPage', 'page_location'],
  ['documentChunk', 'content_block_location'],
] as const;

/** Blocks that are open at once. Bedrock opens one at a time. */
const MAX_OPEN_BLOCKS = 256;

class ConverseReader implements ProtocolReader {
  readonly #provider: string;
  readonly #documents: ProtocolQuirks['documents'];
  /** By their indexes. */
  readonly #open = new Map<unknown, ConverseBlock>();
  /** The number of calls of the client's tools so far, which is the next call's index. */
  #calls = 0;
  readonly #citations = new BlockCitations();
  /** The index of the block whose text came last. */
  #textBlock: unknown;
  /** The index of the block whose reasoning came last. */
  #reasoningBlock: unknown;

  /** @param documents those of the request; undefined: no citation of them can reach the client */
  constructor(provider: string, documents: ProtocolQuirks['documents']) {
    this.#provider = provider;
    this.#documents = documents;
  }

  /** @param name the type of the event */
  event(event: JsonObject, name: string): ChunkPart | null {
    const failure = readFailure(name, event);
    if (failure !== null) return { ...EMPTY_PART, error: failure };
    switch (name) {
      case 'messageStart':
        return choicePart({ hasRole: true });
      case 'contentBlockStart':
        return this.#begin(objectOf(event.start), event.contentBlockIndex);
      case 'contentBlockDelta':
        return this.#delta(objectOf(event.delta), event.contentBlockIndex, true);
      case 'contentBlockStop':
        return this.#end(event.contentBlockIndex);
      case 'messageStop':
        return this.#stop(event.stopReason);
      case 'metadata':
        return metadataPart(event);
      default:
        return null;
    }
  }

  /** The fast path reads text events again while it learns. */
  trial(event: JsonObject): ChunkPart | null {
    return this.#delta(objectOf(event.delta), event.contentBlockIndex, false);
  }

  response(response: JsonObject): ChunkPart {
    const { message } = objectOf(response.output);
    const error = isObject(message) ? null : findUpstreamError(response);
    if (!isObject(message)) return { ...metadataPart(response), error };
    const content = this.#content(readArray(message.content).filter(isObject));
    const finish = finishOf(response.stopReason);
    // Without it nothing says that the answer is whole.
    if (finish === null) return { ...metadataPart(response), error: unfinished('without a stopReason') };
    const [first = EMPTY_CHOICE, ...others] = content;
    const choices = [{ ...first, hasRole: true, hasContent: true }, ...others];
    const last = choices.pop();
    return { ...metadataPart(response), choices: [...choices, { ...EMPTY_CHOICE, ...last, ...finish }] };
  }

  /** Whole blocks: as one part, and before it one for each text where they are to cite documents. */
  #content(blocks: readonly JsonObject[]): readonly ChoicePart[] {
    const texts: ChoicePart[] = [];
    let content = '';
    let reasoning = '';
    const reasoningDetails: JsonObject[] = [];
    const toolCalls: ToolCallPart[] = [];
    const annotations: JsonObject[] = [];
    for (const [index, { text, toolUse, reasoningContent, citationsContent }] of blocks.entries()) {
      const { content: pieces, citations } = objectOf(citationsContent);
      const cited = readArray(pieces).map((piece) => readText(objectOf(piece).text) ?? '');
      const said = (readText(text) ?? '') + cited.join('');
      if (said !== '') this.#citations.begin({});
      this.#citations.text.units += said.length;
      const places = readArray(citations).flatMap((one) => this.#place(objectOf(one)) ?? []);
      annotations.push(...this.#citations.end());
      if (this.#documents === undefined) content += said;
      else if (said !== '')
        texts.push({ ...EMPTY_CHOICE, content: said, beginsBlock: true, ...citing(places) });
      if (isObject(reasoningContent)) {
        const thought = readReasoning(reasoningContent);
        reasoning += thought.text;
        reasoningDetails.push(
          ...reasoningDetail({ ...thought, index, hasText: false, provider: this.#provider }),
        );
      }
      if (!isObject(toolUse) || isOfServer(toolUse)) continue;
      const call = { ...callPart(toolCalls.length, toolUse), arguments: inputJson(toolUse.input) };
      if (toolCalls.length < MAX_TOOL_CALLS) toolCalls.push({ ...call, isWhole: true });
    }
    const thought = { ...EMPTY_CHOICE, reasoning, reasoningDetails };
    const rest = {
      ...{ ...EMPTY_CHOICE, content, toolCalls },
      ...(annotations.length === 0 ? {} : { annotations }),
      ...(blocks.some(({ image }) => isObject(image)) ? { hasImage: true as const } : {}),
    };
    return texts.length === 0 ? [{ ...rest, reasoning, reasoningDetails }] : [thought, ...texts, rest];
  }

  #begin({ toolUse, toolResult }: JsonObject, block: unknown): ChunkPart | null {
    // The stop of the block before may be missing: maximhq/bifrost, release 1.6.3.
    const before = this.#end(block);
    if (isObject(toolResult) || (isObject(toolUse) && isOfServer(toolUse))) {
      if (this.#open.size < MAX_OPEN_BLOCKS) this.#open.set(block, { kind: 'server' });
      return before;
    }
    if (!isObject(toolUse)) return before;
    const index = Math.min(this.#calls++, MAX_TOOL_CALLS);
    if (this.#open.size >= MAX_OPEN_BLOCKS) return { ...EMPTY_PART, error: invalid(TOO_MANY_BLOCKS) };
    this.#open.set(block, { kind: 'call', index, hasArguments: false });
    const { toolCalls = [] } = before?.choices[0] ?? {};
    const choice = { ...before?.choices[0], toolCalls: [...toolCalls, callPart(index, toolUse)] };
    return choicePart(choice);
  }

  /** Text changes nothing but the count of the text, because the fast path reads it again. @param counts not a trial */
  #delta(
    { text, reasoningContent, toolUse, citation }: JsonObject,
    block: unknown,
    counts: boolean,
  ): ChunkPart | null {
    if (this.#open.get(block)?.kind === 'server') return null;
    if (typeof text === 'string') return this.#text(text, block, counts);
    if (isObject(reasoningContent)) return this.#reasoning(reasoningContent, block);
    if (isObject(toolUse)) return this.#arguments(toolUse.input, block);
    return isObject(citation) ? this.#cite(citation, block) : null;
  }

  /** A citation comes before the text of its block (recorded, bedrock--claude-citation), or after it. */
  #cite(citation: JsonObject, block: unknown): ChunkPart | null {
    const place = this.#place(citation);
    if (place === null) return null;
    const isNew = block !== this.#textBlock;
    if (isNew) this.#beginText(block);
    return choicePart({ citations: [place], ...(isNew ? { beginsBlock: true } : {}) });
  }

  #beginText(block: unknown): void {
    this.#textBlock = block;
    this.#citations.begin({});
  }

  #text(text: string, block: unknown, counts: boolean): ChunkPart {
    const isNew = block !== this.#textBlock && text !== '';
    const { text: sent } = this.#citations;
    if (isNew && counts) this.#beginText(block);
    if (counts) sent.units += text.length;
    if (!isNew) return choicePart({ content: text, hasContent: true, sent });
    const begins = this.#documents === undefined ? {} : { beginsBlock: true as const };
    return { ...choicePart({ content: text, hasContent: true, sent, ...begins }), isRemembered: true };
  }

  #reasoning(reasoning: JsonObject, block: unknown): ChunkPart | null {
    const thought = readReasoning(reasoning);
    const hasText = block === this.#reasoningBlock;
    const details = reasoningDetail({ ...thought, index: block, hasText, provider: this.#provider });
    if (details.length === 0) return null;
    const part = choicePart({ reasoning: thought.text, reasoningDetails: details });
    if (hasText || thought.text === '') return part;
    this.#reasoningBlock = block;
    return { ...part, isRemembered: true };
  }

  #arguments(input: unknown, block: unknown): ChunkPart | null {
    const text = typeof input === 'string' ? input : inputJson(input);
    if (text === '' || input === undefined || input === null) return null;
    const call = this.#open.get(block);
    if (call?.kind !== 'call') return { ...EMPTY_PART, error: invalid(UNKNOWN_BLOCK) };
    call.hasArguments = true;
    return choicePart({ toolCalls: [fragment(call.index, text)] });
  }

  /** A place in a document of the request, or null: a page is collected. */
  #place({ location, source, title, sourceContent }: JsonObject): DocumentCitation | null {
    const places = objectOf(location);
    const { url, domain } = objectOf(places.web);
    this.#citations.cite({ url: url ?? source, title: title ?? domain });
    const [name, type] = LOCATIONS.find(([one]) => isObject(places[one])) ?? [];
    if (this.#documents === undefined || name === undefined || type === undefined) return null;
    const { documentIndex: document, start, end } = objectOf(places[name]);
    const text = readArray(sourceContent)
      .map((piece) => readText(objectOf(piece).text) ?? '')
      .join('');
    return documentCitation({ type, text, document, start, end }, this.#documents);
  }

  #end(block: unknown): ChunkPart | null {
    const toolCalls = this.#endCall(block);
    // A block of citations alone follows the text that they are for: recorded, bedrock--nova2-grounding-citations.
    const annotations = this.#citations.end();
    if (toolCalls.length === 0 && annotations.length === 0) return null;
    return choicePart({ toolCalls, ...(annotations.length === 0 ? {} : { annotations }) });
  }

  /** A call without arguments may have no delta. Its arguments are an empty object. */
  #endCall(block: unknown): ToolCallPart[] {
    const call = this.#open.get(block);
    this.#open.delete(block);
    return call?.kind === 'call' && !call.hasArguments
      ? [{ ...fragment(call.index, '{}'), isWhole: true }]
      : [];
  }

  /** The finish waits for the usage, which comes in the next event. */
  #stop(stopReason: unknown): ChunkPart {
    const toolCalls = [...this.#open.keys()].flatMap((block) => this.#endCall(block));
    const annotations = this.#citations.end();
    const finish = finishOf(stopReason);
    if (finish === null) return { ...EMPTY_PART, error: unfinished('without a stopReason') };
    return choicePart({ toolCalls, ...(annotations.length === 0 ? {} : { annotations }), ...finish });
  }
}

const TOO_MANY_BLOCKS = `More than ${MAX_OPEN_BLOCKS} blocks are open`;
/** A call whose arguments are lost would look complete. */
const UNKNOWN_BLOCK = 'Arguments came for a block that did not begin';

function invalid(message: string): UpstreamError {
  return { message, type: undefined, code: 'upstream_invalid', param: undefined, status: undefined };
}

function choicePart(choice: Partial<ChoicePart>): ChunkPart {
  return { ...EMPTY_PART, choices: [{ ...EMPTY_CHOICE, ...choice }] };
}

function citing(citations: readonly DocumentCitation[]): Pick<ChoicePart, 'citations'> {
  return citations.length === 0 ? {} : { citations };
}

/** A reason that is not known is no success. Null: there is none. */
function finishOf(stopReason: unknown): Pick<ChoicePart, 'finishWord' | 'finishMeaning'> | null {
  const finishWord = readName(stopReason);
  if (finishWord === undefined || finishWord === '') return null;
  return { finishWord, ...(isFinishWord(finishWord) ? {} : { finishMeaning: 'failed' as const }) };
}

/** `toolUse` of a tool that the provider runs: `server_tool_use`. */
function isOfServer({ type }: JsonObject): boolean {
  return type === 'server_tool_use';
}

function callPart(index: number, { toolUseId, name }: JsonObject): ToolCallPart {
  return { ...fragment(index, ''), id: readName(toolUseId), name: readName(name) };
}

function fragment(index: number, text: string): ToolCallPart {
  return { index, id: undefined, name: undefined, arguments: text, extraContent: undefined };
}

function inputJson(input: unknown): string {
  if (typeof input === 'string') return input;
  return writeJson(input ?? {}) ?? '{}';
}

/** Reasoning of a delta, or of a block, where text and signature have an object of their own. */
function readReasoning({ reasoningText, redactedContent, ...delta }: JsonObject) {
  const { text, signature } = objectOf(reasoningText, delta);
  return {
    text: readText(text) ?? '',
    signature: readText(signature),
    redacted: readText(redactedContent),
  };
}

/** The usage and the tier of a response, or of the last event of a stream. `p`, `metrics` and `trace` are dropped. */
function metadataPart({ usage, serviceTier }: JsonObject): ChunkPart {
  return {
    ...EMPTY_PART,
    usage: isObject(usage) ? readUsage(usage) : null,
    serviceTier: readName(objectOf(serviceTier).type),
  };
}

/**
 * `inputTokens` excludes what a cache read and wrote, as the total shows: 2 + 1322 + 5 = 1329 (recorded, bedrock--claude-cache-write). Each
 * count of the cache comes twice, under two names.
 */
function readUsage(usage: JsonObject): UsageReport {
  const cached = readCount(usage.cacheReadInputTokens) ?? readCount(usage.cacheReadInputTokenCount);
  const cacheWrite = readCount(usage.cacheWriteInputTokens) ?? readCount(usage.cacheWriteInputTokenCount);
  const input = readCount(usage.inputTokens);
  const long = readArray(usage.cacheDetails)
    .filter((detail) => isObject(detail) && detail.ttl === '1h')
    .map((detail) => readCount(objectOf(detail).inputTokens) ?? 0);
  return {
    isLatest: true,
    prompt: input === undefined ? undefined : input + (cached ?? 0) + (cacheWrite ?? 0),
    completion: readCount(usage.outputTokens),
    total: readCount(usage.totalTokens),
    cached,
    cacheWrite,
    ...(long.length === 0 ? {} : { cacheWriteLong: long.reduce((sum, tokens) => sum + tokens, 0) }),
  };
}
