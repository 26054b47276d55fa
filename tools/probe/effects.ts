/** Whether an answer shows that a field did what it asks for: a provider that ignores a field in silence answers 200, too. */
import {
  isObject,
  type JsonObject,
  parseJson,
  readArray,
  readCount,
  readText,
} from '../../src/shared/json.ts';

/** Null: the answer does not tell, because it was cut off before it could. */
export type Effect = (answer: JsonObject) => boolean | null;

/** The answer has no more tokens than this; one that is shorter of itself does not tell. */
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

/** The answer's text has nothing of this in it. */
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
