/** Writes a conversation as Converse's `system` and `messages`: alternating turns, results first, signed reasoning, cache points. */
import {
  type Block,
  type CitedDocument,
  type NativeRequest,
  splitLeadingSystem,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
} from '../../canonical/conversation.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import { reportUnreadKeys, type TranslationReport } from '../../request-translation/dropped-fields.ts';
import { UniqueCallIds } from '../../request-translation/tool-results.ts';
import { argumentsObject } from '../../request-translation/tools.ts';
import { append } from '../../shared/append.ts';
import { EmbeddedJson, isObject, type JsonObject, readText } from '../../shared/json.ts';
import { replaceKeys } from '../../shared/json-keys.ts';
import { DocumentList } from '../shared/document-list.ts';
import type { ConverseFamily } from './family.ts';
import { reasoningContents } from './reasoning.ts';
import { citedText, DocumentNames, withCitations, writeMedia } from './request-media.ts';

interface ConverseTurn {
  readonly role: 'user' | 'assistant';
  readonly content: JsonObject[];
}

export interface ConverseConversation {
  readonly system: readonly JsonObject[];
  readonly messages: readonly ConverseTurn[];
  /** The names of the tools that its calls name, in order. */
  readonly calledTools: readonly string[];
  /** It has results of calls. */
  readonly hasResults: boolean;
  readonly documents: DocumentList;
}

interface TurnOptions {
  readonly family: ConverseFamily;
  /** The id of the provider that receives the request: only its own reasoning is sent. */
  readonly providerId: string;
  readonly toolKeys: NativeRequest['toolKeys'];
  readonly report: TranslationReport;
}

/** Writes turns as `system` and the alternating turns of a request. */
export function writeTurns(turns: readonly Turn[], options: TurnOptions): ConverseConversation {
  const [leading, rest] = splitLeadingSystem(turns);
  const writer = new TurnWriter(options);
  const system = leading.map((turn) => writer.content(turn)).filter(({ length }) => length > 0);
  for (const turn of rest) writer.add(turn);
  const messages = writer.take();
  // A conversation needs a message of the user.
  const prompt = messages.length === 0 ? system.pop() : undefined;
  return {
    system: system.flat(),
    messages: prompt === undefined ? messages : [{ role: 'user', content: prompt }],
    calledTools: [...writer.calledTools],
    hasResults: writer.hasResults,
    documents: writer.documents,
  };
}

/** The other keys of a turn that are read, or that have nothing to say. */
const TURN_KEYS = ['role', 'content', 'cache_control', 'tool_call_id'];

/** "The text field in the ContentBlock object is blank": a text that stands where one is needed. */
const NO_TEXT = '.';
/** What a result says that has nothing to say. */
const NO_OUTPUT = '(no output)';
/**
 * A document needs a text beside it: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html (2026-11-28). Claude
 * needs one between it and a cache point.
 */
const BESIDE_DOCUMENT = 'See the attached document.';

/** Converse's own blocks, which a client of chat may send as parts. */
const OWN_BLOCKS = ['guardContent', 'cachePoint', 'searchResult'];

/** Parts of chat without their content. */
const EMPTY_PARTS = ['text', 'refusal', 'image_url', 'document_url'];

class TurnWriter {
  readonly calledTools = new Set<string>();
  hasResults = false;
  readonly documents = new DocumentList();
  readonly #options: TurnOptions;
  readonly #messages: ConverseTurn[] = [];
  /** The results since the last turn of the assistant. They come first, wherever the client sent them. */
  #results: JsonObject[] = [];
  /** What else the user said since. */
  #said: JsonObject[] = [];
  readonly #callIds: UniqueCallIds;
  readonly #embedded = new EmbeddedJson();
  readonly #names = new DocumentNames();

  constructor(options: TurnOptions) {
    this.#options = options;
    const { callIds } = options.family;
    this.#callIds = new UniqueCallIds((id) => (callIds.test(id) ? id : toolCallId(id)));
  }

