/** Reads the JSON objects of an event stream, as a plain client would. */
import { isObject, type JsonObject, parseJson } from '../../src/shared/json.ts';

const DATA = /^data: ?/;

/** The data of each event; in recordings without frames, each line. */
export function* eventsOf(text: string): Generator<JsonObject> {
  for (const line of text.split(/\r\n|\n|\r/)) {
    const event = parseJson(line.replace(DATA, ''));
    if (isObject(event)) yield event;
  }
}
