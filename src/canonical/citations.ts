/** The sources that an output cites, in the form of OpenAI's chat (`url_citation`): collected until its finish, once each (C11). */
import {
  hasItems,
  isObject,
  type JsonObject,
  objectOf,
  readArray,
  readCount,
  readText,
} from '../shared/json.ts';

/** A page that the whole output cites. */
export interface Source {
  readonly url: string;
  readonly title: string | undefined;
}

/** Citations of one output, all its choices together. Further ones are left out. */
export const MAX_CITATIONS = 256;

/** Their size as JSON, in UTF-16 units. OpenRouter's contain a piece of the page. */
export const MAX_CITATION_CHARS = 128 * 1024;

/** What the citations of one output have used of both limits. */
export interface CitationCount {
  citations: number;
  chars: number;
}

/** The part of the text that a citation is for, in UTF-16 units. Where a provider names none, both are 0, as at OpenRouter. */
interface CitedPlace {
  readonly start: number;
  readonly end: number;
}

const NOWHERE: CitedPlace = { start: 0, end: 0 };

/** A citation as OpenAI's SDK has it. AI SDK refuses a chunk in which a member is absent, so a page without a title has its URL. */
export function urlCitation({ url, title }: Source, { start, end }: CitedPlace = NOWHERE): JsonObject {
  return {
    type: 'url_citation',
    url_citation: { start_index: start, end_index: end, title: title ?? url, url },
  };
}

const WEB_PAGE = /^https?:\/\//i;

/** A page with an address that a client can open, or null. */
export function sourceOf(url: unknown, title: unknown): Source | null {
  const address = readText(url);
  if (address === undefined || !WEB_PAGE.test(address)) return null;
  return { url: address, title: readText(title) };
}

/**
 * Reads lists of sources, in which an entry is an address, or an object with an address and a title.
 * @returns undefined if there are none
 */
export function readSources(one: unknown, other?: unknown): readonly Source[] | undefined {
  // Nearly every event has neither.
  if (one === undefined && other === undefined) return undefined;
  let sources: Source[] | undefined;
  for (const list of [one, other]) {
    if (!Array.isArray(list)) continue;
    for (const entry of list.slice(0, MAX_CITATIONS)) {
      const { url, link, uri, title } = objectOf(entry);
      const source = sourceOf(isObject(entry) ? (url ?? link ?? uri) : entry, title);
      if (source === null) continue;
      sources ??= [];
      sources.push(source);
    }
  }
  return sources;
}

/** Reads citations that are in the form of chat. One in the form of Responses gets it. Undefined if there are none. */
export function readAnnotations(list: unknown): readonly JsonObject[] | undefined {
  if (!hasItems(list)) return undefined;
  const annotations = readArray(list).filter(isObject).slice(0, MAX_CITATIONS);
  return annotations.length === 0 ? undefined : annotations.map(chatAnnotation);
}

function chatAnnotation(annotation: JsonObject): JsonObject {
  const { type, url, title, start_index, end_index, ...rest } = annotation;
  if (type !== 'url_citation' || isObject(annotation.url_citation) || readText(url) === undefined)
    return annotation;
  return { type, ...rest, url_citation: { start_index, end_index, title, url } };
}

/** A document of the request that may be cited, as its client counts and names it. */
export interface CitableDocument {
  /** Its place among all documents of the client's request. */
  readonly index: number;
  readonly title: string | null;
}

/** The documents of one request whose citations can reach its client. */
export const MAX_CITABLE_DOCUMENTS = 256;

/** The names of both ends of a cited place, by its type. */
const PLACES = {
  char_location: ['start_char_index', 'end_char_index'],
  page_location: ['start_page_number', 'end_page_number'],
  content_block_location: ['start_block_index', 'end_block_index'],
} as const;

/** What a place in a document is counted in. */
export type PlaceType = keyof typeof PLACES;

