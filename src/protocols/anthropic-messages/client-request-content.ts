/** Reads the content that users and tools send in Anthropic's blocks into chat's content parts (5.3). */

import type { ReportedFields } from '../../canonical/reported-fields.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';

/** A content as a list of blocks; a text alone is one. */
export function blocksOf(content: unknown): readonly JsonObject[] {
  const text = readText(content);
  return text === undefined ? readArray(content).filter(isObject) : [{ type: 'text', text }];
}

/** The chat parts of what a user sent; blocks that are none of a user's content are left out. */
export function readParts(blocks: readonly JsonObject[], dropped: ReportedFields): readonly JsonObject[] {
  return blocks.flatMap((block) => {
    const parts = readBlock(block);
    if (parts === null) dropped.add(`messages.content.${readText(block.type) ?? 'unknown'}`);
    return parts ?? [];
  });
}

/** Parts as a message's content: a text alone is a text, which every provider takes. */
export function contentOf(parts: readonly JsonObject[]): unknown {
  const [first, ...others] = parts;
  if (first === undefined) return '';
  const isPlain = others.length === 0 && first.type === 'text' && first.cache_control === undefined;
  return isPlain ? first.text : parts;
}

/** @returns null for a block that is not known */
function readBlock(block: JsonObject): readonly JsonObject[] | null {
  switch (block.type) {
    case 'text':
      return textPart(readText(block.text), block);
    case 'image':
      return readImage(block);
    case 'document':
      return readDocument(block);
    case 'search_result':
      return textPart(joined([block.title, block.source, textOf(block.content)]), block);
    case 'tool_reference':
      return textPart(foundTool(block), block);
    default:
      return null;
  }
}

/** What a search for tools has found: none is held back here, so its name is all that there is to say. */
function foundTool({ tool_name }: JsonObject): string | undefined {
  const name = readText(tool_name);
  return name === undefined ? undefined : `Found the tool ${name}: it can be called now.`;
}

/** Empty texts are refused by some, and say nothing. */
function textPart(text: string | undefined, block: JsonObject): readonly JsonObject[] {
  return text === undefined ? [] : [withCache({ type: 'text', text }, block)];
}

/** Where a client wants the prompt cached; a provider that has no such mark does not get it. */
function withCache(part: JsonObject, { cache_control }: JsonObject): JsonObject {
  return isObject(cache_control) ? { ...part, cache_control } : part;
}

function readImage(block: JsonObject): readonly JsonObject[] | null {
  const url = urlOf(block.source);
  return url === undefined ? null : [withCache({ type: 'image_url', image_url: { url } }, block)];
}

function readDocument(block: JsonObject): readonly JsonObject[] | null {
  const source = objectOf(block.source);
  const title = readText(block.title);
  if (source.type === 'text' || source.type === 'content') {
    const text = joined([title, block.context, source.data, textOf(source.content)]);
    const images = blocksOf(source.content).filter(({ type }) => type === 'image');
    return [...textPart(text, block), ...images.flatMap((image) => readImage(image) ?? [])];
  }
  const file_data = urlOf(source);
  if (file_data === undefined) return null;
  return [withCache({ type: 'file', file: { filename: title ?? 'document.pdf', file_data } }, block)];
}

/** The data or the address of an image or a document; a file that Anthropic keeps has neither. */
function urlOf(source: unknown): string | undefined {
  if (!isObject(source)) return undefined;
  const { type, data, media_type } = source;
  if (type === 'url') return readText(source.url);
  const isData = type === 'base64' && readText(data) !== undefined && readText(media_type) !== undefined;
  return isData ? `data:${media_type};base64,${data}` : undefined;
}

/** The texts of a content. */
export function textOf(content: unknown): string | undefined {
  return joined(blocksOf(content).map(({ text }) => text));
}

function joined(texts: readonly unknown[]): string | undefined {
  return readText(texts.map(readText).filter(Boolean).join('\n'));
}
