/** OpenAI's form of tool calls, in a stream's deltas and in a finished message; all but Mistral stream them so. */
import type { JsonObject } from './json.ts';
import type { CallPiece, Script } from './script.ts';
import { wholeCalls } from './script.ts';

/** The head has the id and the name; what follows has the index alone. */
export function callDelta(piece: CallPiece, id: (number: number) => string): JsonObject {
  const { index } = piece;
  if (piece.kind === 'arguments') return { tool_calls: [{ index, function: { arguments: piece.text } }] };
  const head = { name: piece.name, arguments: '' };
  return { tool_calls: [{ index, id: id(piece.number), type: 'function', function: head }] };
}

/** Empty where the script calls no tool, so that the message lacks the key. */
export function messageCalls(script: Script, id: (number: number) => string): { tool_calls?: JsonObject[] } {
  const calls = wholeCalls(script).map(({ index: _, number, ...call }) => ({
    id: id(number),
    type: 'function',
    function: call,
  }));
  return calls.length > 0 ? { tool_calls: calls } : {};
}
