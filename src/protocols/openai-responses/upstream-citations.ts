/** What a response cites: each of its texts has annotations, whose places count from the beginning of the text. */
import { MAX_CITATIONS, sourceOf, urlCitation } from '../../canonical/citations.ts';
import { isObject, type JsonObject, readArray, readCount, readText } from '../../shared/json.ts';

/**
 * Reads the citations of pages; files have no address.
 * @param before the length of the texts before this one, in UTF-16 units
 */
export function readCitations(annotations: unknown, before: number): readonly JsonObject[] {
  return readArray(annotations)
    .filter(isObject)
    .slice(0, MAX_CITATIONS)
    .flatMap(({ type, url, title, start_index, end_index }) => {
      const source = type === 'url_citation' ? sourceOf(url, title) : null;
      if (source === null) return [];
      const [start, end] = [readCount(start_index), readCount(end_index)];
      const isPlaced = start !== undefined && end !== undefined && end > 0;
      return [urlCitation(source, isPlaced ? { start: before + start, end: before + end } : undefined)];
    });
}

/** Reads the citations of an item's texts, or of those of several items. */
export function citationsIn(items: readonly JsonObject[], before: number): readonly JsonObject[] {
  let start = before;
  const parts = items.flatMap(({ content }) => readArray(content)).filter(isObject);
  return parts.flatMap(({ annotations, text }) => {
    const citations = readCitations(annotations, start);
    start += readText(text)?.length ?? 0;
    return citations;
  });
}
