/** Reads the content of Responses items into chat's: a text, or parts. */

import type { ReportedFields } from '../../canonical/reported-fields.ts';
import { isObject, type JsonObject, readText } from '../../shared/json.ts';

export type ReadContent =
  | {
      readonly kind: 'content';
      /** Chat's content parts. */
      readonly parts: readonly JsonObject[];
    }
  /** What can't be read here: names the part and what to send in its place. */
  | { readonly kind: 'error'; readonly message: string };

const NO_CONTENT =
  'A content or an output must be a text or a list of parts: send any other value as JSON text';

/**
 * @param content absent or null, it is empty
 * @param dropped learns the names of parts that are left out
 */
export function readContent(content: unknown, dropped: ReportedFields): ReadContent {
  if (typeof content === 'string') return { kind: 'content', parts: [textPart(content)] };
  const given = content ?? [];
  if (!Array.isArray(given) || !given.every(isObject)) return { kind: 'error', message: NO_CONTENT };
  const parts: JsonObject[] = [];
  for (const part of given) {
    const read = readPart(part);
    if (typeof read === 'string') return { kind: 'error', message: read };
    if (read === null) dropped.add(`input.content.${partType(part)}`);
    else parts.push(read);
  }
  return { kind: 'content', parts };
}

/** The part, null where it is of an unknown kind, or why it can't be read. */
function readPart(part: JsonObject): JsonObject | null | string {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'summary_text':
    case 'reasoning_text':
    case 'text':
      return typeof part.text === 'string' ? textPart(part.text) : null;
    case 'refusal':
      return typeof part.refusal === 'string' ? textPart(part.refusal) : null;
    case 'input_image':
      return imagePart(part);
    case 'input_file':
      return filePart(part);
    case 'input_audio':
      return isObject(part.input_audio) ? { type: 'input_audio', input_audio: part.input_audio } : null;
    default:
      return null;
  }
}

function textPart(text: string): JsonObject {
  return { type: 'text', text };
}

function imagePart({ image_url, file_id, detail }: JsonObject): JsonObject | string {
  const url = readText(image_url);
  if (url !== undefined) {
    const wanted = readText(detail);
    return { type: 'image_url', image_url: { url, ...(wanted === undefined ? {} : { detail: wanted }) } };
  }
  return file_id === undefined
    ? 'An input_image needs its image_url'
    : 'An image by its file_id can only be read by whoever keeps the file: send image_url, a URL or a data: URL';
}

function filePart({ file_data, filename, file_id, file_url }: JsonObject): JsonObject | string {
  const file = Object.fromEntries(
    Object.entries({ file_data, filename, file_id }).filter(([, value]) => readText(value) !== undefined),
  );
  if (file.file_data !== undefined || file.file_id !== undefined) return { type: 'file', file };
  return file_url === undefined
    ? 'An input_file needs its file_data'
    : 'A file by its file_url is not fetched here: send file_data, a data: URL';
}

function partType(part: JsonObject): string {
  const type = readText(part.type) ?? 'untyped';
  return /^[\w.-]{1,64}$/.test(type) ? type : 'unknown';
}

/** One text where the parts are one, which every provider takes. */
export function asContent(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  const [first, ...others] = parts;
  if (first === undefined) return '';
  return others.length === 0 && typeof first.text === 'string' ? first.text : parts;
}

/** The texts of parts, each from the next by a blank line. */
export function textOf(parts: readonly JsonObject[]): string {
  return parts
    .map(({ text }) => readText(text))
    .filter((text) => text !== undefined)
    .join('\n\n');
}