  add(turn: Turn): void {
    const { report } = this.#options;
    reportUnreadKeys(turn.extra, TURN_KEYS, report);
    if (turn.role === 'assistant') {
      this.#endUserTurn();
      return this.#push('assistant', this.#assistant(turn));
    }
    for (const block of turn.blocks) if (block.kind === 'tool_result') this.#addResult(block);
    // A later system message becomes the user's.
    append(this.#said, this.content(turn));
  }

  take(): readonly ConverseTurn[] {
    this.#endUserTurn();
    const [first] = this.#messages;
    if (first?.role === 'assistant') this.#messages.unshift({ role: 'user', content: [{ text: NO_TEXT }] });
    const last = this.#messages.at(-1);
    // A prefix of the answer may not end with white space.
    if (last?.role === 'assistant') last.content.splice(0, Infinity, ...last.content.map(trimLastText));
    return this.#messages;
  }

  /** The texts, media and own blocks of a turn. */
  content({ role, blocks, extra }: Turn): JsonObject[] {
    // `system` has only texts. In a result: 400 "Citations are not supported in tool result documents", boto/boto3#4648, 2025-10-27.
    return this.#marked(this.#blocks(blocks, role === 'user'), extra.cache_control);
  }

  #endUserTurn(): void {
    const content = [...this.#results, ...this.#said];
    this.#results = [];
    this.#said = [];
    const needsText = content.some((block) => block.document !== undefined) && !content.some(hasText);
    if (needsText) content.push({ text: BESIDE_DOCUMENT });
    this.#push('user', content);
  }

  /** Turns alternate: content of the same role as the last turn is added to it. */
  #push(role: ConverseTurn['role'], content: JsonObject[]): void {
    if (content.length === 0) return;
    const last = this.#messages.at(-1);
    if (last?.role === role) append(last.content, content);
    else this.#messages.push({ role, content });
  }

