/** Checks in a response that a field had its effect, because a provider that silently ignores a field also responds 200. */
import {
  isObject,
  type JsonObject,
  parseJson,
  readArray,
  readCount,
  readText,
} from '../../src/shared/json.ts';

/** Null: unknown, because the output was truncated. */
export type Effect = (answer: JsonObject) => boolean | null;

/** Whether the output has at most this many tokens. Unknown for an output that ended before. */
export function isLimitedTo(tokens: number): Effect {
  return (answer) => {
    const usage = isObject(answer.usage) ? answer.usage : {};
    if ((readCount(usage.completion_tokens) ?? 0) > tokens) return false;
    return firstChoice(answer).finish_reason === 'length' ? true : null;
  };
}

export const hasTwoChoices: Effect = (answer) => readArray(answer.choices).length === 2;

export const hasLogprobs = ofWhole((choice) => isObject(choice.logprobs));

export const isJsonObject = ofWhole(({ message }) => isObject(parseJson(textOf(message))));

export const callsTool = ofWhole(
  ({ message }) =>
    isObject(message) && (readArray(message.tool_calls).length > 0 || isObject(message.function_call)),
);

/** Whether the output's text doesn't contain this. */
export function lacks(text: string): Effect {
  return ofWhole(({ message }) => !textOf(message).includes(text));
}

function ofWhole(shows: (choice: JsonObject) => boolean): Effect {
  return (answer) => {
    const choice = firstChoice(answer);
    if (shows(choice)) return true;
    return choice.finish_reason === 'length' ? null : false;
  };
}

function firstChoice(answer: JsonObject): JsonObject {
  const [choice] = readArray(answer.choices);
  return isObject(choice) ? choice : {};
}

function textOf(message: unknown): string {
  return (isObject(message) && readText(message.content)) || '';
}