/**
 * A citation of one of the request's documents, in the form of Anthropic: https://platform.claude.com/docs/en/build-with-claude/citations
 * (2026-11-29). No other client protocol has a type for it: OpenAI's `file_citation` needs the id of a stored file (openai 7.55,
 * `ResponseOutputText.FileCitation`), Gemini's `citationMetadata` is of sources that the model recites, and its `retrievedContext` of
 * what Google retrieved (@google/genai 3.3).
 */
export interface DocumentCitation {
  readonly type: PlaceType;
  readonly cited_text: string;
  readonly document_index: number;
  readonly document_title: string | null;
  readonly file_id: string | null;
  readonly [end: `${'start' | 'end'}_${string}`]: number;
}

/** A citation as a provider has it. */
interface UpstreamCitation {
  readonly type: PlaceType;
  readonly text: string;
  /** Its place among the documents that the provider got. */
  readonly document: unknown;
  readonly start: unknown;
  readonly end: unknown;
  readonly fileId?: string | undefined;
}

/**
 * The citation as the client's request counts and names its documents; null: it names no place in a document that the client can cite.
 * @param documents all that the provider got, in its order; null: one that no citation can name
 */
export function documentCitation(
  { type, text, document, start, end, fileId }: UpstreamCitation,
  documents: readonly (CitableDocument | null)[],
): DocumentCitation | null {
  const cited = documents[readCount(document) ?? documents.length] ?? null;
  const [from, to] = [readCount(start), readCount(end)];
  if (cited === null || from === undefined || to === undefined) return null;
  const [startName, endName] = PLACES[type];
  const { index: document_index, title: document_title } = cited;
  const place: Readonly<Record<string, number>> = { [startName]: from, [endName]: to };
  return { type, cited_text: text, document_index, document_title, ...place, file_id: fileId ?? null };
}

/** Whether a citation of this type is of a place in a document. */
export function isPlaceType(type: unknown): type is PlaceType {
  return typeof type === 'string' && Object.hasOwn(PLACES, type);
}

/** The citations of one choice, or of all choices of an output. */
export class Citations {
  readonly #count: CitationCount;
  /** By their JSON. */
  readonly #annotations = new Map<string, JsonObject>();
  /** By their address. */
  readonly #sources = new Map<string, Source>();

  /** @param count shared by all citations of one output */
  constructor(count: CitationCount) {
    this.#count = count;
  }

  /** Adds citations in their final form. Some servers repeat those before. */
  add(annotations: readonly JsonObject[]): void {
    for (const annotation of annotations) {
      const json = JSON.stringify(annotation);
      if (!this.#annotations.has(json) && this.#mayKeep(json.length)) this.#annotations.set(json, annotation);
    }
  }

  /** Adds pages that are cited as a whole. Perplexity repeats all of them in each event, first without and then with titles. */
  addSources(sources: readonly Source[]): void {
    for (const source of sources) {
      const known = this.#sources.get(source.url);
      if (known !== undefined && (known.title !== undefined || source.title === undefined)) continue;
      if (this.#mayKeep(source.url.length + (source.title?.length ?? 0), known === undefined ? 1 : 0))
        this.#sources.set(source.url, source);
    }
  }

  #mayKeep(chars: number, citations = 1): boolean {
    const count = this.#count;
    if (count.citations + citations > MAX_CITATIONS || count.chars + chars > MAX_CITATION_CHARS) return false;
    count.citations += citations;
    count.chars += chars;
    return true;
  }

  /** All citations: those with a place of their own, then the pages that none of them is of. */
  static join(all: readonly Citations[]): readonly JsonObject[] {
    const annotations = all.flatMap((one) => [...one.#annotations.values()]);
    const cited = new Set(annotations.map(({ url_citation }) => objectOf(url_citation).url));
    const pages = new Map(all.flatMap((one) => [...one.#sources]));
    const others = [...pages.values()].filter(({ url }) => !cited.has(url));
    return [...annotations, ...others.map((source) => urlCitation(source))];
  }
}
