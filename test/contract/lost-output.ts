/** Finds answers that have output upstream and none for the client, without the readers of `src` and of the references. */
import { isObject, type Json, parseJson } from '../../tools/conformance/contract/json.ts';

/** Members that lead to output, in all protocols. A server's own members are not among them. */
const PATHS = new Set([
  ...['choices', 'message', 'delta', 'content', 'parts', 'candidates', 'output', 'summary', 'content_block'],
  ...['item', 'part', 'response', 'functionCall', 'tool_calls', 'function', 'function_call', 'thinking'],
]);

/** Members with text that a model wrote, or the name of a tool that it called. */
const TEXTS = new Set([
  ...['content', 'text', 'delta', 'thinking', 'reasoning', 'reasoning_content', 'refusal', 'arguments'],
  ...['partial_json', 'name'],
]);

/** Whether a value of an upstream has output anywhere. */
export function hasOutput(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.some(hasOutput);
  if (!isObject(value)) return false;
  return Object.entries(value).some(
    ([key, member]) =>
      (TEXTS.has(key) && typeof member === 'string' && member !== '') ||
      (PATHS.has(key) && hasOutput(member)),
  );
}

/**
 * One line if the client's response is complete and has no output, although the upstream had some.
 * @param upstream the JSON objects that the upstream sent
 * @param client those that the client got
 */
export function lostOutput(upstream: readonly Json[], client: readonly Json[]): string[] {
  const hasError = client.some((value) => isObject(value) && isObject(value.error ?? null));
  if (hasError || !upstream.some(hasOutput) || client.some(hasOutput)) return [];
  return ['the upstream has output, and the client has none'];
}

/** The JSON objects of a stream or of one response. */
export function objectsIn(text: string): Json[] {
  const lines = text.startsWith('{')
    ? [text]
    : text.split(/\r\n|\n|\r/).map((line) => line.replace(/^data: ?/, ''));
  return lines.flatMap((line) => parseJson(line) ?? []);
}
