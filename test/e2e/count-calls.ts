/** Counts the tool calls and results in an upstream request of any protocol. */
import { type JsonObject, objectsOf } from '../../tools/simulator/json.ts';

/** The numbers of calls and of results. */
export function countCalls(body: JsonObject) {
  const parts = [
    ...objectsOf(body.input),
    ...objectsOf(body.messages).flatMap((message) => [
      message,
      ...objectsOf(message.tool_calls),
      ...objectsOf(message.content),
    ]),
    ...objectsOf(body.contents).flatMap(({ parts: inner }) => objectsOf(inner)),
  ];
  const count = (isIt: (part: JsonObject) => boolean) => parts.filter(isIt).length;
  return {
    calls: count(
      ({ type, functionCall, toolUse, function: fn }) =>
        type === 'function_call' ||
        type === 'tool_use' ||
        [fn, functionCall, toolUse].some((call) => call !== undefined),
    ),
    results: count(
      ({ type, role, functionResponse, toolResult }) =>
        type === 'function_call_output' ||
        type === 'tool_result' ||
        role === 'tool' ||
        functionResponse !== undefined ||
        toolResult !== undefined,
    ),
  };
}
