/**
 * What a message in blocks cites, as Claude and Converse have it: each text block has the citations of its text.
 * https://platform.claude.com/docs/en/build-with-claude/citations
 */
import { MAX_CITATIONS, type Source, sourceOf, urlCitation } from '../../canonical/citations.ts';
import type { ChoicePart, TextCount } from '../../canonical/part.ts';
import { isObject, type JsonObject, objectOf, readArray } from '../../shared/json.ts';

/** The citations of one message. */
export class BlockCitations {
  /** The message's text so far. */
  readonly text: TextCount = { units: 0 };
  /** Where the open block began in the text. */
  #start = 0;
  /** What the open block cites. */
  #cited: Source[] = [];
  /** What searches have found. */
  #found: Source[] = [];
  #hasCited = false;

  /** A block begins, or is whole. */
  begin({ type, content, citations }: JsonObject): void {
    this.#start = this.text.units;
    for (const citation of readArray(citations)) this.cite(objectOf(citation));
    if (type !== 'web_search_tool_result') return;
    for (const { url, title } of readArray(content).filter(isObject).slice(0, MAX_CITATIONS)) {
      const source = sourceOf(url, title);
      if (source !== null && this.#found.length < MAX_CITATIONS) this.#found.push(source);
    }
  }

  /** The open block cites a page, or a document, which has no address. A search result of the client's own has it in `source`. */
  cite({ url, source, title }: JsonObject): void {
    const cited = sourceOf(url ?? source, title);
    if (cited !== null && this.#cited.length < MAX_CITATIONS) this.#cited.push(cited);
  }

  /** The open block ends: returns what it cites, with its text as the place. */
  end(): readonly JsonObject[] {
    if (this.#cited.length === 0) return [];
    const cited = this.#cited;
    this.#cited = [];
    this.#hasCited = true;
    return cited.map((source) => urlCitation(source, { start: this.#start, end: this.text.units }));
  }

  /** What searches have found, if the message cites nothing of it. */
  uncited(): Pick<ChoicePart, 'sources'> {
    return this.#hasCited || this.#found.length === 0 ? {} : { sources: this.#found };
  }
}