  #assistant({ blocks, refusal = '', extra }: Turn): JsonObject[] {
    const { family, providerId } = this.#options;
    const written = this.#blocks(blocks);
    const content = written.length === 0 ? textBlock(refusal) : written;
    this.#callIds.begin();
    const calls = blocks.filter((block) => block.kind === 'tool_call').map((call) => this.#call(call));
    // A turn of reasoning alone is refused: NousResearch/hermes-agent#105780, 2026-09-08.
    if (content.length + calls.length === 0) return [];
    return this.#marked(
      [...reasoningContents(blocks, family, providerId), ...content, ...calls],
      extra.cache_control,
    );
  }

  #call({ id, name, input }: ToolCallBlock): JsonObject {
    this.calledTools.add(name);
    const keys = this.#options.toolKeys.get(name);
    const args = argumentsObject(keys === undefined ? input : replaceKeys(input, keys), this.#embedded);
    return { toolUse: { toolUseId: this.#callIds.call(id), name, input: args } };
  }

  #addResult({ id, content, isError, extra = {} }: ToolResultBlock): void {
    const { family, report } = this.#options;
    reportUnreadKeys(extra, ['cache_control', 'name'], report);
    const blocks = typeof content === 'string' ? textBlock(content) : this.#blocks(content);
    // Cache points stand beside results, not in them.
    const inner = blocks.filter((block) => block.cachePoint === undefined);
    const points = blocks.filter((block) => block.cachePoint !== undefined);
    this.hasResults = true;
    const toolResult = {
      toolUseId: this.#callIds.result(id),
      content: inner.length === 0 ? [{ text: NO_OUTPUT }] : inner,
      ...(isError === true && family.lacksStatus !== true ? { status: 'error' } : {}),
    };
    this.#results.push(...this.#marked([{ toolResult }], extra.cache_control), ...points.slice(-1));
  }

  /** @param areCitable whether documents here can be cited */
  #blocks(blocks: readonly Block[], areCitable = false): JsonObject[] {
    const { report } = this.#options;
    const content: JsonObject[] = [];
    for (const block of blocks) {
      const marks = (block.kind === 'unknown' ? block.raw : block.extra) ?? {};
      if (isObject(marks.prompt_cache_breakpoint)) report.drop('messages.content.prompt_cache_breakpoint');
      const written = this.#block(block, areCitable && this.#options.family.takesCitations === true);
      if (areCitable && isObject(written[0]?.document))
        this.documents.add(citedIn(block, written[0].document));
      content.push(...written);
      // A blank text is not sent: its mark then follows the block before it.
      const isMarked = content.at(-1)?.cachePoint !== undefined;
      if (!isMarked && content.length > 0) append(content, this.#point(marks.cache_control, content.at(-1)));
    }
    return content;
  }

  #block(block: Block, isCitable: boolean): JsonObject[] {
    const { report } = this.#options;
    switch (block.kind) {
      case 'text':
        return (
          (isCitable ? citedText(block.cited, this.#names) : null) ??
          this.#uncited(block, textBlock(block.text))
        );
      case 'media': {
        const written = writeMedia(block.media, this.#names, report);
        return (isCitable ? withCitations(written, block.cited) : null) ?? this.#uncited(block, written);
      }
      case 'unknown':
        return unknownBlock(block.raw, report);
      default:
        return [];
    }
  }

  #uncited({ cited }: { readonly cited?: CitedDocument }, content: JsonObject[]): JsonObject[] {
    if (cited !== undefined) this.#options.report.drop('messages.content.citations');
    return content;
  }

  /** A cache mark is a block of its own behind what it marks. */
  #marked(content: JsonObject[], mark: unknown): JsonObject[] {
    return content.length === 0 ? content : [...content, ...this.#point(mark, content.at(-1))];
  }

  /** @param marked the block that the mark is at */
  #point(mark: unknown, marked: JsonObject | undefined): JsonObject[] {
    if (!isObject(mark)) return [];
    const { family, report } = this.#options;
    const point = cachePoint(mark, family);
    if (point === null) report.drop('messages.content.cache_control');
    if (point === null) return [];
    const needsText = family.cachePoints?.behindDocuments === 'pdf' && isExtracted(marked?.document);
    return needsText ? [{ text: BESIDE_DOCUMENT }, point] : [point];
  }
}

/** The cache point for a mark of Anthropic's; null: the family has none. */
export function cachePoint({ ttl }: JsonObject, { cachePoints }: ConverseFamily): JsonObject | null {
  if (cachePoints === undefined) return null;
  const time = readText(ttl);
  return { cachePoint: { type: 'default', ...(time !== undefined && cachePoints.ttl ? { ttl: time } : {}) } };
}

function citedIn(block: Block, { citations }: JsonObject): CitedDocument | undefined {
  const isCited = citations !== undefined && (block.kind === 'text' || block.kind === 'media');
  return isCited ? block.cited : undefined;
}

/** Whether Bedrock makes a text of the document, as it does of all but PDFs. */
function isExtracted(document: unknown): boolean {
  return isObject(document) && document.format !== 'pdf';
}

function textBlock(text: string): JsonObject[] {
  return text.trim() === '' ? [] : [{ text }];
}

function hasText({ text }: JsonObject): boolean {
  return text !== undefined;
}

function unknownBlock(raw: JsonObject, report: TranslationReport): JsonObject[] {
  const own = OWN_BLOCKS.find((name) => isObject(raw[name]));
  if (own !== undefined) return [{ [own]: raw[own] }];
  const type = readText(raw.type) ?? 'text';
  if (!EMPTY_PARTS.includes(type)) report.refuse(`messages.content.${type}`);
  return [];
}

function trimLastText(block: JsonObject, at: number, { length }: readonly JsonObject[]): JsonObject {
  const text = at === length - 1 ? readText(block.text) : undefined;
  return text === undefined ? block : { ...block, text: text.trimEnd() };
}
