/** Reads the JSON objects of an event stream, independently of Weir's parser. */
import { isObject, type JsonObject, parseJson } from '../../src/shared/json.ts';

const DATA = /^data: ?/;

/** The data of each event; in recordings without SSE framing, each line. */
export function* eventsOf(text: string): Generator<JsonObject> {
  for (const line of text.split(/\r\n|\n|\r/)) {
    const event = parseJson(line.replace(DATA, ''));
    if (isObject(event)) yield event;
  }
}
