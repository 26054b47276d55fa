/** Turns `functions`, `function_call` and messages of the role `function`, the forms before tools, into tools (Q1). */

import { toolCallId } from '../canonical/tool-call-id.ts';
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { omit } from '../shared/objects.ts';

/** Itself where it has none of them. */
export function convertLegacyFunctions(body: JsonObject): JsonObject {
  const isLegacy = Array.isArray(body.functions) || body.function_call !== undefined;
  if (!isLegacy && !readArray(body.messages).some(isLegacyMessage)) return body;
  const rest = isLegacy ? omit(body, 'functions', 'function_call') : body;
  const tools = readArray(body.functions).map((definition) => ({ type: 'function', function: definition }));
  return {
    ...rest,
    ...(tools.length === 0 || rest.tools !== undefined ? {} : { tools }),
    ...(body.function_call === undefined || rest.tool_choice !== undefined
      ? {}
      : { tool_choice: toolChoice(body.function_call) }),
    ...(Array.isArray(body.messages) ? { messages: convertMessages(body.messages) } : {}),
  };
}

function isLegacyMessage(message: unknown): boolean {
  return isObject(message) && (message.role === 'function' || isObject(message.function_call));
}

function toolChoice(functionCall: unknown): unknown {
  return isObject(functionCall) ? { type: 'function', function: { name: functionCall.name } } : functionCall;
}

/** A legacy call has no id: it gets one from its place, and the next message of the role `function` answers it. */
function convertMessages(messages: readonly unknown[]): unknown[] {
  let lastId = toolCallId('function');
  return messages.map((message, place) => {
    if (!isObject(message)) return message;
    if (message.role === 'function') {
      return { ...omit(message, 'role', 'name'), role: 'tool', tool_call_id: lastId };
    }
    if (!isObject(message.function_call) || message.tool_calls !== undefined) return message;
    lastId = toolCallId(`function ${place} ${readText(message.function_call.name) ?? ''}`);
    const call = { id: lastId, type: 'function', function: message.function_call };
    return { ...omit(message, 'function_call'), tool_calls: [call] };
  });
}
