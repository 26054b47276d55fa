/** Test helpers: builders for upstream streams. */
import type { JsonObject } from '../../tools/conformance/contract/json.ts';
import { type Content, readUpstream } from './reference-reader.ts';

/** Reads a stream of these events. A string is used as the event's lines. */
export function upstream(...values: (JsonObject | string)[]): Content {
  const lines = values.map((value) => (typeof value === 'string' ? value : `data: ${JSON.stringify(value)}`));
  return readUpstream(`${lines.join('\n\n')}\n\n`, 'sse');
}

export const deltaEvent = (delta: JsonObject, more: JsonObject = {}) => ({
  choices: [{ index: 0, delta, ...more }],
});
export const calling = (...fragments: JsonObject[]) => deltaEvent({ tool_calls: fragments });
export const done = 'data: [DONE]';
