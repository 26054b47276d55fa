/** Writes the parts of a message's content as Anthropic's blocks: texts, images, documents. */

import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { decodeBase64, decodePercent } from '../../shared/encoding.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';

/** Parts for which Anthropic has no block. https://platform.claude.com/docs/en/api/messages (2026-11-22) */
const UNKNOWN_PARTS = ['input_audio', 'audio', 'video_url'];

/** A content's blocks: those of a text, or of a list of parts. Texts without a letter are refused, and left out. */
export function contentBlocks(content: unknown, report: TranslationReport): JsonObject[] {
  if (typeof content === 'string') return textBlocks(content);
  return readArray(content).flatMap((part) => (isObject(part) ? partBlocks(part, report) : []));
}

/**
 * 400 "text content blocks must be non-empty", "… must contain non-whitespace text", "cache_control cannot be set for empty text
 * blocks": anthropics/claude-code#59812, #23369, #62379, 2026-02 to 2026-05.
 */
export function textBlocks(text: string): JsonObject[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

function partBlocks(part: JsonObject, report: TranslationReport): JsonObject[] {
  // OpenAI counts its marks another way: of more than four it takes the last, where Anthropic refuses them all.
  if (isObject(part.prompt_cache_breakpoint)) report.drop('messages.content.prompt_cache_breakpoint');
  return withCacheControl(ownBlocks(part, report), part.cache_control);
}

/** What the caller wants cached up to a part ends with the part's last block. */
export function withCacheControl(blocks: JsonObject[], cacheControl: unknown): JsonObject[] {
  const last = blocks.at(-1);
  if (!isObject(cacheControl) || last === undefined) return blocks;
  return [...blocks.slice(0, -1), { ...last, cache_control: cacheControl }];
}

function ownBlocks(part: JsonObject, report: TranslationReport): JsonObject[] {
  switch (part.type) {
    case 'text':
    case undefined:
      return textBlocks(readText(part.text) ?? '');
    case 'refusal':
      return textBlocks(readText(part.refusal) ?? '');
    case 'image_url':
      return sourceBlocks('image', readText(isObject(part.image_url) ? part.image_url.url : part.image_url));
    case 'document_url':
      return sourceBlocks('document', readText(part.document_url), readText(part.document_name));
    case 'file':
      return fileBlocks(objectOf(part.file), report);
    default: {
      const type = readText(part.type) ?? '';
      // What is Anthropic's own goes up as it is, and its own answer says what it does not know.
      return UNKNOWN_PARTS.includes(type) ? refused(type, report) : [part];
    }
  }
}

function refused(type: string, report: TranslationReport): JsonObject[] {
  report.refuse(`messages.content.${type}`);
  return [];
}

function fileBlocks(file: JsonObject, report: TranslationReport): JsonObject[] {
  const data = readText(file.file_data) ?? readText(file.file_url);
  // An id names a file at OpenAI.
  if (data === undefined) return refused('file.file_id', report);
  const isImage = /^data:image\//i.test(data);
  return sourceBlocks(isImage ? 'image' : 'document', data, isImage ? undefined : readText(file.filename));
}

function sourceBlocks(type: 'image' | 'document', url: string | undefined, title?: string): JsonObject[] {
  if (url === undefined) return [];
  const named = title === undefined ? {} : { title };
  return [{ type, source: sourceOf(type, url), ...named }];
}

/** The head of a data URL. */
const DATA_URL = /^data:([^;,]*)(?:;[^;,]*)*?(;base64)?,/i;

function sourceOf(type: 'image' | 'document', url: string): JsonObject {
  const [head, mediaType = '', isBase64] = DATA_URL.exec(url.slice(0, MAX_HEAD_CHARS)) ?? [];
  if (head === undefined) return { type: 'url', url };
  const data = url.slice(head.length);
  if (type === 'image') return { type: 'base64', media_type: imageType(mediaType), data };
  if (!mediaType.startsWith('text/')) {
    return { type: 'base64', media_type: mediaType || 'application/pdf', data };
  }
  return { type: 'text', media_type: 'text/plain', data: decodeText(data, isBase64 !== undefined) };
}

/** A head is a media type and a few parameters: no search runs over the data. */
const MAX_HEAD_CHARS = 256;

function imageType(type: string): string {
  const lower = type.toLowerCase();
  return lower === 'image/jpg' ? 'image/jpeg' : lower;
}

/** A text that is not what it says is sent as it is: Anthropic's answer is clearer than a guess. */
function decodeText(data: string, isBase64: boolean): string {
  return (isBase64 ? decodeBase64(data) : decodePercent(data)) ?? data;
}
