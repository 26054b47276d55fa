/** The few changes that providers need on a request's body. None touches the body that it is given. */
import { isObject, type JsonObject, readArray } from '../canonical/json.ts';

/** Asks for usage, so that metering does not depend on the client (U4). Only a stream may carry the option. */
export function askForUsage(body: JsonObject): JsonObject {
  if (body.stream !== true) return omit(body, 'stream_options');
  const options = isObject(body.stream_options) ? body.stream_options : {};
  return { ...body, stream_options: { ...options, include_usage: true } };
}

export function omit(body: JsonObject, ...names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}

/** Gives a field its name at this provider; a value that already stands under that name stays. */
export function rename(body: JsonObject, from: string, to: string): JsonObject {
  if (!(from in body)) return body;
  return { [to]: body[from], ...omit(body, from) };
}

/** Leaves fields out of the messages: what an answer holds and this provider refuses to be sent back. */
export function omitFromMessages(body: JsonObject, ...names: readonly string[]): JsonObject {
  if (!Array.isArray(body.messages)) return body;
  const messages = readArray(body.messages).map((message) =>
    isObject(message) ? omit(message, ...names) : message,
  );
  return { ...body, messages };
}
