/** Writes the parts of a message's content as Gemini has them: texts, and media inline or by their URI (A2). */

import { reportedField } from '../../canonical/reported-fields.ts';
import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { decodePercent, encodeBase64 } from '../../shared/encoding.ts';
import { isObject, type JsonObject, readText } from '../../shared/json.ts';

/** `data:<type>[;parameters][;base64],<data>` */
const DATA_URL = /^data:([^;,]*)(?:;[^;,]*)*?(;base64)?,/i;
/** A head is a media type and a few parameters: no search runs over the data. */
const MAX_HEAD_CHARS = 256;

/** For a URI the type is optional, and said where its name says it: what Gemini takes by URI (vercel/ai#16757, 2026-07-06). */
const TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  pdf: 'application/pdf',
  txt: 'text/plain',
  mp4: 'video/mp4',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
};

/** Of Anthropic's and of OpenAI's: what is cached here can't be told part by part. */
const CACHE_MARKS = ['cache_control', 'prompt_cache_breakpoint'];

/** Thoughts among the content are not sent back: only their signatures count here. */
const THOUGHTS = ['thinking', 'redacted_thinking', 'reasoning'];

/** What a content says, in order; an empty text says nothing. */
export function writeParts(content: unknown, report: TranslationReport): JsonObject[] {
  if (typeof content === 'string') return textPart(content);
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: unknown) => {
    if (typeof part === 'string') return textPart(part);
    return isObject(part) ? writePart(part, report) : [];
  });
}

function textPart(text: unknown): JsonObject[] {
  return readText(text) === undefined ? [] : [{ text }];
}

function writePart(part: JsonObject, report: TranslationReport): JsonObject[] {
  const type = readText(part.type) ?? 'text';
  for (const mark of CACHE_MARKS) {
    if (part[mark] !== undefined && part[mark] !== null) report.drop(`messages.content.${mark}`);
  }
  if (type === 'text') return textPart(part.text);
  if (type === 'refusal') return textPart(part.refusal);
  if (THOUGHTS.includes(type)) return [];
  const media = readMedia(type, part);
  if (media !== undefined) return [media];
  // Left out in silence it would change the answer (Q6).
  const name = `messages.content.${type}`;
  if (report.mode === 'drop') report.dropAllowed(name);
  else report.fail('messages', `${reportedField(name)} can't be sent here: ${HINT}`);
  return [];
}

const HINT = 'send texts, and images, sounds, videos and files as data or as a URI';

/** OpenAI's parts, and OpenRouter's for videos. */
function readMedia(type: string, part: JsonObject): JsonObject | undefined {
  if (type === 'image_url' || type === 'video_url') {
    const { [type]: value } = part;
    return mediaOf(readText(isObject(value) ? value.url : value));
  }
  if (type === 'input_audio' && isObject(part.input_audio)) {
    const { data, format } = part.input_audio;
    return { inlineData: { mimeType: `audio/${readText(format) ?? 'wav'}`, data } };
  }
  if (type === 'file' && isObject(part.file)) {
    const { file_data, file_id, filename } = part.file;
    return mediaOf(readText(file_data) ?? uri(readText(file_id)), readText(filename));
  }
  return undefined;
}

/** A file that was uploaded to Google has a URI for an id; any other provider's id names nothing here. */
function uri(id: string | undefined): string | undefined {
  return id?.includes('://') ? id : undefined;
}

function mediaOf(url: string | undefined, name = url): JsonObject | undefined {
  if (url === undefined) return undefined;
  const [head, type = '', isBase64] = DATA_URL.exec(url.slice(0, MAX_HEAD_CHARS)) ?? [];
  if (head !== undefined) {
    const data = url.slice(head.length);
    return { inlineData: { mimeType: dataType(type), data: isBase64 === undefined ? toBase64(data) : data } };
  }
  const extension = /\.(\w+)(?:[?#]|$)/.exec(name ?? '')?.[1]?.toLowerCase() ?? '';
  const typed = Object.hasOwn(TYPES, extension) ? { mimeType: TYPES[extension] } : {};
  return url.includes('://') ? { fileData: { ...typed, fileUri: url } } : undefined;
}

/** "Unsupported MIME type: image/jpg", which browsers and clients say as well. */
function dataType(type: string): string {
  return /^image\/jpg$/i.test(type) ? 'image/jpeg' : type || 'text/plain';
}

/** Inline data is base64 and nothing else. A text that is not what it says is sent as it is. */
function toBase64(data: string): string {
  const text = decodePercent(data);
  return text === null ? data : encodeBase64(text);
}
