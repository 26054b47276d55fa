/** OpenAI's form of tool calls, in stream deltas and in messages. All providers except Mistral stream them in this form. */
import { type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import type { CallPiece, Script } from './script.ts';
import { wholeCalls } from './script.ts';

/** The first delta has the id and the name; the following ones have only the index. */
export function callDelta(piece: CallPiece, id: (number: number) => string): JsonObject {
  const { index } = piece;
  if (piece.kind === 'arguments') return { tool_calls: [{ index, function: { arguments: piece.text } }] };
  const head = { name: piece.name, arguments: '' };
  return { tool_calls: [{ index, id: id(piece.number), type: 'function', function: head }] };
}

/** Empty if the script calls no tool, so that the message lacks the key. */
export function messageCalls(script: Script, id: (number: number) => string): { tool_calls?: JsonObject[] } {
  const calls = wholeCalls(script).map(({ index: _, number, ...call }) => ({
    id: id(number),
    type: 'function',
    function: call,
  }));
  return calls.length > 0 ? { tool_calls: calls } : {};
}

/** The names of offered and called tools in a request, with their paths. */
export function toolNamesIn(body: JsonObject): readonly { readonly name: string; readonly at: string }[] {
  const offered = objectsOf(body.tools).map((tool, i) => ({
    name: objectOf(tool.function).name,
    at: `tools[${i}].function.name`,
  }));
  const called = objectsOf(body.messages).flatMap(({ tool_calls }, i) =>
    objectsOf(tool_calls).map((call, j) => ({
      name: objectOf(call.function).name,
      at: `messages[${i}].tool_calls[${j}].function.name`,
    })),
  );
  return [...offered, ...called].flatMap(({ name, at }) =>
    name === undefined ? [] : [{ name: textOf(name), at }],
  );
}

/** `ChatCompletionToolChoiceOption` of openai 7.59.0, which other SDKs have as well. */
export const TOOL_CHOICES = ['none', 'auto', 'required'];

/** A word that is none of these. */
export function unknownChoice(choice: Json | undefined): string | undefined {
  return typeof choice === 'string' && !TOOL_CHOICES.includes(choice) ? choice : undefined;
}

/** OpenAI's error text, which DeepSeek also uses. */
export function tooLong(text: string, at: string, limit = 64): string {
  return `Invalid '${at}': string too long. Expected a string with maximum length ${limit}, but got a string with length ${text.length} instead.`;
}
