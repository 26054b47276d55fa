/** Content parts as the provider takes them (Q1). */
import { isObject, type JsonObject, readText } from '../canonical/json.ts';

/** One text, where the list holds nothing else; undefined where it does. */
export function joinText(parts: readonly unknown[]): string | undefined {
  const texts: string[] = [];
  for (const part of parts) {
    if (!isObject(part) || part.type !== 'text' || typeof part.text !== 'string') return undefined;
    texts.push(part.text);
  }
  return texts.join('\n');
}

/** OpenAI's `file` part as Mistral's: a data URL is a `document_url`, an uploaded file keeps its id. */
export function rewritePart(part: JsonObject): JsonObject {
  if (part.type !== 'file' || !isObject(part.file)) return part;
  const { file_data, file_id, filename } = part.file;
  const name = readText(filename);
  if (readText(file_data) !== undefined) {
    const named = name === undefined ? {} : { document_name: name };
    return { type: 'document_url', document_url: file_data, ...named };
  }
  return readText(file_id) === undefined ? part : { type: 'file', file_id };
}
